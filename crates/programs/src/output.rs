//! What a program writes, from its file into a store. The keeper appends both streams to one file per run, and punches
//! out the middle of one that grows too long. A store gets the file's bytes in their order while the program runs, up to
//! [`LIVE_MAX`]; when more was written, the end comes when the program has ended, after a line that says how much is
//! missing.
//!
//! Offsets in a store are those of the text that is stored. Where to go on follows from how much is stored alone, so
//! that nothing has to be remembered beside it: up to [`LIVE_MAX`] bytes are the beginning of the file, and more are the
//! whole, because the end of a long output is appended in one piece.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cronhold_core::RunId;
use cronhold_core::record::Written;

use crate::launch::OUTPUT;

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

    /// Whether there is more than so much to be stored while the program runs. Cheap.
    pub fn has_grown(&self, stored: u64) -> bool {
        stored < LIVE_MAX && fs::metadata(&self.0).is_ok_and(|found| found.len() > stored)
    }

    /// The next bytes to be stored while the program runs; nothing when there are none, or when they are gone from the
    /// file already.
    pub fn grown(&self, stored: u64) -> io::Result<Vec<u8>> {
        let file = File::open(&self.0)?;
        let until = file.metadata()?.len().min(LIVE_MAX).min(stored + PIECE_MAX);
        let mut bytes = read(&file, stored, until)?;
        // The middle may have been punched out while it was read. What is behind this is there for sure.
        let sure_from = file.metadata()?.len().saturating_sub(OUTPUT.tail);
        if stored < sure_from {
            bytes.truncate(length(OUTPUT.head.saturating_sub(stored)));
        }
        Ok(bytes)
    }

    /// The next bytes to be stored of an output that is over and has so many bytes; nothing when all is stored.
    pub fn rest(&self, stored: u64, total: u64) -> io::Result<Vec<u8>> {
        if is_whole(stored, total) {
            return Ok(Vec::new());
        }
        let file = File::open(&self.0)?;
        if total <= LIVE_MAX {
            return read(&file, stored, total.min(stored + PIECE_MAX));
        }
        if stored < OUTPUT.head {
            return read(&file, stored, OUTPUT.head.min(stored + PIECE_MAX));
        }
        let from = stored.max(total - OUTPUT.tail);
        let mut bytes = if from > stored { mark(from - stored).into_bytes() } else { Vec::new() };
        bytes.extend(read(&file, from, total)?);
        Ok(bytes)
    }

    /// How much was written, and the last lines.
    pub fn written(&self, total: u64) -> io::Result<Written> {
        if total == 0 {
            return Ok(Written::default());
        }
        let from = total.saturating_sub(LINES_BYTES);
        let bytes = read(&File::open(&self.0)?, from, total)?;
        Ok(Written { bytes: total, tail: last_lines(&bytes, from > 0) })
    }
}

/// Whether all that is to be stored of an output is stored.
pub fn is_whole(stored: u64, total: u64) -> bool {
    stored >= total || stored > LIVE_MAX
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

        /// Stores what is there, as long as the program runs.
        fn live(&self, stored: &mut Vec<u8>) {
            loop {
                let more = self.0.grown(stored.len() as u64).expect("there");
                if more.is_empty() {
                    return;
                }
                stored.extend(more);
            }
        }

        fn finish(&self, stored: &mut Vec<u8>, total: u64) {
            while !is_whole(stored.len() as u64, total) {
                let more = self.0.rest(stored.len() as u64, total).expect("there");
                assert!(!more.is_empty());
                stored.extend(more);
            }
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
        let mut stored = Vec::new();
        scratch.live(&mut stored);
        assert!(!scratch.0.has_grown(0));
        scratch.write(0, 700_000);
        assert!(scratch.0.has_grown(0));
        scratch.live(&mut stored);
        assert_eq!(stored.len(), 700_000);
        // What a process in the background writes later is not of this run.
        scratch.write(700_000, 900_000);
        scratch.finish(&mut stored, 800_000);
        assert!(stored == text(0, 800_000));
    }

    #[test]
    fn long_outputs_keep_both_ends() {
        let total = LIVE_MAX + 5_000_000;
        // How much was stored while the program ran, and where the mark comes.
        for (live, marked) in [(0, OUTPUT.head), (OUTPUT.head, OUTPUT.head), (3_000_000, 3_000_000)] {
            let scratch = Scratch::new(&format!("long-{live}"));
            let mut stored = Vec::new();
            scratch.write(0, live);
            scratch.live(&mut stored);
            // What is punched out reads as zeros.
            scratch.write(0, OUTPUT.head);
            scratch.write(total - OUTPUT.tail, total);
            scratch.live(&mut stored);
            assert_eq!(stored.len() as u64, live.max(OUTPUT.head), "nothing is taken from the hole");
            scratch.finish(&mut stored, total);
            let gap = total - OUTPUT.tail - marked;
            let expected = [text(0, marked), mark(gap).into_bytes(), text(total - OUTPUT.tail, total)].concat();
            assert!(stored == expected, "{live}");
            assert!(is_whole(stored.len() as u64, total));
        }
    }

    #[test]
    fn one_that_was_followed_to_the_end_has_no_mark() {
        let scratch = Scratch::new("followed");
        let mut stored = Vec::new();
        scratch.write(0, LIVE_MAX + 10);
        // The keeper has not punched anything yet that was not read.
        let mut at = 0;
        while at < LIVE_MAX {
            let until = (at + PIECE_MAX).min(LIVE_MAX);
            stored.extend(text(at, until));
            at = until;
        }
        scratch.finish(&mut stored, LIVE_MAX + 10);
        assert!(stored == text(0, LIVE_MAX + 10));
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
        let written = scratch.0.written(8).expect("there");
        assert_eq!(written, Written { bytes: 8, tail: vec!["one".to_owned(), "two".to_owned()] });
        let nowhere = OutputFile::new(Path::new("/no/such"), RunId::from_key(Instant::EPOCH, "x"));
        assert_eq!(nowhere.written(0).expect("nothing to read"), Written::default());
        assert!(nowhere.written(1).is_err() && !nowhere.has_grown(0));
    }
}
