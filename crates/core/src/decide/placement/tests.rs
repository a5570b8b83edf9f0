//! Jobs that run on each node, labels and draining, as scripts. `#1@2` is a run that only node 2 may start.

use std::sync::Arc;

use super::NODES_MAX;
use crate::decide::testing::{DecisionBench, instant, play};
use crate::record::{Cursor, Record, RecordKey};
use crate::run::State;

#[test]
fn nodes_each_creates_a_run_on_each_node() {
    let bench = play(
        "00:00 there 1 2 3:draining 4:old
        00:00 put j @every 10m; each; overlap skip
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, #3@4 00:10 waiting, next 00:20
        00:10 wake #2
            (wake #2 00:11), unchanged
        00:10 node 2.1
        00:10 wake #2
            #2@2 00:10 starting
        00:10 wake #3
            (wake #3 00:11), unchanged
        00:11 ended #2 yes
            #2@2 00:10 success
        00:12 node 4.1
        00:12 wake #3
            #3@4 00:10 starting
        00:20 node 2.1
        00:20 due
            #4@2 00:20 starting, #5@1 00:20 skipped: overlap, #6@4 00:20 skipped: overlap, next 00:30",
    );
    let owners: Vec<_> = bench.runs().filter_map(|run| Some((run.number.0, run.owner?.node.bits()))).collect();
    assert!([(1, 1), (2, 2), (3, 4), (4, 2)].iter().all(|pair| owners.contains(pair)), "{owners:?}");
}

/// The node knows no other nodes, so it is the only target.
#[test]
fn nodes_each_with_one_node_creates_one_run() {
    play(
        "00:00 put j @every 10m; each; catch_up all
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, next 00:20
        00:10 ended #1 no
            #1@1 00:10 failure: exit code 1
        00:35 due
            next 00:40, backlog 00:20–00:30 of 2
        00:35 catch up
            #2@1 00:20 starting, backlog 00:30–00:30 of 2",
    );
}

/// A node whose keeper fails counts as absent: other nodes take its share, and without them the occurrence rests.
#[test]
fn node_without_keeper_leaves_occurrences_to_others() {
    play(
        "00:00 there 1:no-keeper 2
        00:00 node 1.1
        00:00 put j @every 10m
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:10 run j
            #1 00:10 waiting, → #1
        00:10 start #1
            ! this node cannot start programs: it does not reply
        00:10 node 2.1
        00:10 wake #1
            #1 00:10 starting",
    );
}

/// On the only node, occurrences wait for the keeper and then follow the catch-up policy, as after a restart.
#[test]
fn occurrences_rest_while_no_keeper_works() {
    play(
        "00:00 there 1:no-keeper
        00:00 node 1.1
        00:00 put j @every 10m; catch_up all 1h
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:11:30 due
            (plan 00:10 at 00:12:30)
        00:25 due
            (plan 00:10 at 00:26)
        00:25 run j
            #1 00:25 waiting, → #1
        00:25 there 1
        00:25 node 1.1
        00:25 wake #1
            #1 00:25 starting
        00:25 due
            next 00:30, backlog 00:10–00:20 of 2",
    );
}

/// A node without the labels does not skip an occurrence that waits for the keeper of a node that has them.
#[test]
fn occurrence_waits_for_the_keeper_of_another_node() {
    play(
        "00:00 there 1 2:gpu,no-keeper
        00:00 node 1.1
        00:00 put j @every 10m; nodes gpu
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:11:30 due
            (plan 00:10 at 00:12:30)
        00:11:40 there 1 2:old
        00:11:40 node 1.1
        00:11:40 due
            #1 00:10 skipped: no eligible node, next 00:20",
    );
}

#[test]
fn nodes_each_without_eligible_node_is_skipped() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each gpu
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:11 due
            #1 00:10 skipped: no eligible node, next 00:20",
    );
    // An ineligible node first leaves the claim to eligible ones, then creates their runs.
    play(
        "00:00 there 1 2:gpu 3:gpu
        00:00 put j @every 10m; each gpu
            next 00:10, job r1
        00:10 due
            (plan 00:10 at 00:11)
        00:11:01 due
            #1@2 00:10 waiting, #2@3 00:10 waiting, next 00:20",
    );
}

