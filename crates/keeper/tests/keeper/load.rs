//! Load: many programs, long outputs, and a full journal.

use std::os::unix::fs::{FileExt, MetadataExt};

use crate::support::{Daemon, Keeper, SECOND, launch, shell, until};
use cronhold_keeper::{FromKeeper, OutputLimits, ProcessExit, ProgramEnd, ProgramLaunch, RunKey, ToKeeper};

const MIB: u64 = 1024 * 1024;

fn files_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn children_of(pid: u32) -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let parents = stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok());
    parents.filter(|parent| *parent == pid).count()
}

/// Some leave an orphan, some need the second stage, some cannot be executed.
fn mixed(number: usize) -> ProgramLaunch {
    let mut next = match number % 50 {
        0 => shell("(sleep 0 &)"),
        1 => launch(&["/no/such/program"]),
        _ => launch(&["true"]),
    };
    next.limits.files = (number % 50 == 2).then_some(64);
    next
}

/// The run that this message ends, if any. Sends the keeper a forget for it.
fn over(daemon: &mut Daemon, message: &FromKeeper) -> Option<RunKey> {
    match message {
        FromKeeper::Ended { run, end } => {
            assert_eq!(end.exit, ProcessExit::Code(0));
            daemon.send(&ToKeeper::Forget { runs: vec![*run] });
            Some(*run)
        }
        FromKeeper::Refused { run, why } => {
            assert!(why.contains("/no/such/program"), "{why}");
            Some(*run)
        }
        _ => None,
    }
}

#[test]
fn after_2000_runs_no_files_and_processes_are_left() {
    const RUNS: usize = 2_000;
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let before = files_of(keeper.pid());
    let mut launched = 0;
    let mut flying = std::collections::BTreeSet::new();
    while launched < RUNS || !flying.is_empty() {
        while launched < RUNS && flying.len() < 64 {
            assert!(flying.insert(daemon.launch(&mixed(launched))));
            launched += 1;
        }
        let message = daemon.receive().expect("the connection stays");
        if let Some(run) = over(&mut daemon, &message) {
            assert!(flying.remove(&run), "reported twice: {message:?}");
        }
    }
    until("only the collector of outputs is left", || (children_of(keeper.pid()) == 1).then_some(()));
    assert_eq!(files_of(keeper.pid()), before);
    // Only empty files for later runs are left.
    until("no output is left", || {
        let mut files = std::fs::read_dir(keeper.folder().join("outputs")).unwrap().flatten();
        files.all(|entry| entry.file_name().to_string_lossy().starts_with("spare-")).then_some(())
    });
    assert!(keeper.daemon().listed.is_empty());
}

#[test]
fn many_programs_at_once_are_all_reported() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    assert_eq!(daemon.ping(), None);
    let launches: Vec<ProgramLaunch> = (0..200).map(|_| shell("sleep 600")).collect();
    let runs: Vec<RunKey> = launches.iter().map(|launch| daemon.launch(launch)).collect();
    for run in &runs {
        daemon.started(*run);
    }
    for run in &runs {
        daemon.send(&ToKeeper::Stop { run: *run, signal: 15, grace: 60 * SECOND });
    }
    for run in runs {
        assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(15));
    }
}

#[test]
fn long_output_keeps_head_tail_and_offsets() {
    const SIZE: u64 = 100 * MIB;
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let script = format!("printf begin; head -c {} /dev/zero | tr '\\0' x; printf end", SIZE - 8);
    let mut wanted = shell(&script);
    wanted.output = OutputLimits { head: MIB, tail: 2 * MIB };
    let run = daemon.launch(&wanted);
    assert_eq!(daemon.ended(run), ProgramEnd { exit: ProcessExit::Code(0), output: SIZE, by_lease: false });
    let file = std::fs::File::open(keeper.output(run)).unwrap();
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    assert!(file.metadata().unwrap().blocks() * 512 < 4 * MIB, "{} blocks", file.metadata().unwrap().blocks());
    let read = |at: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    let (head, tail) = (read(0, MIB), read(SIZE - 2 * MIB, 2 * MIB));
    assert!(head.starts_with(b"begin") && head[5..].iter().all(|byte| *byte == b'x'));
    assert!(tail.ends_with(b"end") && tail[..tail.len() - 3].iter().all(|byte| *byte == b'x'));
    assert!(read(SIZE / 2, MIB).iter().all(|byte| *byte == 0));
}

#[test]
fn long_output_is_punched_out_while_it_grows() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("head -c 50000000 /dev/zero; sleep 600");
    wanted.output = OutputLimits { head: MIB, tail: MIB };
    let run = daemon.launch(&wanted);
    daemon.started(run);
    until("it is cut", || {
        let metadata = std::fs::metadata(keeper.output(run)).ok()?;
        (metadata.len() == 50_000_000 && metadata.blocks() * 512 < 3 * MIB).then_some(())
    });
}

#[test]
fn full_journal_refuses_launches_and_records_ends() {
    // Room for a few programs and all of their ends.
    let mut keeper = Keeper::start_with(crate::support::PATIENCE, 4_096);
    let mut daemon = keeper.daemon();
    let launches: Vec<ProgramLaunch> = (0..20).map(|_| shell("sleep 600")).collect();
    let mut running = Vec::new();
    let mut refused = 0;
    for wanted in &launches {
        let run = daemon.launch(wanted);
        match daemon.find(|message| match message {
            FromKeeper::Started { run: other, .. } if *other == run => Some(Ok(())),
            FromKeeper::Refused { run: other, why } if *other == run => Some(Err(why.clone())),
            _ => None,
        }) {
            Ok(()) => running.push(run),
            Err(why) => {
                assert!(why.contains("journal is full"), "{why}");
                refused += 1;
            }
        }
    }
    assert!(running.len() >= 3 && refused >= 3, "{} run, {refused} were refused", running.len());
    assert!(daemon.ping().is_some_and(|problem| problem.contains("journal is full")), "a ping shows it");
    for run in &running {
        daemon.send(&ToKeeper::Signal { run: *run, signal: 9 });
        assert_eq!(daemon.ended(*run).exit, ProcessExit::Signal(9));
    }
    // Every end was recorded.
    keeper.replace();
    let mut daemon = keeper.daemon();
    let ended = |program: &cronhold_keeper::ListedProgram| {
        matches!(program.stage, cronhold_keeper::ProgramStage::Ended(ProgramEnd { exit: ProcessExit::Signal(9), .. }))
    };
    assert_eq!(daemon.listed.iter().filter(|program| ended(program)).count(), running.len());
    daemon.send(&ToKeeper::Forget { runs: running });
    until("there is room again", || daemon.ping().is_none().then_some(()));
    let (run, _) = daemon.start("exit 0");
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
}

#[test]
fn journal_is_rotated_and_has_room_again_after_runs_are_forgotten() {
    let keeper = Keeper::start_with(crate::support::PATIENCE, 8_192);
    let mut daemon = keeper.daemon();
    for _ in 0..200 {
        let (run, _) = daemon.start("exit 0");
        daemon.ended(run);
        daemon.send(&ToKeeper::Forget { runs: vec![run] });
    }
    assert!(std::fs::metadata(keeper.folder().join("journal")).unwrap().len() <= 8_192);
}
