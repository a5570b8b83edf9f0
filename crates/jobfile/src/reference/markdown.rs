//! The reference of all keys for people, as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::keys::{JOB, Key, Shape, TABLES, Table};

/// What the reference says before the tables.
const OPENING: &str = "\
# Keys of a job file

<!-- Made by `cargo run -p cronhold-jobfile --example reference -- markdown`; change the tables in `keys/` instead. -->

A job is one YAML file. Unknown keys, wrong types, keys that stand twice and templates with unknown names are
mistakes, shown with line, column and a hint. Only `true` and `false` are booleans; a number that begins with a zero
is a text. A text that begins with `{{`, or has it inside `[…]` or `{…}`, needs quotes.

A key that is marked as not supported by this version is described for later: a job that has it is refused.

Spans of time are written `90s`, `15m`, `1h30m`, `2d`, or as a number of seconds; times of day `18:00` or `18:00:30`.
Sizes are written `512MiB`, `2G` (powers of 1024), `2GB` (powers of 1000), or as a number of bytes.
";

/// The reference.
pub fn markdown() -> String {
    let mut text = OPENING.to_owned();
    let mut accepted = BTreeSet::new();
    collect_accepted(&JOB, &mut accepted);
    for table in TABLES {
        section(&mut text, table, accepted.contains(table.name));
    }
    text
}

/// Names of the tables that a job can use without being refused.
fn collect_accepted(table: &Table, accepted: &mut BTreeSet<&'static str>) {
    if accepted.insert(table.name) {
        for key in table.keys.iter().filter(|key| key.unsupported().is_none()) {
            collect_tables(&key.shape, accepted);
        }
    }
}

fn collect_tables(of: &Shape, accepted: &mut BTreeSet<&'static str>) {
    match of {
        Shape::Map(table) => collect_accepted(table, accepted),
        Shape::List(inner) | Shape::Some(inner) | Shape::Names { value: inner, .. } => collect_tables(inner, accepted),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| collect_tables(shape, accepted)),
        _ => {}
    }
}

fn section(text: &mut String, table: &Table, is_accepted: bool) {
    let name = table.name;
    let note = if is_accepted { "" } else { " **Not supported by this version.**" };
    let _ = write!(text, "\n## {name}\n\n{}{note}", table.doc);
    if table.one_of.len() > 1 {
        let kinds: Vec<String> = table.one_of.iter().map(|group| format!("`{}`", group.join("`/`"))).collect();
        let _ = write!(text, " Exactly one of {}.", kinds.join(", "));
    }
    text.push_str("\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in table.keys {
        row(text, key);
    }
}

fn row(text: &mut String, key: &Key) {
    let aliases: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    let default = if key.required { "needed" } else { key.default.unwrap_or("") };
    let _ = writeln!(text, "| `{}`{aliases} | {} | {default} | {} |", key.name, shape(&key.shape), key.meaning());
}

fn shape(of: &Shape) -> String {
    match of {
        Shape::Text => "text".to_owned(),
        Shape::Value => "text, number or boolean".to_owned(),
        Shape::Template => "template".to_owned(),
        Shape::Expression => "expression".to_owned(),
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::True => "`true`".to_owned(),
        Shape::Null => "nothing".to_owned(),
        Shape::Whole { least, most } if *most >= i64::from(u32::MAX) => format!("whole number from {least}"),
        Shape::Whole { least, most } => format!("whole number, {least} to {most}"),
        Shape::Number { least } => format!("number from {least}"),
        Shape::Span => "span".to_owned(),
        Shape::Size { .. } => "size".to_owned(),
        Shape::Time => "time of day".to_owned(),
        Shape::Moment => "date or instant".to_owned(),
        Shape::Pattern { noun, .. } => (*noun).to_owned(),
        Shape::Word(words) => format!("`{}`", words.join("`, `")),
        Shape::List(items) | Shape::Some(items) => format!("list of ({})", shape(items)),
        Shape::Map(table) => format!("[{0}](#{0})", table.name),
        Shape::Names { value, .. } => format!("map of name to ({})", shape(value)),
        Shape::Either(shapes) => shapes.iter().map(shape).collect::<Vec<_>>().join(" or "),
    }
}
