//! The small policies of a job and their defaults. The module `policy` decides what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_schedule::{Span, TimeOfDay};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::run::State;
use crate::signal::Signal;
use crate::template::Template;

/// Default of the job's `ttl`.
pub(super) const LOCK_TTL_DEFAULT: Span = Span::from_secs(10);

/// The lock that a run holds while it is active.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LockPolicy {
    #[default]
    None,
    /// A lock named like the job.
    Job,
    /// A lock that several jobs may share.
    Named(String),
}

/// The most and the least urgent niceness of a program.
pub const NICE_MIN: i8 = -20;
pub const NICE_MAX: i8 = 19;

/// How urgently the disk serves a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoPriority {
    /// Only when no other program needs it.
    Idle,
    /// Best effort, from 0, the most urgent, to [`Self::LEVEL_MAX`].
    BestEffort(u8),
}

impl IoPriority {
    /// The least urgent level of best effort.
    pub const LEVEL_MAX: u8 = 7;
}

/// Whether the standard error of a program can be told apart from its standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StderrPolicy {
    /// No: both share one pipe, so that the output has all writes in their order.
    #[default]
    Mixed,
    /// Yes. Writes to different streams shortly after each other may change places in the output.
    Separate,
}

/// What a program reads from its standard input.
#[derive(Debug, Clone, PartialEq)]
pub enum StdinSource {
    /// A text.
    Text(Template),
    /// The content of a file on the node.
    File(Template),
}

/// Resource limits of a program and its descendants; no limit where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceLimits {
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// Open files of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Processor time of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<Span>,
    /// Bytes of a core dump; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u64>,
}

impl ResourceLimits {
    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens when a run is due while another run of the job is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapPolicy {
    /// Both runs are active at the same time.
    Allow,
    /// The new run is skipped.
    #[default]
    Skip,
    /// The new run waits; runs beyond the limit are skipped.
    Queue {
        /// How many may wait.
        limit: u32,
    },
    /// The old run is stopped, then the new run starts.
    Replace,
}

/// Default length of an overlap queue.
pub const QUEUE_LIMIT_DEFAULT: u32 = 100;

/// What happens to occurrences that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CatchUpRule {
    /// Which missed occurrences run.
    pub policy: CatchUpPolicy,
    /// Age above which a missed occurrence is not run.
    pub within: Span,
}

impl Default for CatchUpRule {
    fn default() -> Self {
        Self { policy: CatchUpPolicy::Last, within: Span::from_secs(3600) }
    }
}

/// Which missed occurrences run later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CatchUpPolicy {
    /// No missed occurrence.
    None,
    /// The newest missed occurrence.
    Last,
    /// Every missed occurrence.
    All,
}

/// Whether and when an unsuccessful run is retried.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Total of attempts, including the first; 1 means no retry.
    pub attempts: u32,
    /// Wait before the second attempt.
    pub backoff: Span,
    /// Factor by which the wait grows with each attempt.
    pub factor: f64,
    /// The longest wait.
    pub most: Span,
    /// Outcomes that are retried.
    pub on: BTreeSet<RetryOn>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 1,
            backoff: Span::from_secs(10),
            factor: 2.0,
            most: Span::from_secs(600),
            on: BTreeSet::from([RetryOn::Failure]),
        }
    }
}

/// An outcome that can be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RetryOn {
    /// The program failed.
    Failure,
    /// The machine, the configuration or the node failed.
    Error,
}

/// How a run is stopped: a signal, a grace period, then SIGKILL to the whole group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopPolicy {
    /// The first signal; SIGTERM by default.
    pub signal: Signal,
    /// Time between the signal and SIGKILL.
    pub grace: Span,
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self { signal: Signal::TERM, grace: Span::from_secs(60) }
    }
}

/// When the runs of one schedule are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopSchedule {
    /// At this time after the nominal time.
    After(Span),
    /// At the next such time of day after the nominal time, in the schedule's zone.
    At(TimeOfDay),
}

/// Which nodes may run a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeSelector {
    #[default]
    Any,
    /// Any node that has all these labels.
    Labels(BTreeSet<String>),
    /// Every node that has all these labels, each with a run of its own.
    Each(BTreeSet<String>),
}

impl NodeSelector {
    /// Whether every eligible node has a run of its own.
    pub fn is_each(&self) -> bool {
        matches!(self, Self::Each(_))
    }

