//! A schedule in English, for people who want to know what they have written.

use crate::civil::{MONTHS, TimeOfDay, WEEKDAYS};
use crate::cron::{Cron, NTH_LAST, NTH_PER_WEEKDAY, YEAR_MAX, YEAR_MIN, Years};
use crate::span::Span;
use crate::spec::{Bound, DailyInterval, Edge, Shift, Spec, Timing};

/// More times of day than this are told as minutes and hours.
const TIMES_MAX: usize = 6;
const NTH_WORDS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

impl Spec {
    /// The schedule as a sentence. The job's id decides what `H` stands for.
    pub fn words(&self, job: &str) -> String {
        let mut rule = timing_words(&self.timing, job);
        if let Some(calendar) = &self.calendar {
            // The calendar takes the place of every day.
            let end = rule.trim_end_matches(" every day").len();
            rule.truncate(end);
            rule += &format!(" on days of the calendar `{calendar}`");
        }
        let mut parts = vec![rule];
        let local = !matches!(self.timing, Timing::After { .. } | Timing::Triggered | Timing::Never | Timing::Reboot);
        if let Some(zone) = self.zone.as_ref().filter(|_| local) {
            parts.push(format!("{zone} time"));
        }
        parts.extend(self.start.map(|start| format!("from {start}")));
        parts.extend(self.end.map(|end| match end {
            Bound::Day(day) => format!("through {day}"),
            other => format!("until {other}"),
        }));
        if !self.jitter.is_zero() {
            parts.push(format!("started up to {} later", long_span(self.jitter)));
        }
        let sentence = parts.join(", ");
        let mut letters = sentence.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }
}

fn timing_words(timing: &Timing, job: &str) -> String {
    match timing {
        Timing::Cron(expr) => cron_words(&expr.resolve(job)),
        Timing::Fields(fields) => cron_words(&fields.resolve()),
        Timing::Every { interval, phase } => {
            let every = format!("every {}", long_span(*interval));
            if phase.is_zero() { every } else { format!("{every}, {} after the even multiples", long_span(*phase)) }
        }
        Timing::After { interval } if interval.is_zero() => "again as soon as the previous run has ended".to_owned(),
        Timing::After { interval } => format!("{} after the previous run has ended", long_span(*interval)),
        Timing::Daily(daily) => {
            let times: Vec<String> = daily.times.iter().map(ToString::to_string).collect();
            match shift_words(daily.shift) {
                shift if shift.is_empty() => format!("at {} every day", joined(&times)),
                shift => format!("at {}{shift}", joined(&times)),
            }
        }
        Timing::DailyInterval(window) => window_words(window),
        Timing::At(instants) if instants.len() == 1 => format!("once at {}", instants[0]),
        Timing::At(instants) => format!("at {} given instants, the first {}", instants.len(), instants[0]),
        Timing::Triggered => "never by time, only when triggered".to_owned(),
        Timing::Never => "never by itself".to_owned(),
        Timing::Reboot => "once whenever a node starts".to_owned(),
    }
}

fn window_words(window: &DailyInterval) -> String {
    let edge = |edge: &Edge| format!("{}{}", edge.time, shift_words(edge.shift));
    let interval = long_span(window.interval);
    format!("every {interval} from {} until before {}", edge(&window.from), edge(&window.until))
}

fn shift_words(shift: Shift) -> String {
    let part = |days: i32, kind: &str| {
        let direction = if days > 0 { "after" } else { "before" };
        let plural = if days.unsigned_abs() == 1 { "" } else { "s" };
        format!("{} {kind}{plural} {direction}", days.unsigned_abs())
    };
    match (shift.calendar_days, shift.days) {
        (0, 0) => String::new(),
        (0, days) => format!(" ({})", part(days, "day")),
        (days, 0) => format!(" ({})", part(days, "calendar day")),
        (calendar_days, days) => format!(" ({}, then {})", part(calendar_days, "calendar day"), part(days, "day")),
    }
}

fn cron_words(cron: &Cron) -> String {
    let time = time_words(cron);
    let days = day_words(cron);
    let months = values(u64::from(cron.months));
    let mut sentence = match days {
        Some(days) => format!("{time} on {days}"),
        None if time.starts_with("at ") && !time.contains("every") => format!("{time} every day"),
        None => time,
    };
    if months.len() < 12 {
        sentence += &format!(" in {}", joined(&named_runs(&months, |month| MONTHS[month as usize - 1].to_owned())));
    }
    let weeks = values(cron.weeks);
    if weeks.len() < 53 {
        sentence += &format!(" in ISO week {}", joined(&named_runs(&weeks, |week| week.to_string())));
    }
    if cron.years != Years::all() {
        let years: Vec<u32> =
            (YEAR_MIN..=YEAR_MAX).filter(|year| cron.years.contains(*year)).map(i32::cast_unsigned).collect();
        sentence += &format!(" in {}", joined(&named_runs(&years, |year| year.to_string())));
    }
    sentence
}

