//! The messages of protocol 1: one JSON object in each line, whose field `t` names the message.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{ChildName, ClassName, JsonText, StepId};
use cronhold_schedule::text::shortened;
use serde::Deserialize;
use serde_json::json;

use super::change::{KeyForm, PortForm};

/// The version of the protocol.
pub const PROTOCOL: u64 = 1;
/// Maximum length of a line in bytes, in both directions.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// A message of an executable.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Ready(ReadyMessage),
    /// What a step does, in order.
    Changes {
        step: StepId,
        changes: RowChanges,
    },
    /// A question about a step. The reply repeats the id.
    Need {
        step: StepId,
        id: JsonText,
        need: StepNeed,
    },
    End {
        step: StepId,
        changes: RowChanges,
        ending: MessageEnding,
    },
    Log {
        level: String,
        text: String,
    },
}

/// The reply to `hello`.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyMessage {
    /// Steps that the executable makes at once.
    pub(super) concurrency: u32,
    pub(super) classes: BTreeMap<ClassName, JsonText>,
    /// Whether it wants the contexts of items.
    pub(super) wants_context: bool,
    /// The parts of a step that each class needs; all of them for a class that is not named.
    pub(super) needs: BTreeMap<ClassName, BTreeSet<String>>,
}

/// Acts, and the row of inputs to which they belong.
#[derive(Debug, Default)]
pub(super) struct RowChanges {
    pub(super) row: Option<usize>,
    pub(super) acts: Vec<JsonText>,
}

/// What an executable asks for.
#[derive(Debug)]
pub(super) enum StepNeed {
    Items(ItemsForm),
    Child(ChildName),
    Task(KeyForm),
    IdOf(String),
}

/// Items of a port of the task or of a child.
#[derive(Debug, Deserialize)]
pub(super) struct ItemsForm {
    #[serde(flatten)]
    pub(super) port: PortForm,
    #[serde(default)]
    pub(super) from: u64,
    pub(super) count: Option<usize>,
}

/// How an executable ends a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageEnding {
    Done,
    Suspend,
    Fail(String),
}

/// All fields of all messages. Fields that are not named here are ignored.
#[derive(Deserialize)]
struct MessageForm {
    t: String,
    step: Option<String>,
    row: Option<usize>,
    #[serde(default)]
    acts: Vec<JsonText>,
    #[serde(rename = "as")]
    ending: Option<String>,
    error: Option<String>,
    backtrace: Option<String>,
    id: Option<JsonText>,
    items: Option<ItemsForm>,
    child: Option<ChildName>,
    task: Option<KeyForm>,
    id_of: Option<String>,
    level: Option<String>,
    text: Option<String>,
    protocol: Option<u64>,
    concurrency: Option<u32>,
    #[serde(default)]
    classes: BTreeMap<ClassName, JsonText>,
    #[serde(default)]
    wants: Vec<String>,
    #[serde(default)]
    needs: BTreeMap<ClassName, BTreeSet<String>>,
}

/// Parses a line of an executable. The error says what is wrong with it.
pub(super) fn parse_message(line: &str) -> Result<WorkerMessage, String> {
    let form: MessageForm = serde_json::from_str(line)
        .map_err(|error| format!("the line is not a message: {error}: {}", shortened(line)))?;
    match form.t.as_str() {
        "ready" => ready(form).map(WorkerMessage::Ready),
        "do" => Ok(WorkerMessage::Changes { step: step_of(&form)?, changes: changes(form) }),
        "need" => need(form),
        "end" => end(form),
        "log" => {
            let text = form.text.ok_or("a `log` needs `text`")?;
            Ok(WorkerMessage::Log { level: form.level.unwrap_or_else(|| "info".to_owned()), text })
        }
        other => Err(format!("`{}` is not a message; they are ready, do, need, end and log", shortened(other))),
    }
}

fn ready(form: MessageForm) -> Result<ReadyMessage, String> {
    match form.protocol {
        Some(PROTOCOL) => {}
        Some(other) => return Err(format!("`ready` chooses protocol {other}; only {PROTOCOL} is offered")),
        None => return Err(format!("`ready` needs `\"protocol\":{PROTOCOL}`")),
    }
    let concurrency = form.concurrency.unwrap_or(1);
    if concurrency == 0 {
        return Err("`ready` needs a `concurrency` of at least 1".to_owned());
    }
    let wants_context = form.wants.iter().any(|want| want == "context");
    Ok(ReadyMessage { concurrency, classes: form.classes, wants_context, needs: form.needs })
}

