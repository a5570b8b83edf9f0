//! Resolves an action when its event happens: its templates, and the summary of the run that it sends by default.

use std::collections::BTreeMap;

use cronhold_schedule::TextError;
use serde_json::{Map, Value, json};

use super::bind;
use super::bind_task::json_of;
use crate::ids::JobId;
use crate::job::{Action, Feature, HttpTarget, RunEvent, STORE_WITHOUT_TASKS, TASKS_HINT};
use crate::policy::catch_up::CountedRange;
use crate::record::{
    ActionId, CommandLine, EnvText, JobRecord, ProgramExit, ResolvedAction, ResolvedWebhook, Run, Transition,
};
use crate::task::{Channel, JsonText};
use crate::template::{Bindings, Template};
use crate::world::DecisionContext;

/// The largest size of everything that one action sends, in bytes. It is stored until the run is deleted.
const ACTION_TEXT_MAX: usize = 256 * 1024;

/// What an event happened to.
#[derive(Clone, Copy)]
pub(super) struct EventSource<'a> {
    /// The run, or the run that a span of skips looks like.
    pub(super) run: &'a Run,
    /// The entry of its log that is the event.
    pub(super) entry: &'a Transition,
    /// The occurrences that were missed, if that is the event.
    pub(super) missed: Option<CountedRange>,
}

/// Resolves an action of an event.
pub(super) fn work(
    world: &DecisionContext,
    id: ActionId,
    event: RunEvent,
    job: &JobRecord,
    source: EventSource<'_>,
    action: &Action,
) -> Result<ResolvedAction, String> {
    let feature = Feature::of_action(action);
    if !feature.is_supported() {
        return Err(feature.message());
    }
    let EventSource { run, entry, missed } = source;
    let summary = EventSummary { id, event, run, entry, missed };
    let names = summary.bindings(world);
    let work = match action {
        Action::Run { job, args } => {
            let job = bound("run.job", job, &names)?;
            let job = JobId::parse(&job).map_err(|error| format!("`run.job`: {error}"))?;
            ResolvedAction::Run {
                job,
                args: bound_map("run.args", args, &names)?,
                inherited: run.args.clone(),
                trigger: None,
            }
        }
        Action::Webhook(target) => ResolvedAction::Webhook(Box::new(webhook(target, &summary, &names)?)),
        Action::Email { to, subject, body } => ResolvedAction::Email {
            to: to.clone(),
            subject: one_line(&bound_or("email.subject", subject.as_ref(), &names, || summary.title())?),
            body: bound_or("email.body", body.as_ref(), &names, || summary.text())?,
        },
        Action::Command(line) => {
            let command = CommandLine::Shell { text: bound("command", line, &names)?, shell: job.job.shell.clone() };
            let run_names = bind::bindings(run, world);
            let bind = |template: &Template| template.bind(&run_names);
            let mut process = bind::process(&job.job, command, &bind).map_err(|error| error.to_string())?;
            process.success_codes = vec![0];
            process.env.extend(summary.env());
            ResolvedAction::Command(Box::new(process))
        }
        Action::Publish { channel, message } => {
            if !world.has_tasks {
                return Err(format!("{STORE_WITHOUT_TASKS} ({TASKS_HINT})"));
            }
            let channel = bound("publish.channel", channel, &names)?;
            let channel = Channel::parse(&channel).map_err(|error| format!("`publish.channel`: {error}"))?;
            let message = match message {
                Some(message) => json_of(&bound("publish.message", message, &names)?),
                None => summary.message(),
            };
            ResolvedAction::Publish { channel, message }
        }
    };
    check_size(&work)?;
    Ok(work)
}

/// The channel and the message about a transition of a run.
pub fn transition_message(run: &Run, entry: &Transition) -> (Channel, JsonText) {
    let (id, event) = (ActionId::new(run.id, 0), RunEvent::State(entry.state));
    let summary = EventSummary { id, event, run, entry, missed: None };
    (Channel::of_run(&run.job, entry.state), summary.message())
}

/// The message about a transition, for those who subscribe to the channel of its run.
pub(super) fn transition(source: EventSource<'_>) -> ResolvedAction {
    let (channel, message) = transition_message(source.run, source.entry);
    ResolvedAction::Publish { channel, message }
}

