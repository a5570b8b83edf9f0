//! The scenario of a simulation: a list of events with stable numbers, drawn before the simulation starts. Each event
//! has its own stream of random numbers, so that removing one does not change the others.

use std::collections::BTreeSet;
use std::fmt;

use cronhold_schedule::{Instant, Span};

use crate::trace::since_start;

/// Everything about a simulation that is known before it starts.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// Duration of the fault phase, before a cut.
    pub(crate) length: Span,
    /// Time of day at which the simulation starts.
    pub(crate) start: Instant,
    /// When the fault phase and all schedules end. Earlier than `length` if the scenario was cut.
    pub(crate) until: Span,
    /// Number of jobs.
    pub(crate) jobs: usize,
    /// The shortest interval between occurrences, in seconds.
    pub(crate) shortest: u64,
    /// Maximum duration of an ordinary call to the store, in microseconds.
    pub(crate) usual: u64,
    /// Whether the store has its own clock and nodes share it.
    pub(crate) is_shared: bool,
    /// Whether the clock of a machine, or of the store, is set.
    pub(crate) has_clock_steps: bool,
    /// Whether jobs may have locks. If the store's clock is set forward, locks expire too early, and only fences
    /// protect against that.
    pub(crate) has_locks: bool,
    /// Whether the store is rolled back.
    pub(crate) has_rollbacks: bool,
    /// Whether jobs have actions.
    pub(crate) has_actions: bool,
    /// Whether jobs have batching policies, and operators send triggers.
    pub(crate) has_triggers: bool,
    /// The finished runs of a job in each state that the store keeps at most; `None` if it sets no limit.
    pub(crate) kept_max: Option<u32>,
    pub(crate) machines: Vec<MachineSpec>,
    /// Events; an event's number is its index.
    pub(crate) events: Vec<ScenarioEvent>,
}

/// Properties of a machine.
#[derive(Debug, Clone)]
pub(crate) struct MachineSpec {
    /// Labels that jobs can select.
    pub(crate) labels: BTreeSet<String>,
    /// Whether its programs outlive its daemon.
    pub(crate) has_keeper: bool,
    /// Whether it has a later release of the time zone data, in which one zone has other rules.
    pub(crate) has_newer_zones: bool,
    /// How far its clock is ahead, in microseconds.
    pub(crate) ahead: i64,
}

/// An event at a moment.
#[derive(Debug, Clone)]
pub(crate) struct ScenarioEvent {
    pub(crate) at: Span,
    pub(crate) what: ScenarioAction,
}

/// What an event does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScenarioAction {
    /// Starts a machine.
    Machine(usize),
    /// Creates a job.
    Job(usize),
    /// Makes calls to the store fail, and loses replies, in parts per thousand.
    Calls { unavailable: u64, unknown: u64 },
    /// Loses, delays and duplicates hints.
    Hints(HintLoss),
    /// Loses, delays and duplicates reports of programs.
    Reports(HintLoss),
    /// Kills a daemon after `steps` more of its steps and restarts it after `down`.
    Crash { machine: usize, steps: u64, down: Span },
    /// Asks a daemon to stop, kills it after `gone` and restarts it after `down`.
    Stop { machine: usize, gone: Span, down: Span },
    /// Suspends a daemon after `steps` more of its steps.
    Pause { machine: usize, steps: u64, lasts: Span },
    /// Sets a machine's clock ahead of the true time, in microseconds; negative is behind.
    SetClock { machine: usize, ahead: i64 },
    /// Sets the clock of a shared store ahead of the true time, in microseconds; negative is behind.
    SetStoreClock { ahead: i64 },
    /// Disturbs the store for a while.
    StoreFault { period: FaultPeriod, lasts: Span },
    /// Writes a file with the contents of the store, with which the store restarts after `lost`.
    Rollback { lost: Span },
    /// Kills the keeper of a machine, and all programs with it.
    KeeperLoss { machine: usize },
    /// The keeper of a machine hangs, or is missing and cannot be started. A daemon notices at once that a keeper is
    /// missing, and after some seconds that it hangs.
    KeeperFailure { machine: usize, is_hung: bool, lasts: Span },
    /// An operator sends a random command.
    OperatorCommand,
    /// An operator sends a trigger, or removes some.
    Trigger,
    /// An operator starts or stops draining a node.
    Drain { machine: usize, on: bool },
}

/// How many messages in a thousand are lost, delayed or duplicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HintLoss {
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) double: u64,
}

