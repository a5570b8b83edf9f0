//! How far an output is stored, and where to continue in its file. The end of a long output follows after a notice. A program can truncate its file by opening it again,
//! as `> /dev/stderr` does. Then the file begins again somewhere in the stored text, after a notice. A truncation is
//! detected by the first and the last bytes that were stored of the file, which are no longer at their offsets.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::restarts::FileAnchor;
use super::{OUTPUT, SecretMask, length, read};

/// The notice at the position where a program truncated its file. Output that was written before and not stored by then
/// is lost.
pub const TRUNCATED: &str = "\n[… the program emptied or overwrote its output here; \
    write >&2 or >> /dev/stderr instead of > /dev/stderr …]\n";
/// Bytes at either end of what is stored of a file by which a truncation is detected.
pub(super) const EDGE: u64 = 256;

/// How far an output is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OutputProgress {
    /// Bytes that are stored.
    pub(super) stored: u64,
    /// Where in the stored text the file continues.
    pub(super) anchor: FileAnchor,
    /// The first and the last bytes that were stored of the file from the anchor on.
    first: Vec<u8>,
    last: Vec<u8>,
    /// The file when it was last read.
    pub(super) stamp: Option<FileState>,
}

/// What changes when a file is written: its length and its modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    length: u64,
    changed: (i64, i64),
}

/// The next bytes to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputPiece {
    /// The bytes; may be empty.
    pub(super) bytes: Vec<u8>,
    /// How far the output is stored with them.
    pub(super) after: OutputProgress,
}

impl OutputProgress {
    /// The progress of an output of which `stored` bytes are stored; `first` and `last` are the first and the last
    /// [`EDGE`] bytes from its anchor on.
    pub(super) fn from_store(stored: u64, anchor: FileAnchor, first: Vec<u8>, last: Vec<u8>) -> Self {
        Self { stored, anchor, first, last, stamp: None }
    }

    /// Whether nothing more is stored: earlier versions appended the end of a long output in one piece, and recorded no
    /// anchor. They knew no limits of stores.
    pub(super) fn is_over(&self) -> bool {
        self.stored > OUTPUT.head + OUTPUT.tail && self.anchor == FileAnchor::default()
    }

    /// Whether this is the end of a long output, which is stored as far as it goes.
    pub(super) fn is_end(&self) -> bool {
        self.anchor.file > 0
    }

    /// Where to continue in the file.
    pub(super) fn offset(&self) -> u64 {
        self.stored - self.anchor.stored + self.anchor.file
    }

    /// The file was truncated, and the notice is stored.
    pub(super) fn truncated(&self) -> Self {
        let stored = self.stored + TRUNCATED.len() as u64;
        Self { stored, anchor: FileAnchor::beginning(stored), ..Self::default() }
    }

    /// A notice of this length is stored, and the file continues at a later offset.
    pub(super) fn continued_at(&self, file: u64, notice: usize) -> Self {
        let stored = self.stored + notice as u64;
        let anchor = FileAnchor { stored, file, before_file: self.anchor.before_file };
        Self { stored, anchor, ..Self::default() }
    }

    /// More of the file is stored. The stamp was taken before the file was read.
    pub(super) fn grown(mut self, bytes: &[u8], stamp: FileState) -> Self {
        self.stored += bytes.len() as u64;
        let edge = length(EDGE);
        self.first.extend_from_slice(&bytes[..bytes.len().min(edge.saturating_sub(self.first.len()))]);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(edge)..]);
        self.last.drain(..self.last.len().saturating_sub(edge));
        self.stamp = Some(stamp);
        self
    }

    /// The file is read again even if it does not change.
    pub(super) fn unseen(self) -> Self {
        Self { stamp: None, ..self }
    }

    /// Whether a file still has what was stored of it. What the keeper may have punched out is not compared.
    pub(super) fn fits(&self, file: &File, secrets: &SecretMask) -> io::Result<bool> {
        let offset = self.offset();
        let from = offset - self.last.len() as u64;
        if !self.begins(file, secrets)? {
            return Ok(false);
        }
        if secrets.is_same(&self.last, &read(file, from, offset)?) {
            return Ok(true);
        }
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        Ok(offset > OUTPUT.head && from < sure_from)
    }

    /// Whether a file begins as it was stored from the anchor on, as far as it goes.
    pub(super) fn begins(&self, file: &File, secrets: &SecretMask) -> io::Result<bool> {
        let from = self.anchor.file;
        let found = read(file, from, from + self.first.len() as u64)?;
        Ok(secrets.is_same(&self.first[..found.len()], &found))
    }
}

impl FileState {
    pub(super) fn new(found: &Metadata) -> Self {
        Self { length: found.len(), changed: (found.mtime(), found.mtime_nsec()) }
    }

    pub(super) fn length(self) -> u64 {
        self.length
    }
}
