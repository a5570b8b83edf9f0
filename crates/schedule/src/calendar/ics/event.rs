//! One event of an iCalendar file: its properties, validated together and expanded to days.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::bitmap::DayBitmap;
use super::super::mistakes::CalendarMistakes;
use super::lines::IcsProperty;
use super::recur::{StepBudget, TooManySteps, expand};
use super::rule::RecurrenceRule;
use super::value::{IcsDuration, IcsMoment, TimeFrame, WithPosition};
use crate::civil::{DAY_SECS, Day, WallTime};
use crate::text::{TextError, shortened};

/// An event whose lines are still being read.
#[derive(Debug, Default)]
pub(super) struct IcsEventDraft {
    uid: String,
    cancelled: bool,
    start: Option<WithPosition<IcsMoment>>,
    end: Option<WithPosition<IcsMoment>>,
    duration: Option<WithPosition<IcsDuration>>,
    rule: Option<WithPosition<RecurrenceRule>>,
    added: Vec<WithPosition<IcsMoment>>,
    excepted: Vec<WithPosition<IcsMoment>>,
    /// The occurrence of another event that this one replaces (RECURRENCE-ID).
    replaced: Option<WithPosition<IcsMoment>>,
    mistakes: CalendarMistakes,
}

/// A valid event.
#[derive(Debug)]
pub(super) struct IcsEvent {
    /// Byte range of its BEGIN line in the file.
    pub(super) at: Range<usize>,
    pub(super) uid: String,
    /// Whether it replaces one occurrence of another event with the same UID.
    pub(super) replaces: bool,
    start: IcsMoment,
    /// Duration of each occurrence in seconds of local time.
    secs: i64,
    rule: Option<RecurrenceRule>,
    /// The last day that the rule may yield, from `UNTIL`.
    until: Option<Day>,
    added: Vec<WallTime>,
    excepted: BTreeSet<Day>,
}

/// A reference from one event to an occurrence of another.
#[derive(Debug)]
pub(super) struct EventOverride {
    pub(super) uid: String,
    pub(super) moment: WithPosition<IcsMoment>,
}

