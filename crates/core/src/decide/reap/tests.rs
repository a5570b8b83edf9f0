//! Runs of lost nodes, late reports of their programs, expired leases and locks, as scripts.

use cronhold_schedule::Span;

use crate::decide::testing::{DecisionBench, instant, play};
use crate::decision::Effect;
use crate::policy::lease::{LEASE_DEFAULT, STALE_AFTER};
use crate::record::{LockState, Record, RecordKey, Transition};
use crate::run::State;

#[test]
fn run_of_a_lost_node_ends_in_error_and_is_retried() {
    play(
        "00:00 there 1 2
        00:00 put j overlap skip; lock; retry 2; retry_on_error
            job r1
        00:01 node 2.1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 launched #1
            #1 00:01 running
        00:02 beat 2
        00:03 node 1.1
        00:03 reap #1 00:02
            #1 00:01 error: node lost, #2 00:01 attempt 2 scheduled
        00:03 reap #1 00:02
            unchanged
        00:04 wake #2
            #2 00:01 attempt 2 starting",
    );
}

/// A node that sends a heartbeat in time keeps its runs, and no node declares its own runs lost.
#[test]
fn heartbeat_in_between_keeps_the_run() {
    play(
        "00:00 there 1 2
        00:00 put j overlap skip
            job r1
        00:01 node 2.1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 beat 2
        00:02 reap #1 00:02
            unchanged
        00:02 node 1.1
        00:02 reap #1 00:00
            unchanged
        00:03 beat 2
        00:03 reap #1 00:02
            unchanged
        00:04 reap #1 00:03
            #1 00:01 error: start unknown
        00:04 reap #0 00:03
            unchanged
        00:05 run j at=00:09
            #2 00:09 scheduled, → #2
        00:05 reap #2 00:03
            unchanged",
    );
}

#[test]
fn starting_and_stopping_runs_of_a_lost_node_end() {
    play(
        "00:00 there 1 2
        00:00 put j overlap allow; on_lost_retry
            job r1
        00:01 node 2.1
        00:01 run j
            #1 00:01 starting, → #1
        00:02 run j
            #2 00:02 starting, → #2
        00:02 launched #2
            #2 00:02 running
        00:03 stop #2
            #2 00:02 stopping (stopped)
        00:04 node 1.1
        00:04 reap #1 00:00
            #1 00:01 error: start unknown, #3 00:01 attempt 2 scheduled
        00:04 reap #2 00:00
            #2 00:02 failure: stopped",
    );
}

/// A schedule that counts from its previous run continues when that run is lost.
#[test]
fn after_previous_schedule_continues_after_a_lost_run() {
    play(
        "00:00 there 1 2
        00:00 put j with 10m interval
            next 00:10, job r1
        00:10 node 2.1
        00:10 due
            #1 00:10 starting, follows its run
        00:12 node 1.1
        00:12 reap #1 00:00
            #1 00:10 error: start unknown, next 00:22",
    );
}

#[test]
fn late_end_of_a_lost_run_is_noted_once() {
    let bench = play(
        "00:00 there 1 2
        00:00 put j overlap allow
            job r1
        00:01 node 2.1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 launched #1
            #1 00:01 running
        00:02 node 1.1
        00:02 reap #1 00:00
            #1 00:01 error: node lost
        00:03 ended #1 yes
            unchanged
        00:03 node 2.2
        00:03 launched #1
            unchanged
        00:04 ended #1 code 3
            #1 00:01 error: node lost
        00:05 ended #1 yes
            unchanged
        00:05 lost #1
            unchanged
        00:06 mark #1 success
            #1 00:01 success: by operator",
    );
    let run = bench.run(None, 1);
    let late: Vec<&Transition> = run.log.iter().filter(|entry| entry.is_late_result()).collect();
    assert!(matches!(late[..], [entry] if entry.message.ends_with("exit code 3")), "{late:?}");
    assert_eq!(run.finished(), Some(instant("00:02")));
}

