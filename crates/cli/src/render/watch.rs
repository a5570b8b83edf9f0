//! Events of `cronhold watch`, and messages of commands that wait.

use std::io::{self, Write};

use cronhold_api::client::FeedEvent;
use cronhold_api::{JobChange, NodeChange, PauseChange, PauseSummary, RunSummary, StoreChange};
use cronhold_schedule::Instant;
use serde_json::{Value, json};

use super::run::{line, name, precise};
use super::{CellColour, LocalTimeFormat, rounded, visible};

/// A parsed event of the feed.
#[derive(Debug)]
pub(crate) enum WatchedEvent {
    /// A run changed its state.
    Run(Box<RunSummary>),
    /// Any other event, as text; `job` is set if it concerns one job.
    Other { job: Option<String>, text: String },
}

impl WatchedEvent {
    /// Parses an event. An event of an unknown kind becomes plain text.
    pub(crate) fn read(event: &FeedEvent) -> Self {
        Self::parse(event).unwrap_or_else(|_| {
            let text = format!("{} {}", event.kind, event.text);
            Self::Other { job: None, text }
        })
    }

    fn parse(event: &FeedEvent) -> serde_json::Result<Self> {
        let data = event.text.as_str();
        let (job, text) = match event.kind.as_str() {
            "run" => return Ok(Self::Run(serde_json::from_str(data)?)),
            "job" => {
                let JobChange { id, revision } = serde_json::from_str(data)?;
                let text = match revision {
                    Some(1) => format!("{id} was added"),
                    Some(revision) => format!("{id} was changed, revision {revision}"),
                    None => format!("{id} was removed"),
                };
                (Some(id), text)
            }
            "pause" => {
                let PauseChange { job, pause } = serde_json::from_str(data)?;
                let text = pause_words(job.as_deref().unwrap_or("everything"), pause.as_ref());
                (job, text)
            }
            "node" => (None, format!("node: {}", serde_json::from_str::<NodeChange>(data)?.message)),
            "store" => match serde_json::from_str::<StoreChange>(data)?.trouble {
                Some(trouble) => (None, format!("store: {trouble}; nothing starts until it recovers")),
                None => (None, "store: recovered".to_owned()),
            },
            "reset" => (None, "earlier events are missing; `cronhold runs` shows all runs".to_owned()),
            kind => (None, format!("{kind} {data}")),
        };
        Ok(Self::Other { job, text })
    }

    /// The job that the event concerns, or `None` if it concerns all jobs.
    pub(crate) fn job(&self) -> Option<&str> {
        match self {
            Self::Run(run) => Some(&run.job),
            Self::Other { job, .. } => job.as_deref(),
        }
    }

    /// Prints the event on one line.
    pub(crate) fn line(&self, clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(run) => {
                let at = entered(run);
                // Durations are relative to the time of the event.
                let then = LocalTimeFormat { zone: clock.zone.clone(), now: at };
                let time = CellColour::Faint.paint(&precise(at, clock), colours);
                writeln!(out, "{time}  {}", line(run, &then, colours))
            }
            Self::Other { text, .. } => writeln!(out, "{}", visible(text)),
        }
    }
}

/// An event as JSON.
pub(crate) fn for_programs(event: &FeedEvent) -> Value {
    let data: Value = serde_json::from_str(&event.text).unwrap_or(Value::Null);
    json!({"id": event.id, "event": event.kind, "data": data})
}

fn pause_words(what: &str, pause: Option<&PauseSummary>) -> String {
    match pause {
        Some(PauseSummary { by, why, .. }) if why.is_empty() => format!("{what} was paused by {by}"),
        Some(PauseSummary { by, why, .. }) => format!("{what} was paused by {by}: {why}"),
        None => format!("{what} was resumed"),
    }
}

/// When a run entered its current state.
fn entered(run: &RunSummary) -> Instant {
    let times = &run.times;
    let entered = [times.scheduled, times.waiting, times.starting, times.running, times.stopping, times.finished];
    entered.into_iter().flatten().next_back().unwrap_or(run.nominal_time)
}

/// Prints what is being watched, because there may be no event for a while.
pub(crate) fn begins(job: Option<&str>, progress: bool, err: &mut dyn Write) -> io::Result<()> {
    if !progress {
        return Ok(());
    }
    writeln!(err, "watching {}; Ctrl-C stops", job.unwrap_or("everything"))
}

/// Prints that the connection to the daemon was lost.
pub(crate) fn disconnected(message: &str, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "lost the connection to the daemon ({}); reconnecting", visible(message))
}

/// Prints that the daemon responds again.
pub(crate) fn reconnected(err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "reconnected to the daemon")
}

/// Prints that a job has not run yet.
pub(crate) fn waits(job: &str, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{} has not run yet; waiting for its first run", visible(job))
}

/// Prints that a run has no output yet.
pub(crate) fn not_begun(run: &RunSummary, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{} has not started ({}) and has no output yet; -f waits for it", name(run), run.state)
}

/// Prints how to find out what a new run waits for.
pub(crate) fn waiting(run: &RunSummary, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "`cronhold why {}` shows what it waits for", name(run))
}

/// Prints why a skipped run has no output.
pub(crate) fn never_ran(run: &RunSummary, err: &mut dyn Write) -> io::Result<()> {
    let why = run.reason.as_ref().map(|reason| format!(" ({})", visible(reason))).unwrap_or_default();
    let job = &run.job;
    writeln!(err, "{} was skipped{why} and has no output; `cronhold runs {job}` lists other runs", name(run))
}

