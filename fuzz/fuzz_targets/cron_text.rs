//! Arbitrary text as a schedule: either an error with a position, or a schedule whose canonical text is equivalent and
//! that keeps its guarantees from any instant.

#![no_main]

use cronhold_fuzz::{check_mistake, check_schedule, compile, zones};
use cronhold_schedule::{Instant, ScheduleSpec, Zone};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (i64, &str)| {
    let (at, text) = input;
    let spec = match ScheduleSpec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return check_mistake(text, &error),
    };
    let canonical = spec.to_string();
    assert_eq!(ScheduleSpec::parse(&canonical).as_ref(), Ok(&spec), "{text:?} prints as {canonical:?}");
    assert_eq!(ScheduleSpec::parse(&canonical).map(|again| again.to_string()), Ok(canonical));
    let zone = match at & 3 {
        0 => zones().get("Europe/Berlin").expect("known"),
        1 => zones().get("Australia/Lord_Howe").expect("known"),
        _ => Zone::utc(),
    };
    // The years that schedules cover, and some beyond.
    let at = Instant::from_micros(at % (150 * 366 * 86_400 * 1_000_000));
    match compile(&spec, &zone) {
        Ok(schedule) => check_schedule(&schedule, at),
        Err(error) => assert!(error.error.to_string().chars().count() < 600),
    }
});
