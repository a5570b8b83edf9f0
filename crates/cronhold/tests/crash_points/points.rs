//! The table of all fail points, each with a sentence and a test. The last test fails if a point is in the source and
//! not in a table.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::scenario;
use super::workload::Workload;

/// What may be lost when a process is killed at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loses {
    /// Each program runs once, to its end.
    Nothing,
    /// Each kill loses a run, which ends in an error with this reason.
    ARun(&'static str),
    /// A kill may lose a run, which then ends in an error with this reason. It depends on timing.
    PerhapsARun(&'static str),
}

use Loses::{ARun, Nothing, PerhapsARun};

/// The run was starting, and the keeper does not know it.
const START_UNKNOWN: &str = "start unknown";
/// The keeper was starting the program or had started it, and its end is unknown.
const KEEPER_LOST: &str = "keeper lost";
/// The launch stage between the keeper and a program with limits was killed; the program was never started.
const STAGE_KILLED: &str = "not launched: the process was killed before it became the program";

/// A point at which a process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// The name in the source. Its first word is the process that is killed.
    pub(crate) name: &'static str,
    /// What may be lost of the run that reaches the point.
    pub(crate) loses: Loses,
}

impl Point {
    /// Whether the daemon is killed. If not, it keeps running and starts another keeper.
    pub(crate) fn is_of_daemon(&self) -> bool {
        self.name.starts_with("daemon-")
    }

    /// What may be lost under a workload. With several jobs, another run may be at a worse point at the same moment.
    pub(crate) fn loses_under(&self, workload: Workload) -> Loses {
        match self.loses {
            Nothing if workload.has_several_jobs() && self.is_of_daemon() => PerhapsARun(START_UNKNOWN),
            Nothing if workload.has_several_jobs() => PerhapsARun(KEEPER_LOST),
            loses => loses,
        }
    }
}

