//! Scripts for the process table: each line is an event, and the indented lines below it are what the table does.

mod shared;

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::ProgramReport;
use cronhold_core::record::{CommandLine, OutputSummary, ResolvedProcess, ResolvedProgram, Run};
use cronhold_core::run::State;
use cronhold_core::signal::Signal;
use cronhold_engine::LaunchRequest;
use cronhold_keeper::client::ConnectionError;
use cronhold_keeper::{FromKeeper, ListedProgram, ProcessExit, ProgramEnd, ProgramStage, RunKey, ToKeeper};
use cronhold_schedule::{Instant, Span};

use super::{Processes, UnstoredOutput};
use crate::event::ProgramEvent;
use crate::testing::run_of;

/// The run with a number, in a state.
fn run(number: &str, state: State) -> Arc<Run> {
    let mut process = ResolvedProcess::plain(CommandLine::Exec(vec!["true".to_owned()]));
    process.success_codes = vec![0, 3];
    let mut run = run_of(ResolvedProgram::Process(Box::new(process)), &[(state, 100)]);
    run.id = id(number);
    Arc::new(run)
}

fn id(number: &str) -> RunId {
    RunId::from_random(Instant::EPOCH, [number.parse().expect("a small number"); 10])
}

fn secs(text: &str) -> Span {
    Span::from_secs(text.parse().expect("a number"))
}

fn key(number: &str) -> RunKey {
    RunKey(id(number).bits())
}

/// `code=0` or `signal=9`, with `!` when the lease has ended it.
fn end(text: &str) -> ProgramEnd {
    let (text, by_lease) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
    let exit = match text.strip_prefix("signal=") {
        Some(signal) => ProcessExit::Signal(signal.parse().expect("a number")),
        None => ProcessExit::Code(text.strip_prefix("code=").expect("an exit").parse().expect("a number")),
    };
    ProgramEnd { exit, output: 5, by_lease }
}

/// `1=running`, `1=lost`, or `1=code=0`.
fn program(text: &str) -> ListedProgram {
    let (number, stage) = text.split_once('=').expect("a stage");
    let stage = match stage {
        "running" => ProgramStage::Running { pid: 7 },
        "lost" => ProgramStage::Lost,
        ended => ProgramStage::Ended(end(ended)),
    };
    ListedProgram { run: key(number), stage }
}

/// Executes a line of a script, at an uptime in seconds.
fn step(processes: &mut Processes, uptime: u64, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let state = |index: usize| words.get(index).map_or(State::Running, |word| State::parse(word).expect("a state"));
    match words[..] {
        ["launch", number, ref until @ ..] => {
            let (up, kill_at) = (Span::from_secs(uptime), until.first().map(|until| secs(until)));
            let launch_by = up.plus(Span::from_secs(10));
            processes.launch(LaunchRequest { run: run(number, State::Starting), fence: Some(4), launch_by, kill_at });
        }
        ["extend", ref leases @ ..] => {
            let lease = |text: &&str| text.split_once('=').map(|(number, until)| (id(number), secs(until)));
            processes.extend(&leases.iter().map(|text| lease(text).expect("a lease")).collect::<Vec<_>>());
        }
        ["adopt", number, ..] => processes.adopt(run(number, state(2)), Span::from_secs(uptime)),
        ["stop", number] => processes.stop(&run(number, State::Stopping)),
        ["signal", number, name] => processes.signal(id(number), Signal::parse(name).expect("a signal")),
        ["settled", number] => processes.settled(id(number)),
        ["ready"] => processes.ready(),
        ["connected"] => processes.connected(false),
        ["connected", "other"] => processes.connected(true),
        ["disconnected"] => drop(processes.disconnected(ConnectionError::Closed)),
        ["list", ref programs @ ..] => {
            let programs = programs.iter().map(|text| program(text)).collect();
            processes.receive(FromKeeper::Listed { programs, is_last: true });
        }
        ["part", text] => {
            processes.receive(FromKeeper::Listed { programs: vec![program(text)], is_last: false });
        }
        ["started", number] => processes.receive(FromKeeper::Started { run: key(number), pid: 7 }),
        ["refused", number] => {
            processes.receive(FromKeeper::Refused { run: key(number), why: "no such file".to_owned() });
        }
        ["unbuildable", number] => processes.refused(id(number), "no secret".to_owned()),
        ["ended", number, how] => {
            processes.receive(FromKeeper::Ended { run: key(number), end: end(how) });
        }
        ["stored", number] => {
            processes.output_stored(id(number), OutputSummary { bytes: 5, tail: Vec::new(), stderr: None }, None);
        }
        ["silent"] => processes.silent(9),
        ["pong"] => processes.receive(FromKeeper::Pong { problem: None }),
        ["pong", why] => processes.receive(FromKeeper::Pong { problem: Some(why.to_owned()) }),
        // What the journal shows about the only launch without an answer.
        ["journal", known] => {
            for run in processes.take_unanswered(Span::from_secs(uptime)) {
                processes.settle_unanswered(run, known == "has-it");
            }
        }
        ["wait"] => {}
        _ => panic!("unknown event `{line}`"),
    }
}

