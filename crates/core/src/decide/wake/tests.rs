//! Checks of waiting and active runs, as scripts: queues, locks, limits, pauses and retries.

use crate::decide::testing::play;

#[test]
fn queue_starts_in_order_and_skips_when_full() {
    play(
        "00:00 put j overlap queue 2
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 run j
            #2 00:02 waiting, → #2
        00:03 run j
            #3 00:03 waiting, → #3
        00:04 run j
            #4 00:04 skipped: queue full, → #4
        00:04 wake #3
            #3 00:03 waiting
        00:04 wake #3
            (wake #3 00:05), unchanged
        00:05 ended #1
            #1 00:01 success
        00:05 wake #3
            #3 00:03 waiting
        00:05 wake #2
            #2 00:02 starting
        00:06 run j
            #5 00:06 waiting, → #5
        00:07 ended #2
            #2 00:02 success
        00:07 wake #5
            #5 00:06 waiting
        00:07 wake #3
            #3 00:03 starting",
    );
}

#[test]
fn repeated_wakes_write_nothing() {
    play(
        "00:00 put j overlap queue
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 run j at=00:10
            #2 00:10 scheduled, → #2
        00:02 run j
            #3 00:02 waiting, → #3
        00:02 wake #3
            (wake #3 00:03), unchanged
        00:02 wake #2
            (wake #2 00:10), unchanged
        00:01:05 wake #1
            (wake #1 00:01:10), unchanged
        00:02 launched #1
            #1 00:01 running
        00:02 wake #1
            unchanged
        00:03 wake #3
            #3 00:02 waiting
        00:03 wake #3
            (wake #3 00:04), unchanged
        00:03 wake #0
            unchanged
        00:04 ended #1
            #1 00:01 success
        00:04 wake #1
            unchanged",
    );
}

#[test]
fn released_lock_starts_the_next_waiting_run() {
    play(
        "00:00 put a overlap queue; lock shared
            job r1
        00:00 put b overlap allow; lock shared
            job r1
        00:01 run a
            a#1 00:01 starting, → #1
        00:02 run a
            a#2 00:02 waiting, → #2
        00:03 run b
            b#1 00:03 waiting, → #1
        00:03 wake b#1
            (wake #1 00:04), unchanged
        00:04 ended a#1 no
            a#1 00:01 failure: exit code 1
        00:04 wake b#1
            b#1 00:03 starting
        00:04 wake a#2
            a#2 00:02 waiting
        00:05 lost b#1
            b#1 00:03 error: start unknown
        00:05 wake a#2
            a#2 00:02 starting",
    );
}

#[test]
fn replace_stops_and_skips_all_older_runs() {
    play(
        "00:00 put j overlap replace; retry 3; param x
            job r1
        00:01 run j x=1
            #1 00:01 starting, → #1
        00:01 ended #1 no
            #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
        00:01:01 run j x=2
            #2 00:01 attempt 2 skipped: replaced, #3 00:01:01 waiting, → #3
        00:01:01 wake #3
            #3 00:01:01 starting
        00:02 launched #3
            #3 00:01:01 running
        00:03 run j x=3
            #3 00:01:01 stopping (replaced), #4 00:03 waiting, → #4
        00:03 run j x=4
            #4 00:03 skipped: replaced, #5 00:03 waiting, → #5
        00:03 wake #5
            (wake #5 00:04), unchanged
        00:04 ended #3 no
            #3 00:01:01 failure: replaced
        00:04 wake #5
            #5 00:03 starting",
    );
}

#[test]
fn timeout_stops_then_kills() {
    play(
        "00:00 put j timeout 10m; grace 30s
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 launched #1
            #1 00:01 running
        00:11 wake #1
            (wake #1 00:12), unchanged
        00:12 wake #1
            #1 00:01 stopping (timeout)
        00:12:29 wake #1
            (wake #1 00:12:30), unchanged
        00:12:30 wake #1
            #1 00:01 stopping (timeout), (signal #1 SIGKILL), (adopt #1)
        00:12:40 wake #1
            #1 00:01 stopping (timeout), (signal #1 SIGKILL), (adopt #1)
        00:12:41 ended #1 no
            #1 00:01 failure: timeout",
    );
}

#[test]
fn stop_time_ends_scheduled_runs_only() {
    play(
        "00:00 put j @every 10m; stop_after 5m; timeout 8m; retry 2
            next 00:10, job r1
        00:10 due
            #1 00:10 starting, next 00:20
        00:10 launched #1
            #1 00:10 running
        00:14 wake #1
            (wake #1 00:15), unchanged
        00:15 wake #1
            #1 00:10 stopping (stopped)
        00:15 ended #1 no
            #1 00:10 failure: stopped",
    );
}

/// A run that waited past its stop time gets the same duration as one that starts on time. If it were stopped at once,
/// the start would be useless; without a stop, it would block all following runs.
#[test]
fn stop_time_that_has_passed_counts_from_the_start() {
    play(
        "00:00 put j 0 1 * * *; stop_after 5m; overlap queue; lock l
            next 01:00, job r1
        00:00 put k overlap allow; lock l
            job r1
        00:59 run k
            k#1 00:59 starting, → #1
        01:00 due
            j#1 01:00 waiting, j next 25:00
        01:30 ended k#1 yes
            k#1 00:59 success
        01:30 wake j#1
            j#1 01:00 starting
        01:30 launched j#1
            j#1 01:00 running
        01:34 wake j#1
            (wake #1 01:35), unchanged
        01:35 wake j#1
            j#1 01:00 stopping (stopped)",
    );
}

#[test]
fn unreported_launch_is_adopted_and_not_repeated() {
    let mut bench = play(
        "00:01 put j overlap skip
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01:10 wake #1
            (adopt #1), (wake #1 00:01:20), unchanged
        00:01:20 node 1.2
        00:01:20 wake #1
            (adopt #1), (wake #1 00:01:30), unchanged
        00:01:20 node 2.1
        00:01:20 wake #1
            unchanged",
    );
    bench.effects.clear();
    bench.happens("wake #1");
    assert_eq!(bench.effects, []);
}

#[test]
fn pause_holds_runs_without_operator() {
    play(
        "00:00 put j overlap queue; retry 3
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 run j
            #2 00:02 waiting, → #2
        00:02 ended #1 no
            #1 00:01 failure: exit code 1, #3 00:01 attempt 2 scheduled
        00:02 pause all
            everything paused
        00:02:10 wake #3
            #3 00:01 attempt 2 scheduled
        00:03:09 wake #3
            (wake #3 00:03:10), unchanged
        00:03:09 wake #2
            #2 00:02 waiting
        00:03:10 resume all
            everything resumed
        00:03:10 wake #3
            #3 00:01 attempt 2 starting",
    );
}

#[test]
fn retry_starts_before_queued_runs() {
    play(
        "00:00 put j overlap queue; retry 3; lock
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 run j
            #2 00:02 waiting, → #2
        00:02 ended #1 no
            #1 00:01 failure: exit code 1, #3 00:01 attempt 2 scheduled
        00:02 wake #2
            #2 00:02 waiting
        00:02:10 wake #2
            (wake #2 00:03), unchanged
        00:02:10 wake #3
            #3 00:01 attempt 2 starting
        00:03 ended #3 yes
            #3 00:01 attempt 2 success
        00:03 wake #2
            #2 00:02 starting",
    );
}

#[test]
fn two_retries_do_not_wait_for_each_other() {
    play(
        "00:00 put j overlap allow; retry 3
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 run j again=
            ! there is no param `again` (the job has no params)
        00:02 run j
            #2 00:02 starting, → #2
        00:03 ended #1 no
            #1 00:01 failure: exit code 1, #3 00:01 attempt 2 scheduled
        00:03 ended #2 no
            #2 00:02 failure: exit code 1, #4 00:02 attempt 2 scheduled
        00:03 put j overlap queue; retry 3
            job r2, (wake #3 00:03), (wake #4 00:03)
        00:03:10 wake #4
            #4 00:02 attempt 2 waiting
        00:03:10 wake #3
            #3 00:01 attempt 2 starting
        00:03:11 wake #4
            (wake #4 00:04:10), unchanged
        00:04 ended #3 yes
            #3 00:01 attempt 2 success
        00:04 wake #4
            #4 00:02 attempt 2 starting",
    );
}

#[test]
fn waiting_run_of_a_removed_job_is_skipped() {
    play(
        "00:00 put j overlap queue; retry 2
            job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 run j
            #2 00:02 waiting, → #2
        00:02 run j at=01:00
            #3 01:00 scheduled, → #3
        00:03 remove j
            job gone, (wake #2 00:03), (wake #1 00:03)
        00:03 wake #2
            #2 00:02 skipped: job removed
        00:03 wake #3
            #3 01:00 skipped: job removed
        00:04 ended #1 no
            #1 00:01 failure: exit code 1",
    );
}
