//! Creates an ad hoc run: a run of a job that is not among the stored jobs. The definition is stored in the same unit, as a
//! job of its own that only this run has, so that the run survives a restart, is retried and can be run again like any
//! other. It has no schedule, so nothing else starts it. Retention deletes it after its runs have ended; see
//! `decide/expire.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::UnitDraft;
use super::put_job::{check_lock, check_tasks};
use super::run::{RequestedTimes, make_of, once};
use crate::args::Args;
use crate::decision::{DecidedUnit, Rejection};
use crate::ids::{JobId, JobUid, RunId};
use crate::job::Job;
use crate::record::{JobRecord, JobSource, Record};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(
    view: &DecisionView<'_>,
    job: &Arc<Job>,
    args: &BTreeMap<String, String>,
    id: RunId,
    times: RequestedTimes,
) -> Result<DecidedUnit, Halt> {
    once(view, id, || make(view, job, args, id, times))
}

fn make(
    view: &DecisionView<'_>,
    job: &Arc<Job>,
    args: &BTreeMap<String, String>,
    id: RunId,
    times: RequestedTimes,
) -> Result<DecidedUnit, Halt> {
    if let Some(key) = repeating_key(job) {
        return Err(Rejection::AdHocKey(key).into());
    }
    let job_id = JobId::of_ad_hoc_run(id);
    let mut draft = UnitDraft::new(view);
    let (existing, state) = (view.job(&job_id), draft.job_state(&job_id));
    view.require_loaded()?;
    if existing.is_some() {
        // The run was deleted, and its job is about to be.
        return Err(Rejection::JobThere(job_id).into());
    }
    check_lock(&job_id, job)?;
    check_tasks(view, &job_id, job)?;
    let args = Args::bind(&job.params, args, &BTreeMap::new())?;
    let (uid, zone) = (JobUid::from_bits(id.bits()), view.world.zone.name().into());
    let record = Arc::new(JobRecord::new(job_id, uid, Arc::clone(job), zone, JobSource::Api));
    draft.put(Record::Job(Arc::clone(&record)));
    make_of(draft, state, &record, args, id, times)
}

/// The first key of a job that would start further runs, or keep this one from starting.
fn repeating_key(job: &Job) -> Option<&'static str> {
    let keys = [
        ("schedule", !job.schedules.is_empty()),
        ("triggers", !job.triggers.is_empty()),
        ("batching", job.batching.is_some()),
        ("paused", job.paused),
    ];
    keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Precondition};
    use crate::decide::testing::{DecisionBench, START, play};
    use crate::job::Program;
    use crate::record::Actor;

    #[test]
    fn ad_hoc_run_has_all_keys_of_a_job() {
        play(
            "00:00 ad-hoc param x; retry 2; lock shared; on failure run other; on starting run other with x=1
                #1 00:00 starting, action 0 starting run other at node 1.1, job r1, → #1",
        );
    }

    /// The definition outlives the first attempt, so the run is retried and can be run again in both ways.
    #[test]
    fn ad_hoc_run_is_retried_and_run_again() {
        play(
            "00:00 ad-hoc retry 2
                #1 00:00 starting, job r1, → #1
            00:01 ended #1 no
                #1 00:00 failure: exit code 1, #2 00:00 attempt 2 scheduled
            00:02 wake #2
                #2 00:00 attempt 2 starting
            00:03 ended #2 no
                #2 00:00 attempt 2 failure: exit code 1
            00:04 rerun #2
                #3 00:00 starting, → #3
            00:05 ended #3 yes
                #3 00:00 success
            00:06 rerun #2 current
                #4 00:00 starting, → #4",
        );
    }

    #[test]
    fn ad_hoc_run_at_a_later_time_is_scheduled() {
        play(
            "00:00 ad-hoc overlap allow with at=00:05
                #1 00:05 scheduled, job r1, → #1
            00:05 wake #1
                #1 00:05 starting",
        );
    }

    #[test]
    fn ad_hoc_run_with_invalid_definition_or_args_stores_nothing() {
        let bench = play(
            "00:00 ad-hoc @every 10m
                ! an ad hoc run cannot have `schedule`
            00:00 ad-hoc paused
                ! an ad hoc run cannot have `paused`
            00:00 ad-hoc param x
                ! the param `x` needs a value
            00:00 ad-hoc overlap allow with x=1
                ! there is no param `x` (the job has no params)
            00:00 ad-hoc lock #cronhold/x
                ! the lock of `adhoc/019b8b74180078b4a8326a54677e6c1e` cannot be named `#cronhold/x`: names that begin with `#cronhold/` are reserved",
        );
        assert!(bench.records.is_empty());
    }

    fn ad_hoc(id: RunId) -> Command {
        let job = Arc::new(Job::new(Program::Noop { duration: cronhold_schedule::Span::ZERO }));
        Command::RunAdHoc { job, args: BTreeMap::new(), id, at: None, stop: None }
    }

    #[test]
    fn ad_hoc_command_with_the_same_id_creates_one_run() {
        let mut bench = DecisionBench::new();
        let anna = || Actor::Operator("anna".to_owned());
        let id = RunId::from_key(START, "a key");
        assert_eq!(bench.line(anna(), &ad_hoc(id)), "#1 00:00 starting, job r1, → #1");
        assert_eq!(bench.line(anna(), &ad_hoc(id)), "→ #1");
    }

    /// Otherwise a schedule could be added, and the job would be deleted with it.
    #[test]
    fn job_of_an_ad_hoc_run_cannot_be_changed() {
        let mut bench = DecisionBench::new();
        let id = JobId::of_ad_hoc_run(RunId::from_key(START, "a key"));
        let job = Arc::new(Job::new(Program::Noop { duration: cronhold_schedule::Span::ZERO }));
        let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
        let put = Command::PutJob { id: id.clone(), job, source, uid, provided };
        let refused = bench.line(Actor::JobFiles, &put);
        assert_eq!(refused, format!("! the job `{id}` belongs to an ad hoc run and cannot be created or changed"));
    }
}
