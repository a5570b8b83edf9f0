//! Moves the output of programs from their files into the store. The keeper lets a program append both streams to one
//! file per run, and punches out the middle of a file that grows too long. The store gets the bytes of the file in
//! order while the program runs, up to a limit. If the program wrote more, the end follows when it has ended, after a
//! line that states how many bytes are left out. What the keeper punches out is neither read nor sent. A store with a
//! limit on outputs gets less than the keeper keeps.
//!
//! Outputs must not delay commits and heartbeats, which use the same store. So they are appended in pieces of at most
//! [`PIECE_MAX`] bytes, few at a time, and `OutputBudget` limits the bytes per second. A program that writes faster is
//! not slowed down: its output waits in the file. Outputs of which little is stored come first, so that the output of a
//! quiet program, and with it the report of its end, does not wait for a chatty one.
//!
//! Offsets in the store are those of the stored text. Where to continue in the file follows from its length, and from
//! the anchor that `RestartLog` records when the two differ.

mod budget;
mod mask;
mod progress;
mod restarts;
mod shipper;
mod streams;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::OutputSummary;
use cronhold_keeper::{OutputLimits, stderr_parts};

pub(crate) use mask::SecretMask;
pub use progress::TRUNCATED;
use progress::{EDGE, FileState, OutputPiece, OutputProgress};
pub(crate) use read as read_range;
use restarts::{Restart, RestartLog};
pub use shipper::OutputShipper;

/// How much of an output the keeper keeps in the file, and a store without a limit with it.
const OUTPUT: OutputLimits = OutputLimits::DEFAULT;
/// Bytes of one append, besides a notice.
const PIECE_MAX: u64 = 64 * 1024;
/// Lines that the run record keeps, and characters of each.
const LINES_MAX: usize = 10;
const LINE_MAX: usize = 1_000;
/// Bytes at the end of the output in which the last lines are searched.
const LINES_BYTES: u64 = 64 * 1024;

/// The file that a run's program writes to, as it is stored: without secrets.
#[derive(Debug, Clone)]
struct OutputFile {
    path: PathBuf,
    secrets: Arc<SecretMask>,
    /// How much of it is stored.
    limits: OutputLimits,
    /// Which parts are standard error, if the file is not one of the keeper's.
    stderr: Option<Vec<(u64, u64)>>,
}

/// How much of an output is stored in a store that keeps at most `most` bytes of each. The beginning and as much as the
/// end are stored while the program runs, the end and notices follow; together they are less than `most`.
fn stored_limits(most: Option<u64>) -> OutputLimits {
    let Some(part) = most.map(|most| most / 8) else { return OUTPUT };
    OutputLimits { head: part.min(OUTPUT.head), tail: part.saturating_mul(3).min(OUTPUT.tail) }
}

impl OutputFile {
    /// The file of a run, in the daemon's data directory.
    fn new(data: &Path, run: RunId, secrets: Arc<SecretMask>, limits: OutputLimits) -> Self {
        Self { path: keeper_output(data, run), secrets, limits, stderr: None }
    }

    /// A file elsewhere, which has no secrets.
    fn at(path: PathBuf, limits: OutputLimits) -> Self {
        Self { path, secrets: Arc::default(), limits, stderr: None }
    }

    /// The text of the messages of a plug-in.
    fn of_plugin(
        path: PathBuf,
        secrets: Arc<SecretMask>,
        stderr: Option<Vec<(u64, u64)>>,
        limits: OutputLimits,
    ) -> Self {
        Self { path, secrets, limits, stderr }
    }

    /// Bytes that are stored while the program runs.
    fn live_max(&self) -> u64 {
        self.limits.head + self.limits.tail
    }

    /// Whether there may be something to store while the program runs. Reads only metadata.
    fn has_changed(&self, progress: &OutputProgress) -> bool {
        progress.stored < self.live_max() && self.stamp().is_some_and(|stamp| progress.stamp != Some(stamp))
    }

    /// The next bytes to store while the program runs; empty if there are none, or if they were punched out already.
    fn grown(&self, progress: &OutputProgress) -> io::Result<OutputPiece> {
        let file = File::open(&self.path)?;
        let found = file.metadata()?;
        let (mut bytes, start) = self.begin(&file, progress)?;
        let offset = start.offset();
        // There is no room left for the notice, which is stored with the end of the output; or the keeper has punched out
        // what follows, and only the end is stored.
        let is_punched = offset >= OUTPUT.head && offset < found.len().saturating_sub(OUTPUT.tail);
        if start.stored >= self.live_max() || is_punched {
            return Ok(OutputPiece { bytes: Vec::new(), after: progress.clone().grown(&[], FileState::new(&found)) });
        }
        let until = found.len().min(offset + self.live_max() - start.stored).min(offset + PIECE_MAX);
        let mut more = self.secrets.read(&file, offset, self.secrets.settled(&file, until)?)?;
        // The program may have truncated the file while it was read; the next check detects that.
        if !start.fits(&file, &self.secrets)? {
            return Ok(OutputPiece { bytes: Vec::new(), after: progress.clone().unseen() });
        }
        // The keeper may have punched out the middle while it was read. What is behind this offset is intact.
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        if offset < sure_from {
            more.truncate(length(OUTPUT.head.saturating_sub(offset)));
        }
        // The rest is read with the next piece, even if the file does not change.
        let is_all = more.len() as u64 == found.len().saturating_sub(offset);
        let after = start.grown(&more, FileState::new(&found));
        let after = if is_all { after } else { after.unseen() };
        bytes.extend(more);
        Ok(OutputPiece { bytes, after })
    }

