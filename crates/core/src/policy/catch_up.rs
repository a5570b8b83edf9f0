//! The catch-up policy: what happens to occurrences that were due while no node was alive. Everything older than a
//! minute is decided at once: a part runs alongside the live schedule, the rest is recorded as one span. So an outage
//! of any length costs one commit.

use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::job::{CatchUpPolicy, CatchUpRule};

/// The grace period: an occurrence that is late by at most this is on time.
pub const GRACE: Span = Span::from_secs(60);

/// The most occurrences that are counted; a longer range is reported to have at least this many. After an outage a node
/// decides about many schedules at once, and counting must not delay what is due in the meantime.
pub const COUNT_MAX: u32 = 10_000;

/// The occurrences of a schedule.
#[derive(Clone, Copy)]
pub struct Occurrences<'a> {
    /// The first occurrence strictly after an instant.
    pub after: &'a dyn Fn(Instant) -> Option<Instant>,
    /// The last occurrence strictly before an instant.
    pub before: &'a dyn Fn(Instant) -> Option<Instant>,
}

impl std::fmt::Debug for Occurrences<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Occurrences")
    }
}

/// A range of consecutive occurrences. They are counted only when they are recorded, because counting computes each of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccurrenceRange {
    /// The first occurrence.
    pub from: Instant,
    /// The last occurrence.
    pub to: Instant,
}

/// A range of consecutive occurrences and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedRange {
    /// The first occurrence.
    pub from: Instant,
    /// The last occurrence.
    pub to: Instant,
    /// The number of occurrences; `COUNT_MAX` means that many or more.
    pub count: u32,
}

impl CountedRange {
    /// One occurrence.
    pub const fn one(at: Instant) -> Self {
        Self { from: at, to: at, count: 1 }
    }

    /// The range without the count.
    pub fn reach(&self) -> OccurrenceRange {
        OccurrenceRange { from: self.from, to: self.to }
    }
}

/// How the occurrences that are due are divided.
///
/// Invariant: every due occurrence is in exactly one part, and the parts follow each other in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CatchUpPlan {
    /// The occurrences that are recorded as missed.
    pub missed: Option<OccurrenceRange>,
    /// The occurrences that run alongside the live schedule, at a limited rate.
    pub backlog: Option<OccurrenceRange>,
    /// The first occurrence that is on time; it and those after it belong to the live schedule.
    pub live: Option<Instant>,
}

/// Divides the occurrences from `first`, the oldest one not decided yet, to `now`.
pub fn plan(catch_up: CatchUpRule, first: Instant, now: Instant, occurrences: Occurrences<'_>) -> CatchUpPlan {
    let at_or_after = |at: Instant| if first >= at { Some(first) } else { (occurrences.after)(just_before(at)) };
    let live = at_or_after(now.minus(GRACE)).filter(|at| *at <= now);
    let Some(last_late) = (occurrences.before)(now.minus(GRACE)).filter(|at| *at >= first) else {
        return CatchUpPlan { live, ..CatchUpPlan::default() };
    };
    let oldest_wanted = now.minus(catch_up.within);
    let from = match catch_up.policy {
        CatchUpPolicy::None => None,
        // The newest due occurrence is on time: it runs anyway.
        CatchUpPolicy::Last if live.is_some() => None,
        CatchUpPolicy::Last => Some(last_late).filter(|at| *at >= oldest_wanted),
        CatchUpPolicy::All => at_or_after(oldest_wanted).filter(|at| *at <= last_late),
    };
    let last_missed = match from {
        Some(from) => (occurrences.before)(from).filter(|at| *at >= first),
        None => Some(last_late),
    };
    let missed = last_missed.map(|to| OccurrenceRange { from: first, to });
    CatchUpPlan { missed, backlog: from.map(|from| OccurrenceRange { from, to: last_late }), live }
}

fn just_before(at: Instant) -> Instant {
    at.minus(Span::from_micros(1))
}