const PROPERTIES: &[&str] =
    &["DTSTART", "DTEND", "DURATION", "RRULE", "EXRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "STATUS", "UID"];

impl IcsEventDraft {
    /// Reads one line of the event. Properties that do not affect its days are ignored.
    pub(super) fn read(&mut self, property: &IcsProperty<'_>) {
        let Some(name) = property.known(PROPERTIES) else { return };
        let read = match name {
            "DTSTART" => once(&mut self.start, name, property, moment),
            "DTEND" => once(&mut self.end, name, property, moment),
            "DURATION" => once(&mut self.duration, name, property, |p| IcsDuration::parse(p.value())),
            "RRULE" => self.rule(property),
            "RDATE" => moments(property, &mut self.added),
            "EXDATE" => moments(property, &mut self.excepted),
            "RECURRENCE-ID" => match property.parameter("RANGE") {
                Some(range) => Err(unsupported(property, &format!("RANGE={}", shortened(range)))),
                None => once(&mut self.replaced, name, property, moment),
            },
            "STATUS" => {
                self.cancelled = property.value().eq_ignore_ascii_case("CANCELLED");
                Ok(())
            }
            "UID" => {
                self.uid = property.value().to_owned();
                Ok(())
            }
            other => Err(unsupported(property, other)),
        };
        if let Err(mistake) = read {
            self.mistakes.push(mistake);
        }
    }

    pub(super) fn mistake(&mut self, mistake: TextError) {
        self.mistakes.push(mistake);
    }

    fn rule(&mut self, property: &IcsProperty<'_>) -> Result<(), TextError> {
        match RecurrenceRule::parse(property.value()) {
            Ok(rule) => once(&mut self.rule, "RRULE", property, |_| Ok(rule)),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.mistakes.push(property.placed(mistake));
                }
                Ok(())
            }
        }
    }

    /// The occurrence that this event overrides, also if the event itself is cancelled.
    pub(super) fn replacement(&self) -> Option<EventOverride> {
        let moment = self.replaced.clone().filter(|_| !self.uid.is_empty())?;
        Some(EventOverride { uid: self.uid.clone(), moment })
    }

    /// The validated event; `None` if it is cancelled or invalid. Errors are added to `mistakes`.
    pub(super) fn finish(mut self, at: Range<usize>, mistakes: &mut CalendarMistakes) -> Option<IcsEvent> {
        if self.cancelled {
            return None;
        }
        if !self.mistakes.is_empty() {
            mistakes.append(self.mistakes);
            return None;
        }
        let Some(start) = self.start.take() else {
            mistakes.push(TextError::new(at, "this event has no DTSTART").hint("such as DTSTART;VALUE=DATE:20260101"));
            return None;
        };
        match self.event(start.value, at) {
            Ok(event) => Some(event),
            Err(mistake) => {
                mistakes.push(mistake);
                None
            }
        }
    }

    fn event(self, start: IcsMoment, at: Range<usize>) -> Result<IcsEvent, TextError> {
        let secs = length(&start, self.end, self.duration)?;
        let rule = self.rule.map(|rule| rule.value);
        let until = match rule.as_ref().and_then(|rule| rule.until.as_ref()) {
            Some(until) => Some(last_day(&start, until).map_err(|zone| unknown_zone(&zone, at.clone()))?),
            None => None,
        };
        let mut added = Vec::with_capacity(self.added.len());
        for moment in self.added {
            added.push(on_wall(&moment, &start.frame)?);
        }
        let mut excepted = BTreeSet::new();
        for moment in self.excepted {
            excepted.insert(on_wall(&moment, &start.frame)?.day());
        }
        let replaces = self.replaced.is_some();
        Ok(IcsEvent { at, uid: self.uid, replaces, start, secs, rule, until, added, excepted })
    }
}

impl IcsEvent {
    /// Whether its rule has no end.
    pub(super) fn is_endless(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| !rule.is_bounded())
    }

    /// Excludes the occurrence that another event replaces.
    pub(super) fn except(&mut self, replaced: &WithPosition<IcsMoment>) -> Result<(), TextError> {
        self.excepted.insert(on_wall(replaced, &self.start.frame)?.day());
        Ok(())
    }

    /// Adds its days to `days` and returns the last of them.
    pub(super) fn add_to(&self, days: &mut DayBitmap, steps: &mut StepBudget) -> Result<Option<Day>, TooManySteps> {
        let mut last = None;
        // Occurrences of a rule are in order and equally long, so each day needs to be written only once.
        let mut written = Day(i32::MIN);
        let time_of_day = i64::from(self.start.local.second_of_day());
        let mut add = |start: WallTime, written: Day| {
            if self.excepted.contains(&start.day()) {
                return written;
            }
            let end = self.last_touched(start);
            days.insert(start.day().max(written.plus(1)), end);
            last = last.max(Some(end));
            end
        };
        match &self.rule {
            Some(rule) => {
                let until = self.until.unwrap_or(Day(i32::MAX));
                expand(rule, self.start.local.day(), until, steps, |day| {
                    written = add(WallTime(day.midnight().0 + time_of_day), written);
                })?;
            }
            None => {
                add(self.start.local, written);
            }
        }
        for start in &self.added {
            add(*start, Day(i32::MIN));
        }
        Ok(last)
    }

    /// The last day that an occurrence covers. An occurrence that ends at midnight does not cover the next day.
    fn last_touched(&self, start: WallTime) -> Day {
        let last = WallTime(start.0.saturating_add(self.secs.saturating_sub(1)));
        last.day().max(start.day())
    }
}

fn moment(property: &IcsProperty<'_>) -> Result<IcsMoment, TextError> {
    IcsMoment::parse(property.value(), property.parameter("TZID"))
}

