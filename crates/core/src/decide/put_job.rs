//! Creates or changes a job. Schedules that it keeps go on from their cursors, new ones begin now, and those that are
//! gone leave nothing that could start.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use super::retire::RetiringSchedules;
use super::timetable::Timetable;
use super::{pause, rename, resume};
use crate::command::Precondition;
use crate::decision::{CommandReply, DecidedUnit, Effect, Rejection};
use crate::ids::{JobId, JobUid};
use crate::job::Job;
use crate::record::{Cursor, JobRecord, JobSource, JobState, LockName, Record, RecordKey, RecordKind, ScheduleId};
use crate::run::Reason;
use crate::task::{Channel, RunChannels, TaskAlias};
use crate::view::{DecisionView, Halt, RecordOversize};

/// The reason of a pause that comes from the job's definition.
const IN_DEFINITION: &str = "in the job's definition";

/// Creates the job, or replaces its definition.
pub(super) fn decide(
    view: &DecisionView<'_>,
    id: &JobId,
    job: &Arc<Job>,
    source: &JobSource,
    uid: JobUid,
    provided: Precondition,
) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Job, RecordKind::Cursor, RecordKind::Backlog]);
    if id.is_ad_hoc() {
        return Err(Rejection::AdHocJob(id.clone()).into());
    }
    let mut draft = UnitDraft::new(view);
    let (old, mut state) = (view.job(id), draft.job_state(id));
    view.require_loaded()?;
    let is_unreadable = view.is_unreadable(&RecordKey::Job(id.clone()));
    check(id, old.as_deref(), is_unreadable, provided)?;
    rename::check_settled(&state)?;
    let zone: Arc<str> = view.world.zone.name().into();
    if let Some(old) = &old {
        if !old.source.is_open_to(source) {
            return Err(Rejection::OtherSource { job: id.clone(), source_of_job: old.source.clone() }.into());
        }
        if old.job == *job && old.zone == zone {
            return Ok(DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() });
        }
    }
    let uid = old.as_ref().map_or(uid, |old| old.uid);
    // A job keeps the source that created it.
    let source = old.as_ref().map_or(source, |old| &old.source);
    let mut new = JobRecord::new(id.clone(), uid, Arc::clone(job), zone, source.clone());
    new.revision = old.as_ref().map_or(1, |old| old.revision.wrapping_add(1));
    check_lock(id, job)?;
    check_tasks(view, id, job)?;
    let tables = tables(view, &new)?;

    let before = state.clone();
    state.removed = None;
    if let Some(old) = &old {
        let counts = |id: &ScheduleId| new.schedule(id).is_some_and(|schedule| job.enables(schedule));
        let leaving = old.schedules().map(|(schedule, _)| schedule).filter(|schedule| !counts(schedule));
        RetiringSchedules::new(&draft, old, leaving).retire(&mut draft, &mut state, &Reason::ScheduleRemoved)?;
    }
    for table in tables.iter().filter(|table| job.enables(table.schedule)) {
        // The schedules of a job that cannot be read are not known, but those that it keeps have a cursor.
        let had_schedules = old.is_some() || is_unreadable;
        let cursor = if had_schedules { view.cursor(id, table.id) } else { None };
        let since = state.floor.map_or(view.stamp.at, |floor| floor.max(view.stamp.at));
        draft.put_cursor(match cursor {
            Some(cursor) => go_on(table, (*cursor).clone(), old.as_deref(), view),
            None => table.begin(since, view.world),
        });
    }
    set_pause(view, &mut state, old.as_ref().is_some_and(|old| old.job.paused), job.paused);
    if old.is_some() || is_unreadable {
        // The new definition may not have the conditions that waiting runs wait for.
        resume::wake_all(&mut draft, &state);
    }
    if let Some(old) = &old {
        follow_batching(&mut draft, old, job, &state);
    }
    if state != before {
        draft.put_state(state);
    }
    drop(tables);
    let record = Record::Job(Arc::new(new));
    check_size(view, id, &record)?;
    draft.put(record);
    draft.finish(CommandReply::Done)
}

/// Rejects a definition that the store cannot keep.
fn check_size(view: &DecisionView<'_>, id: &JobId, record: &Record) -> Result<(), Rejection> {
    match view.oversize(record) {
        Some(RecordOversize { size, limit }) => Err(Rejection::JobTooLarge { job: id.clone(), size, limit }),
        None => Ok(()),
    }
}