/// A late program must end if it must run alone, or if a stop was requested.
#[test]
fn late_program_that_must_run_alone_is_stopped() {
    for (items, stop, is_stopped) in [
        ("overlap skip", "", true),
        ("overlap allow; lock", "", true),
        ("overlap allow; needs max_running 5", "", true),
        ("overlap allow", "", false),
        ("overlap allow", "stop #1", true),
    ] {
        let mut bench = DecisionBench::new();
        let happens = ["there 1 2", &format!("put j {items}"), "node 2.1", "run j", "launched #1", stop, "node 1.1"];
        happens.into_iter().filter(|what| !what.is_empty()).for_each(|what| drop(bench.happens(what)));
        bench.happens("reap #1 00:00");
        assert!(bench.run(None, 1).state.is_finished());
        bench.happens("node 2.2");
        bench.effects.clear();
        let said = bench.happens("launched #1");
        assert!(said[0].ends_with("unchanged"), "{said:?}");
        let stops = bench.effects.iter().any(|effect| matches!(effect, Effect::Stop { .. }));
        assert_eq!(stops, is_stopped, "{items} {stop}");
    }
}

#[test]
fn lost_lock_stops_its_program() {
    play(
        "00:00 there 1 2
        00:00 put j overlap allow; lock l; ttl 8s
            job r1
        00:00 put k overlap allow
            job r1
        00:01 run j
            j#1 00:01 starting, → #1
        00:01 launched j#1
            j#1 00:01 running
        00:02 expired l
        00:02 node 2.1
        00:02 lock-lost j#1
            unchanged
        00:02 run j
            j#2 00:02 starting, → #2
        00:02 node 1.1
        00:02 lock-lost j#1
            j#1 00:01 stopping (lock lost)
        00:02 lock-lost j#1
            unchanged
        00:03 ended j#1 no
            j#1 00:01 failure: lock lost
        00:03 lock-lost j#1
            unchanged
        00:04 run k
            k#1 00:04 starting, → #1
        00:04 lock-lost k#1
            unchanged
        00:05 run j
            j#3 00:05 waiting, → #3",
    );
}

fn lock_of(bench: &DecisionBench) -> Option<&LockState> {
    bench.records.values().find_map(|stored| match &stored.record {
        Record::Lock(lock) => Some(&**lock),
        _ => None,
    })
}

#[test]
fn leases_exist_only_on_shared_stores() {
    let ttl = Span::from_secs(8);
    for (world, items, lease) in [
        ("label none", "overlap skip; lock l; ttl 8s", None),
        ("shared", "overlap skip; lock l; ttl 8s", Some(ttl)),
        ("shared", "overlap skip", Some(LEASE_DEFAULT)),
        ("shared", "overlap skip; lease 90s", Some(Span::from_secs(90))),
        ("shared", "overlap allow; needs any max_running 3 | window 00:00 23:00", Some(LEASE_DEFAULT)),
        ("shared", "overlap allow; lease 90s", None),
        ("shared", "overlap allow", None),
    ] {
        let mut bench = DecisionBench::new();
        for what in [world, &format!("put j {items}; retry 2"), "run j"] {
            bench.happens(what);
        }
        let run = bench.run(None, 1);
        assert_eq!((run.state, run.terms.lease), (State::Starting, lease), "{world}: {items}");
        let until = lock_of(&bench).map(|lock| lock.until);
        assert_eq!(until, run.lock.as_ref().map(|_| lease.map(|lease| bench.now.plus(lease))), "{world}: {items}");

        // A retry uses the current job, and a rerun keeps the lease of the run that it repeats.
        bench.happens("put j overlap allow; lock l; ttl 8s; retry 2");
        bench.happens("ended #1 no");
        bench.happens("rerun #1");
        let on_shared = |lease| Some(lease).filter(|_| world == "shared");
        assert_eq!(bench.run(None, 2).terms.lease, on_shared(ttl), "{world}: {items}");
        assert_eq!(bench.run(None, 3).terms.lease, lease, "{world}: {items}");
    }
}

/// The original run was created while its node was alone on the store.
#[test]
fn rerun_gets_a_lease_once_the_store_is_shared() {
    let mut bench = DecisionBench::new();
    for what in ["put j overlap allow; lock", "run j", "ended #1 yes", "shared", "rerun #1"] {
        bench.happens(what);
    }
    assert_eq!(bench.run(None, 1).terms.lease, None);
    assert_eq!(bench.run(None, 2).terms.lease, Some(STALE_AFTER));
}

