//! Numbers of runs are unique within their job, also when the job was removed and made again.

use std::collections::BTreeMap;

use cronhold_core::{JobId, RunId, RunNumber};
use cronhold_store::Unit;

use super::{Checker, Opinion, Scene, runs};
use crate::mirror::name;

/// Remembers whose number is whose.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    given: BTreeMap<(JobId, RunNumber), RunId>,
}

impl Checker for Numbers {
    fn name(&self) -> &'static str {
        "numbers are unique"
    }

    fn before(&mut self, _: Scene<'_>, unit: &Unit) -> Opinion {
        for run in runs(unit) {
            if *self.given.entry((run.job.clone(), run.number)).or_insert(run.id) != run.id {
                return Err(format!("two runs are called {}", name(run)));
            }
        }
        Ok(())
    }
}
