//! The latest outcomes of jobs with certain args.

use std::sync::Arc;

use cronhold_core::record::{Identity, Outcome, Record};
use cronhold_core::{Args, JobId, RunId};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::Unreadable;
use super::head::{Body, Reading};

/// A run and when it ended.
type Pair = (RunId, i64);

#[derive(Serialize, Deserialize)]
struct Form {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<Pair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Pair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Pair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<Pair>,
}

pub(super) fn write(body: &mut Body, identity: &Identity) {
    let pair = |outcome: Option<Outcome>| outcome.map(|outcome| (outcome.run, outcome.at.micros()));
    body.json(&Form {
        success: pair(identity.success),
        failure: pair(identity.failure),
        error: pair(identity.error),
        skipped: pair(identity.skipped),
    });
}

pub(super) fn read(job: JobId, args: Args, reading: &Reading<'_>) -> Result<Record, Unreadable> {
    let form: Form = reading.json()?;
    let outcome = |pair: Option<Pair>| pair.map(|(run, at)| Outcome { run, at: Instant::from_micros(at) });
    Ok(Record::Identity(Arc::new(Identity {
        job,
        args,
        success: outcome(form.success),
        failure: outcome(form.failure),
        error: outcome(form.error),
        skipped: outcome(form.skipped),
    })))
}
