//! A schedule as written in a job: comparable, printable, stored with the job. Nothing is resolved yet;
//! `Schedule::compile` adds the zone, the calendars and the job's id.

use crate::calendar::CalendarExpr;
use crate::civil::{DAY_SECS, Day, TimeOfDay, WallTime};
use crate::cron::{CronExpr, FieldsExpr};
use crate::instant::Instant;
use crate::span::Span;

/// Maximum shift in days.
pub const SHIFT_MAX: u32 = 366;
const SHIFT_TOO_FAR: &str = "a day can be shifted by at most 366 days";
/// Maximum number of times of day: one per minute.
const TIMES_MAX: usize = 1440;
/// Maximum number of instants of an `at` schedule.
const INSTANTS_MAX: usize = 10_000;

/// A schedule as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleSpec {
    /// The rule, before zone, bounds and calendar apply.
    pub timing: Timing,
    /// IANA name. `None` means the node's zone.
    pub zone: Option<String>,
    /// No occurrences before it.
    pub start: Option<TimeBound>,
    /// No occurrences after it.
    pub end: Option<TimeBound>,
    /// Maximum random delay of a run, derived from job and occurrence.
    pub jitter: Span,
    /// Restricts occurrences to these days, by the local date.
    pub calendar: Option<CalendarExpr>,
    /// Policy for times that a clock change skips. `None` means the default of the schedule's kind.
    pub gap: Option<GapPolicy>,
    /// Policy for times that a clock change repeats. `None` means the default of the schedule's kind.
    pub fold: Option<FoldPolicy>,
}

impl ScheduleSpec {
    /// A schedule with that rule and default settings.
    pub fn new(timing: Timing) -> Self {
        Self { timing, zone: None, start: None, end: None, jitter: Span::ZERO, calendar: None, gap: None, fold: None }
    }

    /// Checks how its parts fit together. Returns the first error with the key it belongs to.
    pub fn check(&self) -> Result<(), SpecError> {
        self.timing.check()?;
        let by_time = !matches!(self.timing, Timing::Triggered | Timing::Never | Timing::Reboot);
        let local = by_time && !matches!(self.timing, Timing::Every { .. } | Timing::After { .. });
        let without_seams = if by_time {
            "this kind of schedule follows elapsed time: clock changes leave out and repeat nothing"
        } else {
            "this schedule is never due by time"
        };
        if !local && self.gap.is_some() {
            return wrong("gap", without_seams);
        }
        if !local && self.fold.is_some() {
            return wrong("fold", without_seams);
        }
        match (self.start, self.end) {
            (Some(start), Some(end)) if start.is_surely_after(end) => {
                wrong("end", "the schedule ends before it starts")
            }
            _ => Ok(()),
        }
    }
}

fn wrong(key: &'static str, message: &str) -> Result<(), SpecError> {
    Err(SpecError { key, message: message.to_owned() })
}

/// Parts of a schedule that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The key that the error belongs to.
    pub key: &'static str,
    /// What is wrong and what is expected.
    pub message: String,
}

/// The rule of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timing {
    /// A cron expression of 5 to 7 fields.
    Cron(CronExpr),
    /// Named cron fields.
    Fields(FieldsExpr),
    /// At a fixed interval, counted from 1970-01-01T00:00:00Z plus the phase.
    Every {
        /// Whole seconds, at least one.
        interval: Span,
        /// Less than the interval.
        phase: Span,
    },
    /// A fixed time after the end of the previous run.
    After {
        /// Zero for `continuously`.
        interval: Span,
    },
    /// At times of day, on the days of a calendar.
    Daily(DailyTiming),
    /// At steps within a window on each day of a calendar.
    DailyInterval(DailyInterval),
    /// At these instants.
    At(Vec<TimeBound>),
    /// Not by time, only manually, by an action or by a message.
    Triggered,
    /// Never, as `@never`.
    Never,
    /// Once when a node starts.
    Reboot,
}

/// Times of day on the days of a calendar. The calendar is in `ScheduleSpec::calendar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyTiming {
    /// In order, without duplicates; at least one.
    pub times: Vec<TimeOfDay>,
    /// From the calendar day to the day of the run.
    pub shift: DayShift,
}

/// A window on each day of a calendar, and a step inside it. The calendar is in `ScheduleSpec::calendar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyInterval {
    /// Start of the window and first occurrence.
    pub from: WindowEdge,
    /// End of the window, exclusive.
    pub until: WindowEdge,
    /// Elapsed time between occurrences.
    pub interval: Span,
}