/// The new definition may let pending triggers become runs. Without a policy, and without pending triggers, nothing is
/// kept about triggers.
fn follow_batching(draft: &mut UnitDraft<'_>, old: &JobRecord, job: &Job, state: &JobState) {
    let key = RecordKey::Triggers(old.id.clone());
    if state.has_triggers {
        draft.emit(Effect::PlanBatch { job: old.id.clone(), at: draft.at().into() });
    } else if old.job.batching_policy().is_some()
        && job.batching_policy().is_none()
        && draft.view.stored(&key).is_some()
    {
        draft.delete(key);
    }
}

/// Checks the precondition of a command that changes a job. A job that cannot be read exists, and its revision is unknown.
pub(super) fn check(
    id: &JobId,
    old: Option<&JobRecord>,
    is_unreadable: bool,
    provided: Precondition,
) -> Result<(), Rejection> {
    if is_unreadable {
        return match provided {
            Precondition::Any | Precondition::There => Ok(()),
            Precondition::New => Err(Rejection::JobThere(id.clone())),
            Precondition::As { .. } => Err(Rejection::JobChanged { job: id.clone(), revision: 0 }),
        };
    }
    match (provided, old) {
        (Precondition::Any, _) | (Precondition::New, None) | (Precondition::There, Some(_)) => Ok(()),
        (Precondition::New, Some(_)) => Err(Rejection::JobThere(id.clone())),
        (Precondition::There | Precondition::As { .. }, None) => Err(Rejection::NoJob(id.clone())),
        (Precondition::As { uid, revision }, Some(old)) if old.uid == uid && old.revision == revision => Ok(()),
        (Precondition::As { .. }, Some(old)) => Err(Rejection::JobChanged { job: id.clone(), revision: old.revision }),
    }
}

/// Checks that the name of the job's lock is valid and not reserved.
pub(super) fn check_lock(id: &JobId, job: &Job) -> Result<(), Rejection> {
    match LockName::of(id, &job.lock) {
        Some(lock) if LockName::parse(lock.as_str()).is_err() => {
            Err(Rejection::Lock { job: id.clone(), length: lock.as_str().len() })
        }
        Some(lock) if lock.is_reserved() => Err(Rejection::ReservedLock { job: id.clone(), lock }),
        _ => Ok(()),
    }
}

/// Checks that the store keeps tasks if the job needs them, and that a task can be named after it.
pub(super) fn check_tasks(view: &DecisionView<'_>, id: &JobId, job: &Job) -> Result<(), Rejection> {
    let needs = |job: &Job| job.features().into_iter().find(|feature| feature.needs_tasks());
    match needs(job).filter(|_| !view.world.has_tasks) {
        Some(feature) => Err(Rejection::NeedsTasks { job: id.clone(), feature }),
        None if !job.triggers.is_empty() && TaskAlias::of_trigger(id).is_none() => {
            Err(Rejection::TriggerName(id.clone()))
        }
        None => check_channels(id, job),
    }
}

/// Checks that no message about the runs of a job starts the job.
fn check_channels(id: &JobId, job: &Job) -> Result<(), Rejection> {
    let is_own = |text: &str| Channel::parse(text).is_ok_and(|channel| RunChannels::is_about(&channel, id));
    match job.triggers.iter().find(|trigger| is_own(&trigger.channel)) {
        Some(trigger) => Err(Rejection::TriggersItself { job: id.clone(), channel: trigger.channel.clone() }),
        None => Ok(()),
    }
}

/// Compiles all schedules of the job, disabled ones too: each must be valid.
fn tables<'a>(view: &DecisionView<'_>, job: &'a JobRecord) -> Result<Vec<Timetable<'a>>, Rejection> {
    let mut seen = BTreeSet::new();
    let compile = |(id, schedule): (&'a ScheduleId, &'a crate::job::JobSchedule)| {
        // An id that a store could not read back must not be written.
        if let Err(error) = ScheduleId::parse(id.as_str()) {
            let message = error.to_string();
            return Err(Rejection::Schedule { job: job.id.clone(), key: "name", message });
        }
        if !seen.insert(id) {
            return Err(Rejection::SameSchedule { job: job.id.clone(), schedule: ScheduleId::clone(id) });
        }
        Timetable::new(job, id, schedule, view.world)
    };
    job.schedules().map(compile).collect()
}

