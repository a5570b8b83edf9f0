//! How far the store had come when this process last heard of it. Scripts compare it with what is stored, so that a store
//! that has gone back is noticed before anything is written.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What this process knows of the store: which one it is, and how far it had come.
#[derive(Debug)]
pub(crate) struct Known {
    /// The field in which the store keeps the last commit of this process.
    by: String,
    reached: Mutex<Reached>,
}

#[derive(Debug, Default)]
struct Reached {
    epoch: String,
    seq: u64,
    /// The last commit of this process.
    own: u64,
    /// The highest number of a writer that this process was given.
    writer: u32,
}

impl Known {
    /// What was noted by a process before this one, if anything was.
    pub(crate) fn new(process: &str, noted: Option<(String, u64)>) -> Self {
        let (epoch, seq) = noted.unwrap_or_default();
        Self { by: format!("by:{process}"), reached: Mutex::new(Reached { epoch, seq, own: 0, writer: 0 }) }
    }

    /// What scripts are told: nothing, or epoch, field and own last commit; and the seq.
    pub(crate) fn get(&self) -> (String, u64) {
        let reached = self.lock();
        let Reached { epoch, seq, own, .. } = &*reached;
        let text = if epoch.is_empty() { String::new() } else { format!("{epoch} {} {own}", self.by) };
        (text, *seq)
    }

    /// The epoch and the seq.
    pub(crate) fn epoch(&self) -> (String, u64) {
        let reached = self.lock();
        (reached.epoch.clone(), reached.seq)
    }

    /// The field and the last commit of this process.
    pub(crate) fn own(&self) -> String {
        format!("{} {}", self.by, self.lock().own)
    }

    /// The store is another one, or stands elsewhere.
    pub(crate) fn set(&self, epoch: String, seq: u64) {
        let mut reached = self.lock();
        (reached.epoch, reached.seq) = (epoch, seq);
    }

    /// The store has come so far at least.
    pub(crate) fn advance(&self, seq: u64) {
        let mut reached = self.lock();
        reached.seq = reached.seq.max(seq);
    }

    /// This process has written the commit of this number.
    pub(crate) fn wrote(&self, seq: u64) {
        let mut reached = self.lock();
        reached.own = reached.own.max(seq);
    }

    /// This process was given a writer's number.
    pub(crate) fn enrolled(&self, writer: u32) {
        let mut reached = self.lock();
        reached.writer = reached.writer.max(writer);
    }

    /// The highest number of a writer that this process was given; 0 before it was given any.
    pub(crate) fn writer(&self) -> u32 {
        self.lock().writer
    }

    fn lock(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
