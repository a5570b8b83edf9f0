//! Working on a store without a daemon. Verbs know nothing of stores: the binary answers for one in the place of a
//! daemon, in the same process and only to it, so that every verb works as it does with a daemon.

use std::fmt;

use crate::Failure;

/// A store that the command line or the environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedStore<'a> {
    /// What names it, such as `--store`.
    pub origin: &'static str,
    /// Its URL, as it was given. It may hold a password, and is not to be shown.
    pub url: &'a str,
}

/// Where a store is answered for.
#[derive(Clone, PartialEq, Eq)]
pub struct Served {
    /// The address, as that of a daemon.
    pub url: String,
    /// What has to be shown there; nobody else has it.
    pub token: String,
}

/// Answers for stores.
pub trait Stores: fmt::Debug {
    /// Where the store is answered for from now on. A store that is asked for again is not opened again.
    fn serve(&self, named: &NamedStore<'_>) -> Result<Served, Failure>;

    /// Definitions that another scheduler keeps in a store, by name. Nothing is written there.
    fn definitions(&self, named: &NamedStore<'_>) -> Result<Vec<(String, String)>, Failure>;
}

/// For tests that ask no store.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct NoStores;

#[cfg(test)]
impl Stores for NoStores {
    fn serve(&self, named: &NamedStore<'_>) -> Result<Served, Failure> {
        Err(Failure::refused(format!("{}: there are no stores here", named.origin), "ask a daemon"))
    }

    fn definitions(&self, named: &NamedStore<'_>) -> Result<Vec<(String, String)>, Failure> {
        self.serve(named).map(|_| Vec::new())
    }
}

impl fmt::Debug for Served {
    /// Without the token, which is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("url", &self.url).finish_non_exhaustive()
    }
}
