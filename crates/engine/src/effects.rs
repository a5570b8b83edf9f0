//! Doing what commits owe: the plan is changed, programs are started and stopped, whoever waited for a lock is woken.

use std::sync::Arc;

use cronhold_core::command::{Command, Report, Stamp};
use cronhold_core::decide::LAUNCH_WITHIN;
use cronhold_core::decision::{Change, Done, Effect, Free, Take};
use cronhold_core::owed::{owed, owed_by};
use cronhold_core::record::{Actor, Key, LockName, Record, Run};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::{Instant, Span};

use crate::meter::Meter;
use crate::node::Node;
use crate::plan::Item;
use crate::ports::{LaunchRequest, News};
use crate::store_clock::UNSURE;

/// Old runs of a job are looked at this long after there were too many.
const PRUNE_AFTER: Span = Span::from_secs(1);

/// A program of an earlier life has so long to be found before its limits count.
const ADOPT_WAIT: Span = Span::from_secs(5);

/// When a commit was sent, at the earliest, and the locks it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    pub(crate) at: Span,
    pub(crate) fences: &'a [(LockName, u64)],
}

impl Node {
    /// Takes note of a commit and does what it owes.
    pub(crate) async fn settle(&mut self, stamp: &Stamp, done: Done, taken: Taken<'_>) {
        if !done.changes.is_empty() {
            self.ports.feed.tell(&News::Committed { stamp, done: &done });
        }
        let mut effects = Vec::new();
        for change in &done.changes {
            self.note(change, stamp.at);
            effects.extend(owed_by(change, self.me));
        }
        effects.extend(done.effects);
        self.note_holdings(&done.take, &done.free, &done.changes);
        self.perform_all(effects, Some(taken), stamp.at).await;
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
        self.perform_all(effects, None, now).await;
    }

    /// Does what a record owes that somebody else has written: they are at it already, so what any node could do is left
    /// to them for a moment.
    pub(crate) async fn perform_heard(&mut self, effects: Vec<Effect>, now: Instant) {
        for effect in effects {
            match effect {
                Effect::Wake { run, at: Some(at) } if at <= now && !self.programs.contains(&run) => {
                    let item = Item::Wake(run);
                    let turn = self.own_turn(&item, now);
                    self.plan.put_by(item, turn);
                }
                effect => self.perform(effect, None, now).await,
            }
        }
    }

    /// Keeps account of locks that the node holds without a run. Those of events are left to run out.
    fn note_holdings(&self, take: &[Take], free: &[Free], changes: &[Change]) {
        free.iter().for_each(|free| self.beacon.let_go(&free.lock));
        for take in take {
            let is_of_run = changes.iter().any(|change| change.key() == Key::Run(take.holder));
            if let Some(ttl) = take.ttl.filter(|_| !is_of_run && !take.lock.is_of_event()) {
                self.beacon.hold(take.lock.clone(), take.holder, ttl);
            }
        }
    }

