//! One job in detail, or the line that confirms that it was added or changed.

use std::io::{self, Write};

use cronhold_api::{JobDetail, ScheduleSummary};
use cronhold_schedule::{Instant, Zone};

use super::jobs::{mistake, paused};
use super::{CellColour, LocalTimeFormat, visible};

/// Confirms that a job was added or changed, with its schedule in words and its next time.
pub(crate) fn put(done: &str, detail: &JobDetail, now: Instant, out: &mut dyn Write) -> io::Result<()> {
    let clock = LocalTimeFormat { zone: Zone::utc(), now };
    let words: Vec<&str> = detail.schedules.iter().map(|schedule| schedule.words.as_str()).collect();
    let words = if words.is_empty() { "no schedule".to_owned() } else { words.join("; ") };
    let next = match (detail.job.next, detail.job.paused) {
        (_, true) => ", paused".to_owned(),
        (Some(next), false) => format!(", next {}", clock.both(next)),
        (None, false) => String::new(),
    };
    writeln!(out, "{done} `{}`: {words}{next}", detail.job.id)
}

/// Prints a job in detail.
pub(crate) fn text(detail: &JobDetail, clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let job = &detail.job;
    writeln!(out, "{}", CellColour::Bold.paint(&job.id, colours))?;
    // The mark keeps a line of the description from looking like one of the fields below.
    for line in detail.text.lines() {
        writeln!(out, "{}", format!("  | {}", visible(line)).trim_end())?;
    }
    if let Some(pause) = &job.pause {
        let what = if pause.everything { "everything is " } else { "" };
        let text = format!("{what}{}, since {}", paused(pause, clock), clock.at(pause.since));
        writeln!(out, "  {}", CellColour::Yellow.paint(&text, colours))?;
    }
    for wrong in &job.errors {
        writeln!(out, "  {}", CellColour::Red.paint(&mistake(wrong), colours))?;
    }
    for schedule in &detail.schedules {
        field("schedule", &words(schedule), out)?;
        match (&schedule.error, schedule.next) {
            (Some(error), _) => field("", &CellColour::Red.paint(error, colours), out)?,
            (None, Some(next)) => field("", &format!("next {}", clock.both(next)), out)?,
            (None, None) => {}
        }
    }
    if detail.schedules.is_empty() {
        field("schedule", "none: it runs only when you start it", out)?;
    }
    if let Some(run) = &job.last {
        let at = run.times.finished.unwrap_or(run.nominal_time);
        let state = CellColour::of(run.state).paint(run.state.name(), colours);
        let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        field("last", &format!("{}#{} {state}, {}{reason}", job.id, run.number, clock.relative(at)), out)?;
    }
    if job.active > 0 {
        field("active", &job.active.to_string(), out)?;
    }
    if !job.labels.is_empty() {
        field("labels", &job.labels.join(", "), out)?;
    }
    if !job.source.is_empty() {
        field("source", &format!("{}, revision {}", source(&job.source), job.revision), out)?;
    }
    if !detail.yaml.is_empty() {
        writeln!(out)?;
    }
    for line in detail.yaml.lines() {
        writeln!(out, "  {}", CellColour::Faint.paint(line, colours))?;
    }
    Ok(())
}

/// Where a job comes from, in words.
fn source(source: &str) -> String {
    match source.strip_prefix("directory:") {
        Some("") => "the job directory".to_owned(),
        Some(prefix) => format!("the job directory of `{prefix}`"),
        None => source.to_owned(),
    }
}

fn field(name: &str, value: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {name:<9} {value}")
}

fn words(schedule: &ScheduleSummary) -> String {
    let disabled = if schedule.enabled { "" } else { " (disabled)" };
    // Do not print the same text twice.
    if schedule.words == schedule.text || schedule.words.is_empty() {
        return format!("{}{disabled}", schedule.text);
    }
    format!("{}, `{}`{disabled}", schedule.words, schedule.text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::jobs::tests::{clock, job, run};
    use super::*;

    fn detail(changes: &Value, schedules: &Value) -> JobDetail {
        let mut value = job("reports/prices", changes);
        value["text"] = json!("Loads closing prices.\n\nAsk ada.");
        value["schedules"] = schedules.clone();
        value["definition"] = json!({"program": ["load"]});
        value["yaml"] = json!("program:\n  - load\n");
        serde_json::from_value(value).expect("a job")
    }

    fn schedule(changes: &Value) -> Value {
        let mut schedule = json!({"id": "s", "text": "0 18 * * *", "words": "every day at 18:00", "enabled": true,
            "next": "2026-11-16T18:00:00Z", "error": null});
        let (Value::Object(keys), Value::Object(changes)) = (&mut schedule, changes) else { panic!("maps") };
        keys.extend(changes.clone());
        schedule
    }

    #[test]
    fn job_is_shown_with_all_details() {
        let mut all = String::new();
        let pause = json!({"since": "2026-11-16T11:00:00Z", "by": "ada", "why": "", "everything": true});
        let wrong = json!([{"file": "p.yaml", "line": 3, "column": 1, "message": "`x` is unknown", "hint": null}]);
        let failed = run("reports/prices", "failure", Some("exit code 3"));
        let full = json!({"labels": ["eod", "us"], "paused": true, "pause": pause, "errors": wrong, "active": 1,
            "last": failed, "source": "directory:", "revision": 3});
        let schedules = json!([
            schedule(&json!({})),
            schedule(&json!({"words": "0 18 * * *", "enabled": false, "next": null})),
            schedule(&json!({"next": null, "error": "there is no calendar `us`"})),
        ]);
        for detail in [detail(&full, &schedules), detail(&json!({"last": null}), &json!([]))] {
            let mut out = Vec::new();
            text(&detail, &clock(), false, &mut out).expect("written");
            put("changed", &detail, clock().now, &mut out).expect("written");
            all += &String::from_utf8(out).expect("UTF-8");
            all += "\n";
        }
        insta::assert_snapshot!(all);
    }
}
