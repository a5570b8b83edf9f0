//! Keepers that are killed, replaced or that end: what is known afterwards, and which processes are still alive.

use std::time::Duration;

use crate::support::{Keeper, PATIENCE, SECOND, is_alive, keeper_command, read_pid, shell, until};
use cronhold_keeper::{ListedProgram, ProcessExit, ProgramEnd, ProgramStage, RunKey, ToKeeper};

fn stages(listed: &[ListedProgram]) -> Vec<(RunKey, ProgramStage)> {
    listed.iter().map(|program| (program.run, program.stage)).collect()
}

/// An end that the lease did not cause.
fn ended(exit: ProcessExit, output: u64) -> ProgramStage {
    ProgramStage::Ended(ProgramEnd { exit, output, by_lease: false })
}

/// Kills processes that a test kept alive on purpose.
fn kill_group(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn daemon_that_reconnects_gets_running_and_ended_programs() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    assert!(daemon.listed.is_empty());
    let (runs, pid) = daemon.start("sleep 600");
    let (over, _) = daemon.start("printf four; exit 9");
    drop(daemon);
    until("it has ended", || {
        let listed = stages(&keeper.daemon().listed);
        listed.contains(&(over, ended(ProcessExit::Code(9), 4))).then_some(())
    });
    let mut daemon = keeper.daemon();
    assert!(stages(&daemon.listed).contains(&(runs, ProgramStage::Running { pid })));
    daemon.send(&ToKeeper::Forget { runs: vec![over, runs] });
    until("it is forgotten", || (!keeper.output(over).exists()).then_some(()));
    // A running program cannot be forgotten.
    assert_eq!(stages(&keeper.daemon().listed), [(runs, ProgramStage::Running { pid })]);
}

#[test]
fn new_keeper_kills_programs_of_a_killed_one_and_reports_them_lost() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let file = keeper.data.join("pid");
    let script = format!("(setsid sh -c 'echo $$ > {}; exec sleep 600' &); sleep 600", file.display());
    let (lost, pid) = daemon.start(&script);
    let (over, _) = daemon.start("exit 3");
    daemon.ended(over);
    let (stored, _) = daemon.start("exit 4");
    daemon.ended(stored);
    daemon.send(&ToKeeper::Forget { runs: vec![stored] });
    until("it is forgotten", || (!keeper.output(stored).exists()).then_some(()));
    let outsider = read_pid(&file);
    assert!(is_alive(pid) && is_alive(outsider));
    keeper.replace();
    let mut daemon = keeper.daemon();
    assert!(!is_alive(pid) && !is_alive(outsider));
    let mut wanted = [(lost, ProgramStage::Lost), (over, ended(ProcessExit::Code(3), 0))];
    wanted.sort_by_key(|(run, _)| *run);
    assert_eq!(stages(&daemon.listed), wanted);
    let again = daemon.launch(&cronhold_keeper::ProgramLaunch { run: lost, ..shell("true") });
    assert!(daemon.refused(again).contains("known already"));
    daemon.send(&ToKeeper::Forget { runs: vec![lost, over] });
    until("both are forgotten", || (!keeper.output(lost).exists() && !keeper.output(over).exists()).then_some(()));
    keeper.replace();
    assert_eq!(keeper.daemon().listed, []);
}

#[test]
fn journal_with_a_torn_end_is_read_up_to_it() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (over, _) = daemon.start("exit 3");
    daemon.ended(over);
    let (lost, _) = daemon.start("sleep 600");
    keeper.kill();
    let path = keeper.folder().join("journal");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap();
    bytes[end..end + 20].copy_from_slice(b"intent 0123456789abc");
    std::fs::write(&path, bytes).unwrap();
    keeper.replace();
    let listed = stages(&keeper.daemon().listed);
    assert!(listed.contains(&(lost, ProgramStage::Lost)), "{listed:?}");
    assert!(listed.contains(&(over, ended(ProcessExit::Code(3), 0))), "{listed:?}");
}

