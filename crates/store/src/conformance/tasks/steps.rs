//! Steps: each is one commit, or nothing.

use cronhold_core::task::{
    ActOutcome, NewTask, StepEnding, StepError, TaskAct, TaskRefusal, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_schedule::Span;

use super::TaskSubject;
use super::fixture::{LEASE, TaskFixture, child_of, id, port, publish, run, set_state, with_inports, write};
use crate::tasks::{StepCall, TaskReceipt};

pub fn step_is_running_and_then_completed(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    subject.pass(Span::from_secs(5));
    let leased = fixture.lease_of(task);
    assert_eq!((fixture.status(task), fixture.record(task).ran_at), (TaskStatus::Running, Some(fixture.now())));
    let held = fixture.record(task).lease.expect("it is held");
    assert_eq!((held.step, held.until), (leased.step, fixture.now().plus(LEASE)));
    assert_eq!(fixture.lease(), None, "one step of a task at a time");
    fixture.finish(&leased, StepEnding::Completed);
    let record = fixture.record(task);
    assert_eq!((record.status, record.lease, record.entry), (TaskStatus::Completed, None, None));
    assert_eq!(fixture.lease(), None, "no entry is left");
    fixture.act(run(task));
    assert!(!fixture.lease_of(task).is_first);
}

/// Everything that a step does is there at once.
pub fn step_commits_everything_together(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:in", &["1", "2", "3"]));
    let leased = fixture.lease_of(task);
    let window = leased.window.inports.iter().find(|port| port.name.as_str() == "in").expect("its window");
    let acts = vec![
        TaskAct::Take { port: port(task, "in:in"), position: window.position, count: 2 },
        write(task, "out:out", &["3"]),
        set_state(task, "n", "2"),
        TaskAct::Create(child_of(task, "a", "Pipe")),
        write_to_child("7"),
        publish("/sum", "3"),
    ];
    assert_eq!(fixture.values(task, "in:in"), "1 2 3", "nothing is visible before the commit");
    let receipt = fixture.end(&leased, StepEnding::Suspended, acts).expect("it holds its task");
    let TaskReceipt::Committed(outcomes) = receipt else { panic!("it was not committed before") };
    assert_eq!(outcomes[3], ActOutcome::Created(id(2)));
    assert_eq!((fixture.values(task, "in:in").as_str(), fixture.values(task, "out:out").as_str()), ("3", "3"));
    assert_eq!((fixture.state(task, "n").as_deref(), fixture.children(task).as_str()), (Some("2"), "a=2"));
    assert_eq!(fixture.values(id(2), "in:in"), "7", "a new child can be written to");
    assert_eq!(fixture.status(task), TaskStatus::Suspended);
}

fn write_to_child(value: &str) -> TaskAct {
    let mut target = port(id(1), "in:in");
    target.task = TaskTarget::New(0);
    TaskAct::Write { port: target, items: vec![super::fixture::item(value)], as_default: false, notify: true }
}

/// A step that took too long can neither commit nor disturb the one that repeats it.
pub fn lost_step_commits_nothing(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let lost = fixture.lease_of(task);
    subject.pass(LEASE);
    let repeated = fixture.lease_of(task);
    let acts = || {
        vec![write(task, "out:out", &["1"]), set_state(task, "n", "1"), TaskAct::Create(child_of(task, "a", "Pass"))]
    };
    let stopped = TaskRefusal::StepLost(task);
    assert_eq!(fixture.end(&lost, StepEnding::Completed, acts()), Err(stopped.clone()));
    assert_eq!((fixture.values(task, "out:out").as_str(), fixture.state(task, "n")), ("", None));
    assert_eq!((fixture.children(task).as_str(), fixture.status(task)), ("", TaskStatus::Running));
    fixture.end(&repeated, StepEnding::Completed, acts()).expect("it holds its task");
    assert_eq!(fixture.values(task, "out:out"), "1", "once");
    assert_eq!(fixture.end(&lost, StepEnding::Failed(StepError::new("late")), Vec::new()), Err(stopped));
    assert_eq!(fixture.status(task), TaskStatus::Completed);
}

/// A step that is late and was not taken back yet still holds its task.
pub fn late_step_commits_while_it_holds_its_task(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let leased = fixture.lease_of(task);
    subject.pass(LEASE.plus(LEASE));
    fixture.finish(&leased, StepEnding::Completed);
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Completed, None));
}

