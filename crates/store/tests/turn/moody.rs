//! A store with moods: it loses answers, refuses writes, or is away.

use std::sync::{Arc, Mutex};

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::Instant;
use cronhold_store::{
    Chunk, Committed, Fault, Health, Hint, MemoryStore, Obligation, Page, Pending, Query, Refusal, Store, Unit, Writer,
};

/// What it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Does what it is asked.
    Calm,
    /// Does the next commit and does not say so; then it is calm.
    DoesAndForgets,
    /// Does not do the next commit and does not say so; then it is calm.
    ForgetsAndDoesNot,
    /// Never says what came of a commit, and does none.
    NeverAnswers,
    /// Takes no writes.
    Refuses,
    /// Answers nothing.
    Away,
}

/// A store with moods. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Moody {
    store: MemoryStore,
    mood: Arc<Mutex<Mood>>,
}

impl Moody {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, mood: Arc::new(Mutex::new(Mood::Calm)) }
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().expect("nobody panics") = mood;
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().expect("nobody panics")
    }
}

fn unknown() -> Refusal {
    Fault::Unknown("no answer".to_owned()).into()
}

impl Store for Moody {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>> {
        self.store.enroll()
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        if self.mood() == Mood::Away {
            return Box::pin(async { Err(Fault::Away("no connection".to_owned())) });
        }
        self.store.load(keys)
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        let mood = self.mood();
        if matches!(mood, Mood::DoesAndForgets | Mood::ForgetsAndDoesNot) {
            self.set(Mood::Calm);
        }
        let count = units.len();
        Box::pin(async move {
            match mood {
                Mood::Calm => self.store.commit(units).await,
                Mood::DoesAndForgets => {
                    self.store.commit(units).await;
                    vec![Err(unknown()); count]
                }
                Mood::ForgetsAndDoesNot | Mood::NeverAnswers => vec![Err(unknown()); count],
                Mood::Refuses => vec![Err(Fault::ReadOnly("the disk is full".to_owned()).into()); count],
                Mood::Away => vec![Err(Fault::Away("no connection".to_owned()).into()); count],
            }
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        self.store.due(after, until, limit)
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        self.store.page(query, limit)
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        self.store.append(run, from, bytes)
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        self.store.read(run, from, most)
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        self.store.beat(node, locks)
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        self.store.hints()
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        self.store.time()
    }

    fn health(&self) -> Pending<'_, Health> {
        self.store.health()
    }
}
