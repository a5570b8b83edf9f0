//! The checkers: each knows one thing that must hold whatever happens, in a file of its own, and is told every event
//! at the moment when it happens. The first finding ends a simulation.

mod first_start;
mod lock;
mod numbers;
mod outcome;
mod overlap;
mod pause;
mod sets;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use cronhold_core::decision::Change;
use cronhold_core::record::{Record, Run};
use cronhold_core::{RunId, World};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use crate::mirror::Mirror;

/// What a checker says: nothing, or what is wrong.
type Opinion = Result<(), String>;

/// One thing that must hold.
trait Checker: fmt::Debug + Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// A unit is being done; the mirror does not have it yet.
    fn before(&mut self, _mirror: &Mirror, _unit: &Unit, _world: &World) -> Opinion {
        Ok(())
    }

    /// A unit was done.
    fn after(&mut self, _mirror: &Mirror, _unit: &Unit) -> Opinion {
        Ok(())
    }

    /// A program was started.
    fn launched(&mut self, _run: &Run) -> Opinion {
        Ok(())
    }

    /// A program is no more.
    fn ended(&mut self, _run: RunId) {}

    /// Everything has come to rest, or should have.
    fn rested(&mut self, _mirror: &Mirror, _world: &World, _now: Instant) -> Opinion {
        Ok(())
    }
}

/// What a checker has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which checker.
    pub checker: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}

/// All checkers.
#[derive(Debug)]
pub(crate) struct Court {
    checkers: Vec<Box<dyn Checker>>,
    finding: Option<Finding>,
}

impl Default for Court {
    fn default() -> Self {
        let checkers: Vec<Box<dyn Checker>> = vec![
            Box::<first_start::FirstStart>::default(),
            Box::<table::Table>::default(),
            Box::<pause::Pause>::default(),
            Box::<lock::Lock>::default(),
            Box::<overlap::Overlap>::default(),
            Box::<numbers::Numbers>::default(),
            Box::<sets::Sets>::default(),
            Box::<outcome::Outcome>::default(),
        ];
        Self { checkers, finding: None }
    }
}

impl Court {
    pub(crate) fn before(&mut self, mirror: &Mirror, unit: &Unit, world: &World) {
        self.hear(|checker| checker.before(mirror, unit, world));
    }

    pub(crate) fn after(&mut self, mirror: &Mirror, unit: &Unit) {
        self.hear(|checker| checker.after(mirror, unit));
    }

    pub(crate) fn launched(&mut self, run: &Run) {
        self.hear(|checker| checker.launched(run));
    }

    pub(crate) fn ended(&mut self, run: RunId) {
        self.checkers.iter_mut().for_each(|checker| checker.ended(run));
    }

    pub(crate) fn rested(&mut self, mirror: &Mirror, world: &World, now: Instant) {
        self.hear(|checker| checker.rested(mirror, world, now));
    }

    pub(crate) fn finding(&self) -> Option<Finding> {
        self.finding.clone()
    }

    /// Asks every checker and keeps the first finding.
    fn hear(&mut self, ask: impl Fn(&mut dyn Checker) -> Opinion) {
        for checker in &mut self.checkers {
            if let Err(what) = ask(checker.as_mut()) {
                self.finding.get_or_insert(Finding { checker: checker.name(), what });
            }
        }
    }
}

/// The runs that a unit writes.
fn runs(unit: &Unit) -> impl Iterator<Item = &Run> {
    unit.changes.iter().filter_map(|change| match change {
        Change::Put(Record::Run(run)) => Some(&**run),
        _ => None,
    })
}
