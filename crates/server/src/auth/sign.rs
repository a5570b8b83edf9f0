//! Signatures, and comparison in constant time.

use sha2::{Digest, Sha256};

pub(super) use cronhold_core::hmac::{hex, hmac_sha256 as hmac};

/// Whether two texts are equal. Compares all bytes of their hashes, so that the time reveals nothing about the
/// difference.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (Sha256::digest(one), Sha256::digest(other));
    let difference = one.iter().zip(&other).fold(0, |difference, (one, other)| difference | (one ^ other));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_finds_any_difference() {
        assert!(is_same(b"a", b"a"));
        assert!(!is_same(b"a", b"b") && !is_same(b"a", b"") && !is_same(b"a", b"a\0"));
    }
}
