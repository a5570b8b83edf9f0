//! Which of two versions of a record stays when a process restores its writes. Records written since the loss must not be
//! overwritten, and nothing that was done may be done again.

use cronhold_core::State;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, Run};

/// Whether a restored change replaces what is stored: of two cursors, runs or actions the one that has progressed further
/// wins, of other records the later one. `stored` has the seq of its commit. `deleted` is the seq of the latest deletion
/// of the record that was restored before; 0 if there is none. Seqs are comparable across rollbacks.
pub fn wins_merge(seq: u64, change: &RecordChange, stored: Option<(u64, &Record)>, deleted: u64) -> bool {
    match (change, stored) {
        (RecordChange::Delete(_), None) => false,
        (RecordChange::Put(_), None) => seq > deleted,
        (RecordChange::Delete(_), Some((stored_seq, _))) => seq > stored_seq,
        (RecordChange::Put(record), Some((stored_seq, stored))) => match (record, stored) {
            (Record::Cursor(new), Record::Cursor(old)) if new.last != old.last => new.last > old.last,
            (Record::Run(new), Record::Run(old)) if progress(new) != progress(old) => progress(new) > progress(old),
            // What was delivered must not be delivered again.
            (Record::Action(new), Record::Action(old)) if new.is_pending() != old.is_pending() => old.is_pending(),
            _ => seq > stored_seq,
        },
    }
}

/// The progress of a run: waiting, starting, running, stopping, finished.
fn progress(run: &Run) -> u8 {
    match run.state {
        State::Scheduled | State::Waiting => 0,
        State::Starting => 1,
        State::Running => 2,
        State::Stopping => 3,
        State::Success | State::Failure | State::Error | State::Skipped => 4,
    }
}
