//! Creates a run by hand, for now or for a later time. A second command with the same id creates nothing.

use std::collections::BTreeMap;

use cronhold_schedule::Instant;

use super::admission;
use super::draft::UnitDraft;
use super::placement;
use super::run_lifecycle::{self, NewRun};
use crate::args::Args;
use crate::command::StopTime;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::{JobId, RunId};
use crate::record::{JobRecord, JobState, RecordKey, Run};
use crate::run::{Reason, State};
use crate::view::{DecisionView, Halt};

/// When a requested run starts and is stopped.
pub(super) type RequestedTimes = (Option<Instant>, Option<StopTime>);

pub(super) fn decide(
    view: &DecisionView<'_>,
    job: &JobId,
    args: &BTreeMap<String, String>,
    id: RunId,
    times: RequestedTimes,
) -> Result<DecidedUnit, Halt> {
    once(view, id, || make(view, job, (args, &BTreeMap::new()), id, times))
}

/// Creates a run of a job for now. Params that `args` does not name get their values from `inherited`, which may have
/// others too.
pub(super) fn create(
    view: &DecisionView<'_>,
    job: &JobId,
    args: &BTreeMap<String, String>,
    inherited: &BTreeMap<String, String>,
    id: RunId,
) -> Result<DecidedUnit, Halt> {
    once(view, id, || make(view, job, (args, inherited), id, (None, None)))
}

/// Creates a run unless there is one with its id. A repeated command gets the first run as its reply, even if it could
/// not be created any more.
pub(super) fn once(
    view: &DecisionView<'_>,
    id: RunId,
    make: impl FnOnce() -> Result<DecidedUnit, Halt>,
) -> Result<DecidedUnit, Halt> {
    if view.assume_absent_unless_loaded(&RecordKey::Run(id)).is_some()
        && let Some(run) = view.run(id)
    {
        return Ok(existing(&run));
    }
    match make() {
        Err(Halt::Reject(rejection)) => {
            // The rejection may only be due to records that are not loaded yet.
            view.require_loaded()?;
            view.run(id).map(|run| existing(&run)).ok_or(Halt::Reject(rejection))
        }
        made => made,
    }
}

/// The reply to a repeated command: the run that the first one created.
pub(super) fn existing(run: &Run) -> DecidedUnit {
    DecidedUnit { answer: answer(run), ..DecidedUnit::default() }
}

/// Admits a new run, writes it and replies with it.
pub(super) fn release(
    mut draft: UnitDraft<'_>,
    run: Run,
    mut state: JobState,
    job: &JobRecord,
) -> Result<DecidedUnit, Halt> {
    let run = if run.state != State::Waiting {
        run
    } else if run_lifecycle::is_paused(&draft, &run, &state) {
        run_lifecycle::skip_run(&mut draft, run, &mut state, Reason::Paused)?
    } else {
        let admission = admission::admission_of(&draft, &run, &state, job, true);
        run_lifecycle::apply_admission(&mut draft, run, &mut state, job, admission)?
    };
    close(draft, run, state)
}

/// Writes a new run and replies with it.
pub(super) fn close(mut draft: UnitDraft<'_>, run: Run, state: JobState) -> Result<DecidedUnit, Halt> {
    let answer = answer(&run);
    draft.put_run(run);
    draft.put_state(state);
    draft.finish(answer)
}

fn make(
    view: &DecisionView<'_>,
    job: &JobId,
    (args, inherited): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    id: RunId,
    times: RequestedTimes,
) -> Result<DecidedUnit, Halt> {
    let draft = UnitDraft::new(view);
    let (record, state) = (view.job(job), draft.job_state(job));
    view.require_loaded()?;
    let record = record.ok_or_else(|| Rejection::NoJob(job.clone()))?;
    let args = Args::bind(&record.job.params, args, inherited)?;
    make_of(draft, state, &record, args, id, times)
}

/// Creates a run of a job with these args, now or at a later time.
pub(super) fn make_of(
    mut draft: UnitDraft<'_>,
    mut state: JobState,
    record: &JobRecord,
    args: Args,
    id: RunId,
    (at, stop): RequestedTimes,
) -> Result<DecidedUnit, Halt> {
    let view = draft.view;
    let now = view.stamp.at;
    let nominal = at.unwrap_or(now);
    let stop_at = stop.map(|stop| match stop {
        StopTime::At(at) => at,
        StopTime::After(span) => nominal.plus(span),
    });
    if let Some(stop_at) = stop_at.filter(|stop_at| *stop_at <= now.max(nominal)) {
        return Err(Rejection::StopBeforeStart(stop_at).into());
    }
    let (target, actor) = (placement::target_of_request(view, record)?, view.stamp.actor.clone());
    let new_run = NewRun { id, job: record, schedule: None, nominal, args, target, actor };
    let mut run = run_lifecycle::create_run(&mut draft, &mut state, new_run)?;
    run.terms.stop_at = stop_at;
    if run.state == State::Waiting && nominal > now {
        // Its first state is `scheduled`; it has never been `waiting`.
        run.state = State::Scheduled;
        run.due = Some(nominal);
        run.log.iter_mut().for_each(|born| born.state = State::Scheduled);
        return close(draft, run, state);
    }
    release(draft, run, state, record)
}

