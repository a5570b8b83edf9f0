//! Warnings about schedules that are valid and still may not mean what their writer meant, with dates.

use std::fmt;

use crate::civil::{Local, TimeOfDay};
use crate::cron::Cron;
use crate::instant::Instant;
use crate::schedule::Schedule;
use crate::span::Span;
use crate::spec::{Fold, Gap, Spec, Timing};

/// How far ahead clock changes are looked at: two years, so that each kind comes up twice.
const AHEAD: Span = Span::from_secs(2 * 366 * 86_400);
/// A calendar that ends sooner than this is worth a word.
const CALENDAR_AHEAD: Span = Span::from_secs(366 * 86_400);
/// How many coming occurrences are measured.
const OCCURRENCES: usize = 10;

/// What the past tells about a job; empty when nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Past {
    /// How long half of its runs took at most.
    pub median_run: Option<Span>,
}

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lint {
    /// A clock change leaves out a time.
    Gap,
    /// A clock change repeats a time.
    Fold,
    /// Six fields end in a year.
    SixFields,
    /// Both days are restricted, and either is enough.
    EitherDay,
    /// A step that does not divide its field.
    UnevenStep,
    /// Days that some months do not have.
    ShortMonths,
    /// It never runs, or never again.
    Never,
    /// It is due more often than its runs can end.
    TooFast,
    /// A zone whose name does not say what people think.
    OddZone,
    /// The calendar's dates end soon.
    CalendarEnds,
}

impl Lint {
    /// Its name, for filters and documents.
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

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub lint: Lint,
    /// What will happen, with dates.
    pub message: String,
    /// What to write if that is not meant.
    pub hint: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]\n  {}", self.message, self.lint.name(), self.hint)
    }
}

/// Looks at a schedule from `now` on. `schedule` must have been compiled from `spec`.
pub fn lint(spec: &Spec, schedule: &Schedule, now: Instant, past: Past) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |lint, message: String, hint: String| warnings.push(Warning { lint, message, hint });
    let by_time = !matches!(spec.timing, Timing::Triggered | Timing::Never | Timing::Reboot | Timing::After { .. });
    if by_time && schedule.next(now).is_none() {
        let (message, hint) = match schedule.prev(now) {
            Some(last) => (
                format!("never fires again: its last occurrence was {}", local_text(schedule, last)),
                "look at its end, its years and its calendar",
            ),
            None => ("never fires: no date matches".to_owned(), "look at its days and months, or write @never"),
        };
        warn(Lint::Never, message, hint.to_owned());
    }
    if let Timing::Cron(expr) = &spec.timing
        && expr.field_count() == 6
        && expr.every_year()
    {
        warn(
            Lint::SixFields,
            format!("six fields are read as minute hour day month weekday year: {}", spec.words("")),
            "for seconds write seven fields, with a year at the end, such as `0 30 12 * * * *`".to_owned(),
        );
    }
    for change in clock_changes(schedule, now) {
        warnings.push(change);
    }
    if let Some(cron) = schedule.cron() {
        cron_warnings(cron, schedule, now, &mut warnings);
    }
    warnings.extend(too_fast(schedule, now, past));
    warnings.extend(spec.zone.as_deref().and_then(odd_zone));
    warnings.extend(calendar_ends(schedule, now));
    warnings
}

/// The first gap and the first fold that the schedule runs into.
fn clock_changes(schedule: &Schedule, now: Instant) -> Vec<Warning> {
    let Some((gap, fold)) = schedule.policy().filter(|_| !schedule.cron().is_some_and(Cron::runs_all_hours)) else {
        return Vec::new();
    };
    let zone = schedule.zone();
    let mut gaps = Vec::new();
    let mut folds = Vec::new();
    for change in zone.changes(now.secs(), now.plus(AHEAD).secs()) {
        let (before, after) = (change.at + i64::from(change.before), change.at + i64::from(change.after));
        let (from, until) = (Local(before.min(after)), Local(before.max(after)));
        if let Some(hit) = schedule.local_between(from, until) {
            let seen = if after > before { &mut gaps } else { &mut folds };
            seen.push((hit, from, until));
        }
    }
    let dates = |hits: &[(Local, Local, Local)]| {
        let days: Vec<String> = hits.iter().take(2).map(|(hit, ..)| hit.day().to_string()).collect();
        days.join(" and ")
    };
    let time = |local: Local| TimeOfDay(local.second_of_day());
    let mut warnings = Vec::new();
    if let Some((hit, from, until)) = gaps.first().copied() {
        let (outcome, other) = match gap {
            Gap::Next => (format!("it runs once at {} instead", time(until)), "`gap: skip` leaves such a day out"),
            Gap::Skip => ("it does not run then".to_owned(), "`gap: next` runs it at the end of the gap"),
        };
        let message = format!(
            "{} does not exist on {} in {} (the clock goes from {} to {}): {outcome}",
            time(hit),
            dates(&gaps),
            zone.name(),
            time(from),
            time(until),
        );
        warnings.push(Warning { lint: Lint::Gap, message, hint: other.to_owned() });
    }
    if let Some((hit, from, until)) = folds.first().copied() {
        let (outcome, other) = match fold {
            Fold::First => ("it runs the first time only", "`fold: second` or `fold: both` say otherwise"),
            Fold::Second => ("it runs the second time only", "`fold: first` or `fold: both` say otherwise"),
            Fold::Both => ("it runs both times", "`fold: first` or `fold: second` run it once"),
        };
        let message = format!(
            "{} comes twice on {} in {} (the clock goes from {} back to {}): {outcome}",
            time(hit),
            dates(&folds),
            zone.name(),
            time(until),
            time(from),
        );
        warnings.push(Warning { lint: Lint::Fold, message, hint: other.to_owned() });
    }
    warnings
}