/// A damaged line hides neither the lines after it nor the program that it is about.
#[test]
fn damaged_journal_line_leaves_no_program_alive() {
    // The line with this beginning is damaged; the first one is the boot id.
    for (beginning, count) in [("boot ", 1), ("boot ", 2), ("intent ", 1), ("spawned ", 1), ("exit ", 1)] {
        let mut keeper = Keeper::start();
        let mut daemon = keeper.daemon();
        let (first, first_pid) = daemon.start("sleep 600");
        let (over, _) = daemon.start("exit 3");
        daemon.ended(over);
        let (last, last_pid) = daemon.start("exec env -i sleep 600");
        keeper.kill();
        let path = keeper.folder().join("journal");
        let text = std::fs::read(&path).unwrap();
        let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let damaged = lines.iter_mut().filter(|line| line.starts_with(beginning.as_bytes())).take(count);
        assert_eq!(damaged.map(|line| line[2] ^= 1).count(), count);
        std::fs::write(&path, lines.concat()).unwrap();
        keeper.process = keeper_command(&keeper.data, PATIENCE, 64 << 20).spawn().unwrap();
        let listed = stages(&keeper.daemon().listed);
        let of = |wanted: RunKey| listed.iter().find(|(run, _)| *run == wanted).map(|(_, stage)| *stage);
        assert_eq!((of(first), of(last)), (Some(ProgramStage::Lost), Some(ProgramStage::Lost)), "{beginning}");
        let over_stage = if beginning == "exit " { ProgramStage::Lost } else { ended(ProcessExit::Code(3), 0) };
        assert_eq!(of(over), Some(over_stage), "{beginning}");
        // Without the boot id, a process is found by the run in its environment or by its mark.
        assert!(!is_alive(first_pid) && !is_alive(last_pid), "{beginning} {count}");
        assert!(std::fs::read_to_string(keeper.data.join("log")).is_ok());
    }
}

#[test]
fn programs_from_before_a_reboot_are_lost_and_no_process_is_killed() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (lost, pid) = daemon.start("sleep 600");
    keeper.kill();
    let path = keeper.folder().join("journal");
    // After a reboot the journal has another boot id.
    let text = std::fs::read(&path).unwrap();
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"boot "));
    std::fs::write(&path, lines.collect::<Vec<_>>().concat()).unwrap();
    keeper.process = keeper_command(&keeper.data, PATIENCE, 64 << 20).spawn().unwrap();
    assert_eq!(stages(&keeper.daemon().listed), [(lost, ProgramStage::Lost)]);
    assert!(is_alive(pid));
    kill_group(pid);
}

#[test]
fn second_keeper_for_a_data_directory_exits() {
    let keeper = Keeper::start();
    drop(keeper.daemon());
    let status = keeper_command(&keeper.data, PATIENCE, 64 << 20).status().unwrap();
    assert!(!status.success());
    assert!(std::fs::read_to_string(keeper.data.join("log")).unwrap().contains("another keeper holds"));
    drop(keeper.daemon());
}

#[test]
fn keeper_ends_without_programs_and_daemon_and_stays_with_either() {
    let mut keeper = Keeper::start_with(Duration::from_millis(50), 64 << 20);
    assert!(keeper.wait());
    assert!(!keeper.folder().join("socket").exists());
    keeper.process = keeper_command(&keeper.data, Duration::from_millis(300), 64 << 20).spawn().unwrap();
    let mut daemon = keeper.daemon();
    let go = keeper.data.join("go");
    let (run, _) = daemon.start(&format!("while ! [ -e {} ]; do sleep 0.01; done; exit 6", go.display()));
    drop(daemon);
    // The program runs much longer than the idle time, and so does the keeper.
    let (mut daemon, _) = (keeper.daemon(), std::fs::write(&go, "").unwrap());
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(6));
    drop(daemon);
    assert!(keeper.wait());
    keeper.process = keeper_command(&keeper.data, PATIENCE, 64 << 20).spawn().unwrap();
    assert_eq!(stages(&keeper.daemon().listed), [(run, ended(ProcessExit::Code(6), 0))]);
}

#[test]
fn retired_keeper_starts_nothing_and_ends_with_its_last_program() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = daemon.start("sleep 600");
    daemon.send(&ToKeeper::Retire);
    let late = daemon.launch(&shell("true"));
    assert!(daemon.refused(late).contains("about to end"));
    daemon.send(&ToKeeper::Stop { run, signal: 15, grace: 60 * SECOND });
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(15));
    assert_eq!(daemon.receive(), None);
    assert!(keeper.wait());
}

#[test]
fn keeper_that_gets_sigterm_stops_its_programs_with_their_grace_periods() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done");
    wanted.stop_signal = 2;
    let run = daemon.launch(&wanted);
    daemon.started(run);
    until("it is ready", || (keeper.read_output(run) == "ready\n").then_some(()));
    keeper.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(5));
    assert!(keeper.wait());
}
