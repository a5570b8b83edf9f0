//! What holds for all decisions about runs: every operation in every state does what the table says, and no sequence of
//! commands leads to inconsistent runs, sets and locks, or to runs that wait for each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::Span;
use proptest::prelude::*;

use super::decide;
use super::testing::{DecisionBench, START};
use crate::command::{Command, CommandStamp, ExitOutcome, ProgramReport};
use crate::decision::{CommandReply, Decision, Effect, RecordChange, Rejection};
use crate::ids::{JobId, RunId};
use crate::record::{
    ActiveRun, Actor, JobState, Record, RecordKey, RecordVersion, Run, ScheduleId, SkipSpan, StoredRecord,
};
use crate::run::{self, Cause, Operation, Reason, State};
use crate::signal::Signal;
use crate::view::{DecisionView, RecordSource};

/// A run in each state: how it gets there, and its number.
const WAYS: [(State, &[&str], u64); 9] = [
    (State::Scheduled, &["run j at=05:00"], 1),
    (State::Waiting, &["run j", "run j at=00:00"], 2),
    (State::Starting, &["run j"], 1),
    (State::Running, &["run j", "launched #1"], 1),
    (State::Stopping, &["run j", "launched #1", "stop #1"], 1),
    (State::Success, &["run j", "ended #1 yes"], 1),
    (State::Failure, &["run j", "ended #1 no"], 1),
    (State::Error, &["run j", "lost #1"], 1),
    (State::Skipped, &["run j at=05:00", "skip #1"], 1),
];

fn run_in(way: (State, &[&str], u64)) -> (DecisionBench, Arc<Run>) {
    let (state, lines, number) = way;
    let mut bench = DecisionBench::new();
    for line in ["put j overlap queue"].iter().chain(lines) {
        let said = bench.happens(line);
        assert!(said.iter().all(|said| !said.starts_with('!')), "{line}: {said:?}");
    }
    let run = bench.run(None, number);
    assert_eq!(run.state, state);
    (bench, run)
}

fn anna() -> Actor {
    Actor::Operator("anna".to_owned())
}

#[test]
fn every_operation_in_every_state_does_what_the_table_says() {
    for way in WAYS {
        for operation in Operation::all() {
            let (mut bench, before) = run_in(way);
            let run = before.id;
            let id = RunId::from_key(START, "once more");
            let command = match operation {
                Operation::Start => Command::Start { run },
                Operation::Skip => Command::Skip { run, why: String::new() },
                Operation::Stop => Command::Stop { run },
                Operation::Signal => Command::Signal { run, signal: Signal::TERM },
                Operation::Kill => Command::Signal { run, signal: Signal::KILL },
                Operation::Mark(state) => Command::Mark { run, state, why: String::new() },
                Operation::Rerun => Command::Rerun { run, id, current: false },
            };
            let told = bench.execute(anna(), &command);
            let after = bench.run(None, way.2);
            match run::next(way.0, Cause::By(operation)) {
                Ok(run::TransitionEffect::Enter(state)) => {
                    told.expect("the table allows it");
                    assert_eq!(after.log[before.log.len()].state, state, "{operation} of one that is {}", way.0);
                    assert_eq!(after.log[before.log.len()].actor, anna());
                }
                Ok(run::TransitionEffect::Send) => {
                    let done = told.expect("the table allows it");
                    assert!(matches!(done.effects[..], [Effect::Signal { run: to, .. }] if to == run));
                    assert_eq!(after.log, before.log);
                }
                Ok(run::TransitionEffect::Create) => {
                    let done = told.expect("the table allows it");
                    assert!(matches!(done.answer, CommandReply::Run { id: made, .. } if made == id));
                    assert_eq!(after, before);
                    assert!(bench.runs().any(|run| run.id == id && run.rerun_of == Some(before.id)));
                }
                Err(rejection) => {
                    assert_eq!(told, Err(Rejection::State(rejection)), "{operation} of one that is {}", way.0);
                    assert_eq!(after, before);
                }
            }
        }
    }
}

