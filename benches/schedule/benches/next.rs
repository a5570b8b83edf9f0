//! How fast schedules answer, side by side with croner in the same run, so that the ratio means something on any machine.
//!
//! What we hold ourselves to: `next` within 300 ns in UTC and 600 ns in a zone with clock changes, no case over 50 µs,
//! parsing within 5 µs. Each answer is asked from instants spread over a year, so that no single lucky instant counts.

use croner::parser::{CronParser, Seconds, Year};
use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{CalendarExpr, Instant, Schedule, Spec, Surroundings, Timing, Zone, Zones};
use divan::Bencher;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Expressions that people write. Both sides read them alike: five fields.
const TYPICAL: [&str; 6] = ["* * * * *", "*/15 * * * *", "30 2 * * *", "0 18 * * 1-5", "0 0 1 * *", "0 9 L * *"];
/// Expressions whose next occurrence is far away or does not exist: seven fields, from second to year.
const FAR: [&str; 4] = ["0 0 0 29 2 * *", "0 0 0 29 2 * 2096", "0 0 0 * 2 5#5 *", "0 0 0 31 2 * *"];
const BERLIN: &str = "Europe/Berlin";
/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;
/// A step that visits all hours and days of a year.
const STEP: i64 = 7 * 3600 + 1234;
/// How many instants are asked from before they begin again.
const INSTANTS: i64 = 1200;

fn main() {
    divan::main();
}

/// Instants over a year, again and again.
fn instants() -> impl FnMut() -> i64 {
    let mut turn = 0;
    move || {
        turn = (turn + 1) % INSTANTS;
        START + turn * STEP
    }
}

fn compile(spec: &Spec, zones: &Zones, zone: &Zone) -> Schedule {
    let calendars = Calendars::new();
    Schedule::compile(spec, Surroundings { zones, zone, calendars: &calendars, job: "bench" }).expect("compiles")
}

fn ours(text: &str, zone: &str) -> Schedule {
    let zones = Zones::bundled();
    compile(&Spec::parse(text).expect(text), &zones, &zones.get(zone).expect(zone))
}

fn theirs(text: &str) -> croner::Cron {
    let (seconds, year) = match text.split(' ').count() {
        5 => (Seconds::Disallowed, Year::Disallowed),
        _ => (Seconds::Required, Year::Required),
    };
    CronParser::builder().seconds(seconds).year(year).build().parse(text).expect(text)
}

fn bench_ours(bencher: Bencher<'_, '_>, schedule: &Schedule) {
    bencher.with_inputs(instants()).bench_local_values(|at| schedule.next(Instant::from_secs(at)));
}

fn bench_theirs(bencher: Bencher<'_, '_>, text: &str, zone: TimeZone) {
    let cron = theirs(text);
    let mut next = instants();
    let inputs = move || moment(next(), &zone);
    bencher.with_inputs(inputs).bench_local_values(|at| cron.find_next_occurrence(&at, false));
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("known")
}

/// An instant as croner takes it.
fn moment(secs: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_second(secs).expect("in range").to_zoned(zone.clone())
}

#[divan::bench_group]
mod next_in_utc {
    use super::{Bencher, TYPICAL};

    #[divan::bench(args = TYPICAL)]
    fn cronhold(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_ours(bencher, &super::ours(text, "UTC"));
    }

    #[divan::bench(args = TYPICAL)]
    fn croner(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_theirs(bencher, text, super::zone("UTC"));
    }
}

#[divan::bench_group]
mod next_in_berlin {
    use super::{BERLIN, Bencher, TYPICAL};

    #[divan::bench(args = TYPICAL)]
    fn cronhold(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_ours(bencher, &super::ours(text, BERLIN));
    }

    #[divan::bench(args = TYPICAL)]
    fn croner(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_theirs(bencher, text, super::zone(BERLIN));
    }
}

#[divan::bench_group]
mod next_far_away_in_berlin {
    use super::{BERLIN, Bencher, FAR};

    #[divan::bench(args = FAR)]
    fn cronhold(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_ours(bencher, &super::ours(text, BERLIN));
    }