fn webhook(target: &HttpTarget, summary: &EventSummary<'_>, names: &Bindings) -> Result<ResolvedWebhook, String> {
    let HttpTarget { url, method, headers, body, secret } = target;
    let mut headers = bound_map("webhook.headers", headers, names)?;
    let has_summary = body.is_none() && !matches!(&method[..], "GET" | "HEAD");
    if has_summary && !headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        headers.insert("Content-Type".to_owned(), "application/json".to_owned());
    }
    if let Some((name, _)) = headers.iter().find(|(_, value)| value.contains(['\r', '\n', '\0'])) {
        return Err(format!("`webhook.headers.{name}`: the value has several lines"));
    }
    Ok(ResolvedWebhook {
        url: bound("webhook.url", url, names)?,
        method: method.clone(),
        headers,
        body: bound_or("webhook.body", body.as_ref(), names, || {
            if has_summary { summary.json().to_string() } else { String::new() }
        })?,
        secret: secret.clone(),
    })
}

fn check_size(work: &ResolvedAction) -> Result<(), String> {
    let of_map =
        |map: &BTreeMap<String, String>| map.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    let bytes = match work {
        ResolvedAction::Run { args, .. } => of_map(args),
        ResolvedAction::Webhook(webhook) => webhook.url.len() + webhook.body.len() + of_map(&webhook.headers),
        ResolvedAction::Email { subject, body, .. } => subject.len() + body.len(),
        ResolvedAction::Publish { message, .. } => message.as_str().len(),
        // The size of a process is checked where it is resolved.
        ResolvedAction::Command(_) | ResolvedAction::Invalid(_) => 0,
    };
    match bytes > ACTION_TEXT_MAX {
        true => Err(format!("the action has {bytes} bytes; at most {ACTION_TEXT_MAX} are allowed")),
        false => Ok(()),
    }
}

fn bound(key: &str, template: &Template, names: &Bindings) -> Result<String, String> {
    let explain = |error: TextError| format!("`{key}`: {error}");
    template.bind(names).map_err(explain)
}

fn bound_or(
    key: &str,
    template: Option<&Template>,
    names: &Bindings,
    default: impl FnOnce() -> String,
) -> Result<String, String> {
    template.map_or_else(|| Ok(default()), |template| bound(key, template, names))
}

fn bound_map(
    key: &str,
    templates: &BTreeMap<String, Template>,
    names: &Bindings,
) -> Result<BTreeMap<String, String>, String> {
    let one =
        |(name, template): (&String, &Template)| Ok((name.clone(), bound(&format!("{key}.{name}"), template, names)?));
    templates.iter().map(one).collect()
}

/// A subject is one line: a line break in a header would begin another header.
fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What an action says about a run that has entered a state.
struct EventSummary<'a> {
    id: ActionId,
    event: RunEvent,
    run: &'a Run,
    entry: &'a Transition,
    missed: Option<CountedRange>,
}

