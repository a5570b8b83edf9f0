//! What is going to happen in a simulation: a list of acts with stable numbers, all drawn before the beginning. Each has
//! its own chance, so that a simulation in which some of them do not happen is like the whole one otherwise.

use std::collections::BTreeSet;
use std::fmt;

use cronhold_schedule::{Instant, Span};

use crate::trace::since_start;

/// Everything about a simulation that is known before it begins.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The seed that it comes from.
    pub(crate) seed: u64,
    /// How long there is trouble.
    pub(crate) length: Span,
    /// When it begins.
    pub(crate) start: Instant,
    /// When the trouble ends and all schedules do; sooner than the length when it was cut.
    pub(crate) until: Span,
    /// How many jobs there can be.
    pub(crate) jobs: usize,
    /// The shortest interval between occurrences, in seconds.
    pub(crate) shortest: u64,
    /// The longest that an ordinary call to the store takes, in microseconds.
    pub(crate) usual: u64,
    /// Whether the store has a time of its own, and others may use it.
    pub(crate) is_shared: bool,
    /// Whether no run is ever forgotten: after a clock was set back an occurrence comes a second time, and only its run
    /// tells that it has been.
    pub(crate) keeps_all: bool,
    /// Whether jobs have locks. A store whose clock is set forward lets go of locks too soon, and nothing but a fence
    /// helps against that.
    pub(crate) has_locks: bool,
    /// The machines that there can be.
    pub(crate) machines: Vec<MachineSpec>,
    /// What happens, by number.
    pub(crate) acts: Vec<ScenarioEvent>,
}

/// What a machine is like.
#[derive(Debug, Clone)]
pub(crate) struct MachineSpec {
    /// What jobs can ask for.
    pub(crate) labels: BTreeSet<String>,
    /// Whether its programs outlive its daemon.
    pub(crate) has_keeper: bool,
    /// How far its clock is ahead, in microseconds.
    pub(crate) ahead: i64,
}

/// Something that happens by itself.
#[derive(Debug, Clone)]
pub(crate) struct ScenarioEvent {
    /// When.
    pub(crate) at: Span,
    /// What.
    pub(crate) what: ScenarioAction,
}

/// What can happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScenarioAction {
    /// There is this machine.
    Machine(usize),
    /// There is this job.
    Job(usize),
    /// So many calls in a thousand fail all along, and of so many the answers are lost.
    Calls { away: u64, unknown: u64 },
    /// Hints get lost all along.
    Hints(HintLoss),
    /// Reports of programs get lost all along.
    Reports(HintLoss),
    /// A daemon dies after so many more of its steps, and comes back.
    Crash { machine: usize, steps: u64, down: Span },
    /// A daemon is asked to stop, is gone after a while, and comes back.
    Stop { machine: usize, gone: Span, down: Span },
    /// A daemon stands still after so many more of its steps, for a while.
    Pause { machine: usize, steps: u64, lasts: Span },
    /// A clock is set so many microseconds ahead.
    SetClock { machine: usize, ahead: i64 },
    /// The clock of a shared store is set so many microseconds ahead.
    SetStoreClock { ahead: i64 },
    /// The store does not work as it should for a while.
    Storm { storm: FaultPeriod, lasts: Span },
    /// The keeper of a machine dies, and all programs with it.
    KeeperLoss { machine: usize },
    /// Somebody wants something.
    Meddle,
    /// Somebody wants a node to drain, or not to.
    Drain { machine: usize, on: bool },
}

/// How many of a thousand get lost, come late, or come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HintLoss {
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) double: u64,
}

/// A time in which the store does not work as it should, for one machine or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultPeriod {
    pub(crate) machine: Option<usize>,
    pub(crate) kind: FaultKind,
}

/// What is wrong with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Away,
    ReadOnly,
    Slow,
}

/// What of a plot does not happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScenarioCut {
    /// The numbers of acts that are left out.
    pub without: BTreeSet<usize>,
    /// When the trouble ends, if that is sooner.
    pub until: Option<Span>,
}

impl FaultPeriod {
    pub(crate) fn is_away(&self) -> bool {
        self.kind == FaultKind::Away
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.kind == FaultKind::ReadOnly
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.kind == FaultKind::Slow
    }
}

impl ScenarioAction {
    /// Acts of one kind are left out together before they are left out one by one.
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
            Self::Storm { .. } => "storms",
            Self::KeeperLoss { .. } => "keepers that are lost",
            Self::Meddle => "meddling",
            Self::Drain { .. } => "draining",
        }
    }
}

/// The name of a machine in films.
pub(crate) fn machine_name(number: usize) -> String {
    format!("n{}", number + 1)
}

impl fmt::Display for ScenarioEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |machine: &usize| machine_name(*machine);
        write!(f, "{} ", since_start(self.at))?;
        match &self.what {
            ScenarioAction::Machine(machine) => write!(f, "{} is there", name(machine)),
            ScenarioAction::Job(job) => write!(f, "job{} is put", job + 1),
            ScenarioAction::Calls { away, unknown } => write!(f, "{away}‰ of calls fail, {unknown}‰ are not answered"),
            ScenarioAction::Hints(loss) => write!(f, "hints: {loss}"),
            ScenarioAction::Reports(loss) => write!(f, "reports: {loss}"),
            ScenarioAction::Crash { machine, steps, down } => {
                write!(f, "{} crashes {steps} steps later and is down for {down}", name(machine))
            }
            ScenarioAction::Stop { machine, gone, down } => {
                write!(f, "{} is asked to stop, is gone after {gone} and down for {down}", name(machine))
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
            ScenarioAction::Storm { storm, lasts } => write!(f, "the store is {storm} for {lasts}"),
            ScenarioAction::KeeperLoss { machine } => write!(f, "{} loses its keeper", name(machine)),
            ScenarioAction::Meddle => write!(f, "somebody meddles"),
            ScenarioAction::Drain { machine, on } => {
                write!(f, "{} is to {}", name(machine), if *on { "drain" } else { "drain no more" })
            }
        }
    }
}

impl fmt::Display for FaultPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FaultKind::Away => "away",
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
        write!(f, "{}‰ get lost, {}‰ come late, {}‰ come twice", self.lost, self.late, self.double)
    }
}