    #[divan::bench(args = FAR)]
    fn croner(bencher: Bencher<'_, '_>, text: &str) {
        super::bench_theirs(bencher, text, super::zone(BERLIN));
    }
}

/// The worst that each part of a search can be made to do. croner has nothing like it to compare.
#[divan::bench_group]
mod worst_in_berlin {
    use super::{BERLIN, Bencher, CalendarExpr, FieldsExpr, Spec, Timing, Zones};

    fn bench(bencher: Bencher<'_, '_>, spec: &Spec) {
        let zones = Zones::bundled();
        super::bench_ours(bencher, &super::compile(spec, &zones, &zones.get(BERLIN).expect("known")));
    }

    fn bench_fields(bencher: Bencher<'_, '_>, fields: &[(&str, &str)]) {
        bench(bencher, &Spec::new(Timing::Fields(FieldsExpr::parse(fields).expect("good fields"))));
    }

    fn bench_on(bencher: Bencher<'_, '_>, text: &str, calendar: &str) {
        let calendar = Some(CalendarExpr::parse(calendar).expect("a good calendar"));
        bench(bencher, &Spec { calendar, ..Spec::parse(text).expect("a good schedule") });
    }

    #[divan::bench]
    fn leap_day_on_a_monday(bencher: Bencher<'_, '_>) {
        bench_fields(bencher, &[("month", "2"), ("day", "29"), ("day_of_week", "mon")]);
    }

    #[divan::bench]
    fn leap_day_in_a_week_that_never_has_it(bencher: Bencher<'_, '_>) {
        bench_fields(bencher, &[("month", "2"), ("day", "29"), ("week", "30")]);
    }

    #[divan::bench]
    fn months_that_never_have_the_first_week(bencher: Bencher<'_, '_>) {
        bench_fields(bencher, &[("month", "2-11"), ("week", "1")]);
    }

    #[divan::bench]
    fn sundays_on_a_calendar_of_mondays(bencher: Bencher<'_, '_>) {
        bench_on(bencher, "0 0 * * sun", "Mon");
    }

    #[divan::bench]
    fn thursdays_by_interval_on_a_calendar_of_mondays(bencher: Bencher<'_, '_>) {
        bench_on(bencher, "@every 7d", "Mon");
    }
}

#[divan::bench_group]
mod prev_in_berlin {
    use super::{BERLIN, Bencher, Instant, TYPICAL};

    #[divan::bench(args = TYPICAL)]
    fn cronhold(bencher: Bencher<'_, '_>, text: &str) {
        let schedule = super::ours(text, BERLIN);
        bencher.with_inputs(super::instants()).bench_local_values(|at| schedule.prev(Instant::from_secs(at)));
    }

    #[divan::bench(args = TYPICAL)]
    fn croner(bencher: Bencher<'_, '_>, text: &str) {
        let cron = super::theirs(text);
        let zone = super::zone(BERLIN);
        let mut next = super::instants();
        let inputs = move || super::moment(next(), &zone);
        bencher.with_inputs(inputs).bench_local_values(|at| cron.find_previous_occurrence(&at, false));
    }
}

#[divan::bench_group]
mod parse {
    use super::{CronParser, Spec, TYPICAL};

    #[divan::bench(args = TYPICAL)]
    fn cronhold(text: &str) -> Spec {
        Spec::parse(text).expect("good")
    }

    #[divan::bench(args = TYPICAL)]
    fn croner(text: &str) -> croner::Cron {
        CronParser::new().parse(text).expect("good")
    }

    /// Nothing longer is likely to be written.
    #[divan::bench]
    fn cronhold_long() -> Spec {
        Spec::parse("0,15,30,45 1-5,10-12,20-22/2 1,15,31W,LW,L-3 jan-mar,jun,sep-dec mon-wed,5#3,sunL 2026-2040/2")
            .expect("good")
    }
}

#[divan::bench]
fn compile_in_berlin(bencher: Bencher<'_, '_>) {
    let zones = Zones::bundled();
    let zone = zones.get(BERLIN).expect("known");
    let spec = Spec::parse("0 18 * * 1-5").expect("good");
    bencher.bench_local(|| compile(&spec, &zones, &zone));
}
