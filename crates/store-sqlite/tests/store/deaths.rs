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
    let store = SqliteStore::open(database, options()).expect("the lock died with its holder");
    let keys: Vec<RecordKey> = numbers.iter().map(|number| RecordKey::Run(run_id(*number))).collect();
    let found = block_on(store.load(&keys)).expect("it can be read");
    numbers.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(number, _)| *number).collect()
}