/// A kind of store fault, for one machine or, if `machine` is `None`, for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultPeriod {
    pub(crate) machine: Option<usize>,
    pub(crate) kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Unreachable,
    ReadOnly,
    Slow,
}

/// The events of a scenario to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScenarioCut {
    /// Numbers of the events that are left out.
    pub without: BTreeSet<usize>,
    /// When the fault phase ends, if earlier than drawn.
    pub until: Option<Span>,
}

impl FaultPeriod {
    pub(crate) fn is_unreachable(&self) -> bool {
        self.kind == FaultKind::Unreachable
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.kind == FaultKind::ReadOnly
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.kind == FaultKind::Slow
    }
}

impl ScenarioAction {
    /// The kind of the event. Shrinking first removes all events of a kind, then single events.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Machine(_) => "machines",
            Self::Job(_) => "jobs",
            Self::Calls { .. } => "calls that fail",
            Self::Hints(_) => "hints that get lost",
            Self::Reports(_) => "reports that get lost",
            Self::Crash { .. } => "crashes",
            Self::Stop { .. } => "stops",
            Self::Pause { .. } => "pauses",
            Self::SetClock { .. } | Self::SetStoreClock { .. } => "clocks that are set",
            Self::StoreFault { .. } => "store faults",
            Self::Rollback { .. } => "rollbacks",
            Self::KeeperLoss { .. } => "keepers that are lost",
            Self::KeeperFailure { .. } => "keepers that fail",
            Self::OperatorCommand => "operator commands",
            Self::Trigger => "triggers",
            Self::Drain { .. } => "draining",
        }
    }
}

/// The name of a machine in traces.
pub(crate) fn machine_name(number: usize) -> String {
    format!("n{}", number + 1)
}

impl fmt::Display for ScenarioEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |machine: &usize| machine_name(*machine);
        write!(f, "{} ", since_start(self.at))?;
        match &self.what {
            ScenarioAction::Machine(machine) => write!(f, "{} starts", name(machine)),
            ScenarioAction::Job(job) => write!(f, "job{} is created", job + 1),
            ScenarioAction::Calls { unavailable, unknown } => {
                write!(f, "{unavailable}‰ of calls fail, {unknown}‰ get no reply")
            }
            ScenarioAction::Hints(loss) => write!(f, "hints: {loss}"),
            ScenarioAction::Reports(loss) => write!(f, "reports: {loss}"),
            ScenarioAction::Crash { machine, steps, down } => {
                write!(f, "{} crashes {steps} steps later and is down for {down}", name(machine))
            }
            ScenarioAction::Stop { machine, gone, down } => {
                write!(f, "{} is asked to stop, is killed after {gone} and down for {down}", name(machine))
            }
            ScenarioAction::Pause { machine, steps, lasts } => {
                write!(f, "{} is paused {steps} steps later for {lasts}", name(machine))
            }
            ScenarioAction::SetClock { machine, ahead } => {
                write!(f, "the clock of {} is set {} ms ahead", name(machine), ahead / 1_000)
            }
            ScenarioAction::SetStoreClock { ahead } => {
                write!(f, "the clock of the store is set {} ms ahead", ahead / 1_000)
            }
            ScenarioAction::StoreFault { period, lasts } => write!(f, "the store is {period} for {lasts}"),
            ScenarioAction::Rollback { lost } => {
                write!(f, "the store writes a file, and restarts with it after {lost}")
            }
            ScenarioAction::KeeperLoss { machine } => write!(f, "{} loses its keeper", name(machine)),
            ScenarioAction::KeeperFailure { machine, is_hung, lasts } => {
                let what = if *is_hung { "hangs" } else { "is missing" };
                write!(f, "the keeper of {} {what} for {lasts}", name(machine))
            }
            ScenarioAction::OperatorCommand => write!(f, "operator command"),
            ScenarioAction::Trigger => write!(f, "trigger"),
            ScenarioAction::Drain { machine, on } => {
                write!(f, "{} {} draining", name(machine), if *on { "starts" } else { "stops" })
            }
        }
    }
}

impl fmt::Display for FaultPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FaultKind::Unreachable => "unreachable",
            FaultKind::ReadOnly => "read-only",
            FaultKind::Slow => "slow",
        };
        match self.machine {
            Some(machine) => write!(f, "{what} for {}", machine_name(machine)),
            None => write!(f, "{what}"),
        }
    }
}

impl fmt::Display for HintLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}‰ lost, {}‰ late, {}‰ duplicated", self.lost, self.late, self.double)
    }
}
