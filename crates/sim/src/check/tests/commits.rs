//! Invalid commits.

use std::sync::Arc;

use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::job::{CatchUpPolicy, CatchUpRule, JobSchedule, NodeSelector};
use cronhold_core::record::{
    ActivePause, Actor, Backlog, LockName, PauseState, Record, RecordKey, Run, Transition, TransitionKind,
};
use cronhold_core::{NodeId, RunId, RunNumber};
use cronhold_schedule::{Instant, ScheduleSpec, Span, Timing};
use cronhold_store::Unit;

use super::*;
use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};

/// What the checkers find after a job was created and some units were committed.
fn finding(units: impl IntoIterator<Item = Unit>) -> String {
    let mut bench = Bench::new();
    units.into_iter().for_each(|unit| bench.commit(&unit));
    bench.rest();
    bench.finding()
}

#[track_caller]
fn expect(units: impl IntoIterator<Item = Unit>, expected: &str) {
    let found = finding(units);
    assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}\ninstead of\n{expected}");
}

#[test]
fn valid_commits_are_accepted() {
    let (started, ended) = (run(1, &[Waiting, Starting]), run(1, &[Waiting, Starting, Success]));
    expect([unit([put(&started), state(&[&started])]), unit([put(&ended), state(&[])])], "");
}

#[test]
fn occurrence_claimed_twice_is_reported() {
    let ended = run(1, &[Waiting, Starting, Success]);
    let other = Run { id: RunId::from_key(ended.nominal, "other"), number: RunNumber(2), ..ended.clone() };
    expect([unit([put(&ended)]), unit([put(&other)])], "one first start per occurrence: j#2 and j#1 are both for");
}

#[test]
fn invalid_transitions_are_reported() {
    let leap = run(1, &[Waiting, Running, Success]);
    expect([unit([put(&leap)])], "runs follow the state table: j#1 went from waiting to running");
    let (ended, again) = (run(1, &[Waiting, Starting, Success]), run(1, &[Waiting, Starting, Success, Failure]));
    expect([unit([put(&ended)]), unit([put(&again)])], "j#1 was success and continued automatically");
    let skipped = run(1, &[Skipped]);
    let stretch = |count| CountedRange { from: skipped.nominal, to: skipped.nominal, count };
    expect([unit([span(&skipped, stretch(3))]), unit([span(&skipped, stretch(4))])], "");
    let shrunk = [unit([span(&skipped, stretch(3))]), unit([span(&skipped, stretch(2))])];
    expect(shrunk, "the span j#1 changed without being extended");
    let waiting = run(1, &[Waiting]);
    let forget = Unit { changes: vec![RecordChange::Delete(RecordKey::Run(waiting.id))], ..unit([]) };
    expect([unit([put(&waiting), state(&[&waiting])]), forget], "j#1 was deleted while it was waiting");
}

/// A late report adds one note and changes nothing else.
#[test]
fn changes_of_finished_runs_are_reported() {
    let over = run(1, &[Waiting, Starting, Error]);
    let note = |run: &Run| {
        let kind = TransitionKind::LateResult;
        let entry = Transition { kind, ..Transition::entered(run.nominal, Error, Actor::Program) };
        Run { log: run.log.iter().cloned().chain([entry]).collect(), ..run.clone() }
    };
    let noted = note(&over);
    expect([unit([put(&over)]), unit([put(&noted)])], "");
    expect([unit([put(&over)]), unit([put(&noted)]), unit([put(&note(&noted))])], "two notes of how its program ended");
    let bent = Run { reason: Some(Reason::StartUnknown), ..noted };
    expect([unit([put(&over)]), unit([put(&bent)])], "j#1 was error and a note of its program changed that");
    let moved = Run { due: Some(Instant::EPOCH), ..over.clone() };
    expect([unit([put(&over)]), unit([put(&moved)])], "j#1 was error and was changed");
}

