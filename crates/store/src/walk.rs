//! Walks through all records of a kind, in whatever order the store has them. Copies and checks of a store use them; nodes
//! use lists.

use cronhold_core::record::StoredRecord;

use crate::UnreadableRecord;

/// Where a walk continues. Only the store that returned it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkPlace(pub Vec<u8>);

/// A part of a walk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkPage {
    /// Records of the kind.
    pub records: Vec<StoredRecord>,
    /// Records of the kind that cannot be read.
    pub unreadable: Vec<UnreadableRecord>,
    /// Where the walk continues; `None` at its end.
    pub next: Option<WalkPlace>,
}
