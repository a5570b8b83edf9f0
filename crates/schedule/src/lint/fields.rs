//! Warnings about cron fields: either of two day fields, uneven steps, months without the day.

use super::{LintKind, LintWarning, day_text};
use crate::civil::{Day, MONTHS, Ymd};
use crate::cron::{CronBits, YearSet, distance, values};
use crate::instant::Instant;
use crate::schedule::Schedule;
use crate::span::Span;
use crate::spec::{FoldPolicy, GapPolicy};
use crate::words::english::{joined, ordinal};

/// Maximum number of upcoming days named in a warning.
const DAYS_NAMED: usize = 3;
/// Number of months examined for days that are too close.
const MONTHS_AHEAD: u32 = 24;
/// A year without 29 February.
const COMMON_YEAR: i32 = 2025;
/// A year with 29 February.
pub(super) const LEAP_YEAR: i32 = 2024;

pub(super) fn cron_warnings(cron: &CronBits, schedule: &Schedule, now: Instant) -> Vec<LintWarning> {
    let mut warnings = Vec::new();
    if cron.either_day_matches() {
        let days = coming_days(schedule, now);
        let next = if days.is_empty() { String::new() } else { format!(", next on {}", days.join(", ")) };
        warnings.push(LintWarning {
            lint: LintKind::EitherDay,
            message: format!("day of month and day of week are both given: it runs when either matches{next}"),
            hint: "to require both, write named fields such as {day: 1-7, day_of_week: mon}".to_owned(),
        });
    }
    warnings.extend(uneven_times(cron));
    warnings.extend(uneven_days(cron, schedule, now));
    warnings.extend(uneven_months(cron));
    warnings.extend(short_months(cron, schedule, now));
    warnings
}

/// The next days that it runs on.
fn coming_days(schedule: &Schedule, now: Instant) -> Vec<String> {
    let zone = schedule.zone();
    let next_day = |at: &Instant| {
        let midnight = zone.local(at.secs()).day().plus(1).midnight();
        let first = zone.instants(midnight, GapPolicy::Next, FoldPolicy::First).next()?;
        schedule.next(Instant::from_secs(first).minus(Span::from_secs(1)))
    };
    let days = std::iter::successors(schedule.next(now), next_day);
    days.take(DAYS_NAMED).map(|at| day_text(schedule, at)).collect()
}

/// Steps of seconds, minutes and hours whose last distance is shorter than the others.
fn uneven_times(cron: &CronBits) -> Vec<LintWarning> {
    let single = |bits: u64| bits.count_ones() == 1;
    let hours = u64::from(cron.hours);
    let all_days = cron.runs_all_days() && cron.years == YearSet::all();
    let all_hours = all_days && cron.runs_all_hours();
    let all_minutes = all_hours && cron.minutes.count_ones() == 60;
    let day_after_day = (!cron.traits.days_restricted || has_neighbours(u64::from(cron.days), 32))
        && (!cron.traits.weekdays_restricted || has_neighbours(u64::from(cron.weekdays), 7));
    let seconds = uneven_step(&values(cron.seconds), 60).filter(|_| has_neighbours(cron.minutes, 60));
    let minutes = uneven_step(&values(cron.minutes), 60).filter(|_| has_neighbours(hours, 24));
    // `every_hour` records whether hours were written as a step, so a list is never mistaken for one.
    let hour_step = uneven_step(&values(hours), 24).filter(|_| cron.every_hour() && day_after_day);
    let found = [
        ("second", 60, seconds, all_minutes),
        ("minute", 60, minutes, all_hours && single(cron.seconds)),
        ("hour", 24, hour_step, all_days && single(cron.minutes) && single(cron.seconds)),
    ];
    let warning = |(unit, size, uneven, free): (&str, u32, Option<UnevenStep>, bool)| {
        let UnevenStep { step, first, last } = uneven?;
        let later = size - last + first;
        let plural = if later == 1 { "" } else { "s" };
        Some(LintWarning {
            lint: LintKind::UnevenStep,
            message: format!(
                "every {step} {unit}s does not divide {size}: after {unit} {last} comes {unit} {first}, \
                 {later} {unit}{plural} later"
            ),
            // An interval would ignore the other fields.
            hint: if free {
                format!("for a steady rhythm write `@every {step}{}`", &unit[..1])
            } else {
                dividing(step, size)
            },
        })
    };
    found.into_iter().filter_map(warning).collect()
}

/// Values that look like a step over the whole field but do not divide it.
struct UnevenStep {
    step: u32,
    first: u32,
    last: u32,
}

