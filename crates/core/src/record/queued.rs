//! One entry in the queue of a job: the run, and the only node that may start it, if there is one. It is stored as a
//! short text, because a queue can be long. A run that any node may start is stored as its id alone.

use std::fmt;

use cronhold_schedule::TextError;

use crate::ids::{NodeId, RunId};

/// Separates the run and its node in the stored text.
const ON: char = '@';

/// A run that waits in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    pub run: RunId,
    /// The only node that may start it; `None` if any node may. Runs of different nodes do not block each other.
    pub target: Option<NodeId>,
}

impl QueuedRun {
    /// Parses the stored text.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        match text.split_once(ON) {
            Some((run, node)) => Ok(Self { run: RunId::parse(run)?, target: Some(NodeId::parse(node)?) }),
            None => Ok(Self { run: RunId::parse(text)?, target: None }),
        }
    }
}

/// A run that any node may start.
impl From<RunId> for QueuedRun {
    fn from(run: RunId) -> Self {
        Self { run, target: None }
    }
}

impl fmt::Display for QueuedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.run)?;
        match self.target {
            Some(node) => write!(f, "{ON}{node}"),
            None => Ok(()),
        }
    }
}

cronhold_schedule::stored_as_text!(QueuedRun);

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;

    /// Queues from before runs had targets are stored as lists of ids.
    #[test]
    fn entries_with_and_without_a_target_parse_back() {
        let run = RunId::from_key(Instant::EPOCH, "a run");
        for queued in [QueuedRun::from(run), QueuedRun { run, target: Some(NodeId::from_bits(7)) }] {
            let text = serde_json::to_string(&queued).expect("a text");
            assert_eq!(serde_json::from_str::<QueuedRun>(&text).expect("an entry"), queued, "{text}");
        }
        let stored = serde_json::to_string(&run).expect("a text");
        assert_eq!(serde_json::from_str::<QueuedRun>(&stored).expect("an entry"), QueuedRun::from(run));
        for wrong in ["", "@", "x@y", &format!("{run}@"), &format!("{run}@7")] {
            assert!(QueuedRun::parse(wrong).is_err(), "{wrong}");
        }
    }
}
