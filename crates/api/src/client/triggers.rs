//! Requests about triggers.

use hyper::Method;

use super::exchange::RequestBuilder;
use super::{CallError, DaemonClient, RequestPath, api};
use crate::{RemovedTriggers, TriggerBody, TriggerList, TriggerReceipt};

impl DaemonClient {
    /// Sends a trigger to a job.
    pub fn trigger(&self, job: &str, body: &TriggerBody) -> Result<TriggerReceipt, CallError> {
        self.post(triggers(job), body)
    }

    /// Loads the pending triggers of a job, and the decisions about them.
    pub fn triggers(&self, job: &str) -> Result<TriggerList, CallError> {
        self.get(triggers(job))
    }

    /// Removes pending triggers of a job: one, or all of them.
    pub fn remove_triggers(&self, job: &str, trigger: Option<&str>) -> Result<RemovedTriggers, CallError> {
        let path = trigger.into_iter().fold(triggers(job), |path, trigger| path.segment(trigger));
        self.send(RequestBuilder::new(Method::DELETE, path))?.read()
    }
}

fn triggers(job: &str) -> RequestPath {
    api().segment("jobs").segment(job).segment("triggers")
}
