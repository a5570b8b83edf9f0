//! Failures other than a crash: a daemon that is suspended and continues, and a store that has lost its last seconds.

use std::fs;

use cronhold_core::State;
use cronhold_schedule::Span;
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use super::outcome;
use super::place::{Place, Stored};
use super::points::Loses;
use super::processes::eventually;
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

fn place(name: &str, workload: Workload) -> Place {
    let place = Place::new(name);
    workload.jobs(place.dir(), false).into_iter().for_each(|(id, yaml)| place.put_job(id, &yaml));
    place
}

fn successes(stored: &Stored) -> usize {
    stored.runs().iter().filter(|run| run.state == State::Success).count()
}

/// Programs continue while the daemon is suspended. Occurrences that were due in that time are late.
#[test]
fn suspended_daemon_continues_without_loss() {
    let place = place("stands-still", Workload::Locked);
    let daemon = place.start(None);
    place.wait_until_ready(&daemon);
    eventually("a program runs", || Traces::read(place.dir()).starts() > 0);
    daemon.send(Signal::STOP);
    let begin = seconds();
    eventually("some time has passed", || seconds() - begin >= SUSPENDED_SECONDS);
    daemon.send(Signal::CONT);
    wait_until_idle(&place, Workload::Locked);
    outcome::assert_right("a suspended daemon", Loses::Nothing, Workload::Locked, &place);
    place.done(&["holes"]);
    daemon.stop();
}

/// Lost occurrences are claimed again as the same runs. The keeper knows these runs, so no program runs twice.
#[test]
fn older_store_copy_starts_no_program_twice() {
    let place = place("lost-seconds", Workload::Ticks);
    let (home, kept) = (place.home(), place.dir().join("kept"));
    fs::create_dir(&kept).expect("a directory");
    let daemon = place.start(None);
    place.wait_until_ready(&daemon);
    eventually("there is something to keep", || successes(&place.stored()) >= 1);
    drop(daemon);
    FILES.iter().for_each(|file| drop(fs::copy(home.join(file), kept.join(file))));
    let before = successes(&place.stored());
    let daemon = place.start(None);
    place.wait_until_ready(&daemon);
    eventually("there is something to lose", || successes(&place.stored()) >= before + 2);
    drop(daemon);
    let last = place.stored().runs().iter().map(|run| run.nominal).max().expect("there are some");
    for file in FILES {
        let _ = fs::remove_file(home.join(file));
        let _ = fs::copy(kept.join(file), home.join(file));
    }
    let daemon = place.start(None);
    place.wait_until_ready(&daemon);
    eventually("later occurrences have run", || {
        let is_new = |at| at > last.plus(Span::from_millis(1));
        place.stored().runs().iter().any(|run| is_new(run.nominal) && run.state == State::Success)
    });
    // No run starts from here on, and all started runs finish.
    wait_until_idle(&place, Workload::Ticks);
    let (stored, traces) = (place.stored(), Traces::read(place.dir()));
    let mut refused = 0;
    for run in stored.runs() {
        let (starts, _) = traces.of(&run);
        assert_eq!(starts, 1, "{}#{} ran {starts} times: {:?}", run.job, run.number.0, run.log);
        let reason = run.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        refused += usize::from(reason.starts_with("not launched: the run is known already"));
    }
    assert!(refused >= 2, "only {refused} were claimed twice");
    place.done(&["holes"]);
    daemon.stop();
}
