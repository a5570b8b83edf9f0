//! Random cron expressions of five to seven fields, each as a text and as a naive predicate on civil dates and times.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};

use crate::dice::Dice;
use crate::entries::{Shape, Values, name};
use crate::oracle::LocalRule;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const SIXTY: Shape = Shape::plain(0, 59);
const HOUR: Shape = Shape::plain(0, 23);
const DAY: Shape = Shape::plain(1, 31);
const MONTH: Shape = Shape { min: 1, max: 12, names: &MONTHS, short_steps: false };
const WEEKDAY: Shape = Shape { min: 0, max: 6, names: &WEEKDAYS, short_steps: false };
const YEAR: Shape = Shape::plain(1970, 2100);

/// An expression and what it means.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    seconds: BTreeSet<u32>,
    minutes: BTreeSet<u32>,
    hours: Values,
    /// `None` if the field is `*`.
    days: Option<Vec<DayEntry>>,
    months: BTreeSet<u32>,
    weekdays: Option<Vec<WeekdayEntry>>,
    years: BTreeSet<u32>,
}

#[derive(Debug)]
enum DayEntry {
    Numbers(BTreeSet<u32>),
    /// `L-n`; `L` is `L-0`.
    FromEnd(u32),
    /// `nW`.
    Nearest(u32),
    /// `LW`.
    LastWorking,
}

#[derive(Debug)]
enum WeekdayEntry {
    Numbers(BTreeSet<u32>),
    /// `n#k`.
    Nth(u32, u32),
    /// `nL`.
    Last(u32),
}

impl Expression {
    /// An expression that is likely to match near a date and time.
    pub(crate) fn random(dice: &mut Dice, near: DateTime) -> Self {
        let at = |part: i8| u32::from(part.unsigned_abs());
        // Lists of minutes are short because each value is tried in each hour.
        let minutes = match dice.number(0, 9) {
            0 => Values::all(SIXTY),
            1..=4 => Values::only(dice.number(0, 59)),
            _ => Values::random(dice, SIXTY, at(near.minute())),
        };
        let near_hour = dice.number(0, 23);
        let hours = Values::random(dice, HOUR, near_hour);
        let (days_text, days) = random_days(dice, near.date());
        let months = if dice.one_in(2) { Values::all(MONTH) } else { Values::random(dice, MONTH, at(near.month())) };
        let (weekdays_text, weekdays) = random_weekdays(dice, near.date());
        let year = u32::from(near.year().unsigned_abs());
        let years = if dice.one_in(2) { Values::all(YEAR) } else { Values::random(dice, YEAR, year) };
        let mut text = format!("{} {} {days_text} {} {weekdays_text}", minutes.text, hours.text, months.text);
        let mut seconds: BTreeSet<u32> = [0].into();
        if dice.one_in(4) && minutes.values.len() < 10 {
            let given = Values::random(dice, SIXTY, 30);
            text = format!("{} {text} {}", given.text, years.text);
            seconds = given.values;
        } else if !years.free || dice.one_in(4) {
            text = format!("{text} {}", years.text);
        }
        Self {
            text,
            seconds,
            minutes: minutes.values,
            hours,
            days,
            months: months.values,
            weekdays,
            years: years.values,
        }
    }
}

impl LocalRule for Expression {
    fn on_day(&self, date: Date) -> bool {
        let by_day = self.days.as_ref().map(|entries| entries.iter().any(|entry| entry.holds(date)));
        let by_weekday = self.weekdays.as_ref().map(|entries| entries.iter().any(|entry| entry.holds(date)));
        let on_day = match (by_day, by_weekday) {
            (Some(day), Some(weekday)) => day || weekday,
            (only, None) | (None, only) => only.unwrap_or(true),
        };
        on_day && self.months.contains(&month(date)) && self.years.contains(&year(date))
    }

    fn hours(&self) -> &BTreeSet<u32> {
        &self.hours.values
    }

    fn minutes(&self) -> &BTreeSet<u32> {
        &self.minutes
    }

    fn seconds(&self) -> &BTreeSet<u32> {
        &self.seconds
    }

    fn every_hour(&self) -> bool {
        self.hours.star
    }
}

impl DayEntry {
    fn holds(&self, date: Date) -> bool {
        let day = day(date);
        match self {
            Self::Numbers(numbers) => numbers.contains(&day),
            Self::FromEnd(back) => day + back == day_of(date.last_of_month()),
            Self::Nearest(wanted) => nearest_working(date, *wanted) == Some(day),
            Self::LastWorking => {
                let last = day_of(date.last_of_month());
                (1..=last).rev().find(|day| is_working(date, *day)) == Some(day)
            }
        }
    }
}

