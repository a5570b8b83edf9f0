//! Computes the next occurrences of a job again, because zone data or calendars have changed, or because a wrong clock
//! has moved a cursor too far ahead. Occurrences that have their runs do not get others.

use super::draft::UnitDraft;
use super::timetable::Timetable;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::JobId;
use crate::view::{DecisionView, Halt};

/// Computes the cursors of all schedules of a job again.
pub(super) fn decide(view: &DecisionView<'_>, id: &JobId, even_older: bool) -> Result<DecidedUnit, Halt> {
    let job = view.job(id).ok_or_else(|| Rejection::NoJob(id.clone()))?;
    let mut draft = UnitDraft::new(view);
    let mut is_changed = false;
    for (schedule, definition) in job.schedules() {
        let Some(cursor) = view.cursor(id, schedule) else { continue };
        // A node with older zone data does not undo what one with newer data has computed, and a schedule that does not
        // compile on this node keeps its cursor.
        let Ok(table) = Timetable::new(&job, schedule, definition, view.world) else { continue };
        if *cursor.zones > *view.world.zones_version && !even_older {
            continue;
        }
        let fresh = table.refresh((*cursor).clone(), view.stamp.at, view.world);
        if fresh != *cursor {
            is_changed = true;
            draft.put_cursor(fresh);
        }
    }
    draft.finish(if is_changed { CommandReply::Done } else { CommandReply::Unchanged })
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn replan_without_changes_writes_nothing() {
        play(
            "
            00:00 replan j
                ! there is no job `j`
            00:00 put j a: @every 10m; b: with 5m interval; c: @reboot
                a next 00:10, b next 00:05, c at start, job r1
            00:04 replan j
                unchanged
            00:10 replan j
                unchanged
            ",
        );
    }

    /// What has come keeps its place, what has not is where the calendar has it now.
    #[test]
    fn replan_moves_future_occurrences_to_the_new_calendar() {
        play(
            "
            00:00 calendar open Mon-Fri
            00:00 put j a: 0 12 * * *; calendar open; b: with 30h interval; calendar open
                a next 12:00, b next 30:00, job r1
            01:00 calendar open Wed-Fri
            01:00 replan j
                a next 60:00, b next 48:00
            02:00 calendar open Mon-Fri
            02:00 replan j
                a next 12:00, b next 32:00
            12:00 calendar open Wed-Fri
            12:00 replan j
                b next 48:00
            12:00 due
                #1 12:00 starting, a next 60:00
            ",
        );
    }

    /// Nobody undoes what was computed with newer zone data, unless there is nobody else.
    #[test]
    fn replan_keeps_cursors_of_newer_zone_data() {
        play(
            "
            00:00 zones 2026b
            00:00 put j 0 12 * * *
                next 12:00, job r1
            01:00 zones 2026a
            01:00 replan j
                unchanged
            12:00 due
                (plan 12:00 at 12:01)
            12:00:30 replan j even older
                nothing
            12:00:30 due
                #1 12:00 starting, next 36:00
            ",
        );
    }

    /// A calendar that went missing stops its schedule only until it is back.
    #[test]
    fn missing_calendar_suspends_its_schedule_until_it_is_back() {
        play(
            "
            00:00 calendar open Mon-Fri
            00:00 put j 0 12 * * *; calendar open; catch_up all 3h
                next 12:00, job r1
            11:00 calendar open
            11:00 replan j
                unchanged
            12:00 due
                (plan 12:00 at 12:01)
            13:00 calendar open Mon-Fri
            13:00 due
                next 36:00, backlog 12:00–12:00 of 1
            13:01 calendar open
            13:01 catch up
                (catch up 13:02)
            ",
        );
    }

    /// A clock that was a day ahead has claimed what had not come yet. What has its run is passed over.
    #[test]
    fn a_cursor_that_is_too_far_ahead_is_set_back() {
        play(
            "
            00:00 put j @every 1h; overlap allow; catch_up none
                next 01:00, job r1
            26:00 due
                #1 01:00–25:00 ×25 skipped: missed, #2 26:00 starting, next 27:00
            02:30 replan j
                next 03:00
            03:00 due
                #3 03:00 starting, next 04:00
            26:00 due
                #4 04:00–25:00 ×22 skipped: missed, next 27:00
            ",
        );
    }
}
