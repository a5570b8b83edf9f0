//! One place in the queue of a job: the run, and the only node that may start it when there is one. Stored as one short
//! text, because a queue can be long; a run that any node may start is stored as its id alone.

use std::fmt;

use cronhold_schedule::TextError;

use crate::ids::{NodeId, RunId};

/// Stands between the run and its node in the stored text.
const ON: char = '@';

/// A run that waits in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    /// The run.
    pub run: RunId,
    /// The only node that may start it, when there is one. Runs of different nodes are not in each other's way.
    pub target: Option<NodeId>,
}

impl QueuedRun {
    /// Reads the stored text.
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

    /// Queues that were stored before runs had nodes are lists of ids.
    #[test]
    fn is_read_back_and_so_is_a_plain_id() {
        let run = RunId::from_key(Instant::EPOCH, "a run");
        for queued in [QueuedRun::from(run), QueuedRun { run, target: Some(NodeId::from_bits(7)) }] {
            let text = serde_json::to_string(&queued).expect("a text");
            assert_eq!(serde_json::from_str::<QueuedRun>(&text).expect("a place"), queued, "{text}");
        }
        let stored = serde_json::to_string(&run).expect("a text");
        assert_eq!(serde_json::from_str::<QueuedRun>(&stored).expect("a place"), QueuedRun::from(run));
        for wrong in ["", "@", "x@y", &format!("{run}@"), &format!("{run}@7")] {
            assert!(QueuedRun::parse(wrong).is_err(), "{wrong}");
        }
    }
}
