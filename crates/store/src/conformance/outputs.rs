//! Cases about outputs: bytes that arrive in pieces, more than once, and are read by position.

use std::sync::Arc;

use cronhold_core::job::Retain;
use cronhold_core::record::Record;
use cronhold_core::{RunId, State};
use cronhold_schedule::{Instant, Span};

use super::samples::{at, job, run, run_id, run_in};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{Chunk, Fault, OUTPUTS_A_STEP, OutputSizes, Store, expire_outputs, trim_outputs};

/// Large enough for several chunks in any store. A store with a limit on outputs gets smaller ones.
const LARGE: usize = 3_000_000;

fn large(store: &dyn Store) -> usize {
    let most = store.limits().output.and_then(|most| usize::try_from(most).ok());
    most.unwrap_or(LARGE).min(LARGE)
}

/// Appended bytes can be read from any position with any length.
pub fn output_is_read_by_range(subject: &dyn Subject) {
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
    assert_eq!(read(&*subject.store(), run, 0, 2).bytes, text[..2], "another handle reads the same");
}

/// The output of a run without any bytes is empty.
pub fn output_can_be_empty(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    assert_eq!(read(&*store, run, 0, 10), Chunk::default());
    assert_eq!(append(&*store, run, 0, b""), Ok(0));
    assert_eq!(read(&*store, run, 0, 10), Chunk::default());
    assert_eq!(append(&*store, run, 0, b"a"), Ok(1));
    assert_eq!(append(&*store, run, 1, b""), Ok(1));
    assert_eq!(read(&*store, run_id(1, 2), 0, 10), Chunk::default(), "each run has its own");
}

/// Bytes that are sent again, in whole or in part, are stored once.
pub fn append_can_be_sent_again(subject: &dyn Subject) {
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
        // Bytes that are already stored stay unchanged.
        (0, "xxxxxxxxxxj", 11),
    ] {
        assert_eq!(append(&*store, run, from, bytes.as_bytes()), Ok(length), "{bytes:?} at {from}");
    }
    assert_eq!(read(&*store, run, 0, 99).bytes, b"abcdefghixj");
}

/// An append that would leave a gap is rejected.
pub fn output_has_no_gaps(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    let is_refused = |from: u64, bytes: &[u8]| {
        let result = append(&*store, run, from, bytes);
        assert!(matches!(result, Err(Fault::Permanent(_))), "{result:?} at {from}");
    };
    is_refused(1, b"x");
    is_refused(u64::MAX, b"x");
    assert_eq!(append(&*store, run, 0, b"abc"), Ok(3));
    is_refused(4, b"x");
    is_refused(u64::MAX - 1, b"xyz");
    assert_eq!(read(&*store, run, 0, 99), Chunk { bytes: b"abc".to_vec(), length: 3 });
}

/// An output can be large and appended in large pieces.
pub fn output_can_be_large(subject: &dyn Subject) {
    let (store, run) = (subject.store(), run_id(1, 1));
    let large = large(&*store);
    let bytes: Vec<u8> = (0..large).map(|at| (at * 31 % 251).to_le_bytes()[0]).collect();
    let mut sent = 0;
    for piece in bytes.chunks(large / 3 - 1) {
        assert_eq!(append(&*store, run, sent, piece), Ok(sent + piece.len() as u64));
        sent += piece.len() as u64;
    }
    let mut found = Vec::new();
    while found.len() < large {
        let chunk = read(&*store, run, found.len() as u64, 70_001);
        assert_eq!((chunk.bytes.len(), chunk.length), (70_001.min(large - found.len()), large as u64));
        found.extend(chunk.bytes);
    }
    assert!(found == bytes, "the output is read as it was appended");
    assert!(read(&*store, run, 0, usize::MAX).bytes == bytes, "also in one piece");
}

/// Deleting a run deletes its output and no other.
pub fn output_is_deleted_with_its_run(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = [run_id(1, 1), run_id(1, 2)];
    for run in runs {
        writer.put(&run_in(run, "a", State::Running, Some(1)));
        assert_eq!(append(&*writer.store, run, 0, b"hello"), Ok(5));
        writer.put(&run_in(run, "a", State::Success, Some(1)));
    }
    writer.delete(&run_in(runs[0], "a", State::Success, None).key());
    assert_eq!(read(&*writer.store, runs[0], 0, 9), Chunk::default());
    assert_eq!(read(&*writer.store, runs[1], 0, 9).bytes, b"hello", "a change of the run keeps it");
}

