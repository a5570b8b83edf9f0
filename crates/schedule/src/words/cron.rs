//! Describes a cron rule in English: first the times of day, then the days.

use super::english::{LIST_MAX, counted, every_nth, every_span, joined, named_runs, ordinal};
use crate::civil::{MONTHS, TimeOfDay, WEEKDAYS};
use crate::cron::{
    CronBits, NTH_LAST, NTH_PER_WEEKDAY, YEAR_MAX, YEAR_MIN, YearSet, distance, monday_first, runs, values,
};
use crate::span::Span;

const NTH_WORDS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// More ranges of hours than this are described as a list.
const STRETCHES_MAX: usize = 3;
const HOUR_SECS: u32 = 3600;
const DAY_SECS: u32 = 86_400;

/// The parts of the sentence that describes a cron rule.
#[derive(Debug)]
pub(super) struct CronWords {
    /// `at 18:00`, `every 15 minutes`.
    pub(super) time: String,
    /// Whether the times cover only part of a day, so that the sentence has to name the days.
    pub(super) within_day: bool,
    /// `on Monday through Friday`; `None` for every day.
    pub(super) days: Option<String>,
    /// ` in January`, ` in ISO week 1`, ` in 2026`, or empty.
    pub(super) rest: String,
}

/// The values of seconds, minutes and hours.
struct ClockFields {
    seconds: Vec<u32>,
    minutes: Vec<u32>,
    hours: Vec<u32>,
}

pub(super) fn cron_words(cron: &CronBits) -> CronWords {
    let clock = ClockFields {
        seconds: values(cron.seconds),
        minutes: values(cron.minutes),
        hours: values(u64::from(cron.hours)),
    };
    let months = values(u64::from(cron.months));
    // `the 1st of January through March` would be read as ninety days.
    let single = runs(&months).iter().all(|(first, last)| last - first < 2);
    let months = (months.len() < 12).then(|| joined(&named_runs(&months, month_name), "and"));
    let days = day_words(cron, months.as_deref().filter(|_| single));
    let mut rest = match (&months, &days) {
        (None, _) | (_, Some(DayWords { months_named: true, .. })) => String::new(),
        // Without a comma, the months would seem to apply only to the last day.
        (Some(months), Some(DayWords { either: true, .. })) => format!(", in {months}"),
        (Some(months), _) => format!(" in {months}"),
    };
    let weeks = values(cron.weeks);
    if weeks.len() < 53 {
        let number = |week: u32| week.to_string();
        let weeks = every_nth(&weeks, "ISO week", number).unwrap_or_else(|| counted("ISO week", &weeks, number));
        rest += &format!(" in {weeks}");
    }
    if cron.years != YearSet::all() {
        let years: Vec<u32> =
            (YEAR_MIN..=YEAR_MAX).filter(|year| cron.years.contains(*year)).map(i32::cast_unsigned).collect();
        let number = |year: u32| year.to_string();
        let years = every_nth(&years, "year", number).unwrap_or_else(|| joined(&named_runs(&years, number), "and"));
        rest += &format!(" in {years}");
    }
    CronWords { time: clock.words(), within_day: clock.hours.len() < 24, days: days.map(|days| days.text), rest }
}

fn month_name(month: u32) -> String {
    MONTHS[month as usize - 1].to_owned()
}

impl ClockFields {
    fn words(&self) -> String {
        let count = self.seconds.len() * self.minutes.len() * self.hours.len();
        if count <= LIST_MAX {
            let times: Vec<String> = self.times().map(|second| TimeOfDay(second).to_string()).collect();
            return format!("at {}", joined(&times, "and"));
        }
        self.rhythm().unwrap_or_else(|| self.by_unit())
    }

    /// All times of day, in seconds since midnight.
    fn times(&self) -> impl Iterator<Item = u32> + '_ {
        let minutes = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| hour * 60 + minute));
        minutes.flat_map(|minute| self.seconds.iter().map(move |second| minute * 60 + second))
    }

    /// Evenly spaced times of day: `every 15 minutes`, `every hour from 09:30 through 17:30`.
    fn rhythm(&self) -> Option<String> {
        let mut times = self.times();
        let (first, second) = (times.next()?, times.next()?);
        let step = second - first;
        let mut last = second;
        for time in times {
            if time - last != step {
                return None;
            }
            last = time;
        }
        let every = every_span(Span::from_secs(u64::from(step)));
        if self.hours.len() < 24 {
            return Some(format!("{every} from {} through {}", TimeOfDay(first), TimeOfDay(last)));
        }
        match (first, step) {
            (0, HOUR_SECS) => Some("every hour on the hour".to_owned()),
            (0, _) if last + step == DAY_SECS => Some(every),
            _ => None,
        }
    }

    /// Times that are not evenly spaced: seconds of minutes of hours.
    fn by_unit(&self) -> String {
        let (seconds, minutes) = (self.seconds.as_slice(), self.minutes.as_slice());
        let hours = HourWords::of(&self.hours);
        match (seconds, steady(minutes, "minute")) {
            ([0], Some(every)) => hours.holding(&every),
            ([0], None) => hours.around(&format!("at {}", units(minutes, "minute"))),
            _ => {
                let seconds = steady(seconds, "second").unwrap_or_else(|| format!("at {}", units(seconds, "second")));
                if minutes.len() == 60 {
                    hours.holding(&format!("{seconds} of every minute"))
                } else {
                    hours.around(&format!("{seconds} of {}", units(minutes, "minute")))
                }
            }
        }
    }
}