/// Prints that an output is no longer kept, with its last lines. Prints nothing if there was no output.
pub(crate) fn gone(run: &RunSummary, err: &mut dyn Write) -> io::Result<()> {
    if run.output_bytes == 0 {
        return Ok(());
    }
    let (run_name, bytes) = (name(run), run.output_bytes);
    writeln!(err, "the output of {run_name} ({bytes} bytes) is no longer kept; its last lines were:")?;
    run.tail.iter().try_for_each(|line| writeln!(err, "  {}", visible(line)))
}

/// Prints that only a part of an output can be told apart by stream.
pub(crate) fn streams_are_partial(parts: usize, err: &mut dyn Write) -> io::Result<()> {
    writeln!(
        err,
        "the streams are told apart up to the {parts}th part of standard error; what follows counts as standard output"
    )
}

/// Prints the result of a run.
pub(crate) fn ended(run: &RunSummary, clock: &LocalTimeFormat, colours: bool, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}", line(run, clock, colours))
}

/// Prints the result of an attempt, and when the next one follows.
pub(crate) fn retried(
    run: &RunSummary,
    retry: &RunSummary,
    clock: &LocalTimeFormat,
    colours: bool,
    err: &mut dyn Write,
) -> io::Result<()> {
    // The command may have been waiting for long, so the time of the end is the present.
    let ended = run.times.finished.unwrap_or(clock.now);
    let when = match retry.due.filter(|due| *due > ended) {
        Some(due) => format!(" in {}, at {}", rounded(due.since(ended)), clock.at(due)),
        None => String::new(),
    };
    let (retry_name, attempt) = (name(retry), retry.attempt);
    writeln!(err, "{}; {retry_name} retries it (attempt {attempt}){when}", line(run, clock, colours))
}

/// Prints which of several running runs was taken.
pub(crate) fn taken(run: &RunSummary, others: &[String], err: &mut dyn Write) -> io::Result<()> {
    let (run_name, others) = (name(run), others.join(", "));
    writeln!(err, "showing {run_name}, which started last; also running: {others}")
}

#[cfg(test)]
mod tests {
    use cronhold_core::run::State;

    use super::super::run::tests::{at, clock, run};
    use super::*;

    const PAUSED: &str = r#"{"job":"backup","pause":
        {"since":"2026-11-16T02:00:00Z","by":"operator ann","why":"tea","everything":false}}"#;

    fn shown(kind: &str, text: String) -> String {
        let event = FeedEvent { id: "7".to_owned(), kind: kind.to_owned(), text };
        let mut shown = Vec::new();
        WatchedEvent::read(&event).line(&clock(90_000), false, &mut shown).expect("written");
        String::from_utf8(shown).expect("text")
    }

    #[test]
    fn each_event_is_shown_in_one_line() {
        let of_run = |run: &RunSummary| shown("run", serde_json::to_string(run).expect("JSON"));
        let failed = RunSummary { reason: Some("exit code 3".to_owned()), exit_code: Some(3), ..run(State::Failure) };
        let lines = [
            of_run(&run(State::Running)),
            of_run(&failed),
            shown("job", r#"{"id":"backup","revision":1}"#.to_owned()),
            shown("job", r#"{"id":"backup","revision":2}"#.to_owned()),
            shown("job", r#"{"id":"backup","revision":null}"#.to_owned()),
            shown("pause", PAUSED.to_owned()),
            shown("pause", r#"{"job":null,"pause":null}"#.to_owned()),
            shown("store", r#"{"failing":true,"trouble":"the disk is full"}"#.to_owned()),
            shown("store", r#"{"failing":false,"trouble":null}"#.to_owned()),
            shown("node", r#"{"message":"it is ready"}"#.to_owned()),
            shown("reset", "{}".to_owned()),
            shown("run", "{}".to_owned()),
            shown("news", "not even JSON".to_owned()),
        ];
        insta::assert_snapshot!(lines.concat());
    }

    #[test]
    fn retry_is_announced_with_its_time() {
        let failed = RunSummary { reason: Some("exit code 3".to_owned()), exit_code: Some(3), ..run(State::Failure) };
        let retry = |due| RunSummary { number: 43, attempt: 2, due, ..run(State::Scheduled) };
        for (due, expected) in
            [(Some(at(365_500)), " in 5m00s, at 2026-11-16 02:06:05Z\n"), (Some(at(65_500)), "\n"), (None, "\n")]
        {
            let mut shown = Vec::new();
            // The command was started before the run ended.
            retried(&failed, &retry(due), &clock(0), false, &mut shown).expect("written");
            let shown = String::from_utf8(shown).expect("text");
            let (_, when) = shown.split_once("; backup#43 retries it (attempt 2)").expect("the retry");
            assert_eq!(when, expected, "{shown}");
        }
    }

    #[test]
    fn event_names_the_job_it_concerns() {
        let about = |kind: &str, text: &str| {
            let event = FeedEvent { id: String::new(), kind: kind.to_owned(), text: text.to_owned() };
            WatchedEvent::read(&event).job().map(str::to_owned)
        };
        let text = serde_json::to_string(&run(State::Running)).expect("JSON");
        assert_eq!(about("run", &text).as_deref(), Some("backup"));
        assert_eq!(about("job", r#"{"id":"backup","revision":1}"#).as_deref(), Some("backup"));
        assert_eq!(about("pause", PAUSED).as_deref(), Some("backup"));
        assert_eq!(about("store", "{}"), None);
    }
}
