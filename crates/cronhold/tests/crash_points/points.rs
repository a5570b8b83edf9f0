//! The table of all points, each with a sentence, and a test for each line of it. A point that is in the source and not
//! in the table fails the last test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::story;
use super::workload::Workload;

/// What may be lost when somebody dies at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loses {
    /// Nothing: each program runs once, to its end.
    Nothing,
    /// At each death a run is lost, which is an error with this reason.
    ARun(&'static str),
    /// A run may be lost so: it depends on what came first.
    PerhapsARun(&'static str),
}

use Loses::{ARun, Nothing, PerhapsARun};

/// The run was about to start, and the keeper has never heard of it.
const START_UNKNOWN: &str = "start unknown";
/// The keeper has begun it or was about to, and nobody saw its end.
const KEEPER_LOST: &str = "keeper lost";
/// What stands between the keeper and a program with limits is gone; the program was never begun.
const STAGE_KILLED: &str = "not launched: what was to become the program was killed before that";

/// A point at which somebody dies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// As the source has it. It begins with who dies.
    pub(crate) name: &'static str,
    /// What may be lost of the run that comes there.
    pub(crate) loses: Loses,
}

impl Point {
    /// Whether the daemon dies. If not, it goes on and starts another keeper.
    pub(crate) fn is_of_daemon(&self) -> bool {
        self.name.starts_with("daemon-")
    }

    /// What may be lost under some work. With several jobs another run may be at a worse point at the same moment.
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
                story::play(&Point { name: $name, loses: $loses });
            }
        )*
    };
}

points! {
    /// A claim is decided and not sent: the next daemon claims the occurrence, late.
    #[test] fn claim_decided: "daemon-claim-decided" => Nothing;
    /// A claim is durable and the node has not heard so: its program is not started by anybody who cannot know.
    #[test] fn claim_durable: "daemon-claim-durable" => ARun(START_UNKNOWN);
    /// A claim was heard of and nothing was done: as before.
    #[test] fn claim_acknowledged: "daemon-claim-heard" => ARun(START_UNKNOWN);
    /// A launch is about to be handed to the keeper's client: as before.
    #[test] fn launch_not_handed_over: "daemon-before-launch" => ARun(START_UNKNOWN);
    /// A launch was handed to the keeper's client, which may have sent it.
    #[test] fn launch_handed_over: "daemon-launch-handed-over" => PerhapsARun(START_UNKNOWN);
    /// A launch was sent. A keeper that reads it together with the end of the line leaves it.
    #[test] fn launch_sent: "daemon-after-launch" => PerhapsARun(START_UNKNOWN);
    /// The keeper said that a program runs, and nobody took it: the keeper tells the next daemon as well.
    #[test] fn start_not_recorded: "daemon-before-running" => Nothing;
    /// The report of a start is decided and not sent: as before.
    #[test] fn start_decided: "daemon-start-decided" => Nothing;
    /// The report of a start is durable: the next daemon takes the program up.
    #[test] fn start_durable: "daemon-start-durable" => Nothing;
    /// The keeper said how a program ended, and nobody took it: the keeper tells the next daemon as well.
    #[test] fn end_not_recorded: "daemon-before-report" => Nothing;
    /// The output is stored and the end is not: what is stored twice is stored once.
    #[test] fn output_stored: "daemon-after-output" => Nothing;
    /// The report of an end is decided and not sent: as if it had not been taken.
    #[test] fn end_decided: "daemon-end-decided" => Nothing;
    /// The report of an end is durable and the node has not heard so: the run is over, and its lock is free.
    #[test] fn end_durable: "daemon-end-durable" => Nothing;
    /// The report of an end was heard of, and whoever waits for the lock was not woken: as before.
    #[test] fn end_acknowledged: "daemon-end-heard" => Nothing;
    /// The keeper is about to be told to forget a run: the next daemon tells it.
    #[test] fn forget_not_sent: "daemon-before-forget" => Nothing;
    /// The keeper has a launch and has not written it down: the daemon asks the next keeper.
    #[test] fn intent_not_written: "keeper-before-intent" => Nothing;
    /// The launch is written down and the program is not begun: nobody can tell, so it is not begun again.
    #[test] fn intent_written: "keeper-after-intent" => ARun(KEEPER_LOST);
    /// The program runs and its process is not written down: the next keeper finds it by its environment and ends it.
    #[test] fn spawned: "keeper-after-spawn" => ARun(KEEPER_LOST);
    /// The process is written down and the daemon does not know: the next keeper ends it.
    #[test] fn spawn_written: "keeper-before-started-told" => ARun(KEEPER_LOST);
    /// The program has ended and its exit is not written down: nobody knows how it ended.
    #[test] fn exit_not_written: "keeper-before-exit-written" => ARun(KEEPER_LOST);
    /// The exit is written down and the daemon was not told: the next keeper tells it.
    #[test] fn exit_written: "keeper-after-exit-written" => Nothing;
    /// The daemon has stored the end and the keeper has not forgotten it: the next one is told again.
    #[test] fn forget_not_written: "keeper-before-forget" => Nothing;
    /// What is to become a program with limits has its orders: it was no program yet.
    #[test] fn stage_received_its_request: "stage-told" => ARun(STAGE_KILLED);
    /// What is to become a program with limits has said that it is ready: it was no program yet.
    #[test] fn stage_prepared: "stage-prepared" => ARun(STAGE_KILLED);
}

/// The names of points in a source file; those that a test makes up are not meant.
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
    let listed: BTreeSet<String> = POINTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, listed, "the table and the source have the same points");
    assert_eq!(listed.len(), POINTS.len(), "each of them once");
    let is_said = |sentence: &str| sentence.trim_end().ends_with('.') && sentence.len() > 20;
    assert!(POINTS.iter().all(|(_, sentence)| is_said(sentence)), "each of them with a sentence");
}
