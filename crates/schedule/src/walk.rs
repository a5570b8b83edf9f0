//! From local times to instants: one search for all schedules that use local time. It walks the zone's segments of
//! constant offset and applies the gap and fold policy between them.
//!
//! The set of occurrences is defined as follows. Each matching local time stands for the instants at which a local
//! clock shows it. If the clock shows it twice, the fold policy decides. If the clock never shows it, it stands for the
//! end of its gap, or for nothing, by the gap policy. Several local times that map to one instant are one occurrence.

use crate::civil::WallTime;
use crate::spec::{FoldPolicy, GapPolicy};
use crate::zone::{FOREVER, OffsetSegment, Zone};

/// A set of local times that can be searched in both directions.
pub(crate) trait LocalTimes {
    /// The first one at or after `from`.
    fn at_or_after(&self, from: WallTime) -> Option<WallTime>;
    /// The last one at or before `until`.
    fn at_or_before(&self, until: WallTime) -> Option<WallTime>;
}

/// How gaps and folds between segments are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeamPolicy {
    pub(crate) gap: GapPolicy,
    pub(crate) fold: FoldPolicy,
}

/// The first occurrence strictly after a second of Unix time.
pub(crate) fn next(times: &impl LocalTimes, zone: &Zone, seams: SeamPolicy, after: i64) -> Option<i64> {
    let mut from = after.clamp(-FOREVER / 2, FOREVER / 2) + 1;
    let mut index = zone.segment_at(from);
    let mut search = ForwardSearch { times, origin: i64::MAX, hit: i64::MAX };
    loop {
        let segment = zone.segment(index);
        if from == segment.start && seams.gap == GapPolicy::Next && search.from(gap_start(segment)) < gap_end(segment) {
            return Some(from);
        }
        let mut hit = search.from(from + segment.offset);
        if seams.fold == FoldPolicy::First && hit < repeated_until(segment) {
            hit = search.from(repeated_until(segment));
        }
        let repeats = seams.fold == FoldPolicy::Second && hit >= repeats_from(segment);
        if hit < segment.end + segment.offset && !repeats {
            return Some(hit - segment.offset);
        }
        if index == zone.last_segment() {
            return None;
        }
        index += 1;
        from = segment.end;
    }
}

/// The last occurrence strictly before a second of Unix time.
pub(crate) fn prev(times: &impl LocalTimes, zone: &Zone, seams: SeamPolicy, before: i64) -> Option<i64> {
    let mut until = before.clamp(-FOREVER / 2, FOREVER / 2) - 1;
    let mut index = zone.segment_at(until);
    let mut search = BackwardSearch { times, origin: i64::MIN, hit: i64::MIN };
    loop {
        let segment = zone.segment(index);
        let mut hit = search.until(until + segment.offset);
        if seams.fold == FoldPolicy::Second && hit >= repeats_from(segment) {
            hit = search.until(repeats_from(segment) - 1);
        }
        let repeated = seams.fold == FoldPolicy::First && hit < repeated_until(segment);
        if hit >= segment.start + segment.offset && !repeated {
            return Some(hit - segment.offset);
        }
        if seams.gap == GapPolicy::Next
            && gap_start(segment) < gap_end(segment)
            && search.until(gap_end(segment) - 1) >= gap_start(segment)
        {
            return Some(segment.start);
        }
        if index == 0 {
            return None;
        }
        index -= 1;
        until = segment.start - 1;
    }
}

/// First local time of the gap before a segment; equal to `gap_end` if there is no gap.
fn gap_start(segment: OffsetSegment) -> i64 {
    gap_end(segment).min(segment.start + segment.offset_before)
}

fn gap_end(segment: OffsetSegment) -> i64 {
    segment.start + segment.offset
}

/// Local times of the segment before this also occur in the previous segment.
fn repeated_until(segment: OffsetSegment) -> i64 {
    segment.start + segment.offset_before
}

/// Local times of the segment from this on occur again in the next segment.
fn repeats_from(segment: OffsetSegment) -> i64 {
    segment.end + segment.offset_after
}

/// Caches the last match, so that a walk over many segments searches the rule only once.
struct ForwardSearch<'a, T> {
    times: &'a T,
    /// Invariant: no match lies in `origin..hit`.
    origin: i64,
    hit: i64,
}

impl<T: LocalTimes> ForwardSearch<'_, T> {
    fn from(&mut self, from: i64) -> i64 {
        if from < self.origin || from > self.hit {
            self.origin = from;
            self.hit = self.times.at_or_after(WallTime(from)).map_or(i64::MAX, |hit| hit.0);
        }
        self.hit
    }
}

struct BackwardSearch<'a, T> {
    times: &'a T,
    /// Invariant: no match lies in `hit+1..=origin`.
    origin: i64,
    hit: i64,
}

impl<T: LocalTimes> BackwardSearch<'_, T> {
    fn until(&mut self, until: i64) -> i64 {
        if until > self.origin || until < self.hit {
            self.origin = until;
            self.hit = self.times.at_or_before(WallTime(until)).map_or(i64::MIN, |hit| hit.0);
        }
        self.hit
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::cron::{CronBits, CronExpr, CronTimes};
    use crate::zone::ZoneRegistry;

    /// Counts searches of the rule.
    struct Counted {
        cron: CronBits,
        asked: Cell<u32>,
    }

    impl LocalTimes for Counted {
        fn at_or_after(&self, from: WallTime) -> Option<WallTime> {
            self.asked.set(self.asked.get() + 1);
            CronTimes { cron: &self.cron, calendar: None }.at_or_after(from)
        }

        fn at_or_before(&self, until: WallTime) -> Option<WallTime> {
            self.asked.set(self.asked.get() + 1);
            CronTimes { cron: &self.cron, calendar: None }.at_or_before(until)
        }
    }

    /// A walk over all changes of a zone searches the rule a few times, not once per change.
    #[test]
    fn searches_the_rule_a_bounded_number_of_times() {
        let zones = ZoneRegistry::bundled();
        for zone in ["UTC", "Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe"] {
            let zone = zones.get(zone).expect("known");
            for text in ["0 0 31 2 *", "30 2 29 2 *", "* * * * *", "0 0 1 1 * 2099", "0 */2 * * *"] {
                let cron = CronExpr::parse(text).expect(text).resolve("");
                for fold in [FoldPolicy::First, FoldPolicy::Second, FoldPolicy::Both] {
                    for gap in [GapPolicy::Next, GapPolicy::Skip] {
                        let times = Counted { cron, asked: Cell::new(0) };
                        for at in [0, 1_774_746_000, 1_792_890_000, 4_000_000_000] {
                            times.asked.set(0);
                            let _ = next(&times, &zone, SeamPolicy { gap, fold }, at);
                            assert!(times.asked.get() <= 6, "{} next for {text}", times.asked.get());
                            times.asked.set(0);
                            let _ = prev(&times, &zone, SeamPolicy { gap, fold }, at);
                            assert!(times.asked.get() <= 6, "{} prev for {text}", times.asked.get());
                        }
                    }
                }
            }
        }
    }
}
