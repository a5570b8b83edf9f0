//! What someone wrote as a schedule: comparable, printable, stored with the job. Nothing is
//! resolved yet; `Schedule::compile` brings in the zone, the calendars and the job's id.

use crate::calendar::CalendarExpr;
use crate::civil::{DAY_SECS, Day, Local, TimeOfDay};
use crate::cron::{CronExpr, FieldsExpr};
use crate::instant::Instant;
use crate::span::Span;

/// A schedule as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// When, before zone, bounds and calendar.
    pub timing: Timing,
    /// IANA name; the node's zone when absent.
    pub zone: Option<String>,
    /// Nothing before it.
    pub start: Option<Bound>,
    /// Nothing after it.
    pub end: Option<Bound>,
    /// Runs start up to this much later, spread by job and occurrence.
    pub jitter: Span,
    /// Only on these days, as the zone's date says.
    pub calendar: Option<CalendarExpr>,
    /// What happens to times that a clock change leaves out; the kind of schedule decides when absent.
    pub gap: Option<Gap>,
    /// What happens to times that a clock change repeats; the kind of schedule decides when absent.
    pub fold: Option<Fold>,
}

impl Spec {
    /// A schedule with that rule and nothing else.
    pub fn new(timing: Timing) -> Self {
        Self { timing, zone: None, start: None, end: None, jitter: Span::ZERO, calendar: None, gap: None, fold: None }
    }

    /// What its parts do not say alone: the first mistake, with the key it belongs to.
    pub fn check(&self) -> Result<(), SpecError> {
        let whole = |span: Span| span >= Span::from_secs(1) && span.is_whole_secs();
        let local = matches!(
            self.timing,
            Timing::Cron(_) | Timing::Fields(_) | Timing::Daily(_) | Timing::DailyInterval(_) | Timing::At(_)
        );
        let wrong = |key, message: &str| Err(SpecError { key, message: message.to_owned() });
        match &self.timing {
            Timing::Every { interval, .. } if !whole(*interval) => {
                return wrong("every", "an interval must be whole seconds, at least one");
            }
            Timing::Every { interval, phase } if phase >= interval || !phase.is_whole_secs() => {
                return wrong("phase", "a phase must be whole seconds and shorter than the interval");
            }
            Timing::After { interval } if !interval.is_whole_secs() => {
                return wrong("after", "an interval must be whole seconds");
            }
            Timing::Daily(daily) if daily.times.is_empty() => {
                return wrong("daily", "expected at least one time of day");
            }
            Timing::DailyInterval(window) if !whole(window.interval) => {
                return wrong("daily_interval", "an interval must be whole seconds, at least one");
            }
            Timing::DailyInterval(DailyInterval { from, until, .. })
                if from.shift.calendar_days == until.shift.calendar_days
                    && (from.shift.days, from.time) >= (until.shift.days, until.time) =>
            {
                return wrong(
                    "daily_interval",
                    "the window ends before it begins; give its end `date_shift: 1` to go over midnight",
                );
            }
            Timing::At(instants) if instants.is_empty() => return wrong("at", "expected at least one instant"),
            _ => {}
        }
        if !local && self.gap.is_some() {
            return wrong(
                "gap",
                "this kind of schedule follows elapsed time, so that clock changes leave no gap in it",
            );
        }
        if !local && self.fold.is_some() {
            return wrong("fold", "this kind of schedule follows elapsed time, so that clock changes repeat nothing");
        }
        if let (Some(start), Some(end)) = (self.start, self.end)
            && start.earliest() > end.latest()
        {
            return wrong("end", "the schedule ends before it starts");
        }
        Ok(())
    }
}

/// Parts of a schedule that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The key that the mistake belongs to.
    pub key: &'static str,
    /// What is wrong and what is expected.
    pub message: String,
}

/// The rule itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timing {
    /// A cron expression of 5 to 7 fields.
    Cron(CronExpr),
    /// Named cron fields.
    Fields(FieldsExpr),
    /// Every so often, counted from 1970-01-01T00:00:00Z plus the phase.
    Every {
        /// Whole seconds, at least one.
        interval: Span,
        /// Below the interval.
        phase: Span,
    },
    /// That long after the end of the previous run.
    After {
        /// Zero for `continuously`.
        interval: Span,
    },
    /// At times of day, on the days of a calendar.
    Daily(Daily),
    /// At steps inside a window on each day of a calendar.
    DailyInterval(DailyInterval),
    /// At these instants.
    At(Vec<Bound>),
    /// Never by time: by hand, by an action or by a message.
    Triggered,
    /// Never at all by itself; what `@never` says.
    Never,
    /// Once when a node starts.
    Reboot,
}

/// Times of day on the days of a calendar. The calendar stands in `Spec::calendar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daily {
    /// In order, without repeats; at least one.
    pub times: Vec<TimeOfDay>,
    /// From a calendar day to the day of the run.
    pub shift: Shift,
}

/// A window on each day of a calendar, and a step inside it. The calendar stands in `Spec::calendar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyInterval {
    /// Where the window begins; the first occurrence.
    pub from: Edge,
    /// Where it ends; not part of it.
    pub until: Edge,
    /// Elapsed time between occurrences.
    pub interval: Span,
}

/// One end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Time of day.
    pub time: TimeOfDay,
    /// From the calendar day to the day it stands on.
    pub shift: Shift,
}

/// From one day to another: first along the calendar, then by plain days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shift {
    /// Calendar (business) days.
    pub calendar_days: i32,
    /// Plain days.
    pub days: i32,
}

/// A point in time that may wait for its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Given with an offset.
    Instant(Instant),
    /// Given as the schedule's own wall shows it.
    Local(Local),
    /// A date: its first instant as a start, its last second as an end.
    Day(Day),
}

impl Bound {
    /// The earliest second of Unix time it can stand for in any zone.
    fn earliest(self) -> i64 {
        match self {
            Self::Instant(instant) => instant.secs(),
            Self::Local(local) => local.0 - DAY_SECS,
            Self::Day(day) => day.midnight().0 - DAY_SECS,
        }
    }

    /// The latest second of Unix time it can stand for in any zone.
    fn latest(self) -> i64 {
        match self {
            Self::Instant(instant) => instant.secs(),
            Self::Local(local) => local.0 + DAY_SECS,
            Self::Day(day) => day.plus(1).midnight().0 + DAY_SECS,
        }
    }
}

/// What happens to local times that a clock change leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// They run together once, at the end of the gap.
    Next,
    /// They do not run.
    Skip,
}

/// What happens to local times that a clock change repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// They run the first time only.
    First,
    /// They run the second time only.
    Second,
    /// They run both times.
    Both,
}
