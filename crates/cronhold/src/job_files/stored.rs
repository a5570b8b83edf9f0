//! The stored jobs: those that come from the directories, and all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_cli::counted;
use cronhold_core::record::{JobRecord, JobSource, Record, RecordKey};
use cronhold_core::{Job, JobId};
use cronhold_store::{Fault, Query, Store};

/// Jobs that are read with one request.
const PAGE: usize = 1_000;

/// The jobs in the store, grouped by their source.
#[derive(Debug, Default)]
pub(super) struct StoredJobs {
    /// Jobs that come from one of the directories.
    pub(super) own: BTreeMap<JobId, DirectoryJob>,
    /// Jobs that come from elsewhere.
    pub(super) elsewhere: BTreeSet<JobId>,
    /// Jobs from any source that name calendars.
    pub(super) with_calendars: BTreeSet<JobId>,
    /// Jobs that come from directories that were not given, by prefix: their number, and the first of them.
    orphans: BTreeMap<String, (usize, JobId)>,
}

/// A stored job that comes from one of the directories.
#[derive(Debug)]
pub(super) struct DirectoryJob {
    /// The index of the directory.
    pub(super) root: usize,
    pub(super) job: Arc<Job>,
    pub(super) zone: Arc<str>,
}

impl StoredJobs {
    /// Reads all jobs in the store.
    pub(super) async fn read(store: &dyn Store, sources: &[JobSource]) -> Result<Self, Fault> {
        let mut stored = Self::default();
        let mut after = None;
        loop {
            let page = store.page(&Query::Jobs { after }, PAGE).await?;
            for found in &page.records {
                if let Record::Job(record) = &found.record {
                    stored.take(record, sources);
                }
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Job(last)) => Some(last),
                _ => return Ok(stored),
            };
        }
    }

    fn take(&mut self, record: &JobRecord, sources: &[JobSource]) {
        if names_calendars(&record.job) {
            self.with_calendars.insert(record.id.clone());
        }
        if let Some(root) = sources.iter().position(|source| *source == record.source) {
            let own = DirectoryJob { root, job: Arc::clone(&record.job), zone: Arc::clone(&record.zone) };
            self.own.insert(record.id.clone(), own);
            return;
        }
        self.elsewhere.insert(record.id.clone());
        if let JobSource::Directory(prefix) = &record.source {
            self.orphans.entry(prefix.clone()).or_insert_with(|| (0, record.id.clone())).0 += 1;
        }
    }

    /// A message for each prefix that has jobs and whose directory was not given.
    pub(super) fn orphans(&self) -> impl Iterator<Item = String> {
        self.orphans.iter().map(|(prefix, (count, first))| {
            let jobs = counted(*count, "job");
            let option = if prefix.is_empty() { "--jobs DIR".to_owned() } else { format!("--jobs {prefix}=DIR") };
            format!(
                "{jobs} such as {first} came from a directory that is not given now, and stay unchanged; \
                 give the directory with {option}, or remove the jobs with `cronhold del`"
            )
        })
    }
}

pub(super) fn names_calendars(job: &Job) -> bool {
    job.schedules.iter().any(|schedule| schedule.spec.calendar.is_some())
}
