//! Jobs. The definition is JSON with the keys of a job file, and is decoded by the job file reader.

use std::sync::Arc;

use cronhold_core::record::{JobRecord, JobSource, Record};
use cronhold_core::{JobId, JobUid};
use cronhold_jobfile::{Options, read_stored_job, render_line, write_job};
use cronhold_schedule::ZoneRegistry;

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout =
    TableLayout { name: "jobs", key: &["id"], rest: &["uid", "revision", "source", "zone", "definition"], fixed: &[] };

pub(super) fn write(cells: &mut RowCells, job: &JobRecord) {
    cells.display(&job.uid);
    cells.integer(job.revision);
    cells.display(&job.source);
    cells.text(&job.zone);
    cells.json(&write_job(&job.job));
}

pub(super) fn read(id: JobId, reading: &CellReader<'_>, zones: &ZoneRegistry) -> Result<Record, UnreadableRow> {
    let (uid, revision) = (reading.parsed(JobUid::parse)?, reading.integer()?);
    let source = reading.parsed(JobSource::parse)?;
    let zone = reading.text()?.into();
    let text = reading.text()?;
    let read = read_stored_job(id.as_str(), text, &Options { zones });
    let job = read.job.ok_or_else(|| {
        let mistakes: Vec<String> = read.mistakes.iter().map(|mistake| render_line(mistake, text)).collect();
        reading.wrong(&mistakes.join("; "))
    })?;
    let mut record = JobRecord::new(id, uid, Arc::new(job), zone, source);
    record.revision = revision;
    Ok(Record::Job(Arc::new(record)))
}