/// Counts the occurrences of a range, both ends included, up to `COUNT_MAX`. `after` returns the first occurrence
/// strictly after an instant.
pub fn counted(reach: OccurrenceRange, after: impl Fn(Instant) -> Option<Instant>) -> CountedRange {
    let OccurrenceRange { from, to } = reach;
    let mut count = 1;
    let mut at = from;
    while at < to && count < COUNT_MAX {
        match after(at) {
            Some(next) => at = next,
            None => break,
        }
        count += 1;
    }
    CountedRange { from, to, count }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    fn planned(policy: CatchUpPolicy, within: u64, due: &[i64], now: i64) -> CatchUpPlan {
        let due: Vec<Instant> = due.iter().map(|secs| Instant::from_secs(*secs)).collect();
        let after = |at: Instant| due.iter().copied().find(|one| *one > at);
        let before = |at: Instant| due.iter().copied().rev().find(|one| *one < at);
        let catch_up = CatchUpRule { policy, within: Span::from_secs(within) };
        plan(catch_up, due[0], Instant::from_secs(now), Occurrences { after: &after, before: &before })
    }

    fn count(reach: OccurrenceRange, due: &[i64]) -> CountedRange {
        counted(reach, |at| due.iter().map(|secs| Instant::from_secs(*secs)).find(|one| *one > at))
    }

    fn text(plan: CatchUpPlan, due: &[i64]) -> String {
        let stretch = |name: &str, reach: Option<OccurrenceRange>| {
            let CountedRange { from, to, count } = count(reach?, due);
            Some(format!("{name} {}–{} ×{count}", from.secs(), to.secs()))
        };
        let live = plan.live.map(|at| format!("live {}", at.secs()));
        let parts = [stretch("missed", plan.missed), stretch("backlog", plan.backlog), live];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn late_occurrences_are_divided_by_policy_and_age() {
        use CatchUpPolicy::{All, Last, None};
        for (policy, within, due, now, expected) in [
            // On time, at the edge of the grace period and just past it.
            (Last, 3600, &[1000, 2000][..], 1000, "live 1000"),
            (Last, 3600, &[1000, 2000], 1060, "live 1000"),
            (Last, 3600, &[1000, 2000], 1061, "backlog 1000–1000 ×1"),
            (None, 3600, &[1000, 2000], 1061, "missed 1000–1000 ×1"),
            // Several occurrences were missed.
            (None, 3600, &[1000, 2000, 3000], 3500, "missed 1000–3000 ×3"),
            (Last, 3600, &[1000, 2000, 3000], 3500, "missed 1000–2000 ×2, backlog 3000–3000 ×1"),
            (All, 3600, &[1000, 2000, 3000], 3500, "backlog 1000–3000 ×3"),
            // Some or all are too old.
            (Last, 499, &[1000, 2000, 3000], 3500, "missed 1000–3000 ×3"),
            (Last, 500, &[1000, 2000, 3000], 3500, "missed 1000–2000 ×2, backlog 3000–3000 ×1"),
            (All, 1500, &[1000, 2000, 3000], 3500, "missed 1000–1000 ×1, backlog 2000–3000 ×2"),
            (All, 100, &[1000, 2000, 3000], 3500, "missed 1000–3000 ×3"),
            // The newest is on time.
            (None, 3600, &[1000, 2000, 3000], 3010, "missed 1000–2000 ×2, live 3000"),
            (Last, 3600, &[1000, 2000, 3000], 3010, "missed 1000–2000 ×2, live 3000"),
            (All, 3600, &[1000, 2000, 3000], 3010, "backlog 1000–2000 ×2, live 3000"),
            (All, 3600, &[1000, 3005, 3010, 3020], 3010, "backlog 1000–1000 ×1, live 3005"),
            // A window shorter than the grace period changes nothing for what is on time.
            (All, 0, &[1000, 1030], 1050, "live 1000"),
            // Nothing is due.
            (All, 3600, &[1000], 999, ""),
        ] {
            assert_eq!(text(planned(policy, within, due, now), due), expected, "{policy:?} {within} {due:?} {now}");
        }
    }

    #[test]
    fn counting_is_bounded() {
        let after = |at: Instant| Some(Instant::from_secs(at.secs() + 1));
        let before = |at: Instant| {
            Some(Instant::from_secs(if at.micros() % 1_000_000 == 0 { at.secs() - 1 } else { at.secs() }))
        };
        let catch_up = CatchUpRule { policy: CatchUpPolicy::Last, within: Span::from_secs(3600) };
        let now = Instant::from_secs(365 * 86_400);
        let computed = Cell::new(0);
        let counting = |at| {
            computed.set(computed.get() + 1);
            after(at)
        };
        let plan = plan(catch_up, Instant::EPOCH, now, Occurrences { after: &counting, before: &before });
        assert_eq!(plan.live, Some(now.minus(GRACE)));
        assert!(computed.replace(0) < 5, "dividing must not compute each occurrence");
        let missed = plan.missed.expect("a year was missed");
        assert_eq!(counted(missed, counting), CountedRange { from: missed.from, to: missed.to, count: COUNT_MAX });
        assert_eq!(computed.get(), COUNT_MAX - 1);
    }

    proptest! {
        #[test]
        fn every_due_occurrence_is_in_exactly_one_part(
            gaps in proptest::collection::vec(1i64..200, 1..40),
            within in 0u64..4000,
            ahead in 0i64..4000,
            policy in prop_oneof![Just(CatchUpPolicy::None), Just(CatchUpPolicy::Last), Just(CatchUpPolicy::All)],
        ) {
            let due: Vec<i64> = gaps.iter().scan(1000, |at, gap| { *at += gap; Some(*at) }).collect();
            let now = due[0] + ahead;
            let plan = planned(policy, within, &due, now);
            let mut counted = 0;
            let mut end = Instant::EPOCH;
            for stretch in [plan.missed, plan.backlog].into_iter().flatten().map(|reach| count(reach, &due)) {
                prop_assert!(end < stretch.from && stretch.from <= stretch.to);
                end = stretch.to;
                counted += stretch.count as usize;
            }
            if let Some(live) = plan.live {
                prop_assert!(end < live);
                counted += due.iter().filter(|at| Instant::from_secs(**at) >= live && **at <= now).count();
            }
            prop_assert_eq!(counted, due.iter().filter(|at| **at <= now).count());
        }
    }
}
