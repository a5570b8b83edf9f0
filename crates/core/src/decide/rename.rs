//! Renames a job. One unit gives the new name everything that decisions depend on: the definition, the numbers, the
//! pauses, the cursors, the backlogs, the pending triggers, the outcomes of runs without args, and all runs that have not
//! started. The finished runs and the other outcomes follow in units of limited size (`move_history.rs`); until then,
//! decisions read outcomes that are not there yet under the old name.

use std::sync::Arc;

use super::draft::UnitDraft;
use super::timetable::Timetable;
use super::{put_job, resume};
use crate::command::Precondition;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::{JobId, RunId};
use crate::record::{
    Backlog, Cursor, JobRecord, JobSource, JobState, LockName, Record, RecordKey, RenameProgress, Run, TriggerSet,
};
use crate::view::{DecisionView, Halt};

/// The most runs that may wait to start while their job is renamed. This bounds the unit.
pub const RENAMED_PENDING_MAX: usize = 500;

/// Renames the job. `scheduled` lists its runs with a later time as the store had them when the job had allocated the
/// numbers before `next_number`: no set names these runs.
pub(super) fn decide(
    view: &DecisionView<'_>,
    (from, to): (&JobId, &JobId),
    scheduled: &[RunId],
    next_number: u64,
) -> Result<DecidedUnit, Halt> {
    if to.is_ad_hoc() || from.is_ad_hoc() {
        return Err(Rejection::AdHocJob(if to.is_ad_hoc() { to.clone() } else { from.clone() }).into());
    }
    let mut draft = UnitDraft::new(view);
    let (old, there) = (view.job(from), view.job(to));
    let (old_state, earlier) = (draft.job_state(from), draft.job_state(to));
    view.prefetch([from, to].map(|job| RecordKey::Triggers(job.clone())));
    view.require_loaded()?;
    let old = old.ok_or_else(|| Rejection::NoJob(from.clone()))?;
    check_names(&old, there.as_deref(), &old_state, &earlier)?;
    if old_state.next_number != next_number {
        return Err(Rejection::RunsCreated(from.clone()).into());
    }
    put_job::check_lock(to, &old.job)?;
    let pending = pending_runs(view, &old_state, scheduled)?;

    let mut new = JobRecord::new(to.clone(), old.uid, Arc::clone(&old.job), Arc::clone(&old.zone), JobSource::Api);
    new.revision = old.revision.wrapping_add(1);
    move_schedules(&mut draft, &old, &new)?;
    for run in pending {
        draft.put_run(renamed(&run, &old, to));
    }
    let mut state = JobState {
        job: to.clone(),
        next_number: old_state.next_number.max(earlier.next_number),
        floor: old_state.floor.max(earlier.floor),
        renaming: Some(RenameProgress::From(from.clone())),
        ..old_state.clone()
    };
    move_triggers(&mut draft, &mut state, from);
    resume::wake_all(&mut draft, &state);
    draft.put_state(state);
    draft.put_state(JobState {
        next_number: old_state.next_number,
        floor: old_state.floor,
        removed: Some(view.stamp.at),
        renaming: Some(RenameProgress::To(to.clone())),
        ..JobState::new(from.clone())
    });
    draft.delete(RecordKey::Job(from.clone()));
    draft.put(Record::Job(Arc::new(new)));
    draft.finish(CommandReply::Done)
}

/// Checks that the job may have the new name, and that the name is free.
fn check_names(
    old: &JobRecord,
    there: Option<&JobRecord>,
    old_state: &JobState,
    earlier: &JobState,
) -> Result<(), Rejection> {
    if matches!(old.source, JobSource::Directory(_)) {
        return Err(Rejection::RenameOfFile { job: old.id.clone(), source_of_job: old.source.clone() });
    }
    put_job::check(&earlier.job, there, false, Precondition::New)?;
    for state in [old_state, earlier] {
        if state.renaming.is_some() {
            return Err(Rejection::Renaming(state.job.clone()));
        }
    }
    let mut kept = earlier.kept;
    if kept.has_started() || kept.of(crate::run::State::Skipped).is_some_and(|skipped| *skipped > 0) {
        return Err(Rejection::NameHasRuns(earlier.job.clone()));
    }
    Ok(())
}

