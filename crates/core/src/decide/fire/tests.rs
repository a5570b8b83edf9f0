//! Occurrences on time, late, skipped, and those that no node may claim, as scripts.

use crate::decide::testing::play;

#[test]
fn due_occurrence_starts_and_advances_the_cursor() {
    play(
        "
        00:00 put j @every 10m; overlap allow
            next 00:10, job r1
        00:09 fire j - 00:10
            (plan 00:10)
        00:10 due
            #1 00:10 starting, next 00:20
        00:10 fire j - 00:10
            (plan 00:20)
        00:10 fire j other 00:10
            (plan nothing)
        00:10 fire nobody - 00:10
            (plan nothing)
        00:21 due
            #2 00:20 starting, next 00:30
        ",
    );
}

/// Several occurrences can be due at once within the minute that counts as on time.
#[test]
fn successive_occurrences_start_in_order() {
    play(
        "
        00:00 put j @every 20s; overlap allow
            next 00:00:20, job r1
        00:01:10 due
            #1 00:00:20 starting, next 00:00:40
            #2 00:00:40 starting, next 00:01
            #3 00:01 starting, next 00:01:20
        ",
    );
}

#[test]
fn overlap_policies_skip_queue_replace_or_allow() {
    play(
        "
        00:00 put j @every 10m
            next 00:10, job r1
        00:10 due
            #1 00:10 starting, next 00:20
        00:20 due
            #2 00:20 skipped: overlap, next 00:30
        00:21 put j @every 10m; overlap queue 1
            job r2, (wake #1 00:21)
        00:30 due
            #3 00:30 waiting, next 00:40
        00:40 due
            #4 00:40 skipped: queue full, next 00:50
        00:41 put j @every 10m; overlap replace
            job r3, (wake #3 00:41), (wake #1 00:41)
        00:50 due
            #1 00:10 stopping (replaced), #3 00:30 skipped: replaced, #5 00:50 waiting, next 01:00
        00:51 put j @every 10m; overlap allow
            job r4, (wake #5 00:51), (wake #1 00:51)
        01:00 due
            #6 01:00 starting, next 01:10
        ",
    );
}

#[test]
fn held_lock_skips_or_queues_by_overlap_policy() {
    play(
        "
        00:00 put a @every 10m; lock db; overlap allow
            next 00:10, job r1
        00:00 put b @every 15m; lock db
            next 00:15, job r1
        00:00 put c @every 20m; lock db; overlap queue
            c next 00:20, job r1
        00:10 due
            a#1 00:10 starting, a next 00:20
        00:15 due
            b#1 00:15 skipped: lock, b next 00:30
        00:20 due
            a#2 00:20 waiting, a next 00:30
            c#1 00:20 waiting, c next 00:40
        ",
    );
}

/// Foreign nodes may start an occurrence a little early or late by the store's time.
#[test]
fn occurrence_that_a_foreign_node_has_run_is_skipped() {
    play(
        "
        00:00 put a @every 10m; lock
            next 00:10, job r1
        00:00 put b @every 10m
            next 00:10, job r1
        00:10 foreign-run a web-1 00:09:59.5
        00:10 foreign-run b web-1 00:10
        00:10 due
            a#1 00:10 skipped: ran on Elsewhere web-1, a next 00:20
            b#1 00:10 starting, b next 00:20
        00:20 foreign-run a web-2 00:19:59.499
        00:20 due
            a#2 00:20 starting, a next 00:30
            b#2 00:20 skipped: overlap, b next 00:30
        00:21 ended a#2 yes
            a#2 00:20 success
        00:30:30 foreign-run a web-2 00:30:02
        00:30:30 fire a - 00:30
            a#3 00:30 skipped: ran on Elsewhere web-2, a next 00:40
        00:41 run a
            a#4 00:41 starting, → #4
        ",
    );
}

/// The first twenty skips have a record each, the following ones share a span. Any other outcome ends the streak.
#[test]
fn many_skips_in_a_row_become_one_span() {
    let mut script = String::from(
        "
        00:00 put j @every 1m
            next 00:01, job r1
        00:01 due
            #1 00:01 starting, next 00:02
        ",
    );
    for minute in 2..=21 {
        let next = minute + 1;
        script += &format!("00:{minute:02} due\n #{minute} 00:{minute:02} skipped: overlap, next 00:{next:02}\n");
    }
    script += "
        00:22 due
            #22 00:22–00:22 ×1 skipped: overlap, next 00:23
        00:23 due
            #22 00:22–00:23 ×2 skipped: overlap, next 00:24
        00:24 due
            #22 00:22–00:24 ×3 skipped: overlap, next 00:25
        00:24:30 ended #1 yes
            #1 00:01 success
        00:25 due
            #23 00:25 starting, next 00:26
        00:26 due
            #24 00:26 skipped: overlap, next 00:27
        ";
    play(&script);
}

#[test]
fn late_occurrences_are_missed_or_backlogged_by_policy() {
    play(
        "
        00:00 put none @every 10m; catch_up none
            next 00:10, job r1
        00:00 put last @every 10m; catch_up last
            next 00:10, job r1
        00:00 put every @every 10m; catch_up all 35m
            every next 00:10, job r1
        00:11 due
            every#1 00:10 starting, every next 00:20
            last#1 00:10 starting, last next 00:20
            none#1 00:10 starting, none next 00:20
        01:05 due
            every#2 00:20 skipped: missed, every next 01:10, backlog 00:30–01:00 of 4
            last#2 00:20–00:50 ×4 skipped: missed, last next 01:10, backlog 01:00–01:00 of 1
            none#2 00:20–01:00 ×5 skipped: missed, none next 01:10
        ",
    );
}

/// The commit that decides about late occurrences also claims the one that is on time.
#[test]
fn late_occurrences_do_not_delay_the_one_on_time() {
    play(
        "
        00:00 put last @every 10m; catch_up last
            next 00:10, job r1
        00:00 put every @every 10m; catch_up all
            next 00:10, job r1
        00:30:30 due
            every#1 00:30 starting, every next 00:40, backlog 00:10–00:20 of 2
            last#1 00:10–00:20 ×2 skipped: missed, last#2 00:30 starting, last next 00:40
        ",
    );
}

/// Repeated outages extend the same span of missed occurrences.
#[test]
fn second_outage_extends_the_missed_span() {
    play(
        "
        00:00 put j @every 10m; catch_up none
            next 00:10, job r1
        00:35 due
            #1 00:10–00:30 ×3 skipped: missed, next 00:40
        00:55 due
            #1 00:10–00:50 ×5 skipped: missed, next 01:00
        01:00 due
            #2 01:00 starting, next 01:10
        01:15 due
            #3 01:10 skipped: missed, next 01:20
        ",
    );
}

/// An occurrence with jitter is due when its jitter has passed, and late a minute after that.
#[test]
fn jitter_delays_the_due_time_and_not_the_nominal_time() {
    play(
        "
        00:00 put j @every 1h; jitter 30m; overlap allow
            next 01:00 (01:12:17.219), job r1
        01:12:17.218 fire j - 01:00
            (plan 01:00 at 01:12:17.219)
        01:13:17.219 due
            #1 01:00 starting, next 02:00 (02:25:39.122)
        02:26:39.123 due
            next 03:00 (03:20:53.617), backlog 02:00–02:00 of 1
        05:00:01 due
            #2 03:00 skipped: missed, #3 02:00 skipped: missed, next 05:00 (05:22:39.386), backlog 04:00–04:00 of 1
        ",
    );
}

/// The changed schedule has an occurrence before the due one, and its jitter moves the due time of that one after it.
#[test]
fn occurrences_before_the_cursor_are_not_caught_up() {
    play(
        "
        00:00 put j a: @every 1h; catch_up all
            a next 01:00, job r1
        01:35 put j a: 57 * * * *; jitter 30m; catch_up all
            a next 01:00 (01:12:17.219), job r2
        01:36 due
            a next 01:57 (02:08:33.596), backlog 01:00–01:00 of 1
        01:36 catch up
            #1 01:00 starting, backlog gone
        ",
    );
}

#[test]
fn schedule_after_previous_run_counts_from_its_end() {
    play(
        "
        00:00 put j with 10m interval; retry 2
            next 00:10, job r1
        00:10 due
            #1 00:10 starting, follows its run
        00:12 run j
            #2 00:12 skipped: overlap, → #2
        00:15 ended #1 no
            #1 00:10 failure: exit code 1, #3 00:10 attempt 2 scheduled, follows its run
        00:15:10 wake #3
            #3 00:10 attempt 2 starting
        00:20 ended #3 yes
            #3 00:10 attempt 2 success, next 00:30
        00:29 run j
            #4 00:29 starting, → #4
        00:30 due
            #5 00:30 skipped: overlap, next 00:40
        00:35 ended #4 yes
            #4 00:29 success
        00:40 due
            #6 00:40 starting, follows its run
        ",
    );
}

/// At most one occurrence can be missed. `catch_up` decides whether it runs; otherwise the next counts from now.
#[test]
fn late_occurrence_after_previous_run_starts_late() {
    play(
        "
        00:00 put wanted with 10m interval
            next 00:10, job r1
        00:00 put unwanted with 10m interval; catch_up none
            next 00:10, job r1
        00:45 due
            unwanted#1 00:10 skipped: missed, unwanted next 00:55
            wanted#1 00:10 starting, wanted follows its run
        ",
    );
}

#[test]
fn late_occurrence_after_previous_run_waits_for_an_eligible_node() {
    play(
        "
        00:00 put j with 10m interval; nodes gpu
            next 00:10, job r1
        00:45 due
            (plan 00:10 at 00:46)
        00:46 label gpu
        00:46 due
            #1 00:10 starting, follows its run
        00:47 ended #1 yes
            #1 00:10 success, next 00:57
        00:48 label cpu
        02:00 due
            #2 00:57 skipped: missed, next 02:10
        02:11 due
            #3 02:10 skipped: no eligible node, next 02:21
        ",
    );
}

#[test]
fn reboot_schedule_runs_once_per_node_start() {
    play(
        "
        00:00 put j @reboot; overlap allow
            at start, job r1
        00:05 fire j - 00:05
            #1 00:05 starting
        00:05 fire j - 00:05
            nothing
        00:06 pause j
            job paused
        00:07 fire j - 00:07
            #2 00:07 skipped: paused
        00:08 resume j
            job resumed, (wake #1 00:08)
        00:09 fire j - 00:09
            #3 00:09 starting
        00:10 put j @reboot; nodes gpu
            job r2, (wake #1 00:10), (wake #3 00:10)
        00:11 fire j - 00:11
            nothing
        ",
    );
}

/// Eligible nodes have one minute to claim it; then any node records the skip.
#[test]
fn occurrence_without_eligible_node_is_skipped() {
    play(
        "
        00:00 put j @every 10m; nodes gpu
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:11 due
            #1 00:10 skipped: no eligible node, next 00:20
        00:20 label gpu
        00:20 due
            #2 00:20 starting, next 00:30
        00:25 ended #2 yes
            #2 00:20 success
        00:26 label cpu
        00:45 due
            #3 00:30 skipped: missed, next 00:50, backlog 00:40–00:40 of 1
        00:46 catch up
            (catch up 00:47)
        01:39 catch up
            (catch up 01:40)
        01:40 catch up
            (catch up 01:41)
        01:41 catch up
            #4 00:40 skipped: no eligible node, backlog gone
        ",
    );
}

/// An occurrence that is on time waits for an eligible node, even if earlier ones were late.
#[test]
fn ineligible_node_records_late_occurrences_and_starts_none() {
    play(
        "
        00:00 put j @every 10m; nodes gpu
            next 00:10, job r1
        00:30:30 due
            #1 00:10–00:20 ×2 skipped: missed, next 00:30
            (plan 00:30 at 00:31)
        00:30:40 label gpu
        00:30:40 due
            #2 00:30 starting, next 00:40
        ",
    );
}

#[test]
fn schedule_in_elapsed_time_does_not_depend_on_zone_data() {
    play(
        "
        00:00 there 1:zones=2026b 2:zones=2026a
        00:00 zones 2026b
        00:00 put j @every 10m
            next 00:10, job r1
        00:09 node 2.1
        00:09 zones 2026a
        00:10 due
            #1 00:10 starting, next 00:20
        ",
    );
}

/// Invalid args are an outcome too, and the schedule continues.
#[test]
fn invalid_args_end_the_run_in_error() {
    play(
        "
        00:00 put j @every 10m; param region
            next 00:10, job r1
        00:10 due
            #1 00:10 error: not bound: the param `region` needs a value, next 00:20
        00:11 put j @every 10m; param date; shell load {{ date }}
            job r2
        00:20 due
            #2 00:20 starting, next 00:30
        ",
    );
}

/// A named schedule keeps its cursor if its timing changes, so an occurrence that is already due gets an outcome.
#[test]
fn due_occurrence_survives_a_change_of_its_named_schedule() {
    play(
        "
        00:00 put j a: @every 10m; catch_up none
            a next 00:10, job r1
        00:10:20 put j a: 30 * * * *; catch_up none
            job r2
        00:10:30 due
            #1 00:10 starting, a next 00:30
        00:30:30 put j a: 45 * * * *; catch_up none
            job r3, (wake #1 00:30:30)
        01:00 due
            #2 00:30–00:45 ×2 skipped: missed, a next 01:45
        ",
    );
}

/// A store that was rolled back can have a cursor of a later revision than its job, or of an earlier one.
#[test]
fn cursor_of_another_revision_is_refreshed_and_then_claimed() {
    for revision in [1, 7] {
        play(&format!(
            "
            00:00 put j a: @every 10m
                a next 00:10, job r1
            00:01 put j a: @every 10m; overlap allow
                job r2
            00:02 revert cursor j a {revision}
            00:10 due
                nothing
            00:10 due
                #1 00:10 starting, a next 00:20
            ",
        ));
    }
}

#[test]
fn cursor_without_its_job_or_schedule_is_removed() {
    play(
        "
        00:00 put j a: @every 10m
            a next 00:10, job r1
        00:01 lose job j
        00:10 due
            a gone
        ",
    );
}
