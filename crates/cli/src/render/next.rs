//! Coming occurrences: a table for people, an array of instants for programs.

use std::io::{self, Write};

use cronhold_api::Occurrence;
use cronhold_schedule::Instant;
use cronhold_schedule::civil::WEEKDAYS;

use super::{args, doubt, heading, local, rounded};
use crate::asked::Asked;

/// One coming occurrence and the schedule it belongs to.
#[derive(Debug)]
pub(crate) struct Coming<'a> {
    pub(crate) at: Instant,
    pub(crate) asked: &'a Asked,
}

/// A line for each occurrence under the schedules in words.
pub(crate) fn table(asked: &[Asked], coming: &[Coming<'_>], after: Instant, out: &mut dyn Write) -> io::Result<()> {
    if asked.is_empty() {
        return writeln!(out, "no schedule: it runs only when someone or something starts it");
    }
    for asked in asked {
        writeln!(out, "{}", heading(asked))?;
    }
    // All schedules of a file belong to one job.
    if let Some(doubt) = asked.iter().find_map(doubt) {
        writeln!(out, "  {doubt}")?;
    }
    if coming.is_empty() {
        return writeln!(out, "  nothing after {after}");
    }
    if coming.iter().any(|coming| coming.asked.schedule.counts_from_previous()) {
        writeln!(out, "  as if each run ended at once:")?;
    }
    let several = asked.iter().filter(|asked| asked.written.enabled).count() > 1;
    for Coming { at, asked } in coming {
        let day = asked.schedule.zone().local(at.secs()).day();
        let weekday = WEEKDAYS[day.weekday() as usize];
        let mut notes = Vec::new();
        if asked.schedule.calendar_known_until().is_some_and(|last| day > last) {
            notes.push("beyond the dates of its calendar".to_owned());
        }
        let jitter = asked.schedule.jitter(*at);
        if !jitter.is_zero() {
            notes.push(format!("starts {jitter} later"));
        }
        if several {
            notes.push(asked.written.name.clone().unwrap_or_else(|| format!("{}{}", asked.written.spec, args(asked))));
        }
        let time = local(&asked.schedule, *at).replace('T', " ");
        let line = format!("  {} {time}  in {:<8}  {}", &weekday[..3], rounded(at.since(after)), notes.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// An array of instants with the offset of the schedule's zone.
pub(crate) fn value(coming: &[Coming<'_>]) -> Vec<String> {
    coming.iter().map(|coming| local(&coming.asked.schedule, coming.at)).collect()
}

/// The coming occurrences of a job that the daemon has.
pub(crate) fn stored(job: &str, coming: &[Occurrence], after: Instant, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{job}")?;
    if coming.is_empty() {
        return writeln!(out, "  nothing after {after}");
    }
    let several = coming.iter().any(|other| other.schedule != coming[0].schedule);
    for occurrence in coming {
        let mut notes = Vec::new();
        if occurrence.due > occurrence.at {
            notes.push(format!("starts {} later", occurrence.due.since(occurrence.at)));
        }
        if several {
            notes.push(occurrence.schedule.clone());
        }
        let away = rounded(occurrence.at.since(after));
        let line = format!("  {}  in {away:<8}  {}", occurrence.local.replace('T', " "), notes.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The same as an array of instants.
pub(crate) fn stored_value(coming: &[Occurrence]) -> Vec<String> {
    let exact = |occurrence: &Occurrence| match Instant::parse(&occurrence.local) {
        Ok(_) => occurrence.local.clone(),
        Err(_) => occurrence.at.to_string(),
    };
    coming.iter().map(exact).collect()
}