/// Node 1 does not know yet that node 2 has joined. It must not postpone a run that node 2 may start.
#[test]
fn run_for_a_node_that_has_just_joined_is_not_postponed() {
    let created = "00:00 there 1
        00:00 put j @never; nodes gpu
            no next, job r1
        00:00 run j at=00:10
            #1 00:10 scheduled, → #1
        00:10 wake #1
            (wake #1 00:10:10), unchanged";
    play(&format!(
        "{created}
        00:10:01 there 1 2:gpu
        00:10:01 node 2.1
        00:10:01 wake #1
            #1 00:10 starting",
    ));
    play(&format!(
        "{created}
        00:10:10 wake #1
            #1 00:10 waiting",
    ));
}

/// A node that is absent for a moment keeps its run. If it stays absent, the run is skipped.
#[test]
fn waiting_run_is_skipped_when_its_target_is_gone() {
    play(
        "00:00 there 1 2 3
        00:00 put j @every 10m; each; overlap queue
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, #3@3 00:10 waiting, next 00:20
        00:10 beat 2
        00:10:20 there 1 3
        00:10:20 wake #2
            (wake #2 00:11), unchanged
        00:10:50 beat 2
        00:11 wake #2
            (wake #2 00:11:50), unchanged
        00:11 wake #3
            (wake #3 00:12), unchanged
        00:11:50 wake #2
            #2@2 00:10 skipped: no eligible node
        00:12 node 2.2
        00:12 wake #2
            unchanged",
    );
}

#[test]
fn target_that_lost_its_labels_skips_its_run() {
    play(
        "00:00 there 1:gpu 2:gpu
        00:00 put j @every 10m; each gpu
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:10:30 there 1:gpu 2
        00:10:30 node 2.2
        00:10:30 wake #2
            (wake #2 00:11), unchanged
        00:11 wake #2
            #2@2 00:10 skipped: no eligible node",
    );
}

/// An outcome that is the same on all nodes is one record, as for any other job.
#[test]
fn occurrence_skipped_on_all_nodes_is_one_skip() {
    let mut bench = play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; overlap skip
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:10 node 2.1
        00:10 wake #2
            #2@2 00:10 starting
        00:20 due
            #3 00:20 skipped: overlap, next 00:30
        00:30 due
            #4 00:30 skipped: overlap, next 00:40",
    );
    // Nodes that join later get no run, even if the cursor is moved back to the occurrence.
    bench.happens("there 1 2 3");
    let key = bench.records.keys().find(|key| matches!(key, RecordKey::Cursor(..))).expect("a cursor").clone();
    let stored = bench.records.get_mut(&key).expect("a cursor");
    let Record::Cursor(cursor) = &stored.record else { panic!("{key}") };
    let back = Cursor { last: None, next: Some(instant("00:10")), wake: Some(instant("00:10")), ..(**cursor).clone() };
    stored.record = Record::Cursor(Arc::new(back));
    bench.now = instant("00:10:30");
    assert_eq!(bench.happens("due"), ["next 00:20"]);
    bench.now = instant("00:20:30");
    assert_eq!(bench.happens("due"), ["next 00:30"]);
}

/// The maximum keeps a claim small, however many nodes there are.
#[test]
fn nodes_above_the_maximum_get_no_run() {
    let mut bench = DecisionBench::new();
    let names: Vec<String> = (1..=NODES_MAX + 9).map(|number| number.to_string()).collect();
    bench.happens(&format!("there {}", names.join(" ")));
    bench.happens("node 260.1");
    bench.happens("put j @every 10m; each");
    bench.now = instant("00:10");
    bench.happens("due");
    let mut nodes: Vec<u128> = bench.runs().filter_map(|run| run.target).map(|node| node.bits()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, (1..=NODES_MAX as u128).collect::<Vec<_>>());
    assert!(bench.runs().all(|run| run.state == State::Waiting));
}

/// Each node has its own sequence of runs, independent of other nodes.
#[test]
fn overlap_applies_per_node() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; overlap queue 1
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:20 due
            #3@1 00:20 waiting, #4@2 00:20 skipped: queue full, next 00:30
        00:21 node 2.1
        00:21 wake #2
            #2@2 00:10 starting
        00:22 ended #2 yes
            #2@2 00:10 success
        00:30 due
            #5@2 00:30 starting, #6@1 00:30 skipped: queue full, next 00:40
        00:31 node 1.1
        00:31 ended #1 yes
            #1@1 00:10 success
        00:31 wake #3
            #3@1 00:20 starting",
    );
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; overlap replace
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:11 ended #1 yes
            #1@1 00:10 success
        00:20 due
            #2@2 00:10 skipped: replaced, #3@1 00:20 starting, #4@2 00:20 waiting, next 00:30
        00:20 node 2.1
        00:20 wake #4
            #4@2 00:20 starting
        00:30 node 1.1
        00:30 due
            #3@1 00:20 stopping (replaced), #4@2 00:20 stopping (replaced), #5@1 00:30 waiting, #6@2 00:30 waiting, next 00:40",
    );
}

#[test]
fn locks_and_limits_apply_across_nodes() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; overlap skip; lock
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:10 node 2.1
        00:10 wake #2
            #2@2 00:10 waiting
        00:10 node 1.1
        00:12 ended #1 yes
            #1@1 00:10 success
        00:12 node 2.1
        00:12 wake #2
            #2@2 00:10 starting",
    );
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; needs max_running 1
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:10 node 2.1
        00:10 wake #2
            #2@2 00:10 waiting",
    );
    // Runs of other nodes do not count as duplicates.
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; overlap allow; needs skip_duplicate
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, next 00:20
        00:10 node 2.1
        00:10 wake #2
            #2@2 00:10 starting
        00:20 due
            #3@2 00:20 skipped: duplicate, #4@1 00:20 waiting, next 00:30",
    );
}

