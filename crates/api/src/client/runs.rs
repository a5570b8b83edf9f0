//! What can be asked about runs. A run is named by its id, as `job#number`, or by its job's name for its latest.

use cronhold_core::run::State;
use cronhold_schedule::Instant;
use hyper::header::HeaderName;
use hyper::{Method, StatusCode};
use serde_json::{Map, Value};

use super::exchange::Ask;
use super::{CallError, Client, Path, api};
use crate::{Made, MarkBody, RerunBody, Run, RunBody, RunDetail, RunList, SignalBody, SkipBody};

/// Which runs are meant.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this job.
    pub job: Option<String>,
    /// In one of these states; in any, when there are none.
    pub states: Vec<State>,
    /// Whose time is not before this.
    pub since: Option<Instant>,
}

impl Client {
    /// A page of runs, the latest first, before the run with the id `before`.
    pub fn run_page(&self, filter: &RunFilter, before: Option<&str>, limit: usize) -> Result<RunList, CallError> {
        let states: Vec<&str> = filter.states.iter().map(|state| state.name()).collect();
        let path = api().segment("runs").with_some("job", filter.job.as_ref());
        let path = path.with_some("state", Some(states.join(",")).filter(|states| !states.is_empty()));
        self.get(path.with_some("since", filter.since).with_some("before", before).with("limit", limit))
    }

    /// A run with every step it took.
    pub fn run(&self, run: &str) -> Result<RunDetail, CallError> {
        self.get(named(run))
    }

    /// Makes a run of a job. Asked for twice with one key, it is made once.
    pub fn make_run(&self, job: &str, body: &RunBody, key: Option<&str>) -> Result<Made, CallError> {
        self.make_run_once(job, body, key).map(|(made, _)| made)
    }

    /// The same, and whether it was made now and not before.
    pub fn make_run_once(&self, job: &str, body: &RunBody, key: Option<&str>) -> Result<(Made, bool), CallError> {
        let ask = Ask::new(Method::POST, api().segment("jobs").segment(job).segment("runs")).json(body);
        let ask = match key {
            Some(key) => ask.header(HeaderName::from_static("idempotency-key"), key),
            None => ask,
        };
        let answer = self.ask(ask)?;
        Ok((answer.read()?, answer.status == StatusCode::CREATED))
    }

    /// Lets a run wait no longer for what it waits for.
    pub fn start(&self, run: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("start"), &nothing())
    }

    /// Lets a run not start.
    pub fn skip(&self, run: &str, why: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("skip"), &SkipBody { why: why.to_owned() })
    }

    /// Asks a run's program to end.
    pub fn stop(&self, run: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("stop"), &nothing())
    }

    /// Kills a run's program.
    pub fn kill(&self, run: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("kill"), &nothing())
    }

    /// Sends a signal to a run's program.
    pub fn signal(&self, run: &str, signal: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("signal"), &SignalBody { signal: signal.to_owned() })
    }

    /// Lets a finished run count as something else.
    pub fn mark(&self, run: &str, state: State, why: &str) -> Result<Run, CallError> {
        self.post(named(run).segment("mark"), &MarkBody { state, why: why.to_owned() })
    }

    /// Makes a finished run once more.
    pub fn rerun(&self, run: &str, anew: bool) -> Result<Made, CallError> {
        self.post(named(run).segment("rerun"), &RerunBody { anew })
    }
}

fn named(run: &str) -> Path {
    api().segment("runs").segment(run)
}

/// A body that says nothing, where one is expected.
fn nothing() -> Value {
    Value::Object(Map::new())
}
