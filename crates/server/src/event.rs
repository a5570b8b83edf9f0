//! Events as Cronken's clients publish them: what each asks for. They come by a request or by a store that other programs
//! share, and mean the same in both places.

use cronhold_core::command::{Command, Provided};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, Key, Record, Source};
use cronhold_core::signal::Signal;
use cronhold_core::{JobId, RunId};
use cronhold_engine::{Handle, Refused};
use cronhold_jobfile::foreign::Form;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store::{Query, Store};
use serde_json::{Map, Value, json};

/// The name that stands for every job.
const ALL: &str = "all";
/// Jobs or nodes that one event can name.
const NAMES_MAX: usize = 1_000;
/// The longest event, in bytes.
const EVENT_BYTES_MAX: usize = 2 << 20;
/// Sets of runs that are read at once.
const PAGE: usize = 1_000;
/// What stands in events that our nodes have sent, so that our nodes do not obey them.
const FROM: (&str, &str) = ("from", "cronhold");

/// What an event asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Start nothing of a job by itself any more, or nothing at all.
    Pause(Option<JobId>),
    /// Start things of a job by itself again, or of every job.
    Resume(Option<JobId>),
    /// Send a signal to a run's program.
    Signal(RunId, Signal),
    /// Make a job that is not there.
    Add(JobId, Form),
    /// Remove a job.
    Remove(JobId),
    /// Read all definitions again.
    Reload,
    /// Run a job now.
    Trigger(JobId),
    /// Look whether the definitions of these jobs are good; of all, when there are none.
    Validate(Vec<String>),
    /// Let nodes with these names start nothing any more.
    Drain(Vec<String>),
}

