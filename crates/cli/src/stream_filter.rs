//! Selects one stream of an output whose streams were told apart.

use cronhold_api::{OutputRange, StderrRanges};

/// The bytes of an output that belong to one stream, as the output is read from its beginning.
#[derive(Debug)]
pub(crate) struct StreamFilter {
    stderr: Vec<OutputRange>,
    /// Whether standard error is selected, and not standard output.
    is_stderr: bool,
    /// Offset of the next byte that is read.
    at: u64,
}

impl StreamFilter {
    /// Selects a stream of an output that is read from its beginning.
    pub(crate) fn new(stderr: StderrRanges, is_stderr: bool) -> Self {
        Self { stderr: stderr.ranges, is_stderr, at: 0 }
    }

    /// The parts of the next bytes that belong to the stream.
    pub(crate) fn take<'a>(&mut self, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut taken = Vec::new();
        while !bytes.is_empty() {
            let passed = self.stderr.iter().take_while(|range| range.until <= self.at).count();
            self.stderr.drain(..passed);
            let next = self.stderr.first();
            let is_inside = next.is_some_and(|range| range.from <= self.at);
            let until = next.map_or(u64::MAX, |range| if is_inside { range.until } else { range.from });
            let count = usize::try_from(until - self.at).unwrap_or(usize::MAX).min(bytes.len());
            let (part, rest) = bytes.split_at(count);
            if is_inside == self.is_stderr {
                taken.push(part);
            }
            self.at += count as u64;
            bytes = rest;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_is_selected_for_any_chunking() {
        let text = b"aaEEbbbEc";
        let ranges = [(2, 4), (7, 8)].map(|(from, until)| OutputRange { from, until });
        for (is_stderr, expected) in [(true, "EEE"), (false, "aabbbc")] {
            for size in 1..=text.len() {
                let stderr = StderrRanges { ranges: ranges.to_vec(), partial: false };
                let mut filter = StreamFilter::new(stderr, is_stderr);
                let taken: Vec<u8> = text.chunks(size).flat_map(|bytes| filter.take(bytes).concat()).collect();
                assert_eq!(String::from_utf8_lossy(&taken), expected, "{size}");
            }
        }
    }
}
