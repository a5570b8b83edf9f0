//! All checkers together: whoever watches the simulation tells them here, and the first finding is kept.

use std::fmt;

use cronhold_core::record::{NodeRecord, Run};
use cronhold_core::{NodeId, RunId};
use cronhold_schedule::Span;
use cronhold_store::{Unit, UnitReceipt};

use super::{
    CheckResult, CheckerContext, InvariantChecker, catch_up, drain, each, early, fence, first_start, launch, lease,
    lock, numbers, obligation, outcome, overlap, pause, place, reason, sets, table,
};

/// What a checker has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which checker.
    pub checker: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}

/// A program that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservedLaunch<'a> {
    /// Its run, as whoever starts it knows it.
    pub(crate) run: &'a Run,
    /// Where.
    pub(crate) node: NodeId,
    /// The fence of its lock, as it is told.
    pub(crate) fence: Option<u64>,
    /// When it ends by itself unless that is extended, in the time of the simulation.
    pub(crate) kill_at: Option<Span>,
}

/// What becomes of the daemon of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonChange {
    /// It works from now on.
    Up,
    /// It does nothing from now on: it has crashed, was stopped, or stands still.
    Down,
    /// Something did not work: a call of the store failed or its answer was lost, or the clock was set.
    Disturbed,
    /// The store works badly or not at all for it from now on.
    Storm,
    /// That is over.
    Lull,
}

/// All checkers.
#[derive(Debug)]
pub(crate) struct CheckerSet {
    checkers: Vec<Box<dyn InvariantChecker>>,
    finding: Option<Violation>,
}

impl Default for CheckerSet {
    fn default() -> Self {
        let checkers: Vec<Box<dyn InvariantChecker>> = vec![
            Box::<first_start::FirstStartChecker>::default(),
            Box::<table::TransitionChecker>::default(),
            Box::<reason::ReasonChecker>::default(),
            Box::<pause::PauseChecker>::default(),
            Box::<place::PlacementChecker>::default(),
            Box::<each::EachNodeChecker>::default(),
            Box::<drain::DrainChecker>::default(),
            Box::<early::EarlyStartChecker>::default(),
            Box::<launch::LaunchChecker>::default(),
            Box::<lease::LeaseChecker>::default(),
            Box::<lock::LockChecker>::default(),
            Box::<fence::FenceChecker>::default(),
            Box::<overlap::OverlapChecker>::default(),
            Box::<numbers::RunNumberChecker>::default(),
            Box::<sets::JobStateChecker>::default(),
            Box::<catch_up::CatchUpRateChecker>::default(),
            Box::<obligation::ObligationChecker>::default(),
            Box::<outcome::OutcomeChecker>::default(),
        ];
        Self { checkers, finding: None }
    }
}

impl CheckerSet {
    /// One checker alone, by its name.
    #[cfg(test)]
    pub(crate) fn only(name: &str) -> Self {
        let mut checkers = Self::default();
        checkers.checkers.retain(|checker| checker.name() == name);
        assert_eq!(checkers.checkers.len(), 1, "{name}");
        checkers
    }

    pub(crate) fn before(&mut self, scene: CheckerContext<'_>, unit: &Unit) {
        self.hear(|checker| checker.before(scene, unit));
    }

    pub(crate) fn after(&mut self, scene: CheckerContext<'_>, unit: &Unit, committed: &UnitReceipt) {
        self.hear(|checker| checker.after(scene, unit, committed));
    }

    pub(crate) fn beaten(&mut self, scene: CheckerContext<'_>, node: &NodeRecord) {
        self.hear(|checker| checker.beaten(scene, node));
    }

    pub(crate) fn saw_nodes(&mut self, scene: CheckerContext<'_>, node: NodeId) {
        self.checkers.iter_mut().for_each(|checker| checker.saw_nodes(scene, node));
    }

    pub(crate) fn launched(&mut self, scene: CheckerContext<'_>, launch: &ObservedLaunch<'_>) {
        self.hear(|checker| checker.launched(scene, launch));
    }

    pub(crate) fn extended(&mut self, run: RunId, kill_at: Span) {
        self.checkers.iter_mut().for_each(|checker| checker.extended(run, kill_at));
    }

    pub(crate) fn ended(&mut self, scene: CheckerContext<'_>, run: RunId) {
        self.hear(|checker| checker.ended(scene, run));
    }

    /// Nothing is said of a node when it is about all of them.
    pub(crate) fn turned(&mut self, scene: CheckerContext<'_>, node: Option<NodeId>, turn: DaemonChange) {
        self.checkers.iter_mut().for_each(|checker| checker.turned(scene, node, turn));
    }

    pub(crate) fn rested(&mut self, scene: CheckerContext<'_>) {
        self.hear(|checker| checker.rested(scene));
    }

    pub(crate) fn finding(&self) -> Option<Violation> {
        self.finding.clone()
    }

    /// Asks every checker and keeps the first finding.
    fn hear(&mut self, ask: impl Fn(&mut dyn InvariantChecker) -> CheckResult) {
        for checker in &mut self.checkers {
            if let Err(what) = ask(checker.as_mut()) {
                self.finding.get_or_insert(Violation { checker: checker.name(), what });
            }
        }
    }
}