#[test]
fn every_report_in_every_state_does_what_the_table_says() {
    let failed = ExitOutcome { success: false, ..ExitOutcome::SUCCESS };
    for (report, cause) in [
        (ProgramReport::Launched, Cause::Launched),
        (ProgramReport::Ended(ExitOutcome::SUCCESS), Cause::Succeeded),
        (ProgramReport::Ended(failed), Cause::Failed),
        (ProgramReport::Lost, Cause::Broke),
        (ProgramReport::KeeperLost, Cause::Broke),
        (ProgramReport::NotLaunched("no".to_owned()), Cause::Broke),
    ] {
        for way in WAYS {
            let (mut bench, before) = run_in(way);
            let command = Command::Report { run: before.id, report: report.clone() };
            let done = bench.execute(Actor::Program, &command).expect("reports are never refused");
            let after = bench.run(None, way.2);
            // A report has an effect only on a run that has a program; a running one was launched.
            let has_effect = way.0.has_program()
                && (way.0, &report) != (State::Running, &ProgramReport::NotLaunched("no".to_owned()));
            // A run that was to stop and whose program is gone counts as stopped.
            let was_stopped = cause == Cause::Broke && before.ending.is_some();
            match run::next(way.0, if was_stopped { Cause::Failed } else { cause }) {
                Ok(run::TransitionEffect::Enter(state)) if has_effect => assert_eq!(after.state, state, "{report:?}"),
                Ok(run::TransitionEffect::Send) => {
                    assert!(matches!(&done.effects[..], [Effect::Stop { run }] if *run == before));
                    assert_eq!(after, before);
                }
                // The late result of a lost run is added to its log; its state stays.
                _ if way.0 == State::Error && matches!(report, ProgramReport::Ended(_)) => {
                    assert_eq!(
                        (after.state, &after.reason, after.log.len()),
                        (before.state, &before.reason, before.log.len() + 1)
                    );
                }
                _ => assert_eq!((after, done.answer), (before, CommandReply::Unchanged), "{report:?}"),
            }
        }
    }
}

#[test]
fn commands_reject_a_span_of_skips() {
    let (mut bench, run) = run_in(WAYS[8]);
    let span = SkipSpan {
        id: RunId::from_key(START, "span"),
        number: run.number,
        job: run.job.clone(),
        uid: run.uid,
        args: run.args.clone(),
        schedule: ScheduleId::parse("s").expect("an id"),
        range: crate::policy::catch_up::CountedRange { from: START, to: START, count: 3 },
        reason: Reason::Missed,
        actions: 0,
        log: Vec::new(),
    };
    let id = span.id;
    let stored = StoredRecord { version: RecordVersion::new(1, 1), record: Record::SkipSpan(Arc::new(span)) };
    bench.records.insert(stored.record.key(), stored);
    for run in [id, RunId::from_key(START, "unknown")] {
        for command in [
            Command::Start { run },
            Command::Skip { run, why: String::new() },
            Command::Stop { run },
            Command::Signal { run, signal: Signal::KILL },
            Command::Mark { run, state: State::Success, why: String::new() },
            Command::Rerun { run, id: RunId::from_key(START, "new"), current: true },
        ] {
            assert_eq!(bench.execute(anna(), &command), Err(Rejection::NoRun(run)), "{command:?}");
        }
    }
}

/// All records, as if they had been loaded already.
struct Everything<'a>(&'a BTreeMap<RecordKey, StoredRecord>);

impl RecordSource for Everything<'_> {
    fn get(&self, key: &RecordKey) -> Option<Option<&StoredRecord>> {
        Some(self.0.get(key))
    }
}

/// A store of which nothing is loaded.
struct Nothing;

impl RecordSource for Nothing {
    fn get(&self, _key: &RecordKey) -> Option<Option<&StoredRecord>> {
        None
    }
}

/// A decision continues past a missing record, so that one round requests all records that it would read.
#[test]
fn one_pass_names_all_missing_records() {
    let bench = DecisionBench::new();
    let stamp = CommandStamp { at: bench.now, actor: anna(), owner: bench.me };
    let (job, schedule) = (JobId::parse("j").expect("an id"), ScheduleId::parse("s").expect("an id"));
    let command = Command::Fire { job: job.clone(), schedule: schedule.clone(), nominal: START, at_start: false };
    let needed = [
        RecordKey::Pause,
        RecordKey::Job(job.clone()),
        RecordKey::JobState(job.clone()),
        RecordKey::Cursor(job, schedule),
    ];
    assert_eq!(decide(&DecisionView::new(&Nothing, &bench.world, &stamp), &command), Decision::Need(needed.to_vec()));
}

