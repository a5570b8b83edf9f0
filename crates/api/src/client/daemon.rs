//! Requests about the daemon, its nodes and all jobs together.

use cronhold_schedule::Instant;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CallError, DaemonClient, api};
use crate::{DrainReply, HolesReport, NodeSummary, PeerRun, PoolSummary, ReloadReport};

/// Response with a one-time link to the web page.
#[derive(Debug, Deserialize)]
struct LinkReply {
    url: String,
}

/// Response with a new token.
#[derive(Debug, Deserialize)]
struct TokenReply {
    token: String,
}

impl DaemonClient {
    /// Searches for occurrences without an outcome, of one job or of all. Sends one request per page of jobs.
    pub fn holes(
        &self,
        job: Option<&str>,
        from: Option<Instant>,
        to: Option<Instant>,
    ) -> Result<HolesReport, CallError> {
        let mut all = self.hole_page(job, from, to, None)?;
        while let Some(after) = all.next.take() {
            // Later pages use the period of the first response; otherwise its end would advance with the clock.
            let page = self.hole_page(job, Some(all.from), Some(all.to), Some(&after))?;
            if page.next.as_ref() == Some(&after) {
                return Err(CallError::Broken(format!(
                    "the page of holes after `{after}` names itself as the next page"
                )));
            }
            all.jobs += page.jobs;
            all.found += page.found;
            all.lines.extend(page.lines);
            all.unreadable.extend(page.unreadable);
            all.next = page.next;
        }
        Ok(all)
    }

    fn hole_page(
        &self,
        job: Option<&str>,
        from: Option<Instant>,
        to: Option<Instant>,
        after: Option<&str>,
    ) -> Result<HolesReport, CallError> {
        let path = api().segment("holes").with_some("job", job).with_some("from", from);
        self.get(path.with_some("to", to).with_some("after", after))
    }

    /// Lists all nodes.
    pub fn nodes(&self) -> Result<Vec<NodeSummary>, CallError> {
        self.get(api().segment("nodes"))
    }

    /// Lists all pools.
    pub fn pools(&self) -> Result<Vec<PoolSummary>, CallError> {
        self.get(api().segment("pools"))
    }

    /// Lists runs of Cronken nodes that share the store, of one job or of all, latest first.
    pub fn peer_runs(&self, job: Option<&str>, limit: usize) -> Result<Vec<PeerRun>, CallError> {
        self.get(api().segment("peers").segment("runs").with_some("job", job).with("limit", limit))
    }

    /// Drains a node, given by name or id, or undoes that.
    pub fn drain(&self, node: &str, on: bool) -> Result<DrainReply, CallError> {
        let what = if on { "drain" } else { "undrain" };
        self.post(api().segment("nodes").segment(node).segment(what), &empty_body())
    }

    /// Rereads the job files.
    pub fn reload(&self) -> Result<ReloadReport, CallError> {
        self.post(api().segment("reload"), &empty_body())
    }

    /// Creates a link that opens the web page once.
    pub fn link(&self) -> Result<String, CallError> {
        self.post::<LinkReply>(api().segment("link"), &empty_body()).map(|link| link.url)
    }

    /// Creates a new token and invalidates the old one.
    pub fn renew_token(&self) -> Result<String, CallError> {
        self.post::<TokenReply>(api().segment("token"), &empty_body()).map(|token| token.token)
    }
}

fn empty_body() -> Value {
    Value::Object(Map::new())
}
