//! Schedules of every kind with arbitrary parts, in any zone, under any policy, from any instant.

#![no_main]

use arbitrary::Arbitrary;
use cronhold_fuzz::{check_schedule, compile, zone};
use cronhold_schedule::cron::{CronExpr, FieldsExpr};
use cronhold_schedule::{
    CalendarExpr, DailyInterval, DailyTiming, Day, DayShift, FoldPolicy, GapPolicy, Instant, ScheduleSpec, Span,
    TimeBound, TimeOfDay, Timing, WallTime, WindowEdge,
};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    kind: Kind,
    zone: u16,
    gap: Option<bool>,
    fold: Option<u8>,
    start: Option<Point>,
    end: Option<Point>,
    jitter: u16,
    calendar: Option<u8>,
    from: u32,
}

#[derive(Debug, Arbitrary)]
enum Kind {
    Cron { minute: Part, hour: Part, day: Part, day_kind: u8, month: Part, weekday: Part, weekday_kind: u8, year: Part },
    Fields { minute: Part, hour: Part, day: Part, week: Part, weekday: Part },
    Every { interval: u32, phase: u32 },
    After { interval: u32 },
    Daily { times: Vec<u32>, shift: (i8, i8) },
    DailyInterval { from: (u32, i8, i8), until: (u32, i8, i8), interval: u16 },
    At(Vec<Point>),
}

#[derive(Debug, Arbitrary)]
enum Point {
    Instant(u32),
    Local(u32),
    Day(u16),
}

#[derive(Debug, Arbitrary)]
enum Part {
    Any,
    One(u8),
    Step(u8),
    Range(u8, u8, u8),
}

impl Part {
    fn text(&self, min: u32, max: u32) -> String {
        let value = |value: u8| min + u32::from(value) % (max - min + 1);
        match self {
            Self::Any => "*".to_owned(),
            Self::One(one) => value(*one).to_string(),
            Self::Step(step) => format!("*/{}", 1 + u32::from(*step) % (max - min)),
            Self::Range(a, b, step) => {
                let (first, last) = (value(*a).min(value(*b)), value(*a).max(value(*b)));
                format!("{first}-{last}/{}", 1 + u32::from(*step) % (last - first).max(1))
            }
        }
    }
}

impl Point {
    fn bound(&self) -> TimeBound {
        match self {
            Self::Instant(secs) => TimeBound::Instant(Instant::from_secs(i64::from(*secs))),
            Self::Local(secs) => TimeBound::Local(WallTime(i64::from(*secs))),
            Self::Day(day) => TimeBound::Day(Day(i32::from(*day))),
        }
    }
}

impl Kind {
    fn timing(&self) -> Timing {
        let secs = |secs: u32| Span::from_secs(u64::from(secs));
        let edge = |(second, days, calendar_days): (u32, i8, i8)| WindowEdge {
            time: TimeOfDay(second % 86_400),
            shift: DayShift { days: i32::from(days), calendar_days: i32::from(calendar_days) },
        };
        match self {
            Self::Cron { minute, hour, day, day_kind, month, weekday, weekday_kind, year } => {
                let day = match day_kind % 6 {
                    0 => "L".to_owned(),
                    1 => "LW".to_owned(),
                    2 => format!("{}W", 1 + day_kind % 31),
                    3 => format!("L-{}", 1 + day_kind % 30),
                    _ => day.text(1, 31),
                };
                let weekday = match weekday_kind % 5 {
                    0 => format!("{}L", weekday_kind % 7),
                    1 => format!("{}#{}", weekday_kind % 7, 1 + weekday_kind % 5),
                    _ => weekday.text(0, 6),
                };
                let (minute, hour, month) = (minute.text(0, 59), hour.text(0, 23), month.text(1, 12));
                let text = format!("{minute} {hour} {day} {month} {weekday} {}", year.text(1970, 2099));
                Timing::Cron(CronExpr::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")))
            }
            Self::Fields { minute, hour, day, week, weekday } => {
                let texts = [
                    ("minute", minute.text(0, 59)),
                    ("hour", hour.text(0, 23)),
                    ("day", day.text(1, 31)),
                    ("week", week.text(1, 53)),
                    ("day_of_week", weekday.text(0, 6)),
                ];
                let texts = texts.each_ref().map(|(name, text)| (*name, text.as_str()));
                Timing::Fields(FieldsExpr::parse(&texts).unwrap_or_else(|error| panic!("{texts:?}: {error:?}")))
            }
            Self::Every { interval, phase } => Timing::Every { interval: secs(*interval), phase: secs(*phase) },
            Self::After { interval } => Timing::After { interval: secs(*interval) },
            Self::Daily { times, shift } => Timing::Daily(DailyTiming {
                times: times.iter().map(|second| TimeOfDay(second % 86_400)).collect(),
                shift: DayShift { days: i32::from(shift.0), calendar_days: i32::from(shift.1) },
            }),
            Self::DailyInterval { from, until, interval } => Timing::DailyInterval(DailyInterval {
                from: edge(*from),
                until: edge(*until),
                interval: secs(u32::from(*interval)),
            }),
            Self::At(points) => Timing::At(points.iter().map(Point::bound).collect()),
        }
    }
}

const CALENDARS: [&str; 6] = ["Mon-Fri", "Sat,Sun", "business - holidays", "holidays", "none-at-all", "!Mon"];

fuzz_target!(|input: Input| {
    let zone = zone(input.zone);
    let mut spec = ScheduleSpec::new(input.kind.timing());
    spec.gap = input.gap.map(|next| if next { GapPolicy::Next } else { GapPolicy::Skip });
    spec.fold = input.fold.map(|fold| [FoldPolicy::First, FoldPolicy::Second, FoldPolicy::Both][usize::from(fold % 3)]);
    spec.start = input.start.as_ref().map(Point::bound);
    spec.end = input.end.as_ref().map(Point::bound);
    spec.jitter = Span::from_secs(u64::from(input.jitter));
    let calendar = input.calendar.map(|index| CALENDARS[usize::from(index) % CALENDARS.len()]);
    spec.calendar = calendar.map(|text| CalendarExpr::parse(text).expect("a good expression"));
    if let Ok(schedule) = compile(&spec, &zone) {
        check_schedule(&schedule, Instant::from_secs(i64::from(input.from)));
        // Bugs are most likely near offset changes, so start around the next one.
        if let Some(change) = zone.changes(i64::from(input.from), i64::MAX).next() {
            for near in [-3600, -1, 0, 1, 3600] {
                check_schedule(&schedule, Instant::from_secs(change.at + near));
            }
        }
    }
});
