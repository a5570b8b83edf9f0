//! What the way to the store is like: how long calls take, and which of them fail. Drawn from the seed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_schedule::Span;
use cronhold_store::Fault;

use crate::chance::Chance;

/// The weather of one simulation. Clones share whether it is over.
#[derive(Debug, Clone)]
pub(crate) struct Weather {
    /// The longest that an ordinary call takes, in microseconds; a few take much longer.
    usual: u64,
    /// Calls in a thousand that fail and do nothing.
    away: u64,
    /// Commits in a thousand whose answer is lost.
    unknown: u64,
    storms: Arc<Vec<Storm>>,
    is_calm: Arc<AtomicBool>,
}

/// A time in which the store does not work, for one machine or for all.
#[derive(Debug, Clone, Copy)]
struct Storm {
    from: Span,
    to: Span,
    machine: Option<usize>,
    is_read_only: bool,
}

/// What becomes of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives, and so does its answer.
    Fine,
    /// It fails and does nothing.
    Fails(Fault),
    /// Nobody hears the answer; it gives up waiting after this time, be the commit done by then or not.
    Silent {
        /// How long it waits.
        patience: Span,
        /// Whether the commit never arrives.
        is_lost: bool,
    },
}

impl Weather {
    /// Draws the weather of a simulation of some length with so many machines.
    pub(crate) fn draw(chance: &Chance, length: Span, machines: usize) -> Self {
        let is_rough = chance.one_in(2);
        let storms = if chance.one_in(3) { chance.between(1, 3) } else { 0 };
        let storms = (0..storms).map(|_| {
            let from = chance.micros(0, length.micros());
            let machine = chance.one_in(2).then(|| chance.index(machines));
            Storm { from, to: from.plus(chance.secs(1, 200)), machine, is_read_only: chance.one_in(3) }
        });
        Self {
            usual: *chance.pick(&[500, 2_000, 20_000, 80_000]),
            away: if is_rough { chance.between(1, 30) } else { 0 },
            unknown: if is_rough { chance.between(1, 60) } else { 0 },
            storms: Arc::new(storms.collect()),
            is_calm: Arc::default(),
        }
    }

    /// Nothing fails from now on.
    pub(crate) fn clear_up(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    /// How long one way of a call takes.
    pub(crate) fn delay(&self, chance: &Chance) -> Span {
        if chance.per_mille(5) { chance.micros(self.usual, 2_000_000) } else { chance.micros(50, self.usual) }
    }

    /// Whether a call that only reads fails.
    pub(crate) fn read(&self, chance: &Chance, now: Span, machine: usize) -> Option<Fault> {
        if self.is_calm() {
            return None;
        }
        let is_away = self.storm(now, machine).is_some_and(|storm| !storm.is_read_only);
        (is_away || chance.per_mille(self.away)).then(|| Fault::Away("no connection".to_owned()))
    }

    /// What becomes of a commit.
    pub(crate) fn commit(&self, chance: &Chance, now: Span, machine: usize) -> Fate {
        if self.is_calm() {
            return Fate::Fine;
        }
        if self.storm(now, machine).is_some_and(|storm| storm.is_read_only) {
            return Fate::Fails(Fault::ReadOnly("the disk is full".to_owned()));
        }
        if let Some(fault) = self.read(chance, now, machine) {
            return Fate::Fails(fault);
        }
        if chance.per_mille(self.unknown) {
            let patience = chance.micros(50, 4 * self.usual);
            return Fate::Silent { patience, is_lost: chance.one_in(3) };
        }
        Fate::Fine
    }

    /// The weather in words.
    pub(crate) fn describe(&self) -> String {
        let Self { usual, away, unknown, storms, .. } = self;
        format!(
            "calls take up to {}, {away}‰ fail, {unknown}‰ unknown, {} storms",
            Span::from_micros(*usual),
            storms.len()
        )
    }

    fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    fn storm(&self, now: Span, machine: usize) -> Option<&Storm> {
        let is_on = |storm: &&Storm| storm.from <= now && now < storm.to;
        self.storms.iter().filter(is_on).find(|storm| storm.machine.is_none_or(|only| only == machine))
    }
}
