//! An independent way to find occurrences: try every local time of every day, and let the time library convert each. It
//! shares neither the zone table nor the search with the code under test, and is slow and simple on purpose.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_schedule::{FoldPolicy, GapPolicy};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

/// A rule that can be tested on a local time.
pub(crate) trait LocalRule {
    fn on_day(&self, date: Date) -> bool;
    fn hours(&self) -> &BTreeSet<u32>;
    fn minutes(&self) -> &BTreeSet<u32>;
    fn seconds(&self) -> &BTreeSet<u32>;
    /// The hour is `*` or `*/n`, so that the rule follows elapsed time by default.
    fn every_hour(&self) -> bool;

    /// The default policy at clock changes.
    fn usual_policy(&self) -> (GapPolicy, FoldPolicy) {
        if self.every_hour() { (GapPolicy::Skip, FoldPolicy::Both) } else { (GapPolicy::Next, FoldPolicy::First) }
    }
}

/// A zone with its changes of offset between 1970 and 2100.
#[derive(Debug, Clone)]
pub(crate) struct ZoneCase {
    pub(crate) name: String,
    pub(crate) zone: TimeZone,
    /// Seconds of Unix time.
    pub(crate) changes: Vec<i64>,
}

/// The instants that a local time stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    Once(i64),
    Twice(i64, i64),
    /// The local time does not exist; the end of its gap.
    Never(i64),
}

/// Every zone of the library's database; zones with identical changes appear once.
pub(crate) fn zones() -> Vec<ZoneCase> {
    let database = TimeZoneDatabase::bundled();
    let mut cases = BTreeMap::new();
    let mut names: Vec<String> = database.available().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    assert!(names.len() > 400, "the database has only {} zones", names.len());
    for name in names {
        let zone = database.get(&name).expect("a zone that the database lists");
        let (changes, key) = changes(&zone);
        cases.entry(key).or_insert(ZoneCase { name, zone, changes });
    }
    cases.into_values().collect()
}

fn changes(zone: &TimeZone) -> (Vec<i64>, Vec<(i64, i32)>) {
    let mut offset = zone.to_offset(Timestamp::UNIX_EPOCH).seconds();
    let mut key = vec![(0, offset)];
    let end: Timestamp = "2100-12-31T00:00:00Z".parse().expect("a timestamp");
    for change in zone.following(Timestamp::UNIX_EPOCH).take_while(|change| change.timestamp() < end) {
        if change.offset().seconds() != offset {
            offset = change.offset().seconds();
            key.push((change.timestamp().as_second(), offset));
        }
    }
    (key[1..].iter().map(|(at, _)| *at).collect(), key)
}

/// The local time at a second.
pub(crate) fn wall(zone: &TimeZone, secs: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_second(secs).expect("within the library's range"))
}

/// The instants that a local time stands for.
pub(crate) fn shown(zone: &TimeZone, local: DateTime) -> Shown {
    let at = |offset: jiff::tz::Offset| offset.to_timestamp(local).expect("within the library's range").as_second();
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => Shown::Once(at(offset)),
        AmbiguousOffset::Fold { before, after } => Shown::Twice(at(before), at(after)),
        AmbiguousOffset::Gap { after, .. } => {
            let inside = after.to_timestamp(local).expect("within the library's range");
            let mut following = zone.following(inside);
            let end = following.find(|change| change.offset() == after).expect("a gap has an end");
            Shown::Never(end.timestamp().as_second())
        }
    }
}

impl Shown {
    /// The instants under a policy.
    pub(crate) fn instants(self, gap: GapPolicy, fold: FoldPolicy) -> Vec<i64> {
        match (self, gap, fold) {
            (Self::Once(at), ..)
            | (Self::Never(at), GapPolicy::Next, _)
            | (Self::Twice(at, _), _, FoldPolicy::First)
            | (Self::Twice(_, at), _, FoldPolicy::Second) => vec![at],
            (Self::Twice(first, second), _, FoldPolicy::Both) => vec![first, second],
            (Self::Never(_), GapPolicy::Skip, _) => vec![],
        }
    }
}

/// The instants of every matching local time around a window of seconds.
pub(crate) fn matches(rule: &impl LocalRule, zone: &TimeZone, after: i64, until: i64) -> Vec<Shown> {
    let mut found = Vec::new();
    for date in dates(zone, after, until).filter(|date| rule.on_day(*date)) {
        for hour in (0..24).filter(|hour| rule.hours().contains(hour)) {
            for minute in (0..60).filter(|minute| rule.minutes().contains(minute)) {
                for second in (0..60).filter(|second| rule.seconds().contains(second)) {
                    found.push(shown(zone, date.at(hour as i8, minute as i8, second as i8, 0)));
                }
            }
        }
    }
    found
}

/// The dates that a window can involve.
pub(crate) fn dates(zone: &TimeZone, after: i64, until: i64) -> impl Iterator<Item = Date> {
    let first = wall(zone, after).date().yesterday().expect("within the library's range");
    let last = wall(zone, until).date().tomorrow().expect("within the library's range");
    std::iter::successors(Some(first), |date| date.tomorrow().ok()).take_while(move |date| *date <= last)
}

/// The occurrences after `after` and not later than `until`.
pub(crate) fn occurrences(matches: &[Shown], gap: GapPolicy, fold: FoldPolicy, after: i64, until: i64) -> Vec<i64> {
    let set: BTreeSet<i64> = matches.iter().flat_map(|shown| shown.instants(gap, fold)).collect();
    set.into_iter().filter(|at| *at > after && *at <= until).collect()
}