/// The reply to a commit may be lost; the unit is sent again.
pub fn unit_of_a_step_takes_effect_once(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let leased = fixture.lease_of(task);
    let unit = TaskUnit::step(task, leased.step, StepEnding::Completed, vec![write(task, "out:out", &["1"])]);
    assert_eq!(fixture.commit_unit(unit.clone()), Ok(TaskReceipt::Committed(vec![ActOutcome::Done])));
    assert_eq!(fixture.commit_unit(unit.clone()), Ok(TaskReceipt::Repeated(Vec::new())));
    fixture.act(run(task));
    let next = fixture.lease_of(task);
    assert_eq!(fixture.commit_unit(unit), Ok(TaskReceipt::Repeated(Vec::new())), "also during the next step");
    assert_eq!(fixture.values(task, "out:out"), "1");
    fixture.finish(&next, StepEnding::Completed);
}

pub fn unknown_step_is_refused(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let step = fixture.step_ids(1)[0];
    for missing in [task, id(9)] {
        let unit = TaskUnit::step(missing, step, StepEnding::Completed, Vec::new());
        assert_eq!(fixture.commit_unit(unit), Err(TaskRefusal::StepLost(missing)));
    }
    assert_eq!(fixture.status(task), TaskStatus::Queued);
}

/// Items that another client has taken meanwhile make the step repeat, and none of its effects remain.
pub fn step_with_stale_reads_is_repeated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:in", &["1", "2"]));
    let leased = fixture.lease_of(task);
    let position = leased.window.inports[0].position;
    assert_eq!(fixture.read(task, "in:in").as_deref(), Some("1"));
    let take = |count| TaskAct::Take { port: port(task, "in:in"), position, count };
    let acts = vec![write(task, "out:out", &["1"]), take(1)];
    let refusal = fixture.end(&leased, StepEnding::Completed, acts).expect_err("the item was taken");
    assert!(matches!(refusal, TaskRefusal::ItemsTaken(_)), "{refusal}");
    assert_eq!((fixture.status(task), fixture.values(task, "out:out").as_str()), (TaskStatus::Queued, ""));
    let leased = fixture.lease_of(task);
    assert_eq!(super::fixture::values(&leased.window.inports[0].items), "2");
    let position = leased.window.inports[0].position;
    let take = |count| TaskAct::Take { port: port(task, "in:in"), position, count };
    let refusal = fixture.end(&leased, StepEnding::Completed, vec![take(2)]).expect_err("there is one item");
    assert!(matches!(refusal, TaskRefusal::ItemsTaken(_)), "{refusal}");
    let leased = fixture.lease_of(task);
    fixture.end(&leased, StepEnding::Completed, vec![take(1)]).expect("it is there");
    assert_eq!(fixture.values(task, "in:in"), "");
}

/// Others only append, so a write does not disturb the step that reads the port.
pub fn write_during_a_step_commutes_with_it(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:in", &["1"]));
    let leased = fixture.lease_of(task);
    let position = leased.window.inports[0].position;
    fixture.act(write(task, "in:in", &["2"]));
    fixture.act(set_state(task, "other", "1"));
    let take = TaskAct::Take { port: port(task, "in:in"), position, count: 1 };
    fixture.end(&leased, StepEnding::Completed, vec![take, set_state(task, "own", "1")]).expect("it holds its task");
    assert_eq!((fixture.status(task), fixture.values(task, "in:in").as_str()), (TaskStatus::Queued, "2"));
    assert_eq!(
        (fixture.state(task, "other").as_deref(), fixture.state(task, "own").as_deref()),
        (Some("1"), Some("1"))
    );
    fixture.lease_of(task);
}

