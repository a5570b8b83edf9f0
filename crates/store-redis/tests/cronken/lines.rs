//! Output lines, in both key types.

use cronhold_core::record::{OutputSummary, Run};
use cronhold_core::{RunId, State};
use cronhold_store::Store;
use cronhold_store::conformance::block_on;
use serde_json::json;

use crate::fixture::Fixture;

fn key(run: RunId) -> String {
    format!("rundata:output:{run}")
}

/// Appends texts one after the other.
fn write(fixture: &Fixture, run: &Run, texts: &[&str]) {
    let mut length = block_on(fixture.store.read(run.id, 0, 0)).expect("an output is read").length;
    for text in texts {
        let from = length;
        length += text.len() as u64;
        assert_eq!(fixture.append(run.id, from, text.as_bytes()), Ok(length));
    }
}

fn listed(fixture: &Fixture, run: &Run) -> Vec<String> {
    serde_json::from_value(fixture.at("LRANGE", &key(run.id), &["0", "-1"])).expect("lines")
}

#[test]
fn lines_are_stored_in_a_sorted_set_by_time() {
    let fixture = Fixture::new();
    let run = fixture.running("backup");
    let before = fixture.time();
    write(&fixture, &run, &["one\ntwo\n", "thr", "ee\nfour", "\nfive"]);
    let after = fixture.time();
    assert_eq!(fixture.kind(&key(run.id)), "zset");
    let lines = fixture.scores(&key(run.id));
    let texts: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(texts, ["one", "two", "three", "four"], "what is not complete yet is not shown");
    let times: Vec<f64> = lines.iter().map(|(_, time)| *time).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?} rise");
    assert!(times.iter().all(|time| before <= *time && *time <= after + 0.001), "{before} {times:?} {after}");
    let ttl = fixture.at("TTL", &key(run.id), &[]).as_i64().expect("seconds");
    assert!((86_000..=86_400).contains(&ttl), "{ttl}");
}

#[test]
fn lines_of_the_same_time_keep_their_order() {
    let fixture = Fixture::new();
    let run = fixture.running("backup");
    // Their lexical order is different.
    let lines: Vec<String> = (0..2_500).rev().map(|number| format!("{number}")).collect();
    write(&fixture, &run, &[&(lines.join("\n") + "\n"), "a\n"]);
    assert_eq!(fixture.members(&key(run.id))[..2_500], lines);
    assert_eq!(fixture.members(&key(run.id))[2_500], "a");
}

#[test]
fn repeated_lines_are_kept() {
    let fixture = Fixture::new();
    let run = fixture.running("backup");
    write(&fixture, &run, &["tick\ntick\n\n\n", "tick\nother\n", "tick\ttock\ntick\n"]);
    // Line numbers are encoded in blanks (0) and tabs (1).
    let expected = ["tick", "tick\t ", "", "\t  ", "tick\t \t", "other", "tick\ttock", "tick\t   "];
    assert_eq!(fixture.members(&key(run.id)), expected);
}

#[test]
fn list_keeps_newlines_and_repeats() {
    let fixture = Fixture::with("output=list");
    let mut run = fixture.running("backup");
    write(&fixture, &run, &["tick\ntick\n\n", "ta", "ck\nend"]);
    assert_eq!(fixture.kind(&key(run.id)), "list");
    assert_eq!(listed(&fixture, &run), ["tick\n", "tick\n", "\n", "tack\n"]);
    fixture.enter(&mut run, State::Success);
    assert_eq!(listed(&fixture, &run), ["tick\n", "tick\n", "\n", "tack\n", "end"]);
}

#[test]
fn unterminated_last_line_is_shown_when_the_run_ends() {
    let fixture = Fixture::new();
    let mut run = fixture.running("backup");
    write(&fixture, &run, &["no newline"]);
    assert_eq!(fixture.kind(&key(run.id)), "none");
    run.written = Some(OutputSummary { bytes: 10, tail: vec!["no newline".to_owned()], stderr: None });
    fixture.enter(&mut run, State::Failure);
    assert_eq!(fixture.members(&key(run.id)), ["no newline"]);
    // Output that arrives late is shown immediately.
    write(&fixture, &run, &["late"]);
    assert_eq!(fixture.members(&key(run.id)), ["no newline", "late"]);
}

