//! Schedules other than cron with random parts, in random zones, near offset changes and far from them: each kind is
//! compared with a naive definition.

use std::collections::BTreeSet;

use cronhold_schedule::{
    CalendarExpr, DailyInterval, DailyTiming, Day, DayShift, FoldPolicy, GapPolicy, Instant, ScheduleSpec, Span,
    TimeBound, TimeOfDay, Timing, WallTime, WindowEdge, ZoneRegistry,
};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use crate::dice::Dice;
use crate::oracle::{self, ZoneCase};
use crate::{backwards, check_mirror, compile, forwards, show_difference};

/// Cases per kind.
const TURNS: usize = 5000;
const DAY: i64 = 86_400;
/// 1970-02-01 to 2099-12-01, so that calendars and shifts stay within the known range.
const RANGE: (i64, i64) = (31 * DAY, 4_099_766_400);

/// Days of the week as a calendar expression and as a predicate.
#[derive(Debug, Clone)]
struct Week {
    text: String,
    /// Monday is 0.
    days: BTreeSet<i8>,
}

impl Week {
    fn random(dice: &mut Dice) -> Self {
        let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let mut days: BTreeSet<i8> = (0..7).filter(|_| dice.one_in(2)).collect();
        days.insert(dice.number(0, 6) as i8);
        let text: Vec<&str> = days.iter().map(|day| names[day.unsigned_abs() as usize]).collect();
        Self { text: text.join(","), days }
    }

    fn contains(&self, date: Date) -> bool {
        self.days.contains(&date.weekday().to_monday_zero_offset())
    }

    /// Moves along the calendar, one day at a time.
    fn shifted(&self, mut date: Date, by: i32) -> Date {
        let mut left = by.unsigned_abs();
        while left > 0 {
            date = if by > 0 { date.tomorrow() } else { date.yesterday() }.expect("in range");
            left -= u32::from(self.contains(date));
        }
        date
    }
}

/// One test case: zone, window and calendar.
struct Case<'a> {
    zone: &'a ZoneCase,
    week: Option<Week>,
    after: i64,
    until: i64,
    gap: Option<GapPolicy>,
    fold: Option<FoldPolicy>,
}

impl<'a> Case<'a> {
    fn random(dice: &mut Dice, cases: &'a [ZoneCase]) -> Self {
        let zone = dice.pick(cases);
        let near = if zone.changes.is_empty() || dice.one_in(4) {
            dice.second(RANGE.0, RANGE.1)
        } else {
            dice.pick(&zone.changes).clamp(&RANGE.0, &RANGE.1) - dice.second(0, 2 * DAY)
        };
        Self {
            zone,
            week: dice.one_in(2).then(|| Week::random(dice)),
            after: near,
            until: near + 3 * DAY,
            gap: *dice.pick(&[None, Some(GapPolicy::Next), Some(GapPolicy::Skip)]),
            fold: *dice.pick(&[None, Some(FoldPolicy::First), Some(FoldPolicy::Second), Some(FoldPolicy::Both)]),
        }
    }

    fn contains(&self, date: Date) -> bool {
        self.week.as_ref().is_none_or(|week| week.contains(date))
    }

    /// A day shifted along the calendar and by plain days.
    fn shifted(&self, date: Date, shift: DayShift) -> Date {
        let every_day = Week { text: String::new(), days: (0..7).collect() };
        let along = self.week.as_ref().unwrap_or(&every_day).shifted(date, shift.calendar_days);
        along.checked_add(jiff::Span::new().days(shift.days)).expect("in range")
    }

    /// Dates within some days around the window.
    fn dates(&self, days: i64) -> impl Iterator<Item = Date> {
        oracle::dates(&self.zone.zone, self.after - days * DAY, self.until + days * DAY)
    }

    fn instants(&self, local: DateTime) -> Vec<i64> {
        oracle::shown(&self.zone.zone, local)
            .instants(self.gap.unwrap_or(GapPolicy::Next), self.fold.unwrap_or(FoldPolicy::First))
    }

