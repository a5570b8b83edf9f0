//! What happens, line by line, and what is said to those who wait.

use std::io::{self, Write};

use cronhold_api::client::Event;
use cronhold_api::{JobChange, NodeChange, Pause, PauseChange, Run, StoreChange};
use cronhold_schedule::Instant;
use serde_json::{Value, json};

use super::run::{line, name, precise, printable};
use super::{Colour, Wall};

/// Something that happened, as far as it is understood.
#[derive(Debug)]
pub(crate) enum Watched {
    /// A run is in another state.
    Run(Box<Run>),
    /// Anything else: the job that it is about, if it is about one alone, and what there is to say.
    Other { job: Option<String>, said: String },
}

impl Watched {
    /// Understands an event. One of a kind that is not known yet is told as it is.
    pub(crate) fn read(event: &Event) -> Self {
        Self::understood(event).unwrap_or_else(|_| {
            let said = format!("{} {}", event.kind, event.text);
            Self::Other { job: None, said }
        })
    }

    fn understood(event: &Event) -> serde_json::Result<Self> {
        let text = event.text.as_str();
        let (job, said) = match event.kind.as_str() {
            "run" => return Ok(Self::Run(serde_json::from_str(text)?)),
            "job" => {
                let JobChange { id, revision } = serde_json::from_str(text)?;
                let said = match revision {
                    Some(1) => format!("{id} is a new job"),
                    Some(revision) => format!("{id} is changed, revision {revision}"),
                    None => format!("{id} is removed"),
                };
                (Some(id), said)
            }
            "pause" => {
                let PauseChange { job, pause } = serde_json::from_str(text)?;
                let said = pause_words(job.as_deref().unwrap_or("everything"), pause.as_ref());
                (job, said)
            }
            "node" => (None, format!("node: {}", serde_json::from_str::<NodeChange>(text)?.message)),
            "store" => match serde_json::from_str::<StoreChange>(text)?.trouble {
                Some(trouble) => (None, format!("store: {trouble}; nothing starts until it works again")),
                None => (None, "store: it works again".to_owned()),
            },
            "reset" => (None, "what happened before this is not told; `cronhold runs` shows it".to_owned()),
            kind => (None, format!("{kind} {text}")),
        };
        Ok(Self::Other { job, said })
    }

    /// The job that it is about, if it is about one alone.
    pub(crate) fn job(&self) -> Option<&str> {
        match self {
            Self::Run(run) => Some(&run.job),
            Self::Other { job, .. } => job.as_deref(),
        }
    }

    /// One line for people.
    pub(crate) fn line(&self, wall: &Wall, colours: bool, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Run(run) => {
                let at = entered(run);
                // How long it took so far, or is to wait, is told from the moment of the event.
                let then = Wall { zone: wall.zone.clone(), now: at };
                let time = Colour::Faint.paint(&precise(at, wall), colours);
                writeln!(out, "{time}  {}", line(run, &then, colours))
            }
            Self::Other { said, .. } => writeln!(out, "{}", printable(said)),
        }
    }
}

/// An event as a value for programs: what it is called, and what it says.
pub(crate) fn for_programs(event: &Event) -> Value {
    let said: Value = serde_json::from_str(&event.text).unwrap_or(Value::Null);
    json!({"id": event.id, "event": event.kind, "data": said})
}

fn pause_words(what: &str, pause: Option<&Pause>) -> String {
    match pause {
        Some(Pause { by, why, .. }) if why.is_empty() => format!("{what} is paused by {by}"),
        Some(Pause { by, why, .. }) => format!("{what} is paused by {by}: {why}"),
        None => format!("{what} goes on"),
    }
}

/// When a run entered the state it is in.
fn entered(run: &Run) -> Instant {
    let times = &run.times;
    let entered = [times.scheduled, times.waiting, times.starting, times.running, times.stopping, times.finished];
    entered.into_iter().flatten().next_back().unwrap_or(run.nominal_time)
}

/// Says what is watched, to people who would otherwise see nothing at all for a while.
pub(crate) fn begins(job: Option<&str>, progress: bool, err: &mut dyn Write) -> io::Result<()> {
    if !progress {
        return Ok(());
    }
    writeln!(err, "watching {}; Ctrl-C ends it", job.unwrap_or("everything"))
}

