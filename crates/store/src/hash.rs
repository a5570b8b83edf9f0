//! A fast hash map for frequent lookups. Its hasher has no seed, so that iteration order is the same in every process;
//! no code depends on that order.

use std::hash::{BuildHasherDefault, Hasher};

/// A hash map with [`Mixer`].
#[expect(clippy::disallowed_types, reason = "its hasher has no seed, so its order is the same from run to run")]
pub type SeedlessMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Mixer>>;

/// A hasher that multiplies and rotates. It does not resist crafted collisions: keys are names and ids of our own
/// users.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mixer(u64);

/// 2^64 divided by the golden ratio, which is odd.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let mut rest = [0; 8];
        rest[..words.remainder().len()].copy_from_slice(words.remainder());
        self.write_u64(u64::from_le_bytes(rest));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(FACTOR);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The upper bits are mixed better, and the map uses both ends.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::Mixer;

    #[test]
    fn similar_names_have_different_hashes() {
        let hash = |text: String| BuildHasherDefault::<Mixer>::default().hash_one(text);
        let hashes: BTreeSet<u64> = (0..100_000).map(|number| hash(format!("job{number}"))).collect();
        assert_eq!(hashes.len(), 100_000);
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(low.len() > 45_000 && high.len() == 128, "{} {}", low.len(), high.len());
    }
}
