//! Tests of the log as a whole, and what tests of its parts need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use cronhold_cli::LogFormat;
use serde_json::Value;
use tracing::Level;

use super::writer::LINES_MAX;
use super::*;

/// Keeps what is written.
#[derive(Debug, Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
    }
}

/// All text that a closure logs.
fn text_of(options: LogOptions, act: impl FnOnce()) -> String {
    let buffer = Buffer::default();
    let log = Log::new(options, buffer.clone());
    log.scope(act);
    log.end();
    buffer.text()
}

/// All objects that a closure logs.
pub(super) fn logged(level: Level, act: impl FnOnce()) -> Vec<Value> {
    let text = text_of(LogOptions::new(LogFormat::Json, level), act);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn text_line_has_time_level_message_and_fields_that_it_does_not_mention() {
    let act = || {
        tracing::info!(event = "job_put", job = "a b", run = %7, path = ?"x", took_ms = 5, "two\nlines");
        tracing::info!(event = "run_state", job = "nightly", state = "success", number = 3, "nightly#3 success");
        tracing::debug!(event = "not_logged", "of no interest");
        tracing::warn!("without a name");
    };
    let text = text_of(LogOptions::new(LogFormat::Text, Level::INFO), act);
    let lines: Vec<&str> = text.lines().map(|line| &line["2026-01-01T00:00:00.000".len()..]).collect();
    assert_eq!(
        lines,
        [
            "Z  INFO two\\nlines job=\"a b\" run=7 path=\"\\\"x\\\"\"",
            "Z  INFO nightly#3 success",
            "Z  WARN without a name"
        ]
    );
    assert!(!text.contains('\x1b'));
    let text = text_of(LogOptions::new(LogFormat::Text, Level::INFO).with_colours(true), act);
    assert!(text.contains("\x1b[32m INFO\x1b[0m"), "{text}");
}

#[test]
fn json_line_has_stable_keys_and_typed_fields() {
    let lines = logged(Level::TRACE, || {
        tracing::trace!(target: "cronhold_store_redis", event = "batch", units = 3, ok = true, by = -1, "a \"b\"\n");
    });
    let mut line = lines[0].clone();
    let time = line["time"].take();
    assert!(time.as_str().expect("text").ends_with('Z'), "{time}");
    let expected = serde_json::json!({
        "time": null, "level": "trace", "target": "cronhold_store_redis", "event": "batch",
        "message": "a \"b\"\n", "units": 3, "ok": true, "by": -1,
    });
    assert_eq!(line, expected);
}

/// Keeps what is written, and waits for permission before each write.
struct Slow(Buffer, Receiver<()>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.1.recv();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn slow_reader_loses_lines_and_delays_nothing() {
    let buffer = Buffer::default();
    let (permit, permission) = sync_channel(0);
    let log = Log::new(LogOptions::new(LogFormat::Json, Level::INFO), Slow(buffer.clone(), permission));
    for number in 0..2 * LINES_MAX {
        log.emit(Weight::Usual, "counted", format!("line {number}"));
    }
    drop(permit);
    log.end();
    let text = buffer.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let written = lines.iter().filter(|line| line["event"] == "counted").count();
    let dropped = lines.iter().filter(|line| line["event"] == "log_lines_dropped");
    let dropped: u64 = dropped.map(|line| line["count"].as_u64().expect("a number")).sum();
    assert_eq!(written as u64 + dropped, 2 * LINES_MAX as u64);
    assert!(dropped > 0);
}

/// Fails every write, as a closed pipe does.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn log_that_cannot_be_written_is_ignored() {
    let log = Log::new(LogOptions::new(LogFormat::Json, Level::INFO), Broken);
    log.emit(Weight::Trouble, "one", "first");
    log.emit(Weight::Trouble, "two", "second");
    log.end();
}

/// All `.rs` files below a directory that are not tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The texts between each occurrence of `start` and the next quotation mark.
fn quoted_after<'a>(text: &'a str, start: &str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0))
}

#[test]
fn every_event_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("docs/guide/logs.md")).expect("a document");
    let table = document.lines().filter(|line| line.starts_with("| `"));
    let cells = table.filter_map(|line| line.split('|').nth(1));
    let documented: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let mut files = Vec::new();
    for krate in fs::read_dir(root.join("crates")).expect("crates").flatten() {
        sources(&krate.path().join("src"), &mut files);
    }
    let mut missing = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).expect("text");
        let levels = ["Weight::Detail, \"", "Weight::Usual, \"", "Weight::Trouble, \"", "weight, \""];
        let emitted = levels.iter().flat_map(|start| quoted_after(&text, start)).map(str::to_owned);
        let names = quoted_after(&text, "event = \"").map(str::to_owned).chain(emitted);
        missing.extend(names.filter(|name| !documented.contains(name.as_str())));
    }
    assert_eq!(missing, BTreeSet::new(), "these are not in docs/guide/logs.md");
}
