//! The retry policy: whether and when a run that did not succeed is retried.

use cronhold_schedule::{Instant, Span};

use crate::ids::RunId;
use crate::job::{OnLost, Retry, RetryOn};
use crate::run::{Reason, State};

/// The most attempts of a run whose nodes are lost while they start it, even if `attempts` is smaller.
pub const LOST_ATTEMPTS_MAX: u32 = 5;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd<'a> {
    /// The state in which it ended.
    pub state: State,
    /// The reason of that state.
    pub reason: Option<&'a Reason>,
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// When it ended.
    pub at: Instant,
    /// The id of its run.
    pub run: RunId,
}

/// When the next attempt starts, if there is one.
pub fn next_attempt(retry: &Retry, on_lost: OnLost, ended: AttemptEnd<'_>) -> Option<Instant> {
    let most_attempts = if ended.reason == Some(&Reason::StartUnknown) && on_lost == OnLost::Retry {
        retry.attempts.max(LOST_ATTEMPTS_MAX)
    } else if is_wanted(retry, ended) {
        retry.attempts
    } else {
        return None;
    };
    (ended.attempt < most_attempts).then(|| ended.at.plus(spread(wait_after(retry, ended.attempt), ended.run)))
}

/// How long to wait after an attempt: the backoff times the factor for each attempt before it, up to the longest wait.
pub fn wait_after(retry: &Retry, attempt: u32) -> Span {
    let factor = if retry.factor.is_finite() && retry.factor > 0.0 { retry.factor } else { 1.0 };
    let times = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    // An overflowing product is infinite, and the conversion to an integer saturates.
    let micros = (retry.backoff.micros() as f64 * factor.powi(times)).round() as u64;
    Span::from_micros(micros).min(retry.most)
}

/// Makes a wait longer by up to a quarter, so that runs that failed together are not retried together. The share depends
/// on the run alone: the low bits of its id are a hash, or random.
fn spread(wait: Span, run: RunId) -> Span {
    let share = run.bits() as u32;
    let more = (u128::from(wait.micros() / 4) * u128::from(share)) >> u32::BITS;
    wait.plus(Span::from_micros(u64::try_from(more).unwrap_or(u64::MAX)))
}

/// Whether the policy retries such an outcome. A run that an operator ended is not retried.
fn is_wanted(retry: &Retry, ended: AttemptEnd<'_>) -> bool {
    let on_purpose =
        |reason: &Reason| matches!(reason, Reason::Stopped | Reason::Killed | Reason::Replaced | Reason::ByOperator(_));
    !ended.reason.is_some_and(on_purpose)
        && match ended.state {
            State::Failure => retry.on.contains(&RetryOn::Failure),
            State::Error => retry.on.contains(&RetryOn::Error),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn retry(attempts: u32, factor: f64, on: &[RetryOn]) -> Retry {
        let on: BTreeSet<RetryOn> = on.iter().copied().collect();
        Retry { attempts, backoff: Span::from_secs(10), factor, most: Span::from_secs(600), on }
    }

    #[test]
    fn wait_grows_by_the_factor_up_to_its_maximum() {
        for (factor, attempt, expected) in [
            (2.0, 1, "10s"),
            (2.0, 2, "20s"),
            (2.0, 6, "5m20s"),
            (2.0, 7, "10m"),
            (2.0, u32::MAX, "10m"),
            (1.0, 50, "10s"),
            (1.5, 3, "22s500ms"),
            (0.5, 3, "2s500ms"),
            (f64::NAN, 3, "10s"),
            (f64::INFINITY, 3, "10s"),
            (-2.0, 3, "10s"),
            (2.0, 0, "10s"),
        ] {
            let wait = wait_after(&retry(9, factor, &[]), attempt);
            assert_eq!(wait.to_string(), expected, "{factor} {attempt}");
        }
    }

    #[test]
    fn outcome_reason_and_attempts_decide_about_a_retry() {
        use RetryOn::{Error, Failure};
        let failed = Reason::ExitCode(1);
        for (attempts, on, lost, state, reason, attempt, expected) in [
            (3, &[Failure][..], OnLost::Error, State::Failure, &failed, 1, Some(10)),
            (3, &[Failure], OnLost::Error, State::Failure, &failed, 2, Some(20)),
            (3, &[Failure], OnLost::Error, State::Failure, &failed, 3, None),
            (1, &[Failure], OnLost::Error, State::Failure, &failed, 1, None),
            (3, &[Failure], OnLost::Error, State::Success, &failed, 1, None),
            (3, &[Failure], OnLost::Error, State::Skipped, &Reason::Overlap, 1, None),
            (3, &[Failure], OnLost::Error, State::Error, &Reason::KeeperLost, 1, None),
            (3, &[Failure, Error], OnLost::Error, State::Error, &Reason::KeeperLost, 1, Some(10)),
            (3, &[Error], OnLost::Error, State::Failure, &failed, 1, None),
            (3, &[Failure], OnLost::Error, State::Failure, &Reason::Timeout, 1, Some(10)),
            (3, &[Failure], OnLost::Error, State::Failure, &Reason::Stopped, 1, None),
            (3, &[Failure], OnLost::Error, State::Failure, &Reason::Killed, 1, None),
            (3, &[Failure], OnLost::Error, State::Failure, &Reason::ByOperator(String::new()), 1, None),
            (1, &[Failure], OnLost::Error, State::Error, &Reason::StartUnknown, 1, None),
            (1, &[Failure], OnLost::Retry, State::Error, &Reason::StartUnknown, 1, Some(10)),
            (1, &[Failure], OnLost::Retry, State::Error, &Reason::StartUnknown, 5, None),
            (1, &[Failure], OnLost::Retry, State::Error, &Reason::NodeLost, 1, None),
        ] {
            // The low bits of this id are zero, so that its waits are not made longer.
            let run = RunId::from_random(Instant::EPOCH, [0; 10]);
            let ended = AttemptEnd { state, reason: Some(reason), attempt, at: Instant::EPOCH, run };
            let found = next_attempt(&retry(attempts, 2.0, on), lost, ended);
            assert_eq!(found, expected.map(Instant::from_secs), "{attempts} {on:?} {state} {reason} {attempt}");
        }
    }

    #[test]
    fn runs_that_failed_together_are_retried_apart() {
        let policy = retry(3, 2.0, &[RetryOn::Failure]);
        let second = |job: u32| {
            let run = RunId::from_key(Instant::EPOCH, &job.to_string());
            let failed = AttemptEnd { state: State::Failure, reason: None, attempt: 1, at: Instant::EPOCH, run };
            let at = next_attempt(&policy, OnLost::Error, failed).expect("a retry");
            assert_eq!(next_attempt(&policy, OnLost::Error, failed), Some(at), "the same run waits the same time");
            at.millis() / 100
        };
        let times: BTreeSet<i64> = (0..1_000).map(second).collect();
        assert_eq!((times.first(), times.last(), times.len()), (Some(&100), Some(&124), 25), "in tenths of a second");
    }

    proptest! {
        #[test]
        fn waits_stay_within_bounds(factor in any::<f64>(), attempt in any::<u32>(), backoff in any::<u64>()) {
            let mut retry = retry(9, factor, &[]);
            retry.backoff = Span::from_micros(backoff);
            prop_assert!(wait_after(&retry, attempt) <= retry.most);
        }
    }
}