/// Writes the table, and a test for each line of it.
macro_rules! points {
    ($(#[doc = $sentence:literal] #[test] fn $test:ident: $name:literal => $loses:expr;)*) => {
        /// All points with their sentences.
        const POINTS: &[(&str, &str)] = &[$(($name, $sentence)),*];

        $(
            #[doc = $sentence]
            #[test]
            fn $test() {
                scenario::run(&Point { name: $name, loses: $loses });
            }
        )*
    };
}

points! {
    /// A claim is decided and not sent: the next daemon claims the occurrence, late.
    #[test] fn claim_decided: "daemon-claim-decided" => Nothing;
    /// A claim is durable and not acknowledged: the next daemon does not start a program that may have started.
    #[test] fn claim_durable: "daemon-claim-durable" => ARun(START_UNKNOWN);
    /// A claim is acknowledged and has had no effect: as before.
    #[test] fn claim_acknowledged: "daemon-claim-heard" => ARun(START_UNKNOWN);
    /// A launch is about to be handed to the keeper's client: as before.
    #[test] fn launch_not_handed_over: "daemon-before-launch" => ARun(START_UNKNOWN);
    /// A launch was handed to the keeper's client, which may have sent it.
    #[test] fn launch_handed_over: "daemon-launch-handed-over" => PerhapsARun(START_UNKNOWN);
    /// A launch was sent. A keeper that reads it together with the end of the connection ignores it.
    #[test] fn launch_sent: "daemon-after-launch" => PerhapsARun(START_UNKNOWN);
    /// The keeper reported a start that the daemon did not record: the keeper reports it to the next daemon.
    #[test] fn start_not_recorded: "daemon-before-running" => Nothing;
    /// The report of a start is decided and not sent: as before.
    #[test] fn start_decided: "daemon-start-decided" => Nothing;
    /// The report of a start is durable: the next daemon adopts the program.
    #[test] fn start_durable: "daemon-start-durable" => Nothing;
    /// The keeper reported an end that the daemon did not record: the keeper reports it to the next daemon.
    #[test] fn end_not_recorded: "daemon-before-report" => Nothing;
    /// The output is stored and the end is not: output that is sent twice is stored once.
    #[test] fn output_stored: "daemon-after-output" => Nothing;
    /// The report of an end is decided and not sent: as if it had not been recorded.
    #[test] fn end_decided: "daemon-end-decided" => Nothing;
    /// The report of an end is durable and not acknowledged: the run is finished, and its lock is free.
    #[test] fn end_durable: "daemon-end-durable" => Nothing;
    /// The report of an end is acknowledged, and runs that wait for the lock were not woken: as before.
    #[test] fn end_acknowledged: "daemon-end-heard" => Nothing;
    /// The daemon is about to tell the keeper to forget a run: the next daemon does that.
    #[test] fn forget_not_sent: "daemon-before-forget" => Nothing;
    /// The keeper has received a launch and not written it to the journal: the daemon requests it from the next keeper.
    #[test] fn intent_not_written: "keeper-before-intent" => Nothing;
    /// The launch is in the journal and the program is not started: no keeper starts it, because it may have run.
    #[test] fn intent_written: "keeper-after-intent" => ARun(KEEPER_LOST);
    /// The program runs and its process is not in the journal: the next keeper finds and kills it by its environment.
    #[test] fn spawned: "keeper-after-spawn" => ARun(KEEPER_LOST);
    /// The process is in the journal and was not reported to the daemon: the next keeper kills it.
    #[test] fn spawn_written: "keeper-before-started-told" => ARun(KEEPER_LOST);
    /// The program has ended and its exit is not in the journal: its exit code is lost.
    #[test] fn exit_not_written: "keeper-before-exit-written" => ARun(KEEPER_LOST);
    /// The exit is in the journal and was not reported to the daemon: the next keeper reports it.
    #[test] fn exit_written: "keeper-after-exit-written" => Nothing;
    /// The daemon has stored the end and the keeper has not forgotten the run: the daemon tells the next keeper again.
    #[test] fn forget_not_written: "keeper-before-forget" => Nothing;
    /// The launch stage of a program with limits has received its request: it was not the program yet.
    #[test] fn stage_received_its_request: "stage-told" => ARun(STAGE_KILLED);
    /// The launch stage of a program with limits has reported that it is ready: it was not the program yet.
    #[test] fn stage_prepared: "stage-prepared" => ARun(STAGE_KILLED);
}

/// Points between jobs and tasks, which the workloads do not reach, each with the file whose test kills the daemon there.
const POINTS_OF_TASKS: &[(&str, &str)] = &[
    ("daemon-before-publish", "channels.rs"),
    ("daemon-after-publish", "channels.rs"),
    ("daemon-messages-received", "channels.rs"),
    ("daemon-messages-taken", "channels.rs"),
    ("daemon-before-task", "task_programs.rs"),
    ("daemon-after-task", "task_programs.rs"),
];

/// The names of points in a source file, without those that unit tests invent.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    let calls = text.split("fail::point(\"").skip(1);
    calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned())
}

/// All Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_point_of_the_source_is_in_the_table() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates");
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).expect("a folder").flatten() {
        if folder.path().join("src").is_dir() {
            sources(&folder.path().join("src"), &mut files);
        }
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).expect("a text"));
    let found: BTreeSet<String> = texts.flat_map(|text| names_in(&text).collect::<Vec<_>>()).collect();
    let listed: BTreeSet<String> = POINTS.iter().chain(POINTS_OF_TASKS).map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, listed, "the tables and the source have the same points");
    assert_eq!(listed.len(), POINTS.len() + POINTS_OF_TASKS.len(), "each point is listed once");
    for (name, file) in POINTS_OF_TASKS {
        let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon").join(file);
        let text = fs::read_to_string(&test).expect("a test");
        assert!(text.contains(&format!("\"{name}\"")), "{name} is in {file}");
    }
    let is_sentence = |sentence: &str| sentence.trim_end().ends_with('.') && sentence.len() > 20;
    assert!(POINTS.iter().all(|(_, sentence)| is_sentence(sentence)), "each point has a sentence");
}
