//! Runs a finished run again, with the program that it had or resolved again from the job's current definition. The new
//! run refers to the old one and has the same nominal time, but no schedule.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::UnitDraft;
use super::late;
use super::placement;
use super::rename;
use super::run::{close, once, release};
use super::run_lifecycle::{self, NewRun};
use crate::args::Args;
use crate::decision::{DecidedUnit, Rejection};
use crate::ids::RunId;
use crate::policy::lease::STALE_AFTER;
use crate::record::{ExecutionPolicy, JobState, Run, Transition};
use crate::run::{self, Cause, Operation, State};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, of: RunId, id: RunId, current: bool) -> Result<DecidedUnit, Halt> {
    once(view, id, || make(view, of, id, current))
}

fn make(view: &DecisionView<'_>, of: RunId, id: RunId, current: bool) -> Result<DecidedUnit, Halt> {
    let old = run_lifecycle::find_run(view, of)?;
    run::next(old.state, Cause::By(Operation::Rerun))?;
    let mut draft = UnitDraft::new(view);
    let (job, mut state) = (view.job(&old.job), draft.job_state(&old.job));
    view.require_loaded()?;
    rename::check_settled(&state)?;
    // A run whose program could not be resolved has nothing to repeat.
    if current || old.work.is_none() {
        let job = job.ok_or_else(|| Rejection::NoJob(old.job.clone()))?;
        let given: BTreeMap<String, String> =
            old.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let args = Args::bind(&job.job.params, &given, &BTreeMap::new())?;
        let (target, actor) = (placement::target_of_rerun(view, &job, &old)?, view.stamp.actor.clone());
        let new_run = NewRun { id, job: &job, schedule: None, nominal: old.nominal, args, target, actor };
        let mut run = run_lifecycle::create_run(&mut draft, &mut state, new_run)?;
        run.rerun_of = Some(of);
        run.triggers = Arc::clone(&old.triggers);
        return release(draft, run, state, &job);
    }
    let job = job.filter(|job| job.uid == old.uid);
    let mut run = copy(view, &old, id, &mut state);
    if let Some(job) = &job {
        run.late_at = late::late_at(&job.job, run.nominal, view.stamp.at);
        run.target = placement::target_of_rerun(view, job, &old)?;
    }
    match job {
        Some(job) => release(draft, run, state, &job),
        // The job is gone and its policies with it, but other jobs may use the same lock.
        None => {
            placement::reject_elsewhere(view, &run, None)?;
            run_lifecycle::reject_if_locked(&draft, &run)?;
            if state.active.len() >= JobState::ACTIVE_MAX {
                return Err(Rejection::TooManyActive(run.job).into());
            }
            let actor = view.stamp.actor.clone();
            let run = run_lifecycle::start_run(&mut draft, run, &mut state, None, Cause::Ready, actor)?;
            close(draft, run, state)
        }
    }
}

/// A copy of a finished run. The stop time belongs to the schedule and is not copied. A run that was created while the
/// store had one node may need a lease now.
fn copy(view: &DecisionView<'_>, old: &Run, id: RunId, state: &mut JobState) -> Run {
    let actor = view.stamp.actor.clone();
    let lease = old.terms.lease.or(old.lock.as_ref().map(|_| STALE_AFTER)).filter(|_| view.world.is_shared);
    Run {
        args: old.args.clone(),
        rerun_of: Some(old.id),
        target: old.target,
        work: old.work.clone(),
        triggers: Arc::clone(&old.triggers),
        lock: old.lock.clone(),
        terms: ExecutionPolicy { stop_at: None, lease, ..old.terms.clone() },
        log: vec![Transition::entered(view.stamp.at, State::Waiting, actor)],
        ..Run::blank(id, state.take_number(), old.job.clone(), old.uid, old.nominal)
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::{job_id, play};
    use crate::record::{CommandLine, ResolvedProgram, Run};

    fn shell(run: &Run) -> &str {
        match &run.work {
            Some(ResolvedProgram::Process(process)) => match &process.command {
                CommandLine::Shell { text, shell: None } => text,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rerun_repeats_the_old_program_and_anew_resolves_the_current_one() {
        let bench = play(
            "00:00 put j @every 10m; args x=1; stop_after 5m; param x; shell old {{ x }}; overlap skip
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:10 rerun #1
                ! the run is not finished yet (starting)
            00:11 ended #1 no
                #1 00:10 failure: exit code 1
            00:30 put j @every 10m; args x=1; param x; shell new {{ x }}; overlap skip; timeout 1m
                job r2
            00:31 rerun #1
                #2 00:10 starting, → #2
            00:31 rerun #1 current
                #3 00:10 skipped: overlap, → #3
            00:32 ended #2 yes
                #2 00:10 success
            00:32 rerun #3
                #4 00:10 starting, → #4",
        );
        let [first, was, is] = [1, 2, 4].map(|number| bench.run(None, number));
        assert_eq!((shell(&was), was.rerun_of), ("old 1", Some(first.id)));
        assert_eq!((shell(&is), is.terms.timeout.is_some()), ("new 1", true));
        // The stop time of the schedule has passed; it does not apply to a requested rerun.
        assert!(first.terms.stop_at.is_some());
        assert_eq!((was.terms.stop_at, &was.schedule, was.attempt), (None, &None, 1));
    }

    #[test]
    fn rerun_anew_rejects_args_that_the_job_no_longer_has() {
        play(
            "00:00 put j param x; overlap allow; retry 2
                job r1
            00:01 run j x=1
                #1 00:01 starting, → #1
            00:01 ended #1 no
                #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
            00:02 put j param y; overlap allow; retry 2
                job r2, (wake #2 00:02)
            00:02 rerun #1 current
                ! there is no param `x` (did you mean `y`?); the param `y` needs a value
            00:02 rerun #1
                #3 00:01 starting, → #3
            00:02 ended #3 no
                #3 00:01 failure: exit code 1, #4 00:01 attempt 2 scheduled",
        );
    }

    #[test]
    fn rerun_of_a_removed_job_repeats_the_run_and_respects_its_lock() {
        let mut bench = play(
            "00:00 put j lock shared
                job r1
            00:00 put k lock shared
                job r1
            00:00 put l lock shared
                job r1
            00:01 run j
                j#1 00:01 starting, → #1
            00:01 ended j#1 yes
                j#1 00:01 success
            00:02 remove j
                job gone
            00:02 rerun j#1 current
                ! there is no job `j`
            00:02 rerun j#1
                j#2 00:01 starting, → #2
            00:03 ended j#2 no
                j#2 00:01 failure: exit code 1
            00:04 run k
                k#1 00:04 starting, → #1",
        );
        let holder = bench.run(Some(&job_id("k")), 1).id;
        assert_eq!(bench.happens("rerun j#1"), [format!("! the lock `shared` is held by run {holder}")]);
    }

    #[test]
    fn rerun_with_the_same_id_creates_one_run() {
        let bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 ended #1 yes
                #1 00:01 success
            00:02 rerun #1
                #2 00:01 starting, → #2
            00:02 rerun #1
                → #2",
        );
        assert_eq!(bench.runs().count(), 2);
    }
}
