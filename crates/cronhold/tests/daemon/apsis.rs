//! Behaviours that tests of Apsis require, and defects that it has, with the real daemon. `docs/from-apsis.md` lists them.

use std::fs;

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;

use super::daemon::{Sandbox, transcript};
use super::processes::eventually;

/// A program that creates the file `ready-JOB` when its trap is set, and then waits.
fn waiting(sandbox: &Sandbox, job: &str, trap: &str) -> String {
    let ready = sandbox.path(&format!("ready-{job}"));
    format!("{trap} touch {}; while true; do sleep 0.05; done", ready.display())
}

/// Puts jobs that run at the start of the daemon, and waits until all of their programs have set their traps.
fn put_waiting(sandbox: &Sandbox, jobs: &[(&str, &str, &str)]) {
    for (job, trap, rest) in jobs {
        let program = waiting(sandbox, job, trap);
        sandbox.put_job(job, &format!("program: |\n  {program}\nschedule: '@reboot'\n{rest}\n"));
    }
}

#[test]
fn stopped_programs_end_by_their_exit_code() {
    let sandbox = Sandbox::new("apsis-stop");
    let jobs = [
        ("killed", "", "stop: {grace: 30s}"),
        ("zero", "trap 'exit 0' TERM;", "stop: {grace: 30s}"),
        ("one", "trap 'exit 1' TERM;", "stop: {grace: 30s}"),
        ("slow", "trap 'sleep 0.5; exit 0' TERM;", "stop: {grace: 30s}"),
        ("deaf", "trap '' TERM;", "stop: {grace: 300ms}"),
    ];
    put_waiting(&sandbox, &jobs);
    let mut daemon = sandbox.up();
    for (job, ..) in jobs {
        eventually(job, || sandbox.path(&format!("ready-{job}")).exists());
        daemon.wait_until_run(&format!("{job}#1"), "running");
        assert!(transcript(&mut sandbox.verb(&["stop", job])).ends_with("exit 0\n"), "{job}");
    }
    for (job, state, exit) in [
        ("killed", State::Failure, ProgramExit::Signal(Signal::TERM)),
        ("zero", State::Success, ProgramExit::Code(0)),
        ("one", State::Failure, ProgramExit::Code(1)),
        ("slow", State::Success, ProgramExit::Code(0)),
        ("deaf", State::Failure, ProgramExit::Signal(Signal::KILL)),
    ] {
        daemon.wait_until_run(&format!("{job}#1"), state.name());
        let stored = sandbox.stored();
        let run = stored.run(job, 1);
        assert_eq!((run.exit, &run.reason), (Some(exit), &Some(Reason::Stopped)), "{job}");
    }
    daemon.kill();
}

/// The daemon is killed while a program that ignores the stop has its grace period. The next one ends it.
#[test]
fn stop_goes_on_after_a_restart() {
    let sandbox = Sandbox::new("apsis-stopping");
    put_waiting(&sandbox, &[("deaf", "trap '' TERM; echo $$ >pid;", "stop: {grace: 3s}\ncwd: WHERE")]);
    let here = sandbox.path("").canonicalize().expect("there");
    let yaml = fs::read_to_string(sandbox.job_file("deaf")).expect("the file");
    sandbox.put_job("deaf", &yaml.replace("WHERE", &here.display().to_string()));
    let mut daemon = sandbox.up();
    eventually("the program runs", || sandbox.path("ready-deaf").exists());
    daemon.wait_until_run("deaf#1", "running");
    assert!(transcript(&mut sandbox.verb(&["stop", "deaf"])).ends_with("exit 0\n"));
    daemon.kill();
    let mut daemon = sandbox.up();
    daemon.wait_until_run("deaf#1", "failure");
    sandbox.wait_for_death(&sandbox.path("pid"));
    let stored = sandbox.stored();
    let run = stored.run("deaf", 1);
    assert_eq!((run.exit, &run.reason), (Some(ProgramExit::Signal(Signal::KILL)), &Some(Reason::Stopped)));
    daemon.kill();
}

#[test]
fn job_whose_name_ends_like_a_route_is_reached() {
    let sandbox = Sandbox::new("apsis-routes");
    let names = ["a/runs", "a/pause", "runs", "jobs/a/runs", "rename", "a.b c/next"];
    for name in names {
        sandbox.put_job(name, "program: {noop: true}\n");
    }
    let mut daemon = sandbox.up();
    for name in names {
        let done = |args: &[&str]| {
            let shown = transcript(&mut sandbox.verb(args));
            assert!(shown.ends_with("exit 0\n"), "{args:?}: {shown}");
            shown
        };
        done(&["run", name]);
        daemon.wait_until_run(&format!("{name}#1"), "success");
        assert!(done(&["runs", name]).contains(&format!("{name}#1")), "{name}");
        done(&["pause", name]);
        done(&["show", name]);
        done(&["resume", name]);
    }
    daemon.kill();
}