/// How the hours of a rule are described.
enum HourWords {
    All,
    /// One or a few ranges: `from 09:00 through 17:59`.
    Stretches {
        text: String,
        single: bool,
    },
    /// `every 2nd hour from 00:00 through 22:00`.
    Listed(String),
}

impl HourWords {
    fn of(hours: &[u32]) -> Self {
        let stretches = runs(hours);
        if hours.len() == 24 {
            return Self::All;
        }
        if stretches.len() <= STRETCHES_MAX {
            let describe = |(first, last): &(u32, u32)| format!("from {first:02}:00 through {last:02}:59");
            let text = joined(&stretches.iter().map(describe).collect::<Vec<_>>(), "and");
            return Self::Stretches { text, single: hours.len() == 1 };
        }
        let name = |hour: u32| format!("{hour:02}:00");
        let listed = || format!("the hours that begin at {}", joined(&named_runs(hours, name), "and"));
        Self::Listed(every_nth(hours, "hour", name).unwrap_or_else(listed))
    }

    /// For times that repeat within an hour: `every 5 minutes from 09:00 through 17:59`.
    fn holding(&self, text: &str) -> String {
        match self {
            Self::All => text.to_owned(),
            Self::Stretches { text: stretches, .. } => format!("{text} {stretches}"),
            Self::Listed(hours) => format!("{text} of {hours}"),
        }
    }

    /// For times that are part of an hour: `at minute 5 of every hour from 09:00 through 17:59`.
    fn around(&self, text: &str) -> String {
        match self {
            Self::All => format!("{text} of every hour"),
            Self::Stretches { text: stretches, single: true } => format!("{text} of the hour {stretches}"),
            Self::Stretches { text: stretches, single: false } => format!("{text} of every hour {stretches}"),
            Self::Listed(hours) => format!("{text} of {hours}"),
        }
    }
}

/// `every 15 minutes` for values that divide the hour or day into equal steps from zero.
fn steady(values: &[u32], unit: &str) -> Option<String> {
    let step = distance(values)?;
    let round = values[0] == 0 && values[values.len() - 1] + step == 60;
    round.then(|| if step == 1 { format!("every {unit}") } else { format!("every {step} {unit}s") })
}

/// `minute 5`, `minutes 0 and 10`, `every 7th minute from 0 through 56`.
fn units(values: &[u32], unit: &str) -> String {
    let number = |value: u32| value.to_string();
    every_nth(values, unit, number).unwrap_or_else(|| counted(unit, values, number))
}

/// The days of a rule.
struct DayWords {
    text: String,
    /// Whether the description of the days already names the months.
    months_named: bool,
    /// Whether it has both kinds of days and either is enough.
    either: bool,
}

fn day_words(cron: &CronBits, months: Option<&str>) -> Option<DayWords> {
    let both = cron.traits.both_must_match;
    let mut numbered = numbered_days(cron);
    let mut weekdays = Vec::new();
    if cron.traits.weekdays_restricted {
        let days = values(monday_first(cron.weekdays));
        weekdays = named_runs(&days, |day| WEEKDAYS[(day as usize + 1) % 7].to_owned());
    }
    let plain_weekdays = !weekdays.is_empty();
    let mut nth = nth_weekdays(cron);
    if both {
        numbered.append(&mut nth);
    }
    let months_named = months.is_some() && if both { !numbered.is_empty() } else { !plain_weekdays };
    let either = !both && plain_weekdays && !(numbered.is_empty() && nth.is_empty());
    let of_month = format!("of {}", months.filter(|_| months_named).unwrap_or("the month"));
    weekdays.extend(nth.iter().map(|nth| format!("{nth} {of_month}")));
    let numbered = (!numbered.is_empty()).then(|| format!("on {} {of_month}", joined(&numbered, "and")));
    let text = match numbered {
        None if weekdays.is_empty() => return None,
        None => format!("on {}", joined(&weekdays, "and")),
        Some(numbered) if weekdays.is_empty() => numbered,
        Some(numbered) if both => format!("{numbered} when it falls on {}", joined(&weekdays, "or")),
        Some(numbered) => format!("{numbered} or on {}", joined(&weekdays, "and")),
    };
    Some(DayWords { text, months_named, either })
}

/// Days that are counted within a month.
fn numbered_days(cron: &CronBits) -> Vec<String> {
    let the = |day: u32| format!("the {}", ordinal(day));
    let mut numbered = Vec::new();
    let days = values(u64::from(cron.days));
    match every_nth(&days, "day", the) {
        _ if !cron.traits.days_restricted => {}
        Some(every) => numbered.push(every),
        None => numbered.extend(named_runs(&days, the)),
    }
    let nearest = values(u64::from(cron.nearest));
    numbered.extend(nearest.into_iter().map(|day| format!("the weekday nearest to the {}", ordinal(day))));
    numbered.extend(values(u64::from(cron.from_end)).into_iter().map(|back| match back {
        0 => "the last day".to_owned(),
        1 => "the second-to-last day".to_owned(),
        _ => format!("the {}-to-last day", ordinal(back + 1)),
    }));
    if cron.traits.last_working_day {
        numbered.push("the last weekday".to_owned());
    }
    numbered
}

/// `the third Friday`, `the last Monday`.
fn nth_weekdays(cron: &CronBits) -> Vec<String> {
    let describe = |bit: u32| {
        let weekday = WEEKDAYS[(bit / NTH_PER_WEEKDAY) as usize];
        match bit % NTH_PER_WEEKDAY {
            NTH_LAST => format!("the last {weekday}"),
            nth => format!("the {} {weekday}", NTH_WORDS[nth as usize]),
        }
    };
    values(cron.nth).into_iter().map(describe).collect()
}
