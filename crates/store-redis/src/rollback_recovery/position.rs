//! The position of the store as this process last saw it. Scripts compare it with what is stored, so that a rollback is
//! detected before anything is written.

use std::sync::{Mutex, MutexGuard};

use cronhold_store::lock_mutex;

/// The epoch and the seq of the store, and the last commit of this process.
#[derive(Debug)]
pub(super) struct StorePosition {
    /// The field of `meta` in which the store keeps the last commit of this process.
    own_field: String,
    state: Mutex<PositionState>,
}

#[derive(Debug, Default)]
struct PositionState {
    epoch: String,
    seq: u64,
    /// The last commit of this process.
    own_seq: u64,
    /// The highest writer number of this process.
    writer: u32,
}

impl StorePosition {
    /// `saved` is the epoch and the seq that an earlier process saw.
    pub(super) fn new(process: &str, saved: Option<(String, u64)>) -> Self {
        let (epoch, seq) = saved.unwrap_or_default();
        let state = PositionState { epoch, seq, ..PositionState::default() };
        Self { own_field: format!("by:{process}"), state: Mutex::new(state) }
    }

    /// The arguments of scripts: epoch, field and last commit of this process as one text, which is empty before the
    /// first contact; and the seq.
    pub(super) fn script_args(&self) -> (String, u64) {
        let state = self.lock();
        let PositionState { epoch, seq, own_seq, .. } = &*state;
        let text = if epoch.is_empty() { String::new() } else { format!("{epoch} {} {own_seq}", self.own_field) };
        (text, *seq)
    }

    pub(super) fn epoch_and_seq(&self) -> (String, u64) {
        let state = self.lock();
        (state.epoch.clone(), state.seq)
    }

    /// The field and the last commit of this process, as one text.
    pub(super) fn own_commit(&self) -> String {
        format!("{} {}", self.own_field, self.lock().own_seq)
    }

    /// Moves to another epoch.
    pub(super) fn set(&self, epoch: String, seq: u64) {
        let mut state = self.lock();
        (state.epoch, state.seq) = (epoch, seq);
    }

    /// The store has reached this seq.
    pub(super) fn advance(&self, seq: u64) {
        let mut state = self.lock();
        state.seq = state.seq.max(seq);
    }

    /// This process has committed with this seq.
    pub(super) fn record_own(&self, seq: u64) {
        let mut state = self.lock();
        state.own_seq = state.own_seq.max(seq);
    }

    /// This process was assigned a writer number.
    pub(super) fn record_writer(&self, writer: u32) {
        let mut state = self.lock();
        state.writer = state.writer.max(writer);
    }

    /// The highest writer number of this process; 0 before it has enrolled.
    pub(super) fn writer(&self) -> u32 {
        self.lock().writer
    }

    fn lock(&self) -> MutexGuard<'_, PositionState> {
        lock_mutex(&self.state)
    }
}
