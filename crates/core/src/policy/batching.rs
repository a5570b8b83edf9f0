//! How pending triggers become runs.

use cronhold_schedule::Instant;

use crate::job::Batching;

/// A pending trigger as a policy sees it: when it arrived, and what the triggers of one run must have in common.
pub type Arrival<K> = (Instant, K);

/// How pending triggers are divided, as positions in their order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batches {
    /// Triggers of each new run, the oldest first.
    pub runs: Vec<Vec<usize>>,
    /// Triggers that are too old: those from the oldest to this position.
    pub expired: usize,
}

/// Divides pending triggers into runs. `arrivals` is sorted from oldest to newest, and `active` is the number of runs
/// that are already active. Triggers with different keys never share a run: each batch consists of triggers that have
/// the key of the oldest one that is left, and those with other keys wait for the next batch.
pub fn divide<K: PartialEq>(batching: Batching, active: u32, arrivals: &[Arrival<K>], now: Instant) -> Batches {
    let slots = slots(batching.concurrent(), active);
    match batching {
        Batching::Greedy { most, .. } => oldest_first(slots, arrivals, |left| left.min(most.max(1) as usize)),
        Batching::Logarithmic { most, base, .. } => {
            oldest_first(slots, arrivals, |left| logarithm(left, base, left.min(most.max(1) as usize)))
        }
        Batching::Newest { timeout, .. } => {
            // Old triggers are dropped even when no run can start now.
            let expired = arrivals.partition_point(|(arrival, _)| arrival.plus(timeout) <= now);
            let first = arrivals.len().saturating_sub(slots).max(expired);
            Batches { runs: (first..arrivals.len()).rev().map(|at| vec![at]).collect(), expired }
        }
    }
}

/// When the oldest trigger expires; `None` if triggers never do.
pub fn expiry<K>(batching: Batching, arrivals: &[Arrival<K>]) -> Option<Instant> {
    let Batching::Newest { timeout, .. } = batching else { return None };
    arrivals.first().map(|(arrival, _)| arrival.plus(timeout))
}

/// How many runs may start.
fn slots(concurrent: u32, active: u32) -> usize {
    concurrent.max(1).saturating_sub(active) as usize
}

fn oldest_first<K: PartialEq>(slots: usize, arrivals: &[Arrival<K>], size: impl Fn(usize) -> usize) -> Batches {
    let mut runs = Vec::new();
    let mut left: Vec<usize> = (0..arrivals.len()).collect();
    while runs.len() < slots
        && let Some(oldest) = left.first()
    {
        let key = &arrivals[*oldest].1;
        let mut batch: Vec<usize> = left.iter().copied().filter(|at| arrivals[*at].1 == *key).collect();
        batch.truncate(size(batch.len()).clamp(1, batch.len()));
        // Both are in the order of arrival.
        left.retain(|at| batch.binary_search(at).is_err());
        runs.push(batch);
    }
    Batches { runs, expired: 0 }
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

    /// Divides triggers that arrived at seconds 0, 1, 2, …, each with the key of its position; the time is second 100.
    fn divided_by_key(batching: Batching, active: u32, keys: &str) -> String {
        let arrivals: Vec<Arrival<char>> = (0i64..).map(Instant::from_secs).zip(keys.chars()).collect();
        let Batches { runs, expired } = divide(batching, active, &arrivals, Instant::from_secs(100));
        let mut words: Vec<String> =
            runs.iter().map(|run| run.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")).collect();
        if expired > 0 {
            words.push(format!("drop {expired}"));
        }
        words.join(" ")
    }

    /// The same for triggers with equal keys, as ranges.
    fn divided(batching: Batching, active: u32, waiting: usize) -> String {
        let text = divided_by_key(batching, active, &"a".repeat(waiting));
        let range = |word: &str| match word.split('+').collect::<Vec<_>>()[..] {
            [first, .., last] => format!("{first}–{last}"),
            [only] if only.parse::<usize>().is_ok() => format!("{only}–{only}"),
            _ => word.to_owned(),
        };
        match text.split_once("drop") {
            Some((runs, dropped)) => {
                let mut words: Vec<String> = runs.split_whitespace().map(range).collect();
                words.push(format!("drop{dropped}"));
                words.join(" ")
            }
            None => text.split_whitespace().map(range).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn triggers_are_divided_by_policy_and_free_slots() {
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
    fn triggers_with_different_keys_never_share_a_run() {
        let greedy = |concurrent, most| Batching::Greedy { concurrent, most };
        let logarithmic = |concurrent| Batching::Logarithmic { concurrent, most: 1000, base: 2.0 };
        let newest = |concurrent| Batching::Newest { concurrent, timeout: Span::from_secs(1000) };
        for (batching, active, keys, expected) in [
            (greedy(1, 1000), 0, "aba", "0+2"),
            (greedy(2, 1000), 0, "aba", "0+2 1"),
            (greedy(9, 1000), 0, "abcab", "0+3 1+4 2"),
            (greedy(9, 1), 0, "aba", "0 1 2"),
            (greedy(3, 2), 0, "aabaa", "0+1 2 3+4"),
            (greedy(2, 1000), 1, "ba", "0"),
            (logarithmic(1), 0, "abaaaaaaaa", "0+2+3"),
            (logarithmic(2), 0, "baaaaaaaa", "0 1+2+3"),
            (newest(2), 0, "aab", "2 1"),
        ] {
            assert_eq!(divided_by_key(batching, active, keys), expected, "{batching:?} {active} {keys}");
        }
    }

    #[test]
    fn only_triggers_of_newest_first_expire() {
        let arrivals = [(Instant::from_secs(5), ()), (Instant::from_secs(9), ())];
        let newest = Batching::Newest { concurrent: 1, timeout: Span::from_secs(10) };
        assert_eq!(expiry(newest, &arrivals), Some(Instant::from_secs(15)));
        assert_eq!(expiry(newest, &arrivals[..0]), None);
        assert_eq!(expiry(Batching::default(), &arrivals), None);
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
        fn batches_are_disjoint_and_of_one_key(
            concurrent in 0u32..20,
            most in 0u32..50,
            base in 1.01f64..20.0,
            active in 0u32..20,
            keys in proptest::collection::vec(0u8..4, 0..200),
        ) {
            for batching in [Batching::Greedy { concurrent, most }, Batching::Logarithmic { concurrent, most, base }] {
                let arrivals: Vec<Arrival<u8>> = keys.iter().map(|key| (Instant::EPOCH, *key)).collect();
                let found = divide(batching, active, &arrivals, Instant::EPOCH);
                prop_assert!(found.runs.len() <= slots(concurrent, active));
                let mut seen = std::collections::BTreeSet::new();
                for run in &found.runs {
                    prop_assert!(!run.is_empty() && run.len() <= most.max(1) as usize && run.is_sorted());
                    prop_assert!(run.iter().all(|at| keys[*at] == keys[run[0]] && seen.insert(*at)));
                }
                // With enough slots, none is left behind a run that has room for it.
                if found.runs.len() < slots(concurrent, active) {
                    prop_assert_eq!(seen.len(), keys.len());
                }
            }
        }
    }
}