impl EventSummary<'_> {
    /// The reason of the state. The reason of a run belongs to its last state.
    fn reason(&self) -> String {
        if self.event == RunEvent::Late {
            return self.entry.message.clone();
        }
        let is_last = self.entry.state == self.run.state;
        let reason = self.run.reason.as_ref().or(self.run.ending.as_ref()).filter(|_| is_last);
        reason.map(ToString::to_string).unwrap_or_default()
    }

    fn bindings(&self, world: &DecisionContext) -> Bindings {
        bind::bindings(self.run, world)
            .with("number", i64::try_from(self.run.number.0).unwrap_or(i64::MAX))
            .with("state", self.entry.state.name())
            .with("reason", self.reason())
            .with("missed_count", self.missed.map_or(0, |missed| missed.count))
            .with("missed_until", self.missed.map(|missed| missed.to.to_string()).unwrap_or_default())
    }

    /// What has happened to the run, in one word: the event if it is not the entry into a state.
    fn word(&self) -> &'static str {
        match self.event {
            RunEvent::Late | RunEvent::Missed => self.event.name(),
            RunEvent::Finished | RunEvent::State(_) => self.entry.state.name(),
        }
    }

    /// `job#7 failure`.
    fn title(&self) -> String {
        let several = self.missed.filter(|missed| missed.count > 1);
        let several = several.map(|missed| format!(" {} times", missed.count)).unwrap_or_default();
        format!("{}#{} {}{several}", self.run.job, self.run.number.0, self.word())
    }

    /// The default message of `publish`.
    fn message(&self) -> JsonText {
        let Self { run, entry, .. } = self;
        let message = json!({
            "job": run.job,
            "run": run.id,
            "number": run.number.0,
            "state": entry.state,
            "reason": self.reason(),
            "at": entry.at,
        });
        JsonText::parse(&message.to_string()).expect("it was written as JSON")
    }

    /// The default body of a webhook.
    fn json(&self) -> Value {
        let Self { id, event, run, entry, missed } = self;
        let args: Map<String, Value> = run.args.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let (exit_code, exit_signal) = match run.exit {
            Some(ProgramExit::Code(code)) => (Some(code), None),
            Some(ProgramExit::Signal(signal)) => (None, Some(signal.to_string())),
            None => (None, None),
        };
        let mut summary = json!({
            "action": id,
            "event": event,
            "job": run.job,
            "run": run.id,
            "number": run.number.0,
            "attempt": run.attempt,
            "args": args,
            "state": entry.state,
            "reason": self.reason(),
            "at": entry.at,
            "nominal_time": run.nominal,
            "started": run.started(),
            "finished": run.finished(),
            "exit_code": exit_code,
            "exit_signal": exit_signal,
            "output_bytes": run.written.as_ref().map(|written| written.bytes),
            "tail": run.written.as_ref().map(|written| &written.tail[..]).unwrap_or_default(),
        });
        if let Some(CountedRange { from, to, count }) = missed {
            summary["missed"] = json!({ "count": count, "from": from, "to": to });
        }
        summary
    }

    /// The default text of a mail.
    fn text(&self) -> String {
        let Self { run, entry, .. } = self;
        let reason = Some(self.reason()).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let now = if self.event == RunEvent::Late { format!(" ({})", entry.state) } else { String::new() };
        let mut lines = vec![format!("{}#{} is {}{now}{reason}", run.job, run.number.0, self.word()), String::new()];
        lines.push(format!("run      {}", run.id));
        lines.extend(self.missed.map(|missed| format!("missed   {}, the last at {}", missed.count, missed.to)));
        if !run.args.is_empty() {
            lines.push(format!("args     {}", run.args));
        }
        lines.push(format!("due      {}", run.nominal));
        lines.extend(run.started().map(|at| format!("started  {at}")));
        lines.extend(run.finished().map(|at| format!("finished {at}")));
        if let Some(written) = run.written.as_ref().filter(|written| !written.tail.is_empty()) {
            lines.extend([String::new(), "Last lines of the output:".to_owned(), String::new()]);
            lines.extend(written.tail.iter().cloned());
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// The environment of a command, besides that of the job's program.
    fn env(&self) -> BTreeMap<String, EnvText> {
        let Self { id, event, run, entry, missed } = self;
        let missed = missed.map(|missed| {
            [("CRONHOLD_MISSED_COUNT", missed.count.to_string()), ("CRONHOLD_MISSED_UNTIL", missed.to.to_string())]
        });
        let own = [
            ("CRONHOLD_RUN_ID", run.id.to_string()),
            ("CRONHOLD_JOB", run.job.to_string()),
            ("CRONHOLD_NUMBER", run.number.0.to_string()),
            ("CRONHOLD_ATTEMPT", run.attempt.to_string()),
            ("CRONHOLD_NOMINAL_TIME", run.nominal.to_string()),
            ("CRONHOLD_EVENT", event.to_string()),
            ("CRONHOLD_STATE", entry.state.to_string()),
            ("CRONHOLD_REASON", self.reason()),
            ("CRONHOLD_ACTION_ID", id.to_string()),
        ];
        let own = own.into_iter().chain(missed.into_iter().flatten()).map(|(name, value)| (name.to_owned(), value));
        let args = run.args.iter().map(|(name, value)| (arg_variable(name), value.to_owned()));
        own.chain(args).map(|(name, value)| (name, EnvText::Text(value.replace('\0', " ")))).collect()
    }
}

/// The environment variable of an arg.
fn arg_variable(name: &str) -> String {
    let capital = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    format!("CRONHOLD_ARG_{}", name.chars().map(capital).collect::<String>())
}
