//! Codes that let a browser in. They go through links, which end up in histories and on screens, so each works once and
//! for a short time.

use cronhold_schedule::{Instant, Span};

use super::sign;

/// How long a code works.
const LASTS: Span = Span::from_secs(15 * 60);
/// So many work at once; a new one takes the place of the oldest.
const CODES_MAX: usize = 8;

/// Codes that were not used yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct OneTimeCodes(Vec<(String, Instant)>);

impl OneTimeCodes {
    /// Adds a code.
    pub(super) fn add(&mut self, code: String, now: Instant) {
        if self.0.len() >= CODES_MAX {
            self.0.remove(0);
        }
        self.0.push((code, now.plus(LASTS)));
    }

    /// Takes a code, if it works.
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
    fn each_works_once_and_soon() {
        let now = Instant::from_secs(1_800_000_000);
        let mut codes = OneTimeCodes::default();
        codes.add("a".to_owned(), now);
        codes.add("b".to_owned(), now);
        assert!(codes.take("b", now) && !codes.take("b", now));
        assert!(!codes.take("a", now.plus(LASTS)), "too late");
        for number in 0..=CODES_MAX {
            codes.add(number.to_string(), now);
        }
        assert!(!codes.take("0", now), "the oldest made room");
        assert!(codes.take("1", now) && codes.take(&CODES_MAX.to_string(), now));
    }
}
