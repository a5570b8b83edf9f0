//! Reads windows from replies of scripts.

use cronhold_core::task::{ChildName, JsonText, PortDirection, PortItem, PortName, StateField, TaskAlias, TaskId};
use cronhold_store::Fault;
use cronhold_store::tasks::{ChildWindow, PortRecord, PortWindow, TaskWindow, WINDOW_BYTES_MAX, WindowLimits};
use redis::Value;

use super::RedisTaskError;
use super::changes::{pairs, port_parts, read_ports};
use super::facts::FactValues;
use super::texts::read_task;
use crate::pack::Pack;
use crate::reply;

/// What a script has to read of some tasks.
#[derive(Debug, Clone)]
pub(super) struct WindowRequest {
    pub(super) tasks: Vec<TaskId>,
    pub(super) limits: WindowLimits,
}

impl WindowRequest {
    pub(super) fn pack(&self, minute: i64, into: &mut Pack) {
        let WindowLimits { items, bytes, children } = self.limits;
        into.list(6);
        into.text(minute.to_string());
        into.text(items.max(1).to_string());
        // The texts of items have more bytes than their data.
        into.text(bytes.saturating_mul(4).to_string());
        into.text(children.to_string());
        into.list(self.tasks.len());
        self.tasks.iter().for_each(|task| into.text(task.to_string()));
        into.text(WINDOW_BYTES_MAX.to_string());
    }

    /// The windows in the order of the tasks; `None` for a task that does not exist.
    pub(super) fn read(&self, reply: Value, minute: i64) -> Result<Vec<Option<TaskWindow>>, Fault> {
        let mut replies = reply::list(reply)?.into_iter();
        let windows = self.tasks.iter().map(|task| match replies.next().unwrap_or(Value::Nil) {
            Value::Array(parts) => read_window(*task, parts, minute, &self.limits).map(Some),
            _ => Ok(None),
        });
        windows.collect()
    }
}

/// A list of byte strings, where a missing one is empty.
pub(super) fn byte_list(value: Value) -> Result<FactValues, Fault> {
    let values = reply::list(value)?.into_iter();
    values.map(|value| Ok(reply::bytes(value)?.unwrap_or_default())).collect()
}

fn text_list(value: Value) -> Result<Vec<String>, Fault> {
    let texts = byte_list(value)?.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
    texts.map_err(|error| RedisTaskError::damaged("job:*", &error).into())
}

fn damaged(task: TaskId) -> impl Fn(&dyn std::fmt::Display) -> Fault {
    move |why| RedisTaskError::damaged(&format!("job:{task}:*"), why).into()
}

fn read_window(id: TaskId, parts: Vec<Value>, minute: i64, limits: &WindowLimits) -> Result<TaskWindow, Fault> {
    let mut parts = parts.into_iter();
    let mut next = || parts.next().unwrap_or(Value::Array(Vec::new()));
    let damaged = damaged(id);
    let stored = read_task(id, &byte_list(next())?, minute)?;
    let task = stored.ok_or_else(|| reply::unexpected("a task", &Value::Nil))?.task;
    let aliases = text_list(next())?.iter().map(|text| TaskAlias::parse(text)).collect::<Result<Vec<_>, _>>();
    let mut aliases = aliases.map_err(|error| damaged(&error))?;
    aliases.sort();
    let state = pairs(text_list(next())?).into_iter().map(|(field, value)| {
        let field = StateField::parse(&field).map_err(|error| damaged(&error))?;
        Ok((field, JsonText::parse(&value).map_err(|error| damaged(&error))?))
    });
    let mut state = state.collect::<Result<Vec<_>, Fault>>()?;
    state.sort();
    let (inports, has_inport_template) = read_port_windows(id, &text_list(next())?, limits)?;
    let (outports, has_outport_template) = read_port_windows(id, &text_list(next())?, limits)?;
    let mut children = Vec::new();
    for child in reply::list(next())? {
        children.extend(read_child(child, minute, limits)?);
    }
    children.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(TaskWindow { task, aliases, state, inports, outports, has_inport_template, has_outport_template, children })
}

/// A child; `None` if it does not exist.
fn read_child(value: Value, minute: i64, limits: &WindowLimits) -> Result<Option<ChildWindow>, Fault> {
    let mut parts = reply::list(value)?.into_iter();
    let mut next = || parts.next().unwrap_or(Value::Array(Vec::new()));
    let (name, id) = (reply::text(next())?, reply::text(next())?);
    let task = TaskId::parse(&id).map_err(|error| Fault::from(RedisTaskError::damaged("job:*:children", &error)))?;
    let name = ChildName::parse(&name).map_err(|error| damaged(task)(&error))?;
    let Some(stored) = read_task(task, &byte_list(next())?, minute)? else { return Ok(None) };
    let (outports, _) = read_port_windows(task, &text_list(next())?, limits)?;
    Ok(Some(ChildWindow { name, task, class: stored.task.class, status: stored.task.status, outports }))
}

/// The windows of all ports in one direction by name, and whether there is a template.
fn read_port_windows(task: TaskId, values: &[String], limits: &WindowLimits) -> Result<(Vec<PortWindow>, bool), Fault> {
    let damaged = damaged(task);
    let mut records = read_ports(values).map_err(|why| damaged(&why))?;
    let [names, .., rest] = port_parts(values);
    let (_, mut rest) = rest.split_at((2 * names.len()).min(rest.len()));
    let mut windows = Vec::new();
    let mut has_template = false;
    for name in names {
        let Some((count, after)) = rest.split_first() else { break };
        let (items, after) = after.split_at(count.parse().unwrap_or(0).min(after.len()));
        rest = after;
        let name = PortName::parse(name).map_err(|error| damaged(&error))?;
        let record = records.remove(&name).unwrap_or_default();
        match name.is_template() {
            true => has_template = true,
            false => windows.push(port_window(name, record.first, record, items, limits).map_err(|why| damaged(&why))?),
        }
    }
    windows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((windows, has_template))
}

/// A port with those items that are within the limits, but at least one if one was read.
fn port_window(
    name: PortName,
    position: u64,
    record: PortRecord,
    items: &[String],
    limits: &WindowLimits,
) -> Result<PortWindow, String> {
    let size = record.size();
    let items = items.iter().map(|text| PortItem::parse(text)).collect::<Result<Vec<_>, _>>();
    let mut items = items.map_err(|error| error.to_string())?;
    let mut bytes = 0;
    let within = items.iter().take_while(|item| {
        bytes += item.data.as_str().len();
        bytes <= limits.bytes
    });
    let count = within.count().max(1).min(limits.items.max(1));
    items.truncate(count);
    Ok(PortWindow { name, size, position, items, default: record.default, channels: record.channels })
}

/// The reply to a request for items of one port; `None` if it does not exist.
pub(super) fn read_port_items(
    task: TaskId,
    direction: PortDirection,
    name: &PortName,
    reply: Value,
    limits: &WindowLimits,
) -> Result<Option<PortWindow>, Fault> {
    let mut parts = reply::list(reply)?.into_iter();
    let mut next = || parts.next().unwrap_or(Value::Array(Vec::new()));
    let damaged = |why: String| Fault::from(RedisTaskError::damaged(&format!("job:{task}:{direction}:{name}"), &why));
    let mut records = read_ports(&text_list(next())?).map_err(damaged)?;
    let offset: u64 = reply::text(next())?.parse().unwrap_or(0);
    let Some(record) = records.remove(name) else { return Ok(None) };
    let items = text_list(next())?;
    port_window(name.clone(), record.first + offset, record, &items, limits).map(Some).map_err(damaged)
}
