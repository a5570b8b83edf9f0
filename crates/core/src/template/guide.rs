//! Tests of the guide about templates: every example in it is bound, and it lists everything that exists.

use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_schedule::calendar::CalendarSet;

use super::environment::{FILTERS, FUEL, FUNCTIONS, TESTS};
use super::shape::JOINS_MAX;
use super::texts::RANGE_MAX;
use super::*;
use crate::job::{NAMES, TemplateScope};

const GUIDE: &str = include_str!("../../../../docs/guide/templates.md");

/// The two cells of each row in the tables with this header.
fn rows(first: &str, second: &str) -> Vec<(String, String)> {
    let head = format!("| {first} | {second} |");
    let tables = GUIDE.split("\n\n").filter(|part| part.starts_with(&head));
    tables.flat_map(|table| table.lines().skip(2)).map(cells).collect()
}

fn cells(row: &str) -> (String, String) {
    // A `|` inside a cell is escaped.
    let bar = "\u{0}";
    let row = row.replace(r"\|", bar);
    let cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| code(cell.trim()).replace(bar, "|")).collect();
    let [first, second] = cells.as_slice() else { panic!("two cells in {row}") };
    (first.clone(), second.clone())
}

/// The text of a cell without backticks.
fn code(cell: &str) -> &str {
    let inside = cell.strip_prefix("`` ").and_then(|cell| cell.strip_suffix(" ``"));
    inside.or_else(|| cell.strip_prefix('`')?.strip_suffix('`')).unwrap_or(cell)
}

fn bindings() -> Bindings {
    let world = Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(CalendarSet::new()));
    rows("name", "value").into_iter().fold(world, |bindings, (name, value)| match value.parse::<i64>() {
        Ok(number) => bindings.with(name, number),
        Err(_) => bindings.with(name, value),
    })
}

#[test]
fn examples_bind_to_the_stated_results() {
    let examples = rows("template", "result");
    assert!(examples.len() > 40, "{}", examples.len());
    for (text, expected) in examples {
        let bound = Template::parse(&text).and_then(|template| template.bind(&bindings()));
        assert_eq!(bound, Ok(expected), "{text}");
    }
}

#[test]
fn mistakes_give_the_stated_errors() {
    let mistakes = rows("template", "mistake");
    assert!(mistakes.len() > 3);
    for (text, expected) in mistakes {
        let bound = Template::parse(&text).and_then(|template| template.bind(&bindings()));
        assert_eq!(bound.map_err(|error| error.to_string()), Err(expected), "{text}");
    }
}

#[test]
fn each_function_filter_and_test_has_an_example() {
    let examples: String = rows("template", "result").into_iter().map(|(text, _)| text + "\n").collect();
    let has = |form: String| examples.contains(&form);
    for name in FUNCTIONS {
        assert!(has(format!("{name}(")) || GUIDE.contains(&format!("`{name}(…)`")), "the function {name}");
    }
    for name in FILTERS {
        assert!(has(format!("| {name} ")) || has(format!("| {name}(")), "the filter {name}");
    }
    for name in TESTS {
        let forms = ["is", "is not"].map(|is| [format!("{is} {name} "), format!("{is} {name}(")]);
        assert!(forms.into_iter().flatten().any(has), "the test {name}");
    }
}

#[test]
fn names_of_each_scope_are_listed() {
    for scope in TemplateScope::ALL {
        let params = scope.has_params().then_some("params".to_owned());
        let names: Vec<String> = params.into_iter().chain(scope.names().map(|name| format!("`{name}`"))).collect();
        let row = format!("| {} | {} |\n", scope.noun(), names.join(", "));
        assert!(GUIDE.contains(&row), "{row}");
    }
    for name in NAMES {
        let row = format!("| `{}` | {} |\n", name.name, name.meaning);
        assert!(GUIDE.contains(&row), "{row}");
    }
}

#[test]
fn stated_limits_are_the_actual_ones() {
    for limit in [
        format!("A text with expressions has at most {} KiB", TEXT_MAX / 1024),
        format!("all values bound to it together at most {} KiB", VALUES_MAX / 1024),
        format!("the result at most {} MiB", RESULT_MAX / (1024 * 1024)),
        format!("at most {FUEL} steps"),
        format!("at most {RANGE_MAX} numbers"),
        format!("joins at most {} values", JOINS_MAX + 1),
    ] {
        assert!(GUIDE.contains(&limit), "{limit}");
    }
}
