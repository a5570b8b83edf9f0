//! The output of programs on its way through a pipe into a file, also when the keeper or its collector dies.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Daemon, Keeper, is_alive, kill, read_pid, shell, until};
use cronhold_keeper::{OutputLimits, ProcessExit, ProgramStage, RunKey, ToKeeper, stderr_parts};

/// Writes by every way that opens a standard stream again.
const REOPENED: &str = "echo a > /dev/stderr; echo b; echo c > /dev/stdout; echo d >&2; echo e | tee /dev/stderr; \
                        echo f >> /dev/stderr; echo g > /dev/fd/1; echo h > /proc/self/fd/2; printf i";
const REOPENED_OUTPUT: &str = "a\nb\nc\nd\ne\ne\nf\ng\nh\ni";

/// A script that continues when there is a file of this name.
fn wait_for_file(keeper: &Keeper, name: &str) -> String {
    format!("while ! [ -e {} ]; do sleep 0.01; done", keeper.data.join(name).display())
}

fn create(keeper: &Keeper, name: &str) {
    fs::write(keeper.data.join(name), "").unwrap();
}

fn forget(keeper: &Keeper, daemon: &mut Daemon, run: RunKey) {
    daemon.send(&ToKeeper::Forget { runs: vec![run] });
    until("its output is removed", || (!keeper.output(run).exists()).then_some(()));
}

#[test]
fn output_through_reopened_streams_is_complete() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let is_root = rustix::process::geteuid().is_root();
    for user in [None, Some("65534".to_owned()).filter(|_| is_root)] {
        let mut wanted = shell(REOPENED);
        wanted.user = user;
        let run = daemon.launch(&wanted);
        let end = daemon.ended(run);
        assert_eq!((end.exit, end.output), (ProcessExit::Code(0), REOPENED_OUTPUT.len() as u64), "{:?}", wanted.user);
        assert_eq!(keeper.read_output(run), REOPENED_OUTPUT, "{:?}", wanted.user);
    }
}

/// Each stream is complete, also through a stream that is opened again, and the output has both.
#[test]
fn streams_are_told_apart_if_requested() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("echo one; echo two > /dev/stderr; exec 2>&-; echo three; echo four > /dev/stdout");
    wanted.separate_stderr = true;
    let run = daemon.launch(&wanted);
    let end = daemon.ended(run);
    let output = keeper.read_output(run);
    assert_eq!((end.exit, end.output), (ProcessExit::Code(0), output.len() as u64));
    let parts = stderr_parts(&keeper.output(run)).unwrap().expect("it has an index");
    let stderr: String = parts.iter().map(|(from, until)| &output[*from as usize..*until as usize]).collect();
    assert_eq!(stderr, "two\n");
    assert_eq!(output.replace("two\n", ""), "one\nthree\nfour\n");
    forget(&keeper, &mut daemon, run);
    until("its index is removed", || stderr_parts(&keeper.output(run)).unwrap().is_none().then_some(()));
    // Without the request there is one pipe, and the order of all writes is kept.
    let run = daemon.launch(&shell("echo one; echo two >&2; echo three"));
    daemon.ended(run);
    assert_eq!(keeper.read_output(run), "one\ntwo\nthree\n");
    assert_eq!(stderr_parts(&keeper.output(run)).unwrap(), None);
}

#[test]
fn background_process_writes_on_after_its_run_and_its_keeper() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let pid_file = keeper.data.join("pid");
    // More than a pipe holds, twice.
    let much = |name: &str| format!("head -c 300000 /dev/zero; touch {}", keeper.data.join(name).display());
    let later = [wait_for_file(&keeper, "ended"), much("once"), wait_for_file(&keeper, "alone"), much("twice")];
    let script = format!("({}; exec sleep 600) & echo $! > {}; printf abc", later.join("; "), pid_file.display());
    let run = daemon.launch(&shell(&script));
    assert_eq!(daemon.ended(run).output, 3);
    create(&keeper, "ended");
    until("it wrote after its run", || keeper.data.join("once").exists().then_some(()));
    forget(&keeper, &mut daemon, run);
    daemon.send(&ToKeeper::Retire);
    assert!(keeper.wait());
    create(&keeper, "alone");
    until("it wrote after its keeper", || keeper.data.join("twice").exists().then_some(()));
    let pid = read_pid(&pid_file);
    assert!(is_alive(pid));
    kill(pid);
}

