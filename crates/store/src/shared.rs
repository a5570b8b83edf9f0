//! What a store has in common with programs that are not ours: jobs in their form, events that they send, and what they
//! have run. A store only carries them; what they mean is known elsewhere.

use std::fmt;

use cronhold_core::record::Exit;
use cronhold_schedule::{Instant, Span};

use crate::{Fault, Pending, Store};

/// Whether a store is shared with nodes of another kind that run the same jobs.
pub fn has_foreign_nodes(store: &dyn Store) -> bool {
    store.shared().is_some_and(Shared::has_foreign_nodes)
}

/// The part of a store that other programs write as well.
pub trait Shared: Send + Sync + fmt::Debug {
    /// Whether nodes of another kind run the same jobs beside ours, so that jobs have to be read as they read them.
    fn has_foreign_nodes(&self) -> bool;

    /// Waits until somebody has sent an event, and answers with their texts, the oldest first. Those that were sent while
    /// the line was broken are lost.
    fn events(&self) -> Pending<'_, Vec<String>>;

    /// Sends an event to everyone, ourselves included.
    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>>;

    /// Jobs as they stand there, by name: those that are named, or all that are there or were settled once. After that it
    /// is known that there are foreign nodes, if there are.
    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedForm>, Fault>>;

    /// Settles forms, each only where it still is as it was found. Answers for each whether it was.
    fn settle<'a>(&'a self, forms: &'a [Settle]) -> Pending<'a, Result<Vec<bool>, Fault>>;

    /// Runs of other programs, of one job or of all, as many as are wanted at most: those that run, and after them those
    /// that have ended last. The one that was started last comes first. What cannot be read is left out.
    fn foreign_runs<'a>(&'a self, job: Option<&'a str>, limit: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>>;
}

/// A job as it stands where others write as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedForm {
    /// The job's name, as others know it; it may be none of ours.
    pub name: String,
    /// Its text; none when it is not there.
    pub text: Option<String>,
    /// What is known of it.
    pub standing: Standing,
}

/// What we know of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was never settled: it is new, or it was never written.
    New,
    /// It is as it was when it was last settled, by this reading.
    Settled(Reading),
    /// Somebody has changed it since, or has removed it.
    Changed,
}

/// By whose rules a form is read. The same text may mean something else by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By ours.
    Ours,
    /// By those of nodes of another kind, which run the same jobs.
    Theirs,
}

/// What a form is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The job's name.
    pub name: String,
    /// Its text as it was found.
    pub found: Option<String>,
    /// Its text from now on; the same as was found, when it only counts as known from now on. None removes it, and
    /// nothing is known of it any more.
    pub text: Option<String>,
    /// By whose rules it was read.
    pub reading: Reading,
}

impl Standing {
    /// Whether it is as it was when it was last settled, however it was read then.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Settled(_))
    }
}

/// A run of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRun {
    /// What others call it.
    pub id: String,
    /// The job's name, as others know it; it may be none of ours.
    pub job: String,
    /// Where it was started.
    pub host: String,
    /// When, by the store's time.
    pub started: Instant,
    /// Where it stands.
    pub state: SharedState,
    /// How its program ended, if it has and anybody knows.
    pub exit: Option<Exit>,
    /// How long it took, if it has ended.
    pub took: Option<Span>,
    /// The last lines that it wrote.
    pub tail: Vec<String>,
}

/// Where a run of another program stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedState {
    /// It has not ended.
    Running,
    /// It has ended well.
    Success,
    /// It has not ended well.
    Failure,
    /// Its node was not heard of any more, and nobody knows how it ended.
    Frozen,
}
