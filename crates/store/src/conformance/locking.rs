//! A case about contended locks: the replies to many runs must be linearizable, with one holder at a time and growing
//! fences.

use cronhold_core::RunId;

use super::Subject;
use super::history::{EventOrder, assert_linear};
use super::linear::{HistoryEvent, SequentialModel};
use super::samples::{lock_name, run_id};
use super::test_writer::TestWriter;
use super::writers::at_once;
use crate::UnitRefusal;
use crate::seeded_random::SeededRandom;

/// Number of concurrent writers.
const WRITERS: u16 = 6;
/// Rounds of each writer.
const ROUNDS: usize = 120;
/// Number of locks that they share.
const LOCKS: usize = 3;

/// A request to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockCall {
    Take(RunId),
    Free(RunId),
    Read,
}

/// The reply to a [`LockCall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockCallReply {
    /// The run holds the lock with this fence.
    Taken(u64),
    /// Another run holds the lock.
    Held(RunId),
    /// The run does not hold the lock any more.
    Freed,
    /// The holder and its fence; `None` if the lock is free.
    Seen(Option<(RunId, u64)>),
}

/// A lock as its holder and its last fence.
#[derive(Debug)]
pub(super) struct Locking;

impl SequentialModel for Locking {
    type Call = LockCall;
    type Answer = LockCallReply;
    type State = (Option<RunId>, u64);

    fn start(&self) -> (Option<RunId>, u64) {
        (None, 0)
    }

    fn step(
        &self,
        state: &(Option<RunId>, u64),
        call: &LockCall,
        answer: &LockCallReply,
    ) -> Option<(Option<RunId>, u64)> {
        let (holder, last) = *state;
        match (*call, *answer) {
            (LockCall::Take(run), LockCallReply::Taken(fence)) if holder.is_none() && last < fence => {
                Some((Some(run), fence))
            }
            (LockCall::Take(run), LockCallReply::Taken(fence)) if holder == Some(run) && last <= fence => {
                Some((holder, fence))
            }
            (LockCall::Take(run), LockCallReply::Held(by)) if holder == Some(by) && by != run => Some(*state),
            (LockCall::Free(run), LockCallReply::Freed) if holder == Some(run) => Some((None, last)),
            (LockCall::Free(_), LockCallReply::Freed) => Some(*state),
            (LockCall::Read, LockCallReply::Seen(seen)) if seen == holder.map(|run| (run, last)) => Some(*state),
            _ => None,
        }
    }
}

/// A contended lock has one holder at a time.
pub fn locks_are_linearizable(subject: &dyn Subject) {
    let order = EventOrder::default();
    let names = ["a", "b", "c"].map(lock_name);
    let writers: Vec<(u16, TestWriter)> = (0..WRITERS).map(|number| (number, TestWriter::of(subject))).collect();
    let notes = at_once(writers, |(number, mut writer)| {
        let run = run_id(0, number);
        let mut chance = SeededRandom::new(u64::from(number));
        let mut notes = Vec::new();
        for _ in 0..ROUNDS {
            let one = chance.below(LOCKS);
            let name = &names[one];
            let call =
                [LockCall::Take(run), LockCall::Take(run), LockCall::Free(run), LockCall::Free(run), LockCall::Read]
                    [chance.below(5)];
            let (began, ended, answer) = order.time(|| match call {
                LockCall::Take(run) => match writer.take(name, run, None) {
                    Ok(fence) => LockCallReply::Taken(fence),
                    Err(UnitRefusal::Held { holder, .. }) => LockCallReply::Held(holder),
                    Err(other) => panic!("nothing else is in the way: {other}"),
                },
                LockCall::Free(run) => {
                    writer.free(name, run);
                    LockCallReply::Freed
                }
                LockCall::Read => LockCallReply::Seen(writer.lock(name).map(|lock| (lock.holder, lock.fence))),
            });
            notes.push((one, HistoryEvent { began, ended, call, answer }));
        }
        notes
    });
    assert_linear(&Locking, notes);
}