/// A step that can never be committed fails at once instead of being repeated.
pub fn step_with_an_impossible_act_fails(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let leased = fixture.lease_of(task);
    let mut listener = fixture.listen(&["/sidejob/log"]);
    let acts = vec![write(task, "out:out", &["1"]), write(task, "in:unknown", &["1"])];
    fixture.end(&leased, StepEnding::Completed, acts).expect_err("a port is unknown");
    assert_eq!((fixture.status(task), fixture.values(task, "out:out").as_str()), (TaskStatus::Failed, ""));
    let logged = fixture.heard(&mut *listener, "/sidejob/log");
    assert!(logged.len() == 1 && logged[0].starts_with(r#"/sidejob/log {"job":1,"#), "{logged:?}");
    assert!(logged[0].contains("in:unknown"), "{logged:?}");
}

/// A write during a step leads to another step, also if the step is given up because it was refused or lost.
pub fn write_during_a_step_that_is_given_up_is_kept(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let refused = fixture.lease_of(task);
    fixture.act(write(task, "in:in", &["1"]));
    let acts = vec![write(task, "in:unknown", &["1"])];
    fixture.end(&refused, StepEnding::Completed, acts).expect_err("a port is unknown");
    assert_eq!(fixture.status(task), TaskStatus::Queued);
    for _ in 0..2 {
        fixture.lease_of(task);
        subject.pass(LEASE);
    }
    fixture.lease_of(task);
    fixture.act(write(task, "in:in", &["2"]));
    subject.pass(LEASE);
    let woken = fixture.lease_of(task);
    assert_eq!(super::fixture::values(&woken.window.inports[0].items), "1 2");
    fixture.end(&woken, StepEnding::Completed, vec![write(task, "in:unknown", &["1"])]).expect_err("a port is unknown");
    assert_eq!(fixture.status(task), TaskStatus::Failed, "nothing came meanwhile");
}

pub fn step_that_is_always_refused_fails(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (task, owner) = (fixture.create("Pass"), fixture.create("Pass"));
    let alias = super::fixture::alias("taken");
    fixture.act(TaskAct::AddAlias { task: TaskTarget::Id(owner), alias: alias.clone() });
    fixture.act(run(task));
    let mut steps = 0;
    while fixture.status(task) != TaskStatus::Failed {
        let Some(leased) = fixture.lease() else { panic!("it is repeated until it fails") };
        if leased.window.task.id == owner {
            fixture.finish(&leased, StepEnding::Completed);
            continue;
        }
        let act = TaskAct::AddAlias { task: TaskTarget::Id(task), alias: alias.clone() };
        fixture.end(&leased, StepEnding::Completed, vec![act]).expect_err("the alias is taken");
        steps += 1;
        assert!(steps < 100, "it fails at some time");
    }
    assert_eq!(steps, 13);
}

pub fn failed_step_is_logged(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let leased = fixture.lease_of(task);
    let mut listener = fixture.listen(&["/sidejob/log"]);
    let error = StepError { message: "no \"x\"".to_owned(), backtrace: Some("a\nb".to_owned()) };
    fixture.finish(&leased, StepEnding::Failed(error));
    assert_eq!(fixture.status(task), TaskStatus::Failed);
    let logged = fixture.heard(&mut *listener, "/sidejob/log");
    assert_eq!(logged.len(), 1);
    assert!(logged[0].contains(r#""error":"no \"x\"","backtrace":"a\nb"}"#), "{logged:?}");
}

/// A request to run a task leads to a step that begins later, also if the present one fails.
pub fn run_during_a_failing_step_is_kept(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let leased = fixture.lease_of(task);
    fixture.act(write(task, "in:in", &["1"]));
    fixture.finish(&leased, StepEnding::Failed(StepError::new("no")));
    assert_eq!(fixture.status(task), TaskStatus::Queued);
    fixture.perform(task, StepEnding::Failed(StepError::new("no")));
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Failed, None));
}

pub fn task_that_runs_itself_makes_another_step(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    for ending in [StepEnding::Completed, StepEnding::Suspended] {
        let leased = fixture.lease_of(task);
        fixture.end(&leased, ending, vec![run(task)]).expect("it holds its task");
        assert_eq!(fixture.status(task), TaskStatus::Queued);
    }
    fixture.perform(task, StepEnding::Suspended);
    assert_eq!(fixture.status(task), TaskStatus::Suspended);
}

pub fn startup_is_repeated_until_it_succeeds(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Starter");
    let leased = fixture.lease_of(task);
    assert!(leased.is_first && fixture.record(task).ran_at.is_none());
    fixture.finish(&leased, StepEnding::Failed(StepError::new("no")));
    assert_eq!((fixture.status(task), fixture.record(task).ran_at), (TaskStatus::Failed, None));
    let force = TaskAct::Run { task: TaskTarget::Id(task), forced: true, at: None };
    fixture.act(force.clone());
    let leased = fixture.lease_of(task);
    assert!(leased.is_first, "the startup has not succeeded");
    let started = || fixture.end(&leased, StepEnding::Started, vec![set_state(task, "started", "1")]);
    assert_eq!(started(), Ok(TaskReceipt::Committed(vec![ActOutcome::Done])));
    assert_eq!(started(), Ok(TaskReceipt::Repeated(Vec::new())), "it can be sent again");
    let record = fixture.record(task);
    assert_eq!((record.status, record.ran_at.is_some(), record.lease.is_some()), (TaskStatus::Running, true, true));
    fixture.finish(&leased, StepEnding::Failed(StepError::new("no")));
    assert_eq!(fixture.state(task, "started").as_deref(), Some("1"), "a failed step does not undo the startup");
    fixture.act(force);
    assert!(!fixture.lease_of(task).is_first);
}

/// A startup that waits for input is called again when the input arrives.
pub fn suspended_startup_is_woken(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Starter", r#"{"in":{}}"#));
    fixture.perform(task, StepEnding::Suspended);
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Suspended, None));
    fixture.act(write(task, "in:in", &["1"]));
    assert!(fixture.lease_of(task).is_first);
}