    /// Asserts that the occurrences of a timing in the window are those of `expected` in it.
    fn check(
        &self,
        timing: Timing,
        zones: &ZoneRegistry,
        with_policy: bool,
        expected: impl IntoIterator<Item = i64>,
    ) -> usize {
        let mut spec = ScheduleSpec::new(timing);
        spec.calendar = self.week.as_ref().map(|week| CalendarExpr::parse(&week.text).expect("weekdays"));
        if with_policy {
            (spec.gap, spec.fold) = (self.gap, self.fold);
        }
        let expected: BTreeSet<i64> = expected.into_iter().filter(|at| *at > self.after && *at <= self.until).collect();
        let expected: Vec<i64> = expected.into_iter().collect();
        let schedule = compile(&spec, zones, &zones.get(&self.zone.name).expect("known to both"));
        for (found, way) in [
            (forwards(&schedule, self.after, self.until, expected.len()), "forwards"),
            (backwards(&schedule, self.after, self.until, expected.len()), "backwards"),
        ] {
            let context = format!("{way} {spec} in {} after {}", self.zone.name, Instant::from_secs(self.after));
            assert_eq!(found, expected, "{context}: {}", show_difference(&found, &expected));
        }
        check_mirror(&schedule, self.after);
        expected.len()
    }
}

fn at(date: Date, time: TimeOfDay) -> DateTime {
    let part = |value: u32| i8::try_from(value).expect("below 60");
    date.at(part(time.0 / 3600), part(time.0 / 60 % 60), part(time.0 % 60), 0)
}

fn time(dice: &mut Dice) -> TimeOfDay {
    // Mostly whole quarters of an hour, because clocks change there.
    TimeOfDay(if dice.one_in(3) { dice.number(0, 86_399) } else { dice.number(0, 95) * 900 })
}

