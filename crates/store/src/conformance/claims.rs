//! A case about claims that run into each other: many writers read and move the same cursors, and what each of them
//! was told must fit into one order.

use cronhold_core::record::{Key, Version};

use super::Subject;
use super::chance::Chance;
use super::history::{Notes, Order, assert_linear};
use super::linear::{Event, Model};
use super::samples::{at, cursor};
use super::scribe::{Draft, Scribe};
use super::writers::at_once;
use crate::{Committed, Refusal};

/// Writers at the same time.
const WRITERS: usize = 6;
/// Rounds of each.
const ROUNDS: usize = 80;
/// Cursors that they share.
const CURSORS: usize = 4;

/// What a writer does to a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// Looks at it.
    Read,
    /// Moves it on from what was seen; deletes it, when there is nothing new.
    Write {
        /// The version that was seen; none, when it was not there.
        seen: Option<Version>,
        /// The version after that.
        new: Option<Version>,
    },
}

/// What it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// It has this version.
    Found(Option<Version>),
    /// It was moved.
    Done,
    /// It had another version.
    Late,
}

/// A cursor is its version: only who knows it moves it.
#[derive(Debug)]
pub(super) struct Claims;

impl Model for Claims {
    type Call = Claim;
    type Answer = Claimed;
    type State = Option<Version>;

    fn start(&self) -> Option<Version> {
        None
    }

    fn step(&self, state: &Option<Version>, call: &Claim, answer: &Claimed) -> Option<Option<Version>> {
        match (call, answer) {
            (Claim::Read, Claimed::Found(version)) if version == state => Some(*state),
            (Claim::Write { seen, new }, Claimed::Done) if seen == state => Some(*new),
            (Claim::Write { seen, .. }, Claimed::Late) if seen != state => Some(*state),
            _ => None,
        }
    }
}

/// Claims that run into each other have one winner each, and nobody sees a cursor go back.
pub fn claims_are_linearizable(subject: &dyn Subject) {
    let order = Order::default();
    let scribes: Vec<Scribe> = (0..WRITERS).map(|_| Scribe::of(subject)).collect();
    let notes = at_once(scribes, |mut scribe| {
        let mut chance = Chance::new(u64::from(scribe.writer));
        let mut notes = Vec::new();
        let mut known = [None; CURSORS];
        for _ in 0..ROUNDS {
            let one = chance.below(CURSORS);
            match chance.below(8) {
                0..3 => read(&scribe, &order, one, &mut known, &mut notes),
                3..7 => claim(&mut scribe, &order, &[one], &mut chance, &mut known, &mut notes),
                _ => {
                    let both = [one, (one + 1) % CURSORS];
                    claim(&mut scribe, &order, &both, &mut chance, &mut known, &mut notes);
                }
            }
        }
        notes
    });
    let won = notes.iter().flatten().filter(|(_, event)| event.answer == Claimed::Done).count();
    assert!(won >= CURSORS, "some claims win: {won}");
    assert_linear(&Claims, notes);
}

fn key(one: usize) -> Key {
    cursor(&format!("job {one}"), "s", None).key()
}

fn read(scribe: &Scribe, order: &Order, one: usize, known: &mut [Option<Version>], notes: &mut Notes<Claim, Claimed>) {
    let (began, ended, version) = order.time(|| scribe.version(&key(one)));
    known[one] = version;
    notes.push((one, Event { began, ended, call: Claim::Read, answer: Claimed::Found(version) }));
}

/// Claims each of these cursors in a unit of its own, all in one commit, from what is known of them.
fn claim(
    scribe: &mut Scribe,
    order: &Order,
    cursors: &[usize],
    chance: &mut Chance,
    known: &mut [Option<Version>],
    notes: &mut Notes<Claim, Claimed>,
) {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut calls = Vec::new();
    for one in cursors {
        let seen = known[*one];
        let draft = scribe.unit();
        let is_deleted = seen.is_some() && chance.below(6) == 0;
        let new = (!is_deleted).then_some(draft.version());
        calls.push((*one, Claim::Write { seen, new }));
        drafts.push(match new {
            Some(_) => draft.put(cursor(&format!("job {one}"), "s", Some(at(1))), seen),
            None => draft.delete(key(*one), seen),
        });
    }
    let (began, ended, results) = order.time(|| scribe.commit_all(drafts));
    for ((one, call), result) in calls.into_iter().zip(results) {
        let answer = match result {
            Ok(Committed { .. }) => Claimed::Done,
            Err(Refusal::Conflict(_)) => Claimed::Late,
            Err(other) => panic!("nothing else is in the way: {other}"),
        };
        if let (Claim::Write { new, .. }, Claimed::Done) = (call, answer) {
            known[one] = new;
        }
        notes.push((one, Event { began, ended, call, answer }));
    }
}
