//! Schedules other than cron: intervals, counts from the previous run, times of day, windows, and calendars.

use cronhold_schedule::{
    CalendarExpr, DailyInterval, DailyTiming, DayShift, Instant, ScheduleSpec, Span, TimeBound, TimeOfDay, Timing,
    WindowEdge,
};

use crate::{check, check_spec, compile, instant, parse};

fn time(text: &str) -> TimeOfDay {
    TimeOfDay::parse(text).expect(text)
}

fn on(calendar: &str, spec: ScheduleSpec) -> ScheduleSpec {
    ScheduleSpec { calendar: Some(CalendarExpr::parse(calendar).expect(calendar)), ..spec }
}

fn daily(times: &[&str], calendar_days: i32, days: i32) -> ScheduleSpec {
    let times = times.iter().map(|text| time(text)).collect();
    ScheduleSpec::new(Timing::Daily(DailyTiming { times, shift: DayShift { calendar_days, days } }))
}

fn window(from: &str, until: &str, days: i32, every: &str) -> ScheduleSpec {
    let from = WindowEdge { time: time(from), shift: DayShift::default() };
    let until = WindowEdge { time: time(until), shift: DayShift { calendar_days: 0, days } };
    ScheduleSpec::new(Timing::DailyInterval(DailyInterval { from, until, interval: Span::parse(every).expect(every) }))
}

/// The `date` arg of an occurrence.
fn date_of(spec: &ScheduleSpec, at: &str) -> String {
    let args = compile(spec, "UTC").automatic_args(instant(at));
    args.into_iter().find(|(name, _)| *name == "date").map(|(_, value)| value).expect("every occurrence has a date")
}

#[test]
fn intervals_are_aligned_to_the_epoch() {
    check(
        "@every 90s",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-01-01T00:01:30+00:00", "2026-01-01T00:03+00:00", "2026-01-01T00:04:30+00:00"],
    );
    // Seven hours do not divide a day, and the interval continues over midnight.
    let seven = compile(&parse("@every 7h"), "UTC");
    let first = seven.next(instant("2026-01-01T00:00:00Z")).expect("there is a next occurrence");
    assert_eq!(first.secs() % (7 * 3600), 0);
    assert_eq!(seven.next(first), Some(first.plus(Span::from_secs(7 * 3600))));
    let late = Timing::Every { interval: Span::from_secs(3600), phase: Span::from_secs(600) };
    check_spec(
        &ScheduleSpec::new(late),
        "Europe/Berlin",
        "2026-10-25T00:00:00Z",
        &["2026-10-25T02:10+02:00", "2026-10-25T02:10+01:00", "2026-10-25T03:10+01:00"],
    );
}

#[test]
fn intervals_respect_a_calendar_in_their_zone() {
    let saturdays = on("Sat", parse("@every 12h"));
    // Midnight UTC is 01:00 or 02:00 in Berlin.
    check_spec(
        &saturdays,
        "Europe/Berlin",
        "2026-03-27T00:00:00Z",
        &["2026-03-28T01:00+01:00", "2026-03-28T13:00+01:00", "2026-04-04T02:00+02:00"],
    );
}

#[test]
fn interval_runs_on_a_repeated_day() {
    // Newfoundland's clocks were set back from 00:01 on Sunday to 23:01 on Saturday.
    let saturdays = on("Sat", parse("@every 30m"));
    check_spec(
        &saturdays,
        "America/St_Johns",
        "2010-11-07T01:45:00Z",
        &["2010-11-06T23:30-02:30", "2010-11-06T23:30-03:30", "2010-11-13T00:00-03:30"],
    );
}

#[test]
fn counting_from_the_previous_run() {
    let end = instant("2026-03-29T00:59:30Z");
    let ten_minutes = compile(&parse("with 10m interval"), "Europe/Berlin");
    assert!(ten_minutes.counts_from_previous());
    assert_eq!(ten_minutes.after_run(end), Some(instant("2026-03-29T01:09:30Z")));
    assert_eq!((ten_minutes.next(end), ten_minutes.prev(end)), (None, None));
    assert_eq!(ten_minutes.coming(end).nth(1), Some(instant("2026-03-29T01:19:30Z")));
    // Runs are at least a second apart, so that a failing job cannot spin.
    let continuously = compile(&parse("continuously"), "UTC");
    assert!(continuously.counts_from_previous());
    assert_eq!(continuously.after_run(end), Some(instant("2026-03-29T00:59:31Z")));
    assert_eq!(continuously.after_run(instant("2026-03-29T00:59:30.2Z")), Some(instant("2026-03-29T00:59:32Z")));
    let every = compile(&parse("@every 10m"), "UTC");
    assert!(!every.counts_from_previous());
    assert_eq!(every.after_run(end), None);
}

