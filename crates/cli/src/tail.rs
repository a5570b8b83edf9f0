//! Keeps the last lines of a byte stream.

/// The last lines of a byte stream.
#[derive(Debug)]
pub(crate) struct TailBuffer {
    lines: usize,
    kept: Vec<u8>,
}

impl TailBuffer {
    /// Creates an empty buffer for this number of lines.
    pub(crate) fn new(lines: usize) -> Self {
        Self { lines, kept: Vec::new() }
    }

    /// Appends bytes and drops lines that are no longer among the last.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        let begin = self.begin();
        self.kept.drain(..begin);
    }

    /// The last lines; the final one may be incomplete.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// Offset of the first line to keep.
    fn begin(&self) -> usize {
        // A newline at the end terminates the last line and does not start another one.
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
    fn last_lines_are_kept_for_any_chunking() {
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
                let mut tail = TailBuffer::new(lines);
                text.as_bytes().chunks(size).for_each(|piece| tail.take(piece));
                assert_eq!(String::from_utf8_lossy(tail.bytes()), expected, "{text:?} {lines} {size}");
            }
        }
    }
}
