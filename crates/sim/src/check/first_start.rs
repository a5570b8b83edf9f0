//! One first start for each occurrence: it is claimed by one run at most, and no run's program is started twice,
//! whatever crashed in between.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::record::{Run, ScheduleId};
use cronhold_core::{JobUid, RunId, World};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use super::{Checker, Opinion, runs};
use crate::mirror::{Mirror, name};

/// Remembers who claimed what, and whose program was started.
#[derive(Debug, Default)]
pub(super) struct FirstStart {
    claimed: BTreeMap<(JobUid, ScheduleId, Instant), RunId>,
    launched: BTreeSet<RunId>,
}

impl Checker for FirstStart {
    fn name(&self) -> &'static str {
        "one first start for each occurrence"
    }

    fn before(&mut self, mirror: &Mirror, unit: &Unit, _: &World) -> Opinion {
        for run in runs(unit).filter(|run| run.attempt == 1 && run.rerun_of.is_none() && run.span.is_none()) {
            let Some(schedule) = &run.schedule else { continue };
            let occurrence = (run.uid, schedule.clone(), run.nominal);
            let claimer = *self.claimed.entry(occurrence).or_insert(run.id);
            if claimer != run.id {
                let other = mirror.runs.get(&claimer).map_or_else(|| claimer.to_string(), |other| name(other));
                return Err(format!("{} and {other} are both for {}", name(run), run.nominal));
            }
            if mirror.gone.contains(&run.id) {
                return Err(format!("{} was forgotten and is there again", name(run)));
            }
            // A claim that is sent twice has the same id; it must not begin from the beginning.
            if mirror.runs.get(&run.id).is_some_and(|old| !run.log.starts_with(&old.log)) {
                return Err(format!("{} was made a second time", name(run)));
            }
        }
        Ok(())
    }

    fn launched(&mut self, run: &Run) -> Opinion {
        if self.launched.insert(run.id) { Ok(()) } else { Err(format!("the program of {} starts again", name(run))) }
    }
}
