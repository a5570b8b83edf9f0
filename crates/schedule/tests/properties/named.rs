//! Random named fields, each set as texts and as a naive predicate on civil dates and times.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};

use crate::dice::Dice;
use crate::entries::{Shape, Values, name};
use crate::expression::MONTHS;
use crate::oracle::LocalRule;

const FROM_MONDAY: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NAMES: [&str; 8] = ["year", "month", "day", "week", "day_of_week", "hour", "minute", "second"];
const SHAPES: [Shape; 8] = [
    Shape { short_steps: true, ..Shape::plain(1970, 2100) },
    Shape { min: 1, max: 12, names: &MONTHS, short_steps: true },
    Shape { short_steps: true, ..Shape::plain(1, 31) },
    Shape { short_steps: true, ..Shape::plain(1, 53) },
    Shape { min: 0, max: 6, names: &FROM_MONDAY, short_steps: true },
    Shape { short_steps: true, ..Shape::plain(0, 23) },
    Shape { short_steps: true, ..Shape::plain(0, 59) },
    Shape { short_steps: true, ..Shape::plain(0, 59) },
];

/// Named fields and what they mean.
#[derive(Debug)]
pub(crate) struct Named {
    /// The fields that are given.
    pub(crate) texts: Vec<(&'static str, String)>,
    /// In the order of `NAMES`.
    values: [Values; 8],
    special: Vec<Special>,
}

#[derive(Debug)]
enum Special {
    LastDay,
    /// Monday is 0.
    Nth(u32, u32),
    Last(u32),
}

impl Named {
    /// Fields that are likely to match near a date and time.
    pub(crate) fn random(dice: &mut Dice, near: DateTime) -> Self {
        let part = |part: i8| u32::from(part.unsigned_abs());
        let week = near.date().iso_week_date();
        let near = [
            u32::from(near.year().unsigned_abs()),
            part(near.month()),
            part(near.day()),
            part(week.week()),
            part(near.weekday().to_monday_zero_offset()),
            dice.number(0, 23),
            part(near.minute()),
            0,
        ];
        let least = *dice.pick(&[2, 3, 4, 5, 5, 6, 6, 6, 7]);
        let mut texts = Vec::new();
        let mut special = Vec::new();
        let values = std::array::from_fn(|index| {
            let shape = SHAPES[index];
            let given = index == least || index < least && dice.one_in(if index < 5 { 4 } else { 2 });
            if !given {
                let defaults_to_minimum = index > least && !matches!(index, 0 | 3 | 4);
                return if defaults_to_minimum { Values::only(shape.min) } else { Values::all(shape) };
            }
            let mut values = Values::random(dice, shape, near[index]);
            // Minutes and seconds together have few matches, because each costs time.
            if index == 7 {
                values = Values::only(dice.number(0, 59));
            }
            if index == 2 && dice.one_in(2) {
                let (text, entry) = special_day(dice, near[4]);
                special.push(entry);
                values = Values { text, values: BTreeSet::new(), free: false, star: false };
            }
            // Named fields do not support `?`.
            values.text = values.text.replace('?', "*");
            texts.push((NAMES[index], values.text.clone()));
            values
        });
        Self { texts, values, special }
    }
}

impl LocalRule for Named {
    fn on_day(&self, date: Date) -> bool {
        let part = |part: i8| u32::from(part.unsigned_abs());
        let weekday = part(date.weekday().to_monday_zero_offset());
        let special = self.special.iter().any(|special| match special {
            Special::LastDay => date == date.last_of_month(),
            Special::Nth(wanted, nth) => weekday == *wanted && (part(date.day()) - 1) / 7 + 1 == *nth,
            Special::Last(wanted) => weekday == *wanted && part(date.day()) + 7 > part(date.days_in_month()),
        });
        self.values[0].values.contains(&u32::from(date.year().unsigned_abs()))
            && self.values[1].values.contains(&part(date.month()))
            && (special || self.values[2].values.contains(&part(date.day())))
            && self.values[3].values.contains(&part(date.iso_week_date().week()))
            && self.values[4].values.contains(&weekday)
    }

    fn hours(&self) -> &BTreeSet<u32> {
        &self.values[5].values
    }

    fn minutes(&self) -> &BTreeSet<u32> {
        &self.values[6].values
    }

    fn seconds(&self) -> &BTreeSet<u32> {
        &self.values[7].values
    }

    fn every_hour(&self) -> bool {
        self.values[5].star
    }
}

fn special_day(dice: &mut Dice, near: u32) -> (String, Special) {
    let weekday = if dice.one_in(3) { dice.number(0, 6) } else { near };
    // Here weekdays are written by name only.
    let mut named = name(dice, SHAPES[4], weekday);
    if named.starts_with(|first: char| first.is_ascii_digit()) {
        named = FROM_MONDAY[weekday as usize][..3].to_owned();
    }
    match dice.number(0, 2) {
        0 => ("last".to_owned(), Special::LastDay),
        1 => (format!("last {named}"), Special::Last(weekday)),
        _ => {
            let nth = dice.number(1, 5);
            let place = ["1st", "2nd", "3rd", "4th", "5th"][nth as usize - 1];
            (format!("{place} {named}"), Special::Nth(weekday, nth))
        }
    }
}
