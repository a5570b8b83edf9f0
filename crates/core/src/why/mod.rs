//! Why a job runs or does not run, now or at a given time: a function of its stored records.
//!
//! The explanation is a list of [`Fact`]s, the most important first. `now.rs` finds those about the present and
//! `then.rs` those about an occurrence; `words.rs` turns them into short sentences.

mod fact;
mod known_records;
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
pub use known_records::KnownRecords;
pub(crate) use wall::ExplanationClock;
pub(crate) use words::doctor;
pub use words::{ExplanationLine, Tone};

use then::Question;

use crate::ids::JobId;
use crate::world::DecisionContext;

/// An explanation of what a job does or did.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The job that it is about.
    pub job: JobId,
    /// The current time when it was made.
    pub now: Instant,
    /// The facts, the most important first; never empty.
    pub facts: Vec<Fact>,
}

/// Explains why a job runs or does not run: at the time `at`, or now if it is `None`.
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