fn each_case(seed: u64, mut run: impl FnMut(&mut Dice, &Case<'_>) -> usize) {
    let cases = oracle::zones();
    let mut dice = Dice::new(seed);
    let mut found = 0;
    for _ in 0..TURNS {
        let case = Case::random(&mut dice, &cases);
        found += run(&mut dice, &case);
    }
    assert!(found > TURNS, "only {found} occurrences in all");
}

#[test]
fn intervals_agree_with_the_definition() {
    let zones = ZoneRegistry::bundled();
    each_case(1, |dice, case| check_interval(dice, case, &zones));
}

/// Where clocks are set back over midnight, the previous day is repeated for a while.
#[test]
fn intervals_where_a_day_is_repeated() {
    let zones = ZoneRegistry::bundled();
    let mut dice = Dice::new(5);
    let mut changes = 0;
    for zone in &oracle::zones() {
        for change in zone.changes.iter().filter(|change| RANGE.0 < **change && **change < RANGE.1) {
            let (before, after) =
                (oracle::wall(&zone.zone, change - 1).date(), oracle::wall(&zone.zone, *change).date());
            if after < before {
                changes += 1;
                let week = Some(Week::random(&mut dice));
                let (after, until) = (change - DAY, change + 2 * DAY);
                check_interval(&mut dice, &Case { zone, week, after, until, gap: None, fold: None }, &zones);
            }
        }
    }
    assert!(changes > 20, "only {changes} such changes");
}

fn check_interval(dice: &mut Dice, case: &Case<'_>, zones: &ZoneRegistry) -> usize {
    let interval = i64::from(*dice.pick(&[60, 90, 600, 900, 1800, 3600, 5400, 7 * 3600, 86_400, 100_000]));
    let phase = if dice.one_in(2) { 0 } else { dice.second(0, interval - 1) };
    let span = |secs: i64| Span::from_secs(secs.unsigned_abs());
    let timing = Timing::Every { interval: span(interval), phase: span(phase) };
    let first = (case.after..).find(|at| (at - phase) % interval == 0).expect("one in each interval");
    let all = (first..=case.until).step_by(interval as usize);
    let expected = all.filter(|at| case.contains(oracle::wall(&case.zone.zone, *at).date()));
    case.check(timing, zones, false, expected)
}

#[test]
fn times_of_day_agree_with_the_definition() {
    let zones = ZoneRegistry::bundled();
    each_case(2, |dice, case| {
        let mut times: Vec<TimeOfDay> = (0..dice.number(1, 4)).map(|_| time(dice)).collect();
        times.sort();
        times.dedup();
        let shift = shift(dice);
        let expected: Vec<i64> = case
            .dates(40)
            .filter(|date| case.contains(*date))
            .map(|date| case.shifted(date, shift))
            .flat_map(|date| times.iter().map(move |time| at(date, *time)))
            .flat_map(|local| case.instants(local))
            .collect();
        case.check(Timing::Daily(DailyTiming { times, shift }), &zones, true, expected)
    });
}

#[test]
fn windows_agree_with_the_definition() {
    let zones = ZoneRegistry::bundled();
    each_case(3, |dice, case| {
        let case = &Case { gap: None, fold: None, week: case.week.clone(), ..*case };
        let shift = shift(dice);
        let from = WindowEdge { time: time(dice), shift };
        let mut until = WindowEdge { time: time(dice), shift };
        if until.time <= from.time {
            until.shift.days += 1;
        } else if dice.one_in(4) {
            until.shift.days += i32::from(dice.one_in(2));
        }
        let interval = *dice.pick(&[60, 600, 1500, 3600, 7000, 100_000]);
        let expected: Vec<i64> = case
            .dates(40)
            .filter(|date| case.contains(*date))
            .flat_map(|date| {
                let edge = |edge: WindowEdge| case.instants(at(case.shifted(date, edge.shift), edge.time))[0];
                // A window inside a gap leaves one occurrence, at its end.
                (edge(from)..edge(until).max(edge(from) + 1)).step_by(interval as usize)
            })
            .collect();
        let timing = Timing::DailyInterval(DailyInterval { from, until, interval: Span::from_secs(interval) });
        case.check(timing, &zones, false, expected)
    });
}

#[test]
fn explicit_instants_agree_with_the_definition() {
    let zones = ZoneRegistry::bundled();
    each_case(4, |dice, case| {
        let mut bounds = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..dice.number(1, 9) {
            let second = dice.second(case.after - DAY, case.until + DAY);
            let local = wall_clock(&case.zone.zone, second, dice);
            let (bound, instants) = match dice.number(0, 2) {
                0 => (TimeBound::Instant(Instant::from_secs(second)), vec![second]),
                1 => (TimeBound::Local(plain(local)), case.instants(local)),
                _ => (TimeBound::Day(plain(local).day()), case.instants(local.date().at(0, 0, 0, 0))),
            };
            bounds.push(bound);
            expected.extend(instants);
        }
        expected.retain(|at| case.contains(oracle::wall(&case.zone.zone, *at).date()));
        case.check(Timing::At(bounds), &zones, true, expected)
    });
}

fn shift(dice: &mut Dice) -> DayShift {
    let days = |dice: &mut Dice| if dice.one_in(2) { 0 } else { dice.number(0, 6).cast_signed() - 3 };
    DayShift { calendar_days: days(dice), days: days(dice) }
}

/// A local time near a second, shifted slightly so that it may fall into a gap.
fn wall_clock(zone: &TimeZone, second: i64, dice: &mut Dice) -> DateTime {
    let moved = dice.second(0, 7200) - 3600;
    oracle::wall(zone, second).checked_add(jiff::Span::new().seconds(moved)).expect("in range")
}

fn plain(local: DateTime) -> WallTime {
    let part = |part: i8| u32::from(part.unsigned_abs());
    let day = Day::from_ymd(i32::from(local.year()), part(local.month()), part(local.day()));
    let second = part(local.hour()) * 3600 + part(local.minute()) * 60 + part(local.second());
    WallTime(day.midnight().0 + i64::from(second))
}
