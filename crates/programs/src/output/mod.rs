//! Moves the output of programs from their files into the store. The keeper lets a program append both streams to one
//! file per run, and punches out the middle of a file that grows too long. The store gets the bytes of the file in
//! order while the program runs, up to [`LIVE_MAX`]. If the program wrote more, the end follows when it has ended,
//! after a line that states how many bytes are left out. What the keeper punches out is neither read nor sent.
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

/// How much of an output the keeper keeps in the file, and the store with it.
const OUTPUT: OutputLimits = OutputLimits::DEFAULT;

/// Bytes that are stored while a program runs: as many as the keeper leaves in the file.
const LIVE_MAX: u64 = OUTPUT.head + OUTPUT.tail;
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
    /// Which parts are standard error, if the file is not one of the keeper's.
    stderr: Option<Vec<(u64, u64)>>,
}

impl OutputFile {
    /// The file of a run, in the daemon's data directory.
    fn new(data: &Path, run: RunId, secrets: Arc<SecretMask>) -> Self {
        Self { path: keeper_output(data, run), secrets, stderr: None }
    }

    /// A file elsewhere, which has no secrets.
    fn at(path: PathBuf) -> Self {
        Self { path, secrets: Arc::default(), stderr: None }
    }

    /// The text of the messages of a plug-in.
    fn of_plugin(path: PathBuf, secrets: Arc<SecretMask>, stderr: Option<Vec<(u64, u64)>>) -> Self {
        Self { path, secrets, stderr }
    }

    /// Whether there may be something to store while the program runs. Reads only metadata.
    fn has_changed(&self, progress: &OutputProgress) -> bool {
        progress.stored < LIVE_MAX && self.stamp().is_some_and(|stamp| progress.stamp != Some(stamp))
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
        if start.stored >= LIVE_MAX || is_punched {
            return Ok(OutputPiece { bytes: Vec::new(), after: progress.clone().grown(&[], FileState::new(&found)) });
        }
        let until = found.len().min(offset + LIVE_MAX - start.stored).min(offset + PIECE_MAX);
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
        let is_kept_whole = start.is_end() || start.anchor.before_file + total <= LIVE_MAX;
        let is_head = !is_kept_whole && start.stored < OUTPUT.head;
        let start = if is_kept_whole || is_head {
            start
        } else {
            let from = offset.max(total.saturating_sub(OUTPUT.tail));
            let notice = if from > offset { gap_notice(from - offset) } else { String::new() };
            bytes.extend(notice.as_bytes());
            start.continued_at(from, notice.len())
        };
        let from = start.offset();
        let limit = if is_head { OUTPUT.head - start.anchor.before_file } else { total };
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
        let stderr = parts.map(|parts| streams::stored_stderr(&parts, progress, total));
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

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use cronhold_schedule::Instant;

    use super::restarts::FileAnchor;
    use super::*;

    const SECRET: &str = "hunter2";

    /// A file with a program's output, removed at the end of the test.
    struct ScratchOutput(OutputFile);

    impl ScratchOutput {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cronhold-output-{name}-{}", std::process::id()));
            fs::write(&path, "").expect("written");
            Self(OutputFile::at(path))
        }

        /// Writes a range in which each byte is a function of its position.
        fn write(&self, from: u64, until: u64) {
            let mut file = File::options().write(true).open(&self.0.path).expect("there");
            file.seek(SeekFrom::Start(from)).expect("a file");
            file.write_all(&text(from, until)).expect("written");
        }

        /// Replaces the content of the file.
        fn replace(&self, text: &str) {
            fs::write(&self.0.path, text).expect("written");
        }

        /// Stores what is available while the program runs.
        fn live(&self, stored: &mut StoredOutput) {
            while self.0.has_changed(&stored.progress) {
                let piece = self.0.grown(&stored.progress).expect("there");
                let is_last = piece.bytes.is_empty();
                stored.add(piece);
                if is_last {
                    return;
                }
            }
        }

        fn finish(&self, stored: &mut StoredOutput, total: impl Into<Option<u64>> + Copy) {
            while let Some(piece) = self.0.rest(&stored.progress, total.into()).expect("there") {
                assert!(!piece.bytes.is_empty());
                stored.add(piece);
            }
        }
    }