/// One edge of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowEdge {
    pub time: TimeOfDay,
    /// From the calendar day to the day of this edge.
    pub shift: DayShift,
}

/// From one day to another: first along the calendar, then by plain days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayShift {
    /// Calendar (business) days.
    pub calendar_days: i32,
    /// Plain days, added after the calendar days.
    pub days: i32,
}

/// A point in time that may depend on a zone. `Ord` sorts the normal form, not by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeBound {
    /// Given with an offset.
    Instant(Instant),
    /// Given as local time of the schedule's zone.
    Local(WallTime),
    /// A date: its first instant as a start, its last second as an end.
    Day(Day),
}

impl TimeBound {
    /// Whether it is after `end` in every zone. A date means its first instant here, and its last second as an end.
    fn is_surely_after(self, end: Self) -> bool {
        let (start_local, start) = self.seconds();
        let (end_local, end_first) = end.seconds();
        let end = if let Self::Day(_) = end { end_first + DAY_SECS - 1 } else { end_first };
        // No zone is a whole day away from UTC.
        let slack = if start_local == end_local { 0 } else { DAY_SECS };
        start > end + slack
    }

    /// Whether it is local, and its seconds since 1970 in local time or UTC.
    fn seconds(self) -> (bool, i64) {
        match self {
            Self::Instant(instant) => (false, instant.secs()),
            Self::Local(local) => (true, local.0),
            Self::Day(day) => (true, day.midnight().0),
        }
    }
}

impl DayShift {
    fn is_bounded(self) -> bool {
        self.days.unsigned_abs() <= SHIFT_MAX && self.calendar_days.unsigned_abs() <= SHIFT_MAX
    }
}

impl Timing {
    /// Times of day in normal form: in order, without duplicates.
    pub fn daily(mut times: Vec<TimeOfDay>, shift: DayShift) -> Self {
        times.sort_unstable();
        times.dedup();
        Self::Daily(DailyTiming { times, shift })
    }

    /// Instants in normal form: in order, without duplicates.
    pub fn at(mut instants: Vec<TimeBound>) -> Self {
        instants.sort_unstable();
        instants.dedup();
        Self::At(instants)
    }

    fn check(&self) -> Result<(), SpecError> {
        let whole = |span: Span| span >= Span::from_secs(1) && span.is_whole_secs();
        match self {
            Self::Every { interval, .. } if !whole(*interval) => {
                wrong("every", "an interval must be whole seconds, at least one")
            }
            Self::Every { interval, phase } if phase >= interval || !phase.is_whole_secs() => {
                wrong("phase", "a phase must be whole seconds and shorter than the interval")
            }
            Self::After { interval } if !interval.is_whole_secs() => {
                wrong("after", "an interval must be whole seconds")
            }
            Self::Daily(daily) if daily.times.is_empty() || daily.times.len() > TIMES_MAX => {
                wrong("daily", "expected 1 to 1440 times of day")
            }
            Self::Daily(daily) if !daily.shift.is_bounded() => wrong("daily", SHIFT_TOO_FAR),
            Self::DailyInterval(window) if !window.from.shift.is_bounded() || !window.until.shift.is_bounded() => {
                wrong("daily_interval", SHIFT_TOO_FAR)
            }
            Self::DailyInterval(window) if !whole(window.interval) => {
                wrong("daily_interval", "an interval must be whole seconds, at least one")
            }
            Self::DailyInterval(DailyInterval { from, until, .. })
                if from.shift.calendar_days == until.shift.calendar_days
                    && (from.shift.days, from.time) >= (until.shift.days, until.time) =>
            {
                wrong(
                    "daily_interval",
                    "the window ends before it begins; give its end `date_shift: 1` to go over midnight",
                )
            }
            Self::At(instants) if instants.is_empty() || instants.len() > INSTANTS_MAX => {
                wrong("at", "expected 1 to 10000 instants")
            }
            _ => Ok(()),
        }
    }
}

/// Policy for local times that a clock change skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapPolicy {
    /// Run once at the end of the gap, all skipped times together.
    Next,
    /// Do not run.
    Skip,
}

/// Policy for local times that a clock change repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldPolicy {
    /// Run the first time only.
    First,
    /// Run the second time only.
    Second,
    /// Run both times.
    Both,
}
