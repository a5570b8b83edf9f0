//! The HTTP client, with one blocking method per endpoint. Each request uses its own connection, so that a restart of
//! the daemon between two requests needs no handling.

mod address;
mod channels;
mod daemon;
mod error;
mod events;
mod exchange;
mod interrupt;
mod jobs;
mod output;
mod runs;
mod task_store;
mod tasks;
mod triggers;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::{BASE, RunSummary};

pub use address::{AddressError, DaemonAddress};
pub use channels::ChannelStream;
pub use error::CallError;
pub use events::{FeedEvent, FeedStream};
pub use jobs::{JobFilter, PutPrecondition};
pub use output::OutputReader;
pub use runs::RunFilter;
pub use task_store::{MessageStream, TaskCallError, TaskStoreClient};
pub use tasks::TaskFilter;

use address::RequestPath;
use exchange::{RequestBuilder, ResponseBody};

/// Timeout of a request.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// First interval between two polls of a run.
const POLL_FIRST: Duration = Duration::from_millis(20);
/// Maximum interval between two polls of a run.
const POLL_MAX: Duration = Duration::from_millis(500);

/// The daemon, and the identity of the caller.
#[derive(Clone)]
pub struct CallerOptions {
    /// Address of the daemon.
    pub address: DaemonAddress,
    /// Data directory of a daemon on this machine. Requests then go to the socket in it instead of the address. The
    /// daemon recognises the user of the process, so the request needs no token.
    pub local: Option<PathBuf>,
    /// Admin token, for requests to the address.
    pub token: Option<String>,
    /// Name of the user, recorded with changes.
    pub user: Option<String>,
}

/// A client of one daemon.
pub struct DaemonClient {
    caller: CallerOptions,
    runtime: Runtime,
}

impl DaemonClient {
    /// Creates a client. Sends nothing yet.
    pub fn new(caller: CallerOptions) -> Result<Self, CallError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| CallError::Unreachable(format!("cannot create an HTTP client: {error}")))?;
        Ok(Self { caller, runtime })
    }

    /// The daemon, and the identity of the caller.
    pub fn caller(&self) -> &CallerOptions {
        &self.caller
    }

    /// Waits until a run has finished and returns it. `id` is a run id and not a job, whose latest run may change.
    pub fn finished(&self, id: &str) -> Result<RunSummary, CallError> {
        let mut interval = POLL_FIRST;
        loop {
            let run = self.run(id)?.run;
            if run.state.is_finished() {
                return Ok(run);
            }
            self.rest(interval);
            interval = (interval * 2).min(POLL_MAX);
        }
    }

    /// Waits for the given time.
    pub fn rest(&self, span: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(span).await });
    }

    fn get<T: DeserializeOwned>(&self, path: RequestPath) -> Result<T, CallError> {
        self.send(RequestBuilder::new(Method::GET, path))?.read()
    }

    fn post<T: DeserializeOwned>(&self, path: RequestPath, body: &impl Serialize) -> Result<T, CallError> {
        self.send(RequestBuilder::new(Method::POST, path).json(body))?.read()
    }

    /// Sends a request, and returns whether it has changed something: the response is 204 then, and otherwise 200.
    fn post_change(&self, path: RequestPath, body: &impl Serialize) -> Result<bool, CallError> {
        self.send(RequestBuilder::new(Method::POST, path).json(body)).map(|reply| reply.status != StatusCode::OK)
    }

    fn send(&self, request: RequestBuilder) -> Result<ResponseBody, CallError> {
        self.runtime.block_on(exchange::plain(&self.caller, request))
    }
}

/// The root path of the API.
fn api() -> RequestPath {
    RequestPath::new(BASE)
}

impl fmt::Debug for CallerOptions {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerOptions")
            .field("address", &self.address)
            .field("local", &self.local)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DaemonClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaemonClient").field("caller", &self.caller).finish_non_exhaustive()
    }
}