    async fn perform_all(&mut self, effects: Vec<Effect>, taken: Option<Taken<'_>>, now: Instant) {
        // What has to happen at once goes last, so that a later time for the same thing does not undo it.
        let (at_once, other): (Vec<Effect>, Vec<Effect>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Wake { at: Some(Instant::EPOCH), .. }));
        for effect in other.into_iter().chain(at_once) {
            self.perform(effect, taken, now).await;
        }
    }

    async fn perform(&mut self, effect: Effect, taken: Option<Taken<'_>>, now: Instant) {
        match effect {
            Effect::Plan { job, schedule, next } => {
                self.resting.remove(&job, &schedule);
                let item = Item::Fire(job, schedule);
                match next {
                    Some((nominal, wake)) => self.plan.put_for(item, wake, nominal),
                    None => self.plan.remove(&item),
                }
            }
            Effect::Rest { job, schedule, nominal } => {
                self.plan.remove(&Item::Fire(job.clone(), schedule.clone()));
                self.resting.put(job, schedule, nominal);
            }
            Effect::CatchUp { job, schedule, at } => self.plan_at(Item::CatchUp(job, schedule), at),
            Effect::Wake { run, at } => self.plan_at(Item::Wake(run), at),
            Effect::Launch { run } => self.launch(run, taken, now).await,
            Effect::Adopt { run } => {
                self.programs.insert(run.id);
                self.beacon.take_over(&run);
                // It may have ended long before the limit that has passed since: that is asked first.
                if let Some(due) = run.due {
                    self.plan.put(Item::Wake(run.id), due.max(now.plus(ADOPT_WAIT)));
                }
                self.ports.outside.adopt(run);
            }
            Effect::Stop { run } => self.ports.outside.stop(&run),
            Effect::Signal { run, signal } => self.ports.outside.signal(run, signal),
            Effect::Prune { job } => self.plan.put_by(Item::Prune(job), now.plus(PRUNE_AFTER)),
        }
    }

    /// Starts a program, once.
    async fn launch(&mut self, run: Arc<Run>, taken: Option<Taken<'_>>, now: Instant) {
        if !self.programs.insert(run.id) {
            return;
        }
        let uptime = self.ports.clock.uptime();
        // One that is found later was sent after it was decided, and when that was stands in it, as far as the time was
        // known.
        let since = run.entered(State::Starting).map_or(Span::ZERO, |at| now.since(at).plus(UNSURE));
        let sent = taken.map_or_else(|| uptime.minus(since), |taken| taken.at);
        let kill_at = self.beacon.lend(&run, sent);
        // Somebody may believe by now that it is lost. A node that was held up for long must not start it any more.
        let is_over = kill_at.is_some_and(|kill_at| kill_at <= uptime);
        let launch_by = sent.plus(LAUNCH_WITHIN);
        if is_over || launch_by < uptime {
            let report = Report::NotLaunched("its node was held up for too long".to_owned());
            self.own.push_back((Actor::Program, Command::Report { run: run.id, report }));
            return;
        }
        let fence = match &run.lock {
            None => None,
            Some(lock) => {
                let fence = self.fence(lock, run.id, taken).await;
                if fence.is_none() {
                    // Nobody knows that it still has its lock, so it is not started; its due says so in the end.
                    self.programs.remove(&run.id);
                    self.beacon.end(run.id);
                    return;
                }
                fence
            }
        };
        Meter::add(&self.handle.meter.launched, 1);
        self.ports.outside.launch(LaunchRequest { run, fence, launch_by, kill_at });
    }

    /// The fence of a lock that a run holds. A commit whose answer got lost has told none, so the store is asked.
    async fn fence(&self, lock: &LockName, run: RunId, taken: Option<Taken<'_>>) -> Option<u64> {
        let told = taken.and_then(|taken| taken.fences.iter().find(|(name, _)| name == lock));
        if let Some((_, fence)) = told {
            return Some(*fence);
        }
        let found = self.ports.store.load(&[Key::Lock(lock.clone())]).await.ok()?;
        match found.into_iter().flatten().next()?.record {
            Record::Lock(held) if held.holder == run => Some(held.fence),
            _ => None,
        }
    }

    fn plan_at(&mut self, item: Item, at: Option<Instant>) {
        match at {
            Some(at) => self.plan.put(item, at),
            None => self.plan.remove(&item),
        }
    }

    /// Keeps what is remembered beside the store in step with it.
    pub(crate) fn note(&mut self, change: &Change, now: Instant) {
        match change {
            Change::Put(Record::Run(run)) => self.note_run(run),
            Change::Put(Record::Cursor(cursor)) if cursor.at_start => {
                self.at_start.insert((cursor.job.clone(), cursor.schedule.clone()));
            }
            Change::Delete(Key::Cursor(job, schedule)) if !self.at_start.is_empty() => {
                self.at_start.remove(&(job.clone(), schedule.clone()));
            }
            Change::Put(Record::Pause(pauses)) if !pauses.is_paused() => {
                self.wake_resting(None, now);
                self.plan.wake_all(now);
            }
            Change::Put(Record::JobState(state)) if !state.pauses.is_paused() => {
                self.wake_resting(Some(&state.job), now);
            }
            Change::Put(Record::Node(node)) if node.id == self.me.node => {
                self.drain_heard = self.ports.clock.uptime();
                self.note_draining(node.draining, now);
            }
            _ => {}
        }
    }

    /// What rests, of a job or of all, is claimed now; what is still paused goes on resting.
    pub(crate) fn wake_resting(&mut self, job: Option<&JobId>, now: Instant) {
        for (job, schedule, nominal) in self.resting.take(job) {
            self.plan.put_for(Item::Fire(job, schedule), now, nominal);
        }
    }

    fn note_run(&mut self, run: &Run) {
        if run.state.is_finished() && self.programs.remove(&run.id) {
            Meter::add(&self.handle.meter.finished, 1);
            self.beacon.end(run.id);
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
