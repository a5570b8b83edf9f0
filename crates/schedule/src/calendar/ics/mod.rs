//! iCalendar files (RFC 5545) as sets of days: holidays, freezes, on-call weeks. Only events are read; time zones,
//! alarms and all other components are ignored.

mod event;
mod lines;
mod recur;
mod rule;
mod value;

use std::collections::BTreeMap;
use std::ops::Range;

use super::Calendar;
use super::bitmap::DayBitmap;
use super::mistakes::{CalendarMistakes, check_len};
use crate::civil::Day;
use crate::text::{TextError, shortened};
use event::{EventOverride, IcsEvent, IcsEventDraft};
use lines::{IcsLine, lines};
use recur::{STEPS_MAX, StepBudget, TooManySteps};

/// Nesting limit of components. A calendar with an event with an alarm has depth three.
const DEPTH_MAX: usize = 16;

/// Steps that one replaced occurrence costs: its time may need conversion to another zone.
const REPLACEMENT_STEPS: u64 = 20;

/// Parses an iCalendar file. Returns all errors of the file, up to a limit.
pub(super) fn read(text: &str) -> Result<Calendar, Vec<TextError>> {
    check_len(text)?;
    let mut file = IcsFile::default();
    for line in lines(text) {
        if file.line(&line).is_err() || file.mistakes.is_full() {
            break;
        }
    }
    file.calendar()
}

#[derive(Default)]
struct IcsFile {
    /// Components that have begun and not ended, with the byte range of their BEGIN.
    open: Vec<(String, Range<usize>)>,
    /// The properties of the current event.
    draft: IcsEventDraft,
    /// Whether the file contains any component.
    begun: bool,
    events: Vec<IcsEvent>,
    replacements: Vec<EventOverride>,
    mistakes: CalendarMistakes,
}

/// Parsing cannot continue after this error.
struct IcsUnreadable;

impl IcsFile {
    fn line(&mut self, line: &IcsLine<'_>) -> Result<(), IcsUnreadable> {
        let in_event = matches!(self.open.as_slice(), [_, (name, _)] if name == "VEVENT");
        let property = match line.property() {
            Ok(property) => property,
            Err(_) if self.open.is_empty() => return self.not_a_calendar(line),
            Err(mistake) => {
                // A malformed line outside events does not affect the calendar.
                if in_event {
                    self.draft.mistake(mistake);
                }
                return Ok(());
            }
        };
        if property.is("BEGIN") {
            return self.begin(property.value().to_ascii_uppercase(), line);
        }
        if self.open.is_empty() {
            return self.not_a_calendar(line);
        }
        if property.is("END") {
            return self.end(&property.value().to_ascii_uppercase(), line);
        }
        if in_event {
            self.draft.read(&property);
        }
        Ok(())
    }

    fn begin(&mut self, name: String, line: &IcsLine<'_>) -> Result<(), IcsUnreadable> {
        if self.open.is_empty() && name != "VCALENDAR" {
            return self.not_a_calendar(line);
        }
        if self.open.len() == DEPTH_MAX {
            return self.broken(line.at(), format!("components go at most {DEPTH_MAX} deep"));
        }
        self.open.push((name, line.at()));
        self.begun = true;
        Ok(())
    }

    fn end(&mut self, name: &str, line: &IcsLine<'_>) -> Result<(), IcsUnreadable> {
        match self.open.pop() {
            Some((open, begin)) if open == name => {
                if name == "VEVENT" && self.open.len() == 1 {
                    let draft = std::mem::take(&mut self.draft);
                    self.replacements.extend(draft.replacement());
                    self.events.extend(draft.finish(begin, &mut self.mistakes));
                }
                Ok(())
            }
            Some((open, begin)) => {
                self.open.push((open.clone(), begin));
                let message = format!("unexpected END:{}, expected END:{}", shortened(name), shortened(&open));
                self.broken(line.at(), message)
            }
            None => self.not_a_calendar(line),
        }
    }