/// Runs that have an output are listed once each, ordered by id.
pub fn outputs_are_listed_in_pages(subject: &dyn Subject) {
    let store = subject.store();
    assert_eq!(outputs(&*store, None, 9), []);
    let runs: Vec<RunId> = (0..7).map(|number| run_id(i64::from(number / 2), number)).collect();
    for run in [3, 0, 6, 2, 5, 1, 4].map(|place| runs[place]) {
        for from in 0..3 {
            assert_eq!(append(&*store, run, from, b"x"), Ok(from + 1));
        }
    }
    assert_eq!(append(&*store, run_id(0, 9), 0, b""), Ok(0), "an empty append does not create an output");
    for limit in [1, 2, 3, 7, 99] {
        let mut found = outputs(&*store, None, limit);
        while let Some(last) = found.last().copied() {
            let page = outputs(&*store, Some(last), limit);
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found, runs, "in pages of {limit}");
    }
    assert_eq!(outputs(&*store, None, 0), []);
    assert_eq!(outputs(&*store, Some(run_id(1, 99)), 9), runs[4..], "from anywhere");
}

/// An output can be deleted without its run, and can be written again from the start.
pub fn outputs_can_be_deleted(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = [run_id(1, 1), run_id(1, 2), run_id(1, 3)];
    for run in runs {
        writer.put(&run_in(run, "a", State::Success, Some(1)));
        let length = large(&*writer.store) / 10;
        assert_eq!(append(&*writer.store, run, 0, &vec![b'x'; length]), Ok(length as u64));
    }
    let dropped = [runs[0], run_id(7, 7), runs[2], runs[0]];
    for _ in 0..2 {
        assert_eq!(block_on(writer.store.drop_outputs(&dropped)), Ok(()), "also once more");
    }
    assert_eq!(block_on(writer.store.drop_outputs(&[])), Ok(()));
    assert_eq!(outputs(&*writer.store, None, 9), [runs[1]]);
    assert_eq!(read(&*writer.store, runs[0], 0, 9), Chunk::default());
    assert_eq!(read(&*writer.store, runs[1], 0, 2).bytes, b"xx");
    let record = run_in(runs[0], "a", State::Success, Some(1));
    assert_eq!(writer.record(&record.key()), Some(record), "the run is as it was");
    assert_eq!(append(&*writer.store, runs[0], 0, b"new"), Ok(3));
    assert_eq!(read(&*writer.store, runs[0], 0, 9).bytes, b"new");
}

/// Outputs of successful runs are deleted after the retention time of their job, a limited number per step; active and
/// failed runs keep their output.
pub fn outputs_expire_after_retention(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let default = Retain::default().output;
    let Record::Job(short) = job("short", "keeps outputs for a minute") else { panic!("a job") };
    let mut short = (*short).clone();
    let mut said = (*short.job).clone();
    said.retain.output = Span::from_secs(60);
    short.job = Arc::new(said);
    writer.put(&Record::Job(Arc::new(short)));
    // By number: the job, and how the run ended, all at the time of its id.
    let many = u16::try_from(OUTPUTS_A_STEP).expect("few") + 3;
    let all: Vec<(RunId, &str, State)> = (0..many)
        .map(|number| {
            let job = if number % 2 == 0 { "short" } else { "gone" };
            let state = match number % 7 {
                0 => State::Running,
                1 => State::Failure,
                _ => State::Success,
            };
            (run_id(i64::from(number / 200), number), job, state)
        })
        .collect();
    let orphan = run_id(0, many);
    for (id, job, state) in &all {
        let mut run = run(*id, job);
        run.state = *state;
        run.log[0].state = *state;
        writer.put(&Record::Run(Arc::new(run)));
    }
    for id in all.iter().map(|(id, ..)| *id).chain([orphan]) {
        assert_eq!(append(&*writer.store, id, 0, b"x"), Ok(1));
    }
    let expire = |now: Instant| {
        let mut after = None;
        loop {
            after = block_on(expire_outputs(&*writer.store, after, now)).expect("a store that works").next;
            if after.is_none() {
                return outputs(&*writer.store, None, usize::MAX);
            }
        }
    };
    let left = |is_kept: &dyn Fn(&str, State) -> bool| -> Vec<RunId> {
        all.iter().filter(|(_, job, state)| is_kept(job, *state)).map(|(id, ..)| *id).collect()
    };
    assert_eq!(expire(at(0)), left(&|_, _| true), "only outputs without a run expire at once");
    assert_eq!(expire(at(70)), left(&|job, state| job == "gone" || state != State::Success));
    assert_eq!(expire(at(10).plus(default)), left(&|_, state| state != State::Success), "failed runs keep theirs");
}

