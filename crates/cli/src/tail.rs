//! The last lines of bytes that come in pieces, without keeping the others.

/// The last lines of what came so far.
#[derive(Debug)]
pub(crate) struct Tail {
    lines: usize,
    kept: Vec<u8>,
}

impl Tail {
    /// Nothing came yet.
    pub(crate) fn new(lines: usize) -> Self {
        Self { lines, kept: Vec::new() }
    }

    /// Some more came.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let begin = self.begin();
        self.kept.drain(..begin);
    }

    /// The last lines; the very last may be one that has not ended.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// Where the last lines begin in what is kept.
    fn begin(&self) -> usize {
        // A newline at the very end ends the last line; it does not begin another one.
        let body = self.kept.strip_suffix(b"\n").unwrap_or(&self.kept);
        let Some(before) = self.lines.checked_sub(1) else {
            return self.kept.len();
        };
        let mut ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index);
        ends.nth(before).map_or(0, |end| end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_however_they_are_cut() {
        for (text, lines, expected) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\nc\n", 1, "c\n"),
            ("a\n\n\n", 2, "\n\n"),
            ("a\nb\n", 9, "a\nb\n"),
            ("a\nb\n", 0, ""),
            ("", 3, ""),
        ] {
            for size in 1..=text.len().max(1) {
                let mut tail = Tail::new(lines);
                text.as_bytes().chunks(size).for_each(|piece| tail.take(piece));
                assert_eq!(String::from_utf8_lossy(tail.bytes()), expected, "{text:?} {lines} {size}");
            }
        }
    }
}
