//! What remains if the writing process is killed or can no longer write. The writer is this test binary again; an
//! environment variable makes it one.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use cronhold_core::record::RecordKey;
use cronhold_store::conformance::block_on;
use cronhold_store::{Store, UnitRefusal};
use cronhold_store_sqlite::SqliteStore;

use crate::places::Place;
use crate::samples::{options, run, run_id, unit};

/// The environment variable that makes this binary a writer; its value is the file.
const WRITER: &str = "CRONHOLD_TEST_WRITER";

/// Printed by the writer when a run is durable.
const DONE: &str = "done ";

/// Printed by the writer before it gives up.
const FAILED: &str = "failed ";

#[test]
fn confirmed_commits_survive_a_kill() {
    run_writer_if_requested();
    let place = Place::new();
    let mut done = Vec::new();
    for round in 1..=4 {
        let program = std::env::current_exe().expect("this program");
        let mut writer = start(Command::new(program), "deaths::confirmed_commits_survive_a_kill", &place.database());
        let mut lines = lines(&mut writer);
        done.extend(lines.by_ref().filter_map(|line| number(&line)).take(20 * round));
        writer.kill().expect("it can be killed");
        // Lines that it printed before it was killed count too.
        done.extend(lines.filter_map(|line| number(&line)));
        writer.wait().expect("it is dead");
        let missing = missing(&place.database(), &done);
        assert!(missing.is_empty(), "round {round}: {missing:?} of {} are gone", done.len());
    }
    assert!(done.len() >= 200);
}

/// Units that are executed ahead are in an open transaction. It is lost with the process, and nothing else is.
#[test]
fn units_executed_ahead_are_lost_with_their_process() {
    let name = "deaths::units_executed_ahead_are_lost_with_their_process";
    run_ahead_writer_if_requested();
    let place = Place::new();
    let mut writer = start(Command::new(std::env::current_exe().expect("this program")), name, &place.database());
    let mut lines = lines(&mut writer);
    let found = lines.by_ref().find_map(|line| number(&line));
    assert_eq!(found, Some(0), "the writer has executed the units");
    let all: Vec<u64> = (0..=AHEAD).collect();
    let reader = SqliteStore::open_reader(place.database(), options()).expect("a reader beside the writer");
    assert_eq!(missing_in(&reader, &all), all[1..], "while the writer lives");
    drop(reader);
    writer.kill().expect("it can be killed");
    writer.wait().expect("it is dead");
    assert_eq!(missing(&place.database(), &all), all[1..], "after it was killed");
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    assert!(block_on(store.commit(vec![unit(1, run(1))]))[0].is_ok());
}

/// Runs that are executed ahead.
const AHEAD: u64 = 2_000;

/// Runs a writer if the environment variable is set: it commits run 0, executes others ahead, prints that, and waits to be
/// killed.
fn run_ahead_writer_if_requested() {
    #[expect(clippy::disallowed_methods, reason = "the environment makes a child process of the test a writer")]
    let Some(path) = std::env::var_os(WRITER).map(PathBuf::from) else { return };
    let store = std::sync::Arc::new(SqliteStore::open(&path, options()).expect("no other process has it"));
    assert!(block_on(store.commit(vec![unit(0, run(0))]))[0].is_ok());
    let mut ahead = std::sync::Arc::clone(&store).begin_ahead();
    ahead.push((1..=AHEAD).map(|number| unit(number, run(number))).collect());
    // Only the writer thread that executes them has spilled pages or the lock; both show that it has begun.
    let is_locked = || {
        let connection = rusqlite::Connection::open(&path).expect("a connection");
        connection.busy_timeout(std::time::Duration::ZERO).expect("a setting");
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
    };
    while !is_locked() {
        std::thread::yield_now();
    }
    writeln!(std::io::stdout(), "{DONE}0").expect("the test listens");
    loop {
        std::thread::park();
    }
}

#[test]
fn failed_disk_write_has_no_effect() {
    run_writer_if_requested();
    let place = Place::new();
    // No file may grow beyond half a megabyte, and the writer is not killed for trying.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().expect("this program"));
    let mut writer = start(shell, "deaths::failed_disk_write_has_no_effect", &place.database());
    let printed: Vec<String> = lines(&mut writer).collect();
    writer.wait().expect("it has ended");
    let done: Vec<u64> = printed.iter().filter_map(|line| number(line)).collect();
    let failed: Vec<&str> = printed.iter().filter_map(|line| line.strip_prefix(FAILED)).collect();
    assert!(!done.is_empty() && failed.len() == 3, "{printed:?}");
    for message in failed {
        assert!(message.contains("rejects writes") && message.contains("cronhold.db"), "{message}");
    }
    assert!(missing(&place.database(), &done).is_empty());
    let after = *done.last().expect("there is one") + 1;
    assert_eq!(missing(&place.database(), &[after]), [after], "what failed has not happened");
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    assert!(block_on(store.commit(vec![unit(after, run(after))]))[0].is_ok(), "with more space the store works again");
}

/// Runs the writer if the environment variable is set: it commits one run after the other and prints each, until it is
/// killed or the store has failed three times.
fn run_writer_if_requested() {
    #[expect(clippy::disallowed_methods, reason = "the environment makes a child process of the test a writer")]
    let Some(path) = std::env::var_os(WRITER).map(PathBuf::from) else { return };
    let store = SqliteStore::open(&path, options()).expect("no other process has it");
    let mut number = 0;
    while block_on(store.load(&[RecordKey::Run(run_id(number))])).expect("it can be read")[0].is_some() {
        number += 1;
    }
    let say = |what: String| writeln!(std::io::stdout(), "{what}").expect("the test listens");
    let mut failures = 0;
    while failures < 3 {
        match block_on(store.commit(vec![unit(number, run(number))])).pop() {
            Some(Ok(_)) => {
                say(format!("{DONE}{number}"));
                number += 1;
            }
            Some(Err(UnitRefusal::Fault(fault))) => {
                say(format!("{FAILED}{fault}"));
                failures += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    std::process::exit(0);
}

fn start(mut command: Command, test: &str, database: &Path) -> Child {
    command.args(["--exact", test, "--nocapture"]).env(WRITER, database);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts")
}

fn lines(writer: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output: ChildStdout = writer.stdout.take().expect("it is piped");
    BufReader::new(output).lines().map_while(Result::ok)
}

fn number(line: &str) -> Option<u64> {
    line.strip_prefix(DONE)?.parse().ok()
}

/// The numbers of the runs that are not stored.
fn missing(database: &Path, numbers: &[u64]) -> Vec<u64> {
    missing_in(&SqliteStore::open(database, options()).expect("the lock died with its holder"), numbers)
}

fn missing_in(store: &SqliteStore, numbers: &[u64]) -> Vec<u64> {
    let keys: Vec<RecordKey> = numbers.iter().map(|number| RecordKey::Run(run_id(*number))).collect();
    let found = block_on(store.load(&keys)).expect("it can be read");
    numbers.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(number, _)| *number).collect()
}
