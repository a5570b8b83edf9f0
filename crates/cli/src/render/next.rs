//! Coming occurrences: a table for people, an array of instants for programs.

use std::io::{self, Write};

use cronhold_schedule::civil::WEEKDAYS;
use cronhold_schedule::{Instant, Span};

use super::{json as write_json, local};
use crate::input::Asked;

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
        let words = asked.words();
        let disabled = if asked.enabled { "" } else { " (disabled)" };
        writeln!(out, "{}{words}{}{disabled}", label(asked), args(asked))?;
    }
    if coming.is_empty() {
        return writeln!(out, "  nothing after {after}");
    }
    if coming.iter().any(|coming| coming.asked.schedule.counts_from_previous()) {
        writeln!(out, "  as if each run ended at once:")?;
    }
    let several = asked.iter().filter(|asked| asked.enabled).count() > 1;
    for Coming { at, asked } in coming {
        let weekday = WEEKDAYS[asked.schedule.zone().local(at.secs()).day().weekday() as usize];
        let mut notes = Vec::new();
        let jitter = asked.schedule.jitter(*at);
        if !jitter.is_zero() {
            notes.push(format!("starts {jitter} later"));
        }
        if several {
            notes.push(asked.name.clone().unwrap_or_else(|| format!("{}{}", asked.spec, args(asked))));
        }
        let time = local(&asked.schedule, *at).replace('T', " ");
        let line = format!("  {} {time}  in {:<8}  {}", &weekday[..3], rounded(at.since(after)), notes.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// An array of instants with the offset of the schedule's zone.
pub(crate) fn json(coming: &[Coming<'_>], out: &mut dyn Write) -> io::Result<()> {
    write_json(&coming.iter().map(|coming| local(&coming.asked.schedule, coming.at)).collect(), out)
}

fn label(asked: &Asked) -> String {
    asked.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default()
}

fn args(asked: &Asked) -> String {
    let args: Vec<String> = asked.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if args.is_empty() { String::new() } else { format!(" ({})", args.join(" ")) }
}

/// A span with its two largest units, which is what people want to know.
fn rounded(span: Span) -> String {
    let secs = span.secs();
    let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", secs % 60),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        (..100, ..) => format!("{days}d{hours:02}h"),
        _ => format!("{days}d"),
    }
}
