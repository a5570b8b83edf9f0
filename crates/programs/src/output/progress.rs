//! How far an output is stored, and where its file goes on. A program can empty its file by opening it anew, as
//! `> /dev/stderr` does: then the file begins again somewhere in the stored text, after a line that says so. That is seen
//! by what was stored last, which is not in its place any more.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::{LIVE_MAX, OUTPUT, OutputFile, read};

/// The line that stands where a file was emptied. What was written before and not stored by then is gone.
pub const EMPTIED: &str = "\n[… the program emptied its output here; \
    write >&2 or >> /dev/stderr instead of > /dev/stderr …]\n";
/// Bytes by which the place in a file is known again.
pub const LAST_MAX: usize = 256;

/// How far an output is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are stored.
    pub stored: u64,
    /// Where in the stored text the file begins.
    pub(super) base: u64,
    /// The last bytes that were stored of the file.
    last: Vec<u8>,
    /// The file when it was last looked into.
    pub(super) seen: Option<Seen>,
}

/// What a file that is written to does not keep: its length, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    length: u64,
    changed: (i64, i64),
}

/// The next bytes to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// They may be none.
    pub bytes: Vec<u8>,
    /// How far the output is stored with them.
    pub after: Progress,
}

impl Progress {
    /// Of an output that an earlier life has stored so far, by its length and its last bytes. It holds if its file was
    /// never emptied, which [`OutputFile::goes_on`] tells.
    pub fn of_earlier(stored: u64, last: Vec<u8>) -> Self {
        Self { stored, base: 0, last, seen: None }
    }

    /// The same by all that is stored: its file begins after the last line that says that it was emptied.
    pub fn of_emptied(all: &[u8]) -> Self {
        let mark = EMPTIED.as_bytes();
        let found = all.windows(mark.len()).rposition(|bytes| bytes == mark);
        let base = found.map_or(0, |at| at + mark.len());
        let last = all[base.max(all.len().saturating_sub(LAST_MAX))..].to_vec();
        Self { stored: all.len() as u64, base: base as u64, last, seen: None }
    }

    /// Whether nothing more is stored: the end of a long output is appended in one piece.
    pub(super) fn is_over(&self) -> bool {
        self.stored > LIVE_MAX
    }

    /// Where the file goes on.
    pub(super) fn offset(&self) -> u64 {
        self.stored - self.base
    }

    /// The file was emptied, and the line that says so is stored.
    pub(super) fn emptied(&self) -> Self {
        let stored = self.stored + EMPTIED.len() as u64;
        Self { stored, base: stored, last: Vec::new(), seen: None }
    }

    /// More of the file is stored, which was like this before it was read.
    pub(super) fn grown(mut self, bytes: &[u8], seen: Seen) -> Self {
        self.stored += bytes.len() as u64;
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_MAX)..]);
        self.last.drain(..self.last.len().saturating_sub(LAST_MAX));
        self.seen = Some(seen);
        self
    }

    /// Whether a file still has what was stored last of it. What may have been punched out is not asked for.
    pub(super) fn fits(&self, file: &File) -> io::Result<bool> {
        let offset = self.offset();
        let from = offset - self.last.len() as u64;
        if read(file, from, offset)? == self.last {
            return Ok(true);
        }
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        Ok(offset > OUTPUT.head && from < sure_from)
    }
}

impl Seen {
    pub(super) fn new(found: &Metadata) -> Self {
        Self { length: found.len(), changed: (found.mtime(), found.mtime_nsec()) }
    }

    pub(super) fn length(self) -> u64 {
        self.length
    }
}

impl OutputFile {
    /// Whether the file has what was stored last where it should be. One that cannot be read has not.
    pub fn goes_on(&self, progress: &Progress) -> bool {
        File::open(&self.0).and_then(|file| progress.fits(&file)).unwrap_or(false)
    }
}
