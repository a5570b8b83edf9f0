//! Runs of Cronken's nodes, for display: the running ones and the last finished ones. Decisions need less, and faster;
//! see [`super::foreign`].

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use cronhold_core::record::ProgramExit;
use cronhold_core::signal::Signal;
use cronhold_schedule::Span;
use cronhold_store::{Fault, SharedRun, SharedRunState};
use serde_json::Value;

use super::foreign::parse_seconds;
use crate::connections::{RedisConnections, Script};
use crate::outputs::read_reply;

/// Runs of one script call. While a script runs, the server serves no other request.
const RUNS_PER_CALL: usize = 200;

/// Runs of each set that are scanned, the newest ones. Our own runs are among them.
const SCANNED_MAX: usize = 10_000;

/// Lines of output that are returned for a run, and characters of each.
const LINES_MAX: usize = 10;
const LINE_MAX: usize = 1_000;

static SCAN: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/foreign_runs.lua")]));

/// A member of a sorted set of runs.
#[derive(Debug)]
struct ScoredRun {
    score: f64,
    run: SharedRun,
}

/// Runs of Cronken's nodes, of one job or of all: the running ones, and then the last finished ones.
pub(crate) async fn read(
    connections: &RedisConnections,
    ns: &str,
    job: Option<&str>,
    limit: usize,
) -> Result<Vec<SharedRun>, Fault> {
    let mut running = scan(connections, ns, "rundata:active", job, SCANNED_MAX).await?;
    let of_job = job.map(|job| format!("{job}:")).unwrap_or_default();
    let mut ended = scan(connections, ns, &format!("results:{of_job}success"), job, limit).await?;
    ended.extend(scan(connections, ns, &format!("results:{of_job}fail"), job, limit).await?);
    ended.sort_by(|one, other| other.score.total_cmp(&one.score));

    // A run may have finished between the reads. Then the later read counts.
    let finished: BTreeSet<&str> = ended.iter().map(|found| found.run.id.as_str()).collect();
    running.retain(|found| !finished.contains(found.run.id.as_str()));
    let mut runs: Vec<SharedRun> = running.into_iter().map(|found| found.run).collect();
    sort(&mut runs);
    runs.truncate(limit);
    add_lines(connections, ns, &mut runs).await?;
    let room = limit - runs.len();
    runs.extend(ended.into_iter().map(|found| found.run).take(room));
    sort(&mut runs);
    Ok(runs)
}

/// Sorts by start time, the latest first.
fn sort(runs: &mut [SharedRun]) {
    runs.sort_by(|one, other| (other.started, &other.id).cmp(&(one.started, &one.id)));
}