fn answer(run: &Run) -> CommandReply {
    CommandReply::Run { id: run.id, number: run.number }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::*;
    use crate::command::Command;
    use crate::decide::testing::{DecisionBench, START, play};
    use crate::record::Actor;

    /// The time counts from the nominal time. A run that starts late gets as long as it would have had.
    #[test]
    fn run_is_stopped_at_its_stop_time() {
        let bench = play(
            "00:00 put j overlap queue
                job r1
            00:01 run j stop_after=30m
                #1 00:01 starting, → #1
            00:02 run j stop_at=00:20
                #2 00:02 waiting, → #2
            00:02:30 run j stop_at=00:02
                ! a run cannot be stopped at 2026-01-05T00:02:00Z, which is not after its start
            00:02:40 run j at=01:00 stop_at=00:50
                ! a run cannot be stopped at 2026-01-05T00:50:00Z, which is not after its start
            00:03 launched #1
                #1 00:01 running
            00:30 wake #1
                (wake #1 00:31), unchanged
            00:31 wake #1
                #1 00:01 stopping (stopped)
            00:31 ended #1 no
                #1 00:01 failure: stopped
            00:31 wake #2
                #2 00:02 starting
            ",
        );
        let late = bench.run(None, 2).terms.stop_at;
        assert_eq!(late, Some(START.plus(Span::from_secs((31 + 18) * 60))));
    }

    #[test]
    fn run_starts_now_or_at_a_later_time() {
        play(
            "00:00 put j param x; overlap allow
                job r1
            00:01 run j x=1
                #1 00:01 starting, → #1
            00:02 run j
                ! the param `x` needs a value
            00:02 run j x=1 y=2
                ! there is no param `y` (did you mean `x`?)
            00:02 run k
                ! there is no job `k`
            00:03 run j x=2 at=00:05
                #2 00:05 scheduled, → #2
            00:04 run j x=3 at=00:01
                #3 00:01 starting, → #3
            00:04 wake #2
                (wake #2 00:05), unchanged
            00:05 wake #2
                #2 00:05 starting",
        );
    }

    #[test]
    fn manual_run_obeys_overlap() {
        play(
            "00:00 put j overlap skip
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 run j
                #2 00:02 skipped: overlap, → #2
            00:03 run j at=00:04
                #3 00:04 scheduled, → #3
            00:04 wake #3
                #3 00:04 skipped: overlap",
        );
    }

    #[test]
    fn manual_run_ignores_a_pause() {
        let mut bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 pause j
                job paused
            00:02 run j
                #1 00:02 starting, → #1
            00:03 run j at=00:04
                #2 00:04 scheduled, → #2
            00:04 wake #2
                #2 00:04 starting",
        );
        let command = ask(&bench, "by a message", None);
        assert_eq!(bench.line(Actor::Schedule, &command), "#3 00:04 skipped: paused, → #3");
    }

    #[test]
    fn unresolvable_program_ends_the_run_in_error() {
        play(
            "00:00 put j param x; shell echo {{ date(x) }}; lock
                job r1
            00:01 run j x=today
                #1 00:01 error: not bound: `today` is not a date (write year-month-day, such as 2026-03-29), → #1
            00:02 run j x=tomorrow at=00:05
                #2 00:05 error: not bound: `tomorrow` is not a date (write year-month-day, such as 2026-03-29), → #2",
        );
    }

    #[test]
    fn run_with_the_same_id_creates_one_run() {
        let mut bench = play(
            "00:00 put j overlap allow
                job r1",
        );
        let anna = Actor::Operator("anna".to_owned());
        let command = ask(&bench, "key", None);
        assert_eq!(bench.line(anna.clone(), &command), "#1 00:00 starting, → #1");
        let first = bench.run(None, 1);
        // The same holds later, with other args, for another time, and after the job was removed.
        assert_eq!(bench.line(anna.clone(), &command), "→ #1");
        let later = ask(&bench, "key", Some(START.plus(Span::from_secs(60))));
        assert_eq!(bench.line(anna.clone(), &later), "→ #1");
        bench.happens("remove j");
        assert_eq!(bench.line(anna, &command), "→ #1");
        assert_eq!((bench.run(None, 1), bench.runs().count()), (first, 1));
    }

    fn ask(bench: &DecisionBench, key: &str, at: Option<Instant>) -> Command {
        let id = RunId::from_key(START, key);
        assert!(bench.now >= START);
        Command::Run { job: JobId::parse("j").expect("an id"), args: BTreeMap::new(), id, at, stop: None }
    }
}
