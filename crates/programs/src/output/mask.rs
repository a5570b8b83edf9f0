//! Hides secrets in outputs. A secret is replaced by as many asterisks as it has bytes, so offsets in the stored text
//! stay those of the file, and what is stored is a function of the file alone: it does not depend on the pieces in
//! which the file was read.

use std::fs::File;
use std::io;

use super::read;

/// Secrets shorter than this are not hidden: they would hide what is not secret.
const SECRET_MIN: usize = 4;
/// The same for one line of a secret with several lines.
const LINE_MIN: usize = 8;
/// What replaces each byte of a secret.
const HIDDEN: u8 = b'*';

/// The secrets of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretMask {
    /// The values, and the lines of those that have several.
    secrets: Vec<Vec<u8>>,
    /// Whether the run has secrets, even if they cannot be read any more.
    is_needed: bool,
}

impl SecretMask {
    /// A mask for these values.
    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut mask = Self::default();
        for value in values {
            mask.is_needed = true;
            // Programs often print one line of a key, or change the ends of lines.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN);
            let whole = Some(value.as_str()).filter(|value| value.len() >= SECRET_MIN);
            mask.secrets.extend(lines.chain(whole).map(|text| text.as_bytes().to_vec()));
        }
        mask.secrets.sort();
        mask.secrets.dedup();
        mask
    }

    /// Also records that a secret cannot be read now. It may have been hidden in what is stored already.
    pub(crate) fn with_unreadable(self, is_unreadable: bool) -> Self {
        Self { is_needed: self.is_needed || is_unreadable, ..self }
    }

    /// Hides all secrets in a text.
    pub(crate) fn hide(&self, text: &mut [u8]) {
        let mut ranges = Vec::new();
        for secret in &self.secrets {
            let mut from = 0;
            while let Some(at) = find(&text[from..], secret) {
                ranges.push(from + at..from + at + secret.len());
                from += at + 1;
            }
        }
        ranges.into_iter().for_each(|range| text[range].fill(HIDDEN));
    }

    /// A text without secrets.
    pub(crate) fn hide_text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.hide(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The bytes of a range of a file, or as many of them as the file has, without secrets.
    pub(super) fn read(&self, file: &File, from: u64, until: u64) -> io::Result<Vec<u8>> {
        if self.secrets.is_empty() {
            return read(file, from, until);
        }
        // A secret may begin before the range or end after it.
        let around = self.longest() as u64;
        let begin = from.saturating_sub(around);
        let mut text = read(file, begin, until.saturating_add(around))?;
        self.hide(&mut text);
        let begin = usize::try_from(from - begin).unwrap_or(usize::MAX).min(text.len());
        let end =
            begin.saturating_add(usize::try_from(until.saturating_sub(from)).unwrap_or(usize::MAX)).min(text.len());
        Ok(text[begin..end].to_vec())
    }

    /// How much of the first `until` bytes of a file is stored while more may follow: not the beginning of a secret
    /// whose rest is not written yet.
    pub(super) fn settled(&self, file: &File, until: u64) -> io::Result<u64> {
        if self.secrets.is_empty() {
            return Ok(until);
        }
        let around = self.longest() as u64;
        let begin = until.saturating_sub(around);
        let text = read(file, begin, until.saturating_add(around))?;
        let open =
            |secret: &Vec<u8>| (1..secret.len()).rev().find(|count| text.ends_with(&secret[..*count])).unwrap_or(0);
        let open = self.secrets.iter().map(open).max().unwrap_or(0);
        Ok(until.min(begin + (text.len() - open) as u64))
    }

    /// Whether bytes of a file can be what is stored as `stored`. A secret that is hidden there may be another one by now.
    pub(super) fn is_same(&self, stored: &[u8], bytes: &[u8]) -> bool {
        let is_hidden = |stored: u8| self.is_needed && stored == HIDDEN;
        stored.len() == bytes.len()
            && stored.iter().zip(bytes).all(|(stored, byte)| stored == byte || is_hidden(*stored))
    }

    fn longest(&self) -> usize {
        self.secrets.iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == first) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(secrets: &[&str], text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        SecretMask::new(secrets.iter().map(|secret| (*secret).to_owned())).hide(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (secrets, text, expected) in [
            (&["hunter2"][..], "a hunter2 b hunter2", "a ******* b *******"),
            (&["hunter2"], "hunter", "hunter"),
            (&["abab"], "xababab", "x******"),
            (&["abcd", "cdef"], "abcdef", "******"),
            (&["abc"], "abc", "abc"),
            (&["größe"], "die größe", "die *******"),
            (&["-- begin\n  line one\nline two\n"], "line two, line one", "********, ********"),
            (&["one\nline two\n"], "one\nline two", "one\n********"),
            (&[""], "text", "text"),
        ] {
            assert_eq!(hidden(secrets, text), expected, "{secrets:?}");
        }
    }

    #[test]
    fn hidden_bytes_are_the_same_as_any() {
        let mask = SecretMask::new(["secret".to_owned()]);
        assert!(mask.is_same(b"a ******", b"a secret") && mask.is_same(b"a ******", b"a others"));
        assert!(!mask.is_same(b"a ******", b"b secret") && !mask.is_same(b"a ******", b"a secre"));
        assert!(!SecretMask::default().is_same(b"*", b"a"));
        assert!(SecretMask::default().with_unreadable(true).is_same(b"*", b"a"));
    }
}