/// Parses a comma-separated list of dates or date-times.
fn moments(property: &IcsProperty<'_>, list: &mut Vec<WithPosition<IcsMoment>>) -> Result<(), TextError> {
    if property.parameter("VALUE").is_some_and(|value| value.eq_ignore_ascii_case("PERIOD")) {
        return Err(unsupported(property, "VALUE=PERIOD"));
    }
    let zone = property.parameter("TZID");
    let mut at = 0;
    for item in property.value().split(',') {
        let value = IcsMoment::parse(item, zone).map_err(|mistake| property.placed(mistake.shifted(at)))?;
        list.push(WithPosition { value, at: property.place(at..at + item.len()) });
        at += item.len() + 1;
    }
    Ok(())
}

/// Reads a property that an event may have at most once.
fn once<T>(
    slot: &mut Option<WithPosition<T>>,
    name: &str,
    property: &IcsProperty<'_>,
    read: impl FnOnce(&IcsProperty<'_>) -> Result<T, TextError>,
) -> Result<(), TextError> {
    if slot.is_some() {
        return Err(TextError::new(property.at(), format!("this event has {name} twice")));
    }
    let value = read(property).map_err(|mistake| property.placed(mistake))?;
    *slot = Some(WithPosition { value, at: property.place(0..property.value().len()) });
    Ok(())
}

fn unsupported(property: &IcsProperty<'_>, what: &str) -> TextError {
    TextError::new(property.at(), format!("{what} is not supported"))
        .hint("list the days as events of their own, or in a file of dates")
}

/// Duration of an event in seconds. Without DTEND and DURATION, a date lasts one day and a date-time no time.
fn length(
    start: &IcsMoment,
    end: Option<WithPosition<IcsMoment>>,
    duration: Option<WithPosition<IcsDuration>>,
) -> Result<i64, TextError> {
    let whole_day = start.frame == TimeFrame::Date;
    let shortest = if whole_day { DAY_SECS } else { 0 };
    match (end, duration) {
        (None, None) => Ok(shortest),
        (Some(_), Some(duration)) => Err(TextError::new(duration.at, "this event has both DTEND and DURATION")),
        (None, Some(duration)) if whole_day && !duration.value.whole_days => {
            let message = "an event that begins on a date lasts whole days";
            Err(TextError::new(duration.at, message).hint("write DURATION in days or weeks, such as P1D"))
        }
        (None, Some(duration)) => Ok(duration.value.secs.max(shortest)),
        (Some(end), None) if (end.value.frame == TimeFrame::Date) != whole_day => {
            let message = "DTSTART and DTEND must both be dates or both have times";
            Err(TextError::new(end.at, message))
        }
        (Some(end), None) => {
            let secs = on_wall(&end, &start.frame)?.0 - start.local.0;
            if secs < 0 {
                return Err(TextError::new(end.at, "this event ends before it begins"));
            }
            Ok(secs.max(shortest))
        }
    }
}

/// The last day on which an occurrence still begins before `UNTIL` or at it.
fn last_day(start: &IcsMoment, until: &IcsMoment) -> Result<Day, String> {
    let wall = until.on_wall_of(&start.frame)?;
    let whole_day = until.frame == TimeFrame::Date || start.frame == TimeFrame::Date;
    let in_time = whole_day || start.local.second_of_day() <= wall.second_of_day();
    Ok(if in_time { wall.day() } else { wall.day().plus(-1) })
}

fn on_wall(moment: &WithPosition<IcsMoment>, frame: &TimeFrame) -> Result<WallTime, TextError> {
    moment.value.on_wall_of(frame).map_err(|zone| unknown_zone(&zone, moment.at.clone()))
}

fn unknown_zone(zone: &str, at: Range<usize>) -> TextError {
    TextError::new(
        at,
        format!("the zone `{}` is not known, so its times cannot be compared with others", shortened(zone)),
    )
    .hint("write all times of the event in one zone, or use a name such as Europe/Berlin")
}
