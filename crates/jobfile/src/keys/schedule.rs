//! Keys of schedules: our own form with one key per kind, and the two forms of Apsis.

use super::{IDENTIFIER, Key, Shape, Table};

/// What `schedule` can be.
pub const WHEN: Shape = Shape::Either(&[
    Shape::Text,
    Shape::Map(&SCHEDULE),
    Shape::Map(&APSIS_TYPED),
    Shape::Map(&APSIS_PAIR),
    Shape::List(&Shape::Either(&[
        Shape::Text,
        Shape::Map(&SCHEDULE),
        Shape::Map(&APSIS_TYPED),
        Shape::Map(&APSIS_PAIR),
    ])),
]);

const ARGS: Shape = Shape::Names { regex: IDENTIFIER, value: &Shape::Value };
const TIMES: Shape = Shape::Either(&[Shape::Time, Shape::Some(&Shape::Time)]);
const MOMENTS: Shape = Shape::Either(&[Shape::Moment, Shape::Some(&Shape::Moment)]);
const DAYS: Shape = Shape::Whole { least: -366, most: 366 };
const AN_EDGE: Shape = Shape::Either(&[Shape::Time, Shape::Map(&EDGE)]);

const ZONE: Key =
    Key::new("timezone", Shape::Text, "IANA zone of dates and times of day.").also(&["tz"]).default("the node's");
const CALENDAR: Key =
    Key::new("calendar", Shape::Text, "Only on these days, such as `Mon-Fri` or `us-business - freeze`.");
const DATE_SHIFT: Key =
    Key::new("date_shift", DAYS, "Plain days from the calendar day to the day meant; belongs to `daily`.").default("0");
const CALENDAR_SHIFT: Key = Key::new(
    "calendar_shift",
    DAYS,
    "Days of the calendar from the calendar day to the day meant; belongs to `daily`.",
)
.also(&["cal_shift"])
.default("0");

/// A schedule in our own form.
pub static SCHEDULE: Table = Table {
    name: "schedule",
    noun: "a schedule",
    doc: "One schedule: exactly one kind (`cron`, `every`, `daily` …, or named cron fields), and what all kinds share.",
    one_of: &[
        &["cron"],
        &["every"],
        &["after"],
        &["daily"],
        &["daily_interval"],
        &["at"],
        &["triggered"],
        &["never"],
        &["reboot"],
        &["year", "month", "day", "week", "day_of_week", "hour", "minute", "second"],
    ],
    keys: &[
        Key::new(
            "cron",
            Shape::Text,
            "A cron expression of 5 to 7 fields, an @-word, or a phrase such as `with 10m interval`.",
        ),
        Key::new("every", Shape::Span, "Every so often, counted from 1970-01-01T00:00:00Z.").also(&["interval"]),
        Key::new("phase", Shape::Span, "Shifts `every`; must be below it.").default("0s"),
        Key::new("after", Shape::Span, "That long after the end of the previous run."),
        Key::new(
            "daily",
            Shape::Either(&[Shape::Time, Shape::Some(&Shape::Time), Shape::Map(&DAILY)]),
            "At times of day.",
        ),
        DATE_SHIFT,
        CALENDAR_SHIFT,
        Key::new("daily_interval", Shape::Map(&DAILY_INTERVAL), "At steps inside a window on each day.")
            .also(&["daily-interval"]),
        Key::new("at", MOMENTS, "At these instants."),
        Key::new("triggered", Shape::True, "Never by time: only when someone starts a run."),
        Key::new("never", Shape::True, "Never at all by itself."),
        Key::new("reboot", Shape::True, "Once when a node starts."),
        Key::new("year", Shape::Value, "Years, such as `2026` or `*/2`."),
        Key::new("month", Shape::Value, "Months 1–12 or names."),
        Key::new("day", Shape::Value, "Days of the month, `last`, `1st mon`, `last fri`."),
        Key::new("week", Shape::Value, "ISO weeks 1–53."),
        Key::new("day_of_week", Shape::Value, "Weekdays by name, or 0–6 with 0 for Monday."),
        Key::new("hour", Shape::Value, "Hours 0–23."),
        Key::new("minute", Shape::Value, "Minutes 0–59."),
        Key::new("second", Shape::Value, "Seconds 0–59."),
        Key::new(
            "name",
            Shape::Text,
            "Id of the schedule, which keeps its place when the timing is edited; otherwise a digest of it is the id.",
        ),
        ZONE,
        Key::new("start", Shape::Moment, "Nothing before it.").also(&["start_date"]),
        Key::new(
            "end",
            Shape::Moment,
            "Nothing after it; a date includes its day, but as APScheduler's `end_date` only its first moment.",
        )
        .also(&["end_date"]),
        Key::new("jitter", Shape::Span, "Runs start up to this much later, spread by job and occurrence.")
            .default("0s"),
        CALENDAR,
        Key::new("gap", Shape::Word(&["next", "skip"]), "What happens to times that a clock change leaves out.")
            .default("next, for fixed times of day"),
        Key::new(
            "fold",
            Shape::Word(&["first", "second", "both"]),
            "What happens to times that a clock change repeats.",
        )
        .default("first, for fixed times of day"),
        Key::new("args", ARGS, "Arguments of its runs."),
        Key::new("enabled", Shape::Bool, "Whether the schedule counts.").default("true"),
        Key::new(
            "stop",
            Shape::Either(&[Shape::Map(&STOP_SCHEDULE), Shape::Map(&APSIS_STOP)]),
            "When its runs are stopped.",
        ),
    ],
};