impl WeekdayEntry {
    fn holds(&self, date: Date) -> bool {
        let weekday = u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs());
        match self {
            Self::Numbers(numbers) => numbers.contains(&weekday),
            Self::Nth(wanted, nth) => weekday == *wanted && (day(date) - 1) / 7 + 1 == *nth,
            Self::Last(wanted) => weekday == *wanted && day(date) + 7 > day_of(date.last_of_month()),
        }
    }
}

/// The nearest working day of the month; a Friday is preferred to a Monday.
fn nearest_working(month: Date, wanted: u32) -> Option<u32> {
    let last = day_of(month.last_of_month());
    if wanted > last {
        return None;
    }
    (1..=last).filter(|day| is_working(month, *day)).min_by_key(|day| (day.abs_diff(wanted), *day))
}

fn is_working(month: Date, day: u32) -> bool {
    let first = u32::from(month.first_of_month().weekday().to_monday_zero_offset().unsigned_abs());
    (first + day - 1) % 7 < 5
}

fn day(date: Date) -> u32 {
    u32::from(date.day().unsigned_abs())
}

fn day_of(date: Date) -> u32 {
    day(date)
}

fn month(date: Date) -> u32 {
    u32::from(date.month().unsigned_abs())
}

fn year(date: Date) -> u32 {
    u32::from(date.year().unsigned_abs())
}

fn random_days(dice: &mut Dice, near: Date) -> (String, Option<Vec<DayEntry>>) {
    if dice.one_in(2) {
        return ((*dice.pick(&["*", "?"])).to_owned(), None);
    }
    let mut texts = Vec::new();
    let mut entries = Vec::new();
    for _ in 0..dice.number(1, 2) {
        let wanted = if dice.one_in(3) { dice.number(1, 31) } else { day(near) };
        let (text, entry) = match dice.number(0, 9) {
            0 | 1 => ((*dice.pick(&["L", "l"])).to_owned(), DayEntry::FromEnd(0)),
            2 => {
                let back = dice.number(1, 30);
                (format!("L-{back}"), DayEntry::FromEnd(back))
            }
            3 => ((*dice.pick(&["LW", "lw", "WL"])).to_owned(), DayEntry::LastWorking),
            4..=6 => (format!("{wanted}{}", dice.pick(&["W", "w"])), DayEntry::Nearest(wanted)),
            _ => {
                let given = Values::random(dice, DAY, wanted);
                // A `*` entry would free the whole field.
                if given.free {
                    (wanted.to_string(), DayEntry::Numbers([wanted].into()))
                } else {
                    (given.text, DayEntry::Numbers(given.values))
                }
            }
        };
        texts.push(text);
        entries.push(entry);
    }
    (texts.join(","), Some(entries))
}

fn random_weekdays(dice: &mut Dice, near: Date) -> (String, Option<Vec<WeekdayEntry>>) {
    if dice.one_in(2) {
        return ((*dice.pick(&["*", "?"])).to_owned(), None);
    }
    let mut texts = Vec::new();
    let mut entries = Vec::new();
    for _ in 0..dice.number(1, 2) {
        let near = u32::from(near.weekday().to_sunday_zero_offset().unsigned_abs());
        let wanted = if dice.one_in(3) { dice.number(0, 6) } else { near };
        let named = match wanted {
            0 if dice.one_in(2) => "7".to_owned(),
            _ => name(dice, WEEKDAY, wanted),
        };
        let (text, entry) = match dice.number(0, 5) {
            0 => (format!("{named}L"), WeekdayEntry::Last(wanted)),
            1 => {
                let nth = dice.number(1, 5);
                (format!("{named}#{nth}"), WeekdayEntry::Nth(wanted, nth))
            }
            2 => {
                // Ranges may wrap around the end of the week.
                let length = dice.number(1, 5);
                let last = (wanted + length) % 7;
                let days = (wanted..=wanted + length).map(|day| day % 7).collect();
                let wanted = name(dice, WEEKDAY, wanted);
                (format!("{wanted}-{}", name(dice, WEEKDAY, last)), WeekdayEntry::Numbers(days))
            }
            3 => {
                let step = dice.number(2, 6);
                (format!("*/{step}"), WeekdayEntry::Numbers((0..=6).step_by(step as usize).collect()))
            }
            _ => (named, WeekdayEntry::Numbers([wanted].into())),
        };
        texts.push(text);
        entries.push(entry);
    }
    (texts.join(","), Some(entries))
}
