//! The message `step`: what an executable gets of its task.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{Channel, JsonObject, JsonText};
use cronhold_store::tasks::{PortWindow, TaskWindow};
use serde::Serialize;

use super::message::LINE_BYTES_MAX;
use crate::step::TaskStep;

/// What is sent beside the window of the task.
#[derive(Debug, Clone, Default)]
pub(super) struct StepLineOptions {
    pub(super) deadline_ms: u64,
    pub(super) has_contexts: bool,
    /// The parts that the class needs; `None` for all.
    pub(super) needs: Option<BTreeSet<String>>,
    /// Rows of inputs, which stand for the items of the in ports.
    pub(super) rows: Option<Vec<Vec<JsonText>>>,
}

#[derive(Serialize)]
struct StepLine<'a> {
    t: &'static str,
    step: String,
    call: &'static str,
    task: u64,
    class: &'a str,
    queue: &'a str,
    args: JsonText,
    first: bool,
    attempt: u32,
    deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<BTreeMap<&'a str, &'a JsonText>>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    inports: Option<BTreeMap<&'a str, PortLine<'a>>>,
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    outports: Option<BTreeMap<&'a str, PortLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<BTreeMap<&'a str, ChildLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    aliases: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<&'a Vec<Vec<JsonText>>>,
}

/// A port with its first items.
#[derive(Serialize)]
pub(super) struct PortLine<'a> {
    size: u64,
    items: Vec<&'a JsonText>,
    /// Whether the port has items that are not sent.
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contexts: Option<Vec<Option<&'a JsonObject>>>,
}

/// A child with the first items of its out ports.
#[derive(Serialize)]
pub(super) struct ChildLine<'a> {
    pub(super) task: u64,
    pub(super) class: &'a str,
    pub(super) status: &'static str,
    pub(super) out: BTreeMap<&'a str, PortLine<'a>>,
}

/// How much of each port is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemsSent {
    All,
    None,
}

/// The message for a call of a step; `None` if it is longer than a line can be even without items.
pub(super) fn step_line(step: &TaskStep<'_>, call: &'static str, options: &StepLineOptions) -> Option<String> {
    [ItemsSent::All, ItemsSent::None].into_iter().find_map(|sent| {
        let line = StepLine::of(step, call, options, sent);
        let text = serde_json::to_string(&line).expect("a message consists of strings and JSON");
        (text.len() < LINE_BYTES_MAX).then_some(text)
    })
}

impl<'a> StepLine<'a> {
    fn of(step: &'a TaskStep<'_>, call: &'static str, options: &'a StepLineOptions, sent: ItemsSent) -> Self {
        let (window, task, place) = (step.window(), step.task(), step.place());
        let needs = |part: &str| options.needs.as_ref().is_none_or(|needs| needs.contains(part));
        let ports = |ports: &'a [PortWindow]| port_lines(ports, options.has_contexts, sent);
        let sends_inports = needs("in") && options.rows.is_none();
        Self {
            t: "step",
            step: place.id.to_string(),
            call,
            task: task.id.number(),
            class: task.class.as_str(),
            queue: task.queue.as_str(),
            args: task.args.clone().unwrap_or_else(|| JsonText::list([])),
            first: place.is_first,
            attempt: 1 + task.lost_steps + task.refused_steps,
            deadline_ms: options.deadline_ms,
            state: needs("state").then(|| window.state.iter().map(|(field, value)| (field.as_str(), value)).collect()),
            inports: sends_inports.then(|| ports(&window.inports)),
            outports: needs("out").then(|| ports(&window.outports)),
            children: needs("children").then(|| children(window, options.has_contexts, sent)),
            parent: task.parent.as_ref().map(|(parent, _)| parent.number()),
            aliases: window.aliases.iter().map(|alias| alias.as_str()).collect(),
            rows: options.rows.as_ref(),
        }
    }
}

fn children(window: &TaskWindow, has_contexts: bool, sent: ItemsSent) -> BTreeMap<&str, ChildLine<'_>> {
    let mut lines = BTreeMap::new();
    for child in &window.children {
        let (task, status) = (child.task.number(), child.status.as_str());
        let out = port_lines(&child.outports, has_contexts, sent);
        lines.insert(child.name.as_str(), ChildLine { task, class: child.class.as_str(), status, out });
    }
    lines
}

pub(super) fn all_port_lines(ports: &[PortWindow], has_contexts: bool) -> BTreeMap<&str, PortLine<'_>> {
    port_lines(ports, has_contexts, ItemsSent::All)
}

fn port_lines(ports: &[PortWindow], has_contexts: bool, sent: ItemsSent) -> BTreeMap<&str, PortLine<'_>> {
    let mut lines = BTreeMap::new();
    for port in ports {
        let items = match sent {
            ItemsSent::All => port.items.as_slice(),
            ItemsSent::None => &[],
        };
        let channels = port.channels.iter().map(Channel::as_str).collect();
        let line = PortLine {
            size: port.size,
            items: items.iter().map(|item| &item.data).collect(),
            more: (items.len() as u64) < port.size,
            default: port.default.as_ref().map(|item| &item.data),
            channels: Some(channels).filter(|channels: &Vec<&str>| !channels.is_empty()),
            contexts: has_contexts.then(|| items.iter().map(|item| item.context.as_ref()).collect()),
        };
        lines.insert(port.name.as_str(), line);
    }
    lines
}
