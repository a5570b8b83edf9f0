//! The condition `window`: the local time of day lies between two times, on some days. A window may span midnight.

use cronhold_schedule::calendar::Calendar;
use cronhold_schedule::{Day, FoldPolicy, GapPolicy, Instant, Span, TimeOfDay, WallTime, Zone};

/// How many days are searched for the next opening. Two are enough, except in a zone that skips a whole day.
const DAYS: usize = 4;

/// A part of the local day, on some days. The day of a window is the one on which it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalTimeWindow<'a> {
    pub(super) from: TimeOfDay,
    /// Exclusive. A window that ends at the time of its beginning lasts all day.
    pub(super) until: TimeOfDay,
    pub(super) zone: &'a Zone,
    /// Days on which it begins; every day if `None`.
    pub(super) days: Option<&'a Calendar>,
}

impl LocalTimeWindow<'_> {
    /// When the window opens next; `None` if it is open.
    pub(super) fn opens(&self, now: Instant) -> Option<Instant> {
        if self.is_open(now) {
            return None;
        }
        let today = self.zone.local(now.secs()).day();
        let from_calendar = |days: &Calendar| {
            let next = |day: &Day| days.next(day.plus(1));
            std::iter::successors(days.next(today), next).take(DAYS).collect::<Vec<_>>()
        };
        let every_day = || (0..).take(DAYS).map(|days| today.plus(days)).collect();
        let days = self.days.map_or_else(every_day, from_calendar);
        // Where the clock jumps over its beginning, a window opens late or not at all.
        let next =
            days.into_iter().flat_map(|day| self.instants(day, self.from)).find(|at| *at > now && self.is_open(*at));
        // Every zone has an opening within that time, unless the calendar has no more days; checking again tomorrow is
        // a safe fallback.
        Some(next.unwrap_or_else(|| now.plus(Span::from_secs(86_400))))
    }

    /// When the window that is open now ends, or tomorrow if it lasts longer.
    pub(super) fn closes(&self, now: Instant) -> Instant {
        let today = self.zone.local(now.secs()).day();
        let ends = (0..).take(DAYS).flat_map(|days| self.instants(today.plus(days), self.until));
        let next = ends.into_iter().find(|at| *at > now && !self.is_open(*at));
        next.unwrap_or_else(|| now.plus(Span::from_secs(86_400)))
    }

    fn is_open(&self, at: Instant) -> bool {
        let local = self.zone.local(at.secs());
        let (time, today) = (local.second_of_day(), local.day());
        let begins_on = |day: Day| self.days.is_none_or(|days| days.contains(day));
        match self.from.0 < self.until.0 {
            true => self.from.0 <= time && time < self.until.0 && begins_on(today),
            false => self.from.0 <= time && begins_on(today) || time < self.until.0 && begins_on(today.plus(-1)),
        }
    }

    fn instants(&self, day: Day, time: TimeOfDay) -> impl Iterator<Item = Instant> {
        let at = WallTime(day.midnight().0 + i64::from(time.0));
        self.zone.instants(at, GapPolicy::Next, FoldPolicy::Both).map(Instant::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::calendar::CalendarSet;
    use cronhold_schedule::{CalendarExpr, ZoneRegistry};

    use super::*;

    #[test]
    fn opens_at_its_time() {
        for (zone, from, until, now, expected) in [
            ("UTC", "09:00", "17:00", "2026-01-05T08:59:59Z", "2026-01-05T09:00:00Z"),
            ("UTC", "09:00", "17:00", "2026-01-05T09:00:00Z", "open"),
            ("UTC", "09:00", "17:00", "2026-01-05T16:59:59Z", "open"),
            ("UTC", "09:00", "17:00", "2026-01-05T17:00:00Z", "2026-01-06T09:00:00Z"),
            ("UTC", "22:00", "06:00", "2026-01-05T05:59:59Z", "open"),
            ("UTC", "22:00", "06:00", "2026-01-05T06:00:00Z", "2026-01-05T22:00:00Z"),
            ("UTC", "22:00", "06:00", "2026-01-05T23:00:00Z", "open"),
            ("America/New_York", "09:00", "17:00", "2026-01-05T13:00:00Z", "2026-01-05T14:00:00Z"),
            // A clock change skips the hour from 02:00: the window opens at the end of the gap.
            ("America/New_York", "02:30", "04:00", "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"),
            ("America/New_York", "02:30", "04:00", "2026-03-08T07:00:00Z", "open"),
            ("America/New_York", "02:10", "02:50", "2026-03-08T07:00:00Z", "2026-03-09T06:10:00Z"),
            // A clock change repeats the hour from 01:00, so the window opens twice.
            ("America/New_York", "01:10", "01:50", "2026-11-01T05:10:00Z", "open"),
            ("America/New_York", "01:10", "01:50", "2026-11-01T05:55:00Z", "2026-11-01T06:10:00Z"),
            ("America/New_York", "01:10", "01:50", "2026-11-01T06:30:00Z", "open"),
            // The zone skipped the whole day 2011-12-30.
            ("Pacific/Apia", "09:00", "10:00", "2011-12-29T20:30:00Z", "2011-12-30T19:00:00Z"),
        ] {
            let zone = ZoneRegistry::bundled().get(zone).expect("a zone");
            let time = |text: &str| TimeOfDay::parse(text).expect("a time");
            let at = Instant::parse(now).expect("an instant");
            let window = LocalTimeWindow { from: time(from), until: time(until), zone: &zone, days: None };
            let found = window.opens(at);
            let found = found.map_or_else(|| "open".to_owned(), |at| at.to_string());
            assert_eq!(found, expected, "{from}–{until} at {now}");
        }
    }

    /// 2026-01-05 is a Monday.
    #[test]
    fn opens_and_closes_on_days_of_its_calendar() {
        let zone = ZoneRegistry::bundled().get("UTC").expect("a zone");
        let weekdays = CalendarExpr::parse("Mon-Fri").expect("a calendar");
        let weekdays = CalendarSet::new().compile(&weekdays).expect("known days");
        for (from, until, now, opens, closes) in [
            ("09:00", "17:00", "2026-01-09T10:00:00Z", "open", "2026-01-09T17:00:00Z"),
            ("09:00", "17:00", "2026-01-09T18:00:00Z", "2026-01-12T09:00:00Z", ""),
            ("09:00", "17:00", "2026-01-10T10:00:00Z", "2026-01-12T09:00:00Z", ""),
            // The window of Friday night ends on Saturday.
            ("22:00", "06:00", "2026-01-10T05:59:59Z", "open", "2026-01-10T06:00:00Z"),
            ("22:00", "06:00", "2026-01-10T23:00:00Z", "2026-01-12T22:00:00Z", ""),
            ("22:00", "06:00", "2026-01-12T05:00:00Z", "2026-01-12T22:00:00Z", ""),
            ("00:00", "00:00", "2026-01-09T12:00:00Z", "open", "2026-01-10T00:00:00Z"),
            ("00:00", "00:00", "2026-01-10T12:00:00Z", "2026-01-12T00:00:00Z", ""),
        ] {
            let time = |text: &str| TimeOfDay::parse(text).expect("a time");
            let at = Instant::parse(now).expect("an instant");
            let window = LocalTimeWindow { from: time(from), until: time(until), zone: &zone, days: Some(&weekdays) };
            let found = window.opens(at).map_or_else(|| "open".to_owned(), |at| at.to_string());
            assert_eq!(found, opens, "{from}–{until} at {now}");
            if found == "open" {
                assert_eq!(window.closes(at).to_string(), closes, "{from}–{until} at {now}");
            }
        }
    }
}
