//! Reloads records that other nodes have changed. A change notification names the record; the node loads it and applies it
//! by the same logic as at its start. Notifications may be lost: the watchdog finds what they would have shown.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use cronhold_core::When;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{RecordKey, RecordKind, StoredRecord};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Hint, load_readable};

use super::NodeLoop;
use crate::plan::PlanItem;

impl NodeLoop {
    /// Takes the change notifications that have arrived, without waiting.
    pub(super) async fn receive_hints(&mut self) {
        if !self.world.is_shared {
            return;
        }
        let received = {
            let mut hints = pin!(self.context.ports.store.hints());
            poll_fn(|context| match hints.as_mut().poll(context) {
                Poll::Ready(hints) => Poll::Ready(hints),
                Poll::Pending => Poll::Ready(Vec::new()),
            })
            .await
        };
        self.record_hints(received);
    }

    /// Evicts changed records from the cache, and plans to reload those that concern this node.
    pub(super) fn record_hints(&mut self, hints: Vec<Hint>) {
        let (now, uptime) = (self.read_clock(), self.context.uptime());
        for Hint { key, is_quiet } in hints {
            self.session.evict(&key);
            if let RecordKey::Cursor(job, schedule) = &key
                && let Some((When::At(due), _)) = self.agenda.due(&PlanItem::Fire(job.clone(), schedule.clone()))
            {
                // Another node has claimed it.
                self.claim_lag.observe(now.since(due), uptime);
            }
            for run in self.agenda.record_foreign_change(&key, now) {
                self.wake_after_change(run, now);
            }
            if !is_quiet || self.is_concerned(&key) {
                self.hints.insert(key);
            }
        }
        self.plan_reload();
    }

    fn plan_reload(&mut self) {
        if !self.hints.is_empty() {
            self.agenda.put_by(PlanItem::ReloadChanges, When::Now);
        }
        if self.hints.has_overflowed() {
            self.agenda.put_by(PlanItem::Watchdog, When::Now);
        }
    }

    /// Whether this node already has something to do with a record.
    fn is_concerned(&self, key: &RecordKey) -> bool {
        match key {
            RecordKey::Run(run) => {
                self.programs.contains(*run) || self.agenda.has(&PlanItem::Wake(*run)) || self.agenda.is_waiting(*run)
            }
            RecordKey::Action(action) => self.agenda.has(&PlanItem::Deliver(*action)),
            RecordKey::Triggers(job) => self.agenda.has(&PlanItem::Batch(job.clone())),
            RecordKey::JobState(job) => self.agenda.has_paused(job),
            _ => true,
        }
    }

    /// Reloads records that other nodes have changed, and applies them.
    pub(super) async fn reload_changes(&mut self, now: Instant) -> Result<(), Fault> {
        let loaded = self.load_readable(self.hints.next_batch()).await?;
        // The state of a job may wake a run now. It goes last, so that a later time from the run itself does not
        // replace that.
        let (states, others): (Vec<_>, Vec<_>) =
            loaded.into_iter().partition(|(key, _)| key.kind() == RecordKind::JobState);
        for (key, stored) in others.into_iter().chain(states) {
            self.hints.remove(&key);
            let change = stored.map_or_else(|| RecordChange::Delete(key), |stored| RecordChange::Put(stored.record));
            self.apply_foreign_change(&change, now).await;
        }
        self.plan_reload();
        Ok(())
    }

    /// Loads records. Those that cannot be read are reported and no longer pending.
    pub(super) async fn load_readable(
        &mut self,
        keys: Vec<RecordKey>,
    ) -> Result<Vec<(RecordKey, Option<StoredRecord>)>, Fault> {
        let loaded = load_readable(&*self.context.ports.store, &keys).await?;
        for record in &loaded.unreadable {
            self.context.report_unreadable(record);
            record.key.iter().for_each(|key| self.hints.remove(key));
        }
        Ok(loaded.records)
    }
}
