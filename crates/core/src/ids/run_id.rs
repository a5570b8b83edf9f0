//! Ids of 128 bits. A run's id is a UUIDv7 that sorts by nominal time. It is derived from the run's occurrence, so that
//! a claim that is sent twice creates the same run. The id of a retry follows the id of the attempt before it, so the
//! attempts at an occurrence are neighbours, in their order.

use std::fmt;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, TextError};
use sha2::{Digest, Sha256};

/// The id of a run.
///
/// Invariant: version 7 and variant 2 of RFC 9562.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

/// The unique id of a job. A job that is removed and created again under the same name has a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobUid(u128);

/// The id of a node, stored in its data directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u128);

/// The bits of version and variant.
const FIXED_BITS: u128 = 0xf << 76 | 0b11 << 62;

/// The bits after the variant, and the number of them.
const TAIL_BITS: u128 = (1 << TAIL_LEN) - 1;
const TAIL_LEN: u32 = 62;

/// Version 7, variant 2.
const FIXED: u128 = 0x7 << 76 | 0b10 << 62;

impl RunId {
    /// The smallest id.
    pub const MIN: Self = Self(FIXED);
    /// The largest id.
    pub const MAX: Self = Self(!FIXED_BITS | FIXED);

    /// The id of the run for an occurrence of a schedule. All nodes derive the same id.
    pub fn derived(job: JobUid, schedule_id: &str, nominal: Instant, attempt: u32) -> Self {
        let nominal_bytes = nominal.micros().to_be_bytes();
        let parts = [&job.0.to_be_bytes()[..], schedule_id.as_bytes(), &nominal_bytes, &attempt.to_be_bytes()];
        Self::hashed(nominal, "occurrence", &parts)
    }

    /// The id of the run for an occurrence on one node, for a job that runs on each node.
    pub fn on_node(job: JobUid, schedule_id: &str, nominal: Instant, attempt: u32, node: NodeId) -> Self {
        let nominal_bytes = nominal.micros().to_be_bytes();
        let (job, node) = (job.0.to_be_bytes(), node.0.to_be_bytes());
        let parts = [&job[..], schedule_id.as_bytes(), &nominal_bytes, &attempt.to_be_bytes(), &node[..]];
        Self::hashed(nominal, "occurrence on a node", &parts)
    }

    /// The id of the run for an occurrence of a schedule that counts from its previous run, on any node or on one. If the
    /// clock is set back, such a schedule comes to the same time again; the generation distinguishes the occurrences.
    pub fn of_generation(
        job: JobUid,
        schedule_id: &str,
        generation: u32,
        nominal: Instant,
        attempt: u32,
        node: Option<NodeId>,
    ) -> Self {
        let nominal_bytes = nominal.micros().to_be_bytes();
        let (job, node) = (job.0.to_be_bytes(), node.map(|node| node.0.to_be_bytes()));
        let (generation, attempt) = (generation.to_be_bytes(), attempt.to_be_bytes());
        let node: &[u8] = node.as_ref().map_or(&[], |node| node);
        let parts = [&job[..], schedule_id.as_bytes(), &generation, &nominal_bytes, &attempt, node];
        Self::hashed(nominal, "occurrence of a generation", &parts)
    }

    /// The id of a run that was requested with an idempotency key. The same key at the same nominal time is the same
    /// run; a caller that needs separate keys per job or client includes these in the key.
    pub fn from_key(nominal: Instant, key: &str) -> Self {
        Self::hashed(nominal, "key", &[&nominal.micros().to_be_bytes(), key.as_bytes()])
    }

    /// The id of a run that has neither an occurrence nor an idempotency key.
    pub fn from_random(nominal: Instant, random: [u8; 10]) -> Self {
        Self::assembled(nominal, random)
    }

    /// The id of the retry of this run: the next larger id of the same time. Other ids of that time differ by 74 random
    /// bits, so it is as unlikely to be taken as the id of a first attempt.
    #[must_use]
    pub fn retry(self) -> Self {
        let head = self.0 >> (TAIL_LEN + 2) & 0xfff;
        // At the largest id, the bits start again at zero and stay below the time.
        let next = (head << TAIL_LEN | self.0 & TAIL_BITS).wrapping_add(1);
        let (head, tail) = (next >> TAIL_LEN & 0xfff, next & TAIL_BITS);
        Self(self.0 >> 80 << 80 | head << (TAIL_LEN + 2) | tail | FIXED)
    }

    /// Parses an id, with or without dashes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let bits = parse_hex(text, "a run's id")?;
        if bits & FIXED_BITS != FIXED {
            return Err(TextError::new(0..text.len(), "not the id of a run: it is not a UUID of version 7"));
        }
        Ok(Self(bits))
    }

    /// The nominal time of the run, truncated to milliseconds.
    pub fn time(self) -> Instant {
        Instant::from_millis(i64::try_from(self.0 >> 80).unwrap_or(i64::MAX))
    }

    /// The id as a number.
    pub const fn bits(self) -> u128 {
        self.0
    }

    fn hashed(nominal: Instant, kind: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in [kind.as_bytes()].iter().chain(parts) {
            // Each part is prefixed by its length, so that different lists of parts have different hashes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let mut random = [0; 10];
        random.copy_from_slice(&digest[..10]);
        Self::assembled(nominal, random)
    }

    fn assembled(nominal: Instant, random: [u8; 10]) -> Self {
        // 48 bits of milliseconds reach to the year 10889. Times before 1970 are clamped to the epoch.
        let millis = u128::from(nominal.millis().max(0).cast_unsigned() & 0xffff_ffff_ffff);
        let random = random.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        Self(millis << 80 | random & !FIXED_BITS | FIXED)
    }
}

