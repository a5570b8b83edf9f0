//! A small seeded generator. The cases are the same on every run and machine, so a failure can be reproduced from its
//! seed.

/// SplitMix64: short, and good enough to choose test cases.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `first` to `last`, inclusive.
    pub(crate) fn number(&mut self, first: u32, last: u32) -> u32 {
        first + (self.bits() % u64::from(last - first + 1)) as u32
    }

    /// A second from `first` to `last`, inclusive.
    pub(crate) fn second(&mut self, first: i64, last: i64) -> i64 {
        first + (self.bits() % first.abs_diff(last).saturating_add(1)).cast_signed()
    }

    /// True with probability 1 in `n`.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.number(1, n) == 1
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.number(0, from.len() as u32 - 1) as usize]
    }
}