/// Decides a command with a changed set of runs, without applying the result.
fn decided_with(bench: &DecisionBench, change: impl FnOnce(&mut JobState), command: &Command) -> Decision {
    let mut records = bench.records.clone();
    let mut state = (**bench.job_states().next().expect("a job")).clone();
    change(&mut state);
    let stored = StoredRecord { version: RecordVersion::new(2, 1), record: Record::JobState(Arc::new(state)) };
    records.insert(stored.record.key(), stored);
    let stamp = CommandStamp { at: bench.now, actor: anna(), owner: bench.me };
    let everything = Everything(&records);
    decide(&DecisionView::new(&everything, &bench.world, &stamp), command)
}

fn some_runs(count: usize) -> impl Iterator<Item = RunId> {
    (0..count).map(|number| RunId::from_key(START, &format!("one of many: {number}")))
}

fn written_run(decision: &Decision) -> String {
    let Decision::Done(done) = decision else { panic!("{decision:?}") };
    let mut runs = done.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Run(run)) => Some(run),
        _ => None,
    });
    let run = runs.next().expect("a run");
    let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{}{reason}", run.state)
}

#[test]
fn sets_of_runs_are_bounded() {
    let mut bench = DecisionBench::new();
    bench.happens("put j overlap allow; needs window 12:00 13:00");
    bench.happens("run j");
    let waiting = bench.run(None, 1).id;
    let job = job_of(&bench);
    let run = Command::Run { job, args: BTreeMap::new(), id: RunId::from_key(START, "new"), at: None, stop: None };
    let start = Command::Start { run: waiting };

    let most = JobState::QUEUE_MAX;
    let queued = |count| move |state: &mut JobState| state.queue = some_runs(count).map(Into::into).collect();
    assert_eq!(written_run(&decided_with(&bench, queued(most - 1), &run)), "waiting");
    assert_eq!(written_run(&decided_with(&bench, queued(most), &run)), "skipped: queue full");

    let most = JobState::ACTIVE_MAX;
    let active = |count| {
        move |state: &mut JobState| {
            state.active = some_runs(count).map(|run| ActiveRun { run, args: 0, target: None }).collect();
        }
    };
    assert_eq!(written_run(&decided_with(&bench, active(most - 1), &start)), "starting");
    let refused = decided_with(&bench, active(most), &start);
    assert_eq!(refused, Decision::Reject(Rejection::TooManyActive(job_of(&bench))));
    bench.happens("put j overlap allow");
    assert_eq!(written_run(&decided_with(&bench, active(most - 1), &run)), "starting");
    assert_eq!(written_run(&decided_with(&bench, active(most), &run)), "waiting");
}

fn job_of(bench: &DecisionBench) -> JobId {
    bench.run(None, 1).job.clone()
}

/// Jobs that block each other, with every overlap policy.
const JOBS: [&str; 7] = [
    "a overlap queue 2; lock shared; retry 3; param x; timeout 5m",
    "b overlap replace; lock shared; retry 2; retry_on_error; grace 0s",
    "c overlap skip; retry 2; on_lost_retry; needs max_running 1; needs skip_duplicate",
    "d overlap allow; lock; needs any after a x=1 | window 00:30 23:00",
    "a overlap allow; retry 3; param x; needs max_running 1 same_args",
    "b each; overlap replace; lock shared; retry 2; retry_on_error",
    "c each; overlap queue 2; retry 2; needs skip_duplicate; needs max_running 1",
];

