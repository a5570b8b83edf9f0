//! Identities: the latest outcomes of a job with certain arguments.

use std::sync::Arc;

use cronhold_core::record::{Identity, LatestOutcome, Record};
use cronhold_core::{Args, JobId, RunId};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::UnreadableText;
use super::head::{RecordBody, TextReader};

/// A run and when it ended.
type EndedRun = (RunId, i64);

#[derive(Serialize, Deserialize)]
struct IdentityJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<EndedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<EndedRun>,
}

pub(super) fn write(body: &mut RecordBody, identity: &Identity) {
    let pair = |outcome: Option<LatestOutcome>| outcome.map(|outcome| (outcome.run, outcome.at.micros()));
    body.json(&IdentityJson {
        success: pair(identity.success),
        failure: pair(identity.failure),
        error: pair(identity.error),
        skipped: pair(identity.skipped),
    });
}

pub(super) fn read(job: JobId, args: Args, reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    let form: IdentityJson = reading.json()?;
    let outcome = |pair: Option<EndedRun>| pair.map(|(run, at)| LatestOutcome { run, at: Instant::from_micros(at) });
    Ok(Record::Identity(Arc::new(Identity {
        job,
        args,
        success: outcome(form.success),
        failure: outcome(form.failure),
        error: outcome(form.error),
        skipped: outcome(form.skipped),
    })))
}