/// The store counts the size of all outputs while they are appended to, deleted, and deleted with their runs.
pub fn output_sizes_are_counted(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = [run_id(1, 1), run_id(1, 2), run_id(1, 3)];
    let sizes = |store: &dyn Store| block_on(store.output_sizes(&runs)).expect("sizes");
    let of = |of_runs: [u64; 3]| OutputSizes { total: of_runs.iter().sum(), of_runs: of_runs.to_vec() };
    assert_eq!(sizes(&*writer.store), of([0, 0, 0]));
    let long = vec![b'x'; large(&*writer.store).min(100_000)];
    for (run, bytes) in runs.iter().zip([&b"abc"[..], b"", &long]) {
        writer.put(&run_in(*run, "a", State::Success, Some(1)));
        append(&*writer.store, *run, 0, bytes).expect("appended");
        // What is stored already is not counted again.
        append(&*writer.store, *run, 0, bytes).expect("appended again");
    }
    append(&*writer.store, runs[0], 2, b"cde").expect("appended");
    assert!(append(&*writer.store, runs[1], 7, b"x").is_err(), "a gap is rejected, and counts nothing");
    assert_eq!(sizes(&*writer.store), of([5, 0, long.len() as u64]));
    assert_eq!(sizes(&*subject.store()), of([5, 0, long.len() as u64]), "another handle");
    writer.delete(&run_in(runs[2], "a", State::Success, None).key());
    assert_eq!(sizes(&*writer.store), of([5, 0, 0]), "deleted with its run");
    for _ in 0..2 {
        assert_eq!(block_on(writer.store.drop_outputs(&runs)), Ok(()));
        assert_eq!(sizes(&*writer.store), of([0, 0, 0]));
    }
    append(&*writer.store, runs[0], 0, b"again").expect("appended");
    assert_eq!(sizes(&*writer.store), of([5, 0, 0]));
}

/// If all outputs together are too large, the oldest are deleted, whether their runs failed or not. Outputs of unfinished
/// runs stay.
pub fn oldest_outputs_are_deleted_beyond_a_total_size(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let many = u16::try_from(OUTPUTS_A_STEP).expect("few") + 10;
    let all: Vec<(RunId, State)> = (0..many)
        .map(|number| {
            let state = [State::Failure, State::Success, State::Running][usize::from(number % 3)];
            (run_id(i64::from(number / 200), number), state)
        })
        .collect();
    for (id, state) in &all {
        let owner = (*state == State::Running).then_some(1);
        writer.put(&run_in(*id, "a", *state, owner));
        assert_eq!(append(&*writer.store, *id, 0, b"0123456789"), Ok(10));
    }
    let trim = |limit: u64| {
        let mut after = None;
        loop {
            after = block_on(trim_outputs(&*writer.store, after, limit)).expect("a store that works").next;
            if after.is_none() {
                return outputs(&*writer.store, None, usize::MAX);
            }
        }
    };
    let all_but = |oldest: usize| -> Vec<RunId> {
        let mut finished = 0;
        let mut is_kept = |state: &State| {
            finished += usize::from(state.is_finished());
            !state.is_finished() || finished > oldest
        };
        all.iter().filter(|(_, state)| is_kept(state)).map(|(id, _)| *id).collect()
    };
    let total = u64::from(many) * 10;
    assert_eq!(trim(total), all_but(0));
    assert_eq!(trim(total - 1), all_but(1), "an output is deleted as a whole");
    assert_eq!(trim(total - 10), all_but(1), "no more than necessary");
    assert_eq!(trim(total - 45), all_but(5));
    assert_eq!(trim(0), all_but(usize::MAX), "running programs keep theirs");
}

fn outputs(store: &dyn Store, after: Option<RunId>, limit: usize) -> Vec<RunId> {
    block_on(store.outputs(after, limit)).expect("outputs can be listed")
}

fn append(store: &dyn Store, run: RunId, from: u64, bytes: &[u8]) -> Result<u64, Fault> {
    block_on(store.append(run, from, bytes))
}

fn read(store: &dyn Store, run: RunId, from: u64, most: usize) -> Chunk {
    block_on(store.read(run, from, most)).expect("an output can be read")
}
