//! A case about locks that many want at once: what each of them was told must fit into one order, with one holder at a
//! time and fences that grow.

use cronhold_core::RunId;

use super::Subject;
use super::chance::Chance;
use super::history::{Order, assert_linear};
use super::linear::{Event, Model};
use super::samples::{lock_name, run_id};
use super::scribe::Scribe;
use super::writers::at_once;
use crate::Refusal;

/// Writers at the same time.
const WRITERS: u16 = 6;
/// Rounds of each.
const ROUNDS: usize = 120;
/// Locks that they share.
const LOCKS: usize = 3;

/// What a run does with a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Takes it.
    Take(RunId),
    /// Frees it.
    Free(RunId),
    /// Looks who holds it.
    Look,
}

/// What it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    /// It has it, with this fence.
    Taken(u64),
    /// This run has it.
    Held(RunId),
    /// It does not have it any more.
    Freed,
    /// This run has it, with this fence.
    Seen(Option<(RunId, u64)>),
}

/// A lock is its holder and the last fence.
#[derive(Debug)]
pub(super) struct Locking;

impl Model for Locking {
    type Call = Turn;
    type Answer = Locked;
    type State = (Option<RunId>, u64);

    fn start(&self) -> (Option<RunId>, u64) {
        (None, 0)
    }

    fn step(&self, state: &(Option<RunId>, u64), call: &Turn, answer: &Locked) -> Option<(Option<RunId>, u64)> {
        let (holder, last) = *state;
        match (*call, *answer) {
            (Turn::Take(run), Locked::Taken(fence)) if holder.is_none() && last < fence => Some((Some(run), fence)),
            (Turn::Take(run), Locked::Taken(fence)) if holder == Some(run) && last <= fence => Some((holder, fence)),
            (Turn::Take(run), Locked::Held(by)) if holder == Some(by) && by != run => Some(*state),
            (Turn::Free(run), Locked::Freed) if holder == Some(run) => Some((None, last)),
            (Turn::Free(_), Locked::Freed) => Some(*state),
            (Turn::Look, Locked::Seen(seen)) if seen == holder.map(|run| (run, last)) => Some(*state),
            _ => None,
        }
    }
}

/// Locks that many want at once have one holder at a time.
pub fn locks_are_linearizable(subject: &dyn Subject) {
    let order = Order::default();
    let names = ["a", "b", "c"].map(lock_name);
    let scribes: Vec<(u16, Scribe)> = (0..WRITERS).map(|number| (number, Scribe::of(subject))).collect();
    let notes = at_once(scribes, |(number, mut scribe)| {
        let run = run_id(0, number);
        let mut chance = Chance::new(u64::from(number));
        let mut notes = Vec::new();
        for _ in 0..ROUNDS {
            let one = chance.below(LOCKS);
            let name = &names[one];
            let call =
                [Turn::Take(run), Turn::Take(run), Turn::Free(run), Turn::Free(run), Turn::Look][chance.below(5)];
            let (began, ended, answer) = order.time(|| match call {
                Turn::Take(run) => match scribe.take(name, run, None) {
                    Ok(fence) => Locked::Taken(fence),
                    Err(Refusal::Held { holder, .. }) => Locked::Held(holder),
                    Err(other) => panic!("nothing else is in the way: {other}"),
                },
                Turn::Free(run) => {
                    scribe.free(name, run);
                    Locked::Freed
                }
                Turn::Look => Locked::Seen(scribe.lock(name).map(|lock| (lock.holder, lock.fence))),
            });
            notes.push((one, Event { began, ended, call, answer }));
        }
        notes
    });
    assert_linear(&Locking, notes);
}
