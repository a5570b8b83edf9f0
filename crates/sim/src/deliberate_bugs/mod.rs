//! Deliberate bugs, each a wrapper around a store or a program runner, which the checkers must detect. One of them,
//! missing hints, is a permanent fault rather than a bug and must not be reported. The product has no switch for any of
//! them.

mod answers;
mod outside;
mod store;

use std::sync::{Arc, Mutex};

use cronhold_core::NodeId;
use cronhold_engine::ProgramRunner;
use cronhold_store::Store;

use crate::context::SimContext;
use crate::executor::TaskOwner;
use crate::random::SimRandom;
use outside::WrongOutside;
use store::{EagerReplyStore, WrongStore};

/// A bug to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliberateBug {
    #[default]
    None,
    /// Units are committed without comparing versions: the last writer wins.
    NoCompare,
    /// Effects come before the commit: the reply arrives when the commit is sent, and the commit takes effect later.
    EffectsBeforeCommit,
    /// A daemon recovers nothing: it does not see earlier runs, backlogs and missed deadlines.
    NoRecovery,
    /// The watchdog sees neither missed deadlines nor the runs of a node.
    NoWatchdog,
    /// Programs continue after their lease has expired.
    IgnoredLeases,
    /// A lock can be taken while another run holds it.
    StolenLocks,
    /// A lock is released as soon as the program of its run is running.
    EarlyLockRelease,
    /// All locks always have the same fence.
    ConstantFence,
    /// Runs are given up although their nodes are alive: no node sees the heartbeats of others.
    IgnoredHeartbeats,
    /// Reports of programs are written regardless of the current state of the run.
    LateReports,
    /// Some nodes have another time than the store.
    WrongTime,
    /// Pauses are ignored.
    IgnoredPauses,
    /// Draining is ignored.
    IgnoredDrains,
    /// The labels that a job selects are ignored.
    IgnoredLabels,
    /// All occurrences are caught up, whatever the policy is.
    UnlimitedCatchUp,
    /// All runs may overlap, whatever the policy is.
    UnlimitedOverlap,
    /// Run numbers are assigned twice.
    DuplicateNumbers,
    /// Skips are not recorded.
    UnrecordedSkips,
    /// A restarted node launches the programs that it recovers again.
    RepeatedLaunches,
    /// Programs are launched long after their commits.
    LateLaunches,
    /// A node does not learn that its keeper hangs or is missing, and goes on claiming.
    HiddenKeeperFailures,
    /// Launches that a keeper does not answer are never decided.
    UnansweredLaunches,
    /// Every node believes that all others drain, so that all nodes try everything at once and no node assigns a run to
    /// another.
    OthersDrain,
    /// Nothing that was ever stored is deleted by retention or expiry.
    NothingExpires,
    /// Which occurrences were claimed is forgotten: only a stored run shows it.
    ForgottenClaims,
    /// Nodes are not notified of changes that may let a waiting run start.
    MissedWakes,
    /// After a restart, the store accepts commits before the nodes could report what was lost.
    NoHoldAfterRestart,
    /// After a rollback, nodes do not restore what they have written.
    NothingRestored,
    /// Some actions are not written with the transition that causes them.
    LostActions,
    /// A node does not find the actions that an earlier process has left.
    ForgottenActions,
    /// The triggers that a run stands for stay pending.
    RepeatedTriggers,
    /// A node does not find the triggers that an earlier process has left.
    ForgottenTriggers,
    /// When a run is late is forgotten as soon as its program runs.
    ForgottenLateness,
    /// How outcomes follow each other is not stored.
    UncountedOutcomes,
    /// Hints never arrive. The watchdog and polling compensate for it.
    NoHints,
}

impl DeliberateBug {
    /// All bugs, which the checkers must detect.
    pub const BUGS: [Self; 34] = [
        Self::NoCompare,
        Self::EffectsBeforeCommit,
        Self::NoRecovery,
        Self::NoWatchdog,
        Self::IgnoredLeases,
        Self::StolenLocks,
        Self::EarlyLockRelease,
        Self::ConstantFence,
        Self::IgnoredHeartbeats,
        Self::LateReports,
        Self::WrongTime,
        Self::IgnoredPauses,
        Self::IgnoredDrains,
        Self::IgnoredLabels,
        Self::UnlimitedCatchUp,
        Self::UnlimitedOverlap,
        Self::DuplicateNumbers,
        Self::UnrecordedSkips,
        Self::RepeatedLaunches,
        Self::LateLaunches,
        Self::HiddenKeeperFailures,
        Self::UnansweredLaunches,
        Self::OthersDrain,
        Self::NothingExpires,
        Self::ForgottenClaims,
        Self::MissedWakes,
        Self::NoHoldAfterRestart,
        Self::NothingRestored,
        Self::LostActions,
        Self::ForgottenActions,
        Self::RepeatedTriggers,
        Self::ForgottenTriggers,
        Self::ForgottenLateness,
        Self::UncountedOutcomes,
    ];

    /// Permanent faults, which the checkers must not report.
    pub const FAULTS: [Self; 1] = [Self::NoHints];

    /// Whether only rollbacks of the store can show the bug. Then all seeds with a shared store have some.
    pub(crate) fn needs_rollbacks(self) -> bool {
        matches!(self, Self::NoHoldAfterRestart | Self::NothingRestored)
    }

    /// Whether only actions can show the bug. Then all seeds have some.
    pub(crate) fn needs_actions(self) -> bool {
        matches!(self, Self::LostActions | Self::ForgottenActions | Self::ForgottenLateness | Self::UncountedOutcomes)
    }

    /// Whether only triggers can show the bug. Then all seeds have some.
    pub(crate) fn needs_triggers(self) -> bool {
        matches!(self, Self::RepeatedTriggers | Self::ForgottenTriggers)
    }

    /// Wraps the store itself, where units take effect.
    pub(crate) fn wrap_store(self, store: Arc<dyn Store>, node: NodeId) -> Arc<dyn Store> {
        match self {
            Self::None
            | Self::NoHints
            | Self::EffectsBeforeCommit
            | Self::IgnoredLeases
            | Self::RepeatedLaunches
            | Self::HiddenKeeperFailures
            | Self::UnansweredLaunches
            | Self::NoHoldAfterRestart
            | Self::NothingRestored
            | Self::LateLaunches => store,
            bug => Arc::new(WrongStore { store, bug, node, first_beats: Mutex::default() }),
        }
    }

    /// Wraps the connection to the store, where units are sent.
    pub(crate) fn wrap_connection(
        self,
        connection: Arc<dyn Store>,
        context: &SimContext,
        owner: TaskOwner,
        rng: &SimRandom,
    ) -> Arc<dyn Store> {
        match self {
            Self::EffectsBeforeCommit => {
                Arc::new(EagerReplyStore { store: connection, context: context.clone(), owner, rng: rng.fork() })
            }
            _ => connection,
        }
    }

    /// Wraps the program runner.
    pub(crate) fn wrap_programs(
        self,
        runner: Arc<dyn ProgramRunner>,
        context: &SimContext,
        owner: TaskOwner,
    ) -> Arc<dyn ProgramRunner> {
        match self {
            Self::IgnoredLeases | Self::RepeatedLaunches | Self::LateLaunches | Self::UnansweredLaunches => {
                Arc::new(WrongOutside { runner, bug: self, context: context.clone(), owner })
            }
            _ => runner,
        }
    }
}