    fn not_a_calendar(&mut self, line: &IcsLine<'_>) -> Result<(), IcsUnreadable> {
        self.broken(line.at(), "expected BEGIN:VCALENDAR, as an iCalendar file begins".to_owned())
    }

    /// Reports an error after which the rest of the file cannot be parsed.
    fn broken(&mut self, at: Range<usize>, message: String) -> Result<(), IcsUnreadable> {
        self.mistakes.push(TextError::new(at, message));
        // Components that are still open are not reported as a second error.
        self.open.clear();
        Err(IcsUnreadable)
    }

    fn calendar(mut self) -> Result<Calendar, Vec<TextError>> {
        if let Some((name, at)) = self.open.pop() {
            let message = format!("{} never ends", shortened(&name));
            self.mistakes.push(TextError::new(at, message).hint("the file may have been cut off"));
        } else if !self.begun && self.mistakes.is_empty() {
            self.mistakes.push(TextError::new(0..0, "expected BEGIN:VCALENDAR, found an empty file"));
        }
        let mut replaced: BTreeMap<String, Vec<EventOverride>> = BTreeMap::new();
        for replacement in self.replacements {
            replaced.entry(replacement.uid.clone()).or_default().push(replacement);
        }
        let mut steps = StepBudget::new();
        let mut days = DayBitmap::new();
        let mut last = None;
        for event in &mut self.events {
            let others = replaced.get(&event.uid).map_or(&[][..], Vec::as_slice);
            match expand(event, others, &mut days, &mut steps, &mut self.mistakes) {
                Ok(until) => last = last.max(until),
                Err(TooManySteps) => {
                    let message = format!("the rules up to here take more than {STEPS_MAX} steps to expand");
                    self.mistakes.push(TextError::new(event.at.clone(), message).hint("split the file"));
                    break;
                }
            }
        }
        let endless = self.events.iter().any(IcsEvent::is_endless);
        self.mistakes.or(Calendar::listed(days, last.filter(|_| !endless)))
    }
}

