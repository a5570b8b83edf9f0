//! The record of an action: what a transition of a run owes to the outside. The commit of the transition writes it with
//! all templates resolved, so it depends neither on the run nor on the job any more. It is kept as long as its run.

use std::collections::BTreeMap;
use std::fmt;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, TextError};
use serde::{Deserialize, Serialize};

use super::request::url_origin;
use super::{ResolvedProcess, RunOwner, TriggerId};
use crate::args::Args;
use crate::ids::{JobId, RunId};
use crate::job::{ActionKind, RunEvent, SecretSource};
use crate::task::{Channel, JsonText};

/// The id of an action, and its idempotency key: its run, and its number among the actions of that run, from 0. The
/// number follows from the run, so a decision that is made twice gives the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId {
    pub run: RunId,
    pub number: u32,
}

/// An action of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    pub id: ActionId,
    /// The job of the run.
    pub job: JobId,
    /// The event that caused it.
    pub event: RunEvent,
    /// When the event happened.
    pub created: Instant,
    pub work: ResolvedAction,
    /// How often it was tried. An attempt counts when it begins, so one that a crash interrupted is included.
    pub attempts: u32,
    /// How many attempts have failed. The wait before the next one depends on it.
    pub failures: u32,
    /// Why the last failed attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub status: ActionStatus,
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    /// It is not done.
    Pending {
        /// When any node may try it. While it has an owner, that is the end of the owner's lease.
        due: Instant,
        /// The node that tries it now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<RunOwner>,
    },
    /// It was delivered.
    Done { at: Instant },
    /// It was given up.
    Failed { at: Instant },
}

/// What an action does, with all templates resolved. Secrets are named, not held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedAction {
    /// Creates a run of a job.
    Run {
        job: JobId,
        /// Args that the action names.
        args: BTreeMap<String, String>,
        /// Args of the run that caused it, for params that the action does not name.
        inherited: Args,
        /// The trigger that it has become, because the job has a batching policy; `None` before it is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<TriggerId>,
    },
    /// Sends an HTTP request.
    Webhook(Box<ResolvedWebhook>),
    /// Sends a mail.
    Email { to: Vec<String>, subject: String, body: String },
    /// Runs a shell command.
    Command(Box<ResolvedProcess>),
    /// Publishes a message to a channel.
    Publish { channel: Channel, message: JsonText },
    /// Its templates could not be resolved, or this version does not support it. Such an action has failed from the start.
    Invalid(ActionKind),
}

/// The request of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedWebhook {
    pub url: String,
    /// Upper case.
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Where the key of the signature is read; the request is not signed without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSource>,
}

impl ActionId {
    /// Separates the run from the number in the text.
    const BETWEEN: char = '-';
    /// Hex digits of the number in the text, so that texts sort like ids.
    const DIGITS: usize = 8;

    pub const fn new(run: RunId, number: u32) -> Self {
        Self { run, number }
    }

    /// Parses the text that `Display` writes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = || TextError::new(0..text.len(), format!("`{}` is not the id of an action", shortened(text)));
        let (run, number) = text.split_once(Self::BETWEEN).ok_or_else(wrong)?;
        let is_digits =
            number.len() == Self::DIGITS && number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u32::from_str_radix(number, 16).ok().filter(|_| is_digits).ok_or_else(wrong)?;
        Ok(Self { run: RunId::parse(run)?, number })
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:0width$x}", self.run, Self::BETWEEN, self.number, width = Self::DIGITS)
    }
}

cronhold_schedule::stored_as_text!(ActionId);

impl ActionRecord {
    /// The longest error that is stored, in bytes.
    pub const ERROR_MAX: usize = 1_000;

    /// When any node may try it; `None` if it is done or given up.
    pub fn due(&self) -> Option<Instant> {
        match self.status {
            ActionStatus::Pending { due, .. } => Some(due),
            ActionStatus::Done { .. } | ActionStatus::Failed { .. } => None,
        }
    }

    /// Whether it is neither done nor given up.
    pub fn is_pending(&self) -> bool {
        self.due().is_some()
    }

    /// The node that tries it now.
    pub fn owner(&self) -> Option<RunOwner> {
        match self.status {
            ActionStatus::Pending { owner, .. } => owner,
            ActionStatus::Done { .. } | ActionStatus::Failed { .. } => None,
        }
    }

    /// The id of the run that an action of kind `run` creates; `None` if it has become a trigger.
    pub fn created_run(&self) -> Option<RunId> {
        let is_run = matches!(self.work, ResolvedAction::Run { trigger: None, .. });
        is_run.then(|| RunId::from_key(self.created, &self.id.to_string()))
    }

    /// The id of the trigger that an action of kind `run` becomes, if the job has a batching policy.
    pub fn trigger_id(&self) -> TriggerId {
        TriggerId::parse(&format!("action {}", self.id)).expect("it is short and printable")
    }

    /// Sets the error of a failed attempt, shortened to what is stored.
    pub fn set_error(&mut self, error: &str) {
        let mut end = error.len().min(Self::ERROR_MAX);
        while !error.is_char_boundary(end) {
            end -= 1;
        }
        self.error = Some(error[..end].to_owned());
    }
}

impl ActionStatus {
    /// The name that users read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
        }
    }
}

impl ResolvedAction {
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Run { .. } => ActionKind::Run,
            Self::Webhook(_) => ActionKind::Webhook,
            Self::Email { .. } => ActionKind::Email,
            Self::Command(_) => ActionKind::Command,
            Self::Publish { .. } => ActionKind::Publish,
            Self::Invalid(kind) => *kind,
        }
    }

    /// What the action goes to, for display: the job, the server of a URL, the receivers, or the channel. Paths of URLs are left out,
    /// because many of them are secrets.
    pub fn target(&self) -> String {
        match self {
            Self::Run { job, .. } => job.to_string(),
            Self::Webhook(webhook) => url_origin(&webhook.url).to_owned(),
            Self::Email { to, .. } => to.join(", "),
            Self::Publish { channel, .. } => channel.to_string(),
            Self::Command(_) | Self::Invalid(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_back_and_sort_like_their_texts() {
        let run = |number: u8| RunId::from_random(Instant::from_secs(1), [number; 10]);
        let ids = [(1, 0), (1, 9), (1, 10), (1, u32::MAX), (2, 0)];
        let ids = ids.map(|(byte, number)| ActionId::new(run(byte), number));
        let texts = ids.map(|id| id.to_string());
        assert!(ids.is_sorted() && texts.is_sorted());
        for (id, text) in ids.iter().zip(&texts) {
            assert_eq!(ActionId::parse(text), Ok(*id));
        }
        for text in ["", "x", &run(1).to_string(), &format!("{}-1", run(1)), &format!("{}-+0000001", run(1))] {
            assert!(ActionId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_target_of_a_webhook_has_no_secrets() {
        for (url, expected) in [
            ("https://hooks.example.org/services/T0/B0/secret", "https://hooks.example.org"),
            ("http://localhost:8080?key=1", "http://localhost:8080"),
            ("https://user:password@example.org/x", "example.org"),
            ("nonsense", ""),
        ] {
            assert_eq!(url_origin(url), expected);
        }
    }
}
