//! What happens when a run changes its state. Actions are durable: kept until done.

use std::collections::BTreeMap;

use cronhold_schedule::TextError;
use cronhold_schedule::text::did_you_mean;
use serde::Serialize;

use crate::run::State;
use crate::template::Template;

/// The transition an action waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// Any finished state.
    Finished,
    /// The run entered this state.
    #[serde(untagged)]
    State(State),
}

impl Event {
    /// The word of any finished state.
    const FINISHED: &'static str = "finished";

    /// All words, in the order a run can go through them.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        State::NAMES.into_iter().chain([Self::FINISHED])
    }

    /// The word that users read and write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => Self::FINISHED,
            Self::State(state) => state.name(),
        }
    }

    /// Reads an event.
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

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A run of a job is created; args not named are taken over.
    Run {
        /// Which job; may hold template expressions.
        job: Template,
        /// Its args.
        args: BTreeMap<String, Template>,
    },
    /// A request is sent.
    Webhook(HttpTarget),
    /// A mail is sent.
    Email {
        /// Receivers; at least one.
        to: Vec<String>,
        /// Subject; job, number and state by default.
        subject: Option<Template>,
        /// Text; the run's summary and last lines by default.
        body: Option<Template>,
    },
    /// A shell command runs on the node.
    Command(Template),
    /// A message goes to a channel.
    Publish {
        /// Begins with `/`.
        channel: Template,
        /// The run's summary by default.
        message: Option<Template>,
    },
}

/// Where a webhook goes.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpTarget {
    /// Where to.
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
    fn reads_and_prints_events() {
        for name in Event::names() {
            let event = Event::parse(name).expect(name);
            assert_eq!(event.name(), name);
            assert_eq!(serde_json::to_string(&event).expect("a text"), format!("\"{name}\""));
        }
        let message = |text| Event::parse(text).expect_err(text).to_string();
        assert_eq!(message("finish"), "`finish` is not a state of a run (did you mean `finished`?)");
        assert!(message("zebra").ends_with("stopping, success, failure, error, skipped, finished)"));
    }
}
