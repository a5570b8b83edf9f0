//! The acts of protocol 1 as they are written: objects with one key, which names the act.

use std::collections::BTreeMap;

use cronhold_core::task::{
    Channel, ChildName, ClassName, JsonObject, JsonText, PortDirection, PortName, QueueName, TaskAlias, TaskId, TaskKey,
};
use cronhold_schedule::{Instant, Span, TextError};
use serde::{Deserialize, Deserializer};

/// One act.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepChange {
    Take(TakeForm),
    Write(WriteForm),
    Default(DefaultForm),
    Channels(ChannelsForm),
    Ports(PortsForm),
    Set(BTreeMap<String, JsonText>),
    Unset(Vec<String>),
    Queue(QueueForm),
    Adopt(AdoptForm),
    Disown(OwnerForm),
    Alias(AliasForm),
    Unalias(AliasForm),
    Run(RunForm),
    Terminate(TerminateForm),
    Connect(ConnectForm),
    Publish(PublishForm),
    Log(JsonText),
    Context(JsonObject),
    Group(GroupForm),
}

/// A task by its id or an alias.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum KeyForm {
    Number(u64),
    Text(String),
}

/// A time: seconds since 1970, or a text such as `2026-11-19T02:00:00Z`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum TimeForm {
    Seconds(f64),
    Text(String),
}

/// The task that an act is about: the one of the step unless a child or a task is named.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OwnerForm {
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
}

/// A port of the task of the step, of a child or of another task.
#[derive(Debug, Deserialize)]
pub(super) struct PortForm {
    pub(super) port: PortName,
    pub(super) dir: Option<DirectionForm>,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DirectionForm {
    In,
    Out,
}

#[derive(Debug, Deserialize)]
pub(super) struct TakeForm {
    pub(super) port: PortName,
    pub(super) child: Option<ChildName>,
    #[serde(default = "one")]
    pub(super) count: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct WriteForm {
    pub(super) port: PortName,
    pub(super) dir: Option<DirectionForm>,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
    #[serde(default, deserialize_with = "present")]
    pub(super) data: Option<JsonText>,
    pub(super) list: Option<Vec<JsonText>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DefaultForm {
    pub(super) port: PortName,
    pub(super) dir: Option<DirectionForm>,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
    #[serde(default, deserialize_with = "present")]
    pub(super) data: Option<JsonText>,
    #[serde(default)]
    pub(super) clear: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChannelsForm {
    pub(super) port: PortName,
    pub(super) dir: Option<DirectionForm>,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
    pub(super) channels: Vec<Channel>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PortsForm {
    #[serde(rename = "in")]
    pub(super) inports: Option<JsonText>,
    #[serde(rename = "out")]
    pub(super) outports: Option<JsonText>,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
}

#[derive(Debug, Deserialize)]
pub(super) struct QueueForm {
    /// The name among the children of the task; without one, the new task has no parent.
    pub(super) name: Option<ChildName>,
    pub(super) queue: Option<QueueName>,
    pub(super) class: ClassName,
    pub(super) args: Option<JsonText>,
    #[serde(rename = "in")]
    pub(super) inports: Option<JsonText>,
    #[serde(rename = "out")]
    pub(super) outports: Option<JsonText>,
    pub(super) at: Option<TimeForm>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AdoptForm {
    pub(super) task: KeyForm,
    pub(super) name: ChildName,
}

/// The alias of the task of the step, or of another one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum AliasForm {
    Own(TaskAlias),
    Other { name: TaskAlias, child: Option<ChildName>, task: Option<KeyForm> },
}

#[derive(Debug, Deserialize)]
pub(super) struct RunForm {
    #[serde(default, rename = "self")]
    pub(super) own: bool,
    #[serde(default)]
    pub(super) parent: bool,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
    pub(super) at: Option<TimeForm>,
    /// Seconds from now.
    pub(super) wait: Option<f64>,
    #[serde(default)]
    pub(super) force: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct TerminateForm {
    #[serde(default, rename = "self")]
    pub(super) own: bool,
    pub(super) child: Option<ChildName>,
    pub(super) task: Option<KeyForm>,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConnectForm {
    pub(super) from: PortForm,
    pub(super) to: Vec<PortForm>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PublishForm {
    pub(super) channel: Channel,
    pub(super) message: JsonText,
}

#[derive(Debug, Deserialize)]
pub(super) struct GroupForm {
    pub(super) log: Option<bool>,
    pub(super) notify: Option<bool>,
}

const fn one() -> u64 {
    1
}

/// A value that is `null` is a value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

/// Parses an act. The error says what is wrong with it.
pub(super) fn parse_change(act: &JsonText) -> Result<StepChange, TextError> {
    act.to()
}

impl KeyForm {
    pub(super) fn key(&self) -> Result<TaskKey, TextError> {
        match self {
            Self::Number(number) => TaskId::parse(&number.to_string()).map(TaskKey::Id),
            Self::Text(text) => TaskKey::parse(text),
        }
    }
}

impl TimeForm {
    pub(super) fn instant(&self) -> Result<Instant, TextError> {
        match self {
            Self::Seconds(seconds) => Ok(Instant::EPOCH.plus(seconds_span(*seconds)?)),
            Self::Text(text) => Instant::parse(text),
        }
    }
}

/// A span of seconds with a fraction.
pub(super) fn seconds_span(seconds: f64) -> Result<Span, TextError> {
    const SECONDS_MAX: f64 = 1e11;
    match (0.0..SECONDS_MAX).contains(&seconds) {
        // The range excludes what does not fit.
        true => Ok(Span::from_micros((seconds * 1e6).round() as u64)),
        false => Err(TextError::new(0..0, format!("`{seconds}` is not a number of seconds"))),
    }
}

impl DirectionForm {
    pub(super) const fn direction(self) -> PortDirection {
        match self {
            Self::In => PortDirection::In,
            Self::Out => PortDirection::Out,
        }
    }
}
