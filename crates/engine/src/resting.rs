//! Occurrences whose time came while their job, or everything, was paused. They are kept by job, so that the end of one
//! pause looks at that job alone, however many others rest.

use std::collections::BTreeMap;

use cronhold_core::JobId;
use cronhold_core::record::ScheduleId;
use cronhold_schedule::Instant;

/// What rests, by job and schedule.
#[derive(Debug, Default)]
pub(crate) struct Resting(BTreeMap<JobId, BTreeMap<ScheduleId, Instant>>);

impl Resting {
    /// An occurrence rests.
    pub(crate) fn put(&mut self, job: JobId, schedule: ScheduleId, nominal: Instant) {
        self.0.entry(job).or_default().insert(schedule, nominal);
    }

    /// Nothing of a schedule rests any more.
    pub(crate) fn remove(&mut self, job: &JobId, schedule: &ScheduleId) {
        let Some(of_job) = self.0.get_mut(job) else { return };
        of_job.remove(schedule);
        if of_job.is_empty() {
            self.0.remove(job);
        }
    }

    /// Whether something of a job rests.
    pub(crate) fn has(&self, job: &JobId) -> bool {
        self.0.contains_key(job)
    }

    /// Whether an occurrence of a schedule rests.
    pub(crate) fn has_schedule(&self, job: &JobId, schedule: &ScheduleId) -> bool {
        self.0.get(job).is_some_and(|of_job| of_job.contains_key(schedule))
    }

    /// Takes out what rests of a job, or everything.
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
    fn the_end_of_a_pause_takes_what_it_held_back() {
        let job = |name: &str| JobId::parse(name).expect(name);
        let schedule = |name: &str| ScheduleId::parse(name).expect(name);
        let mut resting = Resting::default();
        for (name, id) in [("a", "s"), ("a", "t"), ("b", "s"), ("c", "s")] {
            resting.put(job(name), schedule(id), Instant::EPOCH);
        }
        resting.remove(&job("a"), &schedule("t"));
        resting.remove(&job("c"), &schedule("s"));
        assert!(resting.has_schedule(&job("a"), &schedule("s")) && !resting.has_schedule(&job("a"), &schedule("t")));
        assert!(resting.has(&job("b")) && !resting.has(&job("c")));
        let names = |taken: Vec<(JobId, ScheduleId, Instant)>| -> Vec<String> {
            taken.into_iter().map(|(job, schedule, _)| format!("{job} {}", schedule.as_str())).collect()
        };
        assert_eq!(names(resting.take(Some(&job("a")))), ["a s"]);
        assert_eq!(names(resting.take(Some(&job("a")))), Vec::<String>::new());
        assert_eq!(names(resting.take(None)), ["b s"]);
    }
}
