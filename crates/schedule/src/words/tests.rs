//! Schedules and their descriptions in English.

use super::*;
use crate::calendar::CalendarExpr;
use crate::cron::FieldsExpr;
use crate::span::Span;

#[test]
fn describes_times_of_cron() {
    for (text, words) in [
        ("* * * * *", "Every minute"),
        ("* * * * * * *", "Every second"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0,30 * * * *", "Every 30 minutes"),
        ("*/10 * * * * * *", "Every 10 seconds"),
        ("0 * * * *", "Every hour on the hour"),
        ("5 * * * *", "At minute 5 of every hour"),
        ("0,10 * * * *", "At minutes 0 and 10 of every hour"),
        ("1-10 * * * *", "At minutes 1 through 10 of every hour"),
        ("0-4,30 * * * *", "At minutes 0 through 4 and 30 of every hour"),
        ("*/40 * * * *", "At minutes 0 and 40 of every hour"),
        ("*/11 * * * *", "At minutes 0, 11, 22, 33, 44 and 55 of every hour"),
        ("*/7 * * * *", "At every 7th minute from 0 through 56 of every hour"),
        ("1-59/2 * * * *", "At every 2nd minute from 1 through 59 of every hour"),
        ("5-59/15 * * * *", "At minutes 5, 20, 35 and 50 of every hour"),
        ("5 * * * * * *", "At second 5 of every minute"),
        ("0,40 * * * * * *", "At seconds 0 and 40 of every minute"),
        ("5 0 * * * * *", "At second 5 of minute 0 of every hour"),
        ("* 5 * * * * *", "Every second of minute 5 of every hour"),
        ("*/10 */15 * * * * *", "Every 10 seconds of minutes 0, 15, 30 and 45 of every hour"),
        ("5 */5 * * * * *", "At second 5 of every 5th minute from 0 through 55 of every hour"),
        ("5 * 9-17 * * * *", "Every minute from 09:00:05 through 17:59:05 every day"),
        ("0,40 * 9-17 * * * *", "At seconds 0 and 40 of every minute from 09:00 through 17:59 every day"),
        ("*/5 * 3 * * * *", "Every 5 seconds from 03:00 through 03:59:55 every day"),
        ("30 0 0 * * * *", "At 00:00:30 every day"),
        ("0 18 * * *", "At 18:00 every day"),
        ("0 6,18 * * *", "At 06:00 and 18:00 every day"),
        ("0 */2 * * *", "Every 2 hours from 00:00 through 22:00 every day"),
        ("0 1-23/2 * * *", "Every 2 hours from 01:00 through 23:00 every day"),
        ("0 */7 * * *", "At 00:00, 07:00, 14:00 and 21:00 every day"),
        ("30 9-17 * * *", "Every hour from 09:30 through 17:30 every day"),
        ("*/10 9-17 * * 1-5", "Every 10 minutes from 09:00 through 17:50 on Monday through Friday"),
        ("* 3 * * *", "Every minute from 03:00 through 03:59 every day"),
        ("0-20 3 * * *", "Every minute from 03:00 through 03:20 every day"),
        ("*/15 */2 * * *", "Every 15 minutes of every 2nd hour from 00:00 through 22:00 every day"),
        ("*/5 0,12 * * *", "Every 5 minutes from 00:00 through 00:59 and from 12:00 through 12:59 every day"),
        ("0,10 9-17 * * *", "At minutes 0 and 10 of every hour from 09:00 through 17:59 every day"),
        (
            "0 8-12,14-18 * * *",
            "At minute 0 of every hour from 08:00 through 12:59 and from 14:00 through 18:59 every day",
        ),
        (
            "0,7,9,11,20,31,40 3 * * *",
            "At minutes 0, 7, 9, 11, 20, 31 and 40 of the hour from 03:00 through 03:59 every day",
        ),
        (
            "* 1,2,5,8,13 * * *",
            "Every minute of the hours that begin at 01:00, 02:00, 05:00, 08:00 and 13:00 every day",
        ),
    ] {
        assert_eq!(ScheduleSpec::parse(text).expect(text).words("job"), words, "{text}");
    }
}

#[test]
fn describes_days_of_cron() {
    for (text, words) in [
        ("0 18 * * Mon-Fri", "At 18:00 on Monday through Friday"),
        ("*/15 * * * 1-5", "Every 15 minutes on Monday through Friday"),
        ("0 0 * * 0,6", "At 00:00 on Saturday and Sunday"),
        ("0 0 * * 1,3,5", "At 00:00 on Monday, Wednesday and Friday"),
        ("0 0 1 * *", "At 00:00 on the 1st of the month"),
        ("0 0 1-7 * *", "At 00:00 on the 1st through the 7th of the month"),
        ("0 0 1,15 * 5", "At 00:00 on the 1st and the 15th of the month or on Friday"),
        ("0 0 */2 * *", "At 00:00 on every 2nd day from the 1st through the 31st of the month"),
        ("0 0 */10 * *", "At 00:00 on the 1st, the 11th, the 21st and the 31st of the month"),
        ("0 0 L * *", "At 00:00 on the last day of the month"),
        ("0 0 L-1 * *", "At 00:00 on the second-to-last day of the month"),
        ("0 0 L-2 * *", "At 00:00 on the 3rd-to-last day of the month"),
        ("0 0 1,L * *", "At 00:00 on the 1st and the last day of the month"),
        ("0 0 LW * *", "At 00:00 on the last weekday of the month"),
        ("0 0 15W * *", "At 00:00 on the weekday nearest to the 15th of the month"),
        ("0 0 * * 5L", "At 00:00 on the last Friday of the month"),
        ("0 0 * * 5#3", "At 00:00 on the third Friday of the month"),
        ("0 0 15 * 5#3", "At 00:00 on the 15th of the month or on the third Friday of the month"),
        ("0 0 * * 1,5L", "At 00:00 on Monday and the last Friday of the month"),
        ("0 0 * 1 *", "At 00:00 every day in January"),
        ("*/15 * * 6-8 *", "Every 15 minutes in June through August"),
        ("0 0 * 1 1-5", "At 00:00 on Monday through Friday in January"),
        ("0 0 1 1 *", "At 00:00 on the 1st of January"),
        ("0 0 31 2,12 *", "At 00:00 on the 31st of February and December"),
        ("0 0 1 1 5", "At 00:00 on the 1st of the month or on Friday, in January"),
        ("0 0 * 1 5#1", "At 00:00 on the first Friday of January"),
        ("0 0 * 1 1,5L", "At 00:00 on Monday and the last Friday of the month, in January"),
        ("0 0 1 1-3 * 2026", "At 00:00 on the 1st of the month in January through March in 2026"),
        ("0 0 1 1 * 2026-2028,2030", "At 00:00 on the 1st of January in 2026 through 2028 and 2030"),
        ("0 0 1 1 * 2020-2040/2", "At 00:00 on the 1st of January in every 2nd year from 2020 through 2040"),
    ] {
        assert_eq!(ScheduleSpec::parse(text).expect(text).words("job"), words, "{text}");
    }
}

#[test]
fn describes_named_fields() {
    for (fields, words) in [
        (&[("day", "last"), ("hour", "14")][..], "At 14:00 on the last day of the month"),
        (&[("day", "13"), ("day_of_week", "fri")], "At 00:00 on the 13th of the month when it falls on Friday"),
        (
            &[("day", "1-7"), ("day_of_week", "mon,wed")],
            "At 00:00 on the 1st through the 7th of the month when it falls on Monday or Wednesday",
        ),
        (&[("month", "1"), ("day", "1st mon,last fri")], "At 00:00 on the first Monday and the last Friday of January"),
        (&[("week", "1"), ("day_of_week", "mon")], "At 00:00 on Monday in ISO week 1"),
        (&[("week", "1-3,5")], "At 00:00 every day in ISO weeks 1 through 3 and 5"),
        (&[("week", "*/2")], "At 00:00 every day in every 2nd ISO week from 1 through 53"),
    ] {
        let spec = ScheduleSpec::new(Timing::Fields(FieldsExpr::parse(fields).expect("valid")));
        assert_eq!(spec.words("job"), words, "{fields:?}");
    }
}

#[test]
fn describes_other_kinds() {
    for (text, words) in [
        ("CRON_TZ=Europe/Berlin 0 18 * * *", "At 18:00 every day, Europe/Berlin time"),
        // An interval is the same in every zone.
        ("CRON_TZ=Europe/Berlin @every 1h", "Every hour"),
        ("@every 1h30m", "Every 1 hour 30 minutes"),
        ("@every 1m", "Every minute"),
        ("@every 1d", "Every 24 hours"),
        ("with 1h interval", "1 hour after the previous run has ended"),
        ("with 10m interval", "10 minutes after the previous run has ended"),
        ("continuously", "Again as soon as the previous run has ended"),
        ("triggered", "Never by time, only when triggered"),
        ("@never", "Never by itself"),
        ("@reboot", "Once whenever a node starts"),
    ] {
        assert_eq!(ScheduleSpec::parse(text).expect(text).words("job"), words, "{text}");
    }
    let hour = Timing::Every { interval: Span::from_secs(3600), phase: Span::from_secs(60) };
    assert_eq!(ScheduleSpec::new(hour).words("job"), "Every hour, offset by 1 minute");
}

#[test]
fn describes_bounds_jitter_and_calendars() {
    let bound = |text| Some(TimeBound::parse(text).expect(text));
    let calendar = || Some(CalendarExpr::parse("Mon-Fri").expect("valid"));
    let of = |text| ScheduleSpec::parse(text).expect(text);
    let (cron, every) = (|| of("CRON_TZ=Asia/Tokyo 0 18 * * *"), || of("CRON_TZ=Asia/Tokyo @every 1h"));
    for (spec, words) in [
        (ScheduleSpec { jitter: Span::from_secs(60), ..every() }, "Every hour, started up to 1 minute later"),
        (ScheduleSpec { start: bound("2026-02-01"), ..every() }, "Every hour, Asia/Tokyo time, from 2026-02-01"),
        (ScheduleSpec { start: bound("2026-02-01T00:00:00Z"), ..every() }, "Every hour, from 2026-02-01T00:00:00Z"),
        (
            ScheduleSpec { end: bound("2026-02-01"), ..cron() },
            "At 18:00 every day, Asia/Tokyo time, through 2026-02-01",
        ),
        (
            ScheduleSpec { end: bound("2026-02-01T12:00"), ..cron() },
            "At 18:00 every day, Asia/Tokyo time, until 2026-02-01T12:00",
        ),
        (
            ScheduleSpec { calendar: calendar(), ..cron() },
            "At 18:00 on days of the calendar `Mon-Fri`, Asia/Tokyo time",
        ),
        (
            ScheduleSpec { calendar: calendar(), ..every() },
            "Every hour, only on days of the calendar `Mon-Fri`, Asia/Tokyo time",
        ),
        (
            ScheduleSpec { calendar: calendar(), ..of("0 18 1 * *") },
            "At 18:00 on the 1st of the month, only on days of the calendar `Mon-Fri`",
        ),
        (
            ScheduleSpec { calendar: calendar(), ..of("with 10m interval") },
            "10 minutes after the previous run has ended, only on days of the calendar `Mon-Fri`",
        ),
    ] {
        assert_eq!(spec.words("job"), words);
    }
}

fn shift(calendar_days: i32, days: i32) -> DayShift {
    DayShift { calendar_days, days }
}

#[test]
fn describes_daily_times() {
    let daily = |shift, calendar: Option<&str>| {
        let times = vec![TimeOfDay(9 * 3600), TimeOfDay(17 * 3600 + 1800)];
        let calendar = calendar.map(|text| CalendarExpr::parse(text).expect(text));
        ScheduleSpec { calendar, ..ScheduleSpec::new(Timing::Daily(DailyTiming { times, shift })) }.words("job")
    };
    for (shift, calendar, words) in [
        (shift(0, 0), None, "At 09:00 and 17:30 every day"),
        (shift(0, 1), None, "At 09:00 and 17:30 every day, for the date 1 day earlier"),
        (shift(0, 0), Some("Mon-Fri"), "At 09:00 and 17:30 on days of the calendar `Mon-Fri`"),
        (shift(0, -2), Some("Fri"), "At 09:00 and 17:30, 2 days before each day of the calendar `Fri`"),
        (
            shift(1, 0),
            Some("Mon-Fri"),
            "At 09:00 and 17:30 on the 1st day of the calendar `Mon-Fri` after each of its days",
        ),
        (
            shift(-2, 1),
            Some("Mon-Fri"),
            "At 09:00 and 17:30, 1 day after the 2nd day of the calendar `Mon-Fri` before each of its days",
        ),
    ] {
        assert_eq!(daily(shift, calendar), words);
    }
}

#[test]
fn describes_windows() {
    let window = |from: (u32, DayShift), until: (u32, DayShift), calendar: Option<&str>| {
        let edge = |(hour, shift): (u32, DayShift)| WindowEdge { time: TimeOfDay(hour * 3600), shift };
        let timing = DailyInterval { from: edge(from), until: edge(until), interval: Span::from_secs(900) };
        let calendar = calendar.map(|text| CalendarExpr::parse(text).expect(text));
        ScheduleSpec { calendar, ..ScheduleSpec::new(Timing::DailyInterval(timing)) }.words("job")
    };
    let none = shift(0, 0);
    for (from, until, calendar, words) in [
        ((9, none), (17, none), None, "Every 15 minutes from 09:00 until before 17:00 every day"),
        (
            (9, none),
            (17, none),
            Some("Mon-Fri"),
            "Every 15 minutes from 09:00 until before 17:00 on days of the calendar `Mon-Fri`",
        ),
        (
            (22, none),
            (6, shift(0, 1)),
            None,
            "Every 15 minutes from 22:00 until before 06:00 the next day, for each day",
        ),
        (
            (22, shift(0, -1)),
            (6, shift(1, 0)),
            Some("Mon-Fri"),
            "Every 15 minutes from 22:00 the day before until before 06:00 on the 1st day of the calendar after it, \
             for each day of the calendar `Mon-Fri`",
        ),
    ] {
        assert_eq!(window(from, until, calendar), words);
    }
}

#[test]
fn describes_instants() {
    for (instants, words) in [
        (&[][..], "Never: no instants are given"),
        (&["2026-05-01T12:00"], "Once on 2026-05-01 at 12:00"),
        (&["2026-05-01T12:00:00Z"], "Once at 2026-05-01T12:00:00Z"),
        (&["2026-05-02", "2026-05-01T12:00"], "On 2026-05-01 at 12:00 and on 2026-05-02 at 00:00"),
        (
            &["2026-05-04", "2026-05-01", "2026-05-02", "2026-05-03"],
            "At 4 given times, the first of them on 2026-05-01 at 00:00",
        ),
    ] {
        let bounds = instants.iter().map(|text| TimeBound::parse(text).expect(text)).collect();
        assert_eq!(ScheduleSpec::new(Timing::At(bounds)).words("job"), words);
    }
}
