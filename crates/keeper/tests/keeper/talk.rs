//! How the keeper responds to daemons that are new, old, invalid or slow, and to other clients.

use std::io::{Read, Write};

use crate::support::{Daemon, Keeper, PATIENCE, launch, now, shell, until};
use cronhold_keeper::frames::encode;
use cronhold_keeper::{FromKeeper, PROTOCOL, ProcessExit, ToKeeper};

#[test]
fn connection_without_a_common_protocol_is_answered_and_closed() {
    let keeper = Keeper::start();
    let mut newer = Daemon::hello(keeper.connect(), PROTOCOL + 5, PROTOCOL);
    let (run, _) = newer.start("exit 1");
    assert_eq!(newer.ended(run).exit, ProcessExit::Code(1));
    let mut other = Daemon::hello(keeper.connect(), PROTOCOL + 5, PROTOCOL + 1);
    assert_eq!((other.receive(), other.listed.len()), (None, 0));
    // The first daemon is still in charge.
    let (run, _) = newer.start("exit 2");
    assert_eq!(newer.ended(run).exit, ProcessExit::Code(2));
}

#[test]
fn new_daemon_takes_over_from_the_old_one() {
    let keeper = Keeper::start();
    let mut old = keeper.daemon();
    let mut new = keeper.daemon();
    assert_eq!(old.receive(), None);
    let (run, _) = new.start("exit 2");
    assert_eq!(new.ended(run).exit, ProcessExit::Code(2));
}

#[test]
fn invalid_messages_end_the_connection_and_nothing_else() {
    let keeper = Keeper::start();
    let mut early = Vec::new();
    encode(&ToKeeper::Retire, &mut early).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[5, 0, 0, 0, b'x', b'x', b'x', b'x', b'x'], &[0xFF; 4], &early] {
        let mut stream = keeper.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // The end of the connection may appear as a reset.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{bytes:?}");
        let mut daemon = keeper.daemon();
        daemon.stream.write_all(bytes).unwrap();
        if bytes != early {
            assert_eq!(daemon.receive(), None, "{bytes:?}");
        }
    }
    let mut keeper = keeper;
    assert!(keeper.wait(), "the last message was understood: retire");
}

#[test]
fn late_launch_is_refused() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut late = shell("true");
    late.launch_by = now() - 1;
    let run = daemon.launch(&late);
    assert!(daemon.refused(run).contains("too late"));
    let mut leased = shell("true");
    leased.kill_at = Some(now() - 1);
    let run = daemon.launch(&leased);
    assert!(daemon.refused(run).contains("too late"));
}

#[test]
fn known_run_is_not_launched_again_while_it_runs_after_it_ended_and_after_it_was_forgotten() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let file = keeper.data.join("count");
    let wanted = shell(&format!("echo x >> {}; while [ -e {0} ]; do sleep 0.01; done", file.display()));
    let run = daemon.launch(&wanted);
    daemon.launch(&wanted);
    assert!(daemon.refused(run).contains("known already"));
    let pid = daemon.started(run);
    // The shell creates the file before it writes to it.
    until("it runs", || std::fs::read(&file).is_ok_and(|text| !text.is_empty()).then_some(()));
    daemon.launch(&wanted);
    assert_eq!(daemon.refused(run), format!("the run is known already: it runs as process {pid}"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    std::fs::remove_file(&file).unwrap();
    daemon.ended(run);
    daemon.launch(&wanted);
    assert_eq!(daemon.find(refusal(run)), "the run is known already: it has ended");
    daemon.send(&ToKeeper::Forget { runs: vec![run] });
    daemon.launch(&wanted);
    assert_eq!(daemon.find(refusal(run)), "the run is known already: it has ended and is stored");
    assert!(!file.exists());
}

fn refusal(wanted: cronhold_keeper::RunKey) -> impl Fn(&FromKeeper) -> Option<String> {
    move |message| match message {
        FromKeeper::Refused { run, why } if *run == wanted => Some(why.clone()),
        _ => None,
    }
}

#[test]
fn daemon_that_does_not_read_is_disconnected_and_delays_nothing() {
    let keeper = Keeper::start();
    let mut deaf = keeper.daemon();
    // Repeated refusals fill the socket and the keeper's buffer for this daemon.
    let mut bytes = Vec::new();
    encode(&ToKeeper::Launch(Box::new(launch(&[&format!("/no/such/{}", "x".repeat(1_000))]))), &mut bytes).unwrap();
    let mut sent = 0;
    deaf.stream.set_write_timeout(Some(PATIENCE)).unwrap();
    while sent < 200_000 && deaf.stream.write_all(&bytes).is_ok() {
        sent += 1;
    }
    assert!(sent < 200_000, "the keeper did not close the connection");
    let mut daemon = keeper.daemon();
    let (run, _) = daemon.start("exit 2");
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(2));
}

#[test]
fn hello_warns_about_missing_control_groups() {
    let keeper = Keeper::start();
    let warnings = keeper.daemon().warnings;
    assert!(warnings.iter().all(|warning| warning.contains("control groups")), "{warnings:?}");
}
