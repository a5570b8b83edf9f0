//! The job type. Every form of a job is read into it: YAML files, the API and foreign forms. A job is a template: its
//! values are bound when a run is created.

mod action;
mod condition;
mod defaults;
mod http;
mod param;
mod policies;
mod program;
mod scope;
mod support;
mod templates;

use std::collections::BTreeMap;

use cronhold_schedule::{ScheduleSpec, Span};

pub use action::{Action, ActionFilter, ActionKind, ActionRule, HttpTarget, OutcomeChange, RunEvent, SecretSource};
pub use condition::{Condition, Probe, Requirement, TimeoutOutcome};
pub use defaults::JobDefaults;
pub use http::{BodyPattern, HeaderValue, HttpProgram};
pub use param::{ArgPattern, Param, ParamType};
pub use policies::{
    Batching, CatchUpPolicy, CatchUpRule, IoPriority, LockPolicy, NICE_MAX, NICE_MIN, NodeSelector, OnLost,
    OverlapPolicy, QUEUE_LIMIT_DEFAULT, ResourceLimits, Retain, Retry, RetryOn, StderrPolicy, StdinSource, StopPolicy,
    StopSchedule, Trigger,
};
pub use program::{PluginCall, Program, RemoteProgram, TaskProgram};
pub use scope::{NAMES, TemplateName, TemplateScope};
#[cfg(test)]
pub(crate) use support::job_with;
pub use support::{Feature, STORE_WITHOUT_TASKS, TASKS_HINT};

use crate::name_map::NameMap;
use crate::record::PoolName;
use crate::task::Channel;
use crate::template::Template;

/// A named template of runs: what to run, when, and under which conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Description in Markdown.
    pub description: String,
    /// Labels by which users filter jobs.
    pub labels: Vec<String>,
    /// Parameters of its runs, by name.
    pub params: NameMap<Param>,
    /// When runs start automatically.
    pub schedules: Vec<JobSchedule>,
    /// What a run executes.
    pub program: Program,
    /// Conditions that must hold before a run starts, checked in order.
    pub conditions: Vec<Condition>,
    /// The lock that a run holds while it is active.
    pub lock: LockPolicy,
    /// Time after which the lock of a lost node expires.
    pub ttl: Span,
    /// How long a program without a lock may continue while its node cannot renew its lease; the default of the store's
    /// URL when absent.
    pub lease: Option<Span>,
    /// What happens when a run is due while another is active.
    pub overlap: OverlapPolicy,
    /// What happens to occurrences that were missed.
    pub catch_up: CatchUpRule,
    /// Whether and when a failed run is retried.
    pub retry: Retry,
    /// Time after which a run is stopped; no limit when absent.
    pub timeout: Option<Span>,
    /// Time after its nominal time at which a run that has not finished is late; never when absent.
    pub late: Option<Span>,
    /// How a run is stopped.
    pub stop: StopPolicy,
    /// Environment variables that the job adds.
    pub env: NameMap<EnvValue>,
    /// Working directory of the program.
    pub cwd: Option<Template>,
    /// Shell for shell programs; `/bin/bash`, else `/bin/sh`, when absent.
    pub shell: Option<String>,
    /// User that the program runs as; the keeper's user when absent.
    pub user: Option<String>,
    /// File mode mask of the program; inherited when absent.
    pub umask: Option<u32>,
    /// What the program reads from its standard input; nothing when absent. Boxed, because few jobs have any.
    pub stdin: Option<Box<StdinSource>>,
    /// Whether standard error can be told apart in the output.
    pub stderr: StderrPolicy,
    /// Niceness of the program, from [`NICE_MIN`], the most urgent, to [`NICE_MAX`]; the keeper's when absent.
    pub nice: Option<i8>,
    /// How urgently the disk serves the program; as the keeper when absent.
    pub ionice: Option<IoPriority>,
    /// Resource limits; boxed, because few jobs have any.
    pub limits: Option<Box<ResourceLimits>>,
    /// Which nodes may run it.
    pub nodes: NodeSelector,
    /// Exit codes that mean success.
    pub success_codes: Vec<u8>,
    /// Actions by their events.
    pub on: BTreeMap<RunEvent, Vec<ActionRule>>,
    /// Channels whose messages start runs.
    pub triggers: Vec<Trigger>,
    /// How triggers of requests, actions and events become runs; each creates a run at once when absent.
    pub batching: Option<Batching>,
    /// How many finished runs are kept, and how long their output is kept.
    pub retain: Retain,
    /// What happens to a run whose node is lost while the run is starting.
    pub on_lost: OnLost,
    /// Whether its schedules are in effect. Runs that are started explicitly start anyway.
    pub enabled: bool,
    /// Whether it is paused when it is created.
    pub paused: bool,
}

