//! A test bench for decisions. It keeps records in a map, decides commands, applies the results as a store does, and
//! checks the invariants after each command. Tests are scripts with their expected output: see [`play`].

mod action;
mod cluster;
mod condition;
mod remote;
mod script;
mod transcript;
mod trigger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_schedule::{Instant, Zone, ZoneRegistry};

use super::decide;
use crate::command::{Command, CommandStamp};
use crate::decision::{DecidedUnit, Decision, Effect, RecordChange, Rejection};
use crate::ids::{JobId, NodeId, RunId};
use crate::owed::owed_by;
use crate::policy::catch_up::CountedRange;
use crate::record::{
    Actor, Cursor, JobState, LockState, Record, RecordKey, RecordVersion, Run, RunOwner, SkipSpan, StoredRecord,
    TransitionKind,
};
use crate::run::{self, Cause, State};
use crate::view::{DecisionView, RecordSource};
use crate::world::DecisionContext;

pub(super) use script::{instant, job_id, play};

/// The most rounds in which a decision may request records, starting with none loaded. The bench checks it for every
/// command.
const ROUNDS_MAX: usize = 4;
/// The most conflicts of one command. A decision that wrongly assumed a record to be absent is made again with the
/// record loaded.
const CONFLICTS_MAX: usize = 3;

/// Monday, 2026-01-05T00:00:00Z, the start of all scripts.
pub(super) const START: Instant = Instant::from_secs(1_767_571_200);

/// One node on a store that is a map.
pub(super) struct DecisionBench {
    /// The current time.
    pub(super) now: Instant,
    /// What decisions depend on besides records.
    pub(super) world: DecisionContext,
    /// The node that decides.
    pub(super) me: RunOwner,
    /// The content of the store.
    pub(super) records: BTreeMap<RecordKey, StoredRecord>,
    /// Effects that are owed and were not performed yet.
    pub(super) effects: Vec<Effect>,
    units: u64,
    /// Whether a lock has expired while it was held.
    has_lost_locks: bool,
    /// Whether the store has lost records, so that others contradict them until they are repaired.
    has_lost_records: bool,
}

/// The records that were loaded for a decision.
#[derive(Default)]
struct LoadedRecords(BTreeMap<RecordKey, Option<StoredRecord>>);

impl RecordSource for LoadedRecords {
    fn get(&self, key: &RecordKey) -> Option<Option<&StoredRecord>> {
        self.0.get(key).map(Option::as_ref)
    }
}

