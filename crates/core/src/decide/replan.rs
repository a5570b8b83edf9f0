//! Computes the next occurrences of a job again, because zone data or calendars have changed, or because a wrong clock
//! has moved a cursor too far ahead. Occurrences that have their runs do not get others.

use super::draft::UnitDraft;
use super::timetable::Timetable;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::JobId;
use crate::view::{DecisionView, Halt};

/// Computes the cursors of all schedules of a job again.
pub(super) fn decide(view: &DecisionView<'_>, id: &JobId) -> Result<DecidedUnit, Halt> {
    let job = view.job(id).ok_or_else(|| Rejection::NoJob(id.clone()))?;
    let mut draft = UnitDraft::new(view);
    let mut is_changed = false;
    for (schedule, definition) in job.schedules() {
        let Some(cursor) = view.cursor(id, schedule) else { continue };
        // A schedule that does not compile on this node keeps its cursor, and one that a live node with newer zone data
        // has computed is left to that node.
        let Ok(table) = Timetable::new(&job, schedule, definition, view.world) else { continue };
        let me = view.stamp.owner.node;
        if table.is_behind(&cursor, view.world) && view.world.has_zone_data(me, &job.job.nodes, &cursor.zones) {
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
    use crate::decide::testing::{DecisionBench, instant, play};

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

    /// Due occurrences stay; future ones follow the new calendar.
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

    /// In 2026b the zone of the job has other rules than in 2026a: its clocks do not change on 2026-03-29, at
    /// 1993:00. Node 1 has 2026b. Node 2 leaves to it what differs, and nothing else.
    #[test]
    fn node_with_older_zone_data_leaves_what_differs_to_a_live_node_with_newer_data() {
        play(
            "
            1978:00 there 1:zones=2026b 2:zones=2026a
            1978:00 zones 2026b
            1978:00 put j CRON_TZ=Europe/Berlin 0 12 * * *; overlap allow
                next 1979:00, job r1
            1978:01 node 2.1
            1978:01 zones 2026a
            1978:01 replan j
                unchanged
            1979:00 due
                #1 1979:00 starting, next 2002:00
            1980:00 node 1.1
            1980:00 zones 2026b
            1980:00 replan j
                next 2003:00
            1980:00 replan j
                unchanged
            1981:00 node 2.1
            1981:00 zones 2026a
            1981:00 repair j
                unchanged
            2003:00 due
                (plan 2003:00 at 2003:00:01)
            2003:00:02 there 2:zones=2026a
            2003:00:02 due
                #2 2003:00 starting, next 2026:00
            ",
        );
    }

    /// A node that has the newer data and does not act, for whatever reason, holds up nothing for longer than a minute.
    #[test]
    fn stored_occurrence_is_claimed_if_no_node_with_newer_data_acts() {
        for nodes in ["1:zones=2026b,draining 2:zones=2026a", "1:zones=2026b 2:zones=2026a,gpu"] {
            play(&format!(
                "
                1996:00 there {nodes}
                1996:00 zones 2026b
                1996:00 put j CRON_TZ=Europe/Berlin 0 12 * * *; nodes{}
                    next 2003:00, job r1
                1996:01 node 2.1
                1996:01 zones 2026a
                2003:00 due
                    #1 2003:00 starting, next 2026:00
                ",
                if nodes.contains("gpu") { " gpu" } else { "" },
            ));
        }
        play(
            "
            1996:00 there 1:zones=2026b 2:zones=2026a
            1996:00 zones 2026b
            1996:00 put j CRON_TZ=Europe/Berlin 0 12 * * *
                next 2003:00, job r1
            1996:01 node 2.1
            1996:01 zones 2026a
            2003:00:59 due
                (plan 2003:00 at 2003:01)
            2003:01 due
                #1 2003:00 starting, next 2026:00
            ",
        );
    }

    /// Another release that says the same about the time in question changes nothing, and neither does any release
    /// for a schedule that does not depend on zone data.
    #[test]
    fn another_release_with_the_same_rules_changes_nothing() {
        for (schedule, due) in [
            ("0 12 * * *", "12:00"),
            ("@every 10m", "00:10"),
            ("CRON_TZ=Asia/Kolkata 0 12 * * *", "06:30"),
            ("CRON_TZ=Europe/Berlin 0 12 * * *", "11:00"),
        ] {
            let mut bench = DecisionBench::new();
            let put = format!("put j {schedule}");
            for line in ["zones 2026b", &put, "there 1:zones=2026a 2:zones=2026b"] {
                bench.happens(line);
            }
            for release in ["2026a", "2026b", "2026c"] {
                bench.happens(&format!("zones {release}"));
                assert_eq!(bench.happens("replan j"), ["unchanged"], "{schedule} {release}");
                assert_eq!(bench.happens("repair j"), ["unchanged"], "{schedule} {release}");
            }
            bench.happens("zones 2026a");
            bench.now = instant(due);
            let results = bench.happens("due");
            assert!(results.iter().any(|line| line.contains("starting")), "{schedule}: {results:?}");
        }
    }

    /// The schedule continues when its calendar is available again.
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

    /// A clock that was a day ahead claimed future occurrences. Those that have a run are not run again.
    #[test]
    fn cursor_too_far_ahead_is_moved_back() {
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

    /// The runs of claimed occurrences may be deleted before the clock is set back. They do not start once more. What
    /// was never claimed runs.
    #[test]
    fn occurrences_claimed_before_the_clock_was_set_back_do_not_start_again() {
        play(
            "
            00:00 put j @every 1h; overlap allow; catch_up none; kept 0
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            02:00 due
                #2 02:00 starting, next 03:00
            10:00 due
                #3 03:00–09:00 ×7 skipped: missed, #4 10:00 starting, next 11:00
            10:10 ended #1 yes
                #1 01:00 success
            10:10 ended #2 yes
                #2 02:00 success
            10:10 ended #4 yes
                #4 10:00 success
            10:11 prune j #1 #4
                #1 gone, #4 gone
            00:30 replan j
                next 01:00
            01:00 due
                #5 01:00–01:00 ×1 skipped: claimed before the clock was set back, next 02:00
            02:00 due
                next 03:00
            03:00 due
                #6 03:00 starting, next 04:00
            10:00 due
                #7 04:00–09:00 ×6 skipped: missed, #8 10:00–10:00 ×1 skipped: claimed before the clock was set back, next 11:00
            11:00 due
                #9 11:00 starting, next 12:00
            ",
        );
    }

    /// A schedule that counts from its previous run comes to the same times again. Each of its runs has an id of its own,
    /// also if the run of that time is no longer kept.
    #[test]
    fn schedule_that_counts_from_its_runs_goes_on_after_the_clock_was_set_back() {
        play(
            "
            00:00 put j with 10m interval; kept 0
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, follows its run
            00:10 ended #1 yes
                #1 00:10 success, next 00:20
            00:00 replan j
                next 00:10
            00:10 due
                #2 00:10 starting, follows its run
            00:10 ended #2 yes
                #2 00:10 success, next 00:20
            00:11 prune j #2
                #2 gone
            00:00 replan j
                next 00:10
            00:10 due
                #3 00:10 starting, follows its run
            ",
        );
    }

    /// A schedule that counts from its previous run does not repeat occurrences, whatever its former definition did.
    #[test]
    fn former_times_of_a_schedule_do_not_keep_it_from_running() {
        play(
            "
            00:00 put j a: @every 10m; overlap allow
                a next 00:10, job r1
            00:10 due
                #1 00:10 starting, a next 00:20
            00:20 due
                #2 00:20 starting, a next 00:30
            00:09 put j a: with 5m interval; overlap allow
                a next 00:14, job r2, (wake #1 00:09), (wake #2 00:09)
            00:14 due
                #3 00:14 starting, a follows its run
            ",
        );
    }

    /// After an outage, too: what the catch-up policy would start was claimed before.
    #[test]
    fn claimed_occurrences_are_not_caught_up() {
        play(
            "
            00:00 put j @every 10m; overlap allow; catch_up all 3h; kept 0
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:20 due
                #2 00:20 starting, next 00:30
            00:30 due
                #3 00:30 starting, next 00:40
            00:31 ended #1 yes
                #1 00:10 success
            00:31 ended #2 yes
                #2 00:20 success
            00:31 ended #3 yes
                #3 00:30 success
            00:32 prune j #1 #2 #3
                #1 gone, #2 gone, #3 gone
            00:01 replan j
                next 00:10
            00:50 due
                #4 00:10–00:30 ×3 skipped: claimed before the clock was set back, next 00:40
                #5 00:50 starting, next 01:00, backlog 00:40–00:40 of 1
            ",
        );
    }
}
