//! Leases: a program dies in time, with or without a daemon, and its end is attributed to the lease.

use crate::support::{Daemon, Keeper, SECOND, is_alive, now, shell, until};
use cronhold_keeper::{ProcessExit, ProgramEnd, ProgramStage, RunKey, ToKeeper};

const TERM: i32 = 15;
const KILL: i32 = 9;
/// Longer than any test waits.
const LONG: u64 = 600 * SECOND;
/// A program that prints a line on the signal and continues.
const STUBBORN: &str = "trap 'echo warned' TERM; echo ready; while :; do sleep 0.01; done";

/// Starts a program with a lease of this length that is announced this much earlier.
fn start(daemon: &mut Daemon, script: &str, lease: u64, grace: u64) -> (RunKey, u32) {
    let mut wanted = shell(script);
    wanted.kill_at = Some(now() + lease);
    wanted.stop_grace = grace;
    let run = daemon.launch(&wanted);
    (run, daemon.started(run))
}

fn extend(daemon: &mut Daemon, run: RunKey, kill_at: u64) {
    daemon.send(&ToKeeper::Lease { run, kill_at });
}

/// The end of a program, as the present keeper lists it.
fn listed_end(keeper: &Keeper, run: RunKey) -> ProgramEnd {
    until("it is listed as ended", || {
        keeper.daemon().listed.iter().find_map(|program| match program.stage {
            ProgramStage::Ended(end) if program.run == run => Some(end),
            _ => None,
        })
    })
}

fn is_running(keeper: &Keeper, run: RunKey) -> bool {
    let listed = keeper.daemon().listed;
    listed.iter().any(|program| program.run == run && matches!(program.stage, ProgramStage::Running { .. }))
}

#[test]
fn lease_signals_and_kills_without_a_daemon() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, pid) = start(&mut daemon, STUBBORN, 4 * SECOND, SECOND);
    keeper.wait_for(run, "ready");
    drop(daemon);
    until("it is dead", || (!is_alive(pid)).then_some(()));
    assert!(keeper.read_output(run).ends_with("warned\n"), "{}", keeper.read_output(run));
    let end = listed_end(&keeper, run);
    assert_eq!((end.exit, end.by_lease), (ProcessExit::Signal(KILL), true));
    // A later keeper reads it from the journal.
    keeper.replace();
    assert_eq!(listed_end(&keeper, run), end);
}

#[test]
fn extended_lease_does_not_end() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    extend(&mut daemon, run, now() + LONG);
    // An extension that comes out of order does not make the lease shorter.
    extend(&mut daemon, run, now() + SECOND / 10);
    // When another program with the old lease has ended, the first lease would have ended as well.
    let (other, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    let end = daemon.ended(other);
    assert_eq!((end.exit, end.by_lease), (ProcessExit::Signal(KILL), true));
    assert!(is_running(&keeper, run));
}

#[test]
fn another_daemon_extends_the_lease_of_the_first() {
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
fn ended_lease_cannot_be_extended() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 2 * SECOND, 0);
    keeper.signal(rustix::process::Signal::STOP);
    // The keeper is stopped until the lease has ended, and then sees the extension and the end at the same time.
    let over = now() + 2 * SECOND;
    until("the lease has passed", || (now() > over).then_some(()));
    extend(&mut daemon, run, now() + LONG);
    keeper.signal(rustix::process::Signal::CONT);
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (ProcessExit::Signal(KILL), true));
}

#[test]
fn exit_is_by_lease_if_the_announcement_was_obeyed_and_not_if_stopped() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = start(&mut daemon, "sleep 600", 63 * SECOND, 60 * SECOND);
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (ProcessExit::Signal(TERM), true));
    let (run, _) = start(&mut daemon, "sleep 600", LONG, SECOND);
    daemon.send(&ToKeeper::Stop { run, signal: TERM, grace: LONG });
    let end = daemon.ended(run);
    assert_eq!((end.exit, end.by_lease), (ProcessExit::Signal(TERM), false));
}

#[test]
fn launch_whose_lease_is_about_to_end_is_refused() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("true");
    wanted.kill_at = Some(now() + SECOND);
    wanted.stop_grace = LONG;
    let run = daemon.launch(&wanted);
    assert!(daemon.refused(run).contains("its lease is about to end"));
}
