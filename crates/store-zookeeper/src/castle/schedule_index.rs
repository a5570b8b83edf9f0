//! When each job is next, in order. The mirror fills it from records, and commits of this process before the mirror sees
//! them, so that the job that is next is known without a search.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, RecordKey, ScheduleId};
use cronhold_schedule::Instant;

/// The next times of a job's schedules.
type JobTimes = BTreeMap<ScheduleId, Instant>;

/// When jobs are next.
#[derive(Debug, Default)]
pub(crate) struct ScheduleIndex {
    /// All schedules with a next time.
    times: BTreeMap<JobId, JobTimes>,
    /// Those of jobs that are not paused, the earliest first.
    order: BTreeSet<(Instant, JobId, ScheduleId)>,
    paused: BTreeSet<JobId>,
    is_all_paused: bool,
    /// Jobs whose next time has changed: by a commit of this process, or by another process.
    changed_here: BTreeSet<JobId>,
    changed_elsewhere: BTreeSet<JobId>,
}

/// Changes that are about to be committed.
#[derive(Debug, Default)]
pub(crate) struct ScheduleOverlay {
    times: BTreeMap<(JobId, ScheduleId), Option<Instant>>,
    paused: BTreeMap<JobId, bool>,
    is_all_paused: Option<bool>,
}

impl ScheduleIndex {
    /// A record was written. `is_own` is whether this process has written it.
    pub(crate) fn put(&mut self, record: &Record, is_own: bool) {
        match record {
            Record::Cursor(cursor) if !cursor.job.is_ad_hoc() => {
                self.set_time(&cursor.job, &cursor.schedule, cursor.wake, is_own);
            }
            Record::JobState(state) => self.set_paused(&state.job, state.pauses.is_paused(), is_own),
            Record::Pause(pauses) => self.set_all_paused(pauses.is_paused(), is_own),
            _ => {}
        }
    }

    /// A record was deleted.
    pub(crate) fn delete(&mut self, key: &RecordKey, is_own: bool) {
        match key {
            RecordKey::Cursor(job, schedule) => self.set_time(job, schedule, None, is_own),
            RecordKey::JobState(job) => self.set_paused(job, false, is_own),
            RecordKey::Pause => self.set_all_paused(false, is_own),
            _ => {}
        }
    }

    /// Changes of this process were committed.
    pub(crate) fn apply(&mut self, changes: &[RecordChange]) {
        for change in changes {
            match change {
                RecordChange::Put(record) => self.put(record, true),
                RecordChange::Delete(key) => self.delete(key, true),
            }
        }
    }

    /// The job that is next, and when.
    pub(crate) fn next(&self) -> Option<(JobId, Instant)> {
        self.next_with(&ScheduleOverlay::default())
    }

    /// The job that is next after these changes, and when.
    pub(crate) fn next_with(&self, overlay: &ScheduleOverlay) -> Option<(JobId, Instant)> {
        if overlay.is_all_paused.unwrap_or(self.is_all_paused) {
            return None;
        }
        let is_paused = |job: &JobId| overlay.paused.get(job).copied();
        let unchanged = self.order.iter().find(|(_, job, schedule)| {
            is_paused(job) != Some(true)
                && (overlay.times.is_empty() || !overlay.times.contains_key(&(job.clone(), schedule.clone())))
        });
        let changed = overlay.times.iter().filter_map(|((job, _), time)| {
            let is_paused = is_paused(job).unwrap_or_else(|| self.paused.contains(job));
            time.filter(|_| !is_paused).map(|time| (time, job))
        });
        let resumed = overlay.paused.iter().filter(|(job, is_paused)| !**is_paused && self.paused.contains(*job));
        let resumed = resumed.flat_map(|(job, _)| self.times.get(job).into_iter().flatten().map(move |it| (job, it)));
        let resumed =
            resumed.filter(|(job, (schedule, _))| !overlay.times.contains_key(&((*job).clone(), (*schedule).clone())));
        let resumed = resumed.map(|(job, (_, time))| (*time, job));
        let unchanged = unchanged.map(|(time, job, _)| (*time, job));
        changed.chain(resumed).chain(unchanged).min().map(|(time, job)| (job.clone(), time))
    }

