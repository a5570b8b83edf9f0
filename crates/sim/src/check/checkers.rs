//! The set of all checkers. It passes every event to each of them and keeps the first violation.

use std::fmt;

use cronhold_core::record::{ActionId, NodeRecord, Run};
use cronhold_core::{NodeId, RunId};
use cronhold_schedule::Span;
use cronhold_store::{Unit, UnitReceipt};

use super::{
    CheckResult, CheckerContext, InvariantChecker, actions, catch_up, conditions, drain, duplicated_work, each, early,
    fence, first_start, growth, keeper, late, late_wake, launch, lease, lock, numbers, obligation, outcome, overlap,
    pause, place, pools, reason, sets, table, triggers,
};

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the checker.
    pub checker: &'static str,
    /// Description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}

/// The launch of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservedLaunch<'a> {
    /// Its run, as the launch request contains it.
    pub(crate) run: &'a Run,
    /// The node that launched it.
    pub(crate) node: NodeId,
    /// The fence of its lock that the program receives.
    pub(crate) fence: Option<u64>,
    /// When its lease ends unless it is extended, in the time of the simulation.
    pub(crate) kill_at: Option<Span>,
}

/// A change of the daemon of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonChange {
    /// It starts or resumes.
    Up,
    /// It crashes, stops or is suspended.
    Down,
    /// A store call failed, a reply was lost, or a clock was set.
    Disturbed,
    /// Its keeper begins to fail.
    KeeperFails,
    /// Its keeper works again.
    KeeperWorks,
    /// A period of store faults begins for it.
    StoreFaultBegins,
    /// A period of store faults ends for it.
    StoreFaultEnds,
    /// A call takes longer than usual, until this time.
    SlowCall { until: Span },
    /// It does not learn of a change, or only much later.
    HintLost,
}

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
            Box::<pools::PoolChecker>::default(),
            Box::<each::EachNodeChecker>::default(),
            Box::<drain::DrainChecker>::default(),
            Box::<keeper::KeeperChecker>::default(),
            Box::<early::EarlyStartChecker>::default(),
            Box::<conditions::ConditionChecker>::default(),
            Box::<late::LateRunChecker>::default(),
            Box::<late_wake::LateWakeChecker>::default(),
            Box::<launch::LaunchChecker>::default(),
            Box::<lease::LeaseChecker>::default(),
            Box::<lock::LockChecker>::default(),
            Box::<fence::FenceChecker>::default(),
            Box::<overlap::OverlapChecker>::default(),
            Box::<numbers::RunNumberChecker>::default(),
            Box::<sets::JobStateChecker>::default(),
            Box::<catch_up::CatchUpRateChecker>::default(),
            Box::<obligation::ObligationChecker>::default(),
            Box::<duplicated_work::DuplicatedWorkChecker>::default(),
            Box::<outcome::OutcomeChecker>::default(),
            Box::<growth::GrowthChecker>::default(),
            Box::<actions::ActionChecker>::default(),
            Box::<triggers::TriggerChecker>::default(),
        ];
        Self { checkers, finding: None }
    }
}

impl CheckerSet {
    /// A set with one checker.
    #[cfg(test)]
    pub(crate) fn only(name: &str) -> Self {
        let mut checkers = Self::default();
        checkers.checkers.retain(|checker| checker.name() == name);
        assert_eq!(checkers.checkers.len(), 1, "{name}");
        checkers
    }

    pub(crate) fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) {
        self.run_each(|checker| checker.before(context, unit));
    }

    pub(crate) fn after(&mut self, context: CheckerContext<'_>, unit: &Unit, committed: &UnitReceipt) {
        self.run_each(|checker| checker.after(context, unit, committed));
    }

    pub(crate) fn refused(&mut self, context: CheckerContext<'_>, unit: &Unit) {
        self.run_each(|checker| checker.refused(context, unit));
    }

    pub(crate) fn heartbeat(&mut self, context: CheckerContext<'_>, node: &NodeRecord) {
        self.run_each(|checker| checker.heartbeat(context, node));
    }

    pub(crate) fn received_nodes(&mut self, context: CheckerContext<'_>, node: NodeId) {
        self.checkers.iter_mut().for_each(|checker| checker.received_nodes(context, node));
    }

    pub(crate) fn launched(&mut self, context: CheckerContext<'_>, launch: &ObservedLaunch<'_>) {
        self.run_each(|checker| checker.launched(context, launch));
    }

    pub(crate) fn extended(&mut self, run: RunId, kill_at: Span) {
        self.checkers.iter_mut().for_each(|checker| checker.extended(run, kill_at));
    }

    pub(crate) fn delivered(&mut self, action: ActionId) {
        self.checkers.iter_mut().for_each(|checker| checker.delivered(action));
    }

    pub(crate) fn ended(&mut self, context: CheckerContext<'_>, run: RunId) {
        self.run_each(|checker| checker.ended(context, run));
    }

    /// `node` is `None` if the change affects all nodes.
    pub(crate) fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        self.checkers.iter_mut().for_each(|checker| checker.daemon_changed(context, node, change));
    }

    pub(crate) fn at_rest(&mut self, context: CheckerContext<'_>) {
        self.run_each(|checker| checker.at_rest(context));
    }

    pub(crate) fn aged(&mut self, context: CheckerContext<'_>) {
        self.run_each(|checker| checker.aged(context));
    }

    pub(crate) fn finding(&self) -> Option<Violation> {
        self.finding.clone()
    }

    /// Calls every checker and keeps the first violation.
    fn run_each(&mut self, check: impl Fn(&mut dyn InvariantChecker) -> CheckResult) {
        for checker in &mut self.checkers {
            if let Err(what) = check(checker.as_mut()) {
                self.finding.get_or_insert(Violation { checker: checker.name(), what });
            }
        }
    }
}
