//! What the store has of the jobs in the directories, and which other jobs there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_cli::counted;
use cronhold_core::record::{JobRecord, JobSource, Record, RecordKey};
use cronhold_core::{Job, JobId};
use cronhold_store::{Fault, Query, Store};

/// Stored jobs that are looked at in one page.
const PAGE: usize = 1_000;

/// What the store has.
#[derive(Debug, Default)]
pub(super) struct StoredJobs {
    /// Jobs that come from one of the directories.
    pub(super) own: BTreeMap<JobId, DirectoryJob>,
    /// All others.
    pub(super) elsewhere: BTreeSet<JobId>,
    /// Jobs that name calendars, wherever they come from.
    pub(super) with_calendars: BTreeSet<JobId>,
    /// Those that come from directories which are not given, by prefix: how many, and one of them.
    orphans: BTreeMap<String, (usize, JobId)>,
}

/// A stored job that comes from one of the directories.
#[derive(Debug)]
pub(super) struct DirectoryJob {
    /// Which.
    pub(super) root: usize,
    pub(super) job: Arc<Job>,
    pub(super) zone: Arc<str>,
}

impl StoredJobs {
    /// Looks through the store.
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

    /// What is to be said of jobs whose directories are not given.
    pub(super) fn orphans(&self) -> impl Iterator<Item = String> {
        self.orphans.iter().map(|(prefix, (count, first))| {
            let jobs = counted(*count, "job");
            let option = if prefix.is_empty() { "--jobs DIR".to_owned() } else { format!("--jobs {prefix}=DIR") };
            format!(
                "{jobs} such as {first} came from a directory that is not given now, and stay as they are; \
                 give it again with {option}, or remove them with `cronhold del`"
            )
        })
    }
}

pub(super) fn names_calendars(job: &Job) -> bool {
    job.schedules.iter().any(|schedule| schedule.spec.calendar.is_some())
}
