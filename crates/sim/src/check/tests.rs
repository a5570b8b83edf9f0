//! Each checker is shown one event that must not be, and has to say so.

use std::sync::Arc;

use cronhold_core::decision::{Change, Take};
use cronhold_core::job::{Job, Overlap, Program};
use cronhold_core::record::{
    Actor, JobRecord, JobState, Key, LockName, Pause, Pauses, Record, Run, ScheduleId, Source, Transition, Version,
};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::Court;
use crate::mirror::Mirror;
use State::{Failure, Running, Skipped, Starting, Success, Waiting};

const UID: JobUid = JobUid::from_bits(1);

fn job_id() -> JobId {
    JobId::parse("j").expect("a letter")
}

fn run(number: u64, states: &[State]) -> Run {
    let nominal = Instant::from_secs(1_000 + i64::try_from(number).expect("small"));
    let entry =
        |state: &State| Transition { at: nominal, state: *state, actor: Actor::Schedule, message: String::new() };
    let id = RunId::from_key(nominal, &number.to_string());
    Run {
        schedule: Some(ScheduleId::parse("s").expect("a letter")),
        state: *states.last().expect("a state"),
        log: states.iter().map(entry).collect(),
        ..Run::blank(id, RunNumber(number), job_id(), UID, nominal)
    }
}

fn job() -> Record {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.overlap = Overlap::Skip;
    Record::Job(Arc::new(JobRecord::new(job_id(), UID, Arc::new(job), "UTC".into(), Source::Api)))
}

/// The set of runs that fits these runs.
fn state(runs: &[&Run]) -> Record {
    let mut state = JobState::new(job_id());
    for run in runs {
        if run.state.has_program() {
            state.activate(run);
        } else if run.state == Waiting {
            state.queue.push(run.id);
        }
    }
    Record::JobState(Arc::new(state))
}

fn put(run: &Run) -> Record {
    Record::Run(Arc::new(run.clone()))
}

fn unit(records: impl IntoIterator<Item = Record>) -> Unit {
    let changes = records.into_iter().map(Change::Put).collect();
    Unit { version: Version::new(1, 1), compare: Vec::new(), changes, take: Vec::new(), free: Vec::new() }
}

/// What the checkers say after a job was put and some units were done.
fn said(units: impl IntoIterator<Item = Unit>) -> String {
    let (mut court, mut mirror, world) = (Court::default(), Mirror::default(), crate::world());
    for unit in std::iter::once(unit([job()])).chain(units) {
        court.before(&mirror, &unit, &world);
        mirror.apply(&unit);
        court.after(&mirror, &unit);
    }
    court.rested(&mirror, &world, Instant::from_secs(9_999));
    court.finding().map(|finding| finding.to_string()).unwrap_or_default()
}

#[track_caller]
fn says(units: impl IntoIterator<Item = Unit>, expected: &str) {
    let said = said(units);
    assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}\ninstead of\n{expected}");
}

#[test]
fn all_is_well() {
    let (started, ended) = (run(1, &[Waiting, Starting]), run(1, &[Waiting, Starting, Success]));
    says([unit([put(&started), state(&[&started])]), unit([put(&ended), state(&[])])], "");
}

#[test]
fn an_occurrence_is_claimed_once() {
    let ended = run(1, &[Waiting, Starting, Success]);
    let other = Run { id: RunId::from_key(ended.nominal, "other"), number: RunNumber(2), ..ended.clone() };
    says([unit([put(&ended)]), unit([put(&other)])], "one first start for each occurrence: j#2 and j#1 are both for");
}

#[test]
fn a_program_starts_once() {
    let mut court = Court::default();
    let started = run(1, &[Waiting, Starting]);
    court.launched(&started);
    assert_eq!(court.finding(), None);
    court.ended(started.id);
    court.launched(&started);
    assert_eq!(court.finding().expect("twice").what, "the program of j#1 starts again");
}

