//! What happens when a run changes its state. Actions are durable: kept until done.

use std::collections::BTreeMap;

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
