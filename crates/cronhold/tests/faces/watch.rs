//! `watch`: what happens, until the reader leaves.

use serde_json::Value;

use super::place::{Going, Place};
use super::redact::redacted;

/// A watcher who is known to listen: it has told of a pause, and the pauses that were needed for that are over and told.
fn listening(place: &Place, args: &[&str]) -> Going {
    let mut going = Going::start(place.command(args));
    // When it begins to listen, nobody knows; so something happens again and again until it tells of it. What it tells
    // is read by another thread, because it may be nothing.
    std::thread::scope(|scope| {
        let first = scope.spawn(|| going.line());
        while !first.is_finished() {
            place.give(&["pause", "signal"]);
            place.give(&["resume", "signal"]);
        }
        first.join().expect("a line");
    });
    place.give(&["resume", "signal"]);
    place.done(&["pause", "signal", "--why", "the last"]);
    while !going.line().contains("the last") {}
    going
}

const JOBS: &[(&str, &str)] = &[("signal", "program: ['true']\n"), ("bad", "program: exit 3\n")];

#[test]
fn watch() {
    let place = Place::up("watch", JOBS);
    let mut watcher = listening(&place, &["watch"]);
    place.run("bad");
    place.done(&["add", "hello", "0 3 1 1 *", "true"]);
    place.done(&["upd", "hello", "--timeout", "1h"]);
    place.done(&["pause", "hello", "--why", "tea"]);
    place.done(&["pause", "all"]);
    place.done(&["resume", "all"]);
    place.done(&["del", "hello"]);
    let mut lines = String::new();
    while !lines.contains("hello was removed") {
        lines += &watcher.line();
    }
    let errors = place.transcript(&[&["watch", "helo"], &["watch", "--timezone", "Berlin"], &["watch", "a", "b"]]);
    insta::assert_snapshot!(format!("$ cronhold watch\n{}\n{errors}", redacted(&lines)));
}

/// Programs get one JSON value a line, about one job if they want.
#[test]
fn watch_as_json_and_yaml() {
    let place = Place::up("watch-json", JOBS);
    // The one who sees everything comes last, or would see what happens until the other one listens.
    let mut yaml = listening(&place, &["watch", "-o", "yaml", "signal"]);
    let mut all = listening(&place, &["watch", "-o", "json"]);
    place.run("bad");
    place.done(&["resume", "signal"]);
    let mut lines = String::new();
    loop {
        let line = all.line();
        let mut value: Value = serde_json::from_str(&line).expect("JSON");
        // How much happened before differs.
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

/// `cronhold watch | head -1` ends, also when nothing else happens.
#[test]
fn watch_ends_when_its_reader_closes_the_pipe() {
    let place = Place::up("watch-head", JOBS);
    for args in [["watch"].as_slice(), &["watch", "-o", "json"]] {
        let mut watcher = listening(&place, args);
        watcher.leave();
        let output = watcher.end();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
