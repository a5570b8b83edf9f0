//! Three mistakes on purpose, each a wrapper around a store that works: whoever checks the engine has to notice them.
//! The product has no switch for any of them.

use std::sync::Arc;

use cronhold_core::record::Key;
use cronhold_schedule::Instant;
use cronhold_store::{Committed, Fault, Obligation, Page, Pending, Query, Refusal, Store, Unit, Wrapper};

use crate::chance::Chance;
use crate::executor::Whose;
use crate::stage::Stage;

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Nothing.
    #[default]
    Sound,
    /// Claims are not compared: whoever writes last wins.
    Blind,
    /// Effects come before the commit: it is answered as done when it is sent, and done later.
    Hasty,
    /// Nothing that an earlier life left is taken up: runs, backlogs and passed deadlines are not shown.
    Forgetful,
}

impl Variant {
    /// All that are wrong.
    pub const WRONG: [Self; 3] = [Self::Blind, Self::Hasty, Self::Forgetful];

    /// Wraps the store itself, where units take effect.
    pub(crate) fn before_the_store(self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match self {
            Self::Blind => Arc::new(Wrong { store, how: How::Blind }),
            Self::Forgetful => Arc::new(Wrong { store, how: How::Forgetful }),
            Self::Sound | Self::Hasty => store,
        }
    }

    /// Wraps the line to the store, where units are sent.
    pub(crate) fn before_the_line(
        self,
        line: Arc<dyn Store>,
        stage: &Stage,
        whose: Whose,
        chance: &Chance,
    ) -> Arc<dyn Store> {
        match self {
            Self::Hasty => {
                let how = How::Hasty { stage: stage.clone(), whose, chance: chance.fork() };
                Arc::new(Wrong { store: line, how })
            }
            Self::Sound | Self::Blind | Self::Forgetful => line,
        }
    }
}

/// A store with a mistake.
#[derive(Debug)]
struct Wrong {
    store: Arc<dyn Store>,
    how: How,
}

#[derive(Debug)]
enum How {
    Blind,
    Hasty { stage: Stage, whose: Whose, chance: Chance },
    Forgetful,
}

impl Wrong {
    /// Units that expect what is there, whatever that is.
    async fn blinded(&self, mut units: Vec<Unit>) -> Vec<Unit> {
        for unit in &mut units {
            let keys: Vec<Key> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
            let Ok(found) = self.store.load(&keys).await else { continue };
            unit.compare =
                keys.into_iter().zip(found.into_iter().map(|stored| stored.map(|stored| stored.version))).collect();
        }
        units
    }
}

impl Wrapper for Wrong {
    fn inside(&self) -> &dyn Store {
        &*self.store
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        match &self.how {
            How::Blind => Box::pin(async move {
                let mut results = Vec::with_capacity(units.len());
                for unit in units {
                    results.extend(self.store.commit(self.blinded(vec![unit]).await).await);
                }
                results
            }),
            How::Hasty { stage, whose, chance } => {
                let answers = units.iter().map(|_| Ok(Committed::default())).collect();
                let (store, time, wait) = (Arc::clone(&self.store), stage.time.clone(), chance.micros(10, 50_000));
                stage.executor.spawn(*whose, async move {
                    time.sleep(wait).await;
                    store.commit(units).await;
                });
                Box::pin(async move { answers })
            }
            How::Forgetful => self.store.commit(units),
        }
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        match self.how {
            How::Forgetful => Box::pin(async { Ok(Vec::new()) }),
            _ => self.store.due(after, until, limit),
        }
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        match (&self.how, query) {
            (How::Forgetful, Query::Unfinished { .. } | Query::Backlogs { .. }) => {
                Box::pin(async { Ok(Page::default()) })
            }
            _ => self.store.page(query, limit),
        }
    }
}
