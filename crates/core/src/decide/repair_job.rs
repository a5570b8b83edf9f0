//! Repairs a job whose records contradict each other: entries of its sets without such a run, cursors that are missing,
//! belong to another revision, or follow a run that has ended or is gone. Units never leave such records, but a store
//! that loses some of its last writes does. Runs that are missing in their pools are added. Without a repair, the job
//! would not start any more. Cursors that a node with older zone data has moved to another time than this node's data
//! gives are computed again, too, and the end of a timed pause is recorded if no node has done so.

use super::draft::UnitDraft;
use super::resume;
use super::timetable::Timetable;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::JobId;
use crate::record::{Cursor, JobRecord, JobState};
use crate::run::State;
use crate::view::{DecisionView, Halt};

/// Repairs the records of a job. Writes nothing if they agree.
pub(super) fn decide(view: &DecisionView<'_>, id: &JobId) -> Result<DecidedUnit, Halt> {
    let (job, state) = (view.job(id), view.job_state(id));
    view.require_loaded()?;
    let mut draft = UnitDraft::new(view);
    let mut repaired = repaired_sets(view, &state);
    // No node was there when the pause ended, and nothing was due since.
    resume::end_if_expired(&mut repaired.pauses, view.stamp.at);
    let mut is_changed = repaired != *state;
    if let Some(job) = &job {
        is_changed |= repair_cursors(&mut draft, job, &state);
    }
    is_changed |= repair_pools(&mut draft, &repaired);
    if repaired != *state {
        draft.put_state(repaired);
    }
    draft.finish(if is_changed { CommandReply::Done } else { CommandReply::Unchanged })
}

/// The sets with only those entries that have their run.
fn repaired_sets(view: &DecisionView<'_>, state: &JobState) -> JobState {
    let mut repaired = state.clone();
    repaired.active.retain(|active| view.run(active.run).is_some_and(|run| run.counts_as_active()));
    repaired.queue.retain(|queued| view.run(queued.run).is_some_and(|run| run.state == State::Waiting));
    repaired
}

/// Adds active runs to pools that they have joined and that do not have them. Returns whether there were any.
fn repair_pools(draft: &mut UnitDraft<'_>, state: &JobState) -> bool {
    let view = draft.view;
    let mut is_changed = false;
    for run in state.active.iter().filter_map(|active| view.run(active.run)).filter(|run| run.state.has_program()) {
        for name in &run.pools {
            let mut pool = draft.pool(name);
            if !pool.contains(run.id) {
                pool.join(&run);
                draft.put_pool(pool);
                is_changed = true;
            }
        }
    }
    is_changed
}

/// Writes the cursors that are missing or do not belong to the job as it is. Returns whether there were any. A schedule
/// that does not compile on this node is left to others.
fn repair_cursors(draft: &mut UnitDraft<'_>, job: &JobRecord, state: &JobState) -> bool {
    let view = draft.view;
    let now = view.stamp.at;
    let mut is_changed = false;
    for (schedule, definition) in job.schedules().filter(|(_, definition)| job.job.enables(definition)) {
        let cursor = view.cursor(&job.id, schedule);
        let fits = |cursor: &Cursor| cursor.revision == job.revision && !follows_no_run(view, cursor);
        let is_older = |cursor: &Cursor| !cursor.zones.is_empty() && *cursor.zones < *view.world.zones_version;
        if cursor.as_ref().is_some_and(|cursor| fits(cursor) && !is_older(cursor)) {
            continue;
        }
        let Ok(table) = Timetable::new(job, schedule, definition, view.world) else { continue };
        if cursor.as_ref().is_some_and(|cursor| fits(cursor) && !table.is_outdated(cursor, view.world)) {
            continue;
        }
        let fresh = match cursor {
            Some(cursor) => {
                let follows = cursor.follows.filter(|_| !follows_no_run(view, &cursor));
                table.refresh(Cursor { follows, ..(*cursor).clone() }, now, view.world)
            }
            None => table.begin(state.floor.map_or(now, |floor| floor.max(now)), view.world),
        };
        is_changed = true;
        draft.put_cursor(fresh);
    }
    is_changed
}

/// Whether a cursor waits for the end of a run that has ended or is gone.
fn follows_no_run(view: &DecisionView<'_>, cursor: &Cursor) -> bool {
    cursor.follows.is_some_and(|run| view.run(run).is_none_or(|run| run.state.is_finished()))
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn records_that_agree_are_left_alone() {
        play(
            "
            00:00 repair j
                unchanged
            00:00 put j a: @every 10m; b: with 5m interval; overlap queue
                a next 00:10, b next 00:05, job r1
            00:05 due
                #1 00:05 starting, b follows its run
            00:10 due
                #2 00:10 waiting, a next 00:20
            00:10 repair j
                unchanged
            ",
        );
    }

    #[test]
    fn active_entry_without_its_run_is_removed() {
        play(
            "
            00:00 put j @every 10m; overlap skip
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:11 lose #1
            00:20 due
                #2 00:20 skipped: overlap, next 00:30
            00:21 repair j
                nothing
            00:30 due
                #3 00:30 starting, next 00:40
            ",
        );
    }

    /// The set outlives its job, so that a job which is added again has it too.
    #[test]
    fn sets_are_repaired_with_and_without_their_job() {
        play(
            "
            00:00 put j @every 10m; overlap queue
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:20 due
                #2 00:20 waiting, next 00:30
            00:21 remove j
                gone, job gone, (wake #2 00:21), (wake #1 00:21)
            00:22 lose #1
            00:22 lose #2
            00:22 repair j
                nothing
            00:23 put j @every 10m; overlap queue
                next 00:30, job r1
            00:23 repair j
                unchanged
            00:30 due
                #3 00:30 starting, next 00:40
            ",
        );
    }

    #[test]
    fn lost_cursor_begins_again() {
        play(
            "
            00:00 put j a: @every 10m; b: @every 15m
                a next 00:10, b next 00:15, job r1
            00:01 lose cursor j a
            00:12 repair j
                a next 00:20
            ",
        );
    }

    #[test]
    fn cursor_that_follows_a_lost_run_goes_on() {
        play(
            "
            00:00 put j with 5m interval; overlap allow
                next 00:05, job r1
            00:05 due
                #1 00:05 starting, follows its run
            00:06 lose #1
            00:07 repair j
                next 00:12
            ",
        );
    }

    #[test]
    fn cursor_of_another_revision_is_computed_again() {
        play(
            "
            00:00 put j a: @every 60m
                a next 01:00, job r1
            00:01 put j a: @every 10m
                a next 00:10, job r2
            00:02 revert cursor j a 1
            00:02 repair j
                nothing
            00:03 repair j
                unchanged
            ",
        );
    }
}