#[test]
fn missing_and_impossible_reasons_are_reported() {
    let failed = Run { reason: None, ..run(1, &[Waiting, Starting, Failure]) };
    expect([unit([put(&failed)])], "every outcome has a reason: j#1 is failure without a reason");
    let failed = Run { reason: Some(Reason::Overlap), ..failed };
    expect([unit([put(&failed)])], "j#1 is failure with an impossible reason: overlap");
}

#[test]
fn starts_while_paused_or_removed_are_reported() {
    let pause = ActivePause { since: Instant::EPOCH, by: Actor::JobFiles, why: String::new(), until: None };
    let paused = Record::Pause(Arc::new(PauseState { current: Some(pause), last: None }));
    let started = run(1, &[Waiting, Starting]);
    let start = || unit([put(&started), state(&[&started])]);
    expect([unit([paused]), start()], "j#1 starts while its job or everything is paused");
    let removed = Unit { changes: vec![RecordChange::Delete(RecordKey::Job(job_id()))], ..unit([]) };
    expect([removed, start()], "j#1 starts though its job was removed");
}

#[test]
fn second_lock_holder_is_reported() {
    let lock = LockName::parse("l").expect("a letter");
    let started = |number| Run { lock: Some(lock.clone()), ..run(number, &[Waiting, Starting]) };
    let (one, two) = (started(1), started(2));
    let take = |run: &Run| LockTake { lock: lock.clone(), holder: run.id, ttl: None };
    let first = Unit { take: vec![take(&one)], ..unit([put(&one), state(&[&one])]) };
    let second = Unit { take: vec![take(&two)], ..unit([put(&two), state(&[&one, &two])]) };
    expect([first.clone(), second], "takes the lock `l` from run");
    let ended = Run { lock: Some(lock.clone()), ..run(1, &[Waiting, Starting, Success]) };
    expect([first.clone(), unit([put(&ended), state(&[])])], "j#1 is success and holds the lock `l`");
    let early = Unit { free: vec![LockRelease { lock: lock.clone(), holder: one.id }], ..unit([]) };
    expect([first, early], "the lock `l` is freed while j#1 has its program");
}

#[test]
fn overlapping_runs_are_reported() {
    let (one, two) = (run(1, &[Waiting, Starting]), run(2, &[Waiting, Starting]));
    expect(
        [unit([put(&one), state(&[&one])]), unit([put(&two), state(&[&one, &two])])],
        "j#2 starts beside j#1, which is starting",
    );
}

#[test]
fn duplicate_run_numbers_are_reported() {
    let (one, two) = (run(1, &[Waiting, Starting, Success]), run(2, &[Waiting, Starting, Success]));
    expect([unit([put(&one), put(&Run { number: RunNumber(1), ..two })])], "two runs are called j#1");
}

#[test]
fn job_state_that_disagrees_with_runs_is_reported() {
    let started = run(1, &[Waiting, Starting]);
    expect([unit([put(&started), state(&[])])], "j#1 is starting and not counted as active");
    let waiting = run(1, &[Waiting]);
    expect([unit([put(&waiting), state(&[])])], "j#1 is waiting and the queue disagrees");
    let ended = run(1, &[Waiting, Starting, Success]);
    expect([unit([put(&ended), state(&[&started])])], "j still counts run");
}

#[test]
fn missing_and_double_outcomes_are_reported() {
    let started = run(1, &[Waiting, Starting]);
    expect([unit([put(&started), state(&[&started])])], "does not come to rest: j#1 is starting");
    let ended =
        Run { retried_by: Some(RunId::from_key(Instant::EPOCH, "none")), ..run(1, &[Waiting, Starting, Failure]) };
    expect([unit([put(&ended)])], "j#1 is retried by a run that does not exist");
    let stretch = |from, to| CountedRange { from, to, count: 3 };
    let (one, two) = (run(1, &[Skipped]), run(2, &[Waiting, Starting, Success]));
    let span = span(&one, stretch(one.nominal, two.nominal));
    expect([unit([span, put(&two)])], "j#1 and j#2 both stand for 1970-01-01T00:16:42Z");
}