impl Job {
    /// Whether a schedule of the job is in effect.
    pub const fn enables(&self, schedule: &JobSchedule) -> bool {
        self.enabled && schedule.enabled
    }

    /// A job that runs `program` with all defaults.
    pub fn new(program: Program) -> Self {
        Self {
            description: String::new(),
            labels: Vec::new(),
            params: NameMap::new(),
            schedules: Vec::new(),
            program,
            conditions: Vec::new(),
            lock: LockPolicy::None,
            ttl: policies::LOCK_TTL_DEFAULT,
            lease: None,
            overlap: OverlapPolicy::default(),
            catch_up: CatchUpRule::default(),
            retry: Retry::default(),
            timeout: None,
            late: None,
            stop: StopPolicy::default(),
            env: NameMap::new(),
            cwd: None,
            shell: None,
            user: None,
            umask: None,
            stdin: None,
            stderr: StderrPolicy::default(),
            nice: None,
            ionice: None,
            limits: None,
            nodes: NodeSelector::default(),
            success_codes: vec![0],
            on: BTreeMap::new(),
            triggers: Vec::new(),
            batching: None,
            retain: Retain::default(),
            on_lost: OnLost::default(),
            enabled: true,
            paused: false,
        }
    }
}

impl Job {
    /// How triggers become runs: the policy of the job, or that of its channels; `None` if each creates a run at once.
    pub fn batching_policy(&self) -> Option<Batching> {
        self.batching.or_else(|| self.triggers.first().map(|trigger| trigger.batching))
    }

    /// The trigger for a message on a channel: the one whose channel is the nearest at or above it.
    pub fn trigger_of(&self, channel: &Channel) -> Option<&Trigger> {
        let of_level = |level: &Channel| self.triggers.iter().find(|trigger| trigger.channel == level.as_str());
        channel.levels().iter().find_map(of_level)
    }

    /// The pools that its conditions name, at any depth, each once.
    pub fn pools(&self) -> Vec<PoolName> {
        let mut pools = Vec::new();
        Condition::visit(&self.conditions, &mut |requirement| {
            if let Requirement::MaxRunning { pool: Some(pool), .. } = requirement {
                pools.push(pool.clone());
            }
        });
        pools.sort();
        pools.dedup();
        pools
    }
}

/// One schedule of a job, with what it gives to its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSchedule {
    /// Id that the author of the job chose; a digest is used when absent.
    pub name: Option<String>,
    /// When runs are due.
    pub spec: ScheduleSpec,
    /// Arguments of its runs.
    pub args: NameMap<String>,
    /// Whether the schedule is in effect.
    pub enabled: bool,
    /// When its runs are stopped.
    pub stop: Option<StopSchedule>,
}

impl JobSchedule {
    /// The id: the name, or else a digest of timing and args. Cursors refer to schedules by id.
    ///
    /// The id does not cover the default zone: a job record sets the zone of its schedules before it computes their
    /// ids.
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

    /// A node keeps all jobs in memory, up to a million.
    #[test]
    fn job_and_program_stay_within_their_size() {
        assert!(size_of::<Program>() <= 56, "{}", size_of::<Program>());
        assert!(size_of::<Job>() <= 600, "{}", size_of::<Job>());
    }
}
