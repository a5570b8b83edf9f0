//! The output of a run as a stream.

use hyper::Method;
use hyper::body::Incoming;
use hyper::header::ACCEPT;

use super::exchange::{self, RequestBuilder};
use super::{CallError, DaemonClient, api};

/// A stream of output.
#[derive(Debug)]
pub struct OutputReader<'a> {
    client: &'a DaemonClient,
    body: Incoming,
}

impl DaemonClient {
    /// Reads the output of a run from byte `from`; with `follow`, until the run ends.
    pub fn output(&self, run: &str, from: u64, follow: bool) -> Result<OutputReader<'_>, CallError> {
        let path = api().segment("runs").segment(run).segment("output").with("from", from);
        let path = if follow { path.with("follow", true) } else { path };
        let request =
            RequestBuilder::new(Method::GET, path).header(ACCEPT, "application/octet-stream, application/problem+json");
        let response = self.runtime.block_on(exchange::open(&self.caller, request))?;
        Ok(OutputReader { client: self, body: response.into_body() })
    }
}

impl Iterator for OutputReader<'_> {
    type Item = Result<Vec<u8>, CallError>;

    /// The next bytes, or `None` at the end.
    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.client.runtime.block_on(exchange::piece(&mut self.body));
        piece.map(|piece| piece.map(|bytes| bytes.to_vec())).map_err(|_| truncated(self.client)).transpose()
    }
}

fn truncated(client: &DaemonClient) -> CallError {
    CallError::Unreachable(format!("{} closed the connection in the middle of the output", client.caller().address))
}