#[test]
fn resent_bytes_are_written_once() {
    let fixture = Fixture::with("output=list");
    let run = fixture.running("backup");
    for (from, bytes, length) in
        [(0, "a\nb\n", 4), (0, "a\nb\n", 4), (2, "b\nc\n", 6), (0, "a\nb\n", 6), (2, "b\nc\n", 6)]
    {
        assert_eq!(fixture.append(run.id, from, bytes.as_bytes()), Ok(length));
    }
    assert_eq!(listed(&fixture, &run), ["a\n", "b\n", "c\n"]);
}

#[test]
fn long_lines_are_split() {
    let fixture = Fixture::with("output=list");
    let mut run = fixture.running("backup");
    let long = "x".repeat(150_000);
    write(&fixture, &run, &[&long[..70_000]]);
    assert_eq!(listed(&fixture, &run).iter().map(String::len).collect::<Vec<_>>(), [65_536]);
    write(&fixture, &run, &[&long[70_000..], "\nshort\n"]);
    fixture.enter(&mut run, State::Success);
    let lines = listed(&fixture, &run);
    assert_eq!(lines.concat(), format!("{long}\nshort\n"), "nothing is lost");
    assert!(lines.iter().all(|line| line.len() <= 65_536));
}

#[test]
fn oldest_lines_are_dropped_at_the_limit() {
    for (params, command) in [("output=list", "LLEN"), ("", "ZCARD")] {
        let fixture = Fixture::with(params);
        let run = fixture.running("backup");
        let text: String = (0..12_000).map(|number| format!("{number}\n")).collect();
        write(&fixture, &run, &[&text[..9_000], &text[9_000..]]);
        assert_eq!(fixture.at(command, &key(run.id), &[]), json!(10_000));
        let all = block_on(fixture.store.read(run.id, 0, usize::MAX)).expect("an output is read");
        assert!(all.bytes == text.as_bytes(), "the bytes are kept whole");
    }
}

/// While the server writes lines it serves no other request, so it writes only a part of what a flood brings.
#[test]
fn lines_of_a_flood_are_left_out_and_noted() {
    for (params, command) in [("output=list", "LRANGE"), ("", "ZRANGE")] {
        let fixture = Fixture::with(params);
        let run = fixture.running("backup");
        let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
        write(&fixture, &run, &[&text]);
        let lines: Vec<String> =
            serde_json::from_value(fixture.at(command, &key(run.id), &["0", "-1"])).expect("lines");
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        let (notes, shown): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with("[… "));
        assert!(lines.len() <= 10_000 && notes.iter().all(|note| note.ends_with(" bytes left out …]")), "{notes:?}");
        assert!(!notes.is_empty(), "{} lines", lines.len());
        let numbers: Vec<u32> = shown.iter().map(|line| line.parse().expect("a number")).collect();
        assert!(numbers.is_sorted() && numbers[numbers.len() - 20..] == (99_980..100_000).collect::<Vec<_>>());
        let all = block_on(fixture.store.read(run.id, 0, usize::MAX)).expect("an output is read");
        assert!(all.bytes == text.as_bytes(), "the bytes are kept whole");
    }
}

#[test]
fn lines_expire_after_the_ttl_of_the_url() {
    let fixture = Fixture::with("output_ttl=1h");
    let run = fixture.running("backup");
    let ttl = || fixture.at("TTL", &key(run.id), &[]).as_i64().expect("seconds");
    write(&fixture, &run, &["a\n"]);
    assert!((3_500..=3_600).contains(&ttl()), "{}", ttl());
    fixture.at("EXPIRE", &key(run.id), &["60"]);
    write(&fixture, &run, &["b\n"]);
    assert!(ttl() > 3_500, "each line makes it live on: {}", ttl());
    // After expiry, lines start over; the bytes are complete.
    fixture.at("DEL", &key(run.id), &[]);
    write(&fixture, &run, &["c\n"]);
    assert_eq!(fixture.members(&key(run.id)), ["c"]);
    assert_eq!(block_on(fixture.store.read(run.id, 0, 99)).expect("it is read").bytes, b"a\nb\nc\n");
}

#[test]
fn lines_are_deleted_with_the_output() {
    let fixture = Fixture::new();
    let run = fixture.running("backup");
    write(&fixture, &run, &["a\nb"]);
    assert_eq!(block_on(fixture.store.drop_outputs(&[run.id])), Ok(()));
    assert_eq!(fixture.kind(&key(run.id)), "none");
    write(&fixture, &run, &["new\n"]);
    assert_eq!(fixture.members(&key(run.id)), ["new"]);
}
