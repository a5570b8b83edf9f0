//! Definitions of stored jobs, for those who compare very many of them.

use std::sync::Arc;

use cronhold_core::record::{JobSource, Record, RecordKey};
use cronhold_core::{Job, JobId};

use crate::Page;

/// A page of definitions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DefinitionPage {
    /// Jobs in the order of their ids.
    pub jobs: Vec<JobDefinition>,
    /// The id after which the next page begins; `None` if this page is the last.
    pub next: Option<JobId>,
}

/// The definition of a stored job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobDefinition {
    pub id: JobId,
    pub source: JobSource,
    /// The zone of its schedules that name none.
    pub zone: Arc<str>,
    pub definition: StoredDefinition,
}

/// A definition, as the store has it.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredDefinition {
    /// Decoded.
    Job(Arc<Job>),
    /// JSON in the keys of a job file. It may be invalid.
    Json(String),
}

impl DefinitionPage {
    /// The definitions in a page of jobs, for which `limit` jobs were requested.
    pub(crate) fn of(page: &Page, limit: usize) -> Self {
        let jobs = page.records.iter().filter_map(|found| {
            let Record::Job(job) = &found.record else { return None };
            let (source, zone) = (job.source.clone(), Arc::clone(&job.zone));
            let definition = StoredDefinition::Job(Arc::clone(&job.job));
            Some(JobDefinition { id: job.id.clone(), source, zone, definition })
        });
        let next = match page.next(limit) {
            Some(RecordKey::Job(last)) => Some(last),
            _ => None,
        };
        Self { jobs: jobs.collect(), next }
    }
}
