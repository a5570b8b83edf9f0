//! What can be asked about jobs.

use cronhold_schedule::Instant;
use hyper::Method;
use hyper::header::{IF_MATCH, IF_NONE_MATCH};

use super::exchange::Ask;
use super::{CallError, Client, Path, api};
use crate::{Backfill, JobDetail, JobList, LIMIT_MAX, Occurrence, PauseBody, Why};

/// Which jobs are meant.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Whose ids look so, with `*` and `?`.
    pub pattern: Option<String>,
    /// Which have this label.
    pub label: Option<String>,
}

/// On what a job may depend that is being put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// That there is none of that id.
    New,
    /// That it is still as it was with this tag.
    As(String),
    /// On nothing.
    Anyway,
}

impl Client {
    /// A page of jobs after a job's id.
    pub fn job_page(&self, filter: &JobFilter, after: Option<&str>, limit: usize) -> Result<JobList, CallError> {
        let path = api().segment("jobs").with_some("match", filter.pattern.as_ref());
        let path = path.with_some("label", filter.label.as_ref()).with_some("after", after).with("limit", limit);
        self.get(path)
    }

    /// All jobs, page by page, and what is said beside them.
    pub fn jobs(&self, filter: &JobFilter) -> Result<JobList, CallError> {
        let mut all = self.job_page(filter, None, LIMIT_MAX)?;
        while let Some(after) = all.next.take() {
            let page = self.job_page(filter, Some(&after), LIMIT_MAX)?;
            if page.next.as_ref() == Some(&after) {
                return Err(CallError::Broken(format!("the page of jobs after `{after}` is followed by itself")));
            }
            all.jobs.extend(page.jobs);
            all.unreadable.extend(page.unreadable);
            all.next = page.next;
        }
        Ok(all)
    }

    /// A job with everything that is known of it, and its tag.
    pub fn job(&self, id: &str) -> Result<(JobDetail, Option<String>), CallError> {
        let body = self.ask(Ask::new(Method::GET, job(id)))?;
        Ok((body.read()?, body.etag))
    }

    /// Puts a job, written as YAML (or JSON, which is YAML too) with the keys of a job file.
    pub fn put_job(&self, id: &str, yaml: String, only: &Only) -> Result<JobDetail, CallError> {
        let ask = Ask::new(Method::PUT, job(id)).text("application/yaml", yaml);
        let ask = match only {
            Only::New => ask.header(IF_NONE_MATCH, "*"),
            Only::As(tag) => ask.header(IF_MATCH, tag),
            Only::Anyway => ask,
        };
        self.ask(ask)?.read()
    }

    /// Removes a job.
    pub fn delete_job(&self, id: &str) -> Result<(), CallError> {
        self.ask(Ask::new(Method::DELETE, job(id))).map(|_| ())
    }

    /// When a job is due next.
    pub fn next(&self, id: &str, from: Option<Instant>, count: u16) -> Result<Vec<Occurrence>, CallError> {
        self.get(job(id).segment("next").with("count", count).with_some("from", from))
    }

    /// Why a job runs or does not run.
    pub fn why(&self, id: &str, at: Option<Instant>) -> Result<Why, CallError> {
        self.get(job(id).segment("why").with_some("at", at))
    }

    /// What became of the occurrences of a job in a stretch.
    pub fn backfill(&self, id: &str, from: Instant, to: Instant) -> Result<Backfill, CallError> {
        self.get(job(id).segment("backfill").with("from", from).with("to", to))
    }

    /// Pauses a job, or everything.
    pub fn pause(&self, id: Option<&str>, why: &str) -> Result<(), CallError> {
        self.tell(job_or_all(id).segment("pause"), &PauseBody { why: why.to_owned() })
    }

    /// Ends the pause of a job, or of everything.
    pub fn resume(&self, id: Option<&str>) -> Result<(), CallError> {
        self.tell(job_or_all(id).segment("resume"), &serde_json::Value::Object(serde_json::Map::new()))
    }
}

fn job(id: &str) -> Path {
    api().segment("jobs").segment(id)
}

fn job_or_all(id: Option<&str>) -> Path {
    id.map_or_else(api, job)
}
