//! How actions are delivered: how long an attempt may take, when the next one follows, and when an action is given up.

use cronhold_schedule::{Instant, Span};

use crate::job::ActionKind;
use crate::record::ActionId;

/// The wait after the first failed attempt.
pub const FIRST_WAIT: Span = Span::from_secs(5);
/// The longest wait between two attempts, without the random part.
pub const LONGEST_WAIT: Span = Span::from_secs(3_600);
/// An action that was not delivered within this time after its event is given up.
pub const GIVE_UP_AFTER: Span = Span::from_secs(24 * 3_600);
/// How long an attempt may wait for its turn on the node that has begun it. Its lease includes this time.
pub const QUEUE_WAIT: Span = Span::from_secs(20);
/// How long a node has the first turn at an action that it can decide alone.
const DECIDE_WITHIN: Span = Span::from_secs(10);

/// How long one attempt may take, from the first byte sent to the last byte received.
pub const fn attempt_timeout(kind: ActionKind) -> Span {
    match kind {
        ActionKind::Run => DECIDE_WITHIN,
        ActionKind::Webhook | ActionKind::Publish => Span::from_secs(20),
        ActionKind::Email => Span::from_secs(120),
        ActionKind::Command => Span::from_secs(300),
    }
}

/// How long an attempt belongs to the node that has begun it. After that any node may try again.
pub fn lease(kind: ActionKind) -> Span {
    match kind {
        ActionKind::Run => DECIDE_WITHIN,
        ActionKind::Webhook | ActionKind::Email | ActionKind::Command | ActionKind::Publish => {
            attempt_timeout(kind).plus(QUEUE_WAIT)
        }
    }
}

/// When the next attempt may begin after `failures` failed ones; `None` if the action is given up. The wait doubles with
/// each failure, and is longer by up to a quarter, so that actions that failed together are not tried again together.
pub fn next_attempt(id: ActionId, created: Instant, failures: u32, now: Instant) -> Option<Instant> {
    let doubled = FIRST_WAIT.micros().saturating_mul(1 << failures.saturating_sub(1).min(32));
    let wait = Span::from_micros(doubled).min(LONGEST_WAIT);
    let next = now.plus(wait.plus(spread(wait, id, failures)));
    (next <= created.plus(GIVE_UP_AFTER)).then_some(next)
}

/// Up to a quarter of a wait. The share depends on the action and the attempt: the low bits of a run's id are a hash, or
/// random.
fn spread(wait: Span, id: ActionId, failures: u32) -> Span {
    let seed = (id.run.bits() as u64) ^ (u64::from(id.number) << 32 | u64::from(failures));
    // The finalizer of SplitMix64: similar seeds give unrelated results.
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let share = u128::from((mixed ^ (mixed >> 31)) >> 32);
    let more = (u128::from(wait.micros() / 4) * share) >> u32::BITS;
    Span::from_micros(u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunId;

    fn id(number: u32) -> ActionId {
        ActionId::new(RunId::from_key(Instant::EPOCH, "r"), number)
    }

    #[test]
    fn waits_grow_from_seconds_to_an_hour_and_end_after_a_day() {
        let (mut now, mut waits) = (Instant::EPOCH, Vec::new());
        for failures in 1.. {
            let Some(next) = next_attempt(id(0), Instant::EPOCH, failures, now) else { break };
            waits.push(next.since(now));
            now = next;
        }
        assert!(waits[0] >= FIRST_WAIT && waits[0] < Span::from_secs(7), "{waits:?}");
        assert!(waits[..10].is_sorted(), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= Span::from_secs(4_500)), "{waits:?}");
        assert!((25..=40).contains(&waits.len()), "{}", waits.len());
        assert!(now > Instant::EPOCH.plus(Span::from_secs(22 * 3_600)));
    }

    #[test]
    fn actions_that_fail_together_are_not_tried_again_together() {
        let mut times: Vec<_> =
            (0..100).map(|number| next_attempt(id(number), Instant::EPOCH, 3, Instant::EPOCH)).collect();
        times.sort();
        times.dedup();
        assert!(times.len() > 95, "{}", times.len());
    }

    #[test]
    fn lease_outlasts_the_attempt_and_a_webhook_is_taken_over_within_a_minute() {
        for kind in ActionKind::ALL {
            assert!(lease(kind) >= attempt_timeout(kind), "{kind:?}");
        }
        assert!(lease(ActionKind::Webhook) < Span::from_secs(60));
    }
}
