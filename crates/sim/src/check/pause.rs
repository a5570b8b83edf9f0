//! Nothing starts by itself while it is paused, or after its job was removed: from the commit of the pause on, only
//! what somebody asked for by name gets a program.

use cronhold_core::{State, World};
use cronhold_store::Unit;

use super::{Checker, Opinion, runs};
use crate::mirror::{Mirror, name};

/// Looks at every run that is about to get a program.
#[derive(Debug, Default)]
pub(super) struct Pause;

impl Checker for Pause {
    fn name(&self) -> &'static str {
        "nothing starts by itself while paused"
    }

    fn before(&mut self, mirror: &Mirror, unit: &Unit, _: &World) -> Opinion {
        for run in runs(unit).filter(|run| run.state.has_program()) {
            let old = mirror.runs.get(&run.id);
            if old.is_some_and(|old| old.state.has_program()) {
                continue;
            }
            let starter = run.log.iter().rev().find(|entry| entry.state == State::Starting);
            if run.is_by_operator() || starter.is_some_and(|entry| entry.actor.is_operator()) {
                continue;
            }
            if mirror.is_paused(&run.job) {
                return Err(format!("{} starts while its job or everything is paused", name(run)));
            }
            if mirror.jobs.get(&run.job).is_none_or(|job| job.uid != run.uid) {
                return Err(format!("{} starts though its job was removed", name(run)));
            }
        }
        Ok(())
    }
}