pub fn task_that_runs_away_is_terminated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let mut listener = fixture.listen(&["/sidejob/log"]);
    for _ in 0..600 {
        let leased = fixture.lease_of(task);
        assert_eq!(leased.call, StepCall::Perform);
        fixture.end(&leased, StepEnding::Completed, vec![run(task)]).expect("it holds its task");
    }
    let leased = fixture.lease_of(task);
    assert_eq!((leased.call, fixture.status(task)), (StepCall::Shutdown, TaskStatus::Terminating));
    let logged = fixture.heard(&mut *listener, "/sidejob/log");
    assert!(logged.len() == 1 && logged[0].contains(r#""error":""#), "{logged:?}");
    fixture.finish(&leased, StepEnding::ShutDown(None));

    let patient = fixture.create("Pass");
    for _ in 0..2 {
        for _ in 0..600 {
            let leased = fixture.lease_of(patient);
            fixture.end(&leased, StepEnding::Completed, vec![run(patient)]).expect("it holds its task");
        }
        subject.pass(Span::from_secs(60));
    }
    assert_eq!(fixture.lease_of(patient).call, StepCall::Perform, "600 steps in a minute are allowed");
}

/// One unit of a commit does not affect the others.
pub fn units_of_a_commit_are_independent(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let unit = |class: &str| TaskUnit::request(vec![TaskAct::Create(NewTask { ..super::fixture::new_task(class) })]);
    let units = vec![unit("Pass"), unit("Unknown"), unit("Pass")];
    let results = super::super::block_on(fixture.store.commit(units));
    let done: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, false, true]);
    assert_eq!(fixture.find("2").map(|task| task.id), Some(id(2)));
    assert_eq!(fixture.find("3"), None);
}

pub fn steps_are_counted(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for ending in [StepEnding::Completed, StepEnding::Suspended, StepEnding::Failed(StepError::new("no"))] {
        let task = fixture.create("Pass");
        fixture.perform(task, ending);
    }
    let task = fixture.create("Pass");
    fixture.perform(task, StepEnding::GivenBack);
    let totals = super::super::block_on(fixture.store.totals()).expect("totals can be read");
    assert_eq!((totals.processed, totals.failed), (3, 1), "a step that was given back does not count");
}

/// A port that was removed after the step has read it is like one whose items were taken.
pub fn step_whose_port_was_removed_is_repeated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pass", r#"{"in":{}}"#));
    fixture.act(write(task, "in:in", &["1"]));
    let leased = fixture.lease_of(task);
    let position = leased.window.inports[0].position;
    let ports = cronhold_core::task::PortMap::new();
    let direction = cronhold_core::task::PortDirection::In;
    fixture.act(TaskAct::SetPorts { task: TaskTarget::Id(task), direction, ports });
    let take = TaskAct::Take { port: port(task, "in:in"), position, count: 1 };
    let refusal = fixture.end(&leased, StepEnding::Completed, vec![take]);
    assert_eq!(refusal, Err(TaskRefusal::ItemsTaken(super::fixture::address(task, "in:in"))));
    fixture.perform(task, StepEnding::Completed);
}

/// A step that changes too much at once is repeated: its worker can do less.
pub fn step_that_is_too_large_is_repeated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let leased = fixture.lease_of(task);
    let acts = vec![run(task); cronhold_core::task::limits::UNIT_ACTS_MAX + 1];
    let refusal = fixture.end(&leased, StepEnding::Completed, acts).expect_err("it has too many acts");
    assert!(matches!(refusal, TaskRefusal::TooLarge { .. }), "{refusal}");
    let leased = fixture.lease_of(task);
    assert_eq!(leased.window.task.refused_steps, 1, "the worker can see it");
    fixture.finish(&leased, StepEnding::Completed);
    assert_eq!(fixture.record(task).refused_steps, 0);
}
