//! A table of jobs with their next and last runs, pauses and errors.

use std::io::{self, Write};

use cronhold_api::{FileMistake, JobList, JobSummary, PauseSummary, UnreadableItem};

use super::{CellColour, LocalTimeFormat, TableCell, TextTable, counted, visible};

/// Maximum length of a schedule in the table; `show` prints all of it.
const SCHEDULE_MAX: usize = 40;

/// Prints the table. Messages that concern all jobs go to `err`.
pub(crate) fn table(
    list: &JobList,
    filtered: bool,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&["JOB", "SCHEDULE", "NEXT", "LAST", "NOTES"]);
    for job in &list.jobs {
        let notes = notes(job, clock).join("; ");
        let colour = if job.errors.is_empty() { CellColour::Yellow } else { CellColour::Red };
        table.row([
            job.id.clone().into(),
            TableCell::from(job.schedule.clone()).cut(SCHEDULE_MAX),
            job.next.map(|next| clock.both(next)).unwrap_or_default().into(),
            last(job, clock),
            TableCell::new(notes, colour),
        ]);
    }
    table.write(colours, out)?;
    out.flush()?;
    if list.jobs.is_empty() {
        let text = match filtered {
            true => "no matching jobs; `cronhold list` lists all jobs",
            false => "there are no jobs yet; `cronhold add hello '* * * * *' -- echo hi` creates one",
        };
        writeln!(err, "{text}")?;
    }
    if let Some(pause) = &list.pause {
        writeln!(err, "{}", CellColour::Yellow.paint(&format!("everything is {}", paused(pause, clock)), colours))?;
    }
    for mistake in &list.errors {
        writeln!(err, "{}", CellColour::Red.paint(&self::mistake(mistake), colours))?;
    }
    Ok(())
}

/// Warns about stored records that cannot be read.
pub(crate) fn unreadable(items: &[UnreadableItem], err: &mut dyn Write) -> io::Result<()> {
    items.iter().try_for_each(|item| {
        let record = item.record.as_deref().unwrap_or("a stored record");
        writeln!(err, "warning: cannot read {}: {}", visible(record), visible(&item.reason))?;
        item.hint.iter().try_for_each(|hint| writeln!(err, "hint: {}", visible(hint)))
    })
}

/// A pause in words.
pub(crate) fn paused(pause: &PauseSummary, clock: &LocalTimeFormat) -> String {
    let why = if pause.why.is_empty() { String::new() } else { format!(": {}", pause.why) };
    let until = pause.until.map(|until| format!(" until {}", clock.at(until))).unwrap_or_default();
    format!("paused{until} by {}{why}", pause.by)
}

/// Prints all errors in job files, one per line.
pub(crate) fn mistakes(list: &JobList, err: &mut dyn Write) -> io::Result<()> {
    let of_jobs = list.jobs.iter().flat_map(|job| &job.errors);
    of_jobs.chain(&list.errors).try_for_each(|wrong| writeln!(err, "{}", mistake(wrong)))
}

/// An error in a file, on one line.
pub(crate) fn mistake(mistake: &FileMistake) -> String {
    let FileMistake { file, line, column, message, hint } = mistake;
    let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{file}:{line}:{column}: {message}{hint}")
}

fn last(job: &JobSummary, clock: &LocalTimeFormat) -> TableCell {
    let Some(run) = &job.last else {
        return TableCell::from("");
    };
    let at = run.times.finished.or(run.times.running).or(run.times.starting).unwrap_or(run.nominal_time);
    TableCell::new(format!("{} {}", run.state, clock.relative(at)), CellColour::of(run.state))
}

