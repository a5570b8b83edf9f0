//! Failures of a store. A fault states whether a retry can help, and whether the request may have taken effect.

use cronhold_core::record::RecordKey;

use crate::UnreadableRecord;

/// A request to the store failed. The text of each variant names the place (a server or a file) and the cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The store is unreachable or overloaded. Nothing was changed; a retry can succeed.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store was rolled back to an earlier state, and its nodes are restoring the records that it lost. It rejects
    /// commits until that is done, and can be read meanwhile. Nothing was changed; a retry can succeed.
    #[error("the store is recovering from a rollback: {0}")]
    Recovering(String),
    /// The store has restarted, or another server has taken over. It rejects commits for some seconds, so that each node
    /// can report which of its commits are lost, and can be read meanwhile. Nothing was changed; a retry can succeed.
    #[error("the store has restarted: {0}")]
    Restarted(String),
    /// The store rejects writes, for example because its disk is full. Nothing was changed; a retry can succeed once
    /// the cause is removed.
    #[error("the store rejects writes: {0}")]
    ReadOnly(String),
    /// The request was sent and no reply arrived, so it may have taken effect or not. Only reading shows which.
    #[error("the store did not confirm the request: {0}")]
    OutcomeUnknown(String),
    /// The store rejects the request for good, or a part of it is damaged. A retry does not help.
    #[error("the store failed permanently: {0}")]
    Permanent(String),
    /// One of the requested records exists and cannot be read. The store works otherwise. A retry does not help until the
    /// record is replaced or deleted.
    #[error("{0}")]
    Unreadable(Box<UnreadableRecord>),
}

impl Fault {
    /// The fault of a change that a sealed store refuses.
    pub fn sealed(reason: &str) -> Self {
        Self::ReadOnly(format!("it is sealed ({reason})"))
    }

    /// Whether a retry can succeed without anything else being changed.
    pub const fn is_transient(&self) -> bool {
        !matches!(self, Self::Permanent(_) | Self::Unreadable(_))
    }

    /// The record that a failed request for this key could not read. A transient fault is returned.
    pub fn into_unreadable(self, key: &RecordKey) -> Result<UnreadableRecord, Self> {
        match self {
            Self::Unreadable(record) => Ok(UnreadableRecord { key: Some(key.clone()), ..*record }),
            Self::Permanent(reason) => Ok(UnreadableRecord { key: Some(key.clone()), version: None, reason }),
            transient => Err(transient),
        }
    }
}
