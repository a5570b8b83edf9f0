//! What is stored of files that grow, are truncated, or become longer than is kept.

use std::io::{Seek, SeekFrom, Write};

use cronhold_schedule::Instant;

use super::restarts::FileAnchor;
use super::*;

/// Bytes that a store without a limit gets while a program runs.
const STORED_MAX: u64 = OUTPUT.head + OUTPUT.tail;
const SECRET: &str = "hunter2";

/// A file with a program's output, removed at the end of the test.
struct ScratchOutput(OutputFile);

impl ScratchOutput {
    fn new(name: &str) -> Self {
        Self::within(name, OUTPUT)
    }

    fn within(name: &str, limits: OutputLimits) -> Self {
        let path = std::env::temp_dir().join(format!("cronhold-output-{name}-{}", std::process::id()));
        fs::write(&path, "").expect("written");
        Self(OutputFile::at(path, limits))
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
    let total = STORED_MAX + 5_000_000;
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
fn output_stays_within_the_limit_of_the_store() {
    const MOST: u64 = 64 * 1024;
    let limits = stored_limits(Some(MOST));
    assert_eq!(stored_limits(None), OUTPUT);
    assert_eq!(stored_limits(Some(u64::MAX)), OUTPUT, "the keeper does not keep more");
    for total in [10, limits.head, limits.head + limits.tail, MOST, 10 * MOST] {
        // How much of it the program has written when it is first read.
        for live in [0, limits.head, total] {
            let scratch = ScratchOutput::within(&format!("limited-{total}-{live}"), limits);
            let mut stored = StoredOutput::default();
            scratch.write(0, live.min(total));
            scratch.live(&mut stored);
            scratch.write(0, total);
            scratch.finish(&mut stored, total);
            assert!(stored.text.len() as u64 <= MOST, "{} bytes of {total}", stored.text.len());
            let tail = limits.tail.min(total);
            assert!(stored.text.ends_with(&text(total - tail, total)), "{total} bytes, {live} of them at first");
            assert!(stored.text.starts_with(&text(0, limits.head.min(total))));
        }
    }
}

#[test]
fn output_that_was_stored_while_it_grew_has_no_gap() {
    let scratch = ScratchOutput::new("followed");
    let mut stored = StoredOutput::default();
    // The keeper punches out nothing as long as the file is not longer.
    scratch.write(0, STORED_MAX);
    scratch.live(&mut stored);
    assert_eq!(stored.text.len() as u64, STORED_MAX);
    scratch.write(STORED_MAX, STORED_MAX + 10);
    scratch.finish(&mut stored, STORED_MAX + 10);
    assert!(stored.text == text(0, STORED_MAX + 10));
}

/// Each append is small, and after each of them another daemon may continue with nothing but the store, the file and
/// the recorded anchors.
#[test]
fn long_output_is_stored_in_pieces_by_any_number_of_daemons() {
    let scratch = ScratchOutput::new("pieces");
    let total = STORED_MAX + 3_000_000;
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
    assert_eq!(stored.text.len() as u64, STORED_MAX);
    scratch.replace("");
    scratch.write(0, 5_000_000);
    scratch.finish(&mut stored, 5_000_000);
    assert!(stored.text.ends_with(&[TRUNCATED.as_bytes(), &text(0, 5_000_000)].concat()));
    assert_eq!(stored.text.len() as u64, STORED_MAX + TRUNCATED.len() as u64 + 5_000_000);
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
    let nowhere = OutputFile::new(Path::new("/no/such"), RunId::from_key(Instant::EPOCH, "x"), Arc::default(), OUTPUT);
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
