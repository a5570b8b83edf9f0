//! Explanations that involve several nodes. Each case has a name, the requested time, the scene and the expected text.

use super::assert_explanation;
use super::scene::{scene, time};

#[test]
fn explains_what_nodes_do_with_a_run() {
    for (about, at, text, expected) in SCENES {
        assert_explanation(about, &scene(text), at.map(time), expected);
    }
}

/// With many nodes the explanation stays short.
#[test]
fn runs_on_many_nodes_are_counted() {
    let run =
        |n| format!("run n={n} target={n} at=05T03:00 log=waiting@05T03:00,starting@05T03:00,success@05T03:00:09\n");
    let runs: String = (1..=23).map(run).collect();
    let known = scene(&format!("job each\nschedule spec: 0 3 * * *\ncursor last=05T03:00 next=06T03:00\n{runs}"));
    let world = super::scene::world();
    let why = super::why(&super::id(), &known, &world, time("05T12:00"), Some(time("05T03:00")));
    let lines: Vec<String> = why.words(&known, &world).iter().map(ToString::to_string).collect();
    assert_eq!(lines.iter().filter(|line| line.contains("became")).count(), 20);
    assert_eq!(lines[lines.len() - 2], "3 more runs are for it on other nodes.");
}

type Scene = (&'static str, Option<&'static str>, &'static str, &'static str);

