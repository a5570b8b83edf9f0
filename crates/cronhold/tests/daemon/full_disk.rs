//! A disk that cannot be written. A limit on the size of files simulates it, because that works without privileges and
//! can be lifted while the daemon runs.

use std::fs;
use std::process::Command;
use std::time::Duration;

use cronhold_core::record::ProgramExit;
use rustix::process::{Resource, Rlimit, Signal, prlimit};

use super::daemon::{Daemon, Sandbox};
use super::processes::eventually;

const JOBS: usize = 20;

/// While the disk cannot be written, nothing starts and nothing is lost. Afterwards the daemon continues by itself.
fn assert_continues_after_limit(name: &str, limit: impl FnOnce(&Sandbox) -> u64) {
    let sandbox = Sandbox::new(name);
    for number in 0..JOBS {
        let yaml =
            "program: {noop: true}\noverlap: allow\ncatch_up: {policy: all, within: 1h}\nschedule: {every: 1s}\n";
        sandbox.put_job(&format!("busy/{number}"), yaml);
    }
    let mut daemon = Daemon::start(&mut without_signal(&sandbox.command(&["--jobs", "jobs"])));
    daemon.wait_for("ready");
    daemon.wait_for_lines(JOBS);
    set_limit(&daemon, Some(limit(&sandbox)));
    daemon.wait_for("store_unavailable");
    let before = sandbox.stored();
    // Longer than the time between two retries; many occurrences are due in that time.
    let silence = daemon.is_silent_for(Duration::from_secs(4));
    assert_eq!(silence, Ok(()), "something happened without a record");
    assert_eq!(sandbox.stored().runs.len(), before.runs.len(), "the store has changed despite the limit");

    set_limit(&daemon, None);
    daemon.wait_for("store_available");
    daemon.wait_for_lines(5 * JOBS);
    let reached = sandbox.stored().reached();
    daemon.wait_until_complete(&sandbox, &reached, JOBS);
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn full_disk_stops_starts_until_space_is_free() {
    assert_continues_after_limit("full", |sandbox| {
        let log = fs::metadata(sandbox.path("home/cronhold.db-wal")).expect("there").len();
        let file = fs::metadata(sandbox.path("home/cronhold.db")).expect("there").len();
        log.max(file)
    });
}

#[test]
fn unwritable_disk_stops_starts_until_it_is_writable() {
    assert_continues_after_limit("read-only", |_| 0);
}

/// A daemon that waits for free space can be stopped.
#[test]
fn daemon_stops_while_disk_is_full() {
    let sandbox = Sandbox::new("stop-full");
    sandbox.put_job("busy", "program: {noop: true}\nschedule: {every: 1s}\n");
    let mut daemon = Daemon::start(&mut without_signal(&sandbox.command(&["--jobs", "jobs"])));
    daemon.wait_for("ready");
    set_limit(&daemon, Some(0));
    daemon.wait_for("store_unavailable");
    daemon.send(Signal::TERM);
    let (status, log) = daemon.end();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// The output and the exit code of a program are stored when there is space again.
#[test]
fn output_is_stored_when_disk_has_space_again() {
    let sandbox = Sandbox::new("output-full");
    let (go, done) = (sandbox.path("go"), sandbox.path("done"));
    let program = "echo before; until [ -e go ]; do sleep 0.02; done; seq 1 50000; touch done; exit 3";
    let here = sandbox.path("").canonicalize().expect("there");
    let yaml = format!("program: '{program}'\ncwd: {}\nschedule: '@reboot'\n", here.display());
    sandbox.put_job("talk", &yaml);
    sandbox.put_job("busy", "program: {noop: true}\nschedule: {every: 1s}\n");
    let mut daemon = Daemon::start(&mut without_signal(&sandbox.command(&["--jobs", "jobs"])));
    daemon.wait_until_run("talk#1", "running");
    set_limit(&daemon, Some(0));
    daemon.wait_for("store_unavailable");
    fs::write(go, "").expect("written");
    eventually("the program has ended", || done.exists());
    let silence = daemon.is_silent_for(Duration::from_secs(1));
    assert_eq!(silence, Ok(()), "something happened without a record");
    set_limit(&daemon, None);
    daemon.wait_until_run("talk#1", "failure");
    let stored = sandbox.stored();
    assert_eq!(stored.run("talk", 1).exit, Some(ProgramExit::Code(3)));
    let whole: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    let output = String::from_utf8(sandbox.output(stored.run("talk", 1))).expect("text");
    assert_eq!(output, format!("before\n{whole}"));
    daemon.kill();
}

/// The same command with SIGXFSZ ignored, so that a write beyond the limit fails and does not kill the process.
fn without_signal(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().env("PATH", "/usr/bin:/bin").current_dir(command.get_current_dir().expect("a directory"));
    shell
}

fn set_limit(daemon: &Daemon, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(daemon.pid()), Resource::Fsize, limit).expect("a child of this test");
}
