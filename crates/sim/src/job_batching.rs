//! Draws batching policies of jobs, and triggers. They have random streams of their own, so that a simulation without
//! them stays the same.

use cronhold_core::Job;
use cronhold_core::job::Batching;
use cronhold_core::record::TriggerId;

use crate::random::SimRandom;

/// Ids of triggers. There are more triggers than ids, so that some are sent twice.
const IDS: u64 = 200;

/// Gives a job a batching policy, or none.
pub(crate) fn draw_batching(job: &mut Job, rng: &SimRandom) {
    let few = || u32::try_from(rng.between(1, 3)).expect("small");
    let most = if rng.one_in(2) { few() } else { Batching::MOST_DEFAULT };
    let concurrent = few();
    job.batching = match rng.between(0, 7) {
        0 | 1 => None,
        2..=4 => Some(Batching::Greedy { concurrent, most }),
        5 => Some(Batching::Logarithmic { concurrent, most, base: 1.5 }),
        _ => Some(Batching::Newest { concurrent, timeout: rng.secs(5, 400) }),
    };
}

/// Draws the id of a trigger.
pub(crate) fn draw_id(rng: &SimRandom) -> TriggerId {
    TriggerId::parse(&format!("t{}", rng.between(1, IDS))).expect("a short id")
}