const SCENES: &[Scene] = &[
    (
        "a keeper that fails on every node",
        None,
        "
            job shell
            node id=1 beat=05T12:00 keeper=silent
            node id=2 beat=05T12:00 draining
            run n=1 asked owned at=05T11:59 due=05T12:01 log=waiting@05T11:59,starting@05T11:59
            run n=2 asked at=05T11:59 due=05T12:01 log=waiting@05T11:59
            state queue=2 active=1",
        "
            No live node can start it: the keeper of `web-1` fails (silent).
            > it goes on when the keeper works again; `keeper/log` in the data directory has its log
            `backup#1` has been starting since 2026-01-05 11:59 UTC on `web-1`: it waits for the keeper of `web-1`, which fails (silent).
            > it goes on when the keeper works again; `keeper/log` in the data directory has its log
            `backup#2` has waited since 2026-01-05 11:59 UTC: no live node may start it.
            > `cronhold nodes` shows the nodes
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
    (
        "a run that waits for its node",
        None,
        "
            job each
            node id=1 beat=05T12:00
            node id=2 beat=05T11:59
            node id=3 beat=05T12:00 draining
            run n=1 asked target=1 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            run n=2 asked target=2 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            run n=3 asked target=3 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            run n=4 asked target=9 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            state queue=1,2,3,4",
        "
            `backup#1` has waited since 2026-01-05 11:59 UTC for `web-1`; nothing is known to block it, and it is checked again at 2026-01-05 12:01 UTC.
            `backup#2` has waited since 2026-01-05 11:59 UTC for `web-2`: only `web-2` may start it, which is not running.
            > it is skipped when its node does not return within a minute; `cronhold nodes` shows the nodes
            `backup#3` has waited since 2026-01-05 11:59 UTC for `web-3`: only `web-3` may start it, which is being drained.
            > it starts when the drain of the node ends; `cronhold nodes` shows the nodes
            `backup#4` has waited since 2026-01-05 11:59 UTC for node 00000000000000000000000000000009: only node 00000000000000000000000000000009 may start it, which is not running.
            > it is skipped when its node does not return within a minute; `cronhold nodes` shows the nodes
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
    (
        "a node that no longer has the labels, and separate queues per node",
        None,
        "
            job each=gpu overlap=queue
            node id=1 beat=05T12:00 labels=gpu
            node id=2 beat=05T12:00
            run n=1 asked owned target=1 at=05T11:00 log=waiting@05T11:00,starting@05T11:00,running@05T11:00
            run n=2 asked target=2 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            run n=3 asked target=1 at=05T11:59 due=05T12:01 log=waiting@05T11:59
            state active=1 queue=2,3",
        "
            `backup#1` has been running since 2026-01-05 11:00 UTC, for 1h on `web-1`.
            `backup#2` has waited since 2026-01-05 11:59 UTC for `web-2`: only `web-2` may start it, which does not have the labels any more.
            > it is skipped within a minute; `cronhold nodes` shows the nodes
            `backup#3` has waited since 2026-01-05 11:59 UTC for `web-1`: `backup#1` has not ended.
            > `cronhold start backup#3` starts it anyway
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
    (
        "a program on a node without heartbeats",
        None,
        "
            job overlap=skip
            node id=1 beat=05T11:59:30
            node id=2 beat=05T12:00
            run n=1 asked owned lease=45 at=05T11:00 log=waiting@05T11:00,starting@05T11:00,running@05T11:00",
        "
            `backup#1` has been running since 2026-01-05 11:00 UTC, for 1h on `web-1`; the last heartbeat of its node was at 2026-01-05 11:59:30 UTC, and 45s500ms later it is lost, by when its program has been ended.
            `backup` has no schedule: it runs only when it is started explicitly.
            > `cronhold run backup` starts it",
    ),
    (
        "an occurrence on each node",
        Some("05T03:00"),
        "
            job each
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            node id=1 beat=05T12:00
            node id=2 beat=05T12:00
            run n=1 target=2 at=05T03:00 log=waiting@05T03:00,skipped@05T03:01/watchdog reason: no eligible node
            run n=2 target=1 at=05T03:00 log=waiting@05T03:00,starting@05T03:00,success@05T03:00:09",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#2` on `web-1`, which started at 2026-01-05 03:00 UTC and succeeded after 9s.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:09.000 +00:00  success, by its program
            The occurrence at 2026-01-05 03:00 UTC became `backup#1` on `web-2`, which did not start, because no live node was allowed to run it.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:01:00.000 +00:00  skipped, by the watchdog
            > `cronhold nodes` shows the nodes and their labels; `nodes` in the job requires some",
    ),
    (
        "lost with its node, with a late result",
        Some("05T03:00"),
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 owned at=05T03:00 log=waiting@05T03:00,starting@05T03:00,running@05T03:00,error@05T03:05/watchdog,error@05T04:00/program/late/its_program_ended_later:_success reason: node lost",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00 UTC and ended in error after 5m, because its node sent no more heartbeats while it ran, and its result was unknown; at 2026-01-05 04:00 UTC its node reported that its program ended later: success.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  running, by its schedule
            - 2026-01-05 03:05:00.000 +00:00  error, by the watchdog
            - 2026-01-05 04:00:00.000 +00:00  error, by its program: its program ended later: success
            > `cronhold rerun backup#1` runs it again",
    ),
    (
        "its lock was lost, and the next start is unknown",
        Some("05T03:00"),
        "
            schedule spec: 0 3 * * *
            cursor last=05T03:00 next=06T03:00
            run n=1 owned at=05T03:00 retried_by=2 log=waiting@05T03:00,starting@05T03:00,failure@05T03:05 reason: lock lost
            run n=2 owned at=05T03:00 attempt=2 log=scheduled@05T03:05,starting@05T03:06,error@05T03:08/watchdog reason: start unknown",
        "
            The occurrence at 2026-01-05 03:00 UTC became `backup#1`, which started at 2026-01-05 03:00 UTC and failed after 5m, because its lock could not be renewed, and another run could have taken it; `backup#2` retries it.
            - 2026-01-05 03:00:00.000 +00:00  waiting, by its schedule
            - 2026-01-05 03:00:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:05:00.000 +00:00  failure, by its program
            Attempt 2, `backup#2`, started at 2026-01-05 03:06 UTC and ended in error after 2m, because its node was lost while it was being started, and it is unknown whether its program ran.
            - 2026-01-05 03:05:00.000 +00:00  scheduled, by its retry policy
            - 2026-01-05 03:06:00.000 +00:00  starting, by its schedule
            - 2026-01-05 03:08:00.000 +00:00  error, by the watchdog
            > check whether it ran, then `cronhold rerun backup#2` runs it again; `on_lost: retry` does so automatically",
    ),
];
