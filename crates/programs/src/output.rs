//! What a program writes, from its file into a store. The keeper appends both streams to one file per run, and punches
//! out the middle of one that grows too long. A store gets the file's bytes in their order while the program runs, up to
//! [`LIVE_MAX`]; when more was written, the end comes when the program has ended, after a line that says how much is
//! missing.
//!
//! Offsets in a store are those of the text that is stored. Where to go on follows from the length of what is stored: up
//! to [`LIVE_MAX`] bytes are the beginning of the file, and more are the whole, because the end of a long output is
//! appended in one piece. Only a file that its program has truncated begins later in the stored text; [`RestartLog`]
//! records where.

mod progress;
mod restarts;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cronhold_core::RunId;
use cronhold_core::record::Written;

use crate::launch::OUTPUT;

use progress::Seen;
pub use progress::{EDGE, EMPTIED, Piece, Progress};
pub use restarts::{Restart, RestartLog};

/// What is stored while a program runs: as much as the keeper leaves in the file.
pub const LIVE_MAX: u64 = OUTPUT.head + OUTPUT.tail;
/// Bytes that are appended at once, but for the end of a long output.
pub const PIECE_MAX: u64 = 256 * 1024;
/// Lines that stay with the run, and letters of each.
const LINES_MAX: usize = 10;
const LINE_MAX: usize = 1_000;
/// Bytes at the end in which the last lines are looked for.
const LINES_BYTES: u64 = 64 * 1024;

/// The file that a run's program writes to.
#[derive(Debug, Clone)]
pub struct OutputFile(PathBuf);

impl OutputFile {
    /// The file of a run, in the daemon's own directory.
    pub fn new(data: &Path, run: RunId) -> Self {
        Self(data.join("keeper/outputs").join(run.to_string()))
    }

    /// Whether there may be something to be stored while the program runs. Cheap.
    pub fn has_changed(&self, progress: &Progress) -> bool {
        progress.stored < LIVE_MAX && self.seen().is_some_and(|seen| progress.seen != Some(seen))
    }

    /// The next bytes to be stored while the program runs; nothing when there are none, or when they are gone from the
    /// file already.
    pub fn grown(&self, progress: &Progress) -> io::Result<Piece> {
        let file = File::open(&self.0)?;
        let found = file.metadata()?;
        let (mut bytes, start) = begin(&file, progress)?;
        // No room is left for the line. The end has room for all.
        if start.is_over() {
            return Ok(Piece { bytes: Vec::new(), after: progress.clone().grown(&[], Seen::new(&found)) });
        }
        let offset = start.offset();
        let until = found.len().min(LIVE_MAX - start.base).min(offset + PIECE_MAX);
        let mut more = read(&file, offset, until)?;
        // The file may have been emptied while it was read; that is seen the next time.
        if !start.fits(&file)? {
            return Ok(Piece { bytes: Vec::new(), after: progress.clone().unseen() });
        }
        // The middle may have been punched out while it was read. What is behind this is there for sure.
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        if offset < sure_from {
            more.truncate(length(OUTPUT.head.saturating_sub(offset)));
        }
        // What is left for the next piece is looked for even if nothing changes.
        let is_all = more.len() as u64 == found.len().saturating_sub(offset);
        let after = start.grown(&more, Seen::new(&found));
        let after = if is_all { after } else { after.unseen() };
        bytes.extend(more);
        Ok(Piece { bytes, after })
    }

    /// The next bytes to be stored of an output that is over and has so many bytes; none when all is stored. When nobody
    /// knows how many, they are those of the file.
    pub fn rest(&self, progress: &Progress, total: Option<u64>) -> io::Result<Option<Piece>> {
        let seen = self.seen();
        let known = total.unwrap_or_else(|| seen.map_or(0, Seen::length));
        let is_stored = progress.offset() == known && (known == 0 || seen == progress.seen);
        if progress.is_over() || is_stored || (total.is_none() && self.is_cut(progress, known)?) {
            return Ok(None);
        }
        self.rest_of(progress, known)
    }

    /// Whether a machine that went down has kept less of the file than was stored.
    fn is_cut(&self, progress: &Progress, found: u64) -> io::Result<bool> {
        let is_shorter = found < progress.offset();
        Ok(is_shorter && (found == 0 || progress.begins(&File::open(&self.0)?)?))
    }