#[test]
fn program_writes_on_while_there_is_no_keeper() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let script = |keeper: &Keeper, rest: &str| {
        let (wait, done) = (wait_for_file(keeper, "go"), keeper.data.join("done"));
        format!("echo before; {wait}; seq 1 100000; touch {}{rest}", done.display())
    };
    // One is alive when the next keeper starts, and one is not.
    let (alive, _) = daemon.start(&script(&keeper, "; exec sleep 600"));
    let (over, _) = daemon.start(&script(&keeper, "2; printf end"));
    [alive, over].into_iter().for_each(|run| keeper.wait_for(run, "before"));
    keeper.kill();
    create(&keeper, "go");
    until("both have written", || {
        (keeper.data.join("done").exists() && keeper.data.join("done2").exists()).then_some(())
    });
    keeper.replace();
    let listed = keeper.daemon().listed;
    assert!(listed.iter().all(|program| program.stage == ProgramStage::Lost), "{listed:?}");
    assert!(keeper.read_output(alive) == format!("before\n{numbers}"));
    assert!(keeper.read_output(over) == format!("before\n{numbers}end"));
}

/// The collector of a keeper.
fn collector(keeper: &Keeper) -> Option<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_collector = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1).map(str::to_owned));
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent == Some(keeper.pid().to_string()) && line.ends_with(b"\0keeper-outputs\0")
    };
    pids.into_iter().find(is_collector)
}

#[test]
fn killed_collector_is_replaced_and_loses_nothing() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let (run, _) = daemon.start(&format!("echo before; {}; seq 1 100000", wait_for_file(&keeper, "go")));
    keeper.wait_for(run, "before");
    let first = until("a collector", || collector(&keeper));
    kill(first);
    create(&keeper, "go");
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
    let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert!(keeper.read_output(run) == format!("before\n{numbers}"));
    assert_ne!(until("another collector", || collector(&keeper)), first);
}

#[test]
fn output_of_living_programs_survives_keeper_and_collector() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let begin = |daemon: &mut Daemon, separate_stderr: bool, done: &str| {
        let (wait, done) = (wait_for_file(&keeper, "go"), keeper.data.join(done));
        let mut wanted =
            shell(&format!("echo before; {wait}; echo after; echo why >&2; touch {}; exec sleep 600", done.display()));
        wanted.separate_stderr = separate_stderr;
        let run = daemon.launch(&wanted);
        (run, daemon.started(run))
    };
    let (mixed, first) = begin(&mut daemon, false, "done");
    let (separate, second) = begin(&mut daemon, true, "done2");
    [mixed, separate].into_iter().for_each(|run| keeper.wait_for(run, "before"));
    let collector = until("a collector", || collector(&keeper));
    keeper.kill();
    kill(collector);
    create(&keeper, "go");
    until("both have written", || {
        (keeper.data.join("done").exists() && keeper.data.join("done2").exists()).then_some(())
    });
    assert!(is_alive(first) && is_alive(second));
    keeper.replace();
    drop(keeper.daemon());
    assert!(!is_alive(first) && !is_alive(second));
    for run in [mixed, separate] {
        assert_eq!(keeper.read_output(run), "before\nafter\nwhy\n");
    }
    assert_eq!(stderr_parts(&keeper.output(separate)).unwrap(), Some(vec![(13, 17)]));
}

#[test]
fn fast_writer_neither_fills_the_disk_nor_holds_up_others() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut much = shell("head -c 200000000 /dev/zero; printf end");
    much.output = OutputLimits { head: 1 << 16, tail: 1 << 20 };
    let run = daemon.launch(&much);
    daemon.started(run);
    let (other, _) = daemon.start("for n in 1 2 3; do echo $n; done");
    assert_eq!(daemon.ended(other).exit, ProcessExit::Code(0));
    assert_eq!(keeper.read_output(other), "1\n2\n3\n");
    assert_eq!(daemon.ended(run).output, 200_000_003);
    let found = fs::metadata(keeper.output(run)).unwrap();
    assert_eq!(found.len(), 200_000_003);
    assert!(found.blocks() * 512 < 4 << 20, "{}", found.blocks());
}

#[test]
fn programs_have_the_file_limit_of_the_keepers_start() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let own = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let (run, _) = daemon.start("ulimit -Sn");
    daemon.ended(run);
    let wanted = own.map_or_else(|| "unlimited".to_owned(), |own| own.to_string());
    assert_eq!(keeper.read_output(run).trim(), wanted);
}