fn cron_warnings(cron: &Cron, schedule: &Schedule, now: Instant, warnings: &mut Vec<Warning>) {
    if cron.either_day_matches() {
        let coming: Vec<String> = coming(schedule, now).take(3).map(|at| day_text(schedule, at)).collect();
        warnings.push(Warning {
            lint: Lint::EitherDay,
            message: format!(
                "day of month and day of week are both given: it runs when either matches, next on {}",
                coming.join(", ")
            ),
            hint: "to require both, write named fields such as {day: 1-7, day_of_week: mon}".to_owned(),
        });
    }
    for (unit, values, limit) in
        [("second", cron.seconds, 60), ("minute", cron.minutes, 60), ("hour", u64::from(cron.hours), 24)]
    {
        if let Some((step, last)) = uneven_step(values, limit) {
            warnings.push(Warning {
                lint: Lint::UnevenStep,
                message: format!(
                    "every {step} {unit}s does not divide {limit}: after {unit} {last} comes {unit} {}, {} {unit}s later",
                    values.trailing_zeros(),
                    limit - last + values.trailing_zeros()
                ),
                hint: format!("for a steady rhythm write `@every {step}{}`", &unit[..1]),
            });
        }
    }
    if cron.only_late_days() {
        let first = schedule.next(now).map(|at| day_text(schedule, at));
        let next = first.map(|day| format!(", next on {day}")).unwrap_or_default();
        warnings.push(Warning {
            lint: Lint::ShortMonths,
            message: format!("months without such a day are left out{next}"),
            hint: "for the last day of every month write `L`".to_owned(),
        });
    }
}

/// The step and the last value of a set such as `*/7`, when the step does not divide the field.
fn uneven_step(values: u64, limit: u32) -> Option<(u32, u32)> {
    let listed: Vec<u32> = (0..limit).filter(|value| values >> value & 1 == 1).collect();
    let step = listed.get(1)? - listed[0];
    let last = listed[listed.len() - 1];
    let even = step > 1 && listed.len() >= 3 && listed.windows(2).all(|pair| pair[1] - pair[0] == step);
    let whole_field = listed[0] < step && last + step >= limit;
    (even && whole_field && !limit.is_multiple_of(step)).then_some((step, last))
}

fn too_fast(schedule: &Schedule, now: Instant, past: Past) -> Option<Warning> {
    let median = past.median_run.filter(|_| !schedule.counts_from_previous())?;
    let coming: Vec<Instant> = coming(schedule, now).take(OCCURRENCES).collect();
    let distance = coming.windows(2).map(|pair| pair[1].since(pair[0])).min()?;
    (median > distance).then(|| Warning {
        lint: Lint::TooFast,
        message: format!("occurrences are {distance} apart, but half of its runs take {median} or longer"),
        hint: "runs will overlap: choose `overlap`, or a schedule such as `with 10m interval`".to_owned(),
    })
}

/// Zones that people choose by mistake.
fn odd_zone(zone: &str) -> Option<Warning> {
    let upper = zone.to_ascii_uppercase();
    let (message, hint) =
        if matches!(upper.as_str(), "EST" | "MST" | "HST" | "EST5EDT" | "CST6CDT" | "MST7MDT" | "PST8PDT") {
            (
                format!("`{zone}` is kept for old systems only, and does not follow the changes of any place"),
                "name a place, such as America/New_York",
            )
        } else if upper.starts_with("ETC/GMT+") || upper.starts_with("ETC/GMT-") {
            let side = if upper.contains('+') { "behind" } else { "ahead of" };
            (format!("`{zone}` is {side} UTC: the sign in these names is reversed"), "name a place, or use UTC")
        } else {
            return None;
        };
    Some(Warning { lint: Lint::OddZone, message, hint: hint.to_owned() })
}

