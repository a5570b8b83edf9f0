//! Ending programs with everything that descends from them, however they resist.

use crate::support::{Daemon, Keeper, SECOND, is_alive, launch, read_pid};
use cronhold_keeper::{ProcessExit, RunKey, ToKeeper};

const TERM: i32 = 15;
const KILL: i32 = 9;
/// Longer than any test waits.
const LONG: u64 = 600 * SECOND;

fn stop(daemon: &mut Daemon, run: RunKey, grace: u64) {
    daemon.send(&ToKeeper::Stop { run, signal: TERM, grace });
}

#[test]
fn stop_sends_the_signal_first() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = daemon.start("trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    keeper.wait_for(run, "ready");
    stop(&mut daemon, run, LONG);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(3));
    assert!(keeper.read_output(run).ends_with("asked\n"));
    let (run, _) = daemon.start("sleep 600");
    stop(&mut daemon, run, LONG);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(TERM));
}

#[test]
fn program_that_ignores_the_signal_is_killed_after_the_grace_period() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, pid) = daemon.start("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    keeper.wait_for(run, "ready");
    stop(&mut daemon, run, SECOND / 10);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
    assert!(!is_alive(pid));
}

/// Scans for stops must not delay kills.
#[test]
fn stops_of_other_programs_do_not_delay_a_kill() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    // A scan of this many processes takes longer than the time between two stops.
    let many: Vec<RunKey> = (0..300).map(|_| daemon.launch(&launch(&["sleep", "600"]))).collect();
    for run in many {
        daemon.started(run);
    }
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let (stopped, _) = daemon.start(stubborn);
    let (killed, _) = daemon.start(stubborn);
    keeper.wait_for(stopped, "ready");
    stop(&mut daemon, killed, 0);
    let is_over = (0..500).any(|_| {
        stop(&mut daemon, stopped, LONG);
        let (other, _) = daemon.start("true");
        daemon.ended(other);
        daemon.has_received_end(killed)
    });
    assert!(is_over);
}

/// A program with a child in its group, one in a session of its own, and one whose parent has ended as well.
fn start_with_outsiders(keeper: &Keeper, daemon: &mut Daemon, first: &str) -> (RunKey, Vec<u32>) {
    let folder = keeper.data.join(first.len().to_string());
    std::fs::create_dir_all(&folder).unwrap();
    let lines = [
        format!("cd {}", folder.display()),
        "trap '' TERM".to_owned(),
        "(echo $$ > /dev/null; exec sh -c 'echo $$ > child; exec sleep 600') &".to_owned(),
        "setsid sh -c 'echo $$ > session; exec sleep 600' &".to_owned(),
        "setsid sh -c '(setsid sh -c \"echo \\$\\$ > daemon; exec sleep 600\" &) ; exit 0' &".to_owned(),
        "while ! [ -s child -a -s session -a -s daemon ]; do sleep 0.01; done".to_owned(),
        first.to_owned(),
    ];
    let (run, pid) = daemon.start(&lines.join("\n"));
    keeper.wait_for(run, "ready");
    let mut pids = vec![pid];
    pids.extend(["child", "session", "daemon"].map(|name| read_pid(&folder.join(name))));
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    (run, pids)
}

#[test]
fn descendants_in_other_sessions_die_with_a_program_that_ignores_the_stop() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, pids) = start_with_outsiders(&keeper, &mut daemon, "echo ready; while :; do sleep 0.01; done");
    stop(&mut daemon, run, SECOND / 10);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[test]
fn descendants_in_other_sessions_die_with_a_program_that_obeys_the_stop() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let (run, pids) = start_with_outsiders(&keeper, &mut daemon, script);
    stop(&mut daemon, run, SECOND / 2);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[test]
fn kill_reaches_the_whole_tree() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, pids) = start_with_outsiders(&keeper, &mut daemon, "echo ready; while :; do sleep 0.01; done");
    daemon.send(&ToKeeper::Signal { run, signal: KILL });
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[test]
fn program_that_forks_all_the_time_is_killed() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let script = "n=0; while [ $n -lt 200 ]; do n=$((n + 1)); (setsid sleep 600 &); done; echo ready; ".to_owned()
        + "while :; do (setsid sleep 600 &); sleep 0.01; done";
    let (run, _) = daemon.start(&script);
    keeper.wait_for(run, "ready");
    daemon.send(&ToKeeper::Signal { run, signal: KILL });
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
    assert_eq!(marked(run), Vec::<u32>::new());
}

/// Live processes with the id of a run in their environment.
fn marked(run: RunKey) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let mark = format!("CRONHOLD_RUN_ID={run}");
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) && is_alive(*pid)
    })
    .collect()
}

#[test]
fn other_signals_reach_only_the_group() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = daemon.start("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done");
    keeper.wait_for(run, "ready");
    daemon.send(&ToKeeper::Signal { run, signal: 10 });
    keeper.wait_for(run, "usr1");
    // An unknown signal is ignored.
    daemon.send(&ToKeeper::Signal { run, signal: 12_345 });
    daemon.send(&ToKeeper::Signal { run, signal: KILL });
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(KILL));
}
