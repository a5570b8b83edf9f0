//! The checkers: each knows one thing that must hold whatever happens, in a file of its own, and is told every event
//! at the moment when it happens. The first finding ends a simulation. No checker looks at everything at each event:
//! what one asks is kept as events come, so that long simulations take no longer for each of their events.

mod catch_up;
mod checkers;
mod drain;
mod each;
mod early;
mod fence;
mod first_start;
mod fitness;
mod launch;
mod lease;
mod lock;
mod numbers;
mod obligation;
mod outcome;
mod overlap;
mod pause;
mod place;
mod reason;
mod sets;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record, Run, SkipSpan};
use cronhold_core::{DecisionContext, NodeId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use crate::store_model::StoreModel;

pub use checkers::Violation;
pub(crate) use checkers::{CheckerSet, DaemonChange, ObservedLaunch};

/// What a checker says: nothing, or what is wrong.
type CheckResult = Result<(), String>;

/// What there is to look at when something happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckerContext<'a> {
    /// What the store holds.
    pub(crate) model: &'a StoreModel,
    /// Zones and calendars.
    pub(crate) world: &'a DecisionContext,
    /// How long the simulation has lasted. Limits of programs are given in this time too.
    pub(crate) at: Span,
    /// What the store's clock says.
    pub(crate) now: Instant,
    /// Whether nodes share the store, which then has a clock of its own.
    pub(crate) is_shared: bool,
}

/// One thing that must hold.
trait InvariantChecker: fmt::Debug + Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// A unit is being done; the mirror does not have it yet.
    fn before(&mut self, _scene: CheckerContext<'_>, _unit: &Unit) -> CheckResult {
        Ok(())
    }

    /// A unit was done.
    fn after(&mut self, _scene: CheckerContext<'_>, _unit: &Unit, _committed: &UnitReceipt) -> CheckResult {
        Ok(())
    }

    /// A node said that it is alive.
    fn beaten(&mut self, _scene: CheckerContext<'_>, _node: &NodeRecord) -> CheckResult {
        Ok(())
    }

    /// A node looks at the list of nodes.
    fn saw_nodes(&mut self, _scene: CheckerContext<'_>, _node: NodeId) {}

    /// A program was started.
    fn launched(&mut self, _scene: CheckerContext<'_>, _launch: &ObservedLaunch<'_>) -> CheckResult {
        Ok(())
    }

    /// A program may live until then.
    fn extended(&mut self, _run: RunId, _kill_at: Span) {}

    /// A program is no more.
    fn ended(&mut self, _scene: CheckerContext<'_>, _run: RunId) -> CheckResult {
        Ok(())
    }

    /// The daemon of a node, or of all, came, went, or could not do what it wanted.
    fn turned(&mut self, _scene: CheckerContext<'_>, _node: Option<NodeId>, _turn: DaemonChange) {}

    /// Everything has come to rest, or should have.
    fn rested(&mut self, _scene: CheckerContext<'_>) -> CheckResult {
        Ok(())
    }
}

/// The runs that a unit writes.
fn runs(unit: &Unit) -> impl Iterator<Item = &Run> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Run(run)) => Some(&**run),
        _ => None,
    })
}

/// The spans of skips that a unit writes.
fn spans(unit: &Unit) -> impl Iterator<Item = &SkipSpan> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::SkipSpan(span)) => Some(&**span),
        _ => None,
    })
}

/// The runs that get a program by a unit that is being done.
fn starting<'a>(model: &'a StoreModel, unit: &'a Unit) -> impl Iterator<Item = &'a Run> {
    let had_program = |run: &Run| model.runs.get(&run.id).is_some_and(|old| old.state.has_program());
    runs(unit).filter(move |run| run.state.has_program() && !had_program(run))
}

/// The runs that end by a unit that is being done; not those that were over and are marked.
fn ending<'a>(model: &'a StoreModel, unit: &'a Unit) -> impl Iterator<Item = &'a Run> {
    let was_over = |run: &Run| model.runs.get(&run.id).is_some_and(|old| old.state.is_finished());
    runs(unit).filter(move |run| run.state.is_finished() && !was_over(run))
}

/// Whether somebody told a run to start, past everything but its lock.
fn is_asked(run: &Run) -> bool {
    let starter = run.log.iter().rev().find(|entry| entry.state == State::Starting);
    starter.is_some_and(|entry| entry.actor.is_explicit())
}