#[test]
fn runs_move_along_the_table() {
    let leap = run(1, &[Waiting, Running, Success]);
    says([unit([put(&leap)])], "the state table is obeyed: j#1 went from waiting to running");
    let (ended, again) = (run(1, &[Waiting, Starting, Success]), run(1, &[Waiting, Starting, Success, Failure]));
    says([unit([put(&ended)]), unit([put(&again)])], "j#1 was success and went on by itself");
    let waiting = run(1, &[Waiting]);
    let forget = Unit { changes: vec![Change::Delete(Key::Run(waiting.id))], ..unit([]) };
    says([unit([put(&waiting), state(&[&waiting])]), forget], "j#1 was forgotten while it was waiting");
}

#[test]
fn nothing_starts_while_paused_or_removed() {
    let pause = Pause { since: Instant::EPOCH, by: Actor::JobFiles, why: String::new() };
    let paused = Record::Pause(Arc::new(Pauses { current: Some(pause), last: None }));
    let started = run(1, &[Waiting, Starting]);
    let start = || unit([put(&started), state(&[&started])]);
    says([unit([paused]), start()], "j#1 starts while its job or everything is paused");
    let removed = Unit { changes: vec![Change::Delete(Key::Job(job_id()))], ..unit([]) };
    says([removed, start()], "j#1 starts though its job was removed");
}

#[test]
fn a_lock_has_one_holder() {
    let lock = LockName::parse("l").expect("a letter");
    let started = |number| Run { lock: Some(lock.clone()), ..run(number, &[Waiting, Starting]) };
    let (one, two) = (started(1), started(2));
    let take = |run: &Run| Take { lock: lock.clone(), holder: run.id, ttl: None };
    let first = Unit { take: vec![take(&one)], ..unit([put(&one), state(&[&one])]) };
    let second = Unit { take: vec![take(&two)], ..unit([put(&two), state(&[&one, &two])]) };
    says([first.clone(), second], "takes the lock `l` from run");
    let ended = run(1, &[Waiting, Starting, Success]);
    says([first, unit([put(&ended), state(&[])])], "j#1 is success and holds the lock `l`");
    let mut court = Court::default();
    court.launched(&one);
    court.launched(&two);
    assert_eq!(court.finding().expect("two").what, "j#2 starts under the lock `l` beside j#1");
}

#[test]
fn runs_of_a_job_do_not_overlap() {
    let (one, two) = (run(1, &[Waiting, Starting]), run(2, &[Waiting, Starting]));
    says(
        [unit([put(&one), state(&[&one])]), unit([put(&two), state(&[&one, &two])])],
        "j#2 starts beside j#1, which is starting",
    );
}

#[test]
fn numbers_are_given_once() {
    let (one, two) = (run(1, &[Waiting, Starting, Success]), run(2, &[Waiting, Starting, Success]));
    says([unit([put(&one), put(&Run { number: RunNumber(1), ..two })])], "two runs are called j#1");
}

#[test]
fn sets_count_what_is_there() {
    let started = run(1, &[Waiting, Starting]);
    says([unit([put(&started), state(&[])])], "j#1 is starting and not counted as active");
    let waiting = run(1, &[Waiting]);
    says([unit([put(&waiting), state(&[])])], "j#1 is waiting and the queue says otherwise");
    let ended = run(1, &[Waiting, Starting, Success]);
    says([unit([put(&ended), state(&[&started])])], "j still counts run");
}

#[test]
fn everything_comes_to_rest_with_one_outcome() {
    let started = run(1, &[Waiting, Starting]);
    says([unit([put(&started), state(&[&started])])], "it never comes to rest: j#1 is starting");
    let ended =
        Run { retried_by: Some(RunId::from_key(Instant::EPOCH, "none")), ..run(1, &[Waiting, Starting, Failure]) };
    says([unit([put(&ended)])], "j#1 is to be tried again by a run that never was");
    let stretch = |from, to| cronhold_core::policy::catch_up::Stretch { from, to, count: 3 };
    let (one, two) = (run(1, &[Skipped]), run(2, &[Waiting, Starting, Success]));
    let span = Run { span: Some(stretch(one.nominal, two.nominal)), ..one };
    says([unit([put(&span), put(&two)])], "j#1 and j#2 both stand for 1970-01-01T00:16:42Z");
}
