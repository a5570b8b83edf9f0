//! Cron around every offset change of every zone, and far from changes: occurrences must equal the oracle's.

use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{FoldPolicy, GapPolicy, ScheduleSpec, Timing, Zone, ZoneRegistry};

use crate::dice::Dice;
use crate::expression::Expression;
use crate::named::Named;
use crate::oracle::{self, LocalRule, ZoneCase};
use crate::{backwards, check_mirror, compile, forwards, show_difference};

/// How far around an offset change occurrences are compared.
const WINDOW: i64 = 14 * 3600;
/// 1970-01-01 and 2101-01-01.
const RANGE: (i64, i64) = (0, 4_133_980_800);
/// All policies; `None` is the default.
const POLICIES: [Option<(GapPolicy, FoldPolicy)>; 7] = [
    None,
    Some((GapPolicy::Next, FoldPolicy::First)),
    Some((GapPolicy::Next, FoldPolicy::Second)),
    Some((GapPolicy::Next, FoldPolicy::Both)),
    Some((GapPolicy::Skip, FoldPolicy::First)),
    Some((GapPolicy::Skip, FoldPolicy::Second)),
    Some((GapPolicy::Skip, FoldPolicy::Both)),
];

/// A zone in both libraries.
struct Place<'a> {
    case: &'a ZoneCase,
    zones: &'a ZoneRegistry,
    zone: Zone,
}

/// Compares occurrences in a window under all policies, and backwards under one of them. Returns the number of matching
/// local times.
fn compare(
    spec: &ScheduleSpec,
    rule: &(impl LocalRule + std::fmt::Debug),
    place: &Place<'_>,
    window: (i64, i64),
    turn: usize,
) -> usize {
    let (after, until) = window;
    let matches = oracle::matches(rule, &place.case.zone, after, until);
    for (index, policy) in POLICIES.into_iter().enumerate() {
        let spec =
            ScheduleSpec { gap: policy.map(|policy| policy.0), fold: policy.map(|policy| policy.1), ..spec.clone() };
        let schedule = compile(&spec, place.zones, &place.zone);
        let (gap, fold) = policy.unwrap_or(rule.usual_policy());
        let expected = oracle::occurrences(&matches, gap, fold, after, until);
        let found = forwards(&schedule, after, until, expected.len());
        let context = || format!("{spec} ({rule:?}) in {} after {after}", place.case.name);
        assert_eq!(found, expected, "{}: {}", context(), show_difference(&found, &expected));
        if index == turn % POLICIES.len() {
            let found = backwards(&schedule, after, until, expected.len());
            assert_eq!(found, expected, "backwards {}: {}", context(), show_difference(&found, &expected));
            check_mirror(&schedule, after);
        }
    }
    matches.len()
}

fn cron(dice: &mut Dice, place: &Place<'_>, window: (i64, i64), turn: usize) -> usize {
    let near = oracle::wall(&place.case.zone, i64::midpoint(window.0, window.1));
    let rule = Expression::random(dice, near);
    let spec = ScheduleSpec::parse(&rule.text).unwrap_or_else(|error| panic!("{}: {error}", rule.text));
    let canonical = spec.to_string();
    assert_eq!(ScheduleSpec::parse(&canonical).as_ref(), Ok(&spec), "{} prints as {canonical}", rule.text);
    compare(&spec, &rule, place, window, turn)
}

fn named_fields(dice: &mut Dice, place: &Place<'_>, window: (i64, i64), turn: usize) -> usize {
    let near = oracle::wall(&place.case.zone, i64::midpoint(window.0, window.1));
    let rule = Named::random(dice, near);
    let texts: Vec<(&str, &str)> = rule.texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let fields = FieldsExpr::parse(&texts).unwrap_or_else(|error| panic!("{texts:?}: {error:?}"));
    let entries = fields.entries();
    let canonical: Vec<(&str, &str)> = entries.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert_eq!(FieldsExpr::parse(&canonical).as_ref(), Ok(&fields), "{texts:?} prints as {canonical:?}");
    compare(&ScheduleSpec::new(Timing::Fields(fields)), &rule, place, window, turn)
}

/// Every `parts`-th zone from `part` on, so that the parts can run in parallel.
fn around_every_change(part: usize, parts: usize) {
    let zones = ZoneRegistry::bundled();
    let mut dice = Dice::new(part as u64);
    let mut windows = 0;
    let mut hits = 0;
    for case in oracle::zones().iter().skip(part).step_by(parts) {
        let place = Place { case, zones: &zones, zone: zones.get(&case.name).expect("known to both") };
        for change in &case.changes {
            let window = (change - WINDOW, change + WINDOW);
            hits += usize::from(cron(&mut dice, &place, window, windows) > 0);
            if windows % 3 == 0 {
                named_fields(&mut dice, &place, window, windows / 3);
            }
            windows += 1;
        }
    }
    assert!(windows > 1000, "only {windows} changes of offset");
    assert!(hits > windows / 3, "only {hits} expressions match anything around {windows} changes");
}

#[test]
fn around_every_change_of_offset_first_quarter() {
    around_every_change(0, 4);
}

#[test]
fn around_every_change_of_offset_second_quarter() {
    around_every_change(1, 4);
}

#[test]
fn around_every_change_of_offset_third_quarter() {
    around_every_change(2, 4);
}

#[test]
fn around_every_change_of_offset_fourth_quarter() {
    around_every_change(3, 4);
}

#[test]
fn random_windows_agree_with_the_oracle() {
    let zones = ZoneRegistry::bundled();
    let mut dice = Dice::new(99);
    let cases = oracle::zones();
    for turn in 0..3000 {
        let case = dice.pick(&cases);
        let place = Place { case, zones: &zones, zone: zones.get(&case.name).expect("known to both") };
        let after = dice.second(RANGE.0, RANGE.1);
        let window = (after, after + 3 * 86_400);
        cron(&mut dice, &place, window, turn);
        named_fields(&mut dice, &place, window, turn);
    }
}

/// Large distances between occurrences: the expected day is found by a naive walk over dates.
#[test]
fn distant_next_occurrence_is_found() {
    let zones = ZoneRegistry::bundled();
    let place_zone = Zone::utc();
    let case = ZoneCase { name: "UTC".to_owned(), zone: jiff::tz::TimeZone::UTC, changes: Vec::new() };
    let mut dice = Dice::new(7);
    for _ in 0..400 {
        let after = dice.second(RANGE.0, RANGE.1);
        let near = oracle::wall(&case.zone, after);
        let rule = Expression::random(&mut dice, near);
        let spec = ScheduleSpec::parse(&rule.text).expect("a good expression");
        let found = compile(&spec, &zones, &place_zone).next(cronhold_schedule::Instant::from_secs(after));
        let end = dice.second(after, after + 20 * 366 * 86_400).min(RANGE.1);
        let day = oracle::dates(&case.zone, after, end).filter(|date| rule.on_day(*date)).find_map(|date| {
            let start = date.to_zoned(case.zone.clone()).expect("in range").timestamp().as_second();
            let matches = oracle::matches(&rule, &case.zone, start, start);
            let all =
                oracle::occurrences(&matches, GapPolicy::Next, FoldPolicy::First, after.max(start - 1), start + 86_399);
            all.first().copied()
        });
        match day {
            Some(expected) => assert_eq!(found.map(|at| at.secs()), Some(expected), "{} after {after}", rule.text),
            None => assert!(found.is_none_or(|at| at.secs() > end), "{} after {after}: {found:?}", rule.text),
        }
    }
}