/// The cursor of a schedule that existed before. A schedule with a name may have another definition now.
fn go_on(table: &Timetable<'_>, cursor: Cursor, old: Option<&JobRecord>, view: &DecisionView<'_>) -> Cursor {
    let now: Instant = view.stamp.at;
    let mut fresh = table.refresh(cursor, now, view.world);
    let was = old.and_then(|old| Some((&old.zone, old.schedule(table.id)?)));
    let is_other = was.is_none_or(|(zone, was)| *zone != table.job.zone || was.spec != table.schedule.spec);
    if is_other {
        fresh.since = Timetable::counts_since(&fresh, now);
    }
    fresh
}

/// Pauses or resumes the job if `paused` has changed in its definition. A definition whose `paused` has not changed
/// leaves a pause by hand as it is.
fn set_pause(view: &DecisionView<'_>, state: &mut JobState, was: bool, is: bool) {
    let stamp = view.stamp;
    if is && !was && !state.pauses.is_paused() {
        pause::begin(&mut state.pauses, stamp.at, &stamp.actor, IN_DEFINITION, None);
    }
    if was && !is && state.pauses.is_paused() {
        resume::end(&mut state.pauses, stamp.at);
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;
    use crate::record::Record;

    #[test]
    fn put_creates_and_changes_schedules() {
        play(
            "
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 put j @every 10m
                unchanged
            00:02 put j @every 10m; description nightly
                job r2
            00:03 put j @every 10m; description nightly; @every 15m
                next 00:15, job r3
            00:04 put j @every 15m
                gone, job r4
            00:05 put j @every 15m; jitter 5m
                next 00:15 (00:17:40.446), job r5
            00:06 put j @every 15m; disabled
                gone, job r6
            ",
        );
    }

    #[test]
    fn put_rejects_invalid_schedules_and_locks() {
        play(
            "
            00:00 put j a: @every 10m; a: @every 20m
                ! two schedules of `j` have the same id `a`
            00:00 put j CRON_TZ=Europe/Berln 0 0 * * *
                ! the schedule of `j` cannot be used: `timezone`: there is no time zone `Europe/Berln` (did you mean `Europe/Berlin`?)
            00:00 put j lock #cronhold/loader/
                ! the lock of `j` cannot be named `#cronhold/loader/`: names that begin with `#cronhold/` are reserved
            00:00 put j lock #cronhold
                job r1
            ",
        );
    }

    /// A precondition protects against accidental changes. A job that was removed and created again has another uid.
    #[test]
    fn put_with_unmet_precondition_is_rejected() {
        play(
            "
            00:00 change j @every 10m
                ! there is no job `j`
            00:00 revise 1 j @every 10m
                ! there is no job `j`
            00:00 add j @every 10m
                next 00:10, job r1
            00:01 add j @every 10m
                ! the job `j` already exists
            00:02 change j @every 10m; description nightly
                job r2
            00:03 revise 1 j @every 10m
                ! the job `j` has changed since it was read; its current revision is 2
            00:03 revise 2 j @every 10m
                job r3
            00:03 revise 3 j @every 10m
                unchanged
            00:04 revise another j @every 10m; description weekly
                ! the job `j` has changed since it was read; its current revision is 3
            00:05 load k
                job r1
            00:06 add k
                ! the job `k` already exists
            00:06 change k
                ! the job `k` comes from a job file
            ",
        );
    }

    /// Commands, the API and foreign programs may change each other's jobs, which keep their source. Jobs of a job file
    /// change only through their file.
    #[test]
    fn source_of_a_job_decides_who_may_change_it() {
        let bench = play(
            "
            00:00 put a
                job r1
            00:01 foreign a description theirs
                job r2
            00:02 foreign b
                job r1
            00:03 put b description ours
                job r2
            00:04 load b
                ! the job `b` was created by another program that shares the store
            00:05 load c
                job r1
            00:06 foreign c description theirs
                ! the job `c` comes from a job file
            00:07 withdraw c
                ! the job `c` comes from a job file
            ",
        );
        let sources = bench.records.values().filter_map(|stored| match &stored.record {
            Record::Job(job) => Some(format!("{} {}", job.id, job.source)),
            _ => None,
        });
        assert_eq!(sources.collect::<Vec<_>>(), ["a api", "b foreign", "c directory:"]);
    }

    /// Only when its runs are stopped has changed.
    #[test]
    fn change_of_only_the_stop_time_is_a_change() {
        play(
            "
            00:00 put j a: @every 10m; stop_after 5m
                a next 00:10, job r1
            00:01 put j a: @every 10m; stop_after 5m
                unchanged
            00:02 put j a: @every 10m; stop_after 6m
                job r2
            ",
        );
    }

    /// A disabled job is like one whose schedules are all disabled.
    #[test]
    fn disabled_job_has_no_occurrences() {
        play(
            "
            00:00 put j a: @every 10m; b: with 5m interval; overlap allow
                a next 00:10, b next 00:05, job r1
            00:05 due
                #1 00:05 starting, b follows its run
            00:06 put j a: @every 10m; b: with 5m interval; overlap allow; off
                a gone, b gone, job r2, (wake #1 00:06)
            00:07 ended #1 yes
                #1 00:05 success
            00:08 run j
                #2 00:08 starting, → #2
            00:35 put j a: @every 10m; b: with 5m interval; overlap allow
                a next 00:40, b next 00:40, job r3, (wake #2 00:35)
            ",
        );
    }

    /// A schedule that is added or enabled again starts now: occurrences in between are not caught up.
    #[test]
    fn reenabled_schedule_begins_now() {
        play(
            "
            00:00 put j a: @every 10m
                a next 00:10, job r1
            00:10 due
                #1 00:10 starting, a next 00:20
            00:11 ended #1 yes
                #1 00:10 success
            00:15 put j a: @every 10m; disabled
                a gone, job r2
            00:35 due
            00:35 put j a: @every 10m
                a next 00:40, job r3
            00:36 put j
                a gone, job r4
            00:55 put j a: @every 10m
                a next 01:00, job r5
            ",
        );
    }

    /// Due and backlogged occurrences of a removed schedule get an outcome too.
    #[test]
    fn removed_schedule_records_its_due_occurrences() {
        play(
            "
            00:00 put j a: @every 10m; catch_up all 3h
                a next 00:10, job r1
            00:35 due
                a next 00:40, backlog 00:10–00:30 of 3
            00:55 put j a: @every 10m; disabled; catch_up all 3h
                #1 00:10–00:30 ×3 skipped: schedule removed, #2 00:40–00:50 ×2 skipped: schedule removed, a gone, backlog gone, job r2
            ",
        );
    }

    #[test]
    fn paused_in_the_definition_pauses_and_resumes() {
        play(
            "
            00:00 put j @every 10m; paused
                next 00:10, job paused: in the job's definition, job r1
            00:01 resume j
                job resumed, (plan 00:10)
            00:02 put j @every 10m; paused; description by hand it stays as it is
                job r2
            00:03 pause j
                job paused
            00:04 put j @every 10m; paused; overlap allow
                job r3
            00:05 put j @every 10m
                job resumed, job r4
            ",
        );
    }

    /// All waiting runs are checked at once, not only the first, because the change may end what they wait for.
    #[test]
    fn put_wakes_waiting_runs() {
        play(
            "
            02:30 put j overlap allow; needs window 01:00 02:00
                job r1
            02:31 run j
                #1 02:31 waiting, → #1
            02:32 run j
                #2 02:32 waiting, → #2
            02:33 put j overlap allow
                job r2, (wake #1 02:33), (wake #2 02:33)
            02:33 wake #2
                #2 02:32 starting
            02:33 wake #1
                #1 02:31 starting
            ",
        );
    }

    #[test]
    fn after_previous_schedule_keeps_counting_after_a_change() {
        play(
            "
            00:00 put j a: with 1h interval
                a next 01:00, job r1
            00:10 put j a: with 10m interval
                a next 00:20, job r2
            00:20 due
                #1 00:20 starting, a follows its run
            00:21 put j a: with 30m interval
                job r3, (wake #1 00:21)
            00:25 ended #1 yes
                #1 00:20 success, a next 00:55
            00:26 put j a: @every 20m
                a next 00:40, job r4
            00:27 put j a: with 5m interval
                a next 00:32, job r5
            ",
        );
    }
}
