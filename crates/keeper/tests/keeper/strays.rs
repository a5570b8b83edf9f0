//! Processes that can be found only by their parent: in a session of their own, and without the run's id. Once the
//! parent has ended they cannot be found any more, so each case is tried several times.

use std::path::Path;

use crate::support::{Daemon, Keeper, SECOND, is_alive, now, read_pid, shell, until};
use cronhold_keeper::{ProcessExit, RunKey, ToKeeper};

const TERM: i32 = 15;
const KILL: i32 = 9;
/// Longer than any test waits.
const LONG: u64 = 600 * SECOND;
/// How often each case is tried.
const TRIES: usize = 10;
const LEASE_TRIES: usize = 2;

const OBEYS: &str = "";
const IGNORES: &str = "trap '' TERM";

/// A program with two such processes, one the child of the other. Its signal handler is set before it is ready.
fn script(folder: &Path, answer: &str) -> String {
    let inner = "echo $$ > inner; exec sleep 600";
    let outer = format!("echo $$ > outer; setsid env -i /bin/sh -c \"{}\" & wait", inner.replace('$', "\\$"));
    let lines = [
        format!("cd {}", folder.display()),
        format!("setsid env -i /bin/sh -c '{outer}' &"),
        answer.to_owned(),
        "while ! [ -s outer -a -s inner ]; do sleep 0.01; done".to_owned(),
        "echo ready; while :; do sleep 0.01; done".to_owned(),
    ];
    lines.join("\n")
}

/// Starts such programs one after another, and ends each.
fn try_often(answer: &str, lease: Option<u64>, wanted: ProcessExit, end: impl Fn(&mut Daemon, RunKey)) {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    // The end of a lease takes time.
    for number in 0..if lease.is_some() { LEASE_TRIES } else { TRIES } {
        let folder = keeper.data.join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let mut launch = shell(&script(&folder, answer));
        if let Some(lease) = lease {
            (launch.kill_at, launch.stop_grace) = (Some(now() + lease), 0);
        }
        let run = daemon.launch(&launch);
        let pid = daemon.started(run);
        keeper.wait_for(run, "ready");
        let pids = [pid, read_pid(&folder.join("outer")), read_pid(&folder.join("inner"))];
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
        end(&mut daemon, run);
        assert_eq!(daemon.ended(run).exit, wanted);
        let left: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
        assert!(left.is_empty(), "try {number} left {left:?} of {pids:?}");
    }
}

#[test]
fn kill_leaves_no_descendant_without_a_run_id() {
    for answer in [OBEYS, IGNORES] {
        try_often(answer, None, ProcessExit::Signal(KILL), |daemon, run| {
            daemon.send(&ToKeeper::Signal { run, signal: KILL });
        });
    }
}

#[test]
fn stop_by_sigkill_leaves_no_descendant_without_a_run_id() {
    for grace in [0, LONG] {
        let end = |daemon: &mut Daemon, run| daemon.send(&ToKeeper::Stop { run, signal: KILL, grace });
        try_often(OBEYS, None, ProcessExit::Signal(KILL), end);
    }
}

#[test]
fn obeyed_stop_leaves_no_descendant_without_a_run_id() {
    let end = |daemon: &mut Daemon, run| daemon.send(&ToKeeper::Stop { run, signal: TERM, grace: LONG });
    try_often(OBEYS, None, ProcessExit::Signal(TERM), end);
}

#[test]
fn ignored_stop_leaves_no_descendant_without_a_run_id() {
    let end = |daemon: &mut Daemon, run| daemon.send(&ToKeeper::Stop { run, signal: TERM, grace: SECOND / 10 });
    try_often(IGNORES, None, ProcessExit::Signal(KILL), end);
}

#[test]
fn end_of_lease_leaves_no_descendant_without_a_run_id() {
    try_often(OBEYS, Some(10 * SECOND), ProcessExit::Signal(KILL), |_, _| {});
}

#[test]
fn program_that_keeps_starting_descendants_without_a_run_id_is_killed() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    for number in 0..TRIES {
        // A unique sleep time, by which they are found.
        let time = format!("600.{}{number}", keeper.pid());
        let script = format!("echo ready; while :; do setsid env -i sleep {time} & sleep 0.002; done");
        let (run, _) = daemon.start(&script);
        keeper.wait_for(run, "ready");
        until("there are some", || (sleepers(&time).len() > 5).then_some(()));
        daemon.send(&ToKeeper::Signal { run, signal: KILL });
        assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
        assert_eq!(sleepers(&time), Vec::<u32>::new());
    }
}

/// A process that leaves its session again and again: every few milliseconds it forks, the child calls setsid, and the
/// parent ends. It keeps the run's id.
const RUNAWAY: &str = r#"#!/bin/sh
[ "$2" = first ] && echo ready
sleep 0.003
setsid "$0" "$1" &
"#;

/// Live processes with this argument. They may be too quick for one scan.
fn runaways(mark: &str) -> usize {
    let is_runaway = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    let pids = || {
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
    };
    (0..50).map(|_| pids().collect::<Vec<_>>().iter().rev().filter(|pid| is_runaway(pid)).count()).sum()
}

#[test]
fn process_that_keeps_leaving_its_session_is_ended() {
    use std::os::unix::fs::PermissionsExt;
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let script = keeper.data.join("runaway");
    std::fs::write(&script, RUNAWAY).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..TRIES {
        let mark = format!("runaway-{}-{number}", keeper.pid());
        let start = format!("{} {mark} first; sleep 600", script.display());
        let (run, _) = daemon.start(&start);
        keeper.wait_for(run, "ready");
        assert!(runaways(&mark) > 0);
        if number % 2 == 0 {
            daemon.send(&ToKeeper::Signal { run, signal: KILL });
        } else {
            daemon.send(&ToKeeper::Stop { run, signal: TERM, grace: SECOND / 10 });
        }
        daemon.ended(run);
        assert_eq!(runaways(&mark), 0, "try {number}");
    }
}

/// Live processes that sleep for this time.
fn sleepers(time: &str) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let line = format!("sleep\0{time}\0");
    let is_sleeper =
        |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|text| text == line.as_bytes());
    pids.filter(|pid| is_sleeper(pid) && is_alive(*pid)).collect()
}

#[test]
fn background_process_survives_a_program_that_was_not_stopped() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let file = keeper.data.join("pid");
    let stray = format!("setsid env -i /bin/sh -c 'echo $$ > {}; exec sleep 600' &", file.display());
    let (left, _) = daemon.start(&format!("{stray}\nwhile ! [ -s {} ]; do sleep 0.01; done", file.display()));
    assert_eq!(daemon.ended(left).exit, ProcessExit::Code(0));
    let pid = read_pid(&file);
    // Killing another run does not affect it.
    let (run, _) = daemon.start("sleep 600");
    daemon.send(&ToKeeper::Signal { run, signal: KILL });
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
    assert!(is_alive(pid));
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
