//! A time zone as a table of offset changes from 1970 to 2100. The search for occurrences walks this table, so it is
//! bounded and does not depend on the lookups of a time library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::civil::{Day, WallTime};
use crate::hash::StableHash;
use crate::spec::{FoldPolicy, GapPolicy};
use crate::text::{TextError, did_you_mean, shortened};

/// Offset changes are known from this second (1969-12-01) on.
const KNOWN_FROM: i64 = Day::from_ymd(1969, 12, 1).midnight().0;
/// Offset changes are known until this second (2101-02-01).
const KNOWN_UNTIL: i64 = Day::from_ymd(2101, 2, 1).midnight().0;
/// Limit on table size, above the number of changes of any real zone. Longer tables are truncated.
const CHANGES_MAX: usize = 4096;
/// Maximum length of a zone name in bytes.
const NAME_MAX: usize = 64;
/// Sentinel for the start and end of time, small enough to add an offset without overflow.
pub(crate) const FOREVER: i64 = i64::MAX / 4;

/// A time zone. Cheap to clone; clones share their data.
#[derive(Clone)]
pub struct Zone(Arc<OffsetTable>);

struct OffsetTable {
    name: String,
    /// Seconds at which the offset changes, in order.
    changes: Box<[i64]>,
    /// Offset from UTC in seconds before the first change, and after each.
    offsets: Box<[i32]>,
    digest: u64,
}

/// A period with a constant offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetSegment {
    /// First second of the segment.
    pub(crate) start: i64,
    /// First second after the segment.
    pub(crate) end: i64,
    /// Offset from UTC in seconds.
    pub(crate) offset: i64,
    /// Offset of the previous segment; its own for the first.
    pub(crate) offset_before: i64,
    /// Offset of the next segment; its own for the last.
    pub(crate) offset_after: i64,
}

impl Zone {
    pub fn utc() -> Self {
        Self::new("UTC".to_owned(), Vec::new(), vec![0])
    }

    /// Builds the table from a zone of the time library.
    fn from_time_zone(name: &str, zone: &TimeZone) -> Self {
        let first = Timestamp::from_second(KNOWN_FROM).expect("1969 is within the library's range");
        let mut offsets = vec![zone.to_offset(first).seconds()];
        let mut changes = Vec::new();
        for change in zone.following(first).take(CHANGES_MAX) {
            let at = change.timestamp().as_second();
            if at >= KNOWN_UNTIL {
                break;
            }
            let offset = change.offset().seconds();
            // Changes that affect only the abbreviation or the daylight-saving flag are irrelevant.
            if offsets.last() != Some(&offset) {
                changes.push(at);
                offsets.push(offset);
            }
        }
        Self::new(name.to_owned(), changes, offsets)
    }

    fn new(name: String, changes: Vec<i64>, offsets: Vec<i32>) -> Self {
        let mut hash = StableHash::new();
        for (change, offset) in changes.iter().zip(&offsets[1..]) {
            hash.number(change.cast_unsigned());
            hash.number(u64::from(offset.cast_unsigned()));
        }
        hash.number(u64::from(offsets[0].cast_unsigned()));
        Self(Arc::new(OffsetTable { name, changes: changes.into(), offsets: offsets.into(), digest: hash.finish() }))
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether its offset is part of its definition, so that no release of time zone data changes it: UTC, and the
    /// zones below `Etc`.
    pub fn is_fixed(&self) -> bool {
        self.name() == "UTC" || self.name().starts_with("Etc/")
    }

    /// A digest of the zone's rules. It changes when the time zone data change.
    pub fn digest(&self) -> u64 {
        self.0.digest
    }

    /// Offset from UTC in seconds at a second of Unix time.
    pub fn offset_at(&self, secs: i64) -> i32 {
        self.0.offsets[self.segment_at(secs)]
    }

    /// The local time at a second of Unix time.
    pub fn local(&self, secs: i64) -> WallTime {
        WallTime(secs.clamp(-FOREVER, FOREVER) + i64::from(self.offset_at(secs)))
    }

    /// Offset changes between two seconds of Unix time.
    pub fn changes(&self, from: i64, until: i64) -> impl Iterator<Item = OffsetChange> + '_ {
        let first = self.0.changes.partition_point(|at| *at < from);
        self.0.changes[first..].iter().enumerate().take_while(move |(_, at)| **at < until).map(move |(n, at)| {
            OffsetChange { at: *at, before: self.0.offsets[first + n], after: self.0.offsets[first + n + 1] }
        })
    }

