//! Deterministic random numbers: a seed yields the same sequence on every machine.

/// A linear congruential generator with the constants of Knuth's MMIX.
#[derive(Debug)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Self(seed);
        // Similar seeds yield similar numbers at first.
        for _ in 0..8 {
            chance.next();
        }
        chance
    }

    /// A number below `limit`, which must not be zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // The upper bits are more random, and 16 bits fit into any `usize`.
        let bits = usize::try_from(self.next() >> 48).unwrap_or(0);
        bits % limit
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_the_sequence() {
        let numbers = |seed| {
            let mut chance = SeededRandom::new(seed);
            (0..100).map(|_| chance.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!((0..6).all(|face| numbers(3).contains(&face)));
    }
}