macro_rules! hex_id {
    ($name:ident, $what:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        cronhold_schedule::stored_as_text!($name);
    };
}

macro_rules! plain_hex_id {
    ($name:ident, $what:literal) => {
        hex_id!($name, $what);

        impl $name {
            /// The id with these bits, which should be random.
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The id as a number.
            pub const fn bits(self) -> u128 {
                self.0
            }

            /// Parses an id, with or without dashes.
            pub fn parse(text: &str) -> Result<Self, TextError> {
                parse_hex(text, $what).map(Self)
            }
        }
    };
}

hex_id!(RunId, "a run's id");
plain_hex_id!(JobUid, "a job's uid");
plain_hex_id!(NodeId, "a node's id");

/// Whether a text has the form of an id: 32 hex digits, optionally with dashes after 8, 12, 16 and 20 of them.
pub(super) fn looks_like_id(text: &str) -> bool {
    let dashed = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    digits == 32 && (dashed || text.len() == 32)
}

fn parse_hex(text: &str, what: &str) -> Result<u128, TextError> {
    let wrong = || {
        TextError::new(0..text.len(), format!("`{}` is not {what}: expected 32 hex digits", shortened(text)))
            .hint("such as 0199a3c45e7870008f3b6d2a91c4e507, with or without dashes")
    };
    if !looks_like_id(text) {
        return Err(wrong());
    }
    u128::from_str_radix(&text.replace('-', ""), 16).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOMINAL: &str = "2026-03-29T01:30:00.123456Z";

    fn nominal() -> Instant {
        Instant::parse(NOMINAL).expect("valid")
    }

    /// Stored runs have these ids, so the derivation must never change.
    #[test]
    fn derivation_never_changes() {
        let job = JobUid::from_bits(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for (id, golden) in [
            (RunId::derived(job, "nightly", nominal(), 1), "019d3736523b7d04aff61fb15cf2af56"),
            (RunId::derived(job, "nightly", nominal(), 2), "019d3736523b7a90ae7fac07265ae7bb"),
            (RunId::derived(job, "", Instant::EPOCH, 1), "00000000000077dda010ab5ff3c8acf0"),
            (RunId::from_key(nominal(), "order-17"), "019d3736523b7e72bf615ffe2d200e4c"),
            (RunId::from_random(nominal(), [0xff; 10]), "019d3736523b7fffbfffffffffffffff"),
            (RunId::from_random(Instant::from_secs(-5), [0; 10]), "00000000000070008000000000000000"),
        ] {
            assert_eq!(id.to_string(), golden);
        }
    }

    #[test]
    fn different_inputs_give_different_ids() {
        let job = JobUid::from_bits(7);
        let ids = [
            RunId::derived(job, "ab", nominal(), 1),
            RunId::derived(job, "a", nominal(), 1),
            RunId::derived(JobUid::from_bits(8), "ab", nominal(), 1),
            RunId::derived(job, "ab", nominal().plus(cronhold_schedule::Span::from_micros(1)), 1),
            RunId::derived(job, "ab", nominal(), 2),
            RunId::from_key(nominal(), "ab"),
            RunId::on_node(job, "ab", nominal(), 1, NodeId::from_bits(1)),
            RunId::on_node(job, "ab", nominal(), 1, NodeId::from_bits(2)),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{index}");
            assert_eq!(id.time().millis(), nominal().millis());
        }
    }

    #[test]
    fn attempts_are_neighbours_in_their_order() {
        for (id, expected) in [
            ("019d3736523b7d04aff61fb15cf2af56", "019d3736523b7d04aff61fb15cf2af57"),
            ("019d3736523b7d04afffffffffffffff", "019d3736523b7d04b000000000000000"),
            ("019d3736523b7d04bfffffffffffffff", "019d3736523b7d058000000000000000"),
            ("019d3736523b7fffbfffffffffffffff", "019d3736523b70008000000000000000"),
        ] {
            let retry = RunId::parse(id).expect(id).retry();
            assert_eq!(RunId::parse(&retry.to_string()), Ok(retry), "{id}: a UUIDv7");
            assert_eq!(retry.to_string(), expected);
        }
        let job = JobUid::from_bits(7);
        for first in (0..100).map(|second| RunId::derived(job, "s", Instant::from_secs(second), 1)) {
            let attempts: Vec<RunId> = std::iter::successors(Some(first), |id| Some(id.retry())).take(50).collect();
            assert!(attempts.is_sorted_by(|one, next| one < next), "{first}");
            assert!(attempts.iter().all(|id| id.time() == first.time()), "{first}");
        }
    }

    #[test]
    fn ids_sort_by_time_and_parse_back() {
        let early = RunId::from_random(nominal(), [0xff; 10]);
        let late = RunId::from_random(Instant::from_millis(nominal().millis() + 1), [0; 10]);
        assert!(early < late && early.to_string() < late.to_string());
        let text = early.to_string();
        assert_eq!(RunId::parse(&text), Ok(early));
        let dashed = format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]);
        assert_eq!(RunId::parse(&dashed.to_uppercase()), Ok(early));
        assert_eq!(&text[12..13], "7");
        assert_eq!(serde_json::to_string(&early).expect("a text"), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<RunId>(&format!("\"{dashed}\"")).expect("an id"), early);
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in ["", "42", "0123456789abcdef0123456789abcdeg", "0123456789abcdef-0123456789abcdef"] {
            assert!(RunId::parse(text).expect_err(text).message.contains("expected 32 hex digits"), "{text}");
        }
        let other = RunId::parse("0123456789ab4def8123456789abcdef").expect_err("version 4");
        assert!(other.message.contains("version 7"));
        assert!(NodeId::parse("0123456789ab4def8123456789abcdef").is_ok());
    }
}