fn notes(job: &JobSummary, clock: &LocalTimeFormat) -> Vec<String> {
    let mut notes = Vec::new();
    match &job.pause {
        // A pause of everything is printed once, below the table.
        Some(pause) if !pause.everything => notes.push(paused(pause, clock)),
        None if job.paused => notes.push("paused".to_owned()),
        _ => {}
    }
    if !job.enabled {
        notes.push("disabled".to_owned());
    }
    if !job.errors.is_empty() {
        let what = if job.source.is_empty() { "the job was not added" } else { "the last valid version is in use" };
        notes.push(format!("{} in its file: {what}", counted(job.errors.len(), "error")));
    }
    if job.active > 0 {
        notes.push(format!("{} active", job.active));
    }
    notes
}

#[cfg(test)]
pub(super) mod tests {
    use cronhold_schedule::{Instant, Zone};
    use serde_json::{Value, json};

    use super::*;

    /// The clock of all examples.
    pub(crate) fn clock() -> LocalTimeFormat {
        LocalTimeFormat { zone: Zone::utc(), now: Instant::parse("2026-11-16T12:00:00Z").expect("a time") }
    }

    /// A run of a job that ended some minutes ago.
    pub(crate) fn run(job: &str, state: &str, reason: Option<&str>) -> Value {
        let times = json!({"scheduled": null, "waiting": null, "starting": null, "stopping": null,
            "running": "2026-11-16T11:50:00Z", "finished": "2026-11-16T11:50:01.5Z"});
        json!({"id": "7", "number": 42, "job": job, "args": {}, "state": state, "reason": reason,
            "nominal_time": "2026-11-16T11:50:00Z", "attempt": 1, "retry_of": null, "rerun_of": null, "node": null,
            "exit_code": null, "signal": null, "times": times, "output_bytes": 0, "tail": []})
    }

    /// A job with some fields replaced.
    pub(crate) fn job(id: &str, changes: &Value) -> Value {
        let mut job = json!({"id": id, "description": "", "schedule": "*/5 * * * *", "next": "2026-11-16T12:05:00Z",
            "paused": false, "pause": null, "labels": [], "errors": [], "source": "api", "revision": 1, "active": 0,
            "last": run(id, "success", None)});
        let (Value::Object(job_keys), Value::Object(changes)) = (&mut job, changes) else { panic!("maps") };
        job_keys.extend(changes.clone());
        job
    }

    fn pause(everything: bool) -> Value {
        json!({"since": "2026-11-16T11:00:00Z", "by": "ada", "why": "tea", "everything": everything})
    }

    fn wrong(file: &str) -> Value {
        json!({"file": file, "line": 3, "column": 1, "message": "`x` is unknown", "hint": "did you mean `y`?"})
    }

    fn shown(list: Value, filtered: bool) -> String {
        let list: JobList = serde_json::from_value(list).expect("a list");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        table(&list, filtered, &clock(), false, &mut out, &mut err).expect("written");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        text(err).lines().fold(text(out), |text, line| format!("{text}err| {line}\n"))
    }

    #[test]
    fn jobs_are_shown_in_a_table() {
        let long = "0 18 * * Mon-Fri; 0 6 * * Sat; 0 7 * * Sun; @monthly";
        let jobs = [
            job("backup", &json!({})),
            job("new", &json!({"schedule": long, "last": null, "active": 2})),
            job("reports/prices", &json!({"paused": true, "pause": pause(false), "next": null})),
            job("quiet", &json!({"paused": true, "pause": pause(true), "last": run("quiet", "failure", None)})),
            job("bad", &json!({"errors": [wrong("bad.yaml"), wrong("bad.yaml")]})),
            job("worse", &json!({"errors": [wrong("worse.yaml")], "source": "", "schedule": "", "next": null})),
        ];
        let list = json!({"jobs": jobs, "next": null, "pause": pause(true), "errors": [wrong("a.cal")]});
        insta::assert_snapshot!(shown(list, false));
    }

    #[test]
    fn empty_list_suggests_a_command() {
        let list = json!({"jobs": [], "next": null, "pause": null, "errors": []});
        insta::assert_snapshot!(format!("{}{}", shown(list.clone(), false), shown(list, true)));
    }
}
