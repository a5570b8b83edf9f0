//! Doing what commits owe: the plan is changed, programs are started and stopped, whoever waited for a lock is woken.

use cronhold_core::State;
use cronhold_core::command::Stamp;
use cronhold_core::decision::{Change, Done, Effect};
use cronhold_core::owed::{owed, owed_by};
use cronhold_core::record::{Key, LockName, Record, Run};
use cronhold_schedule::{Instant, Span};

use crate::meter::Meter;
use crate::node::Node;
use crate::plan::Item;
use crate::ports::{News, Task};

/// Old runs of a job are looked at this long after there were too many.
const PRUNE_AFTER: Span = Span::from_secs(1);

/// A program of an earlier life has so long to be found before its limits count.
const ADOPT_WAIT: Span = Span::from_secs(5);

impl Node {
    /// Takes note of a commit and does what it owes.
    pub(crate) async fn settle(&mut self, stamp: &Stamp, done: Done, fences: &[(LockName, u64)]) {
        if !done.changes.is_empty() {
            self.ports.feed.tell(&News::Committed { stamp, done: &done });
        }
        let mut effects = Vec::new();
        for change in &done.changes {
            self.note(change, stamp.at);
            effects.extend(owed_by(change, self.me));
        }
        effects.extend(done.effects);
        self.perform_all(effects, fences, stamp.at).await;
        for free in done.free {
            if let Some(run) = self.waiters.get(&free.lock).and_then(|runs| runs.first()) {
                self.plan.put(Item::Wake(*run), Instant::EPOCH);
            }
        }
    }

    /// Takes up what a stored record owes.
    pub(crate) async fn take_up(&mut self, record: &Record, now: Instant) {
        self.note(&Change::Put(record.clone()), now);
        let effects = owed(record, self.me);
        self.perform_all(effects, &[], now).await;
    }

    async fn perform_all(&mut self, effects: Vec<Effect>, fences: &[(LockName, u64)], now: Instant) {
        // What has to happen at once goes last, so that a later time for the same thing does not undo it.
        let (at_once, other): (Vec<Effect>, Vec<Effect>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Wake { at: Some(Instant::EPOCH), .. }));
        for effect in other.into_iter().chain(at_once) {
            self.perform(effect, fences, now).await;
        }
    }

    async fn perform(&mut self, effect: Effect, fences: &[(LockName, u64)], now: Instant) {
        match effect {
            Effect::Plan { job, schedule, next } => {
                self.resting.remove(&(job.clone(), schedule.clone()));
                let item = Item::Fire(job, schedule);
                match next {
                    Some((nominal, wake)) => self.plan.put_for(item, wake, nominal),
                    None => self.plan.remove(&item),
                }
            }
            Effect::Rest { job, schedule, nominal } => {
                self.plan.remove(&Item::Fire(job.clone(), schedule.clone()));
                self.resting.insert((job, schedule), nominal);
            }
            Effect::CatchUp { job, schedule, at } => self.plan_at(Item::CatchUp(job, schedule), at),
            Effect::Wake { run, at } => self.plan_at(Item::Wake(run), at),
            Effect::Launch { run } => {
                if self.programs.insert(run.id) {
                    Meter::add(&self.handle.meter.launched, 1);
                    let fence = run
                        .lock
                        .as_ref()
                        .and_then(|lock| fences.iter().find(|(name, _)| name == lock).map(|(_, fence)| *fence));
                    self.ports.outside.perform(Task::Launch { run, fence, kill_at: None }).await;
                }
            }
            Effect::Adopt { run } => {
                self.programs.insert(run.id);
                // It may have ended long before the limit that has passed since: that is asked first.
                if let Some(due) = run.due {
                    self.plan.put(Item::Wake(run.id), due.max(now.plus(ADOPT_WAIT)));
                }
                self.ports.outside.perform(Task::Adopt { run }).await;
            }
            Effect::Stop { run } => self.ports.outside.perform(Task::Stop { run }).await,
            Effect::Signal { run, signal } => self.ports.outside.perform(Task::Signal { run, signal }).await,
            Effect::Prune { job } => self.plan.put_by(Item::Prune(job), now.plus(PRUNE_AFTER)),
        }
    }

    fn plan_at(&mut self, item: Item, at: Option<Instant>) {
        match at {
            Some(at) => self.plan.put(item, at),
            None => self.plan.remove(&item),
        }
    }

    /// Keeps what is remembered beside the store in step with it.
    fn note(&mut self, change: &Change, now: Instant) {
        match change {
            Change::Put(Record::Run(run)) => self.note_run(run),
            Change::Put(Record::Cursor(cursor)) if cursor.at_start => {
                self.at_start.insert((cursor.job.clone(), cursor.schedule.clone()));
            }
            Change::Delete(Key::Cursor(job, schedule)) if !self.at_start.is_empty() => {
                self.at_start.remove(&(job.clone(), schedule.clone()));
            }
            Change::Put(Record::Pause(pauses)) if !pauses.is_paused() => {
                for ((job, schedule), nominal) in std::mem::take(&mut self.resting) {
                    self.plan.put_for(Item::Fire(job, schedule), now, nominal);
                }
                self.plan.wake_all(now);
            }
            _ => {}
        }
    }

    fn note_run(&mut self, run: &Run) {
        if run.state.is_finished() && self.programs.remove(&run.id) {
            Meter::add(&self.handle.meter.finished, 1);
        }
        let Some(lock) = &run.lock else { return };
        if run.state == State::Waiting {
            self.waiters.entry(lock.clone()).or_default().insert(run.id);
        } else if let Some(runs) = self.waiters.get_mut(lock) {
            runs.remove(&run.id);
            if runs.is_empty() {
                self.waiters.remove(lock);
            }
        }
    }
}
