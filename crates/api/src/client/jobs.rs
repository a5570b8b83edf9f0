//! Requests about jobs.

use cronhold_schedule::{Instant, Span};
use hyper::Method;
use hyper::header::{IF_MATCH, IF_NONE_MATCH};

use super::exchange::RequestBuilder;
use super::{CallError, DaemonClient, RequestPath, api};
use crate::{
    BackfillPlan, ComingList, JobDetail, JobList, LIMIT_MAX, PauseBody, RenameBody, RenamedJob, UpcomingRun, WhyReport,
};

/// Filter of a list of jobs.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Pattern of the ids, with `*` and `?`.
    pub pattern: Option<String>,
    /// Label of the jobs.
    pub label: Option<String>,
}

/// Precondition of adding or changing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutPrecondition {
    /// The job must not exist.
    New,
    /// The job must have this ETag; `*` for any.
    As(String),
    /// The job may exist or not.
    Anyway,
}

impl DaemonClient {
    /// Loads a page of jobs after a job id.
    pub fn job_page(&self, filter: &JobFilter, after: Option<&str>, limit: usize) -> Result<JobList, CallError> {
        let path = api().segment("jobs").with_some("match", filter.pattern.as_ref());
        let path = path.with_some("label", filter.label.as_ref()).with_some("after", after).with("limit", limit);
        self.get(path)
    }

    /// Loads all jobs, page by page.
    pub fn jobs(&self, filter: &JobFilter) -> Result<JobList, CallError> {
        let mut all = self.job_page(filter, None, LIMIT_MAX)?;
        while let Some(after) = all.next.take() {
            let page = self.job_page(filter, Some(&after), LIMIT_MAX)?;
            if page.next.as_ref() == Some(&after) {
                return Err(CallError::Broken(format!(
                    "the page of jobs after `{after}` names itself as the next page"
                )));
            }
            all.jobs.extend(page.jobs);
            all.unreadable.extend(page.unreadable);
            all.next = page.next;
        }
        Ok(all)
    }

    /// Loads a job in detail, with its ETag.
    pub fn job(&self, id: &str) -> Result<(JobDetail, Option<String>), CallError> {
        let body = self.send(RequestBuilder::new(Method::GET, job(id)))?;
        Ok((body.read()?, body.etag))
    }

    /// Adds or changes a job, given as YAML or JSON with the keys of a job file.
    pub fn put_job(&self, id: &str, yaml: String, only: &PutPrecondition) -> Result<JobDetail, CallError> {
        let request = RequestBuilder::new(Method::PUT, job(id)).text("application/yaml", yaml);
        let request = match only {
            PutPrecondition::New => request.header(IF_NONE_MATCH, "*"),
            PutPrecondition::As(tag) => request.header(IF_MATCH, tag),
            PutPrecondition::Anyway => request,
        };
        self.send(request)?.read()
    }

    /// Removes a job.
    pub fn delete_job(&self, id: &str) -> Result<(), CallError> {
        self.send(RequestBuilder::new(Method::DELETE, job(id))).map(|_| ())
    }

    /// Renames a job.
    pub fn rename_job(&self, id: &str, to: &str) -> Result<RenamedJob, CallError> {
        self.post(job(id).segment("rename"), &RenameBody { to: to.to_owned() })
    }

    /// Loads the next occurrences of a job.
    pub fn next(&self, id: &str, from: Option<Instant>, count: u16) -> Result<Vec<UpcomingRun>, CallError> {
        self.get(job(id).segment("next").with("count", count).with_some("from", from))
    }

    /// Loads what runs next across all jobs.
    pub fn coming(&self, window: Span, limit: usize) -> Result<ComingList, CallError> {
        self.get(api().segment("coming").with("for", window).with("limit", limit))
    }

    /// Explains why a job runs or does not run, now or at a given time.
    pub fn why(&self, id: &str, at: Option<Instant>) -> Result<WhyReport, CallError> {
        self.get(job(id).segment("why").with_some("at", at))
    }

    /// Loads the occurrences of a job in a period with their outcomes.
    pub fn backfill(&self, id: &str, from: Instant, to: Instant) -> Result<BackfillPlan, CallError> {
        self.get(job(id).segment("backfill").with("from", from).with("to", to))
    }

    /// Pauses a job, or everything. Returns false if it was paused already.
    pub fn pause(&self, id: Option<&str>, body: &PauseBody) -> Result<bool, CallError> {
        self.post_change(job_or_all(id).segment("pause"), body)
    }

    /// Ends the pause of a job, or of everything. Returns false if it was not paused.
    pub fn resume(&self, id: Option<&str>) -> Result<bool, CallError> {
        self.post_change(job_or_all(id).segment("resume"), &serde_json::Value::Object(serde_json::Map::new()))
    }
}

fn job(id: &str) -> RequestPath {
    api().segment("jobs").segment(id)
}

fn job_or_all(id: Option<&str>) -> RequestPath {
    id.map_or_else(api, job)
}
