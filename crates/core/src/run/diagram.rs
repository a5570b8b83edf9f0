//! The run table as a document: a Mermaid diagram and tables in Markdown, generated from the match so that they
//! cannot disagree with it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::State;
use super::table::{Cause, Operation, TransitionEffect, next};

/// The whole document.
pub fn document() -> String {
    let mut text = String::from(
        "# States of a run\n\n\
         This file is generated from `crates/core/src/run/table.rs`; do not edit it. Regenerate it with\n\
         `cargo run -p cronhold-core --example run_states > docs/run-states.md`.\n\n",
    );
    push_diagram(&mut text);
    push_causes(&mut text);
    push_operations(&mut text);
    text
}

/// Adds an arrow for each transition, labelled with its causes. Marks are left out because they connect all finished
/// states.
fn push_diagram(text: &mut String) {
    let mut arrows: BTreeMap<(State, State), Vec<&str>> = BTreeMap::new();
    for state in State::ALL {
        for cause in Cause::all().filter(|cause| !is_mark(*cause)) {
            if let Ok(TransitionEffect::Enter(to)) = next(state, cause) {
                arrows.entry((state, to)).or_default().push(cause.name());
            }
        }
    }
    text.push_str("```mermaid\nstateDiagram-v2\n    [*] --> scheduled\n    [*] --> waiting\n");
    for ((from, to), causes) in arrows {
        line(text, format_args!("    {from} --> {to} : {}", causes.join(", ")));
    }
    for state in State::ALL.into_iter().filter(|state| state.is_finished()) {
        line(text, format_args!("    {state} --> [*]"));
    }
    text.push_str("```\n\n");
}

fn push_causes(text: &mut String) {
    text.push_str("## Automatic transitions\n\n| cause | meaning | from → to |\n|---|---|---|\n");
    for cause in Cause::all() {
        if let Some(meaning) = meaning(cause) {
            line(text, format_args!("| {cause} | {meaning} | {} |", moves(|state| next(state, cause))));
        }
    }
    text.push('\n');
}

fn push_operations(text: &mut String) {
    text.push_str("## Operations\n\n| state |");
    let operations: Vec<Operation> = Operation::all().filter(|operation| !is_mark(Cause::By(*operation))).collect();
    for operation in &operations {
        let _ = write!(text, " {operation} |");
    }
    line(text, format_args!(" mark |\n|---|{}", "---|".repeat(operations.len() + 1)));
    for state in State::ALL {
        let _ = write!(text, "| {state} |");
        for operation in &operations {
            let _ = write!(text, " {} |", cell(state, Cause::By(*operation)));
        }
        let marks: Vec<String> =
            State::ALL.into_iter().filter_map(|to| entered(state, Cause::By(Operation::Mark(to)))).collect();
        let marks = if marks.is_empty() { "–".to_owned() } else { marks.join(", ") };
        line(text, format_args!(" {marks} |"));
    }
    text.push_str(
        "\n`–` means that the operation is rejected:\n\n| state | operation | message | hint |\n|---|---|---|---|\n",
    );
    for state in State::ALL {
        let mut rejected: BTreeMap<String, (Vec<&str>, &str)> = BTreeMap::new();
        let mark = Operation::Mark(State::Success);
        let marked = if state.is_finished() { None } else { Some(mark) };
        for operation in operations.iter().copied().chain(marked) {
            if let Err(rejection) = next(state, Cause::By(operation)) {
                let entry =
                    rejected.entry(rejection.to_string()).or_insert((Vec::new(), rejection.hint().unwrap_or("")));
                entry.0.push(operation.name());
            }
        }
        for (message, (names, hint)) in rejected {
            line(text, format_args!("| {state} | {} | {message} | {hint} |", names.join(", ")));
        }
    }
}

fn meaning(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Due => Some("its time has come"),
        Cause::Ready => Some("all conditions hold and nothing blocks it"),
        Cause::Withheld => Some("a policy skips it; the reason is recorded"),
        Cause::Launched => Some("its program has started"),
        Cause::Curtailed => {
            Some("timeout, stop schedule, a newer run that replaces it, or a lock that cannot be renewed")
        }
        Cause::Succeeded => Some("its program succeeded, even if it was never seen running"),
        Cause::Failed => Some("its program failed, even if it was never seen running"),
        Cause::Broke => Some("Cronhold, the configuration or the machine failed, or its node or keeper was lost"),
        Cause::By(_) => None,
    }
}

fn moves(next: impl Fn(State) -> Result<TransitionEffect, super::TransitionRejection>) -> String {
    let one = |state: State| match next(state) {
        Ok(TransitionEffect::Enter(to)) => Some(format!("{state} → {to}")),
        Ok(TransitionEffect::Send) => Some(format!("{state}: the stop signal is sent")),
        Ok(TransitionEffect::Create) | Err(_) => None,
    };
    State::ALL.into_iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

fn cell(state: State, cause: Cause) -> String {
    match next(state, cause) {
        Ok(TransitionEffect::Enter(to)) => format!("→ {to}"),
        Ok(TransitionEffect::Send) => "sends it".to_owned(),
        Ok(TransitionEffect::Create) => "new run".to_owned(),
        Err(_) => "–".to_owned(),
    }
}

fn entered(state: State, cause: Cause) -> Option<String> {
    match next(state, cause) {
        Ok(TransitionEffect::Enter(to)) => Some(format!("→ {to}")),
        _ => None,
    }
}

fn is_mark(cause: Cause) -> bool {
    matches!(cause, Cause::By(Operation::Mark(_)))
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{arguments}");
}