    /// The seconds of Unix time that a local time stands for under a policy: none, one or two, in order.
    pub fn instants(&self, local: WallTime, gap: GapPolicy, fold: FoldPolicy) -> impl Iterator<Item = i64> + use<> {
        // No offset exceeds one day, so two days around the time contain all relevant segments.
        let mut index = self.segment_at(local.0 - 2 * crate::civil::DAY_SECS);
        let mut found: [Option<i64>; 2] = [None; 2];
        loop {
            let segment = self.segment(index);
            let at = local.0 - segment.offset;
            let in_gap_before =
                local.0 >= segment.start + segment.offset_before && local.0 < segment.start + segment.offset;
            if at >= segment.start && at < segment.end {
                if found[0].is_none() { found[0] = Some(at) } else { found[1] = Some(at) }
            } else if in_gap_before && gap == GapPolicy::Next {
                found[0] = found[0].or(Some(segment.start));
            }
            index += 1;
            if index > self.last_segment() || self.segment(index).start > local.0 + 2 * crate::civil::DAY_SECS {
                break;
            }
        }
        match fold {
            FoldPolicy::First => found[1] = None,
            FoldPolicy::Second if found[1].is_some() => found[0] = None,
            FoldPolicy::Second | FoldPolicy::Both => {}
        }
        found.into_iter().flatten()
    }

    /// Index of the segment that a second lies in.
    pub(crate) fn segment_at(&self, secs: i64) -> usize {
        self.0.changes.partition_point(|at| *at <= secs)
    }

    /// Index of the last segment.
    pub(crate) fn last_segment(&self) -> usize {
        self.0.changes.len()
    }

    pub(crate) fn segment(&self, index: usize) -> OffsetSegment {
        let changes = &self.0.changes;
        let offsets = &self.0.offsets;
        let offset = i64::from(offsets[index]);
        OffsetSegment {
            start: if index == 0 { -FOREVER } else { changes[index - 1] },
            end: if index == changes.len() { FOREVER } else { changes[index] },
            offset,
            offset_before: if index == 0 { offset } else { i64::from(offsets[index - 1]) },
            offset_after: if index == changes.len() { offset } else { i64::from(offsets[index + 1]) },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetChange {
    /// First second with the new offset.
    pub at: i64,
    /// Offset before the change, in seconds.
    pub before: i32,
    /// Offset after the change, in seconds.
    pub after: i32,
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name()).finish()
    }
}

/// The zones that can be named. Tables are built once and shared.
#[derive(Debug)]
pub struct ZoneRegistry {
    database: TimeZoneDatabase,
    made: Mutex<BTreeMap<String, Zone>>,
}

impl ZoneRegistry {
    /// Uses a database of the time library, such as the machine's own. Zones it lacks come from the data compiled into
    /// the binary, because some systems omit old names.
    pub fn new(database: TimeZoneDatabase) -> Self {
        Self { database, made: Mutex::new(BTreeMap::new()) }
    }

    /// Uses the data compiled into the binary.
    pub fn bundled() -> Self {
        Self::new(TimeZoneDatabase::bundled())
    }

