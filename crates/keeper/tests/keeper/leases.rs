//! Leases: what must not outlive its daemon dies in time, with or without one, and how it ended is told as such.

use crate::support::{Daemon, Keeper, SECOND, is_alive, now, shell, until};
use cronhold_keeper::{End, Exit, RunKey, Stage, ToKeeper};

const TERM: i32 = 15;
const KILL: i32 = 9;
/// Longer than any test waits: what ends sooner did not wait for it.
const LONG: u64 = 600 * SECOND;
/// Ignores the signal, and says so.
const STUBBORN: &str = "trap 'echo warned' TERM; echo ready; while :; do sleep 0.01; done";

/// Starts a program whose lease is so long and begins to end so much earlier.
fn start(daemon: &mut Daemon, script: &str, lease: u64, grace: u64) -> (RunKey, u32) {
    let mut wanted = shell(script);
    wanted.kill_at = Some(now() + lease);
    wanted.stop_grace = grace;
    let run = daemon.launch(&wanted);
    (run, daemon.started(run))
}

fn extend(daemon: &mut Daemon, run: RunKey, kill_at: u64) {
    daemon.say(&ToKeeper::Lease { run, kill_at });
}

/// The end of a program, in the words of the keeper that has it now.
fn listed_end(keeper: &Keeper, run: RunKey) -> End {
    until("it is listed as ended", || {
        keeper.daemon().listed.iter().find_map(|program| match program.stage {
            Stage::Ended(end) if program.run == run => Some(end),
            _ => None,
        })
    })
}

fn is_running(keeper: &Keeper, run: RunKey) -> bool {
    let listed = keeper.daemon().listed;
    listed.iter().any(|program| program.run == run && matches!(program.stage, Stage::Running { .. }))
}

#[test]
fn a_lease_warns_and_kills_even_without_a_daemon() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, pid) = start(&mut daemon, STUBBORN, 4 * SECOND, SECOND);
    keeper.wait_for(run, "ready");
    drop(daemon);
    until("it is dead", || (!is_alive(pid)).then_some(()));
    assert!(keeper.read_output(run).ends_with("warned\n"), "{}", keeper.read_output(run));
    let end = listed_end(&keeper, run);
    assert_eq!((end.exit, end.by_lease), (Exit::Signal(KILL), true));
    // A later keeper has it from the journal.
    keeper.replace();
    assert_eq!(listed_end(&keeper, run), end);
}

#[test]
fn a_lease_that_is_extended_does_not_end() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    extend(&mut daemon, run, now() + LONG);
    // A time that was overtaken on its way does not make it shorter.
    extend(&mut daemon, run, now() + SECOND / 10);
    // Another one with the old lease ends: by then the first would have, too.
    let (other, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    let end = daemon.ended(other);
    assert_eq!((end.exit, end.by_lease), (Exit::Signal(KILL), true));
    assert!(is_running(&keeper, run));
}

#[test]
fn another_daemon_extends_what_the_first_has_launched() {
    let keeper = Keeper::start();
    let mut first = keeper.daemon();
    let (run, _) = start(&mut first, "sleep 600", 3 * SECOND, 0);
    drop(first);
    let mut second = keeper.daemon();
    extend(&mut second, run, now() + LONG);
    let (other, _) = start(&mut second, "sleep 600", 3 * SECOND, 0);
    assert!(second.ended(other).by_lease);
    assert!(is_running(&keeper, run));
}

#[test]
fn a_lease_that_has_ended_stays_so() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    keeper.signal(rustix::process::Signal::STOP);
    // The keeper sleeps until the lease has passed, and then hears of more time and of the passing at once.
    let over = now() + 2 * SECOND;
    until("the lease has passed", || (now() > over).then_some(()));
    extend(&mut daemon, run, now() + LONG);
    keeper.signal(rustix::process::Signal::CONT);
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (Exit::Signal(KILL), true));
}

#[test]
fn who_obeys_the_warning_has_ended_by_the_lease_and_who_was_stopped_has_not() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 63 * SECOND, 60 * SECOND);
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (Exit::Signal(TERM), true));
    let (run, _) = start(&mut daemon, "sleep 600", LONG, SECOND);
    daemon.say(&ToKeeper::Stop { run, signal: TERM, grace: LONG });
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (Exit::Signal(TERM), false));
}

#[test]
fn what_would_be_signalled_at_once_is_not_started() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("true");
    wanted.kill_at = Some(now() + SECOND);
    wanted.stop_grace = LONG;
    let run = daemon.launch(&wanted);
    assert!(daemon.refused(run).contains("its lease is about to end"));
}
