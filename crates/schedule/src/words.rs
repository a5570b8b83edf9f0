//! Describes a schedule in English.

mod cron;
pub(crate) mod english;
#[cfg(test)]
mod tests;

use crate::civil::TimeOfDay;
use crate::spec::{DailyInterval, DailyTiming, DayShift, ScheduleSpec, TimeBound, Timing, WindowEdge};
use cron::cron_words;
use english::{every_span, joined, long_span, ordinal};

/// Longer lists of instants are described by their number.
const INSTANTS_LISTED: usize = 3;

impl ScheduleSpec {
    /// The schedule as a sentence. The job's id determines the values of `H`.
    pub fn words(&self, job: &str) -> String {
        let rule = self.rule_words(job);
        // Zones and bounds are irrelevant for a schedule that is never due by time.
        let sentence = if matches!(self.timing, Timing::Triggered | Timing::Never) {
            rule
        } else {
            let mut parts = vec![rule];
            parts.extend(self.zone.as_ref().filter(|_| self.zone_matters()).map(|zone| format!("{zone} time")));
            parts.extend(self.start.map(|start| format!("from {start}")));
            parts.extend(self.end.map(|end| match end {
                TimeBound::Day(day) => format!("through {day}"),
                other => format!("until {other}"),
            }));
            if !self.jitter.is_zero() {
                parts.push(format!("started up to {} later", long_span(self.jitter)));
            }
            parts.join(", ")
        };
        let mut letters = sentence.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// The rule and its calendar.
    fn rule_words(&self, job: &str) -> String {
        let calendar = self.calendar.as_ref().map(|calendar| format!("the calendar `{calendar}`"));
        let only = |rule: String| match &calendar {
            Some(calendar) => format!("{rule}, only on days of {calendar}"),
            None => rule,
        };
        let cron = match &self.timing {
            Timing::Cron(expr) => cron_words(&expr.resolve(job)),
            Timing::Fields(fields) => cron_words(&fields.resolve()),
            Timing::Every { interval, phase } if phase.is_zero() => return only(every_span(*interval)),
            Timing::Every { interval, phase } => {
                return only(format!("{}, offset by {}", every_span(*interval), long_span(*phase)));
            }
            Timing::After { interval } if interval.is_zero() => {
                return only("again as soon as the previous run has ended".to_owned());
            }
            Timing::After { interval } => {
                return only(format!("{} after the previous run has ended", long_span(*interval)));
            }
            Timing::Daily(daily) => return daily_words(daily, calendar.as_deref()),
            Timing::DailyInterval(window) => return window_words(window, calendar.as_deref()),
            Timing::At(instants) => return only(at_words(instants)),
            Timing::Triggered => return "never by time, only when triggered".to_owned(),
            Timing::Never => return "never by itself".to_owned(),
            Timing::Reboot => return "once whenever a node starts".to_owned(),
        };
        match (cron.days, calendar) {
            (Some(days), Some(calendar)) => {
                format!("{} {days}{}, only on days of {calendar}", cron.time, cron.rest)
            }
            (Some(days), None) => format!("{} {days}{}", cron.time, cron.rest),
            (None, Some(calendar)) => format!("{} on days of {calendar}{}", cron.time, cron.rest),
            (None, None) if cron.within_day => format!("{} every day{}", cron.time, cron.rest),
            (None, None) => format!("{}{}", cron.time, cron.rest),
        }
    }

    /// Whether the zone affects the occurrences.
    fn zone_matters(&self) -> bool {
        let local = |bound: &TimeBound| !matches!(bound, TimeBound::Instant(_));
        let bounded = self.calendar.is_some() || self.start.iter().chain(&self.end).any(local);
        match &self.timing {
            Timing::Cron(_) | Timing::Fields(_) | Timing::Daily(_) | Timing::DailyInterval(_) => true,
            Timing::At(instants) => bounded || instants.iter().any(local),
            Timing::Every { .. } | Timing::After { .. } | Timing::Reboot => bounded,
            Timing::Triggered | Timing::Never => false,
        }
    }
}

fn daily_words(daily: &DailyTiming, calendar: Option<&str>) -> String {
    let times: Vec<String> = daily.times.iter().map(ToString::to_string).collect();
    let at = format!("at {}", joined(&times, "and"));
    let DayShift { calendar_days, days } = daily.shift;
    let Some(calendar) = calendar else {
        // All days are calendar days then, so both shifts can be added.
        return match i64::from(calendar_days) + i64::from(days) {
            0 => format!("{at} every day"),
            shift => {
                let direction = if shift > 0 { "earlier" } else { "later" };
                format!("{at} every day, for the date {} {direction}", days_long(shift.unsigned_abs()))
            }
        };
    };
    let direction = |days: i32| if days > 0 { "after" } else { "before" };
    let target = match calendar_days {
        0 => format!("each day of {calendar}"),
        along => {
            format!("the {} day of {calendar} {} each of its days", ordinal(along.unsigned_abs()), direction(along))
        }
    };
    match (calendar_days, days) {
        (0, 0) => format!("{at} on days of {calendar}"),
        (_, 0) => format!("{at} on {target}"),
        _ => format!("{at}, {} {} {target}", days_long(u64::from(days.unsigned_abs())), direction(days)),
    }
}

fn window_words(window: &DailyInterval, calendar: Option<&str>) -> String {
    let every = every_span(window.interval);
    let window_text = format!("{every} from {} until before {}", edge_words(window.from), edge_words(window.until));
    let shifted = [window.from, window.until].iter().any(|edge| edge.shift != DayShift::default());
    match calendar {
        Some(calendar) if shifted => format!("{window_text}, for each day of {calendar}"),
        Some(calendar) => format!("{window_text} on days of {calendar}"),
        None if shifted => format!("{window_text}, for each day"),
        None => format!("{window_text} every day"),
    }
}

fn edge_words(edge: WindowEdge) -> String {
    let DayShift { calendar_days, days } = edge.shift;
    let plain = match days {
        0 => String::new(),
        1 => " the next day".to_owned(),
        -1 => " the day before".to_owned(),
        days => {
            let direction = if days > 0 { "later" } else { "earlier" };
            format!(" {} {direction}", days_long(u64::from(days.unsigned_abs())))
        }
    };
    let along = match calendar_days {
        0 => String::new(),
        days => {
            let direction = if days > 0 { "after" } else { "before" };
            let then = if plain.is_empty() { "" } else { " and then" };
            format!(" on the {} day of the calendar {direction} it{then}", ordinal(days.unsigned_abs()))
        }
    };
    format!("{}{along}{plain}", edge.time)
}

fn days_long(days: u64) -> String {
    if days == 1 { "1 day".to_owned() } else { format!("{days} days") }
}

fn at_words(instants: &[TimeBound]) -> String {
    let describe = |bound: &TimeBound| match bound {
        TimeBound::Instant(instant) => format!("at {instant}"),
        TimeBound::Local(local) => format!("on {} at {}", local.day(), TimeOfDay(local.second_of_day())),
        TimeBound::Day(day) => format!("on {day} at 00:00"),
    };
    // Bounds of different kinds are sorted as if local times were UTC.
    let seconds = |bound: &TimeBound| match bound {
        TimeBound::Instant(instant) => instant.secs(),
        TimeBound::Local(local) => local.0,
        TimeBound::Day(day) => day.midnight().0,
    };
    let mut ordered = instants.to_vec();
    ordered.sort_by_key(seconds);
    match ordered.as_slice() {
        [] => "never: no instants are given".to_owned(),
        [only] => format!("once {}", describe(only)),
        few if few.len() <= INSTANTS_LISTED => joined(&few.iter().map(describe).collect::<Vec<_>>(), "and"),
        [first, ..] => format!("at {} given times, the first of them {}", ordered.len(), describe(first)),
    }
}
