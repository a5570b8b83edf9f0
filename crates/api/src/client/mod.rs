//! The client: one method per endpoint, blocking, because a command line has nothing to do meanwhile. Each request has a
//! connection of its own, so that nothing is left to be repaired when a daemon restarts between two of them.

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

/// How long a plain request may take as a whole.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a run that is waited for is looked at again, at first.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// How soon it is looked at again in the long run.
const LOOK_LAST: Duration = Duration::from_millis(500);

/// Who asks, and whom.
#[derive(Clone)]
pub struct Caller {
    /// Where the daemon listens.
    pub address: Address,
    /// What it knows us by.
    pub token: Option<String>,
    /// Who is to be named as having asked for what changes.
    pub user: Option<String>,
}

/// A client of one daemon.
pub struct Client {
    caller: Caller,
    runtime: Runtime,
}

impl Client {
    /// A client. Nothing is sent before something is asked.
    pub fn new(caller: Caller) -> Result<Self, CallError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| CallError::Unreachable(format!("nothing can be asked over the network: {error}")))?;
        Ok(Self { caller, runtime })
    }

    /// Whom it asks.
    pub fn address(&self) -> &Address {
        &self.caller.address
    }

    /// Waits until a run is over, however long that takes, and answers with the run. `id` is a run's id, so that it is
    /// not another run after a while.
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

    /// Lets some time pass before something is looked at again.
    pub fn rest(&self, span: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(span).await });
    }

    fn get<T: DeserializeOwned>(&self, path: Path) -> Result<T, CallError> {
        self.ask(Ask::new(Method::GET, path))?.read()
    }

    fn post<T: DeserializeOwned>(&self, path: Path, body: &impl Serialize) -> Result<T, CallError> {
        self.ask(Ask::new(Method::POST, path).json(body))?.read()
    }

    /// A request whose answer is that it was done.
    fn tell(&self, path: Path, body: &impl Serialize) -> Result<(), CallError> {
        self.ask(Ask::new(Method::POST, path).json(body)).map(|_| ())
    }

    fn ask(&self, ask: Ask) -> Result<Body, CallError> {
        self.runtime.block_on(exchange::plain(&self.caller, ask))
    }
}

/// A path below the beginning of the API.
fn api() -> Path {
    Path::new(BASE)
}

impl fmt::Debug for Caller {
    /// Without the token, which is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("address", &self.address).field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("caller", &self.caller).finish_non_exhaustive()
    }
}