fn time_words(cron: &Cron) -> String {
    let (seconds, minutes) = (values(cron.seconds), values(cron.minutes));
    let hours = values(u64::from(cron.hours));
    let times = hours.len() * minutes.len() * seconds.len();
    if times <= TIMES_MAX {
        let mut all = Vec::with_capacity(times);
        for hour in &hours {
            for minute in &minutes {
                all.extend(seconds.iter().map(|second| TimeOfDay(hour * 3600 + minute * 60 + second).to_string()));
            }
        }
        return format!("at {}", joined(&all));
    }
    let hours_text = match (hours.len(), step_of(&hours, 24)) {
        (24, _) => None,
        (_, Some(step)) => Some(format!("every {} hour", ordinal(step))),
        _ if runs(&hours).len() == 1 => Some(format!("{:02}:00 to {:02}:59", hours[0], hours[hours.len() - 1])),
        _ => Some(format!("the hours {}", joined(&named_runs(&hours, |hour| format!("{hour:02}"))))),
    };
    let within = |text: String| match &hours_text {
        None => text,
        Some(hours) if hours.contains(" to ") => format!("{text} from {hours}"),
        Some(hours) => format!("{text} in {hours}"),
    };
    let unit = |values: &[u32], unit: &str| match (values.len(), step_of(values, 60)) {
        (60, _) => Some(format!("every {unit}")),
        (_, Some(step)) => Some(format!("every {step} {unit}s")),
        _ => None,
    };
    let listed = |values: &[u32]| joined(&named_runs(values, |value| value.to_string()));
    match (seconds.as_slice(), minutes.as_slice()) {
        ([0], [0]) if hours_text.is_none() => "every hour on the hour".to_owned(),
        ([0], [minute]) => match &hours_text {
            None => format!("at minute {minute} of every hour"),
            Some(hours) if hours.contains(" to ") => format!("at minute {minute} of every hour from {hours}"),
            Some(hours) => format!("at minute {minute} of {hours}"),
        },
        ([0], minutes) => within(unit(minutes, "minute").unwrap_or_else(|| format!("at minutes {}", listed(minutes)))),
        (seconds, minutes) => {
            let seconds = unit(seconds, "second").unwrap_or_else(|| format!("at second {}", listed(seconds)));
            match (minutes.len(), unit(minutes, "minute")) {
                (60, _) => within(seconds),
                (_, Some(minutes)) => within(format!("{seconds} of {minutes}")),
                (_, None) => within(format!("{seconds} of minute {}", listed(minutes))),
            }
        }
    }
}

fn day_words(cron: &Cron) -> Option<String> {
    let traits = cron.traits;
    let mut numbered = Vec::new();
    let days = values(u64::from(cron.days));
    match step_of(&days, 32) {
        _ if !traits.days_restricted => {}
        Some(step) if days[0] == 1 => numbered.push(format!("every {} day", ordinal(step))),
        _ => numbered.extend(named_runs(&days, |day| format!("the {}", ordinal(day)))),
    }
    numbered.extend(
        values(u64::from(cron.nearest)).iter().map(|day| format!("the weekday nearest to the {}", ordinal(*day))),
    );
    numbered.extend(values(u64::from(cron.from_end)).iter().map(|back| match back {
        0 => "the last day".to_owned(),
        1 => "the day before the last".to_owned(),
        _ => format!("the {} day before the last", ordinal(*back)),
    }));
    if traits.last_working_day {
        numbered.push("the last weekday".to_owned());
    }
    let nth = values(cron.nth).into_iter().map(|bit| {
        let weekday = WEEKDAYS[(bit / NTH_PER_WEEKDAY) as usize];
        match bit % NTH_PER_WEEKDAY {
            NTH_LAST => format!("the last {weekday}"),
            nth => format!("the {} {weekday}", NTH_WORDS[nth as usize]),
        }
    });
    let nth: Vec<String> = nth.collect();
    let mut weekdays = Vec::new();
    if traits.weekdays_restricted {
        weekdays = named_runs(&monday_first(cron.weekdays), |weekday| WEEKDAYS[weekday as usize % 7].to_owned());
    }
    if traits.both_must_match {
        numbered.extend(nth);
    } else {
        weekdays.extend(nth.iter().map(|nth| format!("{nth} of the month")));
    }
    let numbered = (!numbered.is_empty()).then(|| format!("{} of the month", joined(&numbered)));
    let weekdays = (!weekdays.is_empty()).then(|| joined(&weekdays));
    match (numbered, weekdays) {
        (Some(numbered), Some(weekdays)) if traits.both_must_match => Some(format!("{numbered} if it is {weekdays}")),
        (Some(numbered), Some(weekdays)) => Some(format!("{numbered} or on {weekdays}")),
        (numbered, weekdays) => numbered.or(weekdays),
    }
}

