//! Hashes that are the same on every machine and in every version. Schedule ids, `H` fields and jitter depend on
//! `StableHash`, and file names on `fnv1a`: a change would move runs and orphan files.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over 64 bits.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_OFFSET, |hash, byte| fnv1a_step(hash, *byte))
}

fn fnv1a_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
}

/// FNV-1a over 64 bits, with a final mix so that the low bits are as good as the high ones.
#[derive(Debug, Clone)]
pub(crate) struct StableHash(u64);

impl StableHash {
    pub(crate) fn new() -> Self {
        Self(FNV_OFFSET)
    }

    pub(crate) fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.byte(byte);
        }
        // No byte of UTF-8 has this value, so that ("ab", "c") and ("a", "bc") differ.
        self.byte(0xff);
    }

    pub(crate) fn number(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.byte(byte);
        }
    }

    pub(crate) fn finish(&self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self, byte: u8) {
        self.0 = fnv1a_step(self.0, byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_has_the_published_values() {
        assert_eq!(
            [b"" as &[u8], b"a", b"foobar"].map(fnv1a),
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
    }

    #[test]
    fn stable_hash_never_changes() {
        let mut hash = StableHash::new();
        hash.text("reports/prices");
        hash.number(42);
        assert_eq!(hash.finish(), GOLDEN);
    }

    /// Fixed forever; ids, `H` and jitter of every stored job depend on it.
    const GOLDEN: u64 = 244_191_391_924_935_954;
}
