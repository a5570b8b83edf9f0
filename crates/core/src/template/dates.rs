//! Functions for dates and zones inside templates. Dates and times are texts, because args are texts:
//! `shift_days(date, -1)`, `format_date(date, '%Y%m%d')`, `to_local(nominal_time, 'Europe/Berlin').date`.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::civil::{WEEKDAYS, Ymd};
use cronhold_schedule::{Day, FoldPolicy, GapPolicy, Instant, TimeOfDay, WallTime, Zone};
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::fmt::temporal::Pieces;
use minijinja::value::Object;
use minijinja::{Error, State, Value};

use super::environment::{refused, world};

/// Longest format of a date in bytes.
const FORMAT_MAX: usize = 200;

/// Largest shift of a date in days; more than the years 0000 to 9999 have.
const SHIFT_MAX: i32 = 4_000_000;

/// `to_date(text)`: the date part of a date or a time, without conversion.
pub(super) fn to_date(value: &Value) -> Result<Value, Error> {
    day_of(value).map(day_value)
}

/// `shift_days(date, n)`: the date `n` days later, or earlier if `n` is negative.
pub(super) fn shift_days(value: &Value, days: i32) -> Result<Value, Error> {
    let far = || refused("the shifted date is not between the years 0000 and 9999");
    if !(-SHIFT_MAX..=SHIFT_MAX).contains(&days) {
        return Err(far());
    }
    let day = day_of(value)?.plus(days);
    if (0..=9999).contains(&day.ymd().year) { Ok(day_value(day)) } else { Err(far()) }
}

/// `weekday(date)`: the English name of the day.
pub(super) fn weekday(value: &Value) -> Result<Value, Error> {
    Ok(Value::from(WEEKDAYS[day_of(value)?.weekday() as usize]))
}

/// `format_date(date or time, '%Y%m%d')`: formats the time as written, without conversion of its offset.
pub(super) fn format_date(value: &Value, format: &str) -> Result<Value, Error> {
    if format.len() > FORMAT_MAX {
        return Err(refused(format!("the format of a date can have at most {FORMAT_MAX} bytes")));
    }
    let text = value.to_string();
    let at = match Day::parse(&text) {
        Ok(day) => date_of(day)?.at(0, 0, 0, 0),
        Err(error) => written_time(&text).ok_or_else(|| refused(error.to_string()))?,
    };
    strtime::format(format, at).map(Value::from).map_err(|error| refused(format!("cannot format `{text}`: {error}")))
}

/// `to_local(time, zone)`: an object that prints as the time with its offset and has `date`, `time`, `offset`, `zone`.
pub(super) fn to_local(state: &State<'_, '_>, time: &Value, zone: &str) -> Result<Value, Error> {
    let at = instant_of(time)?;
    let zone = zone_of(state, zone)?;
    let text = at.with_offset(zone.offset_at(at.secs()));
    Ok(Value::from_object(LocalTime { text, zone: zone.name().to_owned() }))
}

/// `from_local(date, daytime, zone)`: the instant in UTC. As for schedules, a time that a clock change skips is the
/// end of the gap, and a time that it repeats is the first of the two.
pub(super) fn from_local(state: &State<'_, '_>, date: &Value, daytime: &str, zone: &str) -> Result<Value, Error> {
    let time = TimeOfDay::parse(daytime).map_err(|error| refused(error.to_string()))?;
    let local = WallTime(day_of(date)?.midnight().0 + i64::from(time.0));
    let found = zone_of(state, zone)?.instants(local, GapPolicy::Next, FoldPolicy::First).next();
    let secs = found.ok_or_else(|| refused(format!("there is no {daytime} on {date} in {zone}")))?;
    Ok(Value::from(Instant::from_secs(secs).to_string()))
}

/// `to_utc(time)`: a time with an offset as the same instant in UTC.
pub(super) fn to_utc(time: &Value) -> Result<Value, Error> {
    Ok(Value::from(instant_of(time)?.to_string()))
}

/// The date of a value: a date, or the date part of a time.
pub(super) fn day_of(value: &Value) -> Result<Day, Error> {
    let text = value.to_string();
    Day::parse(&text).or_else(|error| {
        let written = written_time(&text).ok_or_else(|| refused(error.to_string()))?.date();
        Day::parse(&written.to_string()).map_err(|error| refused(error.to_string()))
    })
}

pub(super) fn day_value(day: Day) -> Value {
    Value::from(day.to_string())
}

fn date_of(day: Day) -> Result<Date, Error> {
    let Ymd { year, month, day: of_month } = day.ymd();
    let parts = (i16::try_from(year).ok(), i8::try_from(month).ok(), i8::try_from(of_month).ok());
    let (Some(year), Some(month), Some(of_month)) = parts else {
        return Err(refused(format!("{day} is out of range")));
    };
    Date::new(year, month, of_month).map_err(|_| refused(format!("{day} is out of range")))
}

fn written_time(text: &str) -> Option<DateTime> {
    let pieces = Pieces::parse(text.trim()).ok()?;
    Some(DateTime::from_parts(pieces.date(), pieces.time()?))
}

fn instant_of(value: &Value) -> Result<Instant, Error> {
    Instant::parse(&value.to_string()).map_err(|error| refused(error.to_string()))
}

fn zone_of(state: &State<'_, '_>, name: &str) -> Result<Zone, Error> {
    world(state)?.zones.get(name).map_err(|error| refused(error.to_string()))
}

/// A time in a zone.
#[derive(Debug)]
struct LocalTime {
    text: String,
    zone: String,
}

impl Object for LocalTime {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        // The text is always `2026-03-29T01:30:00[.5]+01:00`, with six characters of offset.
        let (date, rest) = self.text.split_once('T')?;
        let (time, offset) = rest.split_at_checked(rest.len().checked_sub(6)?)?;
        match key.as_str()? {
            "date" => Some(Value::from(date)),
            "time" => Some(Value::from(time)),
            "offset" => Some(Value::from(offset)),
            "zone" => Some(Value::from(self.zone.as_str())),
            _ => None,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
