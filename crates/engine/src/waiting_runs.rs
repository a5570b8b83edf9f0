//! Runs that wait, by the records that block them. A node wakes a run when such a record changes, whether this node or
//! another one has changed it.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::RunId;
use cronhold_core::record::{Blocker, RecordKey, Run, WakeGroup};
use cronhold_schedule::{Instant, Span};

/// Changes of other nodes that are remembered in each of two generations.
const RECENT_MAX: usize = 8_192;
/// How long a generation lasts at least. Commits in flight and loads are much shorter.
const RECENT_FOR: Span = Span::from_secs(5);

/// Runs that wait, by the records that block them.
#[derive(Debug, Default)]
pub(crate) struct WaitingRuns {
    by_record: BTreeMap<RecordKey, BTreeMap<WakeGroup, BTreeSet<RunId>>>,
    by_run: BTreeMap<RunId, Vec<(RecordKey, WakeGroup)>>,
    recent: RecentChanges,
}

/// Records that other nodes have changed lately. The notification of a change may arrive before the node knows of a run
/// that waits for it: the run is not loaded yet, or the commit that lets it wait is in flight.
#[derive(Debug, Default)]
struct RecentChanges {
    young: BTreeSet<RecordKey>,
    old: BTreeSet<RecordKey>,
    /// When the young generation began.
    since: Option<Instant>,
}

impl WaitingRuns {
    /// Follows the change of a run. Returns runs that have to be checked: the run itself, if what it waits for may have
    /// changed meanwhile, and those that are first now because this run does not wait for the same thing any more.
    pub(crate) fn record_run(&mut self, run: &Run, now: Instant) -> Vec<RunId> {
        let watched = Blocker::watched_by(run);
        if watched.is_empty() && self.by_run.is_empty() {
            return Vec::new();
        }
        let before = self.by_run.get(&run.id).map_or(&[][..], Vec::as_slice);
        if before == watched.as_slice() {
            return Vec::new();
        }
        let left: Vec<_> = before.iter().filter(|watch| !watched.contains(watch)).cloned().collect();
        let joined: Vec<_> = watched.iter().filter(|watch| !before.contains(watch)).cloned().collect();
        let mut woken = self.leave(run.id, left);
        if run.state.has_program() {
            // It has taken what the others wait for.
            woken.clear();
        }
        self.recent.rotate(now);
        if joined.iter().any(|(record, _)| self.recent.contains(record)) {
            woken.push(run.id);
        }
        for (record, group) in joined {
            self.by_record.entry(record).or_default().entry(group).or_default().insert(run.id);
        }
        match watched.is_empty() {
            true => drop(self.by_run.remove(&run.id)),
            false => drop(self.by_run.insert(run.id, watched)),
        }
        woken
    }

    /// Whether a run waits.
    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.by_run.contains_key(&run)
    }

    /// Forgets a run that does not wait any more. Returns the runs that are first in its place.
    pub(crate) fn remove(&mut self, run: RunId) -> Vec<RunId> {
        let watched = self.by_run.remove(&run).unwrap_or_default();
        self.leave(run, watched)
    }

    /// The runs to check because a record has changed.
    pub(crate) fn waiting_for(&self, record: &RecordKey) -> Vec<RunId> {
        let Some(groups) = self.by_record.get(record) else { return Vec::new() };
        let in_group = |(group, runs): (&WakeGroup, &BTreeSet<RunId>)| {
            let count = if *group == WakeGroup::All { runs.len() } else { 1 };
            runs.iter().take(count).copied().collect::<Vec<_>>()
        };
        groups.iter().flat_map(in_group).collect()
    }

    /// The runs to check because another node has changed a record.
    pub(crate) fn record_foreign_change(&mut self, record: &RecordKey, now: Instant) -> Vec<RunId> {
        self.recent.insert(record, now);
        self.waiting_for(record)
    }

    /// Removes a run from groups, and returns the runs that are first in its place.
    fn leave(&mut self, run: RunId, groups: Vec<(RecordKey, WakeGroup)>) -> Vec<RunId> {
        let mut first = Vec::new();
        for (record, group) in groups {
            let Some(of_record) = self.by_record.get_mut(&record) else { continue };
            let Some(runs) = of_record.get_mut(&group) else { continue };
            let was_first = runs.first() == Some(&run);
            runs.remove(&run);
            if was_first && group != WakeGroup::All {
                first.extend(runs.first());
            }
            if runs.is_empty() {
                of_record.remove(&group);
            }
            if of_record.is_empty() {
                self.by_record.remove(&record);
            }
        }
        first
    }
}

impl RecentChanges {
    fn insert(&mut self, record: &RecordKey, now: Instant) {
        // Runs never wait for the others.
        if !matches!(
            record,
            RecordKey::Identity(..)
                | RecordKey::Lock(_)
                | RecordKey::Pool(_)
                | RecordKey::JobState(_)
                | RecordKey::Job(_)
                | RecordKey::Run(_)
        ) {
            return;
        }
        self.rotate(now);
        self.young.insert(record.clone());
    }

    /// Begins a new generation if the young one is old or full.
    fn rotate(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        // A clock that was set back counts as well.
        if self.young.len() >= RECENT_MAX || now.since(since) >= RECENT_FOR || now < since {
            let is_outdated = now.since(since) >= RECENT_FOR.plus(RECENT_FOR);
            self.old = std::mem::take(&mut self.young);
            if is_outdated {
                self.old.clear();
            }
            self.since = Some(now);
        }
    }

