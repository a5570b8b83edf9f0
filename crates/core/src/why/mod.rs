//! Why a job runs or does not run, now or at some time: a function of the records that are stored about it.
//!
//! The answer is a list of [`Fact`]s, the most important first. `now.rs` finds those about the present
//! and `then.rs` those about an occurrence; `words.rs` says them as a colleague would who was there.

mod fact;
mod known;
pub(crate) mod ledger;
mod now;
mod reasons;
#[cfg(test)]
pub(crate) mod tests;
mod then;
mod wall;
mod words;

use cronhold_schedule::Instant;

pub use fact::{Fact, Hindrance, OccurrenceOutcome, Prospect, TimePosition, Unable};
pub use known::KnownRecords;
pub(crate) use wall::ExplanationClock;
pub(crate) use words::doctor;
pub use words::{ExplanationLine, Tone};

use then::Question;

use crate::ids::JobId;
use crate::world::DecisionContext;

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// About which job.
    pub job: JobId,
    /// When it was asked.
    pub now: Instant,
    /// The most important first; never empty.
    pub facts: Vec<Fact>,
}

/// Why a job does or does not run: at a time when there is one, else at the moment.
pub fn why(
    job: &JobId,
    known: &KnownRecords,
    world: &DecisionContext,
    now: Instant,
    at: Option<Instant>,
) -> Explanation {
    let facts = match at {
        None => now::facts(job, known, world, now),
        Some(at) => then::facts(Question { job, known, world, now, at }),
    };
    Explanation { job: job.clone(), now, facts }
}