fn step_of(form: &MessageForm) -> Result<StepId, String> {
    let text = form.step.as_deref().ok_or_else(|| format!("`{}` needs `step`", form.t))?;
    StepId::parse(text).map_err(|error| error.message)
}

fn changes(form: MessageForm) -> RowChanges {
    RowChanges { row: form.row, acts: form.acts }
}

fn need(form: MessageForm) -> Result<WorkerMessage, String> {
    let step = step_of(&form)?;
    let id = form.id.ok_or("a `need` needs an `id`, which the reply repeats")?;
    let need = match (form.items, form.child, form.task, form.id_of) {
        (Some(items), None, None, None) => StepNeed::Items(items),
        (None, Some(child), None, None) => StepNeed::Child(child),
        (None, None, Some(task), None) => StepNeed::Task(task),
        (None, None, None, Some(name)) => StepNeed::IdOf(name),
        _ => return Err("a `need` needs one of `items`, `child`, `task` and `id_of`".to_owned()),
    };
    Ok(WorkerMessage::Need { step, id, need })
}

fn end(form: MessageForm) -> Result<WorkerMessage, String> {
    let step = step_of(&form)?;
    let ending = match form.ending.as_deref() {
        Some("done") => MessageEnding::Done,
        Some("suspend") => MessageEnding::Suspend,
        Some("fail") => {
            let error = form.error.clone().unwrap_or_else(|| "the worker gave no error".to_owned());
            MessageEnding::Fail(match &form.backtrace {
                Some(backtrace) => format!("{error}\n{backtrace}"),
                None => error,
            })
        }
        _ => return Err("an `end` needs `as`: done, suspend or fail".to_owned()),
    };
    Ok(WorkerMessage::End { step, changes: changes(form), ending })
}

/// The first message to an executable.
pub(super) fn hello(queue: &str, process: &str, concurrency: u32, limits: (usize, usize)) -> String {
    let (items, bytes) = limits;
    json!({
        "t": "hello", "protocol": [PROTOCOL], "queue": queue, "process": process, "concurrency": concurrency,
        "limits": {"line": LINE_BYTES_MAX, "items": items, "bytes": bytes},
    })
    .to_string()
}

/// Tells an executable that a step is not wanted any more.
pub(super) fn cancel(step: StepId, why: &str) -> String {
    json!({"t": "cancel", "step": step.to_string(), "why": why}).to_string()
}

/// Tells an executable that no more steps come.
pub(super) fn quiet() -> String {
    json!({"t": "quiet"}).to_string()
}

/// The reply to a need.
pub(super) fn have(step: StepId, id: &JsonText, found: Result<JsonText, String>) -> String {
    let (field, value) = match found {
        Ok(found) => ("found", found),
        Err(error) => ("error", JsonText::of_text(&error)),
    };
    format!(r#"{{"t":"have","step":"{step}","id":{id},"{field}":{value}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_messages_are_named() {
        let step = "0123456789abcdef0123456789abcdef";
        for (line, expected) in [
            ("oops", "the line is not a message"),
            ("[1]", "the line is not a message"),
            (r#"{"t":"what"}"#, "`what` is not a message"),
            (r#"{"t":"ready"}"#, "`ready` needs `\"protocol\":1`"),
            (r#"{"t":"ready","protocol":2}"#, "only 1 is offered"),
            (r#"{"t":"do","acts":[]}"#, "`do` needs `step`"),
            (r#"{"t":"do","step":"1","acts":[]}"#, "`1` is not the id of a step"),
            (&format!(r#"{{"t":"end","step":"{step}","as":"over"}}"#), "done, suspend or fail"),
            (&format!(r#"{{"t":"need","step":"{step}","child":"a"}}"#), "needs an `id`"),
            (&format!(r#"{{"t":"need","step":"{step}","id":1}}"#), "needs one of"),
        ] {
            let error = parse_message(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        let line = format!(r#"{{"t":"end","step":"{step}","as":"done","acts":[{{"set":{{"a":[]}}}}],"new":1}}"#);
        assert!(matches!(parse_message(&line), Ok(WorkerMessage::End { ending: MessageEnding::Done, .. })));
    }
}
