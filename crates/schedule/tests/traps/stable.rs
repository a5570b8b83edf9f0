//! What must never change, on no machine and in no version: what `H` stands for, and how far jitter moves a run.
//! A difference here would move people's runs.

use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::{Instant, Schedule, Span, Spec, Surroundings, Zone, Zones};

use crate::{instant, parse};

fn for_job(spec: &Spec, job: &str) -> Schedule {
    let (zones, zone, calendars) = (Zones::bundled(), Zone::utc(), Calendars::new());
    Schedule::compile(spec, Surroundings { zones: &zones, zone: &zone, calendars: &calendars, job }).expect("compiles")
}

fn with_jitter(text: &str, jitter: &str) -> Spec {
    Spec { jitter: Span::parse(jitter).expect(jitter), ..parse(text) }
}

#[test]
fn hashed_fields_depend_on_the_job_alone() {
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
                at = schedule.next(at).expect("goes on");
                let later = schedule.jitter(at);
                assert!(later < spec.jitter, "{later} for {text}");
                assert!(schedule.next(at).is_some_and(|next| at.plus(later) < next), "{later} for {text}");
                assert_eq!(later, schedule.jitter(at));
            }
        }
    }
}
