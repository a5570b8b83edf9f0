//! Cases about outputs: bytes that arrive in pieces, more than once, and are read by position.

use cronhold_core::{RunId, State};

use super::samples::{run_id, run_in};
use super::scribe::Scribe;
use super::{Subject, block_on};
use crate::{Chunk, Fault, Store};

/// Long enough to need more than one piece of any size that a store may have.
const LARGE: usize = 3_000_000;

/// What was appended is read, from anywhere and of any length.
pub fn an_output_is_read_by_range(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    let text = "größe 日本\n\0end".as_bytes();
    let mut length = 0;
    for byte in text {
        length += 1;
        assert_eq!(append(&*store, run, length - 1, &[*byte]), Ok(length));
    }
    for from in 0..=text.len() + 2 {
        for most in [0, 1, 2, 5, text.len(), text.len() + 9, usize::MAX] {
            let expected = text.iter().skip(from).take(most).copied().collect();
            let chunk = read(&*store, run, from as u64, most);
            assert_eq!(chunk, Chunk { bytes: expected, length }, "{most} from {from} on");
        }
    }
    assert_eq!(read(&*store, run, u64::MAX, usize::MAX), Chunk { bytes: Vec::new(), length });
    assert_eq!(read(&*subject.store(), run, 0, 2).bytes, text[..2], "others read the same");
}

/// An output of which nothing was appended is empty.
pub fn an_output_can_be_empty(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    assert_eq!(read(&*store, run, 0, 10), Chunk::default());
    assert_eq!(append(&*store, run, 0, b""), Ok(0));
    assert_eq!(read(&*store, run, 0, 10), Chunk::default());
    assert_eq!(append(&*store, run, 0, b"a"), Ok(1));
    assert_eq!(append(&*store, run, 1, b""), Ok(1));
    assert_eq!(read(&*store, run_id(1, 2), 0, 10), Chunk::default(), "each run has its own");
}

/// Bytes that are sent again, in whole or in part, are there once.
pub fn an_append_can_be_sent_again(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    for (from, bytes, length) in [
        (0, "abc", 3),
        (0, "abc", 3),
        (3, "def", 6),
        (3, "def", 6),
        (0, "abc", 6),
        (1, "bcdefgh", 8),
        (2, "c", 8),
        (8, "", 8),
        (0, "", 8),
        (0, "abcdefghi", 9),
        // What is there already is left as it is.
        (0, "xxxxxxxxxxj", 11),
    ] {
        assert_eq!(append(&*store, run, from, bytes.as_bytes()), Ok(length), "{bytes:?} at {from}");
    }
    assert_eq!(read(&*store, run, 0, 99).bytes, b"abcdefghixj");
}

/// An output has no gaps.
pub fn an_output_has_no_gaps(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    let is_refused = |from: u64, bytes: &[u8]| {
        let result = append(&*store, run, from, bytes);
        assert!(matches!(result, Err(Fault::Broken(_))), "{result:?} at {from}");
    };
    is_refused(1, b"x");
    is_refused(u64::MAX, b"x");
    assert_eq!(append(&*store, run, 0, b"abc"), Ok(3));
    is_refused(4, b"x");
    is_refused(u64::MAX - 1, b"xyz");
    assert_eq!(read(&*store, run, 0, 99), Chunk { bytes: b"abc".to_vec(), length: 3 });
}

/// An output can be long, in long pieces.
pub fn an_output_can_be_large(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    let bytes: Vec<u8> = (0..LARGE).map(|at| (at * 31 % 251).to_le_bytes()[0]).collect();
    let mut sent = 0;
    for piece in bytes.chunks(LARGE / 3 - 1) {
        assert_eq!(append(&*store, run, sent, piece), Ok(sent + piece.len() as u64));
        sent += piece.len() as u64;
    }
    let mut found = Vec::new();
    while found.len() < LARGE {
        let chunk = read(&*store, run, found.len() as u64, 70_001);
        assert_eq!((chunk.bytes.len(), chunk.length), (70_001.min(LARGE - found.len()), LARGE as u64));
        found.extend(chunk.bytes);
    }
    assert!(found == bytes, "what was read is what was appended");
    assert!(read(&*store, run, 0, usize::MAX).bytes == bytes, "also in one piece");
}

/// The output of a run goes with it, and no other does.
pub fn an_output_goes_with_its_run(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    let runs = [run_id(1, 1), run_id(1, 2)];
    for run in runs {
        scribe.put(&run_in(run, "a", State::Running, Some(1)));
        assert_eq!(append(&*scribe.store, run, 0, b"hello"), Ok(5));
        scribe.put(&run_in(run, "a", State::Success, Some(1)));
    }
    scribe.delete(&run_in(runs[0], "a", State::Success, None).key());
    assert_eq!(read(&*scribe.store, runs[0], 0, 9), Chunk::default());
    assert_eq!(read(&*scribe.store, runs[1], 0, 9).bytes, b"hello", "a change of the run keeps it");
}

fn append(store: &dyn Store, run: RunId, from: u64, bytes: &[u8]) -> Result<u64, Fault> {
    block_on(store.append(run, from, bytes))
}

fn read(store: &dyn Store, run: RunId, from: u64, most: usize) -> Chunk {
    block_on(store.read(run, from, most)).expect("an output can be read")
}