/// Recognises three or more values with one distance, or two values if the second is past the middle: a smaller step
/// would have produced a third.
fn uneven_step(values: &[u32], size: u32) -> Option<UnevenStep> {
    let step = distance(values)?;
    let (first, last) = (values[0], values[values.len() - 1]);
    let whole_field = first < step && last + step >= size;
    let plausible = values.len() >= 3 || first == 0 && step > size / 2;
    (step > 1 && whole_field && plausible && !size.is_multiple_of(step)).then_some(UnevenStep { step, first, last })
}

/// Whether two consecutive values are in a cyclic set.
fn has_neighbours(bits: u64, size: u32) -> bool {
    bits & bits >> 1 != 0 || bits & 1 == 1 && bits >> (size - 1) & 1 == 1
}

/// The hint for a step that does not divide the field.
fn dividing(step: u32, size: u32) -> String {
    let divides = |other: &u32| size.is_multiple_of(*other);
    let near = [(2..step).rev().find(divides), (step + 1..size).find(divides)];
    let near: Vec<String> = near.into_iter().flatten().map(|step| step.to_string()).collect();
    format!("for equal distances choose a step that divides {size}, such as {}", near.join(" or "))
}

/// A step of days, which restarts every month: the first time that two days are too close.
fn uneven_days(cron: &CronBits, schedule: &Schedule, now: Instant) -> Option<LintWarning> {
    let days = values(u64::from(cron.days));
    let step = distance(&days).filter(|step| *step > 1 && days.len() >= 3)?;
    let whole_field = days[0] == 1 && days[days.len() - 1] + step > 31;
    let others = cron.from_end != 0 || cron.nearest != 0 || cron.nth != 0 || cron.traits.last_working_day;
    if !whole_field || others || !cron.traits.days_restricted || cron.traits.weekdays_restricted {
        return None;
    }
    let zone = schedule.zone();
    let Ymd { year, month, .. } = zone.local(now.secs()).day().ymd();
    let mut turns = (1..=MONTHS_AHEAD).map(|ahead| {
        let months = month - 1 + ahead;
        Day::from_ymd(year + (months / 12).cast_signed(), months % 12 + 1, 1)
    });
    let (last, first) = turns.find_map(|day| {
        let turn = Instant::from_secs(zone.instants(day.midnight(), GapPolicy::Next, FoldPolicy::First).next()?);
        let day_of = |at: Instant| zone.local(at.secs()).day();
        let last = schedule.prev(turn).map(day_of)?;
        let first = schedule.next(turn.minus(Span::from_secs(1))).map(day_of)?;
        (first.0 - last.0 < step.cast_signed()).then_some((last, first))
    })?;
    let distance = first.0 - last.0;
    let plural = if distance == 1 { "" } else { "s" };
    let free = cron.months.count_ones() == 12 && cron.years == YearSet::all();
    Some(LintWarning {
        lint: LintKind::UnevenStep,
        message: format!(
            "every {step} days restarts each month: after {last} comes {first}, {distance} day{plural} later"
        ),
        hint: if free {
            format!("for a steady rhythm write `@every {step}d`, which counts from 1970-01-01 in UTC")
        } else {
            "to keep days apart name them, such as `1,11,21`".to_owned()
        },
    })
}

/// A step of months, which restarts every year.
fn uneven_months(cron: &CronBits) -> Option<LintWarning> {
    let months: Vec<u32> = values(u64::from(cron.months)).into_iter().map(|month| month - 1).collect();
    // Two months in a year are most likely intended.
    let UnevenStep { step, first, last } = uneven_step(&months, 12).filter(|_| months.len() >= 3)?;
    let (before, after) = (MONTHS[last as usize], MONTHS[first as usize]);
    Some(LintWarning {
        lint: LintKind::UnevenStep,
        message: format!(
            "every {step} months does not divide 12: after {before} comes {after}, {} months later",
            12 - last + first
        ),
        hint: dividing(step, 12),
    })
}

/// Named months that do not have the day.
fn short_months(cron: &CronBits, schedule: &Schedule, now: Instant) -> Option<LintWarning> {
    let day = cron.first_numbered_day()?;
    let without = cron.months_without_its_days(COMMON_YEAR);
    // If no month has the day, the `Never` warning covers it.
    let next = schedule.next(now).filter(|_| !without.is_empty())?;
    let next = day_text(schedule, next);
    let leap_only = cron.months_without_its_days(LEAP_YEAR).is_empty();
    let the = ordinal(day);
    let message = if leap_only {
        format!("February has a {the} in leap years only and is skipped in others, next on {next}")
    } else {
        let names: Vec<String> = without.iter().map(|month| MONTHS[*month as usize - 1].to_owned()).collect();
        let (have, are) = if names.len() == 1 { ("has", "is") } else { ("have", "are") };
        format!("{} {have} no {the} and {are} skipped, next on {next}", joined(&names, "and"))
    };
    let hint = "for the last day of a month write `L` as its day".to_owned();
    Some(LintWarning { lint: LintKind::ShortMonths, message, hint })
}
