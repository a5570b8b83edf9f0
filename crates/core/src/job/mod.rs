//! The one job type that every form of a job is read into: YAML files, the API, Cronken's hash and
//! castle-cron's znodes. A job is a template; nothing here is bound to a run yet.

mod action;
mod condition;
mod policies;
mod program;
mod scope;
mod support;
mod templates;

use std::collections::BTreeMap;

use cronhold_schedule::{Span, Spec};
use serde::Serialize;

pub use action::{Action, Event, HttpTarget};
pub use condition::{Condition, Probe, Requirement};
pub use policies::{
    Batching, CatchUp, CatchUpPolicy, Limits, Lock, Nodes, OnLost, Overlap, QUEUE_LIMIT_DEFAULT, Retain, Retry,
    RetryOn, StopPolicy, StopSchedule, Trigger,
};
pub use program::{HttpProgram, Program, RemoteProgram, TaskProgram};
pub use scope::{NAMES, Name, Scope};
pub use support::Feature;
#[cfg(test)]
pub(crate) use support::job_with;

use crate::template::Template;

/// A named template of runs: what to run, when, and under which conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Markdown for people.
    pub description: String,
    /// Words to find it by.
    pub labels: Vec<String>,
    /// What its runs are told apart by.
    pub params: BTreeMap<String, Param>,
    /// When it runs by itself.
    pub schedules: Vec<Schedule>,
    /// What it runs.
    pub program: Program,
    /// What must hold before a run starts, in order.
    pub conditions: Vec<Condition>,
    /// What it holds alone while it runs.
    pub lock: Lock,
    /// How long the lock outlives a holder that is gone.
    pub ttl: Span,
    /// What happens when a run is due while another is active.
    pub overlap: Overlap,
    /// What happens to occurrences that were missed.
    pub catch_up: CatchUp,
    /// Whether and when a failed run is tried again.
    pub retry: Retry,
    /// After which a run is stopped.
    pub timeout: Option<Span>,
    /// How a run is stopped.
    pub stop: StopPolicy,
    /// Environment of the program.
    pub env: BTreeMap<String, EnvValue>,
    /// Directory the program starts in.
    pub cwd: Option<Template>,
    /// Shell for shell programs; `/bin/bash`, else `/bin/sh`, when absent.
    pub shell: Option<String>,
    /// User the program runs as.
    pub user: Option<String>,
    /// File mode mask of the program.
    pub umask: Option<u32>,
    /// What the program may use; boxed, because few jobs have any.
    pub limits: Option<Box<Limits>>,
    /// Which nodes may run it.
    pub nodes: Nodes,
    /// Exit codes that mean success.
    pub success_codes: Vec<u8>,
    /// What happens on a transition.
    pub on: BTreeMap<Event, Vec<Action>>,
    /// Messages that start runs.
    pub triggers: Vec<Trigger>,
    /// How many finished runs and how much output are kept.
    pub retain: Retain,
    /// What becomes of a run whose node was lost while it was starting.
    pub on_lost: OnLost,
    /// Whether it is paused from the beginning.
    pub paused: bool,
}

impl Job {
    /// A job that runs `program` with all defaults.
    pub fn new(program: Program) -> Self {
        Self {
            description: String::new(),
            labels: Vec::new(),
            params: BTreeMap::new(),
            schedules: Vec::new(),
            program,
            conditions: Vec::new(),
            lock: Lock::None,
            ttl: policies::LOCK_TTL_DEFAULT,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            retry: Retry::default(),
            timeout: None,
            stop: StopPolicy::default(),
            env: BTreeMap::new(),
            cwd: None,
            shell: None,
            user: None,
            umask: None,
            limits: None,
            nodes: Nodes::default(),
            success_codes: vec![0],
            on: BTreeMap::new(),
            triggers: Vec::new(),
            retain: Retain::default(),
            on_lost: OnLost::default(),
            paused: false,
        }
    }
}

/// One parameter of a job. Arguments are always strings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Param {
    /// Used when nobody gives a value; without it the param is required.
    pub default: Option<String>,
    /// The only values allowed, when there are any.
    pub choices: Vec<String>,
    /// For people.
    pub description: String,
}

/// One schedule of a job, with what it gives to its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its id, when someone chose one.
    pub name: Option<String>,
    /// When.
    pub spec: Spec,
    /// Arguments of its runs.
    pub args: BTreeMap<String, String>,
    /// Whether it counts.
    pub enabled: bool,
    /// When its runs are stopped.
    pub stop: Option<StopSchedule>,
}

impl Schedule {
    /// Its id: its name, else a digest of its timing and args. A cursor belongs to an id.
    ///
    /// The zone of a schedule that names none is not part of it; whoever stores a job writes the zone into it first.
    pub fn id(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.spec.digest(&self.args))
    }
}

/// Where the value of an environment variable comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvValue {
    /// Written in the job; may hold template expressions.
    Text(Template),
    /// A secret: the content of a file on the node, read at start and masked everywhere.
    File(String),
    /// A secret: a variable of the daemon's own environment, masked everywhere.
    Env(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node keeps all jobs in memory, and there may be a million.
    #[test]
    fn stays_small() {
        assert!(size_of::<Program>() <= 56, "{}", size_of::<Program>());
        assert!(size_of::<Job>() <= 600, "{}", size_of::<Job>());
    }
}