    /// Gives a zone the rules of another, as if this were the data of another release. For simulations and tests.
    #[must_use]
    pub fn with_rules_of(self, name: &str, other: &str) -> Self {
        if let Ok(found) = self.database.get(other) {
            let zone = Zone::from_time_zone(name, &found);
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), zone);
        }
        self
    }

    /// The zone with that name, case-insensitive.
    pub fn get(&self, name: &str) -> Result<Zone, TextError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = made.get(name) {
            return Ok(zone.clone());
        }
        let look_up = || self.database.get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).ok();
        let Some(found) = (name.len() <= NAME_MAX).then(look_up).flatten() else {
            return Err(self.unknown(name));
        };
        let proper = found.iana_name().unwrap_or(name).to_owned();
        let zone = made.entry(proper).or_insert_with_key(|proper| Zone::from_time_zone(proper, &found)).clone();
        Ok(zone)
    }

    /// All names, sorted.
    pub fn names(&self) -> Vec<String> {
        let bundled = TimeZoneDatabase::bundled();
        let all = self.database.available().chain(bundled.available());
        let names: BTreeSet<String> = all.map(|name| name.as_str().to_owned()).collect();
        names.into_iter().collect()
    }

    fn unknown(&self, name: &str) -> TextError {
        let error = TextError::new(0..name.len(), format!("there is no time zone `{}`", shortened(name)));
        let utc_offset =
            name.get(..3).is_some_and(|start| ["GMT", "UTC"].contains(&start.to_ascii_uppercase().as_str()));
        if utc_offset && name.len() > 3 {
            return error
                .hint("name a place, such as Europe/Berlin; a fixed offset is written Etc/GMT-1 for one hour ahead");
        }
        let names = self.names();
        // The user may have written only the city.
        let city = |full: &&String| full.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(name));
        let meant = names
            .iter()
            .find(city)
            .map(String::as_str)
            .or_else(|| did_you_mean(name, names.iter().map(String::as_str)));
        match meant {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error.hint("zones have IANA names such as Europe/Berlin or UTC"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(text: &str) -> i64 {
        crate::Instant::parse(text).expect("valid").secs()
    }

    #[test]
    fn berlin_has_known_offset_changes() {
        let zones = ZoneRegistry::bundled();
        let berlin = zones.get("europe/berlin").expect("known");
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert_eq!(berlin.offset_at(secs("2026-03-29T00:59:59Z")), 3600);
        assert_eq!(berlin.offset_at(secs("2026-03-29T01:00:00Z")), 7200);
        assert_eq!(berlin.offset_at(secs("2100-07-01T00:00:00Z")), 7200);
        assert_eq!(berlin.digest(), zones.get("Europe/Berlin").expect("known").digest());
        assert_ne!(berlin.digest(), zones.get("Europe/Paris").expect("known").digest());
    }

    #[test]
    fn unknown_zone_suggests_a_name() {
        let zones = ZoneRegistry::bundled();
        for (text, hint) in [
            ("Berlin", "did you mean `Europe/Berlin`?"),
            ("Europe/Berln", "did you mean `Europe/Berlin`?"),
            ("Narnia/Cair_Paravel", "zones have IANA names such as Europe/Berlin or UTC"),
            ("", "zones have IANA names such as Europe/Berlin or UTC"),
        ] {
            assert_eq!(zones.get(text).expect_err(text).hint.as_deref(), Some(hint), "{text}");
        }
    }

    #[test]
    fn local_times_become_instants() {
        let berlin = ZoneRegistry::bundled().get("Europe/Berlin").expect("known");
        let at = |text: &str, gap, fold| -> Vec<String> {
            let (day, time) = text.split_once('T').expect("a T");
            let day = Day::parse(day).expect("a date");
            let local = WallTime(day.midnight().0 + i64::from(crate::TimeOfDay::parse(time).expect("a time").0));
            berlin.instants(local, gap, fold).map(|secs| crate::Instant::from_secs(secs).to_string()).collect()
        };
        assert_eq!(at("2026-03-29T02:30", GapPolicy::Next, FoldPolicy::First), ["2026-03-29T01:00:00Z"]);
        assert_eq!(at("2026-03-29T02:30", GapPolicy::Skip, FoldPolicy::First), [] as [&str; 0]);
        assert_eq!(at("2026-10-25T02:30", GapPolicy::Next, FoldPolicy::First), ["2026-10-25T00:30:00Z"]);
        assert_eq!(at("2026-10-25T02:30", GapPolicy::Next, FoldPolicy::Second), ["2026-10-25T01:30:00Z"]);
        assert_eq!(
            at("2026-10-25T02:30", GapPolicy::Next, FoldPolicy::Both),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
        );
        assert_eq!(at("2026-07-01T12:00", GapPolicy::Next, FoldPolicy::Second), ["2026-07-01T10:00:00Z"]);
    }
}