    /// The next bytes to store of an output whose program has ended; `None` if everything is stored. Without a known
    /// total the length of the file counts.
    fn rest(&self, progress: &OutputProgress, total: Option<u64>) -> io::Result<Option<OutputPiece>> {
        let stamp = self.stamp();
        let known = total.unwrap_or_else(|| stamp.map_or(0, FileState::length));
        let is_stored = progress.offset() == known && (known == 0 || stamp == progress.stamp);
        if progress.is_over() || is_stored || (total.is_none() && self.is_cut(progress, known)?) {
            return Ok(None);
        }
        self.rest_of(progress, known)
    }

    /// Whether the file is shorter than what was stored of it because the machine crashed.
    fn is_cut(&self, progress: &OutputProgress, found: u64) -> io::Result<bool> {
        let is_shorter = found < progress.offset();
        Ok(is_shorter && (found == 0 || progress.begins(&File::open(&self.path)?, &self.secrets)?))
    }

    fn rest_of(&self, progress: &OutputProgress, total: u64) -> io::Result<Option<OutputPiece>> {
        let file = File::open(&self.path)?;
        let stamp = FileState::new(&file.metadata()?);
        let (mut bytes, start) = self.begin(&file, progress)?;
        let offset = start.offset();
        if bytes.is_empty() && offset >= total {
            return Ok(None);
        }
        let OutputLimits { head, tail } = self.limits;
        let is_kept_whole = start.is_end() || start.anchor.before_file + total <= self.live_max();
        let is_head = !is_kept_whole && start.stored < head;
        let start = if is_kept_whole || is_head {
            start
        } else {
            let from = offset.max(total.saturating_sub(tail));
            let notice = if from > offset { gap_notice(from - offset) } else { String::new() };
            bytes.extend(notice.as_bytes());
            start.continued_at(from, notice.len())
        };
        let from = start.offset();
        let limit = if is_head { head - start.anchor.before_file } else { total };
        let until = limit.min(from + PIECE_MAX);
        let more = self.secrets.read(&file, from, until)?;
        if (more.len() as u64) < until - from {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the output file became shorter"));
        }
        bytes.extend(&more);
        let after = start.grown(&more, stamp);
        debug_assert_eq!(after.stored, progress.stored + bytes.len() as u64, "the store counts the same bytes");
        Ok(Some(OutputPiece { bytes, after }))
    }

    /// How much was written, and the last lines.
    fn written(&self, progress: &OutputProgress, total: u64) -> io::Result<OutputSummary> {
        let bytes = progress.anchor.before_file + total;
        if total == 0 {
            return Ok(OutputSummary { bytes, tail: Vec::new(), stderr: None });
        }
        let from = total.saturating_sub(LINES_BYTES);
        let end = self.secrets.read(&File::open(&self.path)?, from, total)?;
        let parts = match &self.stderr {
            Some(parts) => Some(parts.clone()),
            None => stderr_parts(&self.path)?,
        };
        let stderr = parts.map(|parts| streams::stored_stderr(&parts, progress, total, self.limits.head));
        Ok(OutputSummary { bytes, tail: last_lines(&end, from > 0), stderr })
    }

    /// Where to continue in the file, and what is stored before that: the notice, if the program truncated the file.
    fn begin(&self, file: &File, progress: &OutputProgress) -> io::Result<(Vec<u8>, OutputProgress)> {
        Ok(match progress.fits(file, &self.secrets)? {
            true => (Vec::new(), progress.clone()),
            false => (TRUNCATED.as_bytes().to_vec(), progress.truncated()),
        })
    }

    fn stamp(&self) -> Option<FileState> {
        fs::metadata(&self.path).ok().map(|found| FileState::new(&found))
    }
}

/// The file to which the keeper moves what a program writes, in the daemon's data directory.
fn keeper_output(data: &Path, run: RunId) -> PathBuf {
    data.join("keeper/outputs").join(run.to_string())
}

/// The notice that replaces omitted bytes.
pub(crate) fn gap_notice(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("\n[… {grouped} bytes left out …]\n")
}

fn last_lines(bytes: &[u8], is_cut: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let all = text.strip_suffix('\n').unwrap_or(&text);
    let mut lines: Vec<String> = all.rsplit('\n').take(LINES_MAX).map(shortened).collect();
    // The first line of what was read may have begun before it.
    if is_cut
        && all.matches('\n').count() < LINES_MAX
        && let Some(first) = lines.last_mut()
    {
        first.insert(0, '…');
    }
    lines.reverse();
    lines
}

fn shortened(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The bytes of a range, or as many of them as the file has.
pub(crate) fn read(file: &File, from: u64, until: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length(until.saturating_sub(from))];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
