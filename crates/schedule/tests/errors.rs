//! The exact position, message and hint of every parse error. Users fix their schedules by these texts, so every change
//! to one needs review. Also checks that long or strange input gets a short message.

use std::ops::Range;

use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{
    CalendarExpr, Day, FoldPolicy, GapPolicy, Instant, ScheduleSpec, Span, TextError, TimeBound, TimeOfDay,
};

/// Maximum length of a message for any input.
const MESSAGE_MAX: usize = 300;

/// Input, position of the error, message, hint.
type Row = (&'static str, Range<usize>, &'static str, &'static str);
/// Name of a field or kind of text, then a row.
type NamedRow = (&'static str, &'static str, Range<usize>, &'static str, &'static str);

/// Cron expressions with invalid values, ranges and steps.
const VALUES: &[Row] = &[
    ("", 0..0, "expected a schedule", "such as `0 18 * * Mon-Fri`, `@every 15m` or `with 10m interval`"),
    ("   ", 0..3, "expected a schedule", "such as `0 18 * * Mon-Fri`, `@every 15m` or `with 10m interval`"),
    (
        "* * *",
        0..5,
        "a cron expression has 5, 6 or 7 fields, this has 3 fields",
        "minute hour day-of-month month day-of-week; a sixth field is the year; with seven the first is the second",
    ),
    (
        "* * * * * * * *",
        14..15,
        "a cron expression has 5, 6 or 7 fields, this has 8 fields",
        "minute hour day-of-month month day-of-week; a sixth field is the year; with seven the first is the second",
    ),
    ("60 * * * *", 0..2, "minute must be 0–59, not 60", ""),
    ("* 24 * * *", 2..4, "hour must be 0–23, not 24", ""),
    ("* * 0 * *", 4..5, "day of month must be 1–31, not 0", ""),
    ("* * 32 * *", 4..6, "day of month must be 1–31, not 32", ""),
    ("* * * 13 *", 6..8, "month must be 1–12, not 13", ""),
    ("* * * * 8", 8..9, "day of week must be 0–7, not 8", ""),
    (
        "* * * * * 1969",
        10..14,
        "year must be 1970–2100, not 1969",
        "six fields end in the year; with seconds there are seven",
    ),
    (
        "* * * * * 2101",
        10..14,
        "year must be 1970–2100, not 2101",
        "six fields end in the year; with seconds there are seven",
    ),
    ("60 * * * * * *", 0..2, "second must be 0–59, not 60", ""),
    ("a * * * *", 0..1, "`a` is not a value for minute", "a number from 0–59, or *"),
    ("* * * foo *", 6..9, "`foo` is not a value for month", "a number from 1–12, a name such as Jan, or *"),
    ("* * * jam *", 6..9, "`jam` is not a value for month", "did you mean `Jan`?"),
    ("* * * * frx", 8..11, "`frx` is not a value for day of week", "did you mean `Fri`?"),
    ("* * * * mno", 8..11, "`mno` is not a value for day of week", "did you mean `Mon`?"),
    ("*/0 * * * *", 2..3, "a step for minute here must be 1–59, not 0", "`*/5` means every fifth value"),
    ("*/60 * * * *", 2..4, "a step for minute here must be 1–59, not 60", "`*/5` means every fifth value"),
    ("*/ * * * *", 2..2, "expected a number after `/`", "`*/5` means every fifth value"),
    ("*/x * * * *", 2..3, "expected a number after `/`", "`*/5` means every fifth value"),
    ("5-1 * * * *", 0..3, "the range 5-1 is reversed", "write 5-59,0-1 to go over the end"),
    ("* 22-6 * * *", 2..6, "the range 22-6 is reversed", "write 22-23,0-6 to go over the end"),
    ("* * * nov-feb *", 6..13, "the range nov-feb is reversed", "write nov-dec,jan-feb to go over the end"),
    ("1,,2 * * * *", 2..2, "expected a value for minute here", "a number from 0–59, or *"),
    (",1 * * * *", 0..0, "expected a value for minute here", "a number from 0–59, or *"),
    ("1- * * * *", 2..2, "expected a value for minute here", "a number from 0–59, or *"),
    ("-1 * * * *", 0..0, "expected a value for minute here", "a number from 0–59, or *"),
    ("1-2-3 * * * *", 2..5, "`2-3` is not a value for minute", "a number from 0–59, or *"),
    ("** * * * *", 0..2, "`**` is not a value for minute", "a number from 0–59, or *"),
    ("*5 * * * *", 0..2, "`*5` is not a value for minute", "a number from 0–59, or *"),
    ("1.5 * * * *", 0..3, "`1.5` is not a value for minute", "a number from 0–59, or *"),
    ("+1 * * * *", 0..2, "`+1` is not a value for minute", "a number from 0–59, or *"),
    ("٣ * * * *", 0..2, "`٣` is not a value for minute", "a number from 0–59, or *"),
    ("ä * * * *", 0..2, "`ä` is not a value for minute", "a number from 0–59, or *"),
    ("99999999999 * * * *", 0..11, "minute must be 0–59, not 99999999999", ""),
    ("   61 * * * *", 3..5, "minute must be 0–59, not 61", ""),
];

/// Cron expressions with misplaced or malformed `L`, `W`, `#` and `H`.
const MARKS: &[Row] = &[
    ("* * W * *", 4..5, "`W` is not a value for day of month", "write 15W for the working day nearest to the 15th"),
    ("* * 32W * *", 4..6, "day of month must be 1–31, not 32", ""),
    ("* * L-31 * *", 6..8, "days before the last must be 1–30, not 31", ""),
    ("* * L-x * *", 6..7, "`x` is not a value for days before the last", "a number from 1–30"),
    (
        "* * 5L * *",
        4..6,
        "`5L` is not a value for day of month",
        "5L, the last Friday, belongs in the day-of-week field",
    ),
    (
        "* * * * L",
        8..9,
        "`L` alone is not a day of week",
        "write 5L for the last Friday, or L in the day-of-month field for the last day",
    ),
    ("* * * * 8L", 8..9, "day of week must be 0–7, not 8", ""),
    ("* * * * 5#6", 10..11, "the number after `#` must be 1–5, not 6", ""),
    ("* * * * 5#0", 10..11, "the number after `#` must be 1–5, not 0", ""),
    ("* * * * 5#", 10..10, "expected a value for the number after `#` here", "a number from 1–5"),
    ("* * * * #3", 8..8, "expected a value for day of week here", "a number from 0–7, a name such as Sun, or *"),
    ("* * * * 5W", 8..10, "`5W` is not a value for day of week", "15W and LW belong in the day-of-month field"),
    ("L * * * *", 0..1, "`L` is not a value for minute", "a number from 0–59, or *"),
    ("* * ÄW * *", 4..6, "`Ä` is not a value for day of month", "a number from 1–31, or *"),
    ("* * * * äL", 8..10, "`ä` is not a value for day of week", "a number from 0–7, a name such as Sun, or *"),
    ("H( * * * *", 0..2, "expected `)`", "write H(0-29)"),
    ("H(5-1) * * * *", 2..5, "the range 5-1 is reversed", "write 5-59,0-1 to go over the end"),
    ("H(0-99) * * * *", 4..6, "minute must be 0–59, not 99", ""),
    ("H(*) * * * *", 2..3, "expected a range such as 0-29", ""),
    ("Hx * * * *", 1..2, "expected nothing more after `H`", "write H, H/15 or H(0-29)"),
    ("H/0 * * * *", 2..3, "a step must be 1–60, not 0", ""),
    ("H/99 * * * *", 2..4, "a step must be 1–60, not 99", ""),
    ("H,5 * * * *", 1..3, "expected nothing more after `H`", "write H, H/15 or H(0-29)"),
    ("5,H * * * *", 2..3, "`H` is not a value for minute", "H must be the only entry of its field"),
    ("* * * * * H", 10..11, "`H` is not a value for year", "the year cannot be given as H"),
];

/// Schedules that are not cron expressions, and zones before them.
const PHRASES: &[Row] = &[
    (
        "*/5 * * * * root /bin/x",
        12..16,
        "`root` is not a value for day of week",
        "write only the schedule; the command belongs in the job's `program`",
    ),
    ("every 10m", 0..9, "expected `@every`", "did you mean `@every 10m`?"),
    ("with 500ms interval", 5..10, "an interval must be whole seconds", ""),
    ("@dayly", 0..6, "`@dayly` is not a schedule", "did you mean `@daily`?"),
    ("@every", 6..6, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("@every 0s", 7..9, "an interval must be whole seconds, at least one", ""),
    ("@every 1.5s", 7..11, "an interval must be whole seconds, at least one", ""),
    ("@every 5 parsecs", 9..16, "`parsecs` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("@every 1h30", 11..11, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("@every -5m", 7..10, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("@daily now", 7..10, "expected nothing more after `@daily`", ""),
    (
        "@",
        0..1,
        "`@` is not a schedule",
        "a cron expression, @daily, @every 15m, with 10m interval, continuously or triggered",
    ),
    (
        "with interval",
        0..13,
        "expected `with SPAN interval`",
        "such as `with 10m interval`: ten minutes after the previous run ended",
    ),
    ("with five minutes interval", 5..17, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("with w interval", 5..6, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    (
        "with 10m",
        0..8,
        "expected `with SPAN interval`",
        "such as `with 10m interval`: ten minutes after the previous run ended",
    ),
    ("dayly", 0..5, "`dayly` is not a schedule", "did you mean `@daily`?"),
    ("continously", 0..11, "`continously` is not a schedule", "did you mean `continuously`?"),
    ("trigered", 0..8, "`trigered` is not a schedule", "did you mean `triggered`?"),
    ("CRON_TZ=", 0..8, "expected `CRON_TZ=Zone` and then a schedule", "such as `CRON_TZ=Europe/Berlin 0 18 * * *`"),
    (
        "CRON_TZ= * * * * *",
        0..8,
        "expected `CRON_TZ=Zone` and then a schedule",
        "such as `CRON_TZ=Europe/Berlin 0 18 * * *`",
    ),
    ("TZ=UTC", 0..6, "expected `TZ=Zone` and then a schedule", "such as `TZ=Europe/Berlin 0 18 * * *`"),
    ("CRON_TZ=UTC 61 * * * *", 12..14, "minute must be 0–59, not 61", ""),
];

/// Named fields, one at a time.
const FIELDS: &[NamedRow] = &[
    ("hour", "24", 0..2, "hour must be 0–23, not 24", ""),
    ("hour", "*/0", 2..3, "a step for hour here must be 1–23, not 0", "`*/5` means every fifth value"),
    ("hour", "*/24", 2..4, "a step for hour here must be 1–23, not 24", "`*/5` means every fifth value"),
    ("hour", "5-3", 0..3, "the range 5-3 is reversed", "write 5-23,0-3 to go over the end"),
    ("hour", "8-10/3", 5..6, "a step for hour here must be 1–2, not 3", "`*/5` means every fifth value"),
    ("day", "0", 0..1, "day must be 1–31, not 0", ""),
    ("day", "1st", 0..3, "expected a weekday after `1st`", "such as 1st mon"),
    (
        "day",
        "6th fri",
        0..7,
        "`6th` is not a place in a month",
        "write 1st, 2nd, 3rd, 4th, 5th or last before a weekday",
    ),
    ("day", "1st moh", 4..7, "`moh` is not a weekday", "such as mon or friday"),
    ("day", "last fry", 5..8, "`fry` is not a weekday", "such as mon or friday"),
    ("day", "2nd 3", 4..5, "`3` is not a weekday", "such as mon or friday"),
    ("day", "last fri sat", 0..12, "`last fri sat` is not a value for day", "a number from 1–31, or *"),
    ("day", "L", 0..1, "`L` is not a value for day", "a number from 1–31, or *"),
    ("day", "15W", 0..3, "`15W` is not a value for day", "a number from 1–31, or *"),
    ("week", "54", 0..2, "week must be 1–53, not 54", ""),
    ("week", "0", 0..1, "week must be 1–53, not 0", ""),
    ("day_of_week", "7", 0..1, "day_of_week must be 0–6, not 7", ""),
    ("day_of_week", "fri-mon", 0..7, "the range fri-mon is reversed", "write fri-sun,mon to go over the end"),
    ("day_of_week", "moh-fri", 0..3, "`moh` is not a value for day_of_week", "did you mean `Mon`?"),
    ("month", "13", 0..2, "month must be 1–12, not 13", ""),
    ("month", "febr", 0..4, "`febr` is not a value for month", "did you mean `Feb`?"),
    ("year", "1969", 0..4, "year must be 1970–2100, not 1969", ""),
    ("year", "2009-fault", 5..10, "`fault` is not a value for year", "a number from 1970–2100, or *"),
    ("minute", "", 0..0, "expected a value for minute here", "a number from 0–59, or *"),
    ("minute", " 5, x", 4..5, "`x` is not a value for minute", "a number from 0–59, or *"),
    ("second", "60", 0..2, "second must be 0–59, not 60", ""),
    ("hours", "5", 0..5, "`hours` is not a cron field", "did you mean `hour`?"),
    (
        "weekday",
        "5",
        0..7,
        "`weekday` is not a cron field",
        "year, month, day, week, day_of_week, hour, minute, second",
    ),
];

/// Spans of time.
const SPANS: &[Row] = &[
    ("", 0..0, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    (" ", 0..1, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("m", 0..1, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("10x", 2..3, "`x` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("10 parsecs", 3..10, "`parsecs` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("1h30", 4..4, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("1h 30", 5..5, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("1..5s", 0..4, "`1..5` is not a number of that size", ""),
    (".", 0..1, "`.` is not a number of that size", ""),
    ("-5m", 0..3, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("+5m", 0..3, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("5m-", 2..3, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("1e3s", 1..2, "`e` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("99999999999999999999s", 0..20, "`99999999999999999999` is not a number of that size", ""),
    ("101y", 3..4, "`y` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("37000d", 0..6, "a span of time can be at most 100 years", ""),
    ("1,5h", 1..4, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("½h", 0..3, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
    ("5 µ", 2..4, "`µ` is not a unit of time", "units are w, d, h, m, s, ms"),
    ("1h,30m", 2..6, "expected a span of time such as `15m`, `1h30m` or `90s`", ""),
];

/// Times of day, dates, points in time and policies.
const TIMES: &[NamedRow] = &[
    ("time", "", 0..0, "expected a time of day", "write hours and minutes, such as 18:00 or 18:00:30"),
    ("time", "24:00", 0..5, "`24:00` is not a time of day", "write hours and minutes, such as 18:00 or 18:00:30"),
    ("time", "18", 0..2, "`18` is not a time of day", "write hours and minutes, such as 18:00 or 18:00:30"),
    ("time", "18:60", 0..5, "`18:60` is not a time of day", "write hours and minutes, such as 18:00 or 18:00:30"),
    ("time", "6pm", 0..3, "`6pm` is not a time of day", "write hours and minutes, such as 18:00 or 18:00:30"),
    (
        "time",
        "18:00:00.5",
        0..10,
        "`18:00:00.5` is not a time of day",
        "write hours and minutes, such as 18:00 or 18:00:30",
    ),
    ("day", "", 0..0, "expected a date", "write year-month-day, such as 2026-03-29"),
    ("day", "2026-02-29", 0..10, "there is no 2026-02-29 in the calendar", ""),
    ("day", "2026-13-01", 0..10, "there is no 2026-13-01 in the calendar", ""),
    ("day", "29.3.2026", 0..9, "`29.3.2026` is not a date", "write year-month-day, such as 2026-03-29"),
    ("day", "2026-3-29", 0..9, "`2026-3-29` is not a date", "write year-month-day, such as 2026-03-29"),
    ("day", "2026-03-29T", 0..11, "`2026-03-29T` is not a date", "write year-month-day, such as 2026-03-29"),
    ("bound", "", 0..0, "expected a point in time", "write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00"),
    (
        "bound",
        "soon",
        0..4,
        "`soon` is not a point in time",
        "write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00",
    ),
    (
        "bound",
        " soon ",
        1..5,
        "`soon` is not a point in time",
        "write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00",
    ),
    (
        "bound",
        "2026-02-30",
        0..10,
        "`2026-02-30` is not a point in time",
        "write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00",
    ),
    (
        "bound",
        "2026-03-29T25:00",
        0..16,
        "`2026-03-29T25:00` is not a point in time",
        "write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00",
    ),
    ("instant", "", 0..0, "expected an instant", "write date, time and offset, such as 2026-03-29T01:30:00Z"),
    (
        "instant",
        "2026-03-29",
        0..10,
        "`2026-03-29` is not an instant",
        "write date, time and offset, such as 2026-03-29T01:30:00Z",
    ),
    (
        "instant",
        "2026-03-29T18:00",
        0..16,
        "`2026-03-29T18:00` is not an instant",
        "write date, time and offset, such as 2026-03-29T01:30:00Z",
    ),
    ("gap", "", 0..0, "expected a gap policy", "next or skip"),
    ("gap", "nxet", 0..4, "`nxet` is not a gap policy", "did you mean `next`?"),
    ("gap", "jump", 0..4, "`jump` is not a gap policy", "next or skip"),
    ("fold", "", 0..0, "expected a fold policy", "first or second or both"),
    ("fold", "frist", 0..5, "`frist` is not a fold policy", "did you mean `first`?"),
    ("fold", "never", 0..5, "`never` is not a fold policy", "first or second or both"),
];

#[track_caller]
fn check(text: &str, error: &TextError, at: &Range<usize>, message: &str, hint: &str) {
    assert_eq!((error.message.as_str(), error.hint.as_deref().unwrap_or_default()), (message, hint), "{text:?}");
    assert_eq!(&error.at, at, "{text:?}");
}

#[test]
fn schedule_errors() {
    for (text, at, message, hint) in VALUES.iter().chain(MARKS).chain(PHRASES) {
        check(text, &ScheduleSpec::parse(text).expect_err(text), at, message, hint);
    }
}

#[test]
fn named_field_errors() {
    for (name, text, at, message, hint) in FIELDS {
        let (index, error) = FieldsExpr::parse(&[(name, text)]).expect_err(text);
        assert_eq!(index, 0);
        check(text, &error, at, message, hint);
    }
    // The mistake names the field that it is in.
    let (index, error) = FieldsExpr::parse(&[("hour", "5"), ("minute", "60")]).expect_err("no such minute");
    assert_eq!(index, 1);
    check("60", &error, &(0..2), "minute must be 0–59, not 60", "");
    let (index, error) = FieldsExpr::parse(&[("hour", "5"), ("hour", "6")]).expect_err("twice");
    assert_eq!(index, 1);
    check("6", &error, &(0..1), "`hour` is given twice", "");
    let names = "year, month, day, week, day_of_week, hour, minute, second";
    let (_, error) = FieldsExpr::parse(&[]).expect_err("nothing given");
    check("", &error, &(0..0), "expected at least one field", names);
}

#[test]
fn span_errors() {
    for (text, at, message, hint) in SPANS {
        check(text, &Span::parse(text).expect_err(text), at, message, hint);
    }
}

#[test]
fn time_errors() {
    for (kind, text, at, message, hint) in TIMES {
        let error = match *kind {
            "time" => TimeOfDay::parse(text).err(),
            "day" => Day::parse(text).err(),
            "bound" => TimeBound::parse(text).err(),
            "instant" => Instant::parse(text).err(),
            "gap" => GapPolicy::parse(text).err(),
            "fold" => FoldPolicy::parse(text).err(),
            _ => panic!("unknown kind {kind}"),
        };
        check(text, &error.expect(text), at, message, hint);
    }
}

/// A megabyte of one kind of nonsense each.
fn long_texts() -> impl Iterator<Item = String> {
    const PIECES: [&str; 20] = [
        "*",
        ",",
        " ",
        "(",
        "9",
        "x",
        "-",
        "/",
        "#",
        "0 ",
        "1s ",
        "1.",
        "L,",
        "H(",
        "*/",
        "ä",
        "\u{1f980}",
        "\0",
        "\n",
        "@",
    ];
    PIECES.iter().map(|piece| piece.repeat((1 << 20) / piece.len()))
}

/// Checks that an error in a long text is short and points into the text.
#[track_caller]
fn check_short(text: &str, error: &TextError) {
    let start: String = text.chars().take(20).collect();
    let length = error.to_string().chars().count();
    assert!(length <= MESSAGE_MAX, "{start:?}…: {length} characters");
    assert!(text.get(error.at.clone()).is_some(), "{start:?}…: {:?} is not inside the text", error.at);
}

#[test]
fn long_schedules_get_short_messages() {
    let starts =
        ["", "0 0 * * ", "0 0 * * H", "@every ", "@every 5", "@", "@daily ", "with ", "CRON_TZ=", "CRON_TZ=UTC "];
    for long in long_texts() {
        let mut texts: Vec<String> = starts.iter().map(|start| format!("{start}{long}")).collect();
        texts.push(format!("with {long} interval"));
        texts.push(format!("{long} 0 * * *"));
        texts.push(format!("CRON_TZ={long} 0 * * * *"));
        for text in texts {
            match ScheduleSpec::parse(&text) {
                Err(error) => check_short(&text, &error),
                // Blanks around a valid schedule are allowed.
                Ok(spec) => assert!(spec.to_string().len() <= MESSAGE_MAX, "{spec} is taken"),
            }
        }
    }
}

#[test]
fn other_long_texts_get_short_messages() {
    for text in long_texts() {
        // A long series of seconds is a valid span.
        if let Err(error) = Span::parse(&text) {
            check_short(&text, &error);
        }
        for error in [
            TimeOfDay::parse(&text).err(),
            Day::parse(&text).err(),
            TimeBound::parse(&text).err(),
            Instant::parse(&text).err(),
            CalendarExpr::parse(&text).err(),
            FieldsExpr::parse(&[("day", &text)]).err().map(|(_, error)| error),
            FieldsExpr::parse(&[(&text, "1")]).err().map(|(_, error)| error),
        ] {
            check_short(&text, &error.expect("no such text is good"));
        }
    }
}

/// Truncations and single changes of valid texts yield a schedule or an error that points into the text.
#[test]
fn damaged_texts_never_panic() {
    let good = [
        "CRON_TZ=Europe/Berlin 30 0 0 31W,LW,L-3 jan-dec/2 5L,sun#2 2026-2030/2",
        "H(0-29)/10 H/2 ? * fri-mon",
        "with 1h 30m interval",
        "@every 1h30m15s",
        "continuously",
    ];
    for text in good {
        for at in 0..=text.len() {
            for piece in ["", " ", ",", "-", "/", "*", "#", "L", "W", "H", "(", ")", "9", "@", "=", "ß", "\0"] {
                for rest in [at, text.len().min(at + 1)] {
                    let damaged = format!("{}{piece}{}", &text[..at], &text[rest..]);
                    if let Err(error) = ScheduleSpec::parse(&damaged) {
                        assert!(damaged.get(error.at.clone()).is_some(), "{damaged:?}: {error:?}");
                    }
                }
            }
        }
    }
}