/// The runs of the job that have not started. A program that runs belongs to its name: its environment, its lock and what
/// other programs know of it.
fn pending_runs(view: &DecisionView<'_>, state: &JobState, scheduled: &[RunId]) -> Result<Vec<Arc<Run>>, Halt> {
    let mut ids: Vec<RunId> = state.queued().chain(state.active.iter().map(|active| active.run)).collect();
    ids.extend(scheduled);
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > RENAMED_PENDING_MAX {
        return Err(Rejection::TooManyPending { job: state.job.clone(), count: ids.len() }.into());
    }
    // All of them are read, so that they are loaded together.
    let runs: Vec<Option<Arc<Run>>> = ids.into_iter().map(|id| view.run(id)).collect();
    view.require_loaded()?;
    let runs: Vec<Arc<Run>> = runs.into_iter().flatten().filter(|run| !run.state.is_finished()).collect();
    let started = runs.iter().filter(|run| run.state.has_program()).count();
    if started > 0 {
        return Err(Rejection::HasActiveRuns { job: state.job.clone(), count: started }.into());
    }
    Ok(runs)
}

/// A run under the new name. Its lock has the name of the job, if the definition does not name it.
fn renamed(run: &Run, old: &JobRecord, to: &JobId) -> Run {
    let lock = if run.lock == LockName::of(&old.id, &old.job.lock) {
        LockName::of(to, &old.job.lock)
    } else {
        run.lock.clone()
    };
    Run { job: to.clone(), lock, ..run.clone() }
}

/// Moves the pending triggers, and what was decided about triggers, to the job of the state.
fn move_triggers(draft: &mut UnitDraft<'_>, state: &mut JobState, from: &JobId) {
    let key = RecordKey::Triggers(from.clone());
    if draft.view.stored(&key).is_some() {
        let set = (*draft.view.triggers(from)).clone();
        draft.put_triggers(TriggerSet { job: state.job.clone(), ..set }, state);
        draft.delete(key);
    }
}

/// Moves the cursors and the backlogs. Times that depend on the name, by `H` or jitter, are computed again.
fn move_schedules(draft: &mut UnitDraft<'_>, old: &JobRecord, new: &JobRecord) -> Result<(), Halt> {
    let view = draft.view;
    for (id, schedule) in new.schedules() {
        if let Some(cursor) = view.cursor(&old.id, id) {
            let moved = Cursor { job: new.id.clone(), ..(*cursor).clone() };
            let fresh = match Timetable::new(new, id, schedule, view.world) {
                Ok(table) => table.refresh(moved, view.stamp.at, view.world),
                Err(error) => {
                    view.require_loaded()?;
                    return Err(error.into());
                }
            };
            draft.put_cursor(fresh);
            draft.delete(RecordKey::Cursor(old.id.clone(), id.clone()));
        }
        if let Some(backlog) = view.backlog(&old.id, id) {
            draft.put(Record::Backlog(Arc::new(Backlog { job: new.id.clone(), ..(*backlog).clone() })));
            draft.delete(RecordKey::Backlog(old.id.clone(), id.clone()));
        }
    }
    Ok(())
}

