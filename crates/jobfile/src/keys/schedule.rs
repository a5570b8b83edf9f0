//! Keys of schedules: our own form with one key per kind, and the two forms of Apsis. These tables describe the keys for
//! the schema and the reference; `read/schedule.rs`, `read/timing.rs` and `read/apsis.rs` read them, because most rules of
//! a schedule involve several keys. The schedule crate writes them, because it derives the ids of schedules from that
//! text.

use cronhold_core::job::StopSchedule;

use super::codec;
use super::record::key;
use super::variant::variants;
use super::{IDENTIFIER, KeySpec, KeyTable, ValueShape};

/// The values of `schedule`.
pub const WHEN: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Map(&SCHEDULE),
    ValueShape::Map(&APSIS_TYPED),
    ValueShape::Map(&APSIS_PAIR),
    ValueShape::List(&ValueShape::Either(&[
        ValueShape::Text,
        ValueShape::Map(&SCHEDULE),
        ValueShape::Map(&APSIS_TYPED),
        ValueShape::Map(&APSIS_PAIR),
    ])),
]);

const ARGS: ValueShape = ValueShape::Names { regex: IDENTIFIER, value: &ValueShape::Value };
const TIMES: ValueShape = ValueShape::Either(&[ValueShape::Time, ValueShape::Some(&ValueShape::Time)]);
const MOMENTS: ValueShape = ValueShape::Either(&[ValueShape::Moment, ValueShape::Some(&ValueShape::Moment)]);
const DAYS: ValueShape = ValueShape::Whole { least: -366, most: 366 };
const AN_EDGE: ValueShape = ValueShape::Either(&[ValueShape::Time, ValueShape::Map(&EDGE)]);

const ZONE: KeySpec = KeySpec::new("timezone", ValueShape::Text, "IANA zone of dates and times of day.")
    .also(&["tz"])
    .default("the node's");
const CALENDAR: KeySpec =
    KeySpec::new("calendar", ValueShape::Text, "Only on these days, such as `Mon-Fri` or `us-business - freeze`.");
const DATE_SHIFT: KeySpec =
    KeySpec::new("date_shift", DAYS, "Days from the calendar day to the day of the run; only with `daily`.")
        .default("0");
const CALENDAR_SHIFT: KeySpec = KeySpec::new(
    "calendar_shift",
    DAYS,
    "Calendar days from the calendar day to the day of the run; only with `daily`.",
)
.also(&["cal_shift"])
.default("0");

/// A schedule in our own form.
pub static SCHEDULE: KeyTable = KeyTable {
    name: "schedule",
    noun: "a schedule",
    doc: "One schedule: exactly one kind (`cron`, `every`, `daily` …, or named cron fields), and keys that all kinds share.",
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
        KeySpec::new(
            "cron",
            ValueShape::Text,
            "A cron expression of 5 to 7 fields, an @-word, or a phrase such as `with 10m interval`.",
        ),
        KeySpec::new("every", ValueShape::Span, "Fixed interval, counted from 1970-01-01T00:00:00Z.")
            .also(&["interval"]),
        KeySpec::new("phase", ValueShape::Span, "Shifts `every`; must be below it.").default("0s"),
        KeySpec::new("after", ValueShape::Span, "Interval from the end of the previous run to the next start."),
        KeySpec::new(
            "daily",
            ValueShape::Either(&[ValueShape::Time, ValueShape::Some(&ValueShape::Time), ValueShape::Map(&DAILY)]),
            "At times of day.",
        ),
        DATE_SHIFT,
        CALENDAR_SHIFT,
        KeySpec::new("daily_interval", ValueShape::Map(&DAILY_INTERVAL), "At steps inside a window on each day.")
            .also(&["daily-interval"]),
        KeySpec::new("at", MOMENTS, "At these instants."),
        KeySpec::new("triggered", ValueShape::True, "Never by time, only by hand, by an action or by a message."),
        KeySpec::new("never", ValueShape::True, "Never."),
        KeySpec::new("reboot", ValueShape::True, "Once when a node starts."),
        KeySpec::new("year", ValueShape::Value, "Years, such as `2026` or `*/2`."),
        KeySpec::new("month", ValueShape::Value, "Months 1–12 or names."),
        KeySpec::new("day", ValueShape::Value, "Days of the month, `last`, `1st mon`, `last fri`."),
        KeySpec::new("week", ValueShape::Value, "ISO weeks 1–53."),
        KeySpec::new("day_of_week", ValueShape::Value, "Weekdays by name, or 0–6 with 0 for Monday."),
        KeySpec::new("hour", ValueShape::Value, "Hours 0–23."),
        KeySpec::new("minute", ValueShape::Value, "Minutes 0–59."),
        KeySpec::new("second", ValueShape::Value, "Seconds 0–59."),
        KeySpec::new(
            "name",
            ValueShape::Text,
            "Id of the schedule. A schedule with a name keeps its position when its timing changes; without one, the id is \
             a digest of the timing.",
        ),
        ZONE,
        KeySpec::new("start", ValueShape::Moment, "No occurrence before this moment.").also(&["start_date"]),
        KeySpec::new(
            "end",
            ValueShape::Moment,
            "No occurrence after this moment. A date includes the whole day; as APScheduler's `end_date` it includes only \
             its first moment.",
        )
        .also(&["end_date"]),
        KeySpec::new("jitter", ValueShape::Span, "Longest random delay of a start, derived from job and occurrence.")
            .default("0s"),
        CALENDAR,
        KeySpec::new(
            "gap",
            ValueShape::Word(&["next", "skip"]),
            "What happens to local times that a clock change skips.",
        )
        .default("next, for fixed times of day"),
        KeySpec::new(
            "fold",
            ValueShape::Word(&["first", "second", "both"]),
            "What happens to local times that a clock change repeats.",
        )
        .default("first, for fixed times of day"),
        KeySpec::new("args", ARGS, "Arguments of its runs."),
        KeySpec::new("enabled", ValueShape::Bool, "Whether the schedule is in effect.").default("true"),
        KeySpec::new(
            "stop",
            ValueShape::Either(&[ValueShape::Map(&STOP_SCHEDULE), ValueShape::Map(&APSIS_STOP)]),
            "When its runs are stopped.",
        ),
    ],
};