#[test]
fn starts_on_ineligible_nodes_are_reported() {
    let nodes = NodeSelector::Labels(["gpu".to_owned()].into());
    let mut bench = Bench::shared("programs run only on eligible nodes", job_with(|job| job.nodes = nodes));
    bench.pass(10);
    bench.beat(&node("cpu", false));
    let started = run(1, &[Waiting, Starting]);
    bench.commit(&unit([put(&started), state(&[&started])]));
    bench.expect("j#1 starts on n1, which does not have the labels of its job");
    let other = Run { target: Some(NodeId::from_bits(2)), ..started };
    expect([unit([put(&other), state(&[&other])])], "j#1 is for node");
}

#[test]
fn fence_that_does_not_increase_is_reported() {
    let lock = LockName::parse("l").expect("a letter");
    let (one, first) = locked(1, &lock, None);
    let (_, second) = locked(2, &lock, None);
    let mut bench = Bench::of("fences only increase");
    bench.commit_with(&first, vec![(lock.clone(), 7)]);
    let ended = Run { lock: Some(lock.clone()), ..run(1, &[Waiting, Starting, Success]) };
    let free = vec![LockRelease { lock: lock.clone(), holder: one.id }];
    bench.commit(&Unit { free, ..unit([put(&ended)]) });
    bench.commit_with(&second, vec![(lock, 7)]);
    bench.expect("the fence of the lock `l` went from 7 to 7");
}

/// A job with a catch-up policy, due every minute, and a backlog from second 600 to 960.
fn catching_up(policy: CatchUpPolicy, within: u64) -> Bench {
    let job = job_with(|job| {
        let interval = Span::from_secs(60);
        let spec = ScheduleSpec::new(Timing::Every { interval, phase: Span::ZERO });
        let (name, args) = (Some("s".to_owned()), cronhold_core::NameMap::new());
        job.schedules = vec![JobSchedule { name, spec, args, enabled: true, stop: None }];
        job.catch_up = CatchUpRule { policy, within: Span::from_secs(within) };
    });
    let mut bench = Bench::shared("catch-up stays within its policy", job);
    let [from, to] = [600, 960].map(Instant::from_secs);
    let (job, schedule, due) = (job_id(), schedule_id(), to);
    let backlog = Backlog { job, schedule, from, position: from, to, count: 7, due, later: Vec::new() };
    bench.commit(&unit([Record::Backlog(Arc::new(backlog))]));
    bench
}

/// A run that catches up the occurrence of `second`, decided at second 1000.
fn caught_up(number: u64, second: i64) -> Run {
    let entry = |state| Transition::entered(Instant::from_secs(1_000), state, Actor::CatchUp);
    let log = [Waiting, Starting].map(entry).to_vec();
    Run { nominal: Instant::from_secs(second), log, ..run(number, &[Waiting, Starting]) }
}

#[test]
fn catch_up_against_the_policy_is_reported() {
    use CatchUpPolicy::{All, Last, None};
    for (policy, within, second, expected) in [
        (All, 3_600, 600, ""),
        (Last, 3_600, 960, ""),
        (None, 3_600, 960, "j#1 is caught up though the policy is none"),
        (Last, 3_600, 900, "j#1 is caught up and is not the last of its outage"),
        (All, 300, 660, "j#1 is caught up 5m40s late, and 5m is allowed"),
        (All, 3_600, 1_020, "j#1 is caught up and was not in the backlog"),
    ] {
        let mut bench = catching_up(policy, within);
        bench.commit(&unit([put(&caught_up(1, second))]));
        bench.expect(expected);
    }
}

#[test]
fn catch_up_above_the_rate_is_reported() {
    let mut bench = catching_up(CatchUpPolicy::All, 3_600);
    for number in 1..=300 {
        bench.commit(&unit([put(&caught_up(number, 600))]));
    }
    bench.expect("");
    bench.commit(&unit([put(&caught_up(301, 600))]));
    bench.expect("j#301 is caught-up run number 301 in one second");
}
