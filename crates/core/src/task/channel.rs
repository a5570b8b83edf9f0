//! Channels: names whose slashes make a hierarchy. A message on a channel also reaches the channels above it.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use super::TaskId;
use super::limits::CHANNEL_BYTES_MAX;
use super::name::QueueName;
use crate::ids::JobId;
use crate::run::State;

/// The name of a channel. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(Arc<str>);

impl Channel {
    /// Parses a channel. Any text is one that is not empty and has no control characters.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let whole = 0..text.len();
        if text.is_empty() {
            return Err(TextError::new(whole, "a channel cannot be empty").hint("write a path such as /shop/orders"));
        }
        if text.len() > CHANNEL_BYTES_MAX {
            let message = format!(
                "a channel can have at most {CHANNEL_BYTES_MAX} bytes, `{}` has {}",
                shortened(text),
                text.len()
            );
            return Err(TextError::new(whole, message));
        }
        match text.char_indices().find(|(_, sign)| sign.is_control()) {
            Some((at, sign)) => {
                Err(TextError::new(at..at + sign.len_utf8(), "control characters cannot be in a channel"))
            }
            None => Ok(Self(text.into())),
        }
    }

    /// Where the reads, writes and errors of tasks are logged.
    pub fn log() -> Self {
        Self("/sidejob/log".into())
    }

    /// Where the status changes of a task and its deletion are published.
    pub fn of_task(task: TaskId) -> Self {
        Self(format!("/sidejob/job/{task}").into())
    }

    /// Where the registered classes of a queue are published when they change.
    pub fn of_workers(queue: &QueueName) -> Self {
        Self(format!("/sidejob/workers/{queue}").into())
    }

    /// Where a run of a job that enters a state is published.
    pub fn of_run(job: &JobId, state: State) -> Self {
        Self(format!("/cronhold/run/{job}/{state}").into())
    }

    /// The channel and all channels above it, the nearest first: `/a/b`, `/a`, `/`. A channel that does not begin with a
    /// slash ends at its first part. Slashes at the end belong to the first name only.
    pub fn levels(&self) -> Vec<Self> {
        let mut levels = vec![self.clone()];
        let mut rest = self.0.trim_end_matches('/');
        while let Some(slash) = rest.rfind('/') {
            let above = rest[..slash].trim_end_matches('/');
            if above.is_empty() {
                levels.push(Self("/".into()));
                break;
            }
            levels.push(Self(above.into()));
            rest = above;
        }
        levels
    }

    /// The channel as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

cronhold_schedule::stored_as_text!(Channel);
