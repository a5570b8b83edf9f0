//! Tables and trees of tasks.

use std::io::{self, Write};

use cronhold_api::{TaskSummary, TaskTree};
use cronhold_core::task::TaskStatus;

use super::{CellColour, LocalTimeFormat, TableCell, TextTable, visible};

/// Prints a table. `next` is the last task of it if there are more.
pub(crate) fn table(
    tasks: &[TaskSummary],
    next: Option<u64>,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if tasks.is_empty() {
        return writeln!(out, "no tasks; `cronhold task queue` creates one");
    }
    let mut table = TextTable::new(&["TASK", "STATUS", "QUEUE", "CLASS", "PARENT", "RAN", "DUE"]);
    for task in tasks {
        table.row([
            task.id.to_string().into(),
            status(task.status),
            task.queue.clone().into(),
            task.class.clone().into(),
            parent(task).into(),
            task.ran_at.map(|at| clock.relative(at)).unwrap_or_default().into(),
            task.run_at.map(|at| clock.both(at)).unwrap_or_default().into(),
        ]);
    }
    table.write(colours, out)?;
    match next {
        Some(next) => writeln!(out, "there are more; `--after {next}` continues"),
        None => Ok(()),
    }
}

/// The parent and the name among its children.
pub(super) fn parent(task: &TaskSummary) -> String {
    match (task.parent, &task.name) {
        (Some(parent), Some(name)) => format!("{parent} ({name})"),
        (Some(parent), None) => parent.to_string(),
        (None, _) => String::new(),
    }
}

/// A status in its colour.
fn status(status: TaskStatus) -> TableCell {
    TableCell::new(status.as_str(), colour(status))
}

/// The colour of a status.
pub(super) const fn colour(status: TaskStatus) -> CellColour {
    match status {
        TaskStatus::Completed => CellColour::Green,
        TaskStatus::Failed => CellColour::Red,
        TaskStatus::Running => CellColour::Cyan,
        TaskStatus::Terminating => CellColour::Yellow,
        TaskStatus::Terminated => CellColour::Faint,
        TaskStatus::Queued | TaskStatus::Suspended => CellColour::Plain,
    }
}

/// Prints a tree, one task on each line.
pub(crate) fn tree(tree: &TaskTree, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    for node in &tree.tasks {
        let task = &node.task;
        let name = match (&task.name, node.depth) {
            (Some(name), 1..) => format!("{} ", visible(name)),
            _ => String::new(),
        };
        let status = colour(task.status).paint(task.status.as_str(), colours);
        let (indent, class) = ("  ".repeat(node.depth), visible(&task.class));
        writeln!(out, "{indent}{name}{} {class} {status}", CellColour::Bold.paint(&task.id.to_string(), colours))?;
    }
    match tree.cut {
        true => writeln!(out, "and further tasks; `cronhold task tree` of a child shows those below it"),
        false => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::jobs::tests::clock;
    use super::*;

    /// A task as the API returns it.
    pub(crate) fn task(id: u64, status: &str, parent: Option<(u64, &str)>) -> serde_json::Value {
        json!({"id": id, "queue": "core", "class": "Sum", "status": status,
            "parent": parent.map(|(id, _)| id), "name": parent.map(|(_, name)| name),
            "created_at": "2026-11-16T11:00:00Z", "created_by": "operator ada",
            "ran_at": (status != "queued").then_some("2026-11-16T11:59:00Z"),
            "run_at": (status == "queued").then_some("2026-11-16T13:00:00Z")})
    }

    #[test]
    fn tasks_are_shown_in_a_table() {
        let tasks =
            json!([task(1, "suspended", None), task(2, "failed", Some((1, "a\u{1b}[31m"))), task(3, "queued", None)]);
        let tasks: Vec<TaskSummary> = serde_json::from_value(tasks).expect("tasks");
        let mut out = Vec::new();
        table(&tasks, Some(3), &clock(), false, &mut out).expect("written");
        table(&[], None, &clock(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }

    #[test]
    fn children_are_indented_below_their_parent() {
        let node = |depth: usize, mut task: serde_json::Value| {
            task["depth"] = json!(depth);
            task
        };
        let nodes = json!([
            node(0, task(2, "suspended", Some((1, "above")))),
            node(1, task(3, "failed", Some((2, "left")))),
            node(2, task(5, "completed", Some((3, "below")))),
            node(1, task(4, "running", Some((2, "right")))),
        ]);
        let found: TaskTree = serde_json::from_value(json!({"tasks": nodes, "cut": true})).expect("a tree");
        let mut out = Vec::new();
        tree(&found, false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }
}
