//! Identities: the latest outcomes of a job with certain arguments.

use std::sync::Arc;

use cronhold_core::record::{Identity, LatestOutcome, LatestOutcomes, OutcomeStreak, Record};
use cronhold_core::{Args, JobId, RunId};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::UnreadableText;
use crate::head::{RecordBody, TextReader};

/// A run and when it ended.
type EndedRun = (RunId, i64);

/// The latest outcomes of an identity, or of the runs without args in a job state.
#[derive(Serialize, Deserialize)]
pub(super) struct OutcomesJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streak: Option<OutcomeStreak>,
}

impl From<LatestOutcomes> for OutcomesJson {
    fn from(outcomes: LatestOutcomes) -> Self {
        let pair = |outcome: Option<LatestOutcome>| outcome.map(|outcome| (outcome.run, outcome.at.micros()));
        let LatestOutcomes { success, failure, error, skipped, streak } = outcomes;
        Self { success: pair(success), failure: pair(failure), error: pair(error), skipped: pair(skipped), streak }
    }
}

impl From<OutcomesJson> for LatestOutcomes {
    fn from(form: OutcomesJson) -> Self {
        let outcome =
            |pair: Option<EndedRun>| pair.map(|(run, at)| LatestOutcome { run, at: Instant::from_micros(at) });
        let OutcomesJson { success, failure, error, skipped, streak } = form;
        Self {
            success: outcome(success),
            failure: outcome(failure),
            error: outcome(error),
            skipped: outcome(skipped),
            streak,
        }
    }
}

pub(super) fn write(body: &mut RecordBody, identity: &Identity) {
    body.json(&OutcomesJson::from(identity.outcomes));
}

pub(super) fn read(job: JobId, args: Args, reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    let form: OutcomesJson = reading.json()?;
    Ok(Record::Identity(Arc::new(Identity { job, args, outcomes: form.into() })))
}
