//! Actions: what happens when a run enters a state. This version does not carry out actions (see `support`).

use std::collections::BTreeMap;

use cronhold_schedule::TextError;
use cronhold_schedule::text::did_you_mean;
use serde::Serialize;

use crate::run::State;
use crate::template::Template;

/// The transition that an action belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunEvent {
    /// The run entered any final state.
    Finished,
    /// The run entered this state.
    #[serde(untagged)]
    State(State),
}

impl RunEvent {
    /// The name of the event that covers all finished states.
    const FINISHED: &'static str = "finished";

    /// Names of all events, in the order in which they can happen to a run.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        State::NAMES.into_iter().chain([Self::FINISHED])
    }

    /// The name that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => Self::FINISHED,
            Self::State(state) => state.name(),
        }
    }

    /// Parses the name of an event.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text == Self::FINISHED {
            return Ok(Self::Finished);
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
}

impl HttpTarget {
    /// A `POST` of the run's summary.
    pub fn new(url: Template) -> Self {
        Self { url, method: "POST".to_owned(), headers: BTreeMap::new(), body: None }
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
        assert!(message("zebra").ends_with("stopping, success, failure, error, skipped, finished)"));
    }
}
