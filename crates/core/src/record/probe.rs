//! What a waiting run asks the outside: the checks of its conditions `file`, `http`, `command` and `plugin`, and their
//! answers. They are stored with the run, so that a poll interval lasts longer than a daemon, and that one node at a time carries out a
//! check. An answer counts for the run that it was asked for, and for the poll interval of its condition.

use std::fmt;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{CommandLine, ResolvedProcess, ResolvedRequest, RunOwner};
use crate::ids::NodeId;

/// A check of something outside, with all templates resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedProbe {
    /// A file exists.
    File(String),
    /// A request gets an expected response.
    Http(Box<ResolvedRequest>),
    /// A command exits with 0, or a plug-in reports that it holds.
    Command(Box<ResolvedProcess>),
}

/// A check of a waiting run: whether it is under way, and its last answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeState {
    /// What is checked.
    pub probe: ResolvedProbe,
    /// The number of the latest attempt. No other attempt of the run has it.
    pub attempt: u32,
    /// Who carries out the latest attempt; `None` if it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ProbeLease>,
    /// The last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ProbeAnswer>,
}

/// The right of a node to carry out an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeLease {
    /// The node, with its incarnation: a later process of the node has lost the attempt.
    pub owner: RunOwner,
    /// When any node may make another attempt.
    pub until: Instant,
}

/// The answer to a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// When it was stored.
    pub at: Instant,
    /// The node that has checked.
    pub node: NodeId,
    /// Whether the condition holds.
    pub holds: bool,
    /// What the check found, if the condition does not hold: for users, at most [`ProbeState::MESSAGE_MAX`] bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ResolvedProbe {
    /// How long an attempt may take.
    pub const fn timeout(&self) -> Span {
        match self {
            Self::File(_) => Span::from_secs(10),
            Self::Http(request) => request.timeout,
            Self::Command(_) => Span::from_secs(60),
        }
    }

    /// Whether the answer depends on the node that checks.
    pub const fn is_local(&self) -> bool {
        match self {
            Self::File(_) | Self::Command(_) => true,
            Self::Http(_) => false,
        }
    }
}

impl ProbeState {
    /// The most checks of a run. More are an error of the run.
    pub const MAX: usize = 100;
    /// The longest message of an answer in bytes.
    pub const MESSAGE_MAX: usize = 300;
    /// Time between the end of an attempt and the end of its lease.
    const MARGIN: Span = Span::from_secs(15);

    /// A check that was not made.
    pub const fn new(probe: ResolvedProbe) -> Self {
        Self { probe, attempt: 0, asked: None, answer: None }
    }

    /// Until when an attempt that begins now belongs to its node.
    pub fn lease_end(probe: &ResolvedProbe, now: Instant) -> Instant {
        now.plus(probe.timeout()).plus(Self::MARGIN)
    }

    /// Until when an attempt is under way, as far as `me` knows. An attempt of an earlier process of this node is lost.
    pub fn under_way(&self, me: RunOwner, now: Instant) -> Option<Instant> {
        let lease = self.asked.filter(|lease| lease.until > now)?;
        let is_lost = lease.owner.node == me.node && lease.owner != me;
        (!is_lost).then_some(lease.until)
    }
}

/// After "waits for".
impl fmt::Display for ResolvedProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the file `{}`", shortened(path)),
            Self::Http(request) => write!(f, "an expected response from `{}`", shortened(request.origin())),
            Self::Command(process) => match &process.command {
                CommandLine::Exec(words) if process.plugin.is_some() => {
                    let name = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
                    write!(f, "the plug-in `{}`", shortened(name))
                }
                CommandLine::Shell { text, .. } => write!(f, "success of `{}`", shortened(text)),
                CommandLine::Exec(words) => write!(f, "success of `{}`", shortened(&words.join(" "))),
            },
        }
    }
}
