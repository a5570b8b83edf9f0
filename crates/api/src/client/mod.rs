//! The HTTP client, with one blocking method per endpoint. Each request uses its own connection, so that a restart of the
//! daemon between two requests needs no handling.

mod address;
mod daemon;
mod error;
mod events;
mod exchange;
mod interrupt;
mod jobs;
mod output;
mod runs;

use std::fmt;
use std::time::Duration;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::{BASE, Run};

pub use address::{Address, AddressError};
pub use error::CallError;
pub use events::{Event, Events};
pub use jobs::{JobFilter, Only};
pub use output::Output;
pub use runs::RunFilter;

use address::Path;
use exchange::{Ask, Body};

/// Timeout of a request.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// First interval between two polls of a run.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// Maximum interval between two polls of a run.
const LOOK_LAST: Duration = Duration::from_millis(500);

/// The daemon, and the identity of the caller.
#[derive(Clone)]
pub struct Caller {
    /// Address of the daemon.
    pub address: Address,
    /// Admin token.
    pub token: Option<String>,
    /// Name of the user, recorded with changes.
    pub user: Option<String>,
}

/// A client of one daemon.
pub struct Client {
    caller: Caller,
    runtime: Runtime,
}

impl Client {
    /// Creates a client. Sends nothing yet.
    pub fn new(caller: Caller) -> Result<Self, CallError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| CallError::Unreachable(format!("cannot create an HTTP client: {error}")))?;
        Ok(Self { caller, runtime })
    }

    /// Address of the daemon.
    pub fn address(&self) -> &Address {
        &self.caller.address
    }

    /// Waits until a run has finished and returns it. `id` is a run id and not a job, whose latest run may change.
    pub fn finished(&self, id: &str) -> Result<Run, CallError> {
        let mut look = LOOK_FIRST;
        loop {
            let run = self.run(id)?.run;
            if run.state.is_finished() {
                return Ok(run);
            }
            self.rest(look);
            look = (look * 2).min(LOOK_LAST);
        }
    }

    /// Waits for the given time.
    pub fn rest(&self, span: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(span).await });
    }

    fn get<T: DeserializeOwned>(&self, path: Path) -> Result<T, CallError> {
        self.ask(Ask::new(Method::GET, path))?.read()
    }

    fn post<T: DeserializeOwned>(&self, path: Path, body: &impl Serialize) -> Result<T, CallError> {
        self.ask(Ask::new(Method::POST, path).json(body))?.read()
    }

    /// Sends a request with an empty response.
    fn tell(&self, path: Path, body: &impl Serialize) -> Result<(), CallError> {
        self.ask(Ask::new(Method::POST, path).json(body)).map(|_| ())
    }

    fn ask(&self, ask: Ask) -> Result<Body, CallError> {
        self.runtime.block_on(exchange::plain(&self.caller, ask))
    }
}

/// The root path of the API.
fn api() -> Path {
    Path::new(BASE)
}

impl fmt::Debug for Caller {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("address", &self.address).field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("caller", &self.caller).finish_non_exhaustive()
    }
}