impl Event {
    /// Reads the text of an event. One that our own nodes have sent to others asks nothing of us.
    pub fn parse(text: &str) -> Result<Option<Self>, TextError> {
        let wrong = |message: String| TextError::new(0..text.len(), message);
        if text.len() > EVENT_BYTES_MAX {
            return Err(wrong(format!("it has {} bytes, at most {EVENT_BYTES_MAX} are read", text.len())));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
        if value.get(FROM.0).is_some_and(|from| from == FROM.1) {
            return Ok(None);
        }
        match (value.get("action").and_then(Value::as_str), value.get("args")) {
            (Some(action), Some(args)) => Self::read(action, args).map(Some),
            _ => Err(wrong("it has no `action` with `args`".to_owned())),
        }
    }

    /// Reads an action with its args.
    pub fn read(action: &str, args: &Value) -> Result<Self, TextError> {
        match action {
            "pause" => job_or_all(args).map(Self::Pause),
            "resume" => job_or_all(args).map(Self::Resume),
            "terminate_run" => run(args).map(|run| Self::Signal(run, signal("SIGTERM"))),
            "kill_run" => run(args).map(|run| Self::Signal(run, Signal::KILL)),
            "remove" => job(args).map(Self::Remove),
            "trigger" => job(args).map(Self::Trigger),
            "add" => definition(args),
            "reload" => Ok(Self::Reload),
            "validate" => match args {
                Value::Array(_) | Value::String(_) => names(args, "names of jobs").map(Self::Validate),
                _ => Ok(Self::Validate(Vec::new())),
            },
            "drain_nodes" => names(args, "names of nodes").map(Self::Drain),
            other => Err(wrong(format!("`{}` is not an event", shortened(other))).hint(
                "events are pause, resume, terminate_run, kill_run, add, remove, reload, trigger, validate \
                 and drain_nodes",
            )),
        }
    }

    /// The one command that does what it asks for, where one is enough. `id` is that of the run, if there will be one.
    pub fn command(&self, id: RunId) -> Option<Command> {
        match self {
            Self::Pause(job) => Some(Command::Pause { job: job.clone(), why: String::new() }),
            Self::Resume(Some(job)) => Some(Command::Resume { job: Some(job.clone()) }),
            Self::Signal(run, signal) => Some(Command::Signal { run: *run, signal: *signal }),
            Self::Remove(job) => {
                Some(Command::RemoveJob { id: job.clone(), source: Source::Api, provided: Provided::Any })
            }
            Self::Trigger(job) => Some(Command::Run { job: job.clone(), args: Default::default(), id, at: None }),
            Self::Resume(None) | Self::Add(..) | Self::Reload | Self::Validate(_) | Self::Drain(_) => None,
        }
    }
}

/// The text of an event that our nodes send to nodes of another kind.
pub fn sent_event(action: &str, args: &str) -> String {
    let args = if args.is_empty() { json!({}) } else { json!(args) };
    json!({"action": action, "args": args, FROM.0: FROM.1}).to_string()
}

/// Ends the pause of everything, and that of each job: whoever sends `resume` for all of them knows no other pauses.
pub async fn resume_everything(node: &Handle, store: &dyn Store, actor: &Actor) -> Result<(), Refused> {
    resume(node, actor, None).await?;
    let mut after = None;
    loop {
        let page = store.page(&Query::JobStates { after }, PAGE).await?;
        for stored in &page.records {
            if let Record::JobState(state) = &stored.record
                && state.pauses.is_paused()
            {
                resume(node, actor, Some(state.job.clone())).await?;
            }
        }
        after = match page.next(PAGE) {
            Some(Key::JobState(last)) => Some(last),
            _ => return Ok(()),
        };
    }
}

/// What is not paused, or is gone meanwhile, need not be resumed.
async fn resume(node: &Handle, actor: &Actor, job: Option<JobId>) -> Result<(), Refused> {
    match node.ask(actor.clone(), Command::Resume { job }).await {
        Ok(_) | Err(Refused::Rejected(Rejection::NotPaused(_) | Rejection::NoJob(_))) => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// The job of `add`, which is given in Cronken's own form.
fn definition(args: &Value) -> Result<Event, TextError> {
    let bad = || {
        wrong("`args` of `add` must be a map with `job_name` and `job_def`")
            .hint(r#"{"job_name": "backup", "job_def": {"cron_args": {…}, "job_args": {…}}}"#)
    };
    let map: &Map<String, Value> = args.as_object().ok_or_else(bad)?;
    let (name, form) = (map.get("job_name").ok_or_else(bad)?, map.get("job_def").ok_or_else(bad)?);
    let form = Form::parse(&form.to_string()).map_err(|mistake| wrong(mistake.to_string()))?;
    Ok(Event::Add(job(name)?, form))
}

fn job(args: &Value) -> Result<JobId, TextError> {
    JobId::parse(text(args, "the name of a job")?)
}

fn job_or_all(args: &Value) -> Result<Option<JobId>, TextError> {
    if args == ALL { Ok(None) } else { job(args).map(Some) }
}

fn run(args: &Value) -> Result<RunId, TextError> {
    RunId::parse(text(args, "the id of a run")?)
}

/// Names in a list, or one name.
fn names(args: &Value, what: &str) -> Result<Vec<String>, TextError> {
    match args {
        Value::Array(names) if names.len() > NAMES_MAX => {
            Err(wrong(format!("one event can have at most {NAMES_MAX} {what}")))
        }
        Value::Array(names) => names.iter().map(|name| text(name, what).map(str::to_owned)).collect(),
        name => Ok(vec![text(name, what)?.to_owned()]),
    }
}

fn text<'a>(args: &'a Value, what: &str) -> Result<&'a str, TextError> {
    args.as_str().ok_or_else(|| wrong(format!("`args` must be {what}, as a text")))
}

fn wrong(message: impl Into<String>) -> TextError {
    TextError::new(0..0, message)
}

fn signal(name: &str) -> Signal {
    Signal::parse(name).expect("every system has it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_event() {
        let run = RunId::from_key(cronhold_schedule::Instant::EPOCH, "a run");
        let job = |name: &str| JobId::parse(name).expect("an id");
        let form = r#"{"cron_args":{"cronstring":"@daily"}}"#;
        for (action, args, expected) in [
            ("pause", json!("a"), Event::Pause(Some(job("a")))),
            ("pause", json!("all"), Event::Pause(None)),
            ("resume", json!("all"), Event::Resume(None)),
            ("terminate_run", json!(run.to_string()), Event::Signal(run, signal("SIGTERM"))),
            ("kill_run", json!(run.to_string()), Event::Signal(run, Signal::KILL)),
            ("remove", json!("a"), Event::Remove(job("a"))),
            ("trigger", json!("x/y"), Event::Trigger(job("x/y"))),
            ("reload", json!({}), Event::Reload),
            ("reload", json!(null), Event::Reload),
            ("validate", json!([]), Event::Validate(Vec::new())),
            ("validate", json!(null), Event::Validate(Vec::new())),
            ("validate", json!("a"), Event::Validate(vec!["a".to_owned()])),
            ("validate", json!(["a", "b c"]), Event::Validate(vec!["a".to_owned(), "b c".to_owned()])),
            ("drain_nodes", json!(["one"]), Event::Drain(vec!["one".to_owned()])),
            ("drain_nodes", json!("one"), Event::Drain(vec!["one".to_owned()])),
            (
                "add",
                json!({"job_name": "a", "job_def": {"cron_args": {"cronstring": "@daily"}}}),
                Event::Add(job("a"), Form::parse(form).expect("a form")),
            ),
        ] {
            let text = json!({"action": action, "args": args}).to_string();
            assert_eq!(Event::parse(&text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            ("", "it is not JSON"),
            ("[]", "it has no `action` with `args`"),
            (r#"{"action": "pause"}"#, "it has no `action` with `args`"),
            (r#"{"action": 7, "args": {}}"#, "it has no `action` with `args`"),
            (r#"{"action": "explode", "args": "a"}"#, "`explode` is not an event"),
            (r#"{"action": "pause", "args": 7}"#, "`args` must be the name of a job, as a text"),
            (r#"{"action": "remove", "args": "all"}"#, "`all` cannot be a job's id"),
            (r#"{"action": "kill_run", "args": "7"}"#, "a run's id"),
            (r#"{"action": "add", "args": {"job_name": "a"}}"#, "must be a map with `job_name` and `job_def`"),
            (r#"{"action": "add", "args": {"job_name": "a", "job_def": 7}}"#, "a job must be a JSON object"),
            (r#"{"action": "drain_nodes", "args": [7]}"#, "`args` must be names of nodes, as a text"),
        ] {
            let error = Event::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    /// What our nodes tell others would be obeyed too late by our own.
    #[test]
    fn does_not_obey_itself() {
        for text in [sent_event("pause", "a"), sent_event("reload", "")] {
            assert_eq!(Event::parse(&text), Ok(None), "{text}");
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let (action, args) = (value["action"].as_str().expect("a text"), &value["args"]);
            assert!(Event::read(action, args).is_ok(), "others understand it");
        }
    }
}
