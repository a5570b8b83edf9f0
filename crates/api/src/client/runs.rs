//! Requests about runs. A run is named by its id, by `job#number`, or by its job, which means the latest run.

use cronhold_core::run::State;
use cronhold_schedule::Instant;
use hyper::header::HeaderName;
use hyper::{Method, StatusCode};
use serde_json::{Map, Value};

use super::exchange::RequestBuilder;
use super::{CallError, DaemonClient, RequestPath, api};
use crate::{
    AdHocRunBody, CreatedRun, MarkBody, RerunBody, RunBody, RunChain, RunDetail, RunList, RunSummary, SignalBody,
    SkipBody,
};

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Job of the runs.
    pub job: Option<String>,
    /// States of the runs; empty for any.
    pub states: Vec<State>,
    /// Earliest nominal time.
    pub since: Option<Instant>,
}

impl DaemonClient {
    /// Loads a page of runs, latest first, before the run with the id `before`.
    pub fn run_page(&self, filter: &RunFilter, before: Option<&str>, limit: usize) -> Result<RunList, CallError> {
        let states: Vec<&str> = filter.states.iter().map(|state| state.name()).collect();
        let path = api().segment("runs").with_some("job", filter.job.as_ref());
        let path = path.with_some("state", Some(states.join(",")).filter(|states| !states.is_empty()));
        self.get(path.with_some("since", filter.since).with_some("before", before).with("limit", limit))
    }

    /// Loads a run in detail.
    pub fn run(&self, run: &str) -> Result<RunDetail, CallError> {
        self.get(named(run))
    }

    /// Loads a run and the runs that depend on it.
    pub fn chain(&self, run: &str) -> Result<RunChain, CallError> {
        self.get(named(run).segment("chain"))
    }

    /// Creates a run of a job. The same key never creates a second run.
    pub fn make_run(&self, job: &str, body: &RunBody, key: Option<&str>) -> Result<CreatedRun, CallError> {
        self.make_run_once(job, body, key).map(|(created, _)| created)
    }

    /// Like `make_run`, and also returns whether the run is new.
    pub fn make_run_once(&self, job: &str, body: &RunBody, key: Option<&str>) -> Result<(CreatedRun, bool), CallError> {
        let request = RequestBuilder::new(Method::POST, api().segment("jobs").segment(job).segment("runs")).json(body);
        let response = self.send(with_key(request, key))?;
        Ok((response.read()?, response.status == StatusCode::CREATED))
    }

    /// Creates a run of a job that is not stored. The same key never creates a second run.
    pub fn make_ad_hoc_run(&self, body: &AdHocRunBody, key: Option<&str>) -> Result<CreatedRun, CallError> {
        let request = RequestBuilder::new(Method::POST, api().segment("runs")).json(body);
        self.send(with_key(request, key))?.read()
    }

    /// Starts a scheduled or waiting run now.
    pub fn start(&self, run: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("start"), &empty_body())
    }

    /// Skips a run that has not started.
    pub fn skip(&self, run: &str, why: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("skip"), &SkipBody { why: why.to_owned() })
    }

    /// Stops a run.
    pub fn stop(&self, run: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("stop"), &empty_body())
    }

    /// Kills a run.
    pub fn kill(&self, run: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("kill"), &empty_body())
    }

    /// Sends a signal to a run's program.
    pub fn signal(&self, run: &str, signal: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("signal"), &SignalBody { signal: signal.to_owned() })
    }

    /// Marks a finished run with another state.
    pub fn mark(&self, run: &str, state: State, why: &str) -> Result<RunSummary, CallError> {
        self.post(named(run).segment("mark"), &MarkBody { state, why: why.to_owned() })
    }

    /// Runs a finished run again. The same key never creates a second run.
    pub fn rerun(&self, run: &str, current: bool, key: Option<&str>) -> Result<CreatedRun, CallError> {
        let request = RequestBuilder::new(Method::POST, named(run).segment("rerun")).json(&RerunBody { current });
        self.send(with_key(request, key))?.read()
    }
}

fn named(run: &str) -> RequestPath {
    api().segment("runs").segment(run)
}

/// The request with an idempotency key.
pub(super) fn with_key(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    match key {
        Some(key) => request.header(HeaderName::from_static("idempotency-key"), key),
        None => request,
    }
}

/// An empty body.
fn empty_body() -> Value {
    Value::Object(Map::new())
}
