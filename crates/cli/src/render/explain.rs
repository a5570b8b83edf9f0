//! A schedule in words, with its canonical text, its treatment of clock changes and the nearest occurrences.

use std::io::{self, Write};

use cronhold_core::job::StopSchedule;
use cronhold_schedule::{FoldPolicy, GapPolicy, Instant};
use serde_json::{Value, json};

use super::{heading, local, owner_note};
use crate::resolved_schedule::{ResolvedSchedule, ScheduleOwner};

/// Number of next occurrences to print.
const COMING: usize = 3;

pub(crate) fn text(asked: &[ResolvedSchedule], now: Instant, out: &mut dyn Write) -> io::Result<()> {
    if asked.is_empty() {
        return writeln!(out, "no schedule: it runs only when you start it");
    }
    for (index, asked) in asked.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", heading(asked))?;
        if let Some(owner_note) = owner_note(asked) {
            writeln!(out, "  {owner_note}")?;
        }
        writeln!(out, "  canonical  {}", asked.written.spec)?;
        writeln!(out, "  id         {}", asked.written.id())?;
        writeln!(out, "  zone       {}", asked.schedule.zone().name())?;
        if let Some((gap, fold)) = asked.schedule.policy().filter(|_| changes_clocks(asked, now)) {
            writeln!(out, "  gap        {}", gap_words(gap))?;
            writeln!(out, "  fold       {}", fold_words(fold))?;
        }
        if let Some(stop) = &asked.written.stop {
            writeln!(out, "  stop       {}", stop_words(stop))?;
        }
        if let Some(prev) = asked.schedule.prev(now) {
            writeln!(out, "  last       {}", local(&asked.schedule, prev))?;
        }
        for (index, at) in coming(asked, now).into_iter().enumerate() {
            let label = if index == 0 { "next" } else { "" };
            writeln!(out, "  {label:<9}  {}", local(&asked.schedule, at))?;
        }
    }
    Ok(())
}

/// The schedules as JSON.
pub(crate) fn value(asked: &[ResolvedSchedule], now: Instant) -> Value {
    let schedules = asked.iter().map(|asked| {
        let policy = asked.schedule.policy();
        json!({
            "job": (asked.owner != ScheduleOwner::NoJob).then(|| asked.owner.id()),
            "name": asked.written.name,
            "enabled": asked.written.enabled,
            "args": asked.written.args,
            "words": asked.words(),
            "canonical": asked.written.spec.to_string(),
            "id": asked.written.id(),
            "timezone": asked.schedule.zone().name(),
            "gap": policy.map(|(gap, _)| gap.name()),
            "fold": policy.map(|(_, fold)| fold.name()),
            "stop": asked.written.stop.as_ref().map(stop_words),
            "previous": asked.schedule.prev(now).map(|at| local(&asked.schedule, at)),
            "next": coming(asked, now).into_iter().map(|at| local(&asked.schedule, at)).collect::<Vec<_>>(),
        })
    });
    Value::Array(schedules.collect())
}

/// Whether the zone has clock changes after `now`; otherwise the policy is not printed.
fn changes_clocks(asked: &ResolvedSchedule, now: Instant) -> bool {
    asked.schedule.zone().changes(now.secs(), i64::MAX).next().is_some()
}

fn coming(asked: &ResolvedSchedule, now: Instant) -> Vec<Instant> {
    asked.schedule.coming(now).take(COMING).collect()
}

fn stop_words(stop: &StopSchedule) -> String {
    match stop {
        StopSchedule::After(span) => format!("{span} after its time"),
        StopSchedule::At(time) => format!("at the next {time}"),
    }
}

fn gap_words(gap: GapPolicy) -> &'static str {
    match gap {
        GapPolicy::Next => "next: times that a clock change skips run together once, at the end of the gap",
        GapPolicy::Skip => "skip: times that a clock change skips do not run",
    }
}

fn fold_words(fold: FoldPolicy) -> &'static str {
    match fold {
        FoldPolicy::First => "first: times that occur twice run only the first time",
        FoldPolicy::Second => "second: times that occur twice run only the second time",
        FoldPolicy::Both => "both: times that occur twice run both times",
    }
}
