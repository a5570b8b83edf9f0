//! Conditions: what must hold before a run starts.

use std::collections::BTreeMap;

use cronhold_schedule::{CalendarExpr, Span, TimeOfDay};

use super::{HttpProgram, PluginCall};
use crate::record::PoolName;
use crate::run::State;
use crate::template::Template;

/// One condition, with how long a run waits for it and how often it is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What is required.
    pub requires: Requirement,
    /// How long a run waits for it before the run ends with an error; no limit when absent.
    pub timeout: Option<Span>,
    /// Time between two checks; 30 s by default.
    pub poll: Span,
    /// What happens to the run after the timeout.
    pub on_timeout: TimeoutOutcome,
}

/// What happens to a run for which a condition did not hold in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutOutcome {
    /// It ends in state `error`.
    #[default]
    Error,
    /// It is skipped.
    Skip,
}

impl Condition {
    /// A condition without a timeout.
    pub const fn new(requires: Requirement) -> Self {
        Self { requires, timeout: None, poll: Self::POLL_DEFAULT, on_timeout: TimeoutOutcome::Error }
    }

    /// Default of `poll`.
    pub const POLL_DEFAULT: Span = Span::from_secs(30);

    /// Calls a function for the requirement of each condition, and for those inside it.
    pub fn visit<'c>(conditions: &'c [Self], call: &mut impl FnMut(&'c Requirement)) {
        for Self { requires, .. } in conditions {
            call(requires);
            match requires {
                Requirement::All(inner) | Requirement::Any(inner) => Self::visit(inner, call),
                Requirement::Not(inner) => Self::visit(std::slice::from_ref(&**inner), call),
                _ => {}
            }
        }
    }
}

/// What a condition requires.
#[derive(Debug, Clone, PartialEq)]
pub enum Requirement {
    /// A run of a job, with these args, in one of these states.
    After {
        /// Id of the job; may hold template expressions.
        job: Template,
        /// Args of that run; args that are not named are copied from this run.
        args: BTreeMap<String, Template>,
        /// States that count; `success` by default.
        states: Vec<State>,
        /// Age above which a finished run does not count; no limit when absent.
        within: Option<Span>,
        /// Whether it is an error if no such run exists or is expected.
        must_exist: bool,
    },
    /// Fewer runs than the limit are active.
    MaxRunning {
        /// The limit, at least 1.
        count: u32,
        /// Whether only runs with the same args count.
        same_args: bool,
        /// A pool shared by jobs, instead of this job's own runs.
        pool: Option<PoolName>,
    },
    /// No other run with the same args is in one of these states, else this one is skipped.
    SkipDuplicate {
        /// `waiting`, `starting`, `running`, `stopping` by default.
        states: Vec<State>,
    },
    /// A check of something outside of Cronhold succeeds.
    Probe(Probe),
    /// The local time of day is inside a window, which may span midnight.
    Window {
        /// Start of the window.
        from: TimeOfDay,
        /// End of the window, exclusive.
        until: TimeOfDay,
        /// Zone of both; the node's when absent.
        zone: Option<String>,
        /// Days on which the window begins; every day when absent.
        calendar: Option<CalendarExpr>,
    },
    /// All of these hold.
    All(Vec<Condition>),
    /// One of these holds.
    Any(Vec<Condition>),
    /// This does not hold.
    Not(Box<Condition>),
}

impl Requirement {
    /// Default states in which another run makes this one a duplicate.
    pub const DUPLICATE_STATES_DEFAULT: [State; 4] = [State::Waiting, State::Starting, State::Running, State::Stopping];
}

/// A check of something outside of Cronhold.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// A file exists.
    File(Template),
    /// A request gets an expected response.
    Http(Box<HttpProgram>),
    /// A shell command exits with 0.
    Command(Template),
    /// A plug-in reports that it holds.
    Plugin(Box<PluginCall>),
}
