//! The file with the messages of a plug-in, as the keeper writes it: which of its bytes can still be read, and which of
//! them are standard error.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use cronhold_keeper::{OutputLimits, OutputSnapshot, STDERR_PARTS_MAX, snapshot_output, stderr_parts};

use crate::output::read_range;

/// Bytes that are read at once.
const PIECE_MAX: u64 = 1 << 20;

/// A file with messages, up to a length.
#[derive(Debug)]
pub(super) struct MessageFile {
    file: File,
    length: u64,
    /// The parts that are standard error; `None` if the keeper did not tell the streams apart.
    stderr: Option<Vec<(u64, u64)>>,
    limits: OutputLimits,
}

/// What comes next in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilePiece {
    Bytes(Vec<u8>),
    /// The keeper has punched out this many bytes.
    Gap(u64),
    /// Nothing for now.
    End,
}

/// The stream of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceStream {
    Messages,
    Stderr,
    /// It is unknown which of the two.
    Mixed,
}

impl MessageFile {
    /// The file of a running plug-in; `None` if it has not grown beyond `known`, or something appends to it right now.
    pub(super) fn growing(path: &Path, known: u64, limits: OutputLimits) -> io::Result<Option<Self>> {
        if std::fs::metadata(path)?.len() == known {
            return Ok(None);
        }
        let snapshot = snapshot_output(path)?;
        Ok(snapshot.map(|OutputSnapshot { file, length, stderr }| Self { file, length, stderr, limits }))
    }

    /// The file of a plug-in that has ended. Without a known length everything in it counts.
    pub(super) fn ended(path: &Path, length: Option<u64>, limits: OutputLimits) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = match length {
            Some(length) => length,
            None => file.metadata()?.len(),
        };
        Ok(Self { file, length, stderr: stderr_parts(path)?, limits })
    }

    /// Up to where it can be read.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// What comes at an offset. The keeper may punch out the middle at any time.
    pub(super) fn next(&self, from: u64) -> io::Result<FilePiece> {
        if from >= self.length {
            return Ok(FilePiece::End);
        }
        if let Some(gap) = self.gap(from, self.length) {
            return Ok(FilePiece::Gap(gap));
        }
        let is_head = from < self.limits.head;
        let end = if is_head { self.length.min(self.limits.head) } else { self.length };
        let bytes = read_range(&self.file, from, end.min(from + PIECE_MAX))?;
        // It may have happened while the bytes were read.
        match self.gap(from, self.file.metadata()?.len()) {
            Some(gap) => Ok(FilePiece::Gap(gap.min(self.length - from))),
            None if bytes.is_empty() => Ok(FilePiece::End),
            None => Ok(FilePiece::Bytes(bytes)),
        }
    }

    /// How many bytes are missing at an offset of a file with this length.
    fn gap(&self, from: u64, length: u64) -> Option<u64> {
        let OutputLimits { head, tail } = self.limits;
        let kept_from = length.saturating_sub(tail);
        (from >= head && from < kept_from).then(|| kept_from - from)
    }

    /// The streams of a range, in order.
    pub(super) fn streams(&self, range: Range<u64>) -> Vec<(Range<u64>, PieceStream)> {
        let Some(stderr) = &self.stderr else { return vec![(range, PieceStream::Mixed)] };
        let (mut streams, mut from) = (Vec::new(), range.start);
        let mut add = |until: u64, stream: PieceStream| {
            let until = until.min(range.end);
            if from < until {
                streams.push((from..until, stream));
                from = until;
            }
        };
        for (begin, end) in stderr.iter().filter(|(_, end)| *end > range.start) {
            add(*begin, PieceStream::Messages);
            add(*end, PieceStream::Stderr);
        }
        let is_partial = stderr.len() >= STDERR_PARTS_MAX;
        add(range.end, if is_partial { PieceStream::Mixed } else { PieceStream::Messages });
        streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8], stderr: Option<Vec<(u64, u64)>>) -> MessageFile {
        let path = std::env::temp_dir().join(format!("cronhold-messages-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).expect("written");
        let limits = OutputLimits { head: 10, tail: 20 };
        let opened = MessageFile { stderr, ..MessageFile::ended(&path, None, limits).expect("there") };
        std::fs::remove_file(&path).expect("there");
        opened
    }

    #[test]
    fn middle_of_a_long_file_is_a_gap() {
        let text: Vec<u8> = (0..100).collect();
        let long = file(&text, None);
        assert_eq!(long.next(0).expect("there"), FilePiece::Bytes(text[..10].to_vec()));
        assert_eq!(long.next(10).expect("there"), FilePiece::Gap(70));
        assert_eq!(long.next(60).expect("there"), FilePiece::Gap(20));
        assert_eq!(long.next(80).expect("there"), FilePiece::Bytes(text[80..].to_vec()));
        assert_eq!(long.next(100).expect("there"), FilePiece::End);
        let short = file(&text[..30], None);
        assert_eq!(short.next(10).expect("there"), FilePiece::Bytes(text[10..30].to_vec()));
    }

    #[test]
    fn bytes_belong_to_the_stream_that_the_keeper_recorded() {
        let split = |stderr, range| file(b"x", stderr).streams(range);
        assert_eq!(split(None, 3..9), [(3..9, PieceStream::Mixed)]);
        assert_eq!(split(Some(Vec::new()), 3..9), [(3..9, PieceStream::Messages)]);
        let parts = || Some(vec![(1, 2), (4, 6), (8, 20)]);
        let expected = [
            (3..4, PieceStream::Messages),
            (4..6, PieceStream::Stderr),
            (6..8, PieceStream::Messages),
            (8..9, PieceStream::Stderr),
        ];
        assert_eq!(split(parts(), 3..9), expected);
        let many = (0..STDERR_PARTS_MAX as u64).map(|part| (part * 2, part * 2 + 1)).collect::<Vec<_>>();
        let end = STDERR_PARTS_MAX as u64 * 2 - 1;
        assert_eq!(
            split(Some(many), end - 1..end + 5),
            [(end - 1..end, PieceStream::Stderr), (end..end + 5, PieceStream::Mixed)]
        );
    }
}
