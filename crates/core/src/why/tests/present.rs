//! Explanations of the present. Each case has a name, the scene and the expected text.

use super::{assert_explanation, scene};

#[test]
fn explains_the_present() {
    for (about, text, expected) in SCENES {
        assert_explanation(about, &scene::scene(text), None, expected);
    }
}

#[test]
fn unfinished_runs_beyond_a_limit_are_counted() {
    let run = |n| format!("run n={n} asked at=05T11:00 log=waiting@05T11:00,starting@05T11:00,running@05T11:00\n");
    let runs: String = (1..=12).map(run).collect();
    let line = |n| format!("`backup#{n}` has been running since 2026-01-05 11:00 UTC, for 1h.\n");
    let expected: String = (1..=10).map(line).collect();
    let more = "2 more of its runs have not ended.\n> `cronhold runs backup` shows them all\n";
    let no_schedule = "`backup` has no schedule: it runs only when it is started explicitly.
        > `cronhold run backup` starts it";
    assert_explanation("many runs", &scene::scene(&runs), None, &format!("{expected}{more}{no_schedule}"));
}

const SCENES: &[(&str, &str, &str)] = &[
    (
        "next",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,running@05T03:00:01,success@05T03:10:01",
        "
            Its last run, `backup#1`, started at 2026-01-05 03:00:01 UTC and succeeded after 10m.
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "next with jitter, in the zone of the schedule",
        "
            job zone=Europe/Berlin
            schedule zone=America/New_York spec: 0 3 * * *
            cursor next=06T08:00 wake=06T08:04",
        "
            Its schedule starts it next at 2026-01-06 03:00 America/New_York (08:00 UTC) plus 4m of jitter, in 20h4m.",
    ),
    (
        "never ran",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00",
        "
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "paused",
        "
            schedule spec: 0 3 * * *
            cursor last=04T03:00 next=05T03:00
            paused since=04T20:00 by=anna why: new disks",
        "
            `backup` has been paused since 2026-01-04 20:00 UTC, by anna (new disks): no run of it starts automatically until it is resumed.
            > `cronhold resume backup` ends the pause; `catch_up` decides about what was missed
            Its schedule rests at 2026-01-05 03:00 UTC; what has passed since is recorded when the pause ends.",
    ),
    (
        "all jobs paused, nothing missed yet",
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            all-paused since=05T11:00 by=ben",
        "
            Everything has been paused since 2026-01-05 11:00 UTC, by ben: no run starts automatically until it is resumed.
            > `cronhold resume all` ends the pause; `catch_up` decides about what was missed
            Its schedule would start it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "no live node",
        "
            schedule spec: 0 3 * * *
            cursor last=04T03:00 next=05T03:00
            node beat=04T20:00",
        "
            No node is running: the last heartbeat, from `web-1`, was at 2026-01-04 20:00 UTC, 16h ago.
            > `cronhold up` starts a node; `catch_up` decides about what was missed
            Its schedule was due at 2026-01-05 03:00 UTC, 9h ago, and no node has claimed that yet.",
    ),
    (
        "due because of its jitter, with a live node",
        "
            schedule spec: 0 3 * * *
            cursor last=04T03:00 next=05T03:00 wake=05T03:04
            node beat=05T11:59:58",
        "
            Its schedule was due at 2026-01-05 03:00 UTC plus 4m of jitter, 8h56m ago, and no node has claimed that yet.",
    ),
    (
        "labels that no node has",
        "
            job nodes=gpu,eu
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            node beat=05T11:59:58 labels=eu
            run n=1 asked at=05T11:00 log=waiting@05T11:00/anna due=05T12:00:30",
        "
            No live node may start it: it requires the labels `eu` and `gpu`.
            > give a node these labels, or change `nodes` in the job
            `backup#1` has waited since 2026-01-05 11:00 UTC: no live node may start it.
            > `cronhold nodes` shows the nodes
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "draining",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            node beat=05T11:59:58 draining",
        "
            No node starts runs: all live nodes are draining.
            > `cronhold nodes` shows them
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "no schedule",
        "
            job overlap=skip",
        "
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
    (
        "disabled",
        "
            schedule disabled spec: 0 3 * * *",
        "
            Its schedule is disabled.
            > `enabled: true` in the job enables it",
    ),
    (
        "unknown zone",
        "
            schedule zone=Europe/Berln spec: 0 3 * * *
            cursor next=06T03:00",
        "
            Its schedule cannot be used: `timezone`: there is no time zone `Europe/Berln`.
            > did you mean `Europe/Berlin`?",
    ),
    (
        "never by time",
        "
            schedule spec: triggered",
        "
            Its schedule never starts it by time.",
    ),
    (
        "at start",
        "
            schedule spec: @reboot
            cursor at_start",
        "
            Its schedule starts it whenever a node starts.",
    ),
    (
        "over",
        "
            schedule spec: 0 3 5 1 * 2026
            cursor last=05T03:00",
        "
            Its schedule has no occurrence any more; the last one was at 2026-01-05 03:00 UTC.",
    ),
    (
        "never",
        "
            schedule spec: 0 3 30 2 *
            cursor",
        "
            Its schedule has no occurrence and never starts it.",
    ),
    (
        "no cursor",
        "
            schedule spec: 0 3 * * *",
        "
            Its schedule is enabled and has no cursor, so nothing claims its occurrences. This is a defect of Cronhold, not of the job.
            > please report it with the output of `cronhold doctor`; `cronhold run backup` runs the job now",
    ),
    (
        "two schedules, named and not",
        "
            schedule name=nightly spec: 0 3 * * *
            schedule spec: @every 15m
            cursor of=0 next=06T03:00
            cursor of=1 next=05T12:15",
        "
            The schedule `nightly` starts it next at 2026-01-06 03:00 UTC, in 15h.
            The schedule `@every 15m` starts it next at 2026-01-05 12:15 UTC, in 15m.",
    ),
    (
        "running, and the schedule counts from it",
        "
            schedule spec: with 10m interval
            cursor follows=2
            node beat=05T12:00
            state active=2
            run n=2 at=05T11:50 owned due=05T12:50 log=waiting@05T11:50,starting@05T11:50,running@05T11:50:01",
        "
            `backup#2` has been running since 2026-01-05 11:50:01 UTC, for 9m59s on `web-1`; it may run until 2026-01-05 12:50 UTC.
            Its schedule counts from the end of `backup#2`, which has not ended.",
    ),
    (
        "starting, on an unknown node",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state active=2
            run n=2 at=05T11:59 owned log=waiting@05T11:59,starting@05T11:59:59",
        "
            `backup#2` has been starting since 2026-01-05 11:59:59 UTC on node 00000000000000000000000000000001.
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "stopping",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state active=2
            run n=2 at=05T03:00 due=05T12:00:30 log=waiting@05T03:00,starting@05T03:00,running@05T03:00,stopping@05T11:59:30/limit ending: timeout",
        "
            `backup#2` has been stopping since 2026-01-05 11:59:30 UTC, because it exceeded its timeout; it is killed at 2026-01-05 12:00:30 UTC.
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "queue",
        "
            job overlap=queue
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state active=2 queue=3,4,5
            run n=2 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,running@05T03:00
            run n=5 asked at=05T11:30 due=05T12:00:30 log=waiting@05T11:30/anna
            run n=4 asked at=05T11:20 due=05T12:00:30 log=waiting@05T11:20/anna
            run n=3 asked at=05T11:10 due=05T12:00:30 log=waiting@05T11:10/anna",
        "
            `backup#2` has been running since 2026-01-05 03:00 UTC, for 9h.
            `backup#3` has waited since 2026-01-05 11:10 UTC: `backup#2` has not ended.
            > `cronhold start backup#3` starts it anyway
            `backup#4` has waited since 2026-01-05 11:20 UTC: `backup#3` is before it in the queue.
            > `cronhold start backup#4` starts it anyway
            `backup#5` has waited since 2026-01-05 11:30 UTC: 2 runs are before it in the queue, the last of them `backup#4`.
            > `cronhold start backup#5` starts it anyway
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "lock held by another job",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            lock name=disk holder=9
            run job=other n=9 asked at=05T10:00 lock=disk log=waiting@05T10:00,starting@05T10:00,running@05T10:00
            run n=3 at=05T03:00 lock=disk log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: its lock `disk` is held by `other#9`.
            > it starts when `other#9` ends; `cronhold stop other#9` ends it
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "lock held by a foreign node",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            lock name=disk holder=9
            run n=3 at=05T03:00 lock=disk log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: its lock `disk` is held by a foreign node.
            > it starts when that run ends; `cronhold runs --peers` shows the runs of foreign nodes
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "lock held by a foreign run of the same job",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            lock name=disk holder=9
            foreign host=draco at=05T02:00 running
            run n=3 at=05T03:00 lock=disk log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: its lock `disk` is held by a foreign node: Elsewhere runs `backup` on draco.
            > it starts when that run ends; `cronhold runs --peers` shows the runs of foreign nodes
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "lock held by a foreign run of another job",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            lock name=disk holder=9
            foreign host=draco at=05T02:00
            run n=3 at=05T03:00 lock=disk log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: its lock `disk` is held by a foreign node.
            > it starts when that run ends; `cronhold runs --peers` shows the runs of foreign nodes
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "conditions",
        "
            job needs=/data/ready
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            run n=3 at=05T03:00 due=05T12:00:30 log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: it needs the file `/data/ready`.
            > `cronhold start backup#3` starts it anyway
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "conditions that were checked",
        "
            job needs=/data/ready
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            run n=3 at=05T03:00 due=05T12:00:30 absent=/data/ready log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC: it waits for the file `/data/ready` (does not exist, checked 2026-01-05T03:00:00Z).
            > `cronhold start backup#3` starts it anyway
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "nothing blocks it",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            state queue=3
            run n=3 at=05T03:00 due=05T12:00:30 log=waiting@05T03:00",
        "
            `backup#3` has waited since 2026-01-05 03:00 UTC; nothing is known to block it, and it is checked again at 2026-01-05 12:00:30 UTC.
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "retry, paused",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            paused since=05T11:00
            state active=3
            run n=2 at=05T03:00 retried_by=3 log=waiting@05T03:00,starting@05T03:00,running@05T03:00,failure@05T11:50 reason: exit code 1
            run n=3 at=05T03:00 attempt=2 retry_of=2 due=05T12:10 log=scheduled@05T11:50",
        "
            `backup` has been paused since 2026-01-05 11:00 UTC, by anna: no run of it starts automatically until it is resumed.
            > `cronhold resume backup` ends the pause; `catch_up` decides about what was missed
            `backup#3` is attempt 2 of `backup#2` and waits for 2026-01-05 12:10 UTC: it does not start during the pause.
            > `cronhold start backup#3` starts it anyway
            Its last run, `backup#2`, started at 2026-01-05 03:00 UTC and failed after 8h50m, because its program ended with exit code 1; `backup#3` retries it.
            Its schedule would start it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "for a later time",
        "
            schedule spec: 0 3 * * *
            cursor next=06T03:00
            run n=3 asked at=05T18:00 due=05T18:00 log=scheduled@05T11:50/anna",
        "
            `backup#3` waits for 2026-01-05 18:00 UTC.
            Its schedule starts it next at 2026-01-06 03:00 UTC, in 15h.",
    ),
    (
        "catching up",
        "
            schedule spec: @every 1h
            cursor last=05T12:00 next=05T13:00
            backlog from=05T02:00 position=05T05:00 to=05T11:00 count=10",
        "
            What was missed is being caught up: 7 of 10 occurrences to go, from 2026-01-05 05:00 UTC to 2026-01-05 11:00 UTC.
            Its schedule starts it next at 2026-01-05 13:00 UTC, in 1h.",
    ),
    (
        "removed",
        "
            gone
            schedule spec: 0 3 * * *
            run n=3 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,running@05T03:00",
        "
            There is no job `backup`.
            > `cronhold list` shows the jobs
            `backup#3` has been running since 2026-01-05 03:00 UTC, for 9h.",
    ),
];
