//! What holds for every verb: the exit codes without a daemon, for an unknown job, and for an invalid command line.

use super::sandbox::{Sandbox, transcript_of};

/// Every verb that uses a daemon. Those that take a job or a run get an unknown one.
const VERBS: &[&[&str]] = &[
    &["add", "helo", "triggered", "true"],
    &["upd", "helo", "--timeout", "1h"],
    &["del", "helo"],
    &["rename", "helo", "other"],
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
    &["coming"],
    &["reload"],
    &["nodes"],
    &["pools"],
    &["drain"],
    &["task", "show", "1"],
    &["channel", "list"],
    &["queues"],
    &["workers"],
    &["token", "link"],
];

/// Verbs that do not refer to an existing job or run.
const GENERAL: [&str; 12] =
    ["add", "list", "coming", "reload", "nodes", "pools", "drain", "task", "channel", "queues", "workers", "token"];

#[test]
fn every_verb_exits_3_without_a_daemon() {
    let sandbox = Sandbox::empty("nobody");
    for verb in VERBS {
        let output = sandbox.run_command(verb);
        let text = transcript_of(verb, &output);
        assert!(text.ends_with("exit 3\n"), "{text}");
        assert!(text.contains("no daemon is running in home"), "{text}");
        assert!(output.stdout.is_empty(), "{text}");
    }
}

#[test]
fn unknown_job_exits_1_with_a_suggestion() {
    let sandbox = Sandbox::up("not-there", &[("hello", "program: ['true']\n")]);
    for verb in VERBS.iter().filter(|verb| !GENERAL.contains(&verb[0])) {
        let output = sandbox.run_command(verb);
        let text = transcript_of(verb, &output);
        assert!(text.ends_with("exit 1\n"), "{text}");
        assert!(text.contains("did you mean `hello`?"), "{text}");
        assert!(output.stdout.is_empty(), "{text}");
    }
}

#[test]
fn unknown_flag_exits_2() {
    let sandbox = Sandbox::empty("flags");
    let others: [&[&str]; 3] = [&["lint", "@daily"], &["explain", "@daily"], &["check", "jobs"]];
    for verb in VERBS.iter().chain(&others) {
        // Arguments after the schedule of `add` belong to the program, so the flag goes first.
        let line = [&verb[..1], &["--nonsense"], &verb[1..]].concat();
        let text = transcript_of(&line, &sandbox.run_command(&line));
        assert!(text.contains("--nonsense") && text.ends_with("exit 2\n"), "{text}");
    }
}

#[test]
fn every_verb_has_help() {
    let sandbox = Sandbox::empty("help");
    for verb in VERBS {
        let help = sandbox.done(&[verb[0], "--help"]);
        assert!(help.contains(&format!("Usage: cronhold {}", verb[0])), "{help}");
        assert!(help.contains("--data") && help.contains("--url"), "{help}");
    }
}