    /// When a job is next; `None` if no time starts it, or while it is paused.
    pub(crate) fn next_of(&self, job: &JobId) -> Option<Instant> {
        if self.is_all_paused || self.paused.contains(job) {
            return None;
        }
        self.times.get(job)?.values().min().copied()
    }

    /// Whether jobs have changed since they were taken.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changed_here.is_empty() || !self.changed_elsewhere.is_empty()
    }

    /// Takes the jobs whose next time has changed: by this process, and by others.
    pub(crate) fn take_changes(&mut self) -> (BTreeSet<JobId>, BTreeSet<JobId>) {
        (std::mem::take(&mut self.changed_here), std::mem::take(&mut self.changed_elsewhere))
    }

    fn set_time(&mut self, job: &JobId, schedule: &ScheduleId, time: Option<Instant>, is_own: bool) {
        let times = self.times.entry(job.clone()).or_default();
        let before = match time {
            Some(time) => times.insert(schedule.clone(), time),
            None => times.remove(schedule),
        };
        if times.is_empty() {
            self.times.remove(job);
        }
        if before == time {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, job.clone(), schedule.clone()));
        }
        if let Some(time) = time.filter(|_| !self.paused.contains(job)) {
            self.order.insert((time, job.clone(), schedule.clone()));
        }
        self.note(job, is_own);
    }

    fn set_paused(&mut self, job: &JobId, is_paused: bool, is_own: bool) {
        let has_changed = if is_paused { self.paused.insert(job.clone()) } else { self.paused.remove(job) };
        if !has_changed {
            return;
        }
        for (schedule, time) in self.times.get(job).into_iter().flatten() {
            let entry = (*time, job.clone(), schedule.clone());
            let _ = if is_paused { self.order.remove(&entry) } else { self.order.insert(entry) };
        }
        self.note(job, is_own);
    }

    fn set_all_paused(&mut self, is_paused: bool, is_own: bool) {
        if self.is_all_paused != is_paused {
            self.is_all_paused = is_paused;
            let jobs: Vec<JobId> = self.times.keys().cloned().collect();
            jobs.iter().for_each(|job| self.note(job, is_own));
        }
    }

    fn note(&mut self, job: &JobId, is_own: bool) {
        let set = if is_own { &mut self.changed_here } else { &mut self.changed_elsewhere };
        set.insert(job.clone());
    }
}