    fn contains(&self, record: &RecordKey) -> bool {
        self.young.contains(record) || self.old.contains(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cronhold_core::record::LockName;
    use cronhold_core::{Args, JobId, JobUid, RunNumber, State};

    const NOW: Instant = Instant::from_secs(1_000);

    fn id(number: u8) -> RunId {
        RunId::from_random(Instant::EPOCH, [number; 10])
    }

    fn job(name: &str) -> JobId {
        JobId::parse(name).expect("an id")
    }

    fn run(number: u8, state: State, blockers: &[Blocker]) -> Run {
        let run = Run::blank(id(number), RunNumber(number.into()), job("own"), JobUid::from_bits(1), Instant::EPOCH);
        Run { state, blockers: blockers.to_vec(), ..run }
    }

    fn lock() -> (Blocker, RecordKey) {
        let name = LockName::parse("l").expect("a name");
        (Blocker::Lock(name.clone()), RecordKey::Lock(name))
    }

    fn after() -> (Blocker, RecordKey) {
        let (job, args, states) = (job("other"), Args::new(), vec![State::Success]);
        let key = RecordKey::JobState(job.clone());
        (Blocker::After { job, args, states, runs: Vec::new(), last: None, is_negated: false }, key)
    }

    #[test]
    fn lock_wakes_the_first_run_and_an_outcome_wakes_all() {
        let mut waiting = WaitingRuns::default();
        let ((lock, released), (after, outcome)) = (lock(), after());
        for number in [2, 1, 3] {
            assert_eq!(waiting.record_run(&run(number, State::Waiting, &[lock.clone(), after.clone()]), NOW), []);
        }
        assert_eq!(waiting.waiting_for(&released), [id(1)]);
        assert_eq!(waiting.waiting_for(&outcome), [id(1), id(2), id(3)]);
        assert_eq!(waiting.record_run(&run(1, State::Starting, &[]), NOW), [], "it has the lock");
        assert_eq!(waiting.waiting_for(&released), [id(2)]);
        assert_eq!(waiting.waiting_for(&RecordKey::JobState(job("own"))), []);
    }

    /// Otherwise a lock stays free although a run waits for it.
    #[test]
    fn run_that_waits_for_something_else_passes_the_wake_on() {
        let mut waiting = WaitingRuns::default();
        let ((lock, released), (after, _)) = (lock(), after());
        for number in [1, 2, 3, 4] {
            waiting.record_run(&run(number, State::Waiting, std::slice::from_ref(&lock)), NOW);
        }
        assert_eq!(waiting.record_run(&run(1, State::Waiting, &[after]), NOW), [id(2)]);
        assert_eq!(waiting.record_run(&run(2, State::Skipped, &[]), NOW), [id(3)]);
        assert_eq!(waiting.remove(id(3)), [id(4)]);
        assert_eq!(waiting.waiting_for(&released), [id(4)]);
        for number in [1, 4] {
            waiting.remove(id(number));
        }
        assert!(waiting.by_record.is_empty() && waiting.by_run.is_empty(), "nothing is left behind");
    }

    #[test]
    fn runs_with_different_args_do_not_wait_for_each_other() {
        let mut waiting = WaitingRuns::default();
        let same_args = [Blocker::MaxRunning { count: 1, same_args: true }];
        for (number, arg) in [(1, "a"), (2, "a"), (3, "b")] {
            let args: Args = [("x".to_owned(), arg.to_owned())].into_iter().collect();
            waiting.record_run(&Run { args, ..run(number, State::Waiting, &same_args) }, NOW);
        }
        let mut woken = waiting.waiting_for(&RecordKey::JobState(job("own")));
        woken.sort();
        assert_eq!(woken, [id(1), id(3)]);
    }

    /// The notification of the release arrives while the commit that lets the run wait is in flight.
    #[test]
    fn change_before_the_run_is_known_wakes_it() {
        let mut waiting = WaitingRuns::default();
        let (lock, released) = lock();
        assert_eq!(waiting.record_foreign_change(&released, NOW), []);
        assert_eq!(waiting.record_run(&run(1, State::Waiting, std::slice::from_ref(&lock)), NOW), [id(1)]);
        assert_eq!(waiting.record_foreign_change(&released, NOW), [id(1)]);
        for number in 0..3 * RECENT_MAX {
            waiting.record_foreign_change(&RecordKey::Job(job(&format!("j{number}"))), NOW);
        }
        assert!(waiting.recent.young.len() + waiting.recent.old.len() <= 2 * RECENT_MAX);
        assert_eq!(waiting.record_run(&run(2, State::Waiting, &[lock]), NOW), []);
    }
    #[test]
    fn change_of_long_ago_does_not_wake_a_new_run() {
        let mut waiting = WaitingRuns::default();
        let (lock, released) = lock();
        for (second, woken) in [(4, true), (9, true), (30, false)] {
            waiting.record_foreign_change(&released, NOW);
            let later = NOW.plus(Span::from_secs(second));
            waiting.record_foreign_change(&RecordKey::Job(job("other")), later);
            let found = waiting.record_run(&run(1, State::Waiting, std::slice::from_ref(&lock)), later);
            assert_eq!(found.contains(&id(1)), woken, "{second}");
            waiting = WaitingRuns::default();
        }
    }
}
