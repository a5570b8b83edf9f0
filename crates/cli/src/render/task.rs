//! One task in detail: its ports, state and children; and the options of one port.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cronhold_api::{PortItemList, TaskDetail, TaskPortSummary};
use cronhold_core::task::{JsonText, PortDirection};

use super::tasks::{colour, parent};
use super::{CellColour, LocalTimeFormat, TableCell, TextTable, counted, visible};

/// Characters of a JSON value that a table shows; the JSON output has all of them.
const VALUE_SHOWN: usize = 60;
/// Children that are printed; the JSON output has all of them.
const CHILDREN_SHOWN: usize = 50;

/// Prints a task in detail.
pub(crate) fn detail(
    detail: &TaskDetail,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let task = &detail.task;
    let status = colour(task.status).paint(task.status.as_str(), colours);
    writeln!(out, "{} {status}", CellColour::Bold.paint(&format!("task {}", task.id), colours))?;
    field("class", &format!("{} of queue {}", task.class, task.queue), out)?;
    if let Some(args) = &detail.args {
        field("args", args.as_str(), out)?;
    }
    if task.parent.is_some() {
        field("parent", &parent(task), out)?;
    }
    if !detail.aliases.is_empty() {
        field("aliases", &detail.aliases.join(", "), out)?;
    }
    let by = if task.created_by.is_empty() { String::new() } else { format!(" by {}", task.created_by) };
    field("created", &format!("{}{by}", clock.both(task.created_at)), out)?;
    if let Some(at) = task.ran_at {
        field("ran", &clock.both(at), out)?;
    }
    if let Some(at) = task.run_at {
        field("due", &clock.both(at), out)?;
    }
    ports("in ports", &detail.inports, detail.creates_inports, colours, out)?;
    ports("out ports", &detail.outports, detail.creates_outports, colours, out)?;
    if !detail.state.is_empty() {
        writeln!(out, "state")?;
        state(&detail.state, colours, out)?;
    }
    children(detail, out)
}

fn field(name: &str, value: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {name:<9} {}", visible(value))
}

/// Prints ports in a table.
fn ports(
    heading: &str,
    ports: &BTreeMap<String, TaskPortSummary>,
    has_template: bool,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if ports.is_empty() && !has_template {
        return Ok(());
    }
    let further = if has_template { ", and others when they are first used" } else { "" };
    writeln!(out, "{heading}{further}")?;
    let mut table = TextTable::new(&["  PORT", "SIZE", "DEFAULT", "CHANNELS"]);
    for (name, port) in ports {
        table.row([
            format!("  {name}").into(),
            port.size.to_string().into(),
            port.default.as_ref().map_or_else(|| "".into(), value),
            port.channels.join(" ").into(),
        ]);
    }
    table.write(colours, out)
}

/// Prints fields of the state in a table.
pub(crate) fn state(state: &BTreeMap<String, JsonText>, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["  FIELD", "VALUE"]);
    for (field, text) in state {
        table.row([format!("  {field}").into(), value(text)]);
    }
    table.write(colours, out)
}

/// A JSON value in a table.
fn value(text: &JsonText) -> TableCell {
    TableCell::new(text.as_str(), CellColour::Plain).cut(VALUE_SHOWN)
}

fn children(detail: &TaskDetail, out: &mut dyn Write) -> io::Result<()> {
    if detail.children.is_empty() {
        return Ok(());
    }
    writeln!(out, "children")?;
    for (name, id) in detail.children.iter().take(CHILDREN_SHOWN) {
        writeln!(out, "  {} {id}", visible(name))?;
    }
    match detail.more_children || detail.children.len() > CHILDREN_SHOWN {
        true => writeln!(out, "  and further ones; `cronhold task tree {}` lists them", detail.task.id),
        false => Ok(()),
    }
}

/// A port without its values, for programs.
pub(crate) fn port_summary(port: PortItemList) -> TaskPortSummary {
    let PortItemList { size, default, channels, .. } = port;
    TaskPortSummary { size, default, channels }
}

/// Prints the options of a port.
pub(crate) fn port(direction: PortDirection, port: &PortItemList, out: &mut dyn Write) -> io::Result<()> {
    let size = counted(usize::try_from(port.size).unwrap_or(usize::MAX), "value");
    writeln!(out, "{direction}port `{}` has {size}", visible(&port.name))?;
    if let Some(default) = &port.default {
        field("default", default.as_str(), out)?;
    }
    port.channels.iter().try_for_each(|channel| field("channel", channel, out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::jobs::tests::clock;
    use super::super::tasks::tests::task;
    use super::*;

    #[test]
    fn task_is_shown_with_ports_state_and_children() {
        let mut full = task(7, "suspended", Some((2, "total")));
        let more = json!({"args": [1, "two"], "aliases": ["sum-eu", "total"],
            "children": {"left": 8, "right": 9}, "more_children": false,
            "inports": {"in": {"size": 3, "channels": ["/shop/orders", "/shop"]}, "factor": {"size": 0, "default": null}},
            "outports": {"sum": {"size": 1}}, "creates_inports": true, "creates_outports": false,
            "state": {"last": 18_446_744_073_709_551_615_u64, "text": "x".repeat(100)}});
        full.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let full: TaskDetail = serde_json::from_value(full).expect("a task");
        let mut out = Vec::new();
        detail(&full, &clock(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }
}