#[test]
fn untimed_schedules_have_no_occurrence() {
    for text in ["@never", "@reboot", "triggered"] {
        let schedule = compile(&parse(text), "UTC");
        assert_eq!(schedule.next(Instant::EPOCH), None, "{text}");
        assert_eq!(schedule.prev(instant("2099-01-01T00:00:00Z")), None, "{text}");
    }
}

#[test]
fn cron_respects_a_calendar() {
    // 1 May 2026 is a Friday and a holiday.
    check_spec(
        &on("Mon-Fri - holidays", parse("0 9 * * *")),
        "UTC",
        "2026-04-29T12:00:00Z",
        &["2026-04-30T09:00+00:00", "2026-05-04T09:00+00:00", "2026-05-05T09:00+00:00"],
    );
    check_spec(
        &on("holidays", parse("0 9 * * *")),
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-05-01T09:00+00:00", "2026-12-25T09:00+00:00"],
    );
    let never = on("Mon", parse("0 9 * * sun"));
    assert_eq!(compile(&never, "Europe/Berlin").next(Instant::EPOCH), None);
    assert_eq!(compile(&never, "Europe/Berlin").prev(instant("2099-01-01T00:00:00Z")), None);
}

#[test]
fn times_of_day() {
    check_spec(
        &on("Mon-Fri - holidays", daily(&["09:00", "17:30"], 0, 0)),
        "Europe/Berlin",
        "2026-04-30T08:00:00Z",
        &["2026-04-30T17:30+02:00", "2026-05-04T09:00+02:00", "2026-05-04T17:30+02:00"],
    );
    check_spec(
        &daily(&["02:30"], 0, 0),
        "Europe/Berlin",
        "2026-03-28T12:00:00Z",
        &["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"],
    );
}

#[test]
fn times_of_day_on_the_day_after() {
    let next_day = on("Mon-Fri - holidays", daily(&["09:00"], 0, 1));
    check_spec(
        &next_day,
        "UTC",
        "2026-04-30T12:00:00Z",
        // After Thursday; Friday is a holiday; after Monday.
        &["2026-05-01T09:00+00:00", "2026-05-05T09:00+00:00", "2026-05-06T09:00+00:00"],
    );
    assert_eq!(date_of(&next_day, "2026-05-01T09:00:00Z"), "2026-04-30");
    assert_eq!(date_of(&next_day, "2026-05-05T09:00:00Z"), "2026-05-04");
}

#[test]
fn times_of_day_on_the_next_business_day() {
    let next_business_day = on("Mon-Fri - holidays", daily(&["09:00"], 1, 0));
    check_spec(
        &next_business_day,
        "UTC",
        "2026-04-30T12:00:00Z",
        &["2026-05-04T09:00+00:00", "2026-05-05T09:00+00:00"],
    );
    assert_eq!(date_of(&next_business_day, "2026-05-04T09:00:00Z"), "2026-04-30");
    // The evening before the business day two later: both shifts at once.
    let both = on("Mon-Fri - holidays", daily(&["18:00"], 2, -1));
    check_spec(&both, "UTC", "2026-05-02T12:00:00Z", &["2026-05-03T18:00+00:00", "2026-05-04T18:00+00:00"]);
    assert_eq!(date_of(&both, "2026-05-03T18:00:00Z"), "2026-04-29");
}

#[test]
fn window_over_midnight_counts_elapsed_time() {
    let night = window("22:00", "06:00", 1, "1h");
    check_spec(
        &night,
        "Europe/Berlin",
        "2026-03-28T20:30:00Z",
        &[
            "2026-03-28T22:00+01:00",
            "2026-03-28T23:00+01:00",
            "2026-03-29T00:00+01:00",
            "2026-03-29T01:00+01:00",
            "2026-03-29T03:00+02:00",
            "2026-03-29T04:00+02:00",
            "2026-03-29T05:00+02:00",
            "2026-03-29T22:00+02:00",
        ],
    );
    check_spec(
        &night,
        "Europe/Berlin",
        "2026-10-24T23:30:00Z",
        &[
            "2026-10-25T02:00+02:00",
            "2026-10-25T02:00+01:00",
            "2026-10-25T03:00+01:00",
            "2026-10-25T04:00+01:00",
            "2026-10-25T05:00+01:00",
            "2026-10-25T22:00+01:00",
        ],
    );
}

#[test]
fn window_that_begins_in_a_gap_begins_at_its_end() {
    check_spec(
        &window("02:30", "04:00", 0, "20m"),
        "Europe/Berlin",
        "2026-03-28T12:00:00Z",
        &["2026-03-29T03:00+02:00", "2026-03-29T03:20+02:00", "2026-03-29T03:40+02:00", "2026-03-30T02:30+02:00"],
    );
}