    fn rest_of(&self, progress: &Progress, total: u64) -> io::Result<Option<Piece>> {
        let file = File::open(&self.0)?;
        let seen = Seen::new(&file.metadata()?);
        let (mut bytes, start) = begin(&file, progress)?;
        let offset = start.offset();
        if bytes.is_empty() && offset >= total {
            return Ok(None);
        }
        let (from, until) = if start.base + total <= LIVE_MAX {
            (offset, total.min(offset + PIECE_MAX))
        } else if start.stored < OUTPUT.head {
            (offset, (OUTPUT.head - start.base).min(offset + PIECE_MAX))
        } else {
            (offset.max(total.saturating_sub(OUTPUT.tail)), total)
        };
        if from > offset {
            bytes.extend(mark(from - offset).into_bytes());
        }
        let more = read(&file, from, until)?;
        if (more.len() as u64) < until - from {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file is shorter than it was"));
        }
        bytes.extend(&more);
        let mut after = start.grown(&more, seen);
        after.stored = progress.stored + bytes.len() as u64;
        Ok(Some(Piece { bytes, after }))
    }

    /// How much was written, and the last lines.
    pub fn written(&self, progress: &Progress, total: u64) -> io::Result<Written> {
        let bytes = progress.base + total;
        if total == 0 {
            return Ok(Written { bytes, tail: Vec::new() });
        }
        let from = total.saturating_sub(LINES_BYTES);
        let end = read(&File::open(&self.0)?, from, total)?;
        Ok(Written { bytes, tail: last_lines(&end, from > 0) })
    }

    fn seen(&self) -> Option<Seen> {
        fs::metadata(&self.0).ok().map(|found| Seen::new(&found))
    }
}

/// Where a file goes on, and what is stored before that: the line that says so when it was emptied.
fn begin(file: &File, progress: &Progress) -> io::Result<(Vec<u8>, Progress)> {
    Ok(match progress.fits(file)? {
        true => (Vec::new(), progress.clone()),
        false => (EMPTIED.as_bytes().to_vec(), progress.emptied()),
    })
}

