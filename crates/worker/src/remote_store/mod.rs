//! A task store over the API of a daemon, for worker processes on another process than the one that has the store. It is
//! an implementation of the port like any other, so workers do not know which one they use.
//!
//! In reading order: [`runtime`] has the thread that sends requests, [`store`] the methods, [`wait`] those that wait.

mod runtime;
mod store;
mod wait;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use cronhold_api::client::{CallerOptions, TaskCallError, TaskStoreClient};
use cronhold_api::{ProblemCode, TaskStoreReply};
use cronhold_core::task::QueueName;
use cronhold_store::tasks::TaskBoard;
use cronhold_store::{Fault, Pending};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::runtime::RequestRuntime;
use crate::error::WorkerError;

/// The task store of a daemon.
pub struct RemoteTaskStore {
    client: Arc<TaskStoreClient>,
    runtime: RequestRuntime,
    /// Arrivals on the queues that are watched.
    board: Arc<TaskBoard>,
    watched: Mutex<BTreeSet<QueueName>>,
}

/// Whether a request may have taken effect if its reply is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestEffect {
    /// It only reads, so it can be sent again.
    Reads,
    Writes,
}

impl RemoteTaskStore {
    /// The task store of a daemon. Sends nothing yet.
    pub fn new(caller: CallerOptions) -> Result<Self, WorkerError> {
        let runtime = RequestRuntime::start().map_err(|error| WorkerError::System(error.to_string()))?;
        let client = Arc::new(TaskStoreClient::new(caller));
        Ok(Self { client, runtime, board: Arc::new(TaskBoard::default()), watched: Mutex::default() })
    }

    /// Calls a method whose reply is a result.
    fn call<B, T>(&self, effect: RequestEffect, method: &'static str, body: B) -> Pending<'_, Result<T, Fault>>
    where
        B: Serialize + Send + Sync + 'static,
        T: DeserializeOwned + Send + 'static,
    {
        let reply = self.send::<B, TaskStoreReply<T>>(effect, method, body);
        Box::pin(async move { reply.await.and_then(Into::into) })
    }

    fn send<B, T>(&self, effect: RequestEffect, method: &'static str, body: B) -> Pending<'_, Result<T, Fault>>
    where
        B: Serialize + Send + Sync + 'static,
        T: DeserializeOwned + Send + 'static,
    {
        let client = Arc::clone(&self.client);
        let sent = self.runtime.spawn(async move { client.call::<T>(method, &body).await });
        Box::pin(async move {
            match sent.await {
                Some(reply) => reply.map_err(|error| fault_of(error, effect)),
                None => Err(Fault::Permanent("the thread that sends requests has ended".to_owned())),
            }
        })
    }
}

/// The fault that a failed request means.
fn fault_of(error: TaskCallError, effect: RequestEffect) -> Fault {
    match (error, effect) {
        (TaskCallError::NotSent(message), _) | (TaskCallError::Unconfirmed(message), RequestEffect::Reads) => {
            Fault::Unavailable(message)
        }
        (TaskCallError::Unconfirmed(message), RequestEffect::Writes) => Fault::OutcomeUnknown(message),
        (TaskCallError::Problem(problem), _) => {
            let message = match problem.hint {
                Some(hint) => format!("{} ({hint})", problem.detail),
                None => problem.detail,
            };
            match problem.code {
                ProblemCode::Unavailable | ProblemCode::Busy => Fault::Unavailable(message),
                _ => Fault::Permanent(message),
            }
        }
    }
}

impl fmt::Debug for RemoteTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTaskStore").field("client", &self.client).finish_non_exhaustive()
    }
}
