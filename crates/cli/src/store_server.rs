//! Commands on a store without a daemon. The binary serves the store inside the process of the command, so that every
//! command works as it does with a daemon.

use std::fmt;

use crate::Failure;

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

/// Serves stores to commands.
pub trait StoreServer: fmt::Debug {
    /// Serves the store and returns its address. A store that is already being served is not opened again.
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, Failure>;

    /// Reads the job definitions of another scheduler from a store: pairs of name and text.
    fn definitions(&self, named: &NamedStore<'_>) -> Result<Vec<(String, String)>, Failure>;
}

/// For tests that use no store.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct NoStoreServer;

#[cfg(test)]
impl StoreServer for NoStoreServer {
    fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, Failure> {
        Err(Failure::refused(format!("{}: there are no stores here", named.origin), "ask a daemon"))
    }

    fn definitions(&self, named: &NamedStore<'_>) -> Result<Vec<(String, String)>, Failure> {
        self.serve(named).map(|_| Vec::new())
    }
}

impl fmt::Debug for ServedStore {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedStore").field("url", &self.url).finish_non_exhaustive()
    }
}
