//! What was learned from job files, in a file in the data directory, so that a start need not read files that have not
//! changed. The file can be removed at any time. It counts only if nothing has changed that the outlines depend on: the
//! program, the time zones, the calendars and the defaults of the directories. A damaged file is ignored as a whole.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::outline::JobOutline;
use super::walk::{FilePath, FileStamp};

/// Longest line. A line is as long as the references of a job.
const LINE_MAX: u64 = 4 << 20;

/// The cache of a data directory.
#[derive(Debug, Clone)]
pub struct JobFileCache {
    path: PathBuf,
    /// The program and the time zones, as text.
    tag: String,
}

/// The first line: what the outlines depend on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CacheHeader {
    tag: String,
    basis: String,
}

/// A line for one job file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CachedFile {
    /// Index of its directory.
    pub(super) root: usize,
    pub(super) path: FilePath,
    pub(super) stamp: FileStamp,
    /// Digest of its text.
    pub(super) digest: u64,
    pub(super) outline: JobOutline,
}

/// The last line: a digest of all lines before it.
#[derive(Debug, Serialize, Deserialize)]
struct CacheEnd {
    digest: u64,
}

impl JobFileCache {
    /// The cache in a file. `tag` must differ if the program or the time zones do.
    pub fn new(path: PathBuf, tag: String) -> Self {
        Self { path, tag }
    }

    /// Passes the cached files to `take`. Returns whether all of them could be read; otherwise none of them counts.
    pub(super) fn read(&self, basis: &str, mut take: impl FnMut(CachedFile)) -> bool {
        let Ok(file) = File::open(&self.path) else { return false };
        let mut lines = CacheLines { file: BufReader::new(file), hasher: DefaultHasher::new(), line: Vec::new() };
        let expected = CacheHeader { tag: self.tag.clone(), basis: basis.to_owned() };
        if lines.next().and_then(|line| serde_json::from_slice(line).ok()) != Some(expected) {
            return false;
        }
        loop {
            let digest = lines.hasher.finish();
            let Some(line) = lines.next() else { return false };
            if let Ok(file) = serde_json::from_slice::<CachedFile>(line) {
                take(file);
                continue;
            }
            return serde_json::from_slice::<CacheEnd>(line).is_ok_and(|end| end.digest == digest);
        }
    }

    /// Replaces the cache.
    pub(super) fn write<'a>(&self, basis: &str, files: impl Iterator<Item = CachedFileRef<'a>>) -> io::Result<()> {
        let new = self.path.with_extension("new");
        // It has parts of job files, which others may not be allowed to read.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut out = CacheWriter { out: BufWriter::new(file), hasher: DefaultHasher::new() };
        out.line(&CacheHeader { tag: self.tag.clone(), basis: basis.to_owned() })?;
        for file in files {
            out.line(&file)?;
        }
        let digest = out.hasher.finish();
        out.line(&CacheEnd { digest })?;
        out.out.flush()?;
        fs::rename(&new, &self.path)
    }
}

/// [`CachedFile`] for writing.
#[derive(Debug, Serialize)]
pub(super) struct CachedFileRef<'a> {
    pub(super) root: usize,
    pub(super) path: &'a FilePath,
    pub(super) stamp: FileStamp,
    pub(super) digest: u64,
    pub(super) outline: &'a JobOutline,
}

struct CacheLines {
    file: BufReader<File>,
    hasher: DefaultHasher,
    line: Vec<u8>,
}

impl CacheLines {
    /// The next line; `None` at the end, and if it cannot be read.
    fn next(&mut self) -> Option<&[u8]> {
        self.line.clear();
        Read::by_ref(&mut self.file).take(LINE_MAX).read_until(b'\n', &mut self.line).ok()?;
        self.hasher.write(&self.line);
        self.line.strip_suffix(b"\n")
    }
}

struct CacheWriter {
    out: BufWriter<File>,
    hasher: DefaultHasher,
}

impl CacheWriter {
    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.hasher.write(&line);
        self.out.write_all(&line)
    }
}
