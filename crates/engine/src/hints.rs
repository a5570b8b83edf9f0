//! Hearing what others have changed. A hint says which record; what it is now is loaded and taken up by the same rule as
//! at a start. Hints may be lost: the watchdog finds what nobody heard of.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use cronhold_core::decision::Change;
use cronhold_core::owed::owed_by;
use cronhold_core::record::{Key, Kind, Record};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Hint};

use crate::node::Node;
use crate::plan::Item;
use crate::ports::News;

/// Records that are looked at in one go.
const HEARD_MAX: usize = 1_000;
/// Records that somebody has changed and that were not looked at yet. When there are more, everything is looked at.
const UNHEARD_MAX: usize = 50_000;

impl Node {
    /// Takes in hints that are there, without waiting.
    pub(crate) async fn listen(&mut self) {
        if !self.world.is_shared {
            return;
        }
        let heard = {
            let mut hints = pin!(self.ports.store.hints());
            poll_fn(|context| match hints.as_mut().poll(context) {
                Poll::Ready(hints) => Poll::Ready(hints),
                Poll::Pending => Poll::Ready(Vec::new()),
            })
            .await
        };
        self.note_hints(heard);
    }

    /// Remembers what has to be looked at.
    pub(crate) fn note_hints(&mut self, hints: Vec<Hint>) {
        for Hint { key, is_quiet } in hints {
            self.desk.forget(&key);
            if is_quiet && !self.is_concerned(&key) {
                continue;
            }
            if matches!(
                key.kind(),
                Kind::Cursor | Kind::Backlog | Kind::Run | Kind::JobState | Kind::Pause | Kind::Node
            ) {
                self.unheard.insert(key);
            }
        }
        if self.unheard.len() > UNHEARD_MAX {
            self.unheard.clear();
            self.has_lost_touch = true;
        }
        if !self.unheard.is_empty() {
            self.plan.put_by(Item::Hear, Instant::EPOCH);
        }
        if self.has_lost_touch {
            self.plan.put_by(Item::Watch, Instant::EPOCH);
        }
    }

    /// Whether this node has something to do with a record already.
    fn is_concerned(&self, key: &Key) -> bool {
        match key {
            Key::Run(run) => self.programs.contains(run) || self.plan.at(&Item::Wake(*run)).is_some(),
            Key::JobState(job) => self.resting.has(job),
            _ => true,
        }
    }

    /// Looks at records that others have changed.
    pub(crate) async fn hear(&mut self, now: Instant) -> Result<(), Fault> {
        let keys: Vec<Key> = self.unheard.iter().take(HEARD_MAX).cloned().collect();
        let found = match self.ports.store.load(&keys).await {
            Ok(found) => found,
            Err(fault @ Fault::Broken(_)) => {
                // One of them cannot be read. Whoever needs it will say so; the watchdog finds the others.
                self.ports.feed.tell(&News::Dropped(&fault.to_string()));
                self.unheard.retain(|key| !keys.contains(key));
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        // What a set of runs lets start at once goes last, so that the later time of a run that waits does not undo it.
        let (sets, others): (Vec<_>, Vec<_>) =
            keys.into_iter().zip(found).partition(|(key, _)| key.kind() == Kind::JobState);
        for (key, stored) in others.into_iter().chain(sets) {
            self.unheard.remove(&key);
            let change = stored.map_or_else(|| Change::Delete(key), |stored| Change::Put(stored.record));
            self.take_in(&change, now).await;
        }
        if !self.unheard.is_empty() {
            self.plan.put_by(Item::Hear, Instant::EPOCH);
        }
        Ok(())
    }

    /// Takes in one record that somebody else has changed.
    async fn take_in(&mut self, change: &Change, now: Instant) {
        if let Change::Put(Record::Run(run)) = change
            && run.state.is_finished()
            && self.programs.contains(&run.id)
            && run.terms.lease.is_some()
        {
            // Somebody has declared it over while its program was here. What must be alone has to end.
            self.ports.outside.stop(run);
        }
        self.note(change, now);
        let effects = owed_by(change, self.me);
        self.perform_heard(effects, now).await;
    }
}