#[test]
fn node_acquires_and_releases_a_lock_of_its_own() {
    let mut bench = DecisionBench::new();
    bench.happens("hold files a");
    assert_eq!(lock_of(&bench).map(|lock| lock.until), Some(None));
    assert!(bench.happens("hold files b")[0].starts_with("! the lock `files` is held by run "));
    // Only the holder can release a lock.
    bench.happens("let-go files b");
    assert!(lock_of(&bench).is_some());
    bench.happens("let-go files a");
    assert_eq!(lock_of(&bench), None);
    bench.happens("shared");
    bench.happens("hold files b");
    let until = |bench: &DecisionBench| lock_of(bench).and_then(|lock| lock.until);
    assert_eq!(until(&bench), Some(bench.now.plus(Span::from_secs(10))));
    bench.now = instant("00:00:05");
    bench.happens("hold files b");
    assert_eq!(until(&bench), Some(instant("00:00:15")));
    assert!(bench.records.keys().all(|key| matches!(key, RecordKey::Lock(_))));
}

/// The task is not on the node that was lost, so another one follows it, with the same lock.
#[test]
fn remote_task_of_a_lost_node_is_taken_over() {
    let bench = play(
        "00:00 there 1 2
        00:00 put j overlap skip; lock; remote
            job r1
        00:01 node 2.1
        00:01 run j
            #1 00:01 starting, → #1
        00:01 launched #1
            #1 00:01 running
        00:01 task #1 {\"id\": 7}
            #1 00:01 running
        00:01 task #1 {\"id\": 8}
            unchanged
        00:02 beat 2
        00:03 node 1.1
        00:03 reap #1 00:02
            #1 00:01 running, (launch #1)
        00:03 reap #1 00:02
            unchanged
        00:04 node 2.1
        00:04 ended #1 yes
            unchanged
        00:05 node 1.1
        00:05 ended #1 yes
            #1 00:01 success",
    );
    let run = bench.run(None, 1);
    let state = run.service.as_ref().expect("it has a task");
    assert_eq!((state.task.as_deref(), run.owner), (Some("{\"id\": 7}"), Some(bench.me)));
    assert_eq!(state.poll.as_ref().map(|poll| poll.url.as_str()), Some("http://a.example/7"));
    assert_eq!(state.cancel.as_ref().map(|cancel| cancel.url.as_str()), Some("http://a.example/7/cancel"));
    assert_eq!(run.entered(State::Running), Some(instant("00:01")), "its timeout counts from its start");
}

/// Without a task it is unknown whether the service has started one; only `on_lost: retry` starts it again, with the
/// same id.
#[test]
fn start_of_a_remote_task_is_repeated_only_if_the_job_allows_it() {
    play(
        "00:00 there 1 2
        00:00 put once overlap allow; remote
            job r1
        00:00 put again overlap allow; remote; on_lost_retry
            job r1
        00:01 node 2.1
        00:01 run once
            once#1 00:01 starting, → #1
        00:01:30 run again
            again#1 00:01:30 starting, → #1
        00:01:30 launched again#1
            again#1 00:01:30 running
        00:02 beat 2
        00:03 node 1.1
        00:03 reap once#1 00:02
            once#1 00:01 error: start unknown
        00:03 reap again#1 00:02
            again#1 00:01:30 running, (launch #1)
        00:04 stop again#1
            again#1 00:01:30 stopping (stopped)
        00:05 beat 1
        00:06 node 2.2
        00:06 reap again#1 00:05
            again#1 00:01:30 failure: stopped",
    );
}

/// The lock may belong to another run by now, so the task cannot be followed in its name.
#[test]
fn remote_task_whose_lock_is_taken_is_lost() {
    play(
        "00:00 there 1 2
        00:00 put j overlap allow; lock red; remote
            job r1
        00:00 put k overlap allow; lock red
            job r1
        00:01 node 2.1
        00:01 run j
            j#1 00:01 starting, → #1
        00:01 launched j#1
            j#1 00:01 running
        00:01 task j#1 {\"id\": 7}
            j#1 00:01 running
        00:02 beat 2
        00:03 node 1.1
        00:03 expired red
        00:03 run k
            k#1 00:03 starting, → #1
        00:03 reap j#1 00:02
            j#1 00:01 error: node lost",
    );
}