    /// A store with one output.
    #[derive(Default)]
    struct StoredOutput {
        text: Vec<u8>,
        progress: OutputProgress,
    }

    impl StoredOutput {
        fn add(&mut self, piece: OutputPiece) {
            self.text.extend(piece.bytes);
            self.progress = piece.after;
            assert_eq!(self.progress.stored, self.text.len() as u64);
        }

        fn shown(&self) -> String {
            String::from_utf8_lossy(&self.text).replace(TRUNCATED, "|")
        }
    }

    impl Drop for ScratchOutput {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0.path);
        }
    }

    fn text(from: u64, until: u64) -> Vec<u8> {
        (from..until).map(|at| b'a' + u8::try_from((at / 7) % 26).expect("small")).collect()
    }

    #[test]
    fn short_output_is_stored_unchanged() {
        let scratch = ScratchOutput::new("short");
        let mut stored = StoredOutput::default();
        scratch.live(&mut stored);
        assert!(!scratch.0.has_changed(&stored.progress));
        scratch.write(0, 700_000);
        assert!(scratch.0.has_changed(&stored.progress));
        scratch.live(&mut stored);
        assert_eq!(stored.text.len(), 700_000);
        // What a background process writes after the end does not belong to the run.
        scratch.write(700_000, 900_000);
        scratch.finish(&mut stored, 800_000);
        assert!(stored.text == text(0, 800_000));
    }

    #[test]
    fn long_output_keeps_its_head_and_tail() {
        let total = LIVE_MAX + 5_000_000;
        // How much was stored while the program ran, and where the gap begins.
        for (live, marked) in [(0, OUTPUT.head), (OUTPUT.head, OUTPUT.head), (3_000_000, 3_000_000)] {
            let scratch = ScratchOutput::new(&format!("long-{live}"));
            let mut stored = StoredOutput::default();
            scratch.write(0, live);
            scratch.live(&mut stored);
            // What is punched out reads as zeros.
            scratch.replace("");
            scratch.write(0, OUTPUT.head);
            scratch.write(total - OUTPUT.tail, total);
            scratch.live(&mut stored);
            assert_eq!(stored.text.len() as u64, live.max(OUTPUT.head), "nothing is taken from the hole");
            scratch.finish(&mut stored, total);
            let gap = total - OUTPUT.tail - marked;
            let expected = [text(0, marked), gap_notice(gap).into_bytes(), text(total - OUTPUT.tail, total)].concat();
            assert!(stored.text == expected, "{live}");
            assert_eq!(scratch.0.rest(&stored.progress, Some(total)).expect("there"), None);
        }
    }

    #[test]
    fn output_that_was_stored_while_it_grew_has_no_gap() {
        let scratch = ScratchOutput::new("followed");
        let mut stored = StoredOutput::default();
        // The keeper punches out nothing as long as the file is not longer.
        scratch.write(0, LIVE_MAX);
        scratch.live(&mut stored);
        assert_eq!(stored.text.len() as u64, LIVE_MAX);
        scratch.write(LIVE_MAX, LIVE_MAX + 10);
        scratch.finish(&mut stored, LIVE_MAX + 10);
        assert!(stored.text == text(0, LIVE_MAX + 10));
    }

    /// Each append is small, and after each of them another daemon may continue with nothing but the store, the file and
    /// the recorded anchors.
    #[test]
    fn long_output_is_stored_in_pieces_by_any_number_of_daemons() {
        let scratch = ScratchOutput::new("pieces");
        let total = LIVE_MAX + 3_000_000;
        scratch.write(0, total);
        let mut stored = StoredOutput::default();
        let mut restart = Restart::default();
        while let Some(piece) = scratch.0.rest(&stored.progress, Some(total)).expect("there") {
            assert!(piece.bytes.len() as u64 <= PIECE_MAX + 100, "{} bytes at once", piece.bytes.len());
            if piece.after.anchor != stored.progress.anchor {
                restart = Restart { previous: stored.progress.anchor, latest: piece.after.anchor };
            }
            stored.add(piece);
            let length = stored.text.len() as u64;
            let anchor = restart.anchor(length);
            let edge = EDGE.min(length - anchor.stored);
            let part = |from: u64| stored.text[super::length(from)..super::length(from + edge)].to_vec();
            let (first, last) = (part(anchor.stored), part(length - edge));
            stored.progress = OutputProgress::from_store(length, anchor, first, last);
        }
        let gap = gap_notice(total - OUTPUT.tail - OUTPUT.head).into_bytes();
        assert!(stored.text == [text(0, OUTPUT.head), gap, text(total - OUTPUT.tail, total)].concat());
        assert_eq!(scratch.0.written(&stored.progress, total).expect("there").bytes, total);
    }

    #[test]
    fn truncated_file_is_stored_again_after_a_notice() {
        // The content of the file at first, then, in the end, and what is stored.
        for (first, then, end, shown) in [
            ("one two\n", "x\n", "x\ny\n", "one two\n|x\ny\n"),
            // As long as before, and longer.
            ("step 1\n", "step 2\n", "step 3\n", "step 1\n|step 2\n|step 3\n"),
            ("one\n", "three\nfour\n", "three\nfour\n", "one\n|three\nfour\n"),
            // With the same end at the same offset.
            ("a one\n", "b one\n", "b one\nx\n", "a one\n|b one\nx\n"),
            ("one\n", "", "", "one\n|"),
            ("one\n", "", "two\n", "one\n|two\n"),
            // Before anything was stored a truncation cannot be detected.
            ("", "x\n", "x\n", "x\n"),
        ] {
            let scratch = ScratchOutput::new("emptied");
            let mut stored = StoredOutput::default();
            for text in [first, then] {
                scratch.replace(text);
                // Two changes may have the same modification time.
                stored.progress.stamp = None;
                scratch.live(&mut stored);
            }
            scratch.replace(end);
            stored.progress.stamp = None;
            scratch.finish(&mut stored, end.len() as u64);
            assert_eq!(stored.shown(), shown);
            let written = scratch.0.written(&stored.progress, end.len() as u64).expect("there");
            assert_eq!(written.bytes, stored.text.len() as u64, "{shown}");
        }
    }

    #[test]
    fn later_daemon_continues_truncated_file_whatever_the_program_prints() {
        // The program may print the notice itself; only the recorded offset counts.
        for text in ["four\n".to_owned(), format!("four\n{TRUNCATED}")] {
            let scratch = ScratchOutput::new("later");
            let mut stored = StoredOutput::default();
            scratch.replace(TRUNCATED);
            scratch.live(&mut stored);
            let before = stored.progress.anchor;
            scratch.replace(&text);
            scratch.live(&mut stored);
            let length = stored.text.len() as u64;
            let anchor = Restart { previous: before, latest: stored.progress.anchor }.anchor(length);
            let of_file = stored.text[super::length(anchor.stored)..].to_vec();
            stored.progress = OutputProgress::from_store(length, anchor, of_file.clone(), of_file);
            let whole = format!("{text}five\n");
            scratch.replace(&whole);
            scratch.finish(&mut stored, whole.len() as u64);
            assert_eq!(String::from_utf8_lossy(&stored.text), format!("{TRUNCATED}{TRUNCATED}{whole}"));
        }
    }

    #[test]
    fn file_that_is_truncated_often_is_stored_up_to_the_limit() {
        let scratch = ScratchOutput::new("often");
        let mut stored = StoredOutput::default();
        for letter in ["1", "2", "3", "4"] {
            scratch.replace(&letter.repeat(4_000_000));
            stored.progress.stamp = None;
            scratch.live(&mut stored);
        }
        assert_eq!(stored.text.len() as u64, LIVE_MAX);
        scratch.replace("");
        scratch.write(0, 5_000_000);
        scratch.finish(&mut stored, 5_000_000);
        assert!(stored.text.ends_with(&[TRUNCATED.as_bytes(), &text(0, 5_000_000)].concat()));
        assert_eq!(stored.text.len() as u64, LIVE_MAX + TRUNCATED.len() as u64 + 5_000_000);
    }

    #[test]
    fn output_of_lost_program_is_stored_as_far_as_the_file_goes() {
        let scratch = ScratchOutput::new("lost");
        let mut stored = StoredOutput::default();
        scratch.replace("one\n");
        scratch.live(&mut stored);
        scratch.replace("one\ntwo\n");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n");
        // After a crash of the machine the file may be shorter.
        scratch.replace("on");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n");
        // A truncated file that is shorter than before is not taken for that.
        scratch.replace("x\n");
        scratch.finish(&mut stored, None);
        assert_eq!(stored.shown(), "one\ntwo\n|x\n");
        fs::remove_file(&scratch.0.path).expect("there");
        scratch.finish(&mut stored, None);
        scratch.finish(&mut StoredOutput::default(), None);
    }

    #[test]
    fn gap_notice_groups_digits() {
        for (bytes, text) in [(7, "7"), (999, "999"), (1_000, "1,000"), (123_456_789, "123,456,789")] {
            assert_eq!(gap_notice(bytes), format!("\n[… {text} bytes left out …]\n"));
        }
    }

    #[test]
    fn last_lines_are_limited_in_number_and_length() {
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
    fn written_counts_bytes_and_keeps_last_lines() {
        let scratch = ScratchOutput::new("counts");
        fs::write(&scratch.0.path, "one\ntwo\nlater\n").expect("written");
        let none = OutputProgress::default();
        let written = scratch.0.written(&none, 8).expect("there");
        assert_eq!(written, OutputSummary { bytes: 8, tail: vec!["one".to_owned(), "two".to_owned()], stderr: None });
        let nowhere = OutputFile::new(Path::new("/no/such"), RunId::from_key(Instant::EPOCH, "x"), Arc::default());
        assert_eq!(nowhere.written(&none, 0).expect("nothing to read"), OutputSummary::default());
        assert!(nowhere.written(&none, 1).is_err() && !nowhere.has_changed(&none));
    }

    #[test]
    fn secret_is_hidden_in_whatever_pieces_it_is_written_and_read() {
        let written = format!("{}token {SECRET}\n{SECRET} se{SECRET}{SECRET}s", "x".repeat(length(PIECE_MAX) - 12));
        let expected = written.replace(SECRET, &"*".repeat(SECRET.len()));
        for step in [1, 3, 7, written.len()] {
            let mut scratch = ScratchOutput::new(&format!("secret-{step}"));
            scratch.0.secrets = Arc::new(SecretMask::new([SECRET.to_owned()]));
            let mut stored = StoredOutput::default();
            let begin = length(PIECE_MAX) - 20;
            for end in (begin..written.len()).step_by(step) {
                scratch.replace(&written[..end]);
                scratch.live(&mut stored);
                let shown = stored.shown();
                assert!(expected.starts_with(&shown), "{}", &shown[shown.len().saturating_sub(40)..]);
            }
            scratch.replace(&written);
            scratch.finish(&mut stored, written.len() as u64);
            assert!(stored.shown() == expected, "written in steps of {step}");
            let summary = scratch.0.written(&stored.progress, written.len() as u64).expect("there");
            assert_eq!(summary.tail.last().map(String::as_str), Some("******* se**************s"));
            // The next daemon compares what is stored with the file, whose secret may have been replaced meanwhile.
            scratch.0.secrets = Arc::new(SecretMask::new(["another".to_owned()]));
            let whole = stored.text.clone();
            let progress = OutputProgress::from_store(
                whole.len() as u64,
                FileAnchor::default(),
                whole[..length(EDGE)].to_vec(),
                whole[whole.len() - length(EDGE)..].to_vec(),
            );
            assert_eq!(scratch.0.rest(&progress, Some(written.len() as u64)).expect("there"), None);
        }
    }
}
