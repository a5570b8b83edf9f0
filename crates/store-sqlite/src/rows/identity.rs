//! Identities: the latest outcomes of a job with certain arguments.

use std::sync::Arc;

use cronhold_core::record::{Identity, LatestOutcome, LatestOutcomes, OutcomeStreak, Record};
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
        "streak",
    ],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, identity: &Identity) {
    let LatestOutcomes { success, failure, error, skipped, streak } = identity.outcomes;
    for outcome in [success, failure, error, skipped] {
        cells.option(outcome, |cells, outcome| cells.display(&outcome.run));
        cells.option(outcome, |cells, outcome| cells.instant(outcome.at));
    }
    cells.option(streak.as_ref(), RowCells::json);
}

pub(super) fn read(job: JobId, args: Args, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let outcome = || -> Result<Option<LatestOutcome>, UnreadableRow> {
        let (run, at) = (reading.option_parsed(RunId::parse)?, reading.option_instant()?);
        Ok(run.zip(at).map(|(run, at)| LatestOutcome { run, at }))
    };
    let (success, failure) = (outcome()?, outcome()?);
    let (error, skipped) = (outcome()?, outcome()?);
    let streak: Option<OutcomeStreak> = reading.option_json()?;
    let outcomes = LatestOutcomes { success, failure, error, skipped, streak };
    Ok(Record::Identity(Arc::new(Identity { job, args, outcomes })))
}
