//! Identities: the latest outcomes of a job with certain arguments.

use std::sync::Arc;

use cronhold_core::record::{Identity, LatestOutcome, LatestOutcomes, Record};
use cronhold_core::{Args, JobId, RunId};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "identities",
    key: &["job", "args"],
    rest: &[
        "success_run",
        "success_at",
        "failure_run",
        "failure_at",
        "error_run",
        "error_at",
        "skipped_run",
        "skipped_at",
    ],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, identity: &Identity) {
    let LatestOutcomes { success, failure, error, skipped } = identity.outcomes;
    for outcome in [success, failure, error, skipped] {
        cells.option(outcome, |cells, outcome| cells.display(&outcome.run));
        cells.option(outcome, |cells, outcome| cells.instant(outcome.at));
    }
}

pub(super) fn read(job: JobId, args: Args, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let outcome = || -> Result<Option<LatestOutcome>, UnreadableRow> {
        let (run, at) = (reading.option_parsed(RunId::parse)?, reading.option_instant()?);
        Ok(run.zip(at).map(|(run, at)| LatestOutcome { run, at }))
    };
    let (success, failure) = (outcome()?, outcome()?);
    let (error, skipped) = (outcome()?, outcome()?);
    let outcomes = LatestOutcomes { success, failure, error, skipped };
    Ok(Record::Identity(Arc::new(Identity { job, args, outcomes })))
}
