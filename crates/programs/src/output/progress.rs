//! How far an output is stored, and where its file goes on. A program can empty its file by opening it anew, as
//! `> /dev/stderr` does: then the file begins again somewhere in the stored text, after a line that says so. That is seen
//! by what was stored first and last of the file, which is not in its place any more.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::{LIVE_MAX, OUTPUT, length, read};

/// The line that stands where a file was emptied. What was written before and not stored by then is gone.
pub const EMPTIED: &str = "\n[… the program emptied or overwrote its output here; \
    write >&2 or >> /dev/stderr instead of > /dev/stderr …]\n";
/// Bytes at either end of what is stored by which the place in a file is known again.
pub const EDGE: u64 = 256;

/// How far an output is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are stored.
    pub stored: u64,
    /// Where in the stored text the file begins.
    pub base: u64,
    /// The first and the last bytes that were stored of the file.
    first: Vec<u8>,
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
    /// Of an output that an earlier life has stored so far, by its length, where in it the file begins, and the first and
    /// the last [`EDGE`] bytes from there on.
    pub fn of_earlier(stored: u64, base: u64, first: Vec<u8>, last: Vec<u8>) -> Self {
        Self { stored, base, first, last, seen: None }
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
        Self { stored, base: stored, ..Self::default() }
    }

    /// More of the file is stored, which was like this before it was read.
    pub(super) fn grown(mut self, bytes: &[u8], seen: Seen) -> Self {
        self.stored += bytes.len() as u64;
        let edge = length(EDGE);
        self.first.extend_from_slice(&bytes[..bytes.len().min(edge.saturating_sub(self.first.len()))]);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(edge)..]);
        self.last.drain(..self.last.len().saturating_sub(edge));
        self.seen = Some(seen);
        self
    }

    /// The file is looked into again, even if nothing changes.
    pub(super) fn unseen(self) -> Self {
        Self { seen: None, ..self }
    }

    /// Whether a file still has what was stored of it. What may have been punched out is not asked for.
    pub(super) fn fits(&self, file: &File) -> io::Result<bool> {
        let offset = self.offset();
        let from = offset - self.last.len() as u64;
        if !self.begins(file)? {
            return Ok(false);
        }
        if read(file, from, offset)? == self.last {
            return Ok(true);
        }
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        Ok(offset > OUTPUT.head && from < sure_from)
    }

    /// Whether a file begins as it was stored, as far as it goes.
    pub(super) fn begins(&self, file: &File) -> io::Result<bool> {
        Ok(self.first.starts_with(&read(file, 0, self.first.len() as u64)?))
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