impl ScheduleOverlay {
    /// Adds changes to what `index` has. Returns whether one of them can change what is next.
    pub(crate) fn add(&mut self, index: &ScheduleIndex, changes: &[RecordChange]) -> bool {
        let mut is_relevant = false;
        for change in changes {
            match change {
                RecordChange::Put(Record::Cursor(cursor)) if !cursor.job.is_ad_hoc() => {
                    self.times.insert((cursor.job.clone(), cursor.schedule.clone()), cursor.wake);
                }
                RecordChange::Delete(RecordKey::Cursor(job, schedule)) => {
                    self.times.insert((job.clone(), schedule.clone()), None);
                }
                RecordChange::Put(Record::Pause(pauses)) => self.is_all_paused = Some(pauses.is_paused()),
                RecordChange::Delete(RecordKey::Pause) => self.is_all_paused = Some(false),
                RecordChange::Put(Record::JobState(state)) => {
                    let is_paused = state.pauses.is_paused();
                    if index.paused.contains(&state.job) == is_paused && !self.paused.contains_key(&state.job) {
                        continue;
                    }
                    self.paused.insert(state.job.clone(), is_paused);
                }
                _ => continue,
            }
            is_relevant = true;
        }
        is_relevant
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::record::{ClaimedRanges, Cursor, JobState, PauseState};
    use proptest::prelude::*;

    use super::*;

    fn job(name: u8) -> JobId {
        JobId::parse(&format!("j{name}")).expect("an id")
    }

    fn cursor(name: u8, schedule: u8, wake: Option<i64>) -> RecordChange {
        let schedule = ScheduleId::parse(&format!("s{schedule}")).expect("an id");
        let wake = wake.map(Instant::from_secs);
        RecordChange::Put(Record::Cursor(Arc::new(Cursor {
            job: job(name),
            schedule,
            since: Instant::EPOCH,
            last: None,
            claimed: ClaimedRanges::default(),
            next: wake,
            wake,
            revision: 1,
            zones: "".into(),
            generation: 0,
            follows: None,
            at_start: false,
            streak: None,
        })))
    }

    fn pauses(is_paused: bool) -> PauseState {
        let current = is_paused.then(|| cronhold_core::record::ActivePause {
            since: Instant::EPOCH,
            by: cronhold_core::record::Actor::JobFiles,
            why: String::new(),
            until: None,
        });
        PauseState { current, last: None }
    }

    fn paused(name: u8, is_paused: bool) -> RecordChange {
        RecordChange::Put(Record::JobState(Arc::new(JobState {
            pauses: pauses(is_paused),
            ..JobState::new(job(name))
        })))
    }

    fn change() -> impl Strategy<Value = RecordChange> {
        prop_oneof![
            4 => (0..4_u8, 0..2_u8, proptest::option::of(0..9_i64)).prop_map(|(name, schedule, at)| cursor(name, schedule, at)),
            1 => (0..4_u8, 0..2_u8).prop_map(|(name, schedule)| RecordChange::Delete(match cursor(name, schedule, None) {
                RecordChange::Put(record) => record.key(),
                RecordChange::Delete(key) => key,
            })),
            2 => (0..4_u8, any::<bool>()).prop_map(|(name, is_paused)| paused(name, is_paused)),
            1 => any::<bool>().prop_map(|is_paused| RecordChange::Put(Record::Pause(Arc::new(pauses(is_paused))))),
        ]
    }

    #[test]
    fn paused_jobs_and_jobs_without_a_time_are_never_next() {
        let mut index = ScheduleIndex::default();
        index.apply(&[cursor(1, 0, Some(5)), cursor(2, 0, None), cursor(3, 0, Some(3))]);
        assert_eq!(index.next(), Some((job(3), Instant::from_secs(3))));
        index.apply(&[paused(3, true)]);
        assert_eq!(index.next(), Some((job(1), Instant::from_secs(5))));
        assert_eq!((index.next_of(&job(3)), index.next_of(&job(2))), (None, None));
        let mut overlay = ScheduleOverlay::default();
        assert!(!overlay.add(&index, &[paused(3, true), paused(1, false)]), "nothing changes");
        assert!(overlay.add(&index, &[paused(3, false)]));
        assert_eq!(index.next_with(&overlay), Some((job(3), Instant::from_secs(3))));
        let (here, elsewhere) = index.take_changes();
        assert_eq!((here.len(), elsewhere.len(), index.has_changes()), (2, 0, false));
    }

    proptest! {
        #[test]
        fn overlay_says_what_will_be_next(
            before in proptest::collection::vec(change(), 0..12),
            after in proptest::collection::vec(change(), 0..8),
        ) {
            let mut index = ScheduleIndex::default();
            index.apply(&before);
            let mut overlay = ScheduleOverlay::default();
            let is_relevant = overlay.add(&index, &after);
            let (now, foreseen) = (index.next(), index.next_with(&overlay));
            index.apply(&after);
            prop_assert_eq!(&foreseen, &index.next());
            prop_assert!(is_relevant || now == foreseen);
        }
    }
}
