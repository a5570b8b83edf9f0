//! A map for keys that are looked up far more often than anything else. It is hashed the same way in every process, so
//! that its order is no source of chance; nobody depends on that order.

use std::hash::{BuildHasherDefault, Hasher};

/// A map by key.
#[expect(clippy::disallowed_types, reason = "its hasher has no seed, so its order is the same from run to run")]
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Multiplies and rotates. Keys are names and ids of our own users: nobody gains by making them collide.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mixer(u64);

/// An odd number without a pattern.
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
        // The upper bits are the better mixed ones, and a map looks at both ends.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::Mixer;

    #[test]
    fn tells_names_apart() {
        let hash = |text: String| BuildHasherDefault::<Mixer>::default().hash_one(text);
        let hashes: BTreeSet<u64> = (0..100_000).map(|number| hash(format!("job{number}"))).collect();
        assert_eq!(hashes.len(), 100_000);
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(low.len() > 45_000 && high.len() == 128, "{} {}", low.len(), high.len());
    }
}
