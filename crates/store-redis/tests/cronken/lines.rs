//! Output lines, in both key types.

use cronhold_core::record::{OutputSummary, Run};
use cronhold_core::{RunId, State};
use cronhold_store::Store;
use cronhold_store::conformance::block_on;
use serde_json::json;

use crate::place::Place;

fn key(run: RunId) -> String {
    format!("rundata:output:{run}")
}

/// Appends texts one after the other.
fn write(place: &Place, run: &Run, texts: &[&str]) {
    let mut length = block_on(place.store.read(run.id, 0, 0)).expect("an output is read").length;
    for text in texts {
        let from = length;
        length += text.len() as u64;
        assert_eq!(place.append(run.id, from, text.as_bytes()), Ok(length));
    }
}

fn listed(place: &Place, run: &Run) -> Vec<String> {
    serde_json::from_value(place.at("LRANGE", &key(run.id), &["0", "-1"])).expect("lines")
}

#[test]
fn lines_are_stored_in_a_sorted_set_by_time() {
    let place = Place::new();
    let run = place.running("backup");
    let before = place.time();
    write(&place, &run, &["one\ntwo\n", "thr", "ee\nfour", "\nfive"]);
    let after = place.time();
    assert_eq!(place.kind(&key(run.id)), "zset");
    let lines = place.scores(&key(run.id));
    let texts: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(texts, ["one", "two", "three", "four"], "what is not complete yet is not shown");
    let times: Vec<f64> = lines.iter().map(|(_, time)| *time).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?} rise");
    assert!(times.iter().all(|time| before <= *time && *time <= after + 0.001), "{before} {times:?} {after}");
    let ttl = place.at("TTL", &key(run.id), &[]).as_i64().expect("seconds");
    assert!((86_000..=86_400).contains(&ttl), "{ttl}");
}

#[test]
fn lines_of_the_same_time_keep_their_order() {
    let place = Place::new();
    let run = place.running("backup");
    // Their lexical order is different.
    let lines: Vec<String> = (0..2_500).rev().map(|number| format!("{number}")).collect();
    write(&place, &run, &[&(lines.join("\n") + "\n"), "a\n"]);
    assert_eq!(place.members(&key(run.id))[..2_500], lines);
    assert_eq!(place.members(&key(run.id))[2_500], "a");
}

#[test]
fn repeated_lines_are_kept() {
    let place = Place::new();
    let run = place.running("backup");
    write(&place, &run, &["tick\ntick\n\n\n", "tick\nother\n", "tick\ttock\ntick\n"]);
    // Line numbers are encoded in blanks (0) and tabs (1).
    let expected = ["tick", "tick\t ", "", "\t  ", "tick\t \t", "other", "tick\ttock", "tick\t   "];
    assert_eq!(place.members(&key(run.id)), expected);
}

#[test]
fn list_keeps_newlines_and_repeats() {
    let place = Place::with("output=list");
    let mut run = place.running("backup");
    write(&place, &run, &["tick\ntick\n\n", "ta", "ck\nend"]);
    assert_eq!(place.kind(&key(run.id)), "list");
    assert_eq!(listed(&place, &run), ["tick\n", "tick\n", "\n", "tack\n"]);
    place.enter(&mut run, State::Success);
    assert_eq!(listed(&place, &run), ["tick\n", "tick\n", "\n", "tack\n", "end"]);
}

#[test]
fn unterminated_last_line_is_shown_when_the_run_ends() {
    let place = Place::new();
    let mut run = place.running("backup");
    write(&place, &run, &["no newline"]);
    assert_eq!(place.kind(&key(run.id)), "none");
    run.written = Some(OutputSummary { bytes: 10, tail: vec!["no newline".to_owned()] });
    place.enter(&mut run, State::Failure);
    assert_eq!(place.members(&key(run.id)), ["no newline"]);
    // Output that arrives late is shown immediately.
    write(&place, &run, &["late"]);
    assert_eq!(place.members(&key(run.id)), ["no newline", "late"]);
}

#[test]
fn resent_bytes_are_written_once() {
    let place = Place::with("output=list");
    let run = place.running("backup");
    for (from, bytes, length) in
        [(0, "a\nb\n", 4), (0, "a\nb\n", 4), (2, "b\nc\n", 6), (0, "a\nb\n", 6), (2, "b\nc\n", 6)]
    {
        assert_eq!(place.append(run.id, from, bytes.as_bytes()), Ok(length));
    }
    assert_eq!(listed(&place, &run), ["a\n", "b\n", "c\n"]);
}

#[test]
fn long_lines_are_split() {
    let place = Place::with("output=list");
    let mut run = place.running("backup");
    let long = "x".repeat(150_000);
    write(&place, &run, &[&long[..70_000]]);
    assert_eq!(listed(&place, &run).iter().map(String::len).collect::<Vec<_>>(), [65_536]);
    write(&place, &run, &[&long[70_000..], "\nshort\n"]);
    place.enter(&mut run, State::Success);
    let lines = listed(&place, &run);
    assert_eq!(lines.concat(), format!("{long}\nshort\n"), "nothing is lost");
    assert!(lines.iter().all(|line| line.len() <= 65_536));
}

#[test]
fn oldest_lines_are_dropped_at_the_limit() {
    for (params, command) in [("output=list", "LLEN"), ("", "ZCARD")] {
        let place = Place::with(params);
        let run = place.running("backup");
        let text: String = (0..12_000).map(|number| format!("{number}\n")).collect();
        write(&place, &run, &[&text[..9_000], &text[9_000..]]);
        assert_eq!(place.at(command, &key(run.id), &[]), json!(10_000));
        let all = block_on(place.store.read(run.id, 0, usize::MAX)).expect("an output is read");
        assert!(all.bytes == text.as_bytes(), "the bytes are kept whole");
    }
}

#[test]
fn lines_expire_after_the_ttl_of_the_url() {
    let place = Place::with("output_ttl=1h");
    let run = place.running("backup");
    let ttl = || place.at("TTL", &key(run.id), &[]).as_i64().expect("seconds");
    write(&place, &run, &["a\n"]);
    assert!((3_500..=3_600).contains(&ttl()), "{}", ttl());
    place.at("EXPIRE", &key(run.id), &["60"]);
    write(&place, &run, &["b\n"]);
    assert!(ttl() > 3_500, "each line makes it live on: {}", ttl());
    // After expiry, lines start over; the bytes are complete.
    place.at("DEL", &key(run.id), &[]);
    write(&place, &run, &["c\n"]);
    assert_eq!(place.members(&key(run.id)), ["c"]);
    assert_eq!(block_on(place.store.read(run.id, 0, 99)).expect("it is read").bytes, b"a\nb\nc\n");
}

#[test]
fn lines_are_deleted_with_the_output() {
    let place = Place::new();
    let run = place.running("backup");
    write(&place, &run, &["a\nb"]);
    assert_eq!(block_on(place.store.drop_outputs(&[run.id])), Ok(()));
    assert_eq!(place.kind(&key(run.id)), "none");
    write(&place, &run, &["new\n"]);
    assert_eq!(place.members(&key(run.id)), ["new"]);
}
