//! What must hold before a run starts.

use std::collections::BTreeMap;

use cronhold_schedule::{Span, TimeOfDay};

use super::program::HttpProgram;
use crate::run::State;
use crate::template::Template;

/// One condition with how long and how often it is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What is required.
    pub requires: Requirement,
    /// How long a run waits for it before it becomes an error; without end when absent.
    pub timeout: Option<Span>,
    /// Time between two looks at the outside; 30 s by default.
    pub poll: Span,
}

impl Condition {
    /// Time between two looks, unless a job says otherwise.
    pub const POLL_DEFAULT: Span = Span::from_secs(30);
}

/// What a condition requires.
#[derive(Debug, Clone, PartialEq)]
pub enum Requirement {
    /// A run of a job, with these args, in one of these states.
    After {
        /// Which job; may hold template expressions.
        job: Template,
        /// Args of the run; those not named are taken over from this run.
        args: BTreeMap<String, Template>,
        /// States that count; `success` by default.
        states: Vec<State>,
        /// How long ago the run may have finished; any time when absent.
        within: Option<Span>,
        /// Whether it is an error when no such run exists or is on its way.
        must_exist: bool,
    },
    /// Fewer than so many runs are active.
    MaxRunning {
        /// The limit, at least 1.
        count: u32,
        /// Whether only runs with the same args count.
        same_args: bool,
        /// A pool shared by jobs, instead of this job's own runs.
        pool: Option<String>,
    },
    /// No other run with the same args is in one of these states, else this one is skipped.
    SkipDuplicate {
        /// `waiting`, `starting`, `running`, `stopping` by default.
        states: Vec<State>,
    },
    /// The outside says yes.
    Probe(Probe),
    /// Local time of day is inside a window; it may reach over midnight.
    Window {
        /// First moment.
        from: TimeOfDay,
        /// First moment after it.
        until: TimeOfDay,
        /// Zone of both; the node's when absent.
        zone: Option<String>,
    },
    /// All of these hold.
    All(Vec<Condition>),
    /// One of these holds.
    Any(Vec<Condition>),
    /// This does not hold.
    Not(Box<Condition>),
}

impl Requirement {
    /// States in which another run makes this one a duplicate, unless a job says otherwise.
    pub const DUPLICATE_STATES_DEFAULT: [State; 4] = [State::Waiting, State::Starting, State::Running, State::Stopping];
}

/// A look at the outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// A file is there.
    File(Template),
    /// A request is answered as expected.
    Http(Box<HttpProgram>),
    /// A shell command ends with 0.
    Command(Template),
}
