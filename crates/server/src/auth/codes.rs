//! One-time codes with which a browser signs in. They are part of links, which can be seen in histories and on screens,
//! so each code is valid once and for a short time.

use cronhold_schedule::{Instant, Span};

use super::sign;

/// How long a code is valid.
const LASTS: Span = Span::from_secs(15 * 60);
/// Maximum number of valid codes; a new code replaces the oldest.
const CODES_MAX: usize = 8;

/// Unused codes with their expiry times, oldest first.
#[derive(Debug, Default)]
pub(super) struct OneTimeCodes(Vec<(String, Instant)>);

impl OneTimeCodes {
    pub(super) fn add(&mut self, code: String, now: Instant) {
        if self.0.len() >= CODES_MAX {
            self.0.remove(0);
        }
        self.0.push((code, now.plus(LASTS)));
    }

    /// Removes a code, and returns whether it was valid.
    pub(super) fn take(&mut self, given: &str, now: Instant) -> bool {
        self.0.retain(|(_, until)| now < *until);
        let found = self.0.iter().position(|(code, _)| sign::is_same(code.as_bytes(), given.as_bytes()));
        found.map(|found| self.0.remove(found)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_valid_once_and_expires() {
        let now = Instant::from_secs(1_800_000_000);
        let mut codes = OneTimeCodes::default();
        codes.add("a".to_owned(), now);
        codes.add("b".to_owned(), now);
        assert!(codes.take("b", now) && !codes.take("b", now));
        assert!(!codes.take("a", now.plus(LASTS)), "expired");
        for number in 0..=CODES_MAX {
            codes.add(number.to_string(), now);
        }
        assert!(!codes.take("0", now), "the oldest was replaced");
        assert!(codes.take("1", now) && codes.take(&CODES_MAX.to_string(), now));
    }
}
