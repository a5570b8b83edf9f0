//! A case about concurrent claims: many writers read and move the same cursors, and their replies must be linearizable.

use cronhold_core::record::{RecordKey, RecordVersion};

use super::Subject;
use super::history::{EventLog, EventOrder, assert_linear};
use super::linear::{HistoryEvent, SequentialModel};
use super::samples::{at, cursor};
use super::test_writer::{TestUnit, TestWriter};
use super::writers::at_once;
use crate::seeded_random::SeededRandom;
use crate::{UnitReceipt, UnitRefusal};

/// Number of concurrent writers.
const WRITERS: usize = 6;
/// Rounds of each writer.
const ROUNDS: usize = 80;
/// Number of cursors that they share.
const CURSORS: usize = 4;

/// A request to a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorCall {
    Read,
    /// Moves the cursor from a version to another, or deletes it.
    Write {
        /// The expected version; `None` if the cursor must not exist.
        seen: Option<RecordVersion>,
        /// The new version; `None` to delete the cursor.
        new: Option<RecordVersion>,
    },
}

/// The reply to a [`CursorCall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorReply {
    /// The cursor has this version.
    Found(Option<RecordVersion>),
    /// The cursor was moved.
    Done,
    /// The cursor had another version.
    Late,
}

/// A cursor as its version, which a writer must know to move it.
#[derive(Debug)]
pub(super) struct CursorModel;

impl SequentialModel for CursorModel {
    type Call = CursorCall;
    type Answer = CursorReply;
    type State = Option<RecordVersion>;

    fn start(&self) -> Option<RecordVersion> {
        None
    }

    fn step(
        &self,
        state: &Option<RecordVersion>,
        call: &CursorCall,
        answer: &CursorReply,
    ) -> Option<Option<RecordVersion>> {
        match (call, answer) {
            (CursorCall::Read, CursorReply::Found(version)) if version == state => Some(*state),
            (CursorCall::Write { seen, new }, CursorReply::Done) if seen == state => Some(*new),
            (CursorCall::Write { seen, .. }, CursorReply::Late) if seen != state => Some(*state),
            _ => None,
        }
    }
}

/// Of concurrent claims one wins, and no reader sees a cursor go back.
pub fn claims_are_linearizable(subject: &dyn Subject) {
    let order = EventOrder::default();
    let writers: Vec<TestWriter> = (0..WRITERS).map(|_| TestWriter::of(subject)).collect();
    let notes = at_once(writers, |mut writer| {
        let mut chance = SeededRandom::new(u64::from(writer.writer));
        let mut notes = Vec::new();
        let mut known = [None; CURSORS];
        for _ in 0..ROUNDS {
            let one = chance.below(CURSORS);
            match chance.below(8) {
                0..3 => read(&writer, &order, one, &mut known, &mut notes),
                3..7 => claim(&mut writer, &order, &[one], &mut chance, &mut known, &mut notes),
                _ => {
                    let both = [one, (one + 1) % CURSORS];
                    claim(&mut writer, &order, &both, &mut chance, &mut known, &mut notes);
                }
            }
        }
        notes
    });
    let won = notes.iter().flatten().filter(|(_, event)| event.answer == CursorReply::Done).count();
    assert!(won >= CURSORS, "some claims win: {won}");
    assert_linear(&CursorModel, notes);
}

fn key(one: usize) -> RecordKey {
    cursor(&format!("job {one}"), "s", None).key()
}

fn read(
    writer: &TestWriter,
    order: &EventOrder,
    one: usize,
    known: &mut [Option<RecordVersion>],
    notes: &mut EventLog<CursorCall, CursorReply>,
) {
    let (began, ended, version) = order.time(|| writer.version(&key(one)));
    known[one] = version;
    notes.push((one, HistoryEvent { began, ended, call: CursorCall::Read, answer: CursorReply::Found(version) }));
}

/// Claims each of these cursors in a separate unit of one commit, from its last known version.
fn claim(
    writer: &mut TestWriter,
    order: &EventOrder,
    cursors: &[usize],
    chance: &mut SeededRandom,
    known: &mut [Option<RecordVersion>],
    notes: &mut EventLog<CursorCall, CursorReply>,
) {
    let mut drafts: Vec<TestUnit> = Vec::new();
    let mut calls = Vec::new();
    for one in cursors {
        let seen = known[*one];
        let draft = writer.unit();
        let is_deleted = seen.is_some() && chance.below(6) == 0;
        let new = (!is_deleted).then_some(draft.version());
        calls.push((*one, CursorCall::Write { seen, new }));
        drafts.push(match new {
            Some(_) => draft.put(cursor(&format!("job {one}"), "s", Some(at(1))), seen),
            None => draft.delete(key(*one), seen),
        });
    }
    let (began, ended, results) = order.time(|| writer.commit_all(drafts));
    for ((one, call), result) in calls.into_iter().zip(results) {
        let answer = match result {
            Ok(UnitReceipt { .. }) => CursorReply::Done,
            Err(UnitRefusal::Conflict(_)) => CursorReply::Late,
            Err(other) => panic!("nothing else is in the way: {other}"),
        };
        if let (CursorCall::Write { new, .. }, CursorReply::Done) = (call, answer) {
            known[one] = new;
        }
        notes.push((one, HistoryEvent { began, ended, call, answer }));
    }
}