/// Says that the daemon went away.
pub(crate) fn away(message: &str, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "the daemon is away ({}); waiting for it", printable(message))
}

/// Says that the daemon came back.
pub(crate) fn back(err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "the daemon is back")
}

/// Says that a job has not run yet.
pub(crate) fn waits(job: &str, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{} has not run yet; waiting for its first run", printable(job))
}

/// Says that a run has no output yet.
pub(crate) fn not_begun(run: &Run, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{} has not begun ({}), so that it wrote nothing yet; -f waits for it", name(run), run.state)
}

/// Says why a run has no output.
pub(crate) fn never_ran(run: &Run, err: &mut dyn Write) -> io::Result<()> {
    let why = run.reason.as_ref().map(|reason| format!(" ({})", printable(reason))).unwrap_or_default();
    let job = &run.job;
    writeln!(err, "{} was skipped{why}, so that it wrote nothing; `cronhold runs {job}` shows others", name(run))
}

/// Says that an output is not kept any longer, with the last lines, which are; nothing, when there never was any.
pub(crate) fn gone(run: &Run, err: &mut dyn Write) -> io::Result<()> {
    if run.output_bytes == 0 {
        return Ok(());
    }
    let (run_name, bytes) = (name(run), run.output_bytes);
    writeln!(err, "the output of {run_name} ({bytes} bytes) is not kept any longer; its last lines were:")?;
    run.tail.iter().try_for_each(|line| writeln!(err, "  {}", printable(line)))
}

/// Says how a run ended that was waited for.
pub(crate) fn ended(run: &Run, wall: &Wall, colours: bool, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}", line(run, wall, colours))
}

#[cfg(test)]
mod tests {
    use cronhold_core::run::State;

    use super::super::run::tests::{run, wall};
    use super::*;

    const PAUSED: &str = r#"{"job":"backup","pause":
        {"since":"2026-11-16T02:00:00Z","by":"operator ann","why":"tea","everything":false}}"#;

    fn shown(kind: &str, text: String) -> String {
        let event = Event { id: "7".to_owned(), kind: kind.to_owned(), text };
        let mut shown = Vec::new();
        Watched::read(&event).line(&wall(90_000), false, &mut shown).expect("written");
        String::from_utf8(shown).expect("text")
    }

    #[test]
    fn each_event_is_a_line() {
        let of_run = |run: &Run| shown("run", serde_json::to_string(run).expect("JSON"));
        let failed = Run { reason: Some("exit code 3".to_owned()), exit_code: Some(3), ..run(State::Failure) };
        let lines = [
            of_run(&run(State::Running)),
            of_run(&failed),
            shown("job", r#"{"id":"backup","revision":1}"#.to_owned()),
            shown("job", r#"{"id":"backup","revision":2}"#.to_owned()),
            shown("job", r#"{"id":"backup","revision":null}"#.to_owned()),
            shown("pause", PAUSED.to_owned()),
            shown("pause", r#"{"job":null,"pause":null}"#.to_owned()),
            shown("store", r#"{"away":true,"trouble":"the disk is full"}"#.to_owned()),
            shown("store", r#"{"away":false,"trouble":null}"#.to_owned()),
            shown("node", r#"{"message":"it is ready"}"#.to_owned()),
            shown("reset", "{}".to_owned()),
            shown("run", "{}".to_owned()),
            shown("news", "not even JSON".to_owned()),
        ];
        insta::assert_snapshot!(lines.concat());
    }

    #[test]
    fn events_of_other_jobs_are_known_as_such() {
        let about = |kind: &str, text: &str| {
            let event = Event { id: String::new(), kind: kind.to_owned(), text: text.to_owned() };
            Watched::read(&event).job().map(str::to_owned)
        };
        let text = serde_json::to_string(&run(State::Running)).expect("JSON");
        assert_eq!(about("run", &text).as_deref(), Some("backup"));
        assert_eq!(about("job", r#"{"id":"backup","revision":1}"#).as_deref(), Some("backup"));
        assert_eq!(about("pause", PAUSED).as_deref(), Some("backup"));
        assert_eq!(about("store", "{}"), None);
    }
}
