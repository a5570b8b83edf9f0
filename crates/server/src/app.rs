//! The state that all routes share: the node, the store, the clock, and what the binary provides.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_api::{CallerRole, FileMistake, ReloadReport};
use cronhold_core::command::Command;
use cronhold_core::decision::CommandReply;
use cronhold_core::record::Actor;
use cronhold_core::{DecisionContext, JobId, NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_schedule::Span;
use cronhold_store::{Pending, Store};

use crate::FeedBuffer;
use crate::auth::Authenticator;

/// Returns the current zones and calendars, which can change while the node runs.
pub type WorldNow = Arc<dyn Fn() -> DecisionContext + Send + Sync>;

/// What programs of runs may do that send requests over the socket in the data directory.
#[derive(Clone)]
pub struct ProgramAccess {
    pub role: CallerRole,
    /// Returns the run whose program a process belongs to, by its pid.
    pub run_of_process: Arc<dyn Fn(i32) -> Option<RunId> + Send + Sync>,
}

/// The state that all routes share.
pub struct AppState {
    /// Executes the commands of requests.
    pub node: NodeHandle,
    /// Serves the read requests.
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn MachineClock>,
    /// Zones and calendars.
    pub world: WorldNow,
    /// The job files.
    pub files: Arc<dyn JobFilesPort>,
    /// The event feed.
    pub feed: Arc<FeedBuffer>,
    /// Checks tokens and sessions.
    pub auth: Authenticator,
    /// The rights of programs.
    pub programs: ProgramAccess,
    /// The id of this node.
    pub this: NodeId,
    /// Whether the node has recovered and starts due runs.
    pub is_ready: Arc<AtomicBool>,
    /// The version of the program.
    pub version: &'static str,
}

/// The directories of job files, as the routes use them.
pub trait JobFilesPort: Send + Sync + fmt::Debug {
    /// All current mistakes in the files.
    fn mistakes(&self) -> Vec<MistakeAt>;

    /// Whether a job may have a file in a directory that the daemon currently reads.
    fn may_have_file(&self, job: &JobId) -> bool;

    /// Rereads all files and applies their changes.
    fn reload(&self) -> Pending<'_, ReloadReport>;
}

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MistakeAt {
    /// The job that the file defines; `None` for other files, such as a calendar.
    pub job: Option<JobId>,
    /// The mistake and its position.
    pub mistake: FileMistake,
}

/// Timeout of a command. The node drops a command that it cannot begin in this time, because the client gives up soon
/// after.
const COMMAND_TIMEOUT: Span = Span::from_secs(20);

impl ProgramAccess {
    /// For a server that has no socket in a data directory.
    pub fn without_socket() -> Self {
        Self { role: CallerRole::None, run_of_process: Arc::new(|_| None) }
    }
}

impl fmt::Debug for ProgramAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramAccess").field("role", &self.role).finish_non_exhaustive()
    }
}

impl AppState {
    /// Sends a command to the node and waits for the reply.
    pub(crate) async fn request(&self, actor: Actor, command: Command) -> Result<CommandReply, RequestError> {
        self.node.request_within(actor, command, COMMAND_TIMEOUT).await
    }

    /// Sends a command to the node. Returns whether it has changed something: a command for a state that is already the
    /// current one succeeds without a change.
    pub(crate) async fn ensure(&self, actor: Actor, command: Command) -> Result<bool, RequestError> {
        match self.request(actor, command).await {
            Ok(_) => Ok(true),
            Err(RequestError::Rejected(rejection)) if rejection.is_so_already() => Ok(false),
            Err(refused) => Err(refused),
        }
    }

    /// Whether the node has recovered.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState").field("this", &self.this).field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}
