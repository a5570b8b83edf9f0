//! A store with moods: it loses answers, refuses writes, or is away.

use std::sync::{Arc, Mutex};

use cronhold_core::record::{Key, Stored};
use cronhold_store::{Committed, Fault, MemoryStore, Pending, Refusal, Store, Unit, Wrapper};

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
    /// Cannot read one of its jobs, which is called `bad`.
    HasBadJob,
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

impl Wrapper for Moody {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        if self.mood() == Mood::Away {
            return Box::pin(async { Err(Fault::Away("no connection".to_owned())) });
        }
        let is_bad = |key: &Key| matches!(key, Key::Job(job) if job.as_str() == "bad");
        if self.mood() == Mood::HasBadJob && keys.iter().any(is_bad) {
            return Box::pin(async { Err(Fault::Broken("a row that is no job".to_owned())) });
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
                Mood::Calm | Mood::HasBadJob => self.store.commit(units).await,
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
}
