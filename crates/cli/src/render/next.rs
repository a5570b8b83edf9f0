//! Output of `cronhold next`: a table, or an array of instants.

use std::io::{self, Write};

use cronhold_api::UpcomingRun;
use cronhold_schedule::Instant;
use cronhold_schedule::civil::WEEKDAYS;

use super::{args, heading, local, owner_note, rounded};
use crate::resolved_schedule::ResolvedSchedule;

/// A future occurrence and its schedule.
#[derive(Debug)]
pub(crate) struct ComingOccurrence<'a> {
    pub(crate) at: Instant,
    pub(crate) asked: &'a ResolvedSchedule,
}

/// Prints the schedules in words, and a line for each occurrence.
pub(crate) fn table(
    asked: &[ResolvedSchedule],
    coming: &[ComingOccurrence<'_>],
    after: Instant,
    out: &mut dyn Write,
) -> io::Result<()> {
    if asked.is_empty() {
        return writeln!(out, "no schedule: it runs only when you start it");
    }
    for asked in asked {
        writeln!(out, "{}", heading(asked))?;
    }
    // All schedules of a file belong to one job.
    if let Some(owner_note) = asked.iter().find_map(owner_note) {
        writeln!(out, "  {owner_note}")?;
    }
    if coming.is_empty() {
        return writeln!(out, "  nothing after {after}");
    }
    if coming.iter().any(|coming| coming.asked.schedule.counts_from_previous()) {
        writeln!(out, "  if each run ends immediately:")?;
    }
    let several = asked.iter().filter(|asked| asked.written.enabled).count() > 1;
    for ComingOccurrence { at, asked } in coming {
        let day = asked.schedule.zone().local(at.secs()).day();
        let weekday = WEEKDAYS[day.weekday() as usize];
        let mut notes = Vec::new();
        if asked.schedule.calendar_known_until().is_some_and(|last| day > last) {
            notes.push("after the dates of its calendar".to_owned());
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
pub(crate) fn value(coming: &[ComingOccurrence<'_>]) -> Vec<String> {
    coming.iter().map(|coming| local(&coming.asked.schedule, coming.at)).collect()
}

/// Prints the next occurrences of a stored job.
pub(crate) fn stored(job: &str, coming: &[UpcomingRun], after: Instant, out: &mut dyn Write) -> io::Result<()> {
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

/// The next occurrences of a stored job as an array of instants.
pub(crate) fn stored_value(coming: &[UpcomingRun]) -> Vec<String> {
    let exact = |occurrence: &UpcomingRun| match Instant::parse(&occurrence.local) {
        Ok(_) => occurrence.local.clone(),
        Err(_) => occurrence.at.to_string(),
    };
    coming.iter().map(exact).collect()
}