/// The line that stands for what is left out.
fn mark(bytes: u64) -> String {
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

/// The bytes of a range, or as many of them as there are.
fn read(file: &File, from: u64, until: u64) -> io::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use cronhold_schedule::Instant;

    use super::*;

    /// A file with a program's output, removed at the end.
    struct Scratch(OutputFile);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cronhold-output-{name}-{}", std::process::id()));
            fs::write(&path, "").expect("written");
            Self(OutputFile(path))
        }

        /// Writes a range, each byte a function of where it is.
        fn write(&self, from: u64, until: u64) {
            let mut file = File::options().write(true).open(&self.0.0).expect("there");
            file.seek(SeekFrom::Start(from)).expect("a file");
            file.write_all(&text(from, until)).expect("written");
        }

        /// Writes another text into it, from the beginning.
        fn empty(&self, text: &str) {
            fs::write(&self.0.0, text).expect("written");
        }

        /// Stores what is there, as long as the program runs.
        fn live(&self, stored: &mut Stored) {
            while self.0.has_changed(&stored.progress) {
                let piece = self.0.grown(&stored.progress).expect("there");
                let is_last = piece.bytes.is_empty();
                stored.add(piece);
                if is_last {
                    return;
                }
            }
        }

        fn finish(&self, stored: &mut Stored, total: impl Into<Option<u64>> + Copy) {
            while let Some(piece) = self.0.rest(&stored.progress, total.into()).expect("there") {
                assert!(!piece.bytes.is_empty());
                stored.add(piece);
            }
        }
    }

    /// A store with one output.
    #[derive(Default)]
    struct Stored {
        text: Vec<u8>,
        progress: Progress,
    }

    impl Stored {
        fn add(&mut self, piece: Piece) {
            self.text.extend(piece.bytes);
            self.progress = piece.after;
            assert_eq!(self.progress.stored, self.text.len() as u64);
        }

        fn shown(&self) -> String {
            String::from_utf8_lossy(&self.text).replace(EMPTIED, "|")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0.0);
        }
    }

    fn text(from: u64, until: u64) -> Vec<u8> {
        (from..until).map(|at| b'a' + u8::try_from((at / 7) % 26).expect("small")).collect()
    }

    #[test]
    fn short_outputs_are_stored_as_they_are() {
        let scratch = Scratch::new("short");
        let mut stored = Stored::default();
        scratch.live(&mut stored);
        assert!(!scratch.0.has_changed(&stored.progress));
        scratch.write(0, 700_000);
        assert!(scratch.0.has_changed(&stored.progress));
        scratch.live(&mut stored);
        assert_eq!(stored.text.len(), 700_000);
        // What a process in the background writes later is not of this run.
        scratch.write(700_000, 900_000);
        scratch.finish(&mut stored, 800_000);
        assert!(stored.text == text(0, 800_000));
    }

    #[test]
    fn long_outputs_keep_both_ends() {
        let total = LIVE_MAX + 5_000_000;
        // How much was stored while the program ran, and where the mark comes.
        for (live, marked) in [(0, OUTPUT.head), (OUTPUT.head, OUTPUT.head), (3_000_000, 3_000_000)] {
            let scratch = Scratch::new(&format!("long-{live}"));
            let mut stored = Stored::default();
            scratch.write(0, live);
            scratch.live(&mut stored);
            // What is punched out reads as zeros.
            scratch.empty("");
            scratch.write(0, OUTPUT.head);
            scratch.write(total - OUTPUT.tail, total);
            scratch.live(&mut stored);
            assert_eq!(stored.text.len() as u64, live.max(OUTPUT.head), "nothing is taken from the hole");
            scratch.finish(&mut stored, total);
            let gap = total - OUTPUT.tail - marked;
            let expected = [text(0, marked), mark(gap).into_bytes(), text(total - OUTPUT.tail, total)].concat();
            assert!(stored.text == expected, "{live}");
            assert_eq!(scratch.0.rest(&stored.progress, Some(total)).expect("there"), None);
        }
    }

    #[test]
    fn one_that_was_followed_to_the_end_has_no_mark() {
        let scratch = Scratch::new("followed");
        let mut stored = Stored::default();
        // Nothing is punched out as long as the file is not longer.
        scratch.write(0, LIVE_MAX);
        scratch.live(&mut stored);
        assert_eq!(stored.text.len() as u64, LIVE_MAX);
        scratch.write(LIVE_MAX, LIVE_MAX + 10);
        scratch.finish(&mut stored, LIVE_MAX + 10);
        assert!(stored.text == text(0, LIVE_MAX + 10));
    }

    #[test]
    fn a_file_that_was_emptied_goes_on_from_its_beginning() {
        // What was there, what was there next, what is there in the end, and what is stored.
        for (first, then, end, shown) in [
            ("one two\n", "x\n", "x\ny\n", "one two\n|x\ny\n"),
            // As long as before, and longer.
            ("step 1\n", "step 2\n", "step 3\n", "step 1\n|step 2\n|step 3\n"),
            ("one\n", "three\nfour\n", "three\nfour\n", "one\n|three\nfour\n"),
            // With the same end in the same place.
            ("a one\n", "b one\n", "b one\nx\n", "a one\n|b one\nx\n"),
            ("one\n", "", "", "one\n|"),
            ("one\n", "", "two\n", "one\n|two\n"),
            // Before anything was stored it cannot be seen.
            ("", "x\n", "x\n", "x\n"),
        ] {
            let scratch = Scratch::new("emptied");
            let mut stored = Stored::default();
            for text in [first, then] {
                scratch.empty(text);
                // Two looks may be within one tick of the clock of files.
                stored.progress.seen = None;
                scratch.live(&mut stored);
            }
            scratch.empty(end);
            stored.progress.seen = None;
            scratch.finish(&mut stored, end.len() as u64);
            assert_eq!(stored.shown(), shown);
            let written = scratch.0.written(&stored.progress, end.len() as u64).expect("there");
            assert_eq!(written.bytes, stored.text.len() as u64, "{shown}");
        }
    }

    #[test]
    fn later_daemon_continues_truncated_file_whatever_the_program_prints() {
        // The program may print the notice itself; only the recorded offset counts.
        for text in ["four\n".to_owned(), format!("four\n{EMPTIED}")] {
            let scratch = Scratch::new("later");
            let mut stored = Stored::default();
            scratch.empty(EMPTIED);
            scratch.live(&mut stored);
            let before = stored.progress.base;
            scratch.empty(&text);
            scratch.live(&mut stored);
            let length = stored.text.len() as u64;
            let base = Restart { previous: before, latest: stored.progress.base }.base(length);
            let of_file = stored.text[super::length(base)..].to_vec();
            stored.progress = Progress::of_earlier(length, base, of_file.clone(), of_file);
            let whole = format!("{text}five\n");
            scratch.empty(&whole);
            scratch.finish(&mut stored, whole.len() as u64);
            assert_eq!(String::from_utf8_lossy(&stored.text), format!("{EMPTIED}{EMPTIED}{whole}"));
        }
    }

    #[test]
    fn many_that_were_emptied_are_not_longer_than_one() {
        let scratch = Scratch::new("often");
        let mut stored = Stored::default();
        for letter in ["1", "2", "3", "4"] {
            scratch.empty(&letter.repeat(4_000_000));
            stored.progress.seen = None;
            scratch.live(&mut stored);
        }
        assert_eq!(stored.text.len() as u64, LIVE_MAX);
        scratch.empty("");
        scratch.write(0, 5_000_000);
        scratch.finish(&mut stored, 5_000_000);
        assert!(stored.text.ends_with(&[EMPTIED.as_bytes(), &text(0, 5_000_000)].concat()));
        assert_eq!(stored.text.len() as u64, LIVE_MAX + EMPTIED.len() as u64 + 5_000_000);
    }

    #[test]
    fn of_one_that_was_lost_all_is_stored_that_is_there() {
        let scratch = Scratch::new("lost");
        let mut stored = Stored::default();
        scratch.empty("one\n");
        scratch.live(&mut stored);
        scratch.empty("one\ntwo\n");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n");
        // A machine that went down may have kept less.
        scratch.empty("on");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n");
        // One that was emptied and has less than before is not cut off.
        scratch.empty("x\n");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n|x\n");
        fs::remove_file(&scratch.0.0).expect("there");
        scratch.finish(&mut stored, None);
        scratch.finish(&mut Stored::default(), None);
    }

    #[test]
    fn marks_in_words() {
        for (bytes, text) in [(7, "7"), (999, "999"), (1_000, "1,000"), (123_456_789, "123,456,789")] {
            assert_eq!(mark(bytes), format!("\n[… {text} bytes left out …]\n"));
        }
    }

    #[test]
    fn the_last_lines() {
        let many: String = (0..30).map(|number| format!("line {number}\n")).collect();
        let ten: Vec<String> = (20..30).map(|number| format!("line {number}")).collect();
        assert_eq!(last_lines(many.as_bytes(), true), ten);
        for (text, is_cut, expected) in [
            ("a\n\nb", false, vec!["a", "", "b"]),
            ("a\r\nb\r\n", false, vec!["a", "b"]),
            ("\n", false, vec![""]),
            ("end of it\nb\n", true, vec!["…end of it", "b"]),
        ] {
            assert_eq!(last_lines(text.as_bytes(), is_cut), expected, "{text:?}");
        }
        assert_eq!(last_lines(b"caf\xe9", false), ["caf\u{fffd}"]);
        let long = "ä".repeat(LINE_MAX + 1);
        assert_eq!(last_lines(long.as_bytes(), false), [format!("{}…", "ä".repeat(LINE_MAX))]);
    }

    #[test]
    fn counts_all_that_was_written() {
        let scratch = Scratch::new("counts");
        fs::write(&scratch.0.0, "one\ntwo\nlater\n").expect("written");
        let none = Progress::default();
        let written = scratch.0.written(&none, 8).expect("there");
        assert_eq!(written, Written { bytes: 8, tail: vec!["one".to_owned(), "two".to_owned()] });
        let nowhere = OutputFile::new(Path::new("/no/such"), RunId::from_key(Instant::EPOCH, "x"));
        assert_eq!(nowhere.written(&none, 0).expect("nothing to read"), Written::default());
        assert!(nowhere.written(&none, 1).is_err() && !nowhere.has_changed(&none));
    }
}