/// `daily` as a map.
pub static DAILY: Table = Table {
    name: "daily",
    noun: "`daily`",
    doc: "Times of day on the days of a calendar.",
    one_of: &[&["times"]],
    keys: &[
        Key::new("times", TIMES, "One time of day or a list of them.").also(&["time", "daytime", "at"]),
        CALENDAR,
        DATE_SHIFT,
        CALENDAR_SHIFT,
        ZONE,
    ],
};

/// `daily_interval`.
pub static DAILY_INTERVAL: Table = Table {
    name: "daily_interval",
    noun: "`daily_interval`",
    doc: "A window on each day of a calendar, and a step inside it.",
    one_of: &[],
    keys: &[
        Key::new("from", AN_EDGE, "Where the window begins; the first occurrence.").also(&["start"]).required(),
        Key::new("until", AN_EDGE, "Where it ends; not part of it.").also(&["stop"]).required(),
        Key::new("every", Shape::Span, "Elapsed time between occurrences.").also(&["interval"]).required(),
        CALENDAR,
        ZONE,
    ],
};

/// One end of a window.
pub static EDGE: Table = Table {
    name: "edge",
    noun: "one end of a window",
    doc: "A time of day, on a day that may be shifted.",
    one_of: &[],
    keys: &[Key::new("time", Shape::Time, "Time of day.").also(&["daytime"]).required(), DATE_SHIFT, CALENDAR_SHIFT],
};

/// `stop` of a schedule.
pub static STOP_SCHEDULE: Table = Table {
    name: "stop_schedule",
    noun: "`stop`",
    doc: "When the runs of a schedule are stopped.",
    one_of: &[&["after"], &["at"]],
    keys: &[
        Key::new("after", Shape::Span, "That long after the nominal time."),
        Key::new("at", Shape::Time, "At the next such time of day, in the schedule's zone."),
    ],
};

/// A schedule with `type`.
pub static APSIS_TYPED: Table = Table {
    name: "typed_schedule",
    noun: "a schedule with `type`",
    doc: "A schedule as Apsis writes it.",
    one_of: &[],
    keys: &[
        Key::new("type", Shape::Word(&["interval", "daily", "daily-interval", "explicit"]), "Its kind.").required(),
        Key::new("tz", Shape::Text, "IANA zone.").also(&["timezone"]),
        Key::new("daytime", TIMES, "Times of day, for `daily`."),
        CALENDAR,
        DATE_SHIFT,
        CALENDAR_SHIFT,
        Key::new("interval", Shape::Span, "Step, for `interval` and `daily-interval`."),
        Key::new("phase", Shape::Span, "Shift, for `interval`."),
        Key::new("start", AN_EDGE, "Where the window begins, for `daily-interval`."),
        Key::new("stop", AN_EDGE, "Where the window ends, for `daily-interval`."),
        Key::new("times", MOMENTS, "Instants, for `explicit`."),
        Key::new("args", ARGS, "Arguments of its runs."),
        Key::new("enabled", Shape::Bool, "Whether the schedule counts.").default("true"),
        Key::new("name", Shape::Text, "Id of the schedule."),
    ],
};

/// A schedule with its stop beside it.
pub static APSIS_PAIR: Table = Table {
    name: "started_schedule",
    noun: "a schedule with `start` and `stop`",
    doc: "A schedule as Apsis writes it, with when its runs are stopped.",
    one_of: &[],
    keys: &[
        Key::new("start", Shape::Either(&[Shape::Map(&SCHEDULE), Shape::Map(&APSIS_TYPED)]), "When runs start.")
            .required(),
        Key::new(
            "stop",
            Shape::Either(&[Shape::Map(&STOP_SCHEDULE), Shape::Map(&APSIS_STOP)]),
            "When they are stopped.",
        ),
    ],
};

/// A stop with `type`.
pub static APSIS_STOP: Table = Table {
    name: "typed_stop",
    noun: "a stop with `type`",
    doc: "When runs are stopped, as Apsis writes it.",
    one_of: &[],
    keys: &[
        Key::new("type", Shape::Word(&["duration", "daytime"]), "Its kind.").required(),
        Key::new("duration", Shape::Span, "That long after the nominal time, for `duration`."),
        Key::new("daytime", Shape::Time, "At the next such time of day, for `daytime`."),
        Key::new("tz", Shape::Text, "Must be the schedule's zone.").also(&["timezone"]),
    ],
};