/// `daily` as a map.
pub static DAILY: KeyTable = KeyTable {
    name: "daily",
    noun: "`daily`",
    doc: "Times of day on the days of a calendar.",
    one_of: &[&["times"]],
    keys: &[
        KeySpec::new("times", TIMES, "One time of day or a list of them.").also(&["time", "daytime", "at"]),
        CALENDAR,
        DATE_SHIFT,
        CALENDAR_SHIFT,
        ZONE,
    ],
};

/// `daily_interval`.
pub static DAILY_INTERVAL: KeyTable = KeyTable {
    name: "daily_interval",
    noun: "`daily_interval`",
    doc: "A window on each day of a calendar, and a step inside it.",
    one_of: &[],
    keys: &[
        KeySpec::new("from", AN_EDGE, "Start of the window, which is the first occurrence.")
            .also(&["start"])
            .required(),
        KeySpec::new("until", AN_EDGE, "End of the window, exclusive.").also(&["stop"]).required(),
        KeySpec::new("every", ValueShape::Span, "Elapsed time between occurrences.").also(&["interval"]).required(),
        CALENDAR,
        ZONE,
    ],
};

/// One end of a window.
pub static EDGE: KeyTable = KeyTable {
    name: "edge",
    noun: "one end of a window",
    doc: "A time of day, on a day that may be shifted.",
    one_of: &[],
    keys: &[
        KeySpec::new("time", ValueShape::Time, "Time of day.").also(&["daytime"]).required(),
        DATE_SHIFT,
        CALENDAR_SHIFT,
    ],
};

variants! {
    /// `stop` of a schedule.
    pub static STOP_SCHEDULE: StopSchedule = "stop_schedule", "`stop`", "When the runs of a schedule are stopped.";
    static STOP_SCHEDULE_MAP;
    After(span) = codec::SOME_SPAN => key("after", "Time from the nominal time to the stop.");
    At(time) = codec::TIME => key("at", "At the next such time of day, in the schedule's zone.");
}

/// A schedule with `type`.
pub static APSIS_TYPED: KeyTable = KeyTable {
    name: "typed_schedule",
    noun: "a schedule with `type`",
    doc: "A schedule as Apsis writes it.",
    one_of: &[],
    keys: &[
        KeySpec::new(
            "type",
            ValueShape::Word(&["interval", "daily", "daily-interval", "explicit"]),
            "Kind of the schedule.",
        )
        .required(),
        KeySpec::new("tz", ValueShape::Text, "IANA zone.").also(&["timezone"]),
        KeySpec::new("daytime", TIMES, "Times of day, for `daily`."),
        CALENDAR,
        DATE_SHIFT,
        CALENDAR_SHIFT,
        KeySpec::new("interval", ValueShape::Span, "Step, for `interval` and `daily-interval`."),
        KeySpec::new("phase", ValueShape::Span, "Shift, for `interval`."),
        KeySpec::new("start", AN_EDGE, "Where the window begins, for `daily-interval`."),
        KeySpec::new("stop", AN_EDGE, "Where the window ends, for `daily-interval`."),
        KeySpec::new("times", MOMENTS, "Instants, for `explicit`."),
        KeySpec::new("args", ARGS, "Arguments of its runs."),
        KeySpec::new("enabled", ValueShape::Bool, "Whether the schedule is in effect.").default("true"),
        KeySpec::new("name", ValueShape::Text, "Id of the schedule."),
    ],
};

/// A schedule with its stop beside it.
pub static APSIS_PAIR: KeyTable = KeyTable {
    name: "started_schedule",
    noun: "a schedule with `start` and `stop`",
    doc: "A schedule as Apsis writes it, with when its runs are stopped.",
    one_of: &[],
    keys: &[
        KeySpec::new(
            "start",
            ValueShape::Either(&[ValueShape::Map(&SCHEDULE), ValueShape::Map(&APSIS_TYPED)]),
            "When runs start.",
        )
        .required(),
        KeySpec::new(
            "stop",
            ValueShape::Either(&[ValueShape::Map(&STOP_SCHEDULE), ValueShape::Map(&APSIS_STOP)]),
            "When they are stopped.",
        ),
    ],
};

/// A stop with `type`.
pub static APSIS_STOP: KeyTable = KeyTable {
    name: "typed_stop",
    noun: "a stop with `type`",
    doc: "When runs are stopped, as Apsis writes it.",
    one_of: &[],
    keys: &[
        KeySpec::new("type", ValueShape::Word(&["duration", "daytime"]), "Kind of the stop.").required(),
        KeySpec::new("duration", ValueShape::Span, "Time from the nominal time to the stop, for `duration`."),
        KeySpec::new("daytime", ValueShape::Time, "At the next such time of day, for `daytime`."),
        KeySpec::new("tz", ValueShape::Text, "Must be the schedule's zone.").also(&["timezone"]),
    ],
};