impl DecisionBench {
    pub(super) fn new() -> Self {
        let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc());
        let world = DecisionContext { has_tasks: true, ..world };
        let me = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };
        let (has_lost_locks, has_lost_records) = (false, false);
        let (records, effects) = (BTreeMap::new(), Vec::new());
        Self { now: START, world, me, records, effects, units: 0, has_lost_locks, has_lost_records }
    }

    /// Decides a command and applies the result, as a node does on a store.
    pub(super) fn execute(&mut self, actor: Actor, command: &Command) -> Result<DecidedUnit, Rejection> {
        let stamp = CommandStamp { at: self.now, actor, owner: self.me };
        let mut loaded = LoadedRecords::default();
        let mut conflicts = 0;
        let mut rounds = 0;
        loop {
            let view = DecisionView::new(&loaded, &self.world, &stamp);
            match decide(&view, command) {
                Decision::Reject(rejection) => {
                    self.check_partial_views(&loaded, &stamp, command);
                    return Err(rejection);
                }
                Decision::Need(keys) => {
                    rounds += 1;
                    assert!(rounds <= ROUNDS_MAX, "{command:?} requests records a fifth time: {keys:?}");
                    for key in keys {
                        let stored = self.records.get(&key).cloned();
                        assert!(loaded.0.insert(key.clone(), stored).is_none(), "{key} was loaded already");
                    }
                }
                Decision::Done(done) => {
                    let reads = view.into_reads();
                    let conflict = reads.iter().find(|(key, assumed)| {
                        let seen = loaded.0.get(*key).and_then(|stored| stored.as_ref());
                        let seen = seen.map(|stored| stored.version).or(**assumed);
                        seen != self.records.get(*key).map(|stored| stored.version)
                    });
                    match conflict {
                        Some((key, _)) => {
                            conflicts += 1;
                            assert!(conflicts <= CONFLICTS_MAX, "{command:?} conflicts on {key} too often");
                            loaded.0.insert(key.clone(), self.records.get(key).cloned());
                        }
                        None => {
                            self.check_partial_views(&loaded, &stamp, command);
                            self.apply(&done, &reads);
                            return Ok(done);
                        }
                    }
                }
            }
        }
    }

    /// A node's cache may hold any part of the records that a decision reads. Decides with each record left out in
    /// turn: the decision must not panic, and must request only records that are not loaded.
    fn check_partial_views(&self, loaded: &LoadedRecords, stamp: &CommandStamp, command: &Command) {
        for key in loaded.0.keys() {
            let mut partial = LoadedRecords(loaded.0.clone());
            partial.0.remove(key);
            if let Decision::Need(keys) = decide(&DecisionView::new(&partial, &self.world, stamp), command) {
                let known = keys.iter().find(|key| partial.0.contains_key(*key));
                assert!(known.is_none(), "{command:?} requests {known:?} again");
            }
        }
    }

    /// All runs, sorted by id.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.records.values().filter_map(|stored| match &stored.record {
            Record::Run(run) => Some(run),
            _ => None,
        })
    }

    /// All spans of skips, by id.
    pub(super) fn skip_spans(&self) -> impl Iterator<Item = &Arc<SkipSpan>> {
        self.records.values().filter_map(|stored| match &stored.record {
            Record::SkipSpan(span) => Some(span),
            _ => None,
        })
    }

    /// The sets of runs of all jobs.
    pub(super) fn job_states(&self) -> impl Iterator<Item = &Arc<JobState>> {
        self.records.values().filter_map(|stored| match &stored.record {
            Record::JobState(state) => Some(state),
            _ => None,
        })
    }

    /// The run with a number, of the only job or of a named one.
    pub(super) fn run(&self, job: Option<&JobId>, number: u64) -> Arc<Run> {
        let found = self.runs().find(|run| run.number.0 == number && job.is_none_or(|job| run.job == *job));
        Arc::clone(found.unwrap_or_else(|| panic!("there is no run #{number}")))
    }

    fn apply(&mut self, done: &DecidedUnit, reads: &BTreeMap<RecordKey, Option<RecordVersion>>) {
        self.units += 1;
        let version = RecordVersion::new(1, self.units);
        for free in &done.free {
            let key = RecordKey::Lock(free.lock.clone());
            if self.lock(&key).is_some_and(|lock| lock.holder == free.holder) {
                self.records.remove(&key);
            }
        }
        for take in &done.take {
            let key = RecordKey::Lock(take.lock.clone());
            let is_held = self.lock(&key).is_some_and(|lock| lock.holder != take.holder);
            assert!(!is_held, "{key} is held: the unit fails");
            let until = take.ttl.map(|ttl| self.now.plus(ttl));
            let lock = LockState { name: take.lock.clone(), holder: take.holder, fence: self.units, until };
            self.records.insert(key, StoredRecord { version, record: Record::Lock(Arc::new(lock)) });
        }
        let mut written = BTreeSet::new();
        for change in &done.changes {
            let key = change.key();
            assert!(reads.contains_key(&key), "{key} is written and not compared");
            assert!(written.insert(key.clone()), "{key} is written twice");
            self.effects.extend(owed_by(change, self.me));
            match change {
                RecordChange::Put(record) => {
                    let old = self.records.insert(key, StoredRecord { version, record: record.clone() });
                    let old = old.as_ref().map(|stored| &stored.record);
                    match record {
                        Record::Run(run) => check_moves(old, run),
                        Record::SkipSpan(span) => check_extension(old, span),
                        _ => {}
                    }
                }
                RecordChange::Delete(key) => drop(self.records.remove(key)),
            }
        }
        self.effects.extend(done.effects.iter().cloned());
        self.check();
    }

    fn lock(&self, key: &RecordKey) -> Option<&LockState> {
        match self.records.get(key).map(|stored| &stored.record) {
            Some(Record::Lock(lock)) => Some(lock),
            _ => None,
        }
    }

    /// Checks the invariants that hold between any two commits.
    fn check(&self) {
        let mut numbers = BTreeSet::new();
        for run in self.runs() {
            assert!(numbers.insert((&run.job, run.number)), "two runs are {}#{}", run.job, run.number.0);
            let is_in = |set: fn(&JobState, RunId) -> bool| {
                self.job_states().any(|state| state.job == run.job && set(state, run.id))
            };
            let is_active = is_in(JobState::is_active);
            let is_queued = is_in(JobState::is_queued);
            let is_pending_retry = run.retry_of.is_some() && !run.state.is_finished();
            let name = format!("{}#{} ({})", run.job, run.number.0, run.state);
            assert!(is_active || !run.state.has_program(), "{name} is not active");
            assert!(!is_active || run.state.has_program() || is_pending_retry, "{name} is active");
            assert_eq!(is_queued, run.state == State::Waiting, "{name} in the queue");
            assert_eq!(run.owner.is_some() && !run.state.is_finished(), run.state.has_program(), "the owner of {name}");
            assert!(!run.state.is_finished() || run.next_check().is_none(), "{name} is due");
            assert!(run.state == State::Running || run.state.is_finished() || run.due.is_some(), "{name} is never due");
            if let Some(lock) = &run.lock {
                let holds = self.lock(&RecordKey::Lock(lock.clone())).is_some_and(|lock| lock.holder == run.id);
                // A program whose lock has expired is stopped a moment later.
                let may_have_lost_it = self.has_lost_locks && run.state.has_program();
                assert!(may_have_lost_it || holds == run.state.has_program(), "{name} and its lock");
            }
            assert!(run.reason.as_ref().is_none_or(|reason| reason.fits(run.state)), "{name}: {:?}", run.reason);
        }
        for span in self.skip_spans() {
            assert!(numbers.insert((&span.job, span.number)), "two runs are {}#{}", span.job, span.number.0);
            assert!(!self.records.contains_key(&RecordKey::Run(span.id)), "{} is a run and a span", span.id);
            assert!(span.reason.fits(State::Skipped), "{}#{}: {:?}", span.job, span.number.0, span.reason);
        }
        for stored in self.records.values() {
            match &stored.record {
                Record::Cursor(cursor) => self.check_cursor(cursor),
                Record::Backlog(backlog) => {
                    let first = CountedRange { from: backlog.from, to: backlog.position, count: 0 };
                    for stretch in [first].into_iter().chain(backlog.rest()) {
                        assert!(stretch.from <= stretch.to, "the backlog of {} ends before it starts", backlog.job);
                    }
                }
                _ => {}
            }
        }
        if !self.has_lost_records {
            trigger::check(&self.records);
        }
        for state in self.job_states().filter(|_| !self.has_lost_records) {
            for id in state.active.iter().map(|active| active.run).chain(state.queued()) {
                assert!(
                    self.records.contains_key(&RecordKey::Run(id)),
                    "{} counts a run that is not stored",
                    state.job
                );
            }
        }
    }

    fn check_cursor(&self, cursor: &Cursor) {
        let name = format!("the cursor of {} {}", cursor.job, cursor.schedule);
        let job = self.records.get(&RecordKey::Job(cursor.job.clone())).map(|stored| &stored.record);
        let Some(Record::Job(job)) = job else { panic!("{name} has no job") };
        if self.has_lost_records {
            return;
        }
        assert!(
            job.schedule(&cursor.schedule).is_some_and(|schedule| job.job.enables(schedule)),
            "{name} has no schedule"
        );
        assert_eq!(cursor.revision, job.revision, "{name}");
        assert_eq!(cursor.next.is_some(), cursor.wake.is_some(), "{name} and when it is due");
        assert!(cursor.next.is_none_or(|next| Some(next) <= cursor.wake), "{name} is due before its time");
        assert!(cursor.next.is_none_or(|next| cursor.last < Some(next)), "{name} moves back");
        if let Some(run) = cursor.follows {
            assert!(cursor.next.is_none(), "{name} follows a run and has a next");
            let follows = self.runs().find(|other| other.id == run);
            assert!(follows.is_some_and(|run| !run.state.is_finished()), "{name} follows a run that has ended");
        }
    }
}