/// Adds the days of an event, except occurrences that other events replace. Returns the last day.
fn expand(
    event: &mut IcsEvent,
    others: &[EventOverride],
    days: &mut DayBitmap,
    steps: &mut StepBudget,
    mistakes: &mut CalendarMistakes,
) -> Result<Option<Day>, TooManySteps> {
    if !event.replaces {
        steps.take(others.len() as u64 * REPLACEMENT_STEPS)?;
        for other in others {
            if let Err(mistake) = event.except(&other.moment) {
                mistakes.push(mistake);
            }
        }
    }
    event.add_to(days, steps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file with one event per entry, each with the given lines.
    fn file(events: &[&str]) -> String {
        let event = |lines: &&str| format!("BEGIN:VEVENT\r\n{}\r\nEND:VEVENT\r\n", lines.replace('\n', "\r\n"));
        let events: String = events.iter().map(event).collect();
        format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n")
    }

    fn days(calendar: &Calendar) -> String {
        let mut days = Vec::new();
        let mut from = Day(0);
        while let Some(day) = calendar.next(from) {
            days.push(day.to_string());
            from = day.plus(1);
        }
        days.join(" ")
    }

    #[test]
    fn events_become_days() {
        for (event, expected) in [
            ("DTSTART;VALUE=DATE:20260101", "2026-01-01"),
            ("DTSTART:20260101", "2026-01-01"),
            ("DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20260103", "2026-01-01 2026-01-02"),
            ("DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20260101", "2026-01-01"),
            ("DTSTART;VALUE=DATE:20260101\nDURATION:P2D", "2026-01-01 2026-01-02"),
            // Times: each day that the event touches, in the zone that it is written in.
            ("DTSTART:20260101T230000Z", "2026-01-01"),
            ("DTSTART:20260101T220000Z\nDTEND:20260102T000000Z", "2026-01-01"),
            ("DTSTART:20260101T220000Z\nDTEND:20260102T000001Z", "2026-01-01 2026-01-02"),
            ("DTSTART;TZID=Europe/Berlin:20260102T003000\nDTEND:20260102T010000Z", "2026-01-02"),
            ("DTSTART:20260101T220000\nDURATION:PT26H", "2026-01-01 2026-01-02"),
            ("DTSTART:20260101T220000\nDURATION:PT26H0M1S", "2026-01-01 2026-01-02 2026-01-03"),
            // Rules with exceptions and additions.
            ("DTSTART:20260101\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260102", "2026-01-01 2026-01-03"),
            ("EXDATE;VALUE=DATE:20260101,20260102\nDTSTART:20260101\nRRULE:FREQ=DAILY;COUNT=3", "2026-01-03"),
            ("DTSTART:20260101\nRDATE:20260301,20260201\nEXDATE:20260301", "2026-01-01 2026-02-01"),
            (
                "DTSTART:20260105\nDTEND:20260107\nRRULE:FREQ=WEEKLY;COUNT=2",
                "2026-01-05 2026-01-06 2026-01-12 2026-01-13",
            ),
            ("DTSTART:20260105\nDURATION:P3D\nRRULE:FREQ=DAILY;COUNT=2", "2026-01-05 2026-01-06 2026-01-07 2026-01-08"),
            ("DTSTART:20260105\nRRULE:FREQ=DAILY;UNTIL=20260106", "2026-01-05 2026-01-06"),
            ("DTSTART:20260105\nRRULE:FREQ=DAILY;UNTIL=20260104", ""),
            // The end of RFC 5545's daily example: nine in the morning in New York on the 24th is too late.
            (
                "DTSTART;TZID=America/New_York:19971222T090000\nRRULE:FREQ=DAILY;UNTIL=19971224T000000Z",
                "1997-12-22 1997-12-23",
            ),
            (
                "DTSTART;TZID=America/New_York:20261223T020000\nRRULE:FREQ=DAILY;UNTIL=20261225T045959Z",
                "2026-12-23 2026-12-24",
            ),
            (
                "DTSTART;TZID=America/New_York:20260101T220000\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260103T030000Z",
                "2026-01-01 2026-01-03",
            ),
            // The Fridays that are the 13th, as RFC 5545 writes them.
            (
                "DTSTART:19970902T090000\nEXDATE:19970902T090000\nRRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=4",
                "1998-02-13 1998-03-13 1998-11-13",
            ),
            ("DTSTART:20260101\nSTATUS:CANCELLED", ""),
            ("RRULE:FREQ=HOURLY\nSTATUS:CANCELLED", ""),
            ("DTSTART:19690101\nDTEND:19700103", "1970-01-01 1970-01-02"),
            ("DTSTART:21001231\nDURATION:P9999W", "2100-12-31"),
            ("DTSTART:18500101", ""),
            ("DTSTART:20260101\nX-LINE:a\n b\nSUMMARY;LANGUAGE=\"a:b\":x", "2026-01-01"),
            ("BEGIN:VALARM\nDTSTART:20260505\nTRIGGER:-PT1H\nEND:VALARM\nDTSTART:20260101", "2026-01-01"),
        ] {
            let calendar = Calendar::from_ics(&file(&[event])).expect(event);
            assert_eq!(days(&calendar), expected, "{event}");
        }
    }

    #[test]
    fn events_replace_occurrences_of_other_events() {
        let weekly = "UID:a\nDTSTART:20260105\nRRULE:FREQ=WEEKLY;COUNT=3";
        let moved = "UID:a\nRECURRENCE-ID:20260112\nDTSTART:20260113";
        let same_day = "UID:a\nRECURRENCE-ID:20260112\nDTSTART:20260112";
        let cancelled = "UID:a\nRECURRENCE-ID:20260119\nDTSTART:20260119\nSTATUS:CANCELLED";
        let of_another = "UID:b\nRECURRENCE-ID:20260112\nDTSTART:20260201";
        for (events, expected) in [
            (vec![weekly], "2026-01-05 2026-01-12 2026-01-19"),
            (vec![weekly, moved], "2026-01-05 2026-01-13 2026-01-19"),
            (vec![moved, weekly], "2026-01-05 2026-01-13 2026-01-19"),
            (vec![weekly, same_day], "2026-01-05 2026-01-12 2026-01-19"),
            (vec![weekly, cancelled], "2026-01-05 2026-01-12"),
            (vec![weekly, of_another], "2026-01-05 2026-01-12 2026-01-19 2026-02-01"),
        ] {
            let calendar = Calendar::from_ics(&file(&events)).expect("it is right");
            assert_eq!(days(&calendar), expected, "{events:?}");
        }
    }

    #[test]
    fn other_components_are_ignored() {
        let zone = "BEGIN:VTIMEZONE\nBEGIN:STANDARD\nDTSTART:x\nRRULE:FREQ=SECONDLY\nEND:STANDARD\nEND:VTIMEZONE\n";
        let todo = "BEGIN:VTODO\nDTSTART:20260909\nBEGIN:VEVENT\nDTSTART:x\nEND:VEVENT\nEND:VTODO\n";
        let text = format!("begin:vcalendar\n{zone}{todo}begin:vevent\ndtstart:20260101\nend:vevent\nEND:VCALENDAR\n");
        assert_eq!(days(&Calendar::from_ics(&text).expect("it is right")), "2026-01-01");
        assert_eq!(days(&Calendar::from_ics("BEGIN:VCALENDAR\nEND:VCALENDAR").expect("no events")), "");
    }

    #[test]
    fn known_until_is_the_last_event_day() {
        let once = "DTSTART:20260101\nDTEND:20260104";
        for (events, known_until) in [
            (vec![], None),
            (vec![once], Some("2026-01-03")),
            (vec![once, "DTSTART:20260601\nRRULE:FREQ=DAILY;COUNT=3"], Some("2026-06-03")),
            (vec![once, "DTSTART:20260101\nRRULE:FREQ=YEARLY"], None),
        ] {
            let calendar = Calendar::from_ics(&file(&events)).expect("it is right");
            assert_eq!(calendar.known_until().map(|day| day.to_string()).as_deref(), known_until, "{events:?}");
        }
    }

    #[test]
    fn reports_errors_in_events() {
        for (event, place, message) in [
            ("SUMMARY:x", "BEGIN:VEVENT", "no DTSTART"),
            ("DTSTART:2026", "2026", "`2026` is not a date"),
            ("DTSTART:20260\n 230", "20260\r\n 230", "there is no 20260230"),
            ("DTSTART:20260101\nDTSTART:20260102", "DTSTART:20260102", "DTSTART twice"),
            ("DTSTART:20260101\nDTEND:20251231", "20251231", "ends before it begins"),
            ("DTSTART:20260101\nDTEND:20260101T100000", "20260101T100000", "both be dates"),
            ("DTSTART:20260101\nDURATION:PT1H", "PT1H", "lasts whole days"),
            ("DTSTART:20260101\nDURATION:-P1D", "-P1D", "cannot be negative"),
            ("DTSTART:20260101\nDTEND:20260102\nDURATION:P1D", "P1D", "both DTEND and DURATION"),
            ("DTSTART:20260101\nRRULE:FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS=1", "BYSETPOS is not supported"),
            ("DTSTART:20260101\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "RRULE:FREQ=DAILY\r\nEND", "RRULE twice"),
            ("DTSTART:20260101\nEXRULE:FREQ=DAILY", "EXRULE:FREQ=DAILY", "EXRULE is not supported"),
            ("DTSTART:20260101\nEXDATE:20260101,x", "x", "`x` is not a date"),
            (
                "DTSTART:20260101\nRDATE;VALUE=PERIOD:20260101T000000Z/P1D",
                "RDATE;VALUE=PERIOD:20260101T000000Z/P1D",
                "PERIOD",
            ),
            ("DTSTART:20260101\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260101", "RECURRENCE-ID;", "RANGE=THISANDFUTURE"),
            ("DTSTART:20260101\nRRULE FREQ=DAILY", "RRULE FREQ=DAILY", "is not a line of an iCalendar file"),
            (
                "DTSTART;TZID=Mars:20260101T100000\nEXDATE:20260101T100000Z",
                "20260101T100000Z",
                "the zone `Mars` is not known",
            ),
            (
                "DTSTART;TZID=Mars:20260101T100000\nRRULE:FREQ=DAILY;UNTIL=20260102T000000Z",
                "BEGIN:VEVENT",
                "zone `Mars`",
            ),
        ] {
            let text = file(&[event]);
            let found = Calendar::from_ics(&text).expect_err(event);
            assert_eq!(found.len(), 1, "{event}: {found:?}");
            assert!(text[found[0].at.start..].starts_with(place), "{event}: {:?}", &text[found[0].at.clone()]);
            assert!(found[0].to_string().contains(message), "{event}: {}", found[0]);
        }
    }

    #[test]
    fn reports_errors_in_the_file_structure() {
        for (text, at, message) in [
            ("", 0..0, "found an empty file"),
            ("\r\n \n", 0..0, "found an empty file"),
            ("hello", 0..5, "expected BEGIN:VCALENDAR"),
            ("\nBEGIN:VEVENT", 1..13, "expected BEGIN:VCALENDAR"),
            ("BEGIN:VCALENDAR", 0..15, "VCALENDAR never ends (the file may have been cut off)"),
            ("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", 16..28, "VEVENT never ends"),
            ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR", 29..42, "unexpected END:VCALENDAR, expected END:VEVENT"),
            ("BEGIN:VCALENDAR\nEND:VCALENDAR\nEND:VCALENDAR", 30..43, "expected BEGIN:VCALENDAR"),
        ] {
            let found = Calendar::from_ics(text).expect_err(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert_eq!(found[0].at, at, "{text}");
            assert!(found[0].to_string().contains(message), "{text}: {}", found[0]);
        }
    }

    #[test]
    fn depth_errors_steps_and_file_size_are_limited() {
        let deep = format!("BEGIN:VCALENDAR\n{}", "BEGIN:X\n".repeat(10_000));
        assert!(Calendar::from_ics(&deep).expect_err("too deep")[0].message.contains("at most 16 deep"));
        assert_eq!(Calendar::from_ics(&file(&["DTSTART:x"; 300])).expect_err("garbage").len(), 100);
        let endless = file(&["DTSTART:00000101\nRRULE:FREQ=DAILY"; 1_000]);
        let found = Calendar::from_ics(&endless).expect_err("too much work");
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("steps to expand"), "{}", found[0]);
        assert!(Calendar::from_ics(&"x".repeat(5 << 20)).expect_err("too long")[0].message.contains("at most 4 MiB"));
        let parts = file(&[&format!("DTSTART:20260101\nRRULE:{}", "x;".repeat(100_000))]);
        assert_eq!(Calendar::from_ics(&parts).expect_err("garbage").len(), 100);
    }

    fn any_line() -> impl Strategy<Value = String> {
        let date = "(DTSTART|DTEND|EXDATE|RDATE|RECURRENCE-ID)(;TZID=(Europe/Berlin|X))?\
            :[0-2][0-9]{3}(0[1-9]|1[0-3])[0-3][0-9](T[0-2][0-9]0000Z?)?";
        let rule = "RRULE:FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;(COUNT=[0-9]{1,2}|INTERVAL=[0-9]|BYMONTH=[0-9]|\
            BYDAY=-?[0-6]?(MO|SU)|BYMONTHDAY=-?[0-9]{1,2}|UNTIL=20[0-9]{2}0101)){0,3}";
        prop_oneof![date, rule, "DURATION:P[0-9]{1,9}[WD]", "(BEGIN|END):(VEVENT|VCALENDAR|X)", "UID:a", "\\PC{0,20}"]
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(lines in prop::collection::vec(any_line(), 0..12), framed in any::<bool>()) {
            let lines = lines.join("\n");
            let text = if framed { file(&[&lines]) } else { lines };
            if let Err(mistakes) = Calendar::from_ics(&text) {
                prop_assert!(!mistakes.is_empty());
                for mistake in mistakes {
                    prop_assert!(text.get(mistake.at).is_some(), "the place is in the text");
                }
            }
        }
    }
}
