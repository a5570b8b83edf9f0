//! Explanations of a given time. Each case has a name, the time, the scene and the expected text.

use super::{assert_explanation, scene};

#[test]
fn explains_the_outcome_of_an_occurrence() {
    for (about, at, text, expected) in SCENES {
        assert_explanation(about, &scene::scene(text), Some(scene::time(at)), expected);
    }
}

const SCENES: &[(&str, &str, &str, &str)] = &[
    (
        "run and its retry",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 at=05T03:00 retried_by=2 log=waiting@05T03:00,starting@05T03:00,running@05T03:00:01,failure@05T03:00:09 reason: exit code 3
            run n=2 at=05T03:00 attempt=2 retry_of=1 log=scheduled@05T03:00:09,waiting@05T03:00:19/retry,starting@05T03:00:19/queue,success@05T03:00:30",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00:01 UTC and failed after 8s, because its program ended with exit code 3; `backup#2` retries it.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:01.000 +00:00  running, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  failure, by its program
            Attempt 2, `backup#2`, started at 2026-01-05 03:00:19 UTC and succeeded after 11s.
            - 2026-01-05 03:00:09.000 +00:00  scheduled, by its retry policy
            - 2026-01-05 03:00:19.000 +00:00  waiting, by its retry policy
            - 2026-01-05 03:00:19.000 +00:00  starting, by the queue
            - 2026-01-05 03:00:30.000 +00:00  success, by its program",
    ),
    (
        "marked",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,failure@05T03:00:09,success@05T09:00/anna reason: by operator: done by hand",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#1`, which was failure until anna marked it success at 2026-01-05 09:00 UTC: done by hand.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  failure, by its program
            - 2026-01-05 09:00:00.000 +00:00  success, by anna",
    ),
    (
        "lost",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,error@05T03:05/recovery reason: start unknown",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00 UTC and ended in error after 5m, because its node was lost while it was being started, and it is unknown whether its program ran.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:05:00.000 +00:00  error, by its node after a restart
            > check whether it ran, then `cronhold rerun backup#1` runs it again; `on_lost: retry` does so automatically",
    ),
    (
        "single skip",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=2 at=05T03:00 log=waiting@05T03:00,skipped@05T03:00 reason: overlap",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#2`, which did not start, because another run of the job was active and its `overlap` is `skip`.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  skipped, by its schedule
            > with `overlap: queue` it waits instead; `cronhold lint` reports when a job takes too long",
    ),
    (
        "no eligible node",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=2 at=05T03:00 log=waiting@05T03:01,skipped@05T03:01 reason: no eligible node",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#2`, which did not start, because no live node was allowed to run it.
            - 2026-01-05 03:01:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:01:00.000 +00:00  skipped, by its schedule
            > `cronhold nodes` shows the nodes and their labels; `nodes` in the job requires some",
    ),
    (
        "missed",
        "05T05:00",
        "
            schedule spec: @every 1h
            cursor since=01T00:00 last=05T11:00 next=05T12:00
            run n=7 at=05T02:00 to=05T09:00 count=8 log=skipped@05T11:00 reason: missed",
        "
            The occurrence at 2026-01-05 05:00 UTC was skipped, because no node was running to start it, and `catch_up` did not select it.
            - `backup#7` stands for 8 occurrences from 2026-01-05 02:00 UTC to 2026-01-05 09:00 UTC.
            > `cronhold backfill backup` runs what was missed; `catch_up: {policy: all}` does so automatically",
    ),
    (
        "paused span",
        "05T05:00",
        "
            schedule spec: @every 1h
            cursor since=01T00:00 last=05T11:00 next=05T12:00
            paused from=05T01:30 to=05T09:30
            run n=7 at=05T02:00 to=05T09:00 count=8 log=skipped@05T11:00 reason: paused",
        "
            The occurrence at 2026-01-05 05:00 UTC was skipped, because the job or everything was paused.
            - `backup#7` stands for 8 occurrences from 2026-01-05 02:00 UTC to 2026-01-05 09:00 UTC.
            - The job was paused from 2026-01-05 01:30 UTC to 2026-01-05 09:30 UTC.
            > `cronhold backfill backup` runs what was missed; `catch_up: {policy: all}` does so automatically",
    ),
    (
        "backlog",
        "05T05:00",
        "
            schedule spec: @every 1h
            cursor last=05T11:00 next=05T12:00
            backlog from=05T02:00 position=05T03:00 to=05T09:00 count=8",
        "
            The occurrence at 2026-01-05 05:00 UTC was missed and is to be caught up: 2 occurrences are before it.",
    ),
    (
        "still to come",
        "06T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00",
        "
            The occurrence at 2026-01-06 03:00 UTC is still to come, in 15h.",
    ),
    (
        "still to come, paused",
        "06T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            all-paused since=05T11:00",
        "
            The occurrence at 2026-01-06 03:00 UTC is still to come, in 15h, unless the pause holds until then.",
    ),
    (
        "resting",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=04T03:00 next=05T03:00
            paused since=04T20:00",
        "
            The occurrence at 2026-01-05 03:00 UTC was not started: the job or everything is paused.
            > its outcome is recorded when the pause ends, according to `catch_up`",
    ),
    (
        "due",
        "05T12:00",
        "
            schedule spec: @every 1h
            cursor since=01T00:00 last=05T11:00 next=05T12:00",
        "
            The occurrence at 2026-01-05 12:00 UTC is due, and no node has claimed it yet.
            > `cronhold nodes` shows whether a node is running",
    ),
    (
        "disabled",
        "05T03:00",
        "
            schedule disabled spec: 0 3 * * *",
        "
            The occurrence at 2026-01-05 03:00 UTC does not run: its schedule is disabled.
            > `enabled: true` in the job enables it",
    ),
    (
        "due when the schedule was changed",
        "05T03:00",
        "
            schedule spec: 0 3 * * *
            cursor since=05T11:00 last=04T03:00 next=05T03:00",
        "
            The occurrence at 2026-01-05 03:00 UTC is due, and no node has claimed it yet.
            > `cronhold nodes` shows whether a node is running",
    ),
    (
        "before the schedule",
        "02T03:00",
        "
            schedule spec: 0 3 * * *
            cursor since=02T03:00 last=05T03:00 next=06T03:00",
        "
            The occurrence at 2026-01-02 03:00 UTC has no record: its schedule has been in effect only since 2026-01-02 03:00 UTC, when it was created, enabled or changed.",
    ),
    (
        "not kept",
        "02T03:00",
        "
            job keep=2
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            state success=2 gone=7
            run n=8 at=04T03:00 log=waiting@04T03:00,success@04T03:10
            run n=9 at=05T03:00 log=waiting@05T03:00,success@05T03:10",
        "
            The occurrence at 2026-01-02 03:00 UTC has no record any more: not all runs before 2026-01-04 03:00 UTC are kept.
            > `retain` in the job sets how many are kept",
    ),
    (
        "hole",
        "04T03:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00",
        "
            The occurrence at 2026-01-04 03:00 UTC has no record: no run, no skip, and it is not pending. This is a defect of Cronhold, not of the job.
            > please report it with the output of `cronhold doctor`; `cronhold run backup` runs the job now",
    ),
    (
        "no cursor",
        "04T03:00",
        "
            schedule spec: 0 3 * * *",
        "
            Its schedule is enabled and has no cursor, so nothing claims its occurrences. This is a defect of Cronhold, not of the job.
            > please report it with the output of `cronhold doctor`; `cronhold run backup` runs the job now",
    ),
    (
        "unknown zone",
        "04T03:00",
        "
            schedule zone=Nowhere spec: 0 3 * * *",
        "
            Its schedule cannot be used: `timezone`: there is no time zone `Nowhere`.
            > zones have IANA names such as Europe/Berlin or UTC",
    ),
    (
        "between two",
        "05T10:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=2 at=05T03:00 log=waiting@05T03:00,skipped@05T03:00 reason: lock",
        "
            `backup` has no occurrence at 2026-01-05 10:00 UTC.
            The occurrence before it, at 2026-01-05 03:00 UTC, became `backup#2`, which did not start, because another run held its lock.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  skipped, by its schedule
            > with `overlap: queue` it waits instead; `cronhold lint` reports when a job takes too long
            The occurrence after it, at 2026-01-06 03:00 UTC, is still to come, in 15h.",
    ),
    (
        "two schedules at once",
        "05T03:00",
        "
            schedule name=nightly spec: 0 3 * * *
            schedule spec: @every 1h
            cursor of=0 last=05T03:00 next=06T03:00
            cursor of=1 last=05T11:00 next=05T12:00
            run n=1 of=0 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,success@05T03:00:09
            run n=2 of=1 at=05T03:00 log=waiting@05T03:00,skipped@05T03:00 reason: overlap",
        "
            The occurrence of `@every 1h` at 2026-01-05 03:00 UTC became `backup#2`, which did not start, because another run of the job was active and its `overlap` is `skip`.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  skipped, by its schedule
            > with `overlap: queue` it waits instead; `cronhold lint` reports when a job takes too long
            The occurrence of `nightly` at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00 UTC and succeeded after 9s.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  success, by its program",
    ),
    (
        "by hand, between occurrences",
        "05T10:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,failure@05T03:00:09 reason: signal SIGKILL
            run n=2 asked rerun_of=1 at=05T09:00 log=waiting@05T09:00/anna,starting@05T09:00/anna,running@05T09:00,success@05T09:00:30",
        "
            `backup` has no occurrence at 2026-01-05 10:00 UTC.
            The occurrence before it, at 2026-01-05 03:00 UTC, became `backup#1`, which started at 2026-01-05 03:00 UTC and failed after 9s, because something outside of Cronhold ended its program with SIGKILL.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  failure, by its program
            > `cronhold logs backup#1` shows its output, `cronhold rerun backup#1` runs it again
            `backup#2`, a rerun of `backup#1`, created for 2026-01-05 09:00 UTC by anna, started at 2026-01-05 09:00 UTC and succeeded after 30s.
            - 2026-01-05 09:00:00.000 +00:00  waiting, by anna
            - 2026-01-05 09:00:00.000 +00:00  starting, by anna
            - 2026-01-05 09:00:00.000 +00:00  running, by its schedule
            - 2026-01-05 09:00:30.000 +00:00  success, by its program
            The occurrence after it, at 2026-01-06 03:00 UTC, is still to come, in 15h.",
    ),
    (
        "a removed schedule",
        "05T05:00",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run of=9 n=7 at=05T02:00 to=05T09:00 count=8 log=skipped@05T11:00 reason: missed",
        "
            The occurrence of `former` at 2026-01-05 05:00 UTC was skipped, because no node was running to start it, and `catch_up` did not select it.
            - `backup#7` stands for 8 occurrences from 2026-01-05 02:00 UTC to 2026-01-05 09:00 UTC.
            > `cronhold backfill backup` runs what was missed; `catch_up: {policy: all}` does so automatically",
    ),
    (
        "a removed job",
        "05T03:00",
        "
            gone
            schedule spec: 0 3 * * *
            run n=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,success@05T03:00:09",
        "
            There is no job `backup`.
            > `cronhold list` shows the jobs
            The occurrence of `a9063647de203e3e` at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00 UTC and succeeded after 9s.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  success, by its program",
    ),
    (
        "nothing at all",
        "05T03:00",
        "
            job overlap=skip",
        "
            `backup` has no occurrence at 2026-01-05 03:00 UTC.
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
];
