//! What must never change on any machine or in any version: the values of `H`, and how far jitter moves a run. A
//! difference here would move users' runs.

use std::collections::BTreeMap;

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{
    CalendarExpr, CompileContext, DailyInterval, DayShift, FoldPolicy, GapPolicy, Instant, Schedule, ScheduleSpec,
    Span, TimeBound, TimeOfDay, Timing, WindowEdge, Zone, ZoneRegistry,
};

use crate::{instant, parse};

fn for_job(spec: &ScheduleSpec, job: &str) -> Schedule {
    let (zones, zone, calendars) = (ZoneRegistry::bundled(), Zone::utc(), CalendarSet::new());
    Schedule::compile(spec, CompileContext { zones: &zones, zone: &zone, calendars: &calendars, job })
        .expect("compiles")
}

fn with_jitter(text: &str, jitter: &str) -> ScheduleSpec {
    ScheduleSpec { jitter: Span::parse(jitter).expect(jitter), ..parse(text) }
}

#[test]
fn hashed_fields_depend_only_on_the_job() {
    let after = instant("2026-01-01T00:00:00Z");
    for (text, job, expected) in [
        ("H * * * *", "reports/prices", "2026-01-01T00:40:00Z"),
        ("H * * * *", "backup", "2026-01-01T00:25:00Z"),
        ("H H * * *", "reports/prices", "2026-01-01T14:40:00Z"),
        ("H H * * *", "backup", "2026-01-01T20:25:00Z"),
        ("H H(0-5) * * *", "backup", "2026-01-01T02:25:00Z"),
        ("H/15 * * * *", "backup", "2026-01-01T00:10:00Z"),
        ("H H H * *", "backup", "2026-01-12T20:25:00Z"),
        ("H H H H *", "backup", "2026-02-12T20:25:00Z"),
        ("H H * * H", "backup", "2026-01-05T20:25:00Z"),
        ("H H H * * * *", "backup", "2026-01-01T20:25:15Z"),
    ] {
        let found = for_job(&parse(text), job).next(after).map(|at| at.to_string());
        assert_eq!(found.as_deref(), Some(expected), "{text} for {job}");
    }
}

#[test]
fn hashed_fields_stay_in_their_range() {
    for number in 0..500 {
        let job = format!("job-{number}");
        let first =
            for_job(&parse("H(10-19) H(1-3) H * *"), &job).next(instant("2026-01-01T00:00:00Z")).expect("monthly");
        let minutes = first.secs() / 60;
        assert!((10..=19).contains(&(minutes % 60)), "{first}");
        assert!((1..=3).contains(&(minutes / 60 % 24)), "{first}");
        assert!(first < instant("2026-01-29T00:00:00Z"), "{first} is not in every month");
    }
}

#[test]
fn sunday_as_seven_in_a_hashed_range() {
    // 2026-01-04 is a Sunday; 7 is another name for it.
    let found = for_job(&parse("0 0 * * H(7)"), "backup").next(instant("2026-01-01T00:00:00Z"));
    assert_eq!(found, Some(instant("2026-01-04T00:00:00Z")));
}

#[test]
fn jitter_depends_on_job_and_occurrence() {
    let occurrence = instant("2026-01-01T00:00:00Z");
    let day_later = instant("2026-01-02T00:00:00Z");
    let spec = with_jitter("@daily", "1h");
    for (job, at, expected) in [
        ("reports/prices", occurrence, "45m27s423ms"),
        ("reports/prices", day_later, "39m50s869ms"),
        ("backup", occurrence, "18m16s636ms"),
    ] {
        assert_eq!(for_job(&spec, job).jitter(at).to_string(), expected, "{job} at {at}");
    }
    assert_eq!(for_job(&parse("@daily"), "backup").jitter(occurrence), Span::ZERO);
}