/// The first foreign runs in a sorted set, the highest score first.
async fn scan(
    connections: &RedisConnections,
    ns: &str,
    set: &str,
    job: Option<&str>,
    limit: usize,
) -> Result<Vec<ScoredRun>, Fault> {
    let keys = [format!("{ns}:rundata"), format!("{ns}:{set}")];
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for first in (0..SCANNED_MAX).step_by(RUNS_PER_CALL) {
        let args = [ns, "look", &first.to_string(), &(first + RUNS_PER_CALL - 1).to_string()].map(|arg| arg.into());
        let (scanned, values): (usize, Vec<Vec<u8>>) =
            read_reply(connections.call_script(&SCAN, &keys, args.into()).await?)?;
        for values in values.chunks_exact(3) {
            let [id, score, metadata] = [0, 1, 2].map(|index| String::from_utf8_lossy(&values[index]));
            let Some(run) = run(&id, &metadata).filter(|run| job.is_none_or(|job| run.job == job)) else { continue };
            // A run that is added between two calls moves the others to later indexes.
            if found.len() < limit && seen.insert(run.id.clone()) {
                found.push(ScoredRun { score: score.parse().unwrap_or(0.0), run });
            }
        }
        if scanned < RUNS_PER_CALL || found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Adds the last lines of output to running runs.
async fn add_lines(connections: &RedisConnections, ns: &str, runs: &mut [SharedRun]) -> Result<(), Fault> {
    let keys = [format!("{ns}:rundata")];
    for part in runs.chunks_mut(RUNS_PER_CALL) {
        let ids = part.iter().map(|run| run.id.clone().into_bytes());
        let args = [ns, "lines", &LINES_MAX.to_string()].map(|arg| arg.into()).into_iter().chain(ids).collect();
        let texts: Vec<Vec<u8>> = read_reply(connections.call_script(&SCAN, &keys, args).await?)?;
        for (run, text) in part.iter_mut().zip(texts).filter(|(run, _)| run.tail.is_empty()) {
            run.tail = tail(&String::from_utf8_lossy(&text));
        }
    }
    Ok(())
}

/// A run from its metadata; `None` if they are invalid.
fn run(id: &str, metadata: &str) -> Option<SharedRun> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let state = match text("status")? {
        "running" => SharedRunState::Running,
        "success" => SharedRunState::Success,
        "fail" => SharedRunState::Failure,
        "frozen" => SharedRunState::Frozen,
        _ => return None,
    };
    let started = match metadata.get("start_time")? {
        Value::String(text) => parse_seconds(text)?,
        Value::Number(number) => parse_seconds(&number.to_string())?,
        _ => return None,
    };
    Some(SharedRun {
        id: id.to_owned(),
        job: text("job_name")?.to_owned(),
        host: text("host").unwrap_or_default().to_owned(),
        started,
        state,
        exit: metadata.get("retcode").and_then(Value::as_i64).and_then(exit),
        took: metadata.get("duration").and_then(Value::as_f64).and_then(span),
        tail: tail(text("output").unwrap_or_default()),
    })
}

/// The exit of a program. Cronken stores a signal as a negative number.
fn exit(code: i64) -> Option<ProgramExit> {
    let code = i32::try_from(code).ok()?;
    if code >= 0 {
        Some(ProgramExit::Code(code))
    } else {
        Signal::from_number(code.checked_neg()?).map(ProgramExit::Signal)
    }
}

fn span(seconds: f64) -> Option<Span> {
    let span = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(span.as_micros()).ok().map(Span::from_micros)
}

/// The last lines of a text.
fn tail(text: &str) -> Vec<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = text.rsplit('\n').take(LINES_MAX).map(shortened).collect();
    lines.reverse();
    lines
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn metadata_of_cronken_are_parsed() {
        let ended = r#"{"job_name":"a","start_time":"5.25","host":"draco","status":"fail","retcode":-9,
            "output":"one\ntwo\n","duration":1.5}"#;
        let expected = SharedRun {
            id: "x".to_owned(),
            job: "a".to_owned(),
            host: "draco".to_owned(),
            started: Instant::from_micros(5_250_000),
            state: SharedRunState::Failure,
            exit: Some(ProgramExit::Signal(Signal::KILL)),
            took: Some(Span::from_millis(1_500)),
            tail: vec!["one".to_owned(), "two".to_owned()],
        };
        assert_eq!(run("x", ended), Some(expected.clone()));
        let begun = r#"{"status":"running","start_time":5.25,"job_name":"a","host":"draco","retcode":"none"}"#;
        let running =
            SharedRun { state: SharedRunState::Running, exit: None, took: None, tail: Vec::new(), ..expected };
        assert_eq!(run("x", begun), Some(running));
        for metadata in [
            "",
            "[]",
            "7",
            "{",
            r#"{"job_name":"a","start_time":"5"}"#,
            r#"{"job_name":"a","start_time":"5","status":"lost"}"#,
            r#"{"job_name":"a","start_time":"soon","status":"running"}"#,
            r#"{"job_name":7,"start_time":"5","status":"running"}"#,
        ] {
            assert_eq!(run("x", metadata), None, "{metadata}");
        }
        let strange = r#"{"job_name":"a","start_time":"5","status":"fail","retcode":-9999999999,"duration":-1}"#;
        let told = run("x", strange).expect("the rest can be read");
        assert_eq!((told.exit, told.took), (None, None));
    }

    #[test]
    fn tail_has_the_last_lines_of_an_output() {
        let lines: String = (0..12).map(|number| format!("{number}\n")).collect();
        assert_eq!(tail(&lines).join(" "), "2 3 4 5 6 7 8 9 10 11");
        assert_eq!(tail("a\n\nb"), ["a", "", "b"]);
        assert!(tail("\n").is_empty());
        assert_eq!(tail(&"ß".repeat(LINE_MAX + 1))[0].chars().count(), LINE_MAX + 1);
    }
}
