//! Events as Cronken's clients publish them. An event arrives by an API request or by the shared store, and means the same
//! in both cases.

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, JobSource, Record, RecordKey, TriggerId};
use cronhold_core::signal::Signal;
use cronhold_core::{JobId, RunId};
use cronhold_engine::{NodeHandle, RequestError};
use cronhold_jobfile::foreign::ForeignForm;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store::{Query, Store};
use serde_json::{Map, Value, json};

/// The name that means every job.
const ALL: &str = "all";
/// How many jobs or nodes one event can name.
const NAMES_MAX: usize = 1_000;
/// The longest event, in bytes.
const EVENT_BYTES_MAX: usize = 2 << 20;
/// Job states that one request to the store reads.
const PAGE: usize = 1_000;
/// The field and value that mark an event as sent by Cronhold, so that Cronhold's nodes ignore it.
const FROM: (&str, &str) = ("from", "cronhold");

/// An event, which requests one action.
#[derive(Debug, Clone, PartialEq)]
pub enum CronkenEvent {
    /// Pause a job, or all jobs.
    Pause(Option<JobId>),
    /// Resume a job, or all jobs.
    Resume(Option<JobId>),
    /// Send a signal to a run's program.
    Signal(RunId, Signal),
    /// Create a job that does not exist.
    Add(JobId, ForeignForm),
    /// Remove a job.
    Remove(JobId),
    /// Read all definitions again.
    Reload,
    /// Run a job now.
    Trigger(JobId),
    /// Validate the definitions of these jobs; of all jobs, when the list is empty.
    Validate(Vec<String>),
    /// Drain the nodes with these names.
    Drain(Vec<String>),
}

impl CronkenEvent {
    /// Parses the text of an event. Returns `None` for an event that a node of Cronhold has sent to Cronken's nodes.
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
            (Some(action), Some(args)) => Self::from_action(action, args).map(Some),
            _ => Err(wrong("it has no `action` with `args`".to_owned())),
        }
    }

    /// Reads an event from its action and args.
    pub fn from_action(action: &str, args: &Value) -> Result<Self, TextError> {
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

    /// The command that carries out the event, if a single one does. `id` becomes the id of the run, if the event starts one.
    pub fn command(&self, id: RunId) -> Option<Command> {
        match self {
            Self::Pause(job) => Some(Command::Pause { job: job.clone(), why: String::new(), until: None }),
            Self::Resume(Some(job)) => Some(Command::Resume { job: Some(job.clone()) }),
            Self::Signal(run, signal) => Some(Command::Signal { run: *run, signal: *signal }),
            Self::Remove(job) => {
                Some(Command::RemoveJob { id: job.clone(), source: JobSource::Api, provided: Precondition::Any })
            }
            Self::Trigger(job) => {
                let trigger = TriggerId::parse(&format!("event {id}")).expect("it is short and printable");
                Some(Command::Trigger { job: job.clone(), args: Default::default(), trigger, message: None, id })
            }
            Self::Resume(None) | Self::Add(..) | Self::Reload | Self::Validate(_) | Self::Drain(_) => None,
        }
    }
}

/// The text of an event that Cronhold sends to Cronken's nodes. Empty `args` are sent as an empty object.
pub(crate) fn outgoing_event(action: &str, args: &str) -> String {
    let args = if args.is_empty() { json!({}) } else { json!(args) };
    json!({"action": action, "args": args, FROM.0: FROM.1}).to_string()
}

/// Ends the pause of everything and the pause of each job. Cronken has only pauses of jobs, so its `resume` of all jobs
/// means both.
pub async fn resume_all(node: &NodeHandle, store: &dyn Store, actor: &Actor) -> Result<(), RequestError> {
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
            Some(RecordKey::JobState(last)) => Some(last),
            _ => return Ok(()),
        };
    }
}

/// Resumes a job, or everything. It succeeds if nothing is paused or the job does not exist.
async fn resume(node: &NodeHandle, actor: &Actor, job: Option<JobId>) -> Result<(), RequestError> {
    match node.request(actor.clone(), Command::Resume { job }).await {
        Ok(_) | Err(RequestError::Rejected(Rejection::NotPaused(_) | Rejection::NoJob(_))) => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// Reads the args of `add`, which hold a job in Cronken's form.
fn definition(args: &Value) -> Result<CronkenEvent, TextError> {
    let bad = || {
        wrong("`args` of `add` must be a map with `job_name` and `job_def`")
            .hint(r#"{"job_name": "backup", "job_def": {"cron_args": {…}, "job_args": {…}}}"#)
    };
    let map: &Map<String, Value> = args.as_object().ok_or_else(bad)?;
    let (name, form) = (map.get("job_name").ok_or_else(bad)?, map.get("job_def").ok_or_else(bad)?);
    let form = ForeignForm::parse(&form.to_string()).map_err(|mistake| wrong(mistake.to_string()))?;
    Ok(CronkenEvent::Add(job(name)?, form))
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

/// Reads a list of names, or a single name.
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
    fn every_action_is_parsed() {
        let run = RunId::from_key(cronhold_schedule::Instant::EPOCH, "a run");
        let job = |name: &str| JobId::parse(name).expect("an id");
        let form = r#"{"cron_args":{"cronstring":"@daily"}}"#;
        for (action, args, expected) in [
            ("pause", json!("a"), CronkenEvent::Pause(Some(job("a")))),
            ("pause", json!("all"), CronkenEvent::Pause(None)),
            ("resume", json!("all"), CronkenEvent::Resume(None)),
            ("terminate_run", json!(run.to_string()), CronkenEvent::Signal(run, signal("SIGTERM"))),
            ("kill_run", json!(run.to_string()), CronkenEvent::Signal(run, Signal::KILL)),
            ("remove", json!("a"), CronkenEvent::Remove(job("a"))),
            ("trigger", json!("x/y"), CronkenEvent::Trigger(job("x/y"))),
            ("reload", json!({}), CronkenEvent::Reload),
            ("reload", json!(null), CronkenEvent::Reload),
            ("validate", json!([]), CronkenEvent::Validate(Vec::new())),
            ("validate", json!(null), CronkenEvent::Validate(Vec::new())),
            ("validate", json!("a"), CronkenEvent::Validate(vec!["a".to_owned()])),
            ("validate", json!(["a", "b c"]), CronkenEvent::Validate(vec!["a".to_owned(), "b c".to_owned()])),
            ("drain_nodes", json!(["one"]), CronkenEvent::Drain(vec!["one".to_owned()])),
            ("drain_nodes", json!("one"), CronkenEvent::Drain(vec!["one".to_owned()])),
            (
                "add",
                json!({"job_name": "a", "job_def": {"cron_args": {"cronstring": "@daily"}}}),
                CronkenEvent::Add(job("a"), ForeignForm::parse(form).expect("a form")),
            ),
        ] {
            let text = json!({"action": action, "args": args}).to_string();
            assert_eq!(CronkenEvent::parse(&text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn invalid_event_is_rejected_with_a_reason() {
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
            let error = CronkenEvent::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    /// A node has carried out what it sends to Cronken's nodes; the other nodes see it in the store.
    #[test]
    fn events_sent_by_cronhold_are_ignored_by_its_nodes() {
        for text in [outgoing_event("pause", "a"), outgoing_event("reload", "")] {
            assert_eq!(CronkenEvent::parse(&text), Ok(None), "{text}");
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let (action, args) = (value["action"].as_str().expect("a text"), &value["args"]);
            assert!(CronkenEvent::from_action(action, args).is_ok(), "foreign nodes understand it");
        }
    }
}