#[test]
fn retries_and_reruns_keep_their_target() {
    play(
        "00:00 there 1 2
        00:00 put j @every 1h; each; overlap skip; retry 2
            next 01:00, job r1
        01:00 due
            #1@1 01:00 starting, #2@2 01:00 waiting, next 02:00
        01:00 ended #1 no
            #1@1 01:00 failure: exit code 1, #3@1 01:00 attempt 2 scheduled
        01:00 node 2.1
        01:00 wake #2
            #2@2 01:00 starting
        01:00 ended #2 no
            #2@2 01:00 failure: exit code 1, #4@2 01:00 attempt 2 scheduled
        01:05 wake #3
            (wake #3 01:06), unchanged
        01:05 wake #4
            #4@2 01:00 attempt 2 starting
        01:06 rerun #1
            #5@1 01:00 skipped: overlap, → #5
        01:06 node 1.1
        01:06 wake #3
            #3@1 01:00 attempt 2 starting
        01:07 ended #3 yes
            #3@1 01:00 attempt 2 success
        01:08 node 2.1
        01:08 rerun #1
            #6@1 01:00 waiting, → #6
        01:08 start #6
            ! only node 00000000000000000000000000000001 may start this run
        01:08 node 1.1
        01:08 start #6
            #6@1 01:00 starting",
    );
}

#[test]
fn manual_run_targets_the_node_that_received_it() {
    play(
        "00:00 there 1:gpu 2:gpu 3
        00:00 put j each gpu; overlap skip
            job r1
        00:01 run j
            #1@1 00:01 starting, → #1
        00:02 node 2.1
        00:02 run j
            #2@2 00:02 starting, → #2
        00:03 node 3.1
        00:03 run j
            ! this node does not have the labels that `j` requires
        00:04 node 2.1
        00:04 run j at=00:30
            #3@2 00:30 scheduled, → #3
        00:05 node 1.1
        00:05 start #3
            #3@2 00:30 waiting
        00:06 drained on
        00:06 run j
            ! this node is draining and does not start runs",
    );
}

/// A node that drains, and a command without a node, start nothing. What happens to a new run is the same everywhere.
#[test]
fn run_that_cannot_start_here_is_skipped_as_on_any_node() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m
            next 00:10, job r1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 launched #1
            #1 00:01 running
        00:03 drained on
        00:03 run j
            #2 00:03 skipped: overlap, → #2
        00:04 ended #1 yes
            #1 00:01 success
        00:05 run j
            #3 00:05 waiting, → #3",
    );
}