    /// A digest of the required labels. Jobs with equal digests may run on the same nodes.
    pub fn digest(&self) -> u64 {
        let (Self::Labels(labels) | Self::Each(labels)) = self else { return 0 };
        let hash = Sha256::new();
        let hash = labels.iter().fold(hash, |hash, label| hash.chain_update(label).chain_update([0]));
        hash.finalize().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// Whether a node with these labels may run the job.
    pub fn allow(&self, has: &BTreeSet<String>) -> bool {
        match self {
            Self::Any => true,
            Self::Labels(labels) | Self::Each(labels) => labels.is_subset(has),
        }
    }
}

/// How many finished runs of each outcome are kept, and how long their output is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retain {
    /// Number of successful runs that are kept.
    pub success: u32,
    /// Number of failed runs that are kept.
    pub failure: u32,
    /// Runs that ended in error.
    pub error: u32,
    /// Number of skipped runs that are kept.
    pub skipped: u32,
    /// How long the output of a run is kept after the run ended, unless the run failed: then as long as the run.
    pub output: Span,
}

impl Default for Retain {
    fn default() -> Self {
        Self { success: 1000, failure: 1000, error: 1000, skipped: 200, output: Span::from_secs(14 * 86_400) }
    }
}

impl Retain {
    /// The same with at most `most` runs in each state; unchanged for `None`.
    pub fn capped(&self, most: Option<u32>) -> Self {
        let most = most.unwrap_or(u32::MAX);
        let Self { success, failure, error, skipped, output } = *self;
        let [success, failure, error, skipped] = [success, failure, error, skipped].map(|limit| limit.min(most));
        Self { success, failure, error, skipped, output }
    }

    /// The number of runs in a finished state that are kept; zero for other states.
    pub fn limit(&self, state: State) -> u32 {
        match state {
            State::Success => self.success,
            State::Failure => self.failure,
            State::Error => self.error,
            State::Skipped => self.skipped,
            _ => 0,
        }
    }
}

/// What happens to a run whose node is lost while the run is starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    /// It ends with an error, because it is unknown whether the program ran.
    #[default]
    Error,
    /// It is launched again.
    Retry,
}

/// Messages that start runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trigger {
    /// Channel listened to, its children included; begins with `/`.
    pub channel: String,
    /// Args of the runs.
    pub args: BTreeMap<String, Template>,
    /// How messages become runs.
    pub batching: Batching,
}

/// How pending triggers are turned into runs. Messages of a channel are triggers, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Batching {
    /// Each run stands for the oldest triggers, as many as allowed.
    Greedy {
        /// The most runs at the same time.
        concurrent: u32,
        /// The most triggers of one run.
        most: u32,
    },
    /// Batches that grow with the logarithm of the number of pending triggers.
    Logarithmic {
        /// The most runs at the same time.
        concurrent: u32,
        /// The most triggers of one run.
        most: u32,
        /// Base of the logarithm, above 1.
        base: f64,
    },
    /// Each run stands for one trigger, the newest first. Old triggers are dropped.
    Newest {
        /// The most runs at the same time.
        concurrent: u32,
        /// Age from which a trigger is dropped.
        timeout: Span,
    },
}

impl Batching {
    /// Default of `most`.
    pub const MOST_DEFAULT: u32 = 1000;
    /// Default age at which `newest` drops a trigger.
    pub const TIMEOUT_DEFAULT: Span = Span::from_secs(7 * 86_400);
    /// One run for each trigger: for triggers that are pending although the job has no policy any more.
    pub const SINGLY: Self = Self::Greedy { concurrent: u32::MAX, most: 1 };

    /// The most runs at the same time.
    pub const fn concurrent(self) -> u32 {
        match self {
            Self::Greedy { concurrent, .. }
            | Self::Logarithmic { concurrent, .. }
            | Self::Newest { concurrent, .. } => concurrent,
        }
    }

    /// The name of the policy, as in job files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy { .. } => "greedy",
            Self::Logarithmic { .. } => "logarithmic",
            Self::Newest { .. } => "newest",
        }
    }

    /// The same policy with at most this many runs at the same time.
    #[must_use]
    pub fn limited(self, most_runs: u32) -> Self {
        let concurrent = self.concurrent().min(most_runs);
        match self {
            Self::Greedy { most, .. } => Self::Greedy { concurrent, most },
            Self::Logarithmic { most, base, .. } => Self::Logarithmic { concurrent, most, base },
            Self::Newest { timeout, .. } => Self::Newest { concurrent, timeout },
        }
    }
}

impl Default for Batching {
    fn default() -> Self {
        Self::Greedy { concurrent: 1, most: Self::MOST_DEFAULT }
    }
}
