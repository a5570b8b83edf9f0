//! Runs of one job start beside each other only where the job allows it or somebody asked for it.

use cronhold_core::job::Overlap as Policy;
use cronhold_core::{State, World};
use cronhold_store::Unit;

use super::{Checker, Opinion, runs};
use crate::mirror::{Mirror, name};

/// Looks at every run that is about to get a program.
#[derive(Debug, Default)]
pub(super) struct Overlap;

impl Checker for Overlap {
    fn name(&self) -> &'static str {
        "no overlap that nobody allowed"
    }

    fn before(&mut self, mirror: &Mirror, unit: &Unit, _: &World) -> Opinion {
        for run in runs(unit).filter(|run| run.state.has_program()) {
            let is_new = mirror.runs.get(&run.id).is_none_or(|old| !old.state.has_program());
            let policy = mirror.jobs.get(&run.job).map(|job| job.job.overlap);
            let starter = run.log.iter().rev().find(|entry| entry.state == State::Starting);
            let is_asked = starter.is_some_and(|entry| entry.actor.is_operator());
            if !is_new || is_asked || policy.is_none_or(|policy| policy == Policy::Allow) {
                continue;
            }
            let ends_now = |other| runs(unit).any(|run| run.id == other && run.state.is_finished());
            let beside = mirror
                .unfinished(&run.job)
                .find(|other| other.id != run.id && other.state.has_program() && !ends_now(other.id));
            if let Some(other) = beside {
                return Err(format!("{} starts beside {}, which is {}", name(run), name(other), other.state));
            }
        }
        Ok(())
    }
}
