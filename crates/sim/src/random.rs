//! Reproducible random numbers. Everything that a simulation draws comes from one seed through this module.

use std::sync::{Arc, Mutex};

use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

/// A deterministic stream of random numbers (xoshiro256**, seeded by splitmix64). Clones share the stream.
#[derive(Debug, Clone)]
pub(crate) struct SimRandom(Arc<Mutex<[u64; 4]>>);

impl SimRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        let words = [0; 4].map(|_: u64| split_mix(&mut state));
        Self(Arc::new(Mutex::new(words)))
    }

    /// The stream of one concern of a seed; `number` distinguishes several of a kind. It does not depend on other
    /// streams, so that leaving out one event does not change the others. The name is part of the seed: a changed name
    /// changes every simulation, and seeds in tests lose their meaning.
    pub(crate) fn of(seed: u64, concern: &str, number: u64) -> Self {
        let named = concern.bytes().fold(seed ^ 0x517c_c1b7_2722_0a95, |hash, byte| {
            let mut state = hash ^ u64::from(byte);
            split_mix(&mut state)
        });
        Self::new(named.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// An independent stream, so that later draws from it do not affect this one.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.bits())
    }

    /// The next 64 bits.
    pub(crate) fn bits(&self) -> u64 {
        let mut words = lock_mutex(&self.0);
        let result = words[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = words[1] << 17;
        words[2] ^= words[0];
        words[3] ^= words[1];
        words[1] ^= words[2];
        words[0] ^= words[3];
        words[2] ^= shifted;
        words[3] = words[3].rotate_left(45);
        result
    }

    /// A number between `least` and `most`, both included. The small bias of the remainder does not matter here.
    pub(crate) fn between(&self, least: u64, most: u64) -> u64 {
        assert!(least <= most, "the range from {least} to {most} is empty");
        match most - least {
            u64::MAX => self.bits(),
            width => least + self.bits() % (width + 1),
        }
    }

    /// An index into a list of `length` elements, at least one.
    pub(crate) fn index(&self, length: usize) -> usize {
        assert!(length > 0, "cannot draw from an empty list");
        usize::try_from(self.bits() % length as u64).expect("it is below a length")
    }

    /// An element of a list, which must not be empty.
    pub(crate) fn pick<'a, T>(&self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// True with probability 1/`draws`; never if `draws` is 0.
    pub(crate) fn one_in(&self, draws: u64) -> bool {
        draws > 0 && self.bits().is_multiple_of(draws)
    }

    /// True with a probability of `share` in a thousand.
    pub(crate) fn per_mille(&self, share: u64) -> bool {
        self.bits() % 1_000 < share
    }

    /// A span of whole seconds, both ends included.
    pub(crate) fn secs(&self, least: u64, most: u64) -> Span {
        Span::from_secs(self.between(least, most))
    }

    /// A span between `least` and `most` whose order of magnitude is uniform, so that short spans are as likely as long
    /// ones.
    pub(crate) fn span(&self, least: Span, most: Span) -> Span {
        let doublings = (most.micros().max(1) / least.micros().max(1)).max(1).ilog2();
        let floor = least.micros() << self.between(0, u64::from(doublings));
        Span::from_micros(self.between(floor, (2 * floor).min(most.micros()).max(floor)))
    }

    /// A span of microseconds, both ends included.
    pub(crate) fn micros(&self, least: u64, most: u64) -> Span {
        Span::from_micros(self.between(least, most))
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed in a bug report must always mean the same simulation.
    #[test]
    fn seed_always_gives_the_same_numbers() {
        let rng = SimRandom::new(1);
        let drawn: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(drawn, [0xb3f2_af6d_0fc7_10c5, 0x853b_5596_4736_4cea, 0x92f8_9756_082a_4514]);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let rng = SimRandom::new(7);
        let mut seen = [0; 4];
        for _ in 0..1_000 {
            let drawn = rng.between(10, 13);
            seen[usize::try_from(drawn - 10).expect("small")] += 1;
        }
        assert!(seen.iter().all(|count| *count > 150), "{seen:?}");
        assert_eq!(rng.between(5, 5), 5);
        assert!(!rng.one_in(0) && rng.one_in(1));
        assert!(!rng.per_mille(0) && rng.per_mille(1_000));
    }

    #[test]
    fn spans_cover_all_magnitudes() {
        let (rng, least, most) = (SimRandom::new(9), Span::from_millis(10), Span::from_secs(600));
        let drawn: Vec<Span> = (0..1_000).map(|_| rng.span(least, most)).collect();
        assert!(drawn.iter().all(|span| least <= *span && *span <= most));
        let below = |secs| drawn.iter().filter(|span| span.secs() < secs).count();
        assert!(below(1) > 300 && below(60) < 900, "{} and {}", below(1), below(60));
    }

    #[test]
    fn concerns_have_independent_streams() {
        let bits = |seed, concern, number| SimRandom::of(seed, concern, number).bits();
        assert_eq!(bits(1, "crashes", 2), bits(1, "crashes", 2));
        assert_ne!(bits(1, "crashes", 2), bits(1, "crashes", 3));
        assert_ne!(bits(1, "crashes", 2), bits(1, "pauses", 2));
        assert_ne!(bits(1, "crashes", 2), bits(2, "crashes", 2));
    }

    #[test]
    fn forks_are_independent() {
        let (first, second) = (SimRandom::new(3), SimRandom::new(3));
        let fork = first.fork();
        let _ = second.bits();
        let _ = fork.bits();
        assert_eq!(first.bits(), second.bits());
        assert_ne!(fork.bits(), first.bits());
    }
}
