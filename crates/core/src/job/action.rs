//! Actions: what happens when a run enters a state. `support` lists the kinds that this version carries out.

use std::collections::BTreeMap;
use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
use serde::{Deserialize, Serialize};

use crate::run::State;
use crate::template::Template;

/// What happens to a run or to an occurrence, and may have actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunEvent {
    /// The run entered any final state.
    Finished,
    /// The run entered this state.
    State(State),
    /// The run had not finished when the time `late` of its job had passed.
    Late,
    /// An occurrence, or several in a row, did not run although nothing in the job and no person wanted that.
    Missed,
}

impl RunEvent {
    /// The events that are not the entry into one state.
    const OTHERS: [Self; 3] = [Self::Finished, Self::Late, Self::Missed];

    /// Names of all events: the states in the order in which a run enters them, then the others.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        State::NAMES.into_iter().chain(Self::OTHERS.map(Self::name))
    }

    /// The name that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::State(state) => state.name(),
            Self::Late => "late",
            Self::Missed => "missed",
        }
    }

    /// Parses the name of an event.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if let Some(event) = Self::OTHERS.into_iter().find(|event| event.name() == text) {
            return Ok(event);
        }
        State::parse(text).map(Self::State).map_err(|error| {
            let hint = match did_you_mean(text, Self::names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("it can be {}", Self::names().collect::<Vec<_>>().join(", ")),
            };
            error.hint(hint)
        })
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

cronhold_schedule::stored_as_text!(RunEvent);

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    Run,
    Webhook,
    Email,
    Command,
    Publish,
}

impl ActionKind {
    pub const ALL: [Self; 5] = [Self::Run, Self::Webhook, Self::Email, Self::Command, Self::Publish];

    /// The name that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Webhook => "webhook",
            Self::Email => "email",
            Self::Command => "command",
            Self::Publish => "publish",
        }
    }

    /// Parses the name of a kind.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| TextError::new(0..text.len(), format!("`{}` is not a kind of action", shortened(text))))
    }
}

/// Where a secret is read when it is needed. The secret itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// The content of a file on the node.
    File(String),
    /// The value of a variable of the daemon's environment.
    Env(String),
}

/// What happens on a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create a run of a job; args that are not named are copied from this run.
    Run {
        /// Id of the job; may hold template expressions.
        job: Template,
        /// Args of the new run.
        args: BTreeMap<String, Template>,
    },
    /// Send an HTTP request.
    Webhook(HttpTarget),
    /// Send a mail.
    Email {
        /// Recipients; at least one.
        to: Vec<String>,
        /// Subject; job, number and state by default.
        subject: Option<Template>,
        /// Text; the run's summary and last lines by default.
        body: Option<Template>,
    },
    /// Run a shell command on the node.
    Command(Template),
    /// Publish a message to a channel.
    Publish {
        /// The channel, which begins with `/`.
        channel: Template,
        /// The message; the run's summary by default.
        message: Option<Template>,
    },
}

impl Action {
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Run { .. } => ActionKind::Run,
            Self::Webhook(_) => ActionKind::Webhook,
            Self::Email { .. } => ActionKind::Email,
            Self::Command(_) => ActionKind::Command,
            Self::Publish { .. } => ActionKind::Publish,
        }
    }
}

/// An action, and the runs that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRule {
    pub action: Action,
    /// Which runs have the action; all if absent. Boxed, because few actions have one.
    pub when: Option<Box<ActionFilter>>,
}

impl ActionRule {
    /// An action of all runs.
    pub const fn always(action: Action) -> Self {
        Self { action, when: None }
    }
}

/// Which runs have an action: those that fit everything that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionFilter {
    /// How the outcome of the run follows the one before it.
    pub outcome: Option<OutcomeChange>,
    /// How many outcomes of this kind there are in a row. With [`OutcomeChange::Recovered`], how many failures and errors
    /// there were at least.
    pub in_a_row: Option<u32>,
    /// Args and the values that each may have.
    pub args: BTreeMap<String, Vec<String>>,
    /// Labels that the job must have, all of them.
    pub labels: Vec<String>,
}

/// How an outcome follows the one before it. Runs that were skipped are not outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeChange {
    /// It differs from the one before. The first outcome of all counts as changed unless it is a success.
    Changed,
    /// It is a success, and the one before was not.
    Recovered,
}

impl OutcomeChange {
    pub const ALL: [Self; 2] = [Self::Changed, Self::Recovered];
    pub const NAMES: [&'static str; 2] = [Self::Changed.name(), Self::Recovered.name()];

    /// The name that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Recovered => "recovered",
        }
    }
}

/// The request of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpTarget {
    /// URL of the request.
    pub url: Template,
    /// Upper case; `POST` by default.
    pub method: String,
    /// Headers to send.
    pub headers: BTreeMap<String, Template>,
    /// Body; the run's summary as JSON by default.
    pub body: Option<Template>,
    /// Where the key of the signature is read; the request is not signed without one.
    pub secret: Option<SecretSource>,
}

impl HttpTarget {
    /// A `POST` of the run's summary.
    pub fn new(url: Template) -> Self {
        Self { url, method: "POST".to_owned(), headers: BTreeMap::new(), body: None, secret: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_parse_back() {
        for name in RunEvent::names() {
            let event = RunEvent::parse(name).expect(name);
            assert_eq!(event.name(), name);
            assert_eq!(serde_json::to_string(&event).expect("a text"), format!("\"{name}\""));
        }
        let message = |text| RunEvent::parse(text).expect_err(text).to_string();
        assert_eq!(message("finish"), "`finish` is not a state of a run (did you mean `finished`?)");
        assert!(message("zebra").ends_with("stopping, success, failure, error, skipped, finished, late, missed)"));
    }
}
