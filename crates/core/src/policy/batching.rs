//! How the pending messages of a trigger become runs.

use std::ops::Range;

use cronhold_schedule::Instant;

use crate::job::Batching;

/// How pending messages are divided, as positions in their order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batches {
    /// Messages of each new run.
    pub runs: Vec<Range<usize>>,
    /// Messages that are too old, from the oldest to this position.
    pub dropped: usize,
}

/// Divides pending messages into runs. `arrivals` is sorted from oldest to newest, and `active` is the number of runs
/// that are already active.
pub fn divide(batching: Batching, active: u32, arrivals: &[Instant], now: Instant) -> Batches {
    match batching {
        Batching::Greedy { concurrent, most } => {
            oldest_first(slots(concurrent, active), arrivals.len(), |left| left.min(most.max(1) as usize))
        }
        Batching::Logarithmic { concurrent, most, base } => {
            oldest_first(slots(concurrent, active), arrivals.len(), |left| {
                logarithm(left, base, left.min(most.max(1) as usize))
            })
        }
        Batching::Newest { concurrent, timeout } => {
            // Old messages are dropped even when no run can start now.
            let dropped = arrivals.partition_point(|arrival| arrival.plus(timeout) <= now);
            let first = arrivals.len().saturating_sub(slots(concurrent, active)).max(dropped);
            Batches { runs: (first..arrivals.len()).rev().map(|at| at..at + 1).collect(), dropped }
        }
    }
}

fn slots(concurrent: u32, active: u32) -> usize {
    concurrent.max(1).saturating_sub(active) as usize
}

fn oldest_first(slots: usize, waiting: usize, size: impl Fn(usize) -> usize) -> Batches {
    let mut runs = Vec::new();
    let mut at = 0;
    while runs.len() < slots && at < waiting {
        let end = at + size(waiting - at).clamp(1, waiting - at);
        runs.push(at..end);
        at = end;
    }
    Batches { runs, dropped: 0 }
}

/// The largest integer `n` between 1 and `most` with `base^n <= number`. It multiplies instead of dividing logarithms,
/// so that exact powers are exact: the logarithm of 1000 to the base 10 is 3.
fn logarithm(number: usize, base: f64, most: usize) -> usize {
    let number = number as f64;
    let mut power = base;
    let mut exponent = 1;
    while exponent < most && power * base <= number {
        power *= base;
        exponent += 1;
    }
    exponent
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;
    use proptest::prelude::*;

    use super::*;

    /// Divides messages that arrived at seconds 0, 1, 2, …; the time is second 100.
    fn divided(batching: Batching, active: u32, waiting: usize) -> String {
        let arrivals: Vec<Instant> = (0i64..).take(waiting).map(Instant::from_secs).collect();
        let Batches { runs, dropped } = divide(batching, active, &arrivals, Instant::from_secs(100));
        let mut words: Vec<String> = runs.iter().map(|run| format!("{}–{}", run.start, run.end - 1)).collect();
        if dropped > 0 {
            words.push(format!("drop {dropped}"));
        }
        words.join(" ")
    }

    #[test]
    fn messages_are_divided_by_policy_and_free_slots() {
        let greedy = |concurrent, most| Batching::Greedy { concurrent, most };
        let logarithmic = |concurrent, base| Batching::Logarithmic { concurrent, most: 1000, base };
        let newest = |concurrent, secs| Batching::Newest { concurrent, timeout: Span::from_secs(secs) };
        for (batching, active, waiting, expected) in [
            (greedy(1, 1000), 0, 0, ""),
            (greedy(1, 1000), 0, 5, "0–4"),
            (greedy(1, 1000), 1, 5, ""),
            (greedy(2, 3), 0, 4, "0–2 3–3"),
            (greedy(2, 3), 1, 4, "0–2"),
            (greedy(2, 3), 9, 4, ""),
            (greedy(9, 2), 0, 5, "0–1 2–3 4–4"),
            (greedy(0, 0), 0, 2, "0–0"),
            (logarithmic(1, 2.0), 0, 1, "0–0"),
            (logarithmic(1, 2.0), 0, 3, "0–0"),
            (logarithmic(1, 2.0), 0, 4, "0–1"),
            (logarithmic(1, 2.0), 0, 5, "0–1"),
            (logarithmic(1, 2.0), 0, 8, "0–2"),
            (logarithmic(1, 2.0), 0, 11, "0–2"),
            (logarithmic(2, 2.0), 0, 8, "0–2 3–4"),
            (logarithmic(1, 10.0), 0, 999, "0–1"),
            (logarithmic(1, 10.0), 0, 1000, "0–2"),
            (Batching::Logarithmic { concurrent: 1, most: 2, base: 2.0 }, 0, 1000, "0–1"),
            (newest(2, 1000), 0, 5, "4–4 3–3"),
            (newest(2, 1000), 1, 5, "4–4"),
            (newest(9, 98), 0, 5, "4–4 3–3 drop 3"),
            (newest(1, 98), 1, 5, "drop 3"),
            (newest(9, 0), 0, 2, "drop 2"),
        ] {
            assert_eq!(divided(batching, active, waiting), expected, "{batching:?} {active} {waiting}");
        }
    }

    #[test]
    fn logarithm_of_an_exact_power_is_exact() {
        for base in 2usize..=10 {
            let mut power = base;
            for exponent in 1..=12 {
                assert_eq!(logarithm(power, base as f64, usize::MAX), exponent, "{base}^{exponent}");
                assert_eq!(
                    logarithm(power - 1, base as f64, usize::MAX),
                    (exponent - 1).max(1),
                    "{base}^{exponent} - 1"
                );
                power *= base;
            }
        }
        for odd in [1.0, 0.0, -3.0, f64::NAN, f64::INFINITY] {
            assert!(logarithm(1000, odd, 7) <= 7, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn batches_are_disjoint_and_within_the_messages(
            concurrent in 0u32..20,
            most in 0u32..50,
            base in 1.01f64..20.0,
            active in 0u32..20,
            waiting in 0usize..200,
        ) {
            for batching in [Batching::Greedy { concurrent, most }, Batching::Logarithmic { concurrent, most, base }] {
                let arrivals = vec![Instant::EPOCH; waiting];
                let found = divide(batching, active, &arrivals, Instant::EPOCH);
                prop_assert!(found.runs.len() <= slots(concurrent, active));
                let mut end = 0;
                for run in found.runs {
                    prop_assert_eq!(run.start, end);
                    prop_assert!(run.end > run.start && run.end <= waiting && run.len() <= most.max(1) as usize);
                    end = run.end;
                }
            }
        }
    }
}
