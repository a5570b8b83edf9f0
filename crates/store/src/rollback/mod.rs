//! What a process remembers of a store that can be rolled back: how far the store was, and what the process has written
//! itself, so that it detects a rollback and restores its own writes. Nothing here depends on how the store keeps its
//! records; the store compares positions and merges restored records atomically.
//!
//! Every commit raises the `seq` of the store under an `epoch`. A store whose seq is lower than what a process has seen,
//! which has another epoch, or which misses the last commit of the process was rolled back.

mod commit_hold;
mod journal;
mod merge;
#[cfg(test)]
mod tests;
mod tracker;
mod unconfirmed;

pub use commit_hold::CommitHold;
pub use journal::{JournaledLock, JournaledRecord, LostWrites, UnitWrites, WriteJournal};
pub use merge::wins_merge;
pub use tracker::{RollbackTracker, StorePosition};
