//! Occurrences whose time came while their job, or all jobs, were paused. They are ordered by job, so that resuming one
//! job touches only its own occurrences.

use std::collections::BTreeMap;
use std::ops::Bound;

use cronhold_core::JobId;
use cronhold_core::record::ScheduleId;
use cronhold_schedule::Instant;

/// The nominal times of paused occurrences, by job and schedule.
#[derive(Debug, Default)]
pub(crate) struct PausedOccurrences(BTreeMap<JobId, BTreeMap<ScheduleId, Instant>>);

impl PausedOccurrences {
    /// Adds an occurrence. It replaces the one of the same schedule.
    pub(crate) fn put(&mut self, job: JobId, schedule: ScheduleId, nominal: Instant) {
        self.0.entry(job).or_default().insert(schedule, nominal);
    }

    /// Removes the occurrence of a schedule.
    pub(crate) fn remove(&mut self, job: &JobId, schedule: &ScheduleId) {
        let Some(of_job) = self.0.get_mut(job) else { return };
        of_job.remove(schedule);
        if of_job.is_empty() {
            self.0.remove(job);
        }
    }

    /// Jobs with paused occurrences, ordered by id, at most `limit` of them after one.
    pub(crate) fn jobs(&self, after: Option<&JobId>, limit: usize) -> Vec<JobId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<JobId, _>((from, Bound::Unbounded)).take(limit).map(|(job, _)| job.clone()).collect()
    }

    /// Whether a job has a paused occurrence.
    pub(crate) fn has(&self, job: &JobId) -> bool {
        self.0.contains_key(job)
    }

    /// Whether a schedule has a paused occurrence.
    pub(crate) fn has_schedule(&self, job: &JobId, schedule: &ScheduleId) -> bool {
        self.0.get(job).is_some_and(|of_job| of_job.contains_key(schedule))
    }

    /// Takes out the occurrences of a job, or of all jobs.
    pub(crate) fn take(&mut self, job: Option<&JobId>) -> Vec<(JobId, ScheduleId, Instant)> {
        let taken = match job {
            Some(job) => self.0.remove_entry(job).into_iter().collect(),
            None => std::mem::take(&mut self.0),
        };
        let of_job = |(job, of_job): (JobId, BTreeMap<ScheduleId, Instant>)| {
            of_job.into_iter().map(move |(schedule, nominal)| (job.clone(), schedule, nominal))
        };
        taken.into_iter().flat_map(of_job).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resuming_a_job_takes_only_its_own_occurrences() {
        let job = |name: &str| JobId::parse(name).expect(name);
        let schedule = |name: &str| ScheduleId::parse(name).expect(name);
        let mut paused = PausedOccurrences::default();
        for (name, id) in [("a", "s"), ("a", "t"), ("b", "s"), ("c", "s")] {
            paused.put(job(name), schedule(id), Instant::EPOCH);
        }
        paused.remove(&job("a"), &schedule("t"));
        paused.remove(&job("c"), &schedule("s"));
        assert!(paused.has_schedule(&job("a"), &schedule("s")) && !paused.has_schedule(&job("a"), &schedule("t")));
        assert!(paused.has(&job("b")) && !paused.has(&job("c")));
        let names = |taken: Vec<(JobId, ScheduleId, Instant)>| -> Vec<String> {
            taken.into_iter().map(|(job, schedule, _)| format!("{job} {}", schedule.as_str())).collect()
        };
        assert_eq!(names(paused.take(Some(&job("a")))), ["a s"]);
        assert_eq!(names(paused.take(Some(&job("a")))), Vec::<String>::new());
        assert_eq!(names(paused.take(None)), ["b s"]);
    }
}