/// Refuses a command about a job or a run whose history is on its way to another name.
pub(super) fn check_settled(state: &JobState) -> Result<(), Rejection> {
    match &state.renaming {
        Some(RenameProgress::To(_)) => Err(Rejection::Renaming(state.job.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::{DecisionBench, job_id, play};
    use crate::record::{Record, RecordKey};

    /// The jobs of all records, one line for each kind.
    fn names(bench: &DecisionBench) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (key, stored) in &bench.records {
            let text = match (&stored.record, key) {
                (Record::Run(run), _) => format!("run {}#{}", run.job, run.number.0),
                (Record::SkipSpan(span), _) => format!("span {}#{}", span.job, span.number.0),
                (_, RecordKey::Identity(job, args)) => format!("identity {job} {args}"),
                (_, key) => match key.job() {
                    Some(job) => format!("{:?} {job}", key.kind()),
                    None => continue,
                },
            };
            found.push(text);
        }
        found.sort();
        found
    }

    #[test]
    fn rename_keeps_numbers_cursors_pauses_and_pending_runs() {
        let mut bench = play(
            "
            00:00 put a @every 10m; overlap queue
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:11 ended #1 no
                #1 00:10 failure: exit code 1
            00:12 run a at=05:00
                #2 05:00 scheduled, → #2
            00:13 pause a
                job paused
            00:14 rename a b
                #2 05:00 scheduled, gone, next 00:20, job resumed, job paused, job gone, job r2
            00:14 rename a b
                ! there is no job `a`
            00:15 mark #1 success
                ! runs of `a` are being moved to its new name
            00:15 put a
                ! runs of `a` are being moved to its new name
            00:15 rename b c
                ! runs of `b` are being moved to its new name
            00:16 move b #1
                #1 00:10 failure: exit code 1
            00:16 move b
                nothing
            00:17 mark #1 success
                #1 00:10 success: by operator
            00:18 resume b
                job resumed, (plan 00:20)
            00:20 due
                #3 00:20 starting, next 00:30
            ",
        );
        assert_eq!(bench.happens("rename b c"), ["! `b` has 1 active run"]);
        bench.happens("ended b#3 yes");
        assert_eq!(bench.happens("rename b b"), ["! the job `b` already exists"]);
        let left = names(&bench);
        let of_old: Vec<&String> = left.iter().filter(|text| text.contains(" a")).collect();
        assert_eq!(of_old, ["JobState a"], "{left:?}");
        assert!(left.contains(&"run b#2".to_owned()) && left.contains(&"run b#1".to_owned()), "{left:?}");
    }

    /// A run that depends on an outcome sees it whether it has moved or not, and an outcome that is newer is not replaced.
    #[test]
    fn outcomes_are_seen_before_and_after_they_move() {
        let mut bench = play(
            "
            00:00 put a overlap allow; param x
                job r1
            00:00 put after overlap allow; param x; needs after b within=3h
                job r1
            00:01 run a x=1
                a#1 00:01 starting, → #1
            00:02 ended a#1 yes
                a#1 00:01 success
            00:03 run a x=2
                a#2 00:03 starting, → #2
            00:04 ended a#2 yes
                a#2 00:03 success
            00:05 rename a b
                job gone, job r2
            ",
        );
        assert_eq!(bench.happens("run after x=1").len(), 1);
        let run = bench.run(Some(&job_id("after")), 1);
        assert!(run.state.has_program(), "the outcome of `a` counts for `b`");
        bench.happens("run b x=2");
        bench.happens("ended b#3 no");
        bench.happens("move b a#1 a#2 identity");
        bench.happens("move b");
        let text = names(&bench);
        assert!(text.iter().all(|text| !text.starts_with("identity a")), "{text:?}");
        let outcomes = |args: &str| {
            let found = bench.records.values().find_map(|stored| match &stored.record {
                Record::Identity(identity) if identity.job.as_str() == "b" && identity.args.to_string() == args => {
                    Some(identity.outcomes)
                }
                _ => None,
            });
            found.expect("an identity")
        };
        assert!(outcomes("x=1").success.is_some() && outcomes("x=1").failure.is_none());
        assert!(outcomes("x=2").success.is_some() && outcomes("x=2").failure.is_some(), "both are kept");
    }

    #[test]
    fn pending_triggers_follow_the_name_of_their_job() {
        let bench = play(
            "
            00:00 put a batching greedy
                job r1
            00:01 pause a
                job paused
            00:01 emit a x
                pending x until 00:02 (wait: paused), → pending
            00:02 rename a b
                no triggers, pending x until 00:02 (wait: paused), job resumed, job paused, job gone, job r2
            00:03 resume b
                job resumed
            00:03 batch b
                #1 00:03 starting, pending nothing (created run #1 for 1 trigger)
            ",
        );
        assert_eq!(bench.run(Some(&job_id("b")), 1).triggers.len(), 1);
    }

    #[test]
    fn lock_of_a_waiting_run_follows_the_name_of_its_job() {
        let bench = play(
            "
            00:00 put a overlap allow; lock; needs window 02:00 03:00
                job r1
            00:00 put named overlap allow; lock x; needs window 02:00 03:00
                job r1
            00:01 run a
                a#1 00:01 waiting, → #1
            00:01:30 run named
                named#1 00:01:30 waiting, → #1
            00:02 rename a b
                b#1 00:01 waiting, job gone, job r2, (wake #1 00:02)
            00:02 rename named c
                c#1 00:01:30 waiting, job r2, job gone, (wake #1 00:02)
            ",
        );
        let lock = |job: &str| bench.run(Some(&job_id(job)), 1).lock.as_ref().map(|lock| lock.as_str().to_owned());
        assert_eq!([lock("b"), lock("c")], [Some("b".to_owned()), Some("x".to_owned())]);
    }

    #[test]
    fn rename_is_refused_while_the_name_is_not_free() {
        play(
            "
            00:00 put a
                job r1
            00:00 put b overlap allow
                job r1
            00:00 load f
                job r1
            00:01 rename a b
                ! the job `b` already exists
            00:01 rename f g
                ! the job `f` comes from a job file and cannot be renamed by a command
            00:02 run b
                b#1 00:02 starting, → #1
            00:03 ended b#1 yes
                b#1 00:02 success
            00:04 remove b
                job gone
            00:05 rename a b
                ! runs of a removed job `b` are still kept
            ",
        );
    }
}
