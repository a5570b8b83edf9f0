//! What can be asked about the daemon and everything together.

use cronhold_schedule::Instant;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CallError, Client, api};
use crate::{Drained, Holes, Node, PeerRun, Reloaded};

/// A link to the page that works once.
#[derive(Debug, Deserialize)]
struct Link {
    url: String,
}

/// A token that was made.
#[derive(Debug, Deserialize)]
struct Token {
    token: String,
}

impl Client {
    /// Occurrences without an outcome, of one job or of all; as many requests as it takes.
    pub fn holes(&self, job: Option<&str>, from: Option<Instant>, to: Option<Instant>) -> Result<Holes, CallError> {
        let mut all = self.hole_page(job, from, to, None)?;
        while let Some(after) = all.next.take() {
            // The stretch is that of the first answer, or the end of it would move on with the clock.
            let page = self.hole_page(job, Some(all.from), Some(all.to), Some(&after))?;
            if page.next.as_ref() == Some(&after) {
                return Err(CallError::Broken(format!("the page of holes after `{after}` is followed by itself")));
            }
            all.jobs += page.jobs;
            all.found += page.found;
            all.lines.extend(page.lines);
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
    ) -> Result<Holes, CallError> {
        let path = api().segment("holes").with_some("job", job).with_some("from", from);
        self.get(path.with_some("to", to).with_some("after", after))
    }

    /// All nodes.
    pub fn nodes(&self) -> Result<Vec<Node>, CallError> {
        self.get(api().segment("nodes"))
    }

    /// Runs of nodes of Cronken that share the store, of one job or of all; the one that was started last comes first.
    pub fn peer_runs(&self, job: Option<&str>, limit: usize) -> Result<Vec<PeerRun>, CallError> {
        self.get(api().segment("peers").segment("runs").with_some("job", job).with("limit", limit))
    }

    /// Lets a node, by name or id, start nothing any more, or start things again.
    pub fn drain(&self, node: &str, on: bool) -> Result<Drained, CallError> {
        let what = if on { "drain" } else { "undrain" };
        self.post(api().segment("nodes").segment(node).segment(what), &nothing())
    }

    /// Reads the job files anew.
    pub fn reload(&self) -> Result<Reloaded, CallError> {
        self.post(api().segment("reload"), &nothing())
    }

    /// A link that opens the page, once.
    pub fn link(&self) -> Result<String, CallError> {
        self.post::<Link>(api().segment("link"), &nothing()).map(|link| link.url)
    }

    /// Makes another token; the one before is good no more.
    pub fn renew_token(&self) -> Result<String, CallError> {
        self.post::<Token>(api().segment("token"), &nothing()).map(|token| token.token)
    }
}

fn nothing() -> Value {
    Value::Object(Map::new())
}
