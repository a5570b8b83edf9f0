//! Failures other than a crash: a daemon that is suspended and continues, and a store that has lost its last seconds.

use std::fs;

use cronhold_core::State;
use cronhold_schedule::Span;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use super::outcome;
use super::points::Loses;
use super::processes::eventually;
use super::sandbox::{Sandbox, Stored};
use super::scenario::wait_until_idle;
use super::workload::{Traces, Workload};

/// Seconds for which the daemon is suspended. Some occurrences of each job are due in that time.
const SUSPENDED_SECONDS: i64 = 3;
/// The files of a store.
const FILES: [&str; 3] = ["cronhold.db", "cronhold.db-wal", "cronhold.db-shm"];

/// Seconds of the monotonic clock.
fn seconds() -> i64 {
    clock_gettime(ClockId::Monotonic).tv_sec
}

fn sandbox(name: &str, workload: Workload) -> Sandbox {
    let sandbox = Sandbox::new(name);
    workload.jobs(sandbox.dir(), false).into_iter().for_each(|(id, yaml)| sandbox.put_job(id, &yaml));
    sandbox
}

fn successes(stored: &Stored) -> usize {
    stored.runs().iter().filter(|run| run.state == State::Success).count()
}

/// Programs continue while the daemon is suspended. Occurrences that were due in that time are late.
#[test]
fn suspended_daemon_continues_without_loss() {
    let sandbox = sandbox("stands-still", Workload::Locked);
    let daemon = sandbox.start(None);
    sandbox.wait_until_ready(&daemon);
    eventually("a program runs", || Traces::read(sandbox.dir()).starts() > 0);
    daemon.send(Signal::STOP);
    let begin = seconds();
    eventually("some time has passed", || seconds() - begin >= SUSPENDED_SECONDS);
    daemon.send(Signal::CONT);
    wait_until_idle(&sandbox, Workload::Locked);
    outcome::assert_right("a suspended daemon", Loses::Nothing, Workload::Locked, &sandbox);
    sandbox.done(&["holes"]);
    daemon.stop();
}

/// Lost occurrences are claimed again as the same runs. The keeper knows these runs, so no program runs twice.
#[test]
fn older_store_copy_starts_no_program_twice() {
    let sandbox = sandbox("lost-seconds", Workload::Ticks);
    let (home, kept) = (sandbox.home(), sandbox.dir().join("kept"));
    fs::create_dir(&kept).expect("a directory");
    let daemon = sandbox.start(None);
    sandbox.wait_until_ready(&daemon);
    eventually("there is something to keep", || successes(&sandbox.stored()) >= 1);
    drop(daemon);
    FILES.iter().for_each(|file| drop(fs::copy(home.join(file), kept.join(file))));
    let before = successes(&sandbox.stored());
    let daemon = sandbox.start(None);
    sandbox.wait_until_ready(&daemon);
    eventually("there is something to lose", || successes(&sandbox.stored()) >= before + 2);
    drop(daemon);
    let last = sandbox.stored().runs().iter().map(|run| run.nominal).max().expect("there are some");
    for file in FILES {
        let _ = fs::remove_file(home.join(file));
        let _ = fs::copy(kept.join(file), home.join(file));
    }
    let daemon = sandbox.start(None);
    sandbox.wait_until_ready(&daemon);
    eventually("later occurrences have run", || {
        let is_new = |at| at > last.plus(Span::from_millis(1));
        sandbox.stored().runs().iter().any(|run| is_new(run.nominal) && run.state == State::Success)
    });
    // No run starts from here on, and all started runs finish.
    wait_until_idle(&sandbox, Workload::Ticks);
    let (stored, traces) = (sandbox.stored(), Traces::read(sandbox.dir()));
    let mut refused = 0;
    for run in stored.runs() {
        let (starts, _) = traces.of(&run);
        assert_eq!(starts, 1, "{}#{} ran {starts} times: {:?}", run.job, run.number.0, run.log);
        let reason = run.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        refused += usize::from(reason.starts_with("not launched: the run is known already"));
    }
    assert!(refused >= 2, "only {refused} were claimed twice");
    sandbox.done(&["holes"]);
    daemon.stop();
}
