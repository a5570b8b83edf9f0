//! Warnings about schedules that are valid but may not do what their author intended, with dates.

mod clock;
mod fields;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::cron::YEAR_MAX;
use crate::instant::Instant;
use crate::schedule::Schedule;
use crate::span::Span;
use crate::spec::{ScheduleSpec, Timing};

/// Lint warns about a calendar that ends sooner than this.
const CALENDAR_AHEAD: Span = Span::from_secs(366 * 86_400);
/// Number of upcoming occurrences whose distance is measured.
const OCCURRENCES: usize = 10;

/// What is known about past runs of the job. Empty if nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobHistory {
    /// Median duration of its runs.
    pub median_run: Option<Span>,
}

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LintKind {
    /// A clock change skips a time of the schedule.
    Gap,
    /// A clock change repeats a time of the schedule.
    Fold,
    /// Six fields end in a year.
    SixFields,
    /// Day of month and weekday are both restricted, and either is enough.
    EitherDay,
    /// A step does not divide the range of its field.
    UnevenStep,
    /// Some months do not have the day.
    ShortMonths,
    /// It never runs, or never again.
    Never,
    /// Occurrences are closer together than runs take.
    TooFast,
    /// The zone's name is misleading.
    OddZone,
    /// The calendar's dates end soon.
    CalendarEnds,
}

impl LintKind {
    /// Its name in filters and documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Fold => "fold",
            Self::SixFields => "six-fields",
            Self::EitherDay => "either-day",
            Self::UnevenStep => "uneven-step",
            Self::ShortMonths => "short-months",
            Self::Never => "never",
            Self::TooFast => "too-fast",
            Self::OddZone => "odd-zone",
            Self::CalendarEnds => "calendar-ends",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintWarning {
    pub lint: LintKind,
    /// What will happen, with dates.
    pub message: String,
    /// What to write instead if that is not intended.
    pub hint: String,
}

impl fmt::Display for LintWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]\n  {}", self.message, self.lint.name(), self.hint)
    }
}

/// Checks a job's schedule from `now` on. `schedule` must have been compiled from `spec` for that job.
pub fn lint(spec: &ScheduleSpec, schedule: &Schedule, job: &str, now: Instant, past: JobHistory) -> Vec<LintWarning> {
    let mut warnings = Vec::new();
    warnings.extend(never(spec, schedule, now));
    warnings.extend(six_fields(spec, job));
    warnings.extend(clock::clock_changes(spec, schedule, now));
    if let Some(cron) = schedule.cron() {
        warnings.extend(fields::cron_warnings(cron, schedule, now));
    }
    warnings.extend(too_fast(schedule, now, past));
    warnings.extend(spec.zone.as_deref().and_then(odd_zone));
    warnings.extend(calendar_ends(schedule, now));
    warnings
}

fn never(spec: &ScheduleSpec, schedule: &Schedule, now: Instant) -> Option<LintWarning> {
    let by_time = !matches!(spec.timing, Timing::Triggered | Timing::Never | Timing::Reboot | Timing::After { .. });
    if !by_time || schedule.next(now).is_some() {
        return None;
    }
    let last = schedule.prev(now);
    // Years after `YEAR_MAX` are not searched, so "never" is only certain if the schedule itself rules them out.
    let ruled_out = schedule.cron().is_some_and(|cron| {
        let no_such_day = cron.months_without_its_days(fields::LEAP_YEAR).len() == cron.months.count_ones() as usize;
        no_such_day || !cron.years.contains(YEAR_MAX)
    });
    let ends = ruled_out || spec.end.is_some() || matches!(spec.timing, Timing::At(_));
    let horizon = if ends { String::new() } else { format!(" before {}", YEAR_MAX + 1) };
    let (message, hint) = match last {
        Some(last) => (
            format!("never fires again{horizon}: its last occurrence was {}", local_text(schedule, last)),
            "check its end, its years and its calendar",
        ),
        None => (
            format!("never fires{horizon}: no date matches"),
            "check its days, its months and its calendar, or write @never",
        ),
    };
    Some(LintWarning { lint: LintKind::Never, message, hint: hint.to_owned() })
}

fn six_fields(spec: &ScheduleSpec, job: &str) -> Option<LintWarning> {
    let Timing::Cron(expr) = &spec.timing else {
        return None;
    };
    (expr.field_count() == 6 && expr.every_year()).then(|| LintWarning {
        lint: LintKind::SixFields,
        message: format!("six fields are read as minute hour day month weekday year: {}", spec.words(job)),
        hint: "for seconds write seven fields, with a year at the end, such as `0 30 12 * * * *`".to_owned(),
    })
}

fn too_fast(schedule: &Schedule, now: Instant, past: JobHistory) -> Option<LintWarning> {
    let median = past.median_run.filter(|_| !schedule.counts_from_previous())?;
    let coming: Vec<Instant> = schedule.coming(now).take(OCCURRENCES).collect();
    let distance = coming.windows(2).map(|pair| pair[1].since(pair[0])).min()?;
    (median > distance).then(|| LintWarning {
        lint: LintKind::TooFast,
        message: format!("occurrences are {distance} apart, but half of its runs take {median} or longer"),
        hint: "runs will overlap: choose `overlap`, or a schedule such as `with 10m interval`".to_owned(),
    })
}

/// Warns about zones that are often chosen by mistake.
fn odd_zone(zone: &str) -> Option<LintWarning> {
    let upper = zone.to_ascii_uppercase();
    let hours = match upper.as_str() {
        "EST" => Some(5),
        "MST" => Some(7),
        "HST" => Some(10),
        _ => None,
    };
    let sign = upper.strip_prefix("ETC/GMT").and_then(|rest| rest.chars().next());
    let side = match sign {
        Some('+') => Some("behind"),
        Some('-') => Some("ahead of"),
        _ => None,
    };
    let (message, hint) = match (hours, side) {
        (Some(hours), _) => (
            format!("`{zone}` is {hours} hours behind UTC all year, also in summer"),
            "name a place, such as America/New_York",
        ),
        (None, Some(side)) => {
            (format!("`{zone}` is {side} UTC: the sign in these names is reversed"), "name a place, or use UTC")
        }
        (None, None) => return None,
    };
    Some(LintWarning { lint: LintKind::OddZone, message, hint: hint.to_owned() })
}

fn calendar_ends(schedule: &Schedule, now: Instant) -> Option<LintWarning> {
    let last = schedule.calendar_known_until()?;
    let horizon = schedule.zone().local(now.plus(CALENDAR_AHEAD).secs()).day();
    (last < horizon).then(|| LintWarning {
        lint: LintKind::CalendarEnds,
        message: format!("the dates of its calendar end on {last}"),
        hint: "add the dates that come after it".to_owned(),
    })
}

fn local_text(schedule: &Schedule, at: Instant) -> String {
    at.with_offset(schedule.zone().offset_at(at.secs()))
}

fn day_text(schedule: &Schedule, at: Instant) -> String {
    schedule.zone().local(at.secs()).day().to_string()
}
