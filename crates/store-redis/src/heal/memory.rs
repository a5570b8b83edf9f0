//! What this process has written itself, as it was written: for ever where it still matters, for a while otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use cronhold_core::record::LockName;
use tokio::time::Instant;

/// How long runs that have ended, and what was deleted, are remembered. A failover loses less than that.
const PASSING: Duration = Duration::from_secs(60);

/// So many of them are remembered at most.
const PASSING_MAX: usize = 20_000;

/// Locks are looked through when there are more than this, and more than runs that could hold them.
const LOCKS_LOOK: usize = 1_000;

/// A lock of ours that lives for longer than this many milliseconds is a mark that nobody renews: it says something for as
/// long as it is there. The others are too short to be worth anything later.
const MARK_MILLIS: u64 = 3_600_000;

/// Runs by their digit among kinds.
const RUN: u8 = 6;

/// A record that was written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// The digit of its kind.
    pub(crate) kind: u8,
    pub(crate) field: String,
    /// Its text but for version and seq; nothing when it was deleted.
    pub(crate) body: Vec<u8>,
    /// What Cronken's clients are shown of it.
    pub(crate) shown: Vec<u8>,
    /// Whether it matters for as long as nobody has written it again.
    pub(crate) lasts: bool,
}

/// A lock that was taken or freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) lock: String,
    pub(crate) holder: String,
    /// Nothing for one that was freed.
    pub(crate) fence: u64,
    /// Its time to live in milliseconds; 0 when it has no end.
    pub(crate) life: u64,
    /// Whether it was taken.
    pub(crate) is_taken: bool,
}

/// What the store may have lost, with the commit and the version that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost<T> {
    /// How many times this process had healed the store before.
    round: u64,
    pub(super) seq: u64,
    pub(super) version: String,
    pub(super) what: T,
}

/// Everything that the store has lost.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AllLost {
    pub(super) records: Vec<Lost<Written>>,
    pub(super) locks: Vec<Lost<Took>>,
}

/// A record's place: its kind and its field.
pub(super) type Place = (u8, String);

/// What wrote a record last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastWord {
    version: String,
    is_deleted: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Memory {
    records: BTreeMap<Place, Lost<Written>>,
    /// By name.
    locks: BTreeMap<String, Lost<Took>>,
    /// Marks, the oldest first. They are forgotten in time: what a failover loses is younger.
    marks: VecDeque<(Instant, Lost<Took>)>,
    /// What is forgotten in time, the oldest first, with the commit that wrote it.
    passing: VecDeque<(Instant, Place, u64)>,
    /// How many times this process has healed the store.
    round: u64,
}

impl LastWord {
    /// The version that is stored when nobody has written it since; nothing for a record that is not there.
    pub(super) fn stored(&self) -> &str {
        if self.is_deleted { "" } else { &self.version }
    }
}

impl Written {
    /// The text as it is stored; nothing when it was deleted.
    pub(super) fn stored(&self, version: &str, seq: u64) -> Vec<u8> {
        if self.body.is_empty() {
            return Vec::new();
        }
        let mut text = format!("{version} {seq:016x} ").into_bytes();
        text.extend_from_slice(&self.body);
        text
    }
}

impl Took {
    /// Whether it is one of Cronhold's own, which no run holds.
    pub(super) fn is_own(&self) -> bool {
        self.lock.starts_with(LockName::RESERVED)
    }

    fn is_mark(&self) -> bool {
        self.is_own() && self.life > MARK_MILLIS
    }

    /// The token of a lock that is brought back. It says so where others have a random text.
    pub(super) fn token(&self, version: &str) -> String {
        format!("{}:{}:{version}:{}:brought-back", self.holder, self.fence, self.life)
    }
}

impl Memory {
    pub(super) fn remember(&mut self, seq: u64, version: &str, written: Vec<Written>, took: Vec<Took>, now: Instant) {
        for what in written {
            let place = (what.kind, what.field.clone());
            // Answers of commits that were on their way together may be heard in any order. Numbers from before the
            // store was healed say nothing about those from after it.
            if self.records.get(&place).is_some_and(|known| known.round == self.round && known.seq > seq) {
                continue;
            }
            if !what.lasts {
                self.passing.push_back((now, place.clone(), seq));
            }
            self.records.insert(place, Lost { round: self.round, seq, version: version.to_owned(), what });
        }
        for what in took {
            if !what.is_taken {
                if self.locks.get(&what.lock).is_some_and(|held| held.what.holder == what.holder) {
                    self.locks.remove(&what.lock);
                }
                self.marks.retain(|(_, mark)| mark.what.lock != what.lock || mark.what.holder != what.holder);
                continue;
            }
            let lost = Lost { round: self.round, seq, version: version.to_owned(), what };
            if lost.what.is_mark() {
                self.marks.push_back((now, lost));
            } else if self.is_open(&lost.what.holder) {
                self.locks.insert(lost.what.lock.clone(), lost);
            }
        }
        self.tidy(now);
    }

    pub(super) fn forget(&mut self, kind: u8, field: &str) {
        self.records.remove(&(kind, field.to_owned()));
    }

    /// Somebody else has written a record since, unless this process has done so once more.
    pub(super) fn forget_version(&mut self, place: &Place, word: &LastWord) {
        if self.records.get(place).is_some_and(|lost| last_word(lost) == *word) {
            self.records.remove(place);
        }
    }

    /// The records after this place, so many at most, with what wrote them.
    pub(super) fn remembered(&self, after: Option<&Place>, limit: usize) -> Vec<(Place, LastWord)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let records = self.records.range((from, Bound::Unbounded)).take(limit);
        records.map(|(place, lost)| (place.clone(), last_word(lost))).collect()
    }

    /// The store was healed: what is committed from now on is later than all that is remembered.
    pub(super) fn is_healed(&mut self) {
        self.round += 1;
    }

    /// What was written by later commits than this one.
    pub(super) fn lost_since(&self, seq: u64) -> AllLost {
        let records = self.records.values().filter(|lost| lost.seq > seq).cloned().collect();
        let locks = self.locks.values().filter(|lost| self.is_open(&lost.what.holder));
        let locks = locks.chain(self.marks.iter().map(|(_, mark)| mark)).filter(|lost| lost.seq > seq);
        AllLost { records, locks: locks.cloned().collect() }
    }

    /// Whether a run is known that has not ended.
    fn is_open(&self, run: &str) -> bool {
        self.records.get(&(RUN, run.to_owned())).is_some_and(|lost| lost.what.lasts)
    }

    fn tidy(&mut self, now: Instant) {
        while let Some((at, _, _)) = self.passing.front()
            && (self.passing.len() > PASSING_MAX || now.duration_since(*at) > PASSING)
        {
            let Some((_, place, seq)) = self.passing.pop_front() else { break };
            // It may have been written again since.
            if self.records.get(&place).is_some_and(|lost| lost.seq == seq && !lost.what.lasts) {
                self.records.remove(&place);
            }
        }
        while let Some((at, _)) = self.marks.front()
            && (self.marks.len() > PASSING_MAX || now.duration_since(*at) > PASSING)
        {
            self.marks.pop_front();
        }
        if self.locks.len() > LOCKS_LOOK && self.locks.len() > self.records.len() {
            let records = &self.records;
            self.locks
                .retain(|_, lost| records.get(&(RUN, lost.what.holder.clone())).is_some_and(|run| run.what.lasts));
        }
    }
}

fn last_word(lost: &Lost<Written>) -> LastWord {
    LastWord { version: lost.version.clone(), is_deleted: lost.what.body.is_empty() }
}