/// Checks that only the end and the count of a span change, and that neither decreases.
fn check_extension(old: Option<&Record>, new: &SkipSpan) {
    let Some(Record::SkipSpan(old)) = old else { return };
    let CountedRange { from, to, count } = old.range;
    assert!(to <= new.range.to && count <= new.range.count, "{old:?} shrank");
    let unchanged = SkipSpan { range: CountedRange { from, ..new.range }, job: new.job.clone(), ..(**old).clone() };
    assert_eq!(*new, unchanged, "only the range of a span may change, and the name of its job");
}

/// Checks that a run changes only along the transition table, and that its log is only appended to.
fn check_moves(old: Option<&Record>, new: &Run) {
    let name = format!("{}#{}", new.job, new.number.0);
    let first = new.log.first().unwrap_or_else(|| panic!("{name} has no log")).state;
    let is_beginning = matches!(first, State::Scheduled | State::Waiting);
    assert!(is_beginning, "{name} begins as {first}");
    assert_eq!(new.log.last().map(|entry| entry.state), Some(new.state), "the log of {name}");
    if let Some(Record::Run(old)) = old {
        assert!(new.log.starts_with(&old.log), "the log of {name} was rewritten");
        // A rename changes the name of the job, and not its uid.
        assert_eq!((old.number, old.uid, old.nominal), (new.number, new.uid, new.nominal), "{name} is another run");
    }
    for pair in new.log.windows(2) {
        let (from, to) = (pair[0].state, pair[1].state);
        let is_note = from == to && from.is_finished() && pair[1].is_late_result();
        let is_takeover = from == to && from.has_program() && pair[1].kind == TransitionKind::TakenOver;
        let is_late = from == to && !from.is_finished() && pair[1].kind == TransitionKind::Late;
        let is_move = is_note
            || is_late
            || is_takeover
            || Cause::all().any(|cause| run::next(from, cause) == Ok(run::TransitionEffect::Enter(to)));
        assert!(is_move, "{name} went from {from} to {to}");
    }
}
