//! What holds for every verb alike: its exit codes when nobody answers, when what it asks about is not there, and when the
//! command line is wrong.

use super::place::{Place, told};

/// Every verb that asks a daemon, with something that is not there where it asks about something.
const VERBS: &[&[&str]] = &[
    &["add", "helo", "triggered", "true"],
    &["upd", "helo", "--timeout", "1h"],
    &["del", "helo"],
    &["list"],
    &["show", "helo"],
    &["run", "helo"],
    &["runs", "helo"],
    &["logs", "helo"],
    &["watch", "helo"],
    &["start", "helo#1"],
    &["skip", "helo#1"],
    &["stop", "helo#1"],
    &["kill", "helo#1"],
    &["signal", "helo#1", "HUP"],
    &["mark", "helo#1", "success"],
    &["rerun", "helo#1"],
    &["pause", "helo"],
    &["resume", "helo"],
    &["next", "helo"],
    &["why", "helo"],
    &["holes", "helo"],
    &["backfill", "helo", "--from", "1d"],
    &["reload"],
    &["nodes"],
    &["drain"],
    &["token", "link"],
];

/// Those that ask about nothing in particular.
const GENERAL: [&str; 6] = ["add", "list", "reload", "nodes", "drain", "token"];

#[test]
fn every_verb_exits_3_without_a_daemon() {
    let place = Place::empty("nobody");
    for verb in VERBS {
        let output = place.give(verb);
        let told = told(verb, &output);
        assert!(told.ends_with("exit 3\n"), "{told}");
        assert!(told.contains("no daemon is running in home"), "{told}");
        assert!(output.stdout.is_empty(), "{told}");
    }
}

#[test]
fn unknown_job_exits_1_with_a_suggestion() {
    let place = Place::up("not-there", &[("hello", "program: ['true']\n")]);
    for verb in VERBS.iter().filter(|verb| !GENERAL.contains(&verb[0])) {
        let output = place.give(verb);
        let told = told(verb, &output);
        assert!(told.ends_with("exit 1\n"), "{told}");
        assert!(told.contains("did you mean `hello`?"), "{told}");
        assert!(output.stdout.is_empty(), "{told}");
    }
}

#[test]
fn unknown_flag_exits_2() {
    let place = Place::empty("flags");
    let others: [&[&str]; 3] = [&["lint", "@daily"], &["explain", "@daily"], &["check", "jobs"]];
    for verb in VERBS.iter().chain(&others) {
        // What stands behind the schedule of `add` is its command.
        let line = [&verb[..1], &["--nonsense"], &verb[1..]].concat();
        let told = told(&line, &place.give(&line));
        assert!(told.contains("--nonsense") && told.ends_with("exit 2\n"), "{told}");
    }
}

#[test]
fn every_verb_has_help() {
    let place = Place::empty("help");
    for verb in VERBS {
        let help = place.done(&[verb[0], "--help"]);
        assert!(help.contains(&format!("Usage: cronhold {}", verb[0])), "{help}");
        assert!(help.contains("--data") && help.contains("--url"), "{help}");
    }
}
