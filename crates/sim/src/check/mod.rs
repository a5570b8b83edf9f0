//! The checkers. Each has its own file, checks one invariant, and receives every event when it happens. The first
//! violation ends a simulation. Checkers keep their state incrementally instead of scanning the store at each event, so
//! that the cost of an event does not grow with the length of a simulation.

mod actions;
mod catch_up;
mod checkers;
mod condition_oracle;
mod conditions;
mod drain;
mod duplicated_work;
mod each;
mod early;
mod fence;
mod first_start;
mod fitness;
mod growth;
mod keeper;
mod late;
mod late_wake;
mod launch;
mod lease;
mod lock;
mod numbers;
mod obligation;
mod outcome;
mod overlap;
mod pause;
mod place;
mod pools;
mod reason;
mod sets;
mod table;
#[cfg(test)]
mod tests;
mod triggers;

use std::fmt;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{ActionId, NodeRecord, Record, Run, SkipSpan};
use cronhold_core::{DecisionContext, NodeId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use crate::store_model::StoreModel;

pub(crate) use actions::is_owed;
pub use checkers::Violation;
pub(crate) use checkers::{CheckerSet, DaemonChange, ObservedLaunch};

/// The result of a check; the error describes the violation.
type CheckResult = Result<(), String>;

/// The state of the simulation at an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckerContext<'a> {
    /// Contents of the store.
    pub(crate) model: &'a StoreModel,
    /// Time zones and calendars.
    pub(crate) world: &'a DecisionContext,
    /// Time since the start of the simulation. Lease ends of programs use the same time.
    pub(crate) at: Span,
    /// The store's time.
    pub(crate) now: Instant,
    /// The longest ordinary delay of a call to the store, one way.
    pub(crate) usual: Span,
    /// Whether nodes share the store, which then has its own clock.
    pub(crate) is_shared: bool,
    /// The finished runs of a job in each state that the store keeps at most; `None` if it sets no limit.
    pub(crate) kept_max: Option<u32>,
}

/// Checks one invariant.
trait InvariantChecker: fmt::Debug + Send {
    /// Its name in violations.
    fn name(&self) -> &'static str;

    /// Called for a committed unit before the model applies it.
    fn before(&mut self, _context: CheckerContext<'_>, _unit: &Unit) -> CheckResult {
        Ok(())
    }

    /// Called for a committed unit after the model has applied it.
    fn after(&mut self, _context: CheckerContext<'_>, _unit: &Unit, _committed: &UnitReceipt) -> CheckResult {
        Ok(())
    }

    /// Called for a unit that the store refused, because another node has changed a record or holds a lock.
    fn refused(&mut self, _context: CheckerContext<'_>, _unit: &Unit) -> CheckResult {
        Ok(())
    }

    /// Called for a heartbeat of a node.
    fn heartbeat(&mut self, _context: CheckerContext<'_>, _node: &NodeRecord) -> CheckResult {
        Ok(())
    }

    /// Called when a node receives the list of nodes.
    fn received_nodes(&mut self, _context: CheckerContext<'_>, _node: NodeId) {}

    /// Called when a program is launched.
    fn launched(&mut self, _context: CheckerContext<'_>, _launch: &ObservedLaunch<'_>) -> CheckResult {
        Ok(())
    }

    /// Called when the receiver of an action gets it.
    fn delivered(&mut self, _action: ActionId) {}

    /// Called when the lease of a program is extended to `kill_at`.
    fn extended(&mut self, _run: RunId, _kill_at: Span) {}

    /// Called when a program ends.
    fn ended(&mut self, _context: CheckerContext<'_>, _run: RunId) -> CheckResult {
        Ok(())
    }

    /// Called when the daemon of a node changes; of all nodes if `node` is `None`.
    fn daemon_changed(&mut self, _context: CheckerContext<'_>, _node: Option<NodeId>, _change: DaemonChange) {}

    /// Called once, when everything is at rest or should be.
    fn at_rest(&mut self, _context: CheckerContext<'_>) -> CheckResult {
        Ok(())
    }

    /// Called once in some simulations, when everything has been at rest for so long that what can expire has expired.
    fn aged(&mut self, _context: CheckerContext<'_>) -> CheckResult {
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

/// The spans of skips that this unit writes.
fn spans(unit: &Unit) -> impl Iterator<Item = &SkipSpan> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::SkipSpan(span)) => Some(&**span),
        _ => None,
    })
}

/// The runs that get a program in this unit.
fn starting<'a>(model: &'a StoreModel, unit: &'a Unit) -> impl Iterator<Item = &'a Run> {
    let had_program = |run: &Run| model.runs.get(&run.id).is_some_and(|old| old.state.has_program());
    runs(unit).filter(move |run| run.state.has_program() && !had_program(run))
}

/// The runs that end in this unit, without those that were finished before and are only marked.
fn ending<'a>(model: &'a StoreModel, unit: &'a Unit) -> impl Iterator<Item = &'a Run> {
    let was_over = |run: &Run| model.runs.get(&run.id).is_some_and(|old| old.state.is_finished());
    runs(unit).filter(move |run| run.state.is_finished() && !was_over(run))
}

/// Whether an operator started the run explicitly, which overrides everything except its lock.
fn is_started_explicitly(run: &Run) -> bool {
    let starter = run.log.iter().rev().find(|entry| entry.state == State::Starting);
    starter.is_some_and(|entry| entry.actor.is_explicit())
}