#[test]
fn window_on_business_days() {
    let office = on("Mon-Fri - holidays", window("09:00", "10:00", 0, "25m"));
    check_spec(
        &office,
        "UTC",
        "2026-04-30T09:30:00Z",
        &["2026-04-30T09:50+00:00", "2026-05-04T09:00+00:00", "2026-05-04T09:25+00:00"],
    );
    // The night belongs to the day on which the window began.
    assert_eq!(date_of(&window("22:00", "06:00", 1, "1h"), "2026-03-29T03:00:00Z"), "2026-03-28");
}

#[test]
fn explicit_instants() {
    let bounds = ["2026-10-25T02:30", "2026-03-29T02:30", "2026-07-01T12:00:00Z", "2026-05-01"];
    let at = Timing::At(bounds.iter().map(|text| TimeBound::parse(text).expect(text)).collect());
    check_spec(
        &ScheduleSpec::new(at.clone()),
        "Europe/Berlin",
        "2026-01-01T00:00:00Z",
        &["2026-03-29T03:00+02:00", "2026-05-01T00:00+02:00", "2026-07-01T14:00+02:00", "2026-10-25T02:30+02:00"],
    );
    assert_eq!(compile(&ScheduleSpec::new(at), "UTC").next(instant("2026-12-01T00:00:00Z")), None);
}

#[test]
fn window_that_ends_before_it_begins_is_rejected() {
    let refused = |days| window("02:00", "01:00", days, "10m").check().map_err(|wrong| wrong.key);
    assert_eq!(refused(-1), Err("daily_interval"));
    assert_eq!(refused(0), Err("daily_interval"));
    assert_eq!(refused(1), Ok(()));
}

/// Edges with different shifts along the calendar can only be compared once the calendar is known.
#[test]
fn empty_windows_end_the_search() {
    let edge = |text, calendar_days| WindowEdge { time: time(text), shift: DayShift { calendar_days, days: 0 } };
    let timing = DailyInterval { from: edge("01:00", 1), until: edge("02:00", 0), interval: Span::from_secs(60) };
    let schedule = compile(&on("Mon-Fri", ScheduleSpec::new(Timing::DailyInterval(timing))), "UTC");
    assert_eq!(schedule.next(instant("2026-01-01T00:00:00Z")), None);
    assert_eq!(schedule.prev(instant("2026-01-01T00:00:00Z")), None);
}

#[test]
fn no_occurrence_after_the_last_instant() {
    for text in ["@every 90s", "continuously", "with 10m interval", "* * * * * * *"] {
        let end = Instant::from_micros(i64::MAX);
        assert_eq!(compile(&parse(text), "UTC").coming(end).next(), None, "{text}");
    }
}

#[test]
fn blanks_in_a_phrase_do_not_matter() {
    assert_eq!(parse("with                    10m    interval"), parse("with 10m interval"));
}

#[test]
fn count_from_the_previous_run_respects_bounds() {
    let after = |start: Option<&str>, end: Option<&str>, calendar: &str| {
        let bound = |text: Option<&str>| text.map(|text| TimeBound::parse(text).expect(text));
        let spec = ScheduleSpec { start: bound(start), end: bound(end), ..parse("with 10m interval") };
        compile(&on(calendar, spec), "Europe/Berlin")
    };
    let run_end = instant("2026-02-01T12:00:00Z");
    let start = after(Some("2026-02-02T00:00:00Z"), None, "all");
    assert_eq!(start.after_run(run_end), Some(instant("2026-02-02T00:00:00Z")));
    assert_eq!(start.after_run(instant("2026-02-01T23:55:00Z")), Some(instant("2026-02-02T00:05:00Z")));
    assert_eq!(after(None, Some("2026-02-01T12:05:00Z"), "all").after_run(run_end), None);
    // 1 February 2026 is a Sunday: the first instant of Monday in Berlin.
    assert_eq!(after(None, None, "Mon-Fri").after_run(run_end), Some(instant("2026-02-01T23:00:00Z")));
}

#[test]
fn automatic_args_of_an_occurrence() {
    let spec = ScheduleSpec { zone: Some("Europe/Berlin".to_owned()), ..on("Mon-Fri", daily(&["18:00"], 1, 1)) };
    let args = compile(&spec, "UTC").automatic_args(instant("2026-03-28T17:00:00Z"));
    let expected = [
        ("time", "2026-03-28T17:00:00Z"),
        ("date", "2026-03-26"),
        ("sched_date", "2026-03-28"),
        ("daytime", "18:00:00"),
        ("tz", "Europe/Berlin"),
        ("calendar", "Mon-Fri"),
    ];
    assert_eq!(args, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn window_inside_a_gap_runs_once() {
    check_spec(
        &window("02:30", "02:50", 0, "10m"),
        "Europe/Berlin",
        "2026-03-28T01:45:00Z",
        &["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00", "2026-03-30T02:40+02:00", "2026-03-31T02:30+02:00"],
    );
}