/// Everything that the table has for other parts at this uptime.
fn outcome(processes: &mut Processes, uptime: u64) -> Vec<String> {
    let number = |run: RunId| ["1", "2", "3"].into_iter().find(|number| id(number) == run).expect("a known run");
    let by_key = |run: RunKey| super::run_id(run).map_or("?", number);
    let mut shown = Vec::new();
    processes.expire_settled(Span::from_secs(uptime));
    while let Some(message) = processes.next_control() {
        shown.push(match message {
            ToKeeper::Lease { run, kill_at } => format!("> lease {} {}", by_key(run), kill_at / 1_000_000),
            ToKeeper::Stop { run, signal, grace } => {
                format!("> stop {} {signal} {}s", by_key(run), grace / 1_000_000)
            }
            ToKeeper::Signal { run, signal } => format!("> signal {} {signal}", by_key(run)),
            ToKeeper::Retire => "> retire".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    while let Some(request) = processes.next_launch(Span::from_secs(uptime)) {
        let LaunchRequest { run, fence, launch_by, kill_at } = request;
        assert_eq!(fence, Some(4));
        let until = kill_at.map_or_else(String::new, |kill_at| format!(" until {}", kill_at.secs()));
        shown.push(format!("> launch {} by {}{until}", number(run.id), launch_by.secs()));
    }
    while let Some(ToKeeper::Forget { runs }) = processes.next_forget() {
        shown.push(format!("> forget {}", runs.into_iter().map(by_key).collect::<Vec<_>>().join(" ")));
    }
    for UnstoredOutput { run, length } in processes.take_unstored(10) {
        let output = length.map_or_else(|| "all".to_owned(), |length| length.to_string());
        shown.push(format!("store {output} of {}", number(run)));
    }
    for (run, report) in processes.take_reports(Span::from_secs(uptime), 10) {
        let report = match report {
            ProgramReport::Ended(verdict) => {
                let reason = verdict.reason.map_or_else(|| "nothing to say".to_owned(), |reason| reason.to_string());
                format!("{}: {reason}", if verdict.success { "success" } else { "failure" })
            }
            ProgramReport::NotLaunched(why) => format!("not launched: {why}"),
            other => format!("{other:?}").to_lowercase(),
        };
        shown.push(format!("{} {report}", number(run)));
    }
    for event in processes.take_events() {
        shown.push(match event {
            ProgramEvent::ProgramsFound { running, ended } => format!("· found {running} running, {ended} ended"),
            ProgramEvent::UnclaimedProgram { run, pid } => format!("! unclaimed {} pid {pid}", number(run)),
            other => panic!("{other:?}"),
        });
    }
    shown
}

/// Runs a script, in which each event begins with `@` and the uptime, and compares what the table does.
fn check(script: &str) {
    let mut processes = Processes::default();
    let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut shown_so_far = Vec::new();
    for step_line in lines.iter().filter(|line| line.starts_with('@')) {
        let (at, what) = step_line[1..].split_once(' ').expect("a step");
        let uptime = at.parse().expect("an uptime");
        step(&mut processes, uptime, what);
        shown_so_far.push((*step_line).to_owned());
        shown_so_far.extend(outcome(&mut processes, uptime));
    }
    assert_eq!(shown_so_far.join("\n"), lines.join("\n"));
}

#[test]
fn launched_program_is_reported_stored_and_forgotten() {
    check(
        "@10 connected
        @10 list
        @10 ready
        @10 launch 1
            > launch 1 by 20
        @10 launch 1
        @10 started 1
            1 launched
        @12 ended 1 code=0
            store 5 of 1
        @12 stored 1
            1 success: nothing to say
        @12 stored 1
        @12 settled 1
            > forget 1
        @12 settled 1",
    );
}

#[test]
fn exit_becomes_success_or_failure_with_a_reason() {
    for (exit, words) in [
        ("code=0", "success: nothing to say"),
        ("code=3", "success: exit code 3"),
        ("code=1", "failure: exit code 1"),
        ("code=256", "failure: exit code 256"),
        ("signal=9", "failure: signal SIGKILL"),
        ("signal=70", "failure: exit code 198"),
        ("signal=9!", "failure: lock lost"),
        ("code=1!", "failure: lock lost"),
        ("code=0!", "success: lock lost"),
    ] {
        check(&format!(
            "@10 connected
            @10 list 1={exit}
            @10 adopt 1
                store 5 of 1
            @10 stored 1
                1 {words}"
        ));
    }
}

/// A keeper that hangs after it received a launch: its journal decides, once the keeper can start it no more.
#[test]
fn launch_without_an_answer_is_decided_by_the_journal() {
    check(
        "@10 connected
        @10 list
        @10 ready
        @10 launch 1
            > launch 1 by 20
        @16 silent
        @17 launch 2
        @24 journal lacks-it
        @25 journal lacks-it
            1 not launched: the keeper (pid 9) does not respond; its programs continue
        @25 settled 1
            > forget 1
        @27 wait
            2 not launched: the keeper (pid 9) does not respond; its programs continue
        @40 refused 1
        @40 launch 3
            > launch 3 by 50
        @55 journal has-it
            3 launched
        @56 stop 3
            > stop 3 15 60s
        @60 refused 3
            3 keeperlost",
    );
}

/// The next daemon finds the keeper still hanging.
#[test]
fn sought_program_is_decided_by_the_journal_too() {
    check(
        "@10 adopt 1 starting
        @10 adopt 2 starting
        @10 adopt 3 running
        @20 stop 1
        @24 journal lacks-it
        @25 journal lacks-it
            1 lost
            2 lost
        @90 journal lacks-it
        @99 connected
        @99 list 3=running
            3 launched",
    );
    check(
        "@10 adopt 1 starting
        @25 journal has-it
            1 launched
        @30 connected
        @30 list 1=code=0
            store 5 of 1
        @30 stored 1
            1 success: nothing to say",
    );
}

#[test]
fn refused_launch_is_reported_once() {
    check(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 refused 1
            1 not launched: no such file
        @10 refused 1
        @10 launch 2
            > launch 2 by 20
        @10 unbuildable 2
            2 not launched: no secret
        @10 settled 2
            > forget 2",
    );
}

#[test]
fn launch_waits_for_a_keeper_until_its_deadline() {
    check(
        "@10 launch 1
        @12 disconnected
        @12 connected
        @13 part 2=running
        @13 list
            > launch 1 by 20
        @13 disconnected
        @13 launch 3
        @19 wait
        @23 wait
            3 not launched: the keeper closed the connection
        @24 connected
        @24 list
            1 not launched: the keeper did not start it within 10s",
    );
}

#[test]
fn launch_without_an_answer_is_repeated_only_if_the_keeper_does_not_list_it() {
    check(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 launch 2
            > launch 2 by 20
        @10 launch 3
            > launch 3 by 20
        @11 disconnected
        @12 connected
        @12 list 1=running 2=lost
            > launch 3 by 20
            store all of 2
            1 launched
        @12 started 3
            3 launched
        @12 stored 2
            2 keeperlost",
    );
}

#[test]
fn later_daemon_adopts_programs_of_the_keeper() {
    check(
        "@10 adopt 1 running
        @10 adopt 2 starting
        @11 connected
        @11 list 1=running 2=code=1
            store 5 of 2
            1 launched
        @11 ready
            · found 1 running, 1 ended
        @11 stored 2
            2 failure: exit code 1
        @11 ended 1 signal=15
            store 5 of 1
        @11 stored 1
            1 failure: signal SIGTERM",
    );
    check(
        "@10 connected
        @10 list 1=lost
        @11 adopt 1 running
            store all of 1
        @11 stored 1
            1 keeperlost
        @11 adopt 2 running
            2 lost
        @11 ended 3 code=0
        @11 adopt 3 running
            store 5 of 3
        @11 stored 3
            3 success: nothing to say",
    );
}

#[test]
fn programs_of_a_dead_keeper_are_reported_lost() {
    check(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 started 1
            1 launched
        @10 launch 2
            > launch 2 by 20
        @10 started 2
            2 launched
        @11 disconnected
        @12 connected
        @12 list 1=lost
            store all of 1
            2 lost
        @12 stop 1
        @12 adopt 1 running
        @13 disconnected
        @14 connected
        @14 list 1=lost
        @14 stored 1
            1 keeperlost
        @14 settled 1
            > forget 1",
    );
}

#[test]
fn stop_is_repeated_until_the_program_has_it() {
    check(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 stop 1
        @10 started 1
            > stop 1 15 60s
            1 launched
        @10 stop 1
        @11 disconnected
        @12 connected
        @12 list 1=running
            > stop 1 15 60s
        @12 signal 1 SIGUSR1
            > signal 1 10
        @12 signal 1 SIGKILL
            > stop 1 9 0s
        @12 signal 1 SIGKILL
        @12 stop 1
        @12 adopt 1 stopping
        @13 ended 1 signal=9
            store 5 of 1
        @13 stop 1
        @13 signal 2 SIGKILL
            2 lost",
    );
    // A program that is found only now, and one that was not requested yet.
    check(
        "@10 launch 2
        @10 stop 2
            2 failure: signal SIGTERM
        @10 connected
        @10 list 1=running
        @10 adopt 1 stopping
            1 launched
        @10 adopt 1 stopping
            > stop 1 15 60s",
    );
}

#[test]
fn keeper_of_another_version_is_retired_when_idle() {
    check(
        "@10 connected other
        @10 list 1=running
        @10 adopt 1 running
            1 launched
        @10 ready
            · found 1 running, 0 ended
        @10 launch 2
            > launch 2 by 20
        @10 started 2
            2 launched
        @11 ended 1 code=0
            store 5 of 1
        @11 ended 2 code=0
            > retire
            store 5 of 2
        @11 launch 3
        @11 disconnected
        @11 connected other
        @11 list 1=code=0 2=code=0
            > launch 3 by 21
        @12 stored 1
            1 success: nothing to say
        @12 settled 1
            > forget 1",
    );
}
