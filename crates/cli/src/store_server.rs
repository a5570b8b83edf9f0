//! Commands on a store without a daemon. The binary serves the store inside the process of the command, so that every
//! command works as it does with a daemon.

use std::fmt;

use cronhold_core::Job;

use crate::CliError;

/// A store named by an option or environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedStore<'a> {
    /// The option or variable, such as `--store`.
    pub origin: &'static str,
    /// The URL. It may contain a password and must not be shown.
    pub url: &'a str,
}

/// The address of a store that this process serves.
#[derive(Clone, PartialEq, Eq)]
pub struct ServedStore {
    /// Base URL, like that of a daemon.
    pub url: String,
    /// Token that only this process knows.
    pub token: String,
}

/// A job of another scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignJob {
    /// Its name there, which may not be a valid id here.
    pub name: String,
    /// The job, or the mistakes in its definition.
    pub job: Result<Job, Vec<String>>,
    /// What may surprise the user about the job.
    pub notes: Vec<String>,
}

/// Serves stores to commands.
pub trait StoreServer: fmt::Debug {
    /// Serves the store and returns its address. A store that is already being served is not opened again.
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, CliError>;

    /// Reads the jobs that Cronken keeps in a store, in any order. With `as_cronken`, cron texts are read by the rules of
    /// Cronken's nodes.
    fn cronken_jobs(&self, named: &NamedStore<'_>, as_cronken: bool) -> Result<Vec<ForeignJob>, CliError>;

    /// Reads the jobs of castle-cron from its ZooKeeper, in any order.
    fn castle_jobs(&self, named: &NamedStore<'_>) -> Result<Vec<ForeignJob>, CliError>;
}

/// For tests that use no store.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct NoStoreServer;

#[cfg(test)]
impl StoreServer for NoStoreServer {
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, CliError> {
        Err(CliError::refused(format!("{}: there are no stores here", named.origin), "ask a daemon"))
    }

    fn cronken_jobs(&self, named: &NamedStore<'_>, _: bool) -> Result<Vec<ForeignJob>, CliError> {
        self.serve(named).map(|_| Vec::new())
    }

    fn castle_jobs(&self, named: &NamedStore<'_>) -> Result<Vec<ForeignJob>, CliError> {
        self.serve(named).map(|_| Vec::new())
    }
}

impl fmt::Debug for ServedStore {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedStore").field("url", &self.url).finish_non_exhaustive()
    }
}
