//! The port: everything that Cronhold asks of a place where it keeps its state. Small on purpose, and batched from the
//! first day, because one round trip a decision is a ceiling.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use cronhold_core::decision::Change;
use cronhold_core::record::{Key, LockName, Node, Record, Stored};
use cronhold_core::{RunId, State};
use cronhold_schedule::Instant;

use crate::{Committed, Fault, Page, Query, Refusal, Shared, Unit};

/// An answer that comes later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a store that has no time of its own takes it from.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// A number that no other writer ever has. It is part of the version of everything that the writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer(pub u32);

/// A place where records and outputs are kept.
///
/// Futures may be dropped at any time. A commit whose future was dropped may have happened or not.
pub trait Store: Send + Sync + fmt::Debug {
    /// A number for a new writer.
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>>;

    /// Whether others may write to it at the same time.
    fn is_shared(&self) -> bool {
        true
    }

    /// Records by key, in the order of the keys; `None` for those that are not there. Locks that have run out are not
    /// there. All of them are seen at one moment.
    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>>;

    /// Does units in their order, each as a whole or not at all, and answers for each. What was answered as done is
    /// durable. The output of a run is deleted with it.
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>>;

    /// A commit that begins when it is first looked at. A store does now whatever it can do for it without touching what
    /// is stored, because the commit before it may still be on its way.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<Committed, Refusal>>>
    where
        Self: 'static,
    {
        Box::pin(async move { self.commit(units).await })
    }

    /// Records whose due is not after `until`, by time and then by key, those after the last of the page before.
    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>>;

    /// A page of a list.
    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>>;

    /// Appends to a run's output at a byte. What is there already is left as it is, so that sending twice is sending
    /// once; a gap is refused as broken. Answers with the length of the output.
    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>>;

    /// Reads a run's output from a byte on, at most so many bytes.
    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>>;

    /// Runs that have an output, by their ids, those after the last of the page before; also runs that are not there.
    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>>;

    /// Deletes outputs. The runs stay as they are.
    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>>;

    /// Says that a node is alive, and renews the locks of its runs for their time to live. Answers with those that it
    /// has lost. Whether a node drains is changed by units alone: in one life of a node, a beat leaves it as it is.
    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>>;

    /// Waits until others have changed something and tells what. Hints may be lost, late or doubled.
    fn hints(&self) -> Pending<'_, Vec<Hint>>;

    /// The store's own time.
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;

    /// How it is doing.
    fn health(&self) -> Pending<'_, Health>;

    /// What it has in common with programs that are not ours, where there is something.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}

/// A record that something has to happen to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obligation {
    /// By when.
    pub at: Instant,
    /// To which: a cursor, a backlog or a run.
    pub key: Key,
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// The bytes from where they were asked for.
    pub bytes: Vec<u8>,
    /// How long the whole output is.
    pub length: u64,
}

/// That a record was changed by someone else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Which.
    pub key: Key,
    /// Whether it matters only to those who have something to do with it already: a run that has started or ended, a set
    /// of runs in which nobody waits. A store that cannot tell says no.
    pub is_quiet: bool,
}

impl Hint {
    /// A hint that may matter to everyone.
    pub fn new(key: Key) -> Self {
        Self { key, is_quiet: false }
    }

    /// The hint of a change.
    pub fn of(change: &Change) -> Self {
        let is_quiet = match change {
            Change::Put(Record::Run(run)) => !matches!(run.state, State::Scheduled | State::Waiting),
            Change::Put(Record::JobState(state)) => state.queue.is_empty(),
            _ => false,
        };
        Self { key: change.key(), is_quiet }
    }
}

/// How a store is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// What is wrong; nothing, when all is well.
    pub trouble: Option<String>,
    /// What it is, for people.
    pub description: String,
    /// Commits so far, each durable by itself.
    pub commits: u64,
    /// Units so far.
    pub units: u64,
    /// What whoever runs it should know: promises that it cannot keep as it is set up.
    pub warnings: Vec<String>,
}
