//! The condition `window`: the local time of day lies between two times. A window may span midnight.

use cronhold_schedule::{FoldPolicy, GapPolicy, Instant, TimeOfDay, WallTime, Zone};

/// How many days are searched for the next opening. Two are enough, except in a zone that skips a whole day.
const DAYS: i32 = 4;

/// When the window opens next; `None` if it is open.
pub(super) fn opens(now: Instant, from: TimeOfDay, until: TimeOfDay, zone: &Zone) -> Option<Instant> {
    let is_open = |at: Instant| {
        let time = zone.local(at.secs()).second_of_day();
        match from.0 < until.0 {
            true => from.0 <= time && time < until.0,
            false => from.0 <= time || time < until.0,
        }
    };
    if is_open(now) {
        return None;
    }
    let today = zone.local(now.secs()).day();
    let openings = (0..DAYS).flat_map(|days| {
        let at = WallTime(today.plus(days).midnight().0 + i64::from(from.0));
        zone.instants(at, GapPolicy::Next, FoldPolicy::Both)
    });
    // Where the clock jumps over its beginning, a window opens late or not at all.
    let next = openings.map(Instant::from_secs).find(|at| *at > now && is_open(*at));
    // Every zone has an opening within that time; checking again tomorrow is a safe fallback.
    Some(next.unwrap_or_else(|| now.plus(cronhold_schedule::Span::from_secs(86_400))))
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

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
            let found = opens(at, time(from), time(until), &zone);
            let found = found.map_or_else(|| "open".to_owned(), |at| at.to_string());
            assert_eq!(found, expected, "{from}–{until} at {now}");
        }
    }
}