fn calendar_ends(schedule: &Schedule, now: Instant) -> Option<Warning> {
    let last = schedule.calendar_known_until()?;
    let horizon = schedule.zone().local(now.plus(CALENDAR_AHEAD).secs()).day();
    (last < horizon).then(|| Warning {
        lint: Lint::CalendarEnds,
        message: format!("the dates of its calendar end on {last}"),
        hint: "add the dates that come after it".to_owned(),
    })
}

fn coming(schedule: &Schedule, now: Instant) -> impl Iterator<Item = Instant> + '_ {
    std::iter::successors(schedule.next(now), |at| schedule.next(*at))
}

fn local_text(schedule: &Schedule, at: Instant) -> String {
    at.with_offset(schedule.zone().offset_at(at.secs()))
}

fn day_text(schedule: &Schedule, at: Instant) -> String {
    schedule.zone().local(at.secs()).day().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Calendars;
    use crate::schedule::Surroundings;
    use crate::zone::{Zone, Zones};

    fn warnings(text: &str, past: Past) -> Vec<String> {
        let spec = Spec::parse(text).expect(text);
        let (zones, zone, calendars) = (Zones::bundled(), Zone::utc(), Calendars::new());
        let around = Surroundings { zones: &zones, zone: &zone, calendars: &calendars, job: "job" };
        let schedule = Schedule::compile(&spec, around).expect(text);
        let now = Instant::parse("2026-01-15T12:00:00Z").expect("valid");
        lint(&spec, &schedule, now, past)
            .into_iter()
            .map(|warning| format!("{}: {}", warning.lint.name(), warning.message))
            .collect()
    }

    #[test]
    fn warns_with_dates() {
        for (text, expected) in [
            ("0 18 * * 1-5", vec![]),
            ("*/15 * * * *", vec![]),
            ("CRON_TZ=Europe/Berlin 0 * * * *", vec![]),
            (
                "CRON_TZ=Europe/Berlin 30 2 * * *",
                vec![
                    "gap: 02:30 does not exist on 2026-03-29 and 2027-03-28 in Europe/Berlin (the clock goes from 02:00 to 03:00): it runs once at 03:00 instead",
                    "fold: 02:30 comes twice on 2026-10-25 and 2027-10-31 in Europe/Berlin (the clock goes from 03:00 back to 02:00): it runs the first time only",
                ],
            ),
            ("CRON_TZ=Europe/Berlin 30 2 1 * *", vec![]),
            (
                "0 0 12 * * *",
                vec![
                    "six-fields: six fields are read as minute hour day month weekday year: At 00:00 on the 12th of the month",
                ],
            ),
            (
                "0 0 13 * 5",
                vec![
                    "either-day: day of month and day of week are both given: it runs when either matches, next on 2026-01-16, 2026-01-23, 2026-01-30",
                ],
            ),
            (
                "*/7 * * * *",
                vec![
                    "uneven-step: every 7 minutes does not divide 60: after minute 56 comes minute 0, 4 minutes later",
                ],
            ),
            ("0 0 31 * *", vec!["short-months: months without such a day are left out, next on 2026-01-31"]),
            (
                "0 0 31 2 *",
                vec!["never: never fires: no date matches", "short-months: months without such a day are left out"],
            ),
            ("0 0 1 1 * 2020", vec!["never: never fires again: its last occurrence was 2020-01-01T00:00:00+00:00"]),
            (
                "CRON_TZ=EST 0 0 * * *",
                vec!["odd-zone: `EST` is kept for old systems only, and does not follow the changes of any place"],
            ),
            (
                "CRON_TZ=Etc/GMT+5 0 0 * * *",
                vec!["odd-zone: `Etc/GMT+5` is behind UTC: the sign in these names is reversed"],
            ),
            ("triggered", vec![]),
        ] {
            assert_eq!(warnings(text, Past::default()), expected, "{text}");
        }
    }

    #[test]
    fn warns_of_runs_that_take_too_long() {
        let past = Past { median_run: Some(Span::from_secs(700)) };
        assert_eq!(
            warnings("*/10 * * * *", past),
            ["too-fast: occurrences are 10m apart, but half of its runs take 11m40s or longer"]
        );
        assert!(warnings("0 * * * *", past).is_empty());
        assert!(warnings("with 1m interval", past).is_empty());
    }
}