#[test]
fn jitter_stays_below_the_next_occurrence() {
    for (text, jitter) in [("* * * * *", "1h"), ("@every 1s", "1h"), ("*/5 * * * * * *", "30s"), ("@hourly", "1s")] {
        let spec = with_jitter(text, jitter);
        for job in ["a", "b", "c", "reports/prices"] {
            let schedule = for_job(&spec, job);
            let mut at = Instant::EPOCH;
            for _ in 0..200 {
                at = schedule.next(at).expect("there is a next occurrence");
                let later = schedule.jitter(at);
                assert!(later < spec.jitter, "{later} for {text}");
                assert!(schedule.next(at).is_some_and(|next| at.plus(later) < next), "{later} for {text}");
                assert_eq!(later, schedule.jitter(at));
            }
        }
    }
}

/// Ids of unnamed schedules. Never edit a row: a stored cursor belongs to an id, and a schedule whose id changes starts
/// over.
#[test]
fn ids_never_change() {
    let spec = |edit: &dyn Fn(&mut ScheduleSpec)| {
        let mut spec = parse("0 18 * * 1-5");
        edit(&mut spec);
        spec
    };
    let args = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
    let time = |text: &str| TimeOfDay::parse(text).expect(text);
    let bound = |text: &str| TimeBound::parse(text).expect(text);
    let edge = |text: &str, days| WindowEdge { time: time(text), shift: DayShift { calendar_days: 0, days } };
    let window = DailyInterval { from: edge("22:00", 0), until: edge("02:00", 1), interval: Span::from_secs(600) };
    let fields = FieldsExpr::parse(&[("day", "last fri"), ("hour", "*/3")]).expect("good");
    let ids = [
        spec(&|_| {}).digest(&BTreeMap::new()),
        spec(&|_| {}).digest(&args),
        spec(&|spec| spec.zone = Some("Europe/Berlin".to_owned())).digest(&args),
        spec(&|spec| spec.start = Some(bound("2026-01-01"))).digest(&args),
        spec(&|spec| spec.end = Some(bound("2026-01-01T18:00"))).digest(&args),
        spec(&|spec| spec.calendar = Some(CalendarExpr::parse("Mon-Fri - holidays").expect("good"))).digest(&args),
        spec(&|spec| spec.gap = Some(GapPolicy::Skip)).digest(&args),
        spec(&|spec| spec.fold = Some(FoldPolicy::Both)).digest(&args),
        spec(&|spec| spec.timing = Timing::Fields(fields.clone())).digest(&args),
        spec(&|spec| spec.timing = Timing::daily(vec![time("18:00"), time("09:00")], DayShift::default()))
            .digest(&args),
        spec(&|spec| spec.timing = Timing::DailyInterval(window.clone())).digest(&args),
        spec(&|spec| spec.timing = Timing::at(vec![bound("2026-02-01T00:00:00Z"), bound("2026-01-01")])).digest(&args),
        parse("H H * * *").digest(&args),
        parse("@every 90s").digest(&args),
        parse("with 10m interval").digest(&args),
        parse("continuously").digest(&args),
        parse("triggered").digest(&args),
        parse("@never").digest(&args),
        parse("@reboot").digest(&args),
    ];
    assert_eq!(ids, IDS);
    let jittered = spec(&|spec| spec.jitter = Span::from_secs(60));
    assert_eq!(jittered.digest(&args), ids[1], "jitter does not count");
}

const IDS: [&str; 19] = [
    "6d48e582c10246cf",
    "c9c88391494c0d2d",
    "7d1deb545ae90e7b",
    "ede03b2c36c982e2",
    "6ea79dc840b86203",
    "fe08c8d4c1f2b313",
    "31d090fab74f3d15",
    "0cff9fb4ec5c6f4b",
    "39d6a6e38282218c",
    "b3ed05254122bdb2",
    "f071a891ca9e7889",
    "71a254a5206511cb",
    "5daa65257ea2e881",
    "e840eed0182e7e27",
    "733b40b9ecfa3629",
    "ac1b56569e34172d",
    "d8bc690ed1344bfc",
    "d522e35965701358",
    "8e75f830f1384d43",
];