/// Weekdays from Monday on; Sunday is 7 there, so that a working week is one run.
fn monday_first(weekdays: u8) -> Vec<u32> {
    (1..=7).filter(|day| weekdays >> (day % 7) & 1 == 1).collect()
}

fn values(bits: u64) -> Vec<u32> {
    (0..64).filter(|value| bits >> value & 1 == 1).collect()
}

/// `n` when the values are every n-th from the first below `limit` on, three at least or two that divide evenly.
fn step_of(values: &[u32], limit: u32) -> Option<u32> {
    let step = values.get(1)? - values[0];
    let even = step > 1 && values.windows(2).all(|pair| pair[1] - pair[0] == step);
    let whole = values[0] < step && values[values.len() - 1] + step >= limit;
    (even && whole && (values[0] == 0 || values[0] == 1 && limit == 32)).then_some(step)
}

fn runs(values: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *value => *last = *value,
            _ => runs.push((*value, *value)),
        }
    }
    runs
}

/// Values by name, with runs of three or more told by their ends.
fn named_runs(values: &[u32], name: impl Fn(u32) -> String) -> Vec<String> {
    runs(values)
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![name(first)],
            1 => vec![name(first), name(last)],
            _ => vec![format!("{} through {}", name(first), name(last))],
        })
        .collect()
}

/// `a`, `a and b`, `a, b and c`.
fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// `1 hour 30 minutes`.
fn long_span(span: Span) -> String {
    let units = [(86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second")];
    let mut left = span.micros();
    let mut parts = Vec::new();
    for (each, name) in units {
        let count = left / each;
        left %= each;
        match count {
            0 => {}
            1 if parts.is_empty() && left == 0 => return name.to_owned(),
            1 => parts.push(format!("1 {name}")),
            _ => parts.push(format!("{count} {name}s")),
        }
    }
    if left > 0 || parts.is_empty() {
        return span.to_string();
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_in_english() {
        for (text, words) in [
            ("* * * * *", "Every minute"),
            ("* * * * * * *", "Every second"),
            ("*/15 * * * *", "Every 15 minutes"),
            ("0 * * * *", "Every hour on the hour"),
            ("5 * * * *", "At minute 5 of every hour"),
            ("0 */2 * * *", "At minute 0 of every 2nd hour"),
            ("*/10 9-17 * * 1-5", "Every 10 minutes from 09:00 to 17:59 on Monday through Friday"),
            ("0 18 * * Mon-Fri", "At 18:00 on Monday through Friday"),
            ("0 6,18 * * *", "At 06:00 and 18:00 every day"),
            ("0 0 1 * *", "At 00:00 on the 1st of the month"),
            ("0 0 1,15 * 5", "At 00:00 on the 1st and the 15th of the month or on Friday"),
            ("0 0 L * *", "At 00:00 on the last day of the month"),
            ("0 0 LW * *", "At 00:00 on the last weekday of the month"),
            ("0 0 15W * *", "At 00:00 on the weekday nearest to the 15th of the month"),
            ("0 0 * * 5L", "At 00:00 on the last Friday of the month"),
            ("0 0 * * 5#3", "At 00:00 on the third Friday of the month"),
            ("0 0 */2 * *", "At 00:00 on every 2nd day of the month"),
            ("0 0 1 1-3 * 2026", "At 00:00 on the 1st of the month in January through March in 2026"),
            ("30 0 0 * * * *", "At 00:00:30 every day"),
            ("*/5 * 3 * * * *", "Every 5 seconds from 03:00 to 03:59"),
            ("CRON_TZ=Europe/Berlin 0 18 * * *", "At 18:00 every day, Europe/Berlin time"),
            ("@every 1h30m", "Every 1 hour 30 minutes"),
            ("@every 1m", "Every minute"),
            ("with 10m interval", "10 minutes after the previous run has ended"),
            ("continuously", "Again as soon as the previous run has ended"),
            ("triggered", "Never by time, only when triggered"),
            ("@reboot", "Once whenever a node starts"),
        ] {
            assert_eq!(Spec::parse(text).expect(text).words("job"), words, "{text}");
        }
    }
}
