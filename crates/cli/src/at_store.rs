//! Working on a store without a daemon. Verbs know nothing of stores: the binary answers for one in the place of a
//! daemon, in the same process and only to it, so that every verb works as it does with a daemon.

use std::fmt;

use cronhold_core::Job;

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

/// Answers for stores.
pub trait Stores: fmt::Debug {
    /// Where the store is answered for from now on. A store that is asked for again is not opened again.
    fn serve(&self, named: &NamedStore<'_>) -> Result<Served, Failure>;

    /// Jobs that Cronken keeps in a store, in any order. Nothing is written there. `as_cronken` is whether cron texts are
    /// read by the rules of Cronken's nodes.
    fn cronken_jobs(&self, named: &NamedStore<'_>, as_cronken: bool) -> Result<Vec<ForeignJob>, Failure>;
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

    fn cronken_jobs(&self, named: &NamedStore<'_>, _: bool) -> Result<Vec<ForeignJob>, Failure> {
        self.serve(named).map(|_| Vec::new())
    }
}

impl fmt::Debug for Served {
    /// Without the token, which is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("url", &self.url).finish_non_exhaustive()
    }
}
