//! Jobs. The definition is JSON with the keys of a job file, and is decoded by the job file reader. What a job file
//! does not contain is in the first line.

use std::sync::Arc;

use cronhold_core::record::{JobRecord, JobSource, Record};
use cronhold_core::{JobId, JobUid};
use cronhold_jobfile::{Options, read_stored_job, render_line, write_job};
use cronhold_schedule::ZoneRegistry;
use serde::{Deserialize, Serialize};

use crate::head::{RecordBody, TextReader};
use crate::{UnreadableText, from_json};

#[derive(Serialize, Deserialize)]
struct JobHeadJson {
    uid: JobUid,
    revision: u32,
    source: JobSource,
    zone: String,
}

pub(super) fn write(body: &mut RecordBody, job: &JobRecord) {
    let JobRecord { uid, revision, source, zone, .. } = job;
    body.inline(&JobHeadJson { uid: *uid, revision: *revision, source: source.clone(), zone: zone.to_string() });
    body.json(&write_job(&job.job));
}

pub(super) fn read(id: JobId, reading: &TextReader<'_>, zones: &ZoneRegistry) -> Result<Record, UnreadableText> {
    let form: JobHeadJson = from_json(reading.last()?)?;
    let text = reading.rest();
    let read = read_stored_job(id.as_str(), text, &Options { zones });
    let job = read.job.ok_or_else(|| {
        let mistakes: Vec<String> = read.mistakes.iter().map(|mistake| render_line(mistake, text)).collect();
        UnreadableText(mistakes.join("; "))
    })?;
    let mut record = JobRecord::new(id, form.uid, Arc::new(job), form.zone.into(), form.source);
    record.revision = form.revision;
    Ok(Record::Job(Arc::new(record)))
}
