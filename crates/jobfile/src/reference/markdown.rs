//! The reference of all keys, as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::keys::{JOB, KeySpec, KeyTable, TABLES, ValueShape};

/// The text before the tables.
const OPENING: &str = "\
# Keys of a job file

<!-- Made by `cargo run -p cronhold-jobfile --example reference -- markdown`; change the tables in `keys/` instead. -->

A job is one YAML file. Unknown keys, wrong types, duplicate keys and templates with unknown names are
mistakes, which are shown with line, column and a hint. Only `true` and `false` are booleans; a number that begins with a zero
is a text. A text that begins with `{{`, or has it inside `[…]` or `{…}`, needs quotes.

A key that is marked as not supported by this version is described for later: a job that has it is refused.

Spans of time are written `90s`, `15m`, `1h30m`, `2d`, or as a number of seconds; times of day `18:00` or `18:00:30`.
Sizes are written `512MiB`, `2G` (powers of 1024), `2GB` (powers of 1000), or as a number of bytes.
";

/// Generates the reference.
pub fn markdown() -> String {
    let mut text = OPENING.to_owned();
    let mut accepted = BTreeSet::new();
    collect_accepted(&JOB, &mut accepted);
    for table in TABLES {
        section(&mut text, table, accepted.contains(table.name));
    }
    text
}

/// Names of the tables that a job can use without being rejected.
fn collect_accepted(table: &KeyTable, accepted: &mut BTreeSet<&'static str>) {
    if accepted.insert(table.name) {
        for key in table.keys.iter().filter(|key| key.unsupported().is_none()) {
            collect_tables(&key.shape, accepted);
        }
    }
}

fn collect_tables(of: &ValueShape, accepted: &mut BTreeSet<&'static str>) {
    match of {
        ValueShape::Map(table) => collect_accepted(table, accepted),
        ValueShape::List(inner) | ValueShape::Some(inner) | ValueShape::Names { value: inner, .. } => {
            collect_tables(inner, accepted);
        }
        ValueShape::Either(shapes) => shapes.iter().for_each(|shape| collect_tables(shape, accepted)),
        _ => {}
    }
}

fn section(text: &mut String, table: &KeyTable, is_accepted: bool) {
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

fn row(text: &mut String, key: &KeySpec) {
    let aliases: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    let default = if key.required { "needed" } else { key.default.unwrap_or("") };
    let _ = writeln!(text, "| `{}`{aliases} | {} | {default} | {} |", key.name, shape(&key.shape), key.meaning());
}

fn shape(of: &ValueShape) -> String {
    match of {
        ValueShape::Text => "text".to_owned(),
        ValueShape::Value => "text, number or boolean".to_owned(),
        ValueShape::Template => "template".to_owned(),
        ValueShape::Expression => "expression".to_owned(),
        ValueShape::Bool => "`true` or `false`".to_owned(),
        ValueShape::True => "`true`".to_owned(),
        ValueShape::Null => "nothing".to_owned(),
        ValueShape::Whole { least, most } if *most >= i64::from(u32::MAX) => format!("whole number from {least}"),
        ValueShape::Whole { least, most } => format!("whole number, {least} to {most}"),
        ValueShape::Number { least } => format!("number from {least}"),
        ValueShape::Span => "span".to_owned(),
        ValueShape::Size { .. } => "size".to_owned(),
        ValueShape::Time => "time of day".to_owned(),
        ValueShape::Moment => "date or instant".to_owned(),
        ValueShape::Pattern { noun, .. } => (*noun).to_owned(),
        ValueShape::Word(words) => format!("`{}`", words.join("`, `")),
        ValueShape::List(items) | ValueShape::Some(items) => format!("list of ({})", shape(items)),
        ValueShape::Map(table) => format!("[{0}](#{0})", table.name),
        ValueShape::Names { value, .. } => format!("map of name to ({})", shape(value)),
        ValueShape::Either(shapes) => shapes.iter().map(shape).collect::<Vec<_>>().join(" or "),
    }
}