#[test]
fn change_from_each_to_any_node_leaves_no_waiting_run() {
    play(
        "00:00 there 1 2
        00:00 put j @every 1h; each; overlap queue
            next 01:00, job r1
        01:00 due
            #1@1 01:00 starting, #2@2 01:00 waiting, next 02:00
        01:01 put j @every 1h; overlap queue
            job r2, (wake #2 01:01), (wake #1 01:01)
        01:01 node 2.1
        01:01 wake #2
            #2@2 01:00 waiting
        01:02 node 1.1
        01:02 ended #1 yes
            #1@1 01:00 success
        01:02 node 2.1
        01:02 wake #2
            #2@2 01:00 starting
        02:00 due
            #3 02:00 waiting, next 03:00
        02:01 put j @every 1h; each; overlap queue
            job r3, (wake #3 02:01), (wake #2 02:01)
        02:02 ended #2 yes
            #2@2 01:00 success
        02:02 wake #3
            #3 02:00 starting
        03:00 due
            #4@2 03:00 waiting, #5@1 03:00 waiting, next 04:00
        03:01 ended #3 yes
            #3 02:00 success
        03:01 wake #4
            #4@2 03:00 starting",
    );
}

/// `@reboot` has an occurrence only on the node that started. After-previous schedules count per node.
#[test]
fn nodes_each_works_with_reboot_and_after_previous() {
    play(
        "00:00 there 1 2
        00:00 put j with 10m interval; each; overlap skip
            next 00:10, job r1
        00:10 due
            #1@1 00:10 starting, #2@2 00:10 waiting, follows its run
        00:15 ended #1 yes
            #1@1 00:10 success, next 00:25
        00:25 due
            #3@1 00:25 starting, #4@2 00:25 waiting, follows its run",
    );
    play(
        "00:00 there 1 2
        00:00 put j a: @reboot; each
            a at start, job r1
        00:01 fire j a 00:01
            #1@1 00:01 starting
        00:01 fire j a 00:01
            nothing
        00:02 node 2.2
        00:02 fire j a 00:02
            #2@2 00:02 starting",
    );
}

/// The next backlogged occurrence starts after all nodes have started the previous one.
#[test]
fn backlog_of_nodes_each_waits_for_all_nodes() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; each; catch_up all; overlap allow
            next 00:10, job r1
        00:35 due
            next 00:40, backlog 00:10–00:30 of 3
        00:35 catch up
            #1@1 00:10 starting, #2@2 00:10 waiting, backlog 00:20–00:30 of 3
        00:35 catch up
            (catch up 00:35:01)
        00:35 node 2.1
        00:35 wake #2
            #2@2 00:10 starting
        00:35 catch up
            #3@2 00:20 starting, #4@1 00:20 waiting, backlog 00:30–00:30 of 3",
    );
}

#[test]
fn draining_node_starts_nothing() {
    play(
        "00:00 there 1 2
        00:00 put j @every 10m; overlap queue
            next 00:10, job r1
        00:00 drain 1 on
            node 1 drains
        00:00 drain 1 on
            unchanged
        00:00 drain 9 on
            ! there is no node 00000000000000000000000000000009
        00:00 drained on
        00:05 run j
            #1 00:05 waiting, → #1
        00:05 start #1
            ! this node is draining and does not start runs
        00:10 due
            (plan 00:10 at 00:11)
        00:10 node 2.1
        00:10 wake #1
            #1 00:05 starting
        00:10 due
            #2 00:10 waiting, next 00:20
        00:10 drain 1 off
            node 1 starts things",
    );
}
