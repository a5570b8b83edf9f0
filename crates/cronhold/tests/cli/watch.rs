//! `watch`: prints changes until the reader closes the pipe.

use serde_json::Value;

use super::redact::redacted;
use super::sandbox::{RunningCommand, Sandbox};

/// Starts `watch`, and waits until it receives events. All events that were needed for that are read.
fn listening(sandbox: &Sandbox, args: &[&str]) -> RunningCommand {
    let mut going = RunningCommand::start(sandbox.command(args));
    // It is unknown when `watch` starts to receive events, so the job is paused and resumed until an event is printed.
    // Another thread reads the output, because the read blocks until then.
    std::thread::scope(|scope| {
        let first = scope.spawn(|| going.line());
        while !first.is_finished() {
            sandbox.run_command(&["pause", "signal"]);
            sandbox.run_command(&["resume", "signal"]);
        }
        first.join().expect("a line");
    });
    sandbox.run_command(&["resume", "signal"]);
    sandbox.done(&["pause", "signal", "--why", "the last"]);
    while !going.line().contains("the last") {}
    going
}

const JOBS: &[(&str, &str)] = &[("signal", "program: ['true']\n"), ("bad", "program: exit 3\n")];

#[test]
fn watch() {
    let sandbox = Sandbox::up("watch", JOBS);
    let mut watcher = listening(&sandbox, &["watch"]);
    sandbox.run("bad");
    sandbox.done(&["add", "hello", "0 3 1 1 *", "true"]);
    sandbox.done(&["upd", "hello", "--timeout", "1h"]);
    sandbox.done(&["pause", "hello", "--why", "tea"]);
    sandbox.done(&["pause", "all"]);
    sandbox.done(&["resume", "all"]);
    sandbox.done(&["del", "hello"]);
    let mut lines = String::new();
    while !lines.contains("hello was removed") {
        lines += &watcher.line();
    }
    let errors = sandbox.transcript(&[&["watch", "helo"], &["watch", "--timezone", "Berlin"], &["watch", "a", "b"]]);
    insta::assert_snapshot!(format!("$ cronhold watch\n{}\n{errors}", redacted(&lines)));
}

/// With `-o json`, `watch` prints one JSON value per line, optionally for one job.
#[test]
fn watch_as_json_and_yaml() {
    let sandbox = Sandbox::up("watch-json", JOBS);
    // The watcher of all jobs starts last. Otherwise it would print the events that the other one needs to start.
    let mut yaml = listening(&sandbox, &["watch", "-o", "yaml", "signal"]);
    let mut all = listening(&sandbox, &["watch", "-o", "json"]);
    sandbox.run("bad");
    sandbox.done(&["resume", "signal"]);
    let mut lines = String::new();
    loop {
        let line = all.line();
        let mut value: Value = serde_json::from_str(&line).expect("JSON");
        // Event ids vary, because the number of earlier events varies.
        assert!(value["id"].take().is_string(), "{line}");
        lines += &format!("{}\n", serde_json::to_string_pretty(&value).expect("JSON"));
        if line.contains("\"pause\":null") {
            break;
        }
    }
    while yaml.line() != "---\n" {}
    let mut document = String::new();
    while !document.contains("pause: null") {
        document += &yaml.line();
    }
    assert!(!document.contains("job: bad"), "{document}");
    insta::assert_snapshot!(redacted(&format!("{lines}\n{document}")));
}

/// `cronhold watch | head -1` exits even if no other event occurs.
#[test]
fn watch_ends_when_its_reader_closes_the_pipe() {
    let sandbox = Sandbox::up("watch-head", JOBS);
    for args in [["watch"].as_slice(), &["watch", "-o", "json"]] {
        let mut watcher = listening(&sandbox, args);
        watcher.close_pipe();
        let output = watcher.end();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