fn step(bench: &mut DecisionBench, (what, which, more): (u8, u8, u8)) {
    bench.now = bench.now.plus(Span::from_secs(u64::from(more) / 8));
    let runs: Vec<(String, RunId)> =
        bench.runs().map(|run| (format!("{}#{}", run.job, run.number.0), run.id)).collect();
    let job = ["a", "b", "c", "d"][usize::from(which) % 4];
    let args = if job == "a" { ["x=1", "x=2"][usize::from(more) % 2] } else { "" };
    let finished: Vec<Arc<Run>> = bench.runs().filter(|run| run.state.is_finished()).cloned().collect();
    let mut marked = None;
    if what < 64 || runs.is_empty() {
        let at = if more % 4 == 0 { format!("at=00:{}", u32::from(more) % 60) } else { String::new() };
        bench.happens(&format!("run {job} {args} {at}"));
    } else {
        let (run, id) = &runs[usize::from(which) % runs.len()];
        let verbs =
            ["wake", "wake", "wake", "launched", "ended", "ended", "lost", "unlaunched", "start", "skip", "stop"];
        let verb = verbs.get(usize::from(what) % 16);
        match (verb, what % 16) {
            (Some(&"ended"), _) => bench.happens(&format!("ended {run} {}", ["yes", "no"][usize::from(more) % 2])),
            (Some(verb), _) => bench.happens(&format!("{verb} {run}")),
            (None, 11) => bench.happens(&format!("signal {run} {}", ["SIGKILL", "SIGHUP"][usize::from(more) % 2])),
            (None, 12) => {
                marked = Some(*id);
                let state = [State::Success, State::Failure, State::Error, State::Skipped][usize::from(more) % 4];
                bench.happens(&format!("mark {run} {state}"))
            }
            (None, 13) => bench.happens(&format!("rerun {run} {}", ["current", ""][usize::from(more) % 2])),
            (None, 14) => bench.happens(&format!("prune {} {run}", run.split('#').next().unwrap_or(""))),
            _ if more >= 128 => bench.happens(&format!("node {}.1", more % 2 + 1)),
            _ => bench.happens(&format!("put {}", JOBS[usize::from(more) % JOBS.len()])),
        };
    }
    for before in finished.iter().filter(|run| Some(run.id) != marked) {
        let after = bench.runs().find(|run| run.id == before.id);
        // The log of a lost run may have gained the late result of its program.
        let is_same = |after: &Run| {
            let notes = after.log.len().saturating_sub(before.log.len());
            let lost = before.state == State::Error && notes <= 1;
            let log = after.log[..after.log.len() - notes].to_vec();
            (notes == 0 || lost) && Run { log, ..after.clone() } == **before
        };
        assert!(after.is_none_or(|after| is_same(after)), "{before:?} has changed");
    }
}

/// Lets time pass and ends every program, until all runs have ended.
fn settle(bench: &mut DecisionBench) {
    const STEPS_MAX: usize = 3_000;
    for _ in 0..STEPS_MAX {
        let programs: Vec<_> = bench.runs().filter_map(|run| Some((run.id, run.owner?, run.state))).collect();
        for (run, owner, _) in programs.into_iter().filter(|(_, _, state)| state.has_program()) {
            bench.me = owner;
            let report = ProgramReport::Ended(ExitOutcome::SUCCESS);
            bench.execute(Actor::Program, &Command::Report { run, report }).expect("a report");
        }
        let Some(due) = bench.runs().filter_map(|run| run.due).min() else { break };
        bench.now = bench.now.max(due);
        for node in ["node 1.1", "node 2.1"] {
            bench.happens(node);
            bench.happens("wake");
        }
    }
    let left: Vec<_> = bench.runs().filter(|run| !run.state.is_finished()).collect();
    assert!(left.is_empty(), "these never end: {left:?}");
    for state in bench.job_states() {
        assert_eq!((state.active.len(), state.queue.len()), (0, 0), "{}", state.job);
        let mut kept = state.kept;
        for finished in State::ALL.into_iter().filter(|state| state.is_finished()) {
            let stored = bench.runs().filter(|run| run.job == state.job && run.state == finished).count();
            assert_eq!(kept.of(finished).map(|count| *count as usize), Some(stored), "{} {finished}", state.job);
        }
    }
    assert!(!bench.records.keys().any(|key| matches!(key, RecordKey::Lock(_))), "a lock outlives its run");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// After each command, the bench checks that runs, sets and locks are consistent and followed the transition table.
    #[test]
    fn random_commands_keep_all_invariants(steps in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..80)) {
        let mut bench = DecisionBench::new();
        bench.happens("there 1 2");
        for job in &JOBS[..4] {
            bench.happens(&format!("put {job}"));
        }
        for one in steps {
            step(&mut bench, one);
        }
        settle(&mut bench);
    }
}

/// The watchdog checks everything repeatedly, so a check without due work must not write.
#[test]
fn wake_before_the_due_time_writes_nothing() {
    for way in WAYS {
        let (mut bench, run) = run_in(way);
        let done = bench.execute(Actor::Watchdog, &Command::Wake { run: run.id }).expect("never refused");
        assert_eq!((done.changes, done.answer), (Vec::new(), CommandReply::Unchanged), "{}", way.0);
    }
}
