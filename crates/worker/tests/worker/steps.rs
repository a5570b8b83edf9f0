//! What a step can do, and what remains of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cronhold_core::task::{
    Channel, JsonText, PortDirection, PortItem, PortName, PortTarget, StateField, TaskAct, TaskId, TaskStatus,
    TaskTarget,
};
use cronhold_schedule::Span;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{TaskStore, WindowLimits};
use cronhold_worker::{StepOutcome, StepResult, TaskStep, Worker, WorkerError, WorkerRuntime};

use crate::samples::script;
use crate::stores::on_each_store;

const TWO_INPUTS: &str = r#"{"inports":{"a":{},"b":{"default":7}},"outports":{"out":{}}}"#;

fn status(runtime: &WorkerRuntime, task: TaskId) -> TaskStatus {
    runtime.find(task).expect("it exists").status
}

fn state(store: &dyn TaskStore, task: TaskId, field: &str) -> Option<String> {
    let window = block_on(store.window(task, &WindowLimits::STEP)).expect("a window").expect("the task");
    let field = StateField::parse(field).expect("a name");
    window.state.into_iter().find(|(name, _)| *name == field).map(|(_, value)| value.to_string())
}

fn read_all(runtime: &WorkerRuntime, task: TaskId) -> Vec<i64> {
    std::iter::from_fn(|| runtime.read(task, "out").expect("a port")).collect()
}

#[test]
fn rounds_read_one_value_of_each_port() {
    on_each_store(|store, _| {
        let runtime = script(store, r#"{"inports":{"a":{},"b":{}},"outports":{"out":{}}}"#, |step| {
            step.for_inputs(&["a", "b"], |step, (a, b): (i64, i64)| step.write("out", &(10 * a + b)))
        });
        let task = runtime.create("Script", &()).expect("a task");
        for (port, number) in [("a", 1), ("a", 2), ("b", 3)] {
            runtime.write(task, port, &number).expect("a port");
        }
        runtime.drain(5).expect("steps");
        assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Suspended, vec![13]));
        runtime.write(task, "b", &4).expect("a port");
        runtime.drain(5).expect("steps");
        assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Completed, vec![24]));
    });
}

#[test]
fn default_is_used_in_every_round() {
    on_each_store(|store, _| {
        let runtime = script(store, TWO_INPUTS, |step| {
            step.for_inputs(&["a", "b"], |step, (a, b): (i64, i64)| step.write("out", &(10 * a + b)))
        });
        let task = runtime.create("Script", &()).expect("a task");
        runtime.write(task, "a", &1).expect("a port");
        runtime.write(task, "a", &2).expect("a port");
        runtime.write(task, "b", &3).expect("a port");
        runtime.drain(5).expect("steps");
        assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Completed, vec![13, 27]));
    });
}

/// All ports have defaults: one round for each list of defaults, whose writes become defaults. A round that fails is
/// made again.
#[test]
fn defaults_alone_are_performed_once() {
    on_each_store(|store, _| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let runtime = script(store, r#"{"inports":{"a":{"default":1}},"outports":{"out":{}}}"#, move |step| {
            step.for_inputs(&["a"], |step, (a,): (i64,)| match counted.fetch_add(1, Ordering::SeqCst) {
                0 => step.fail("not now"),
                _ => step.write("out", &(10 * a)),
            })
        });
        let task = runtime.create("Script", &()).expect("a task");
        assert!(matches!(runtime.drain(5), Err(WorkerError::StepFailed { .. })));
        let run = |forced| TaskAct::Run { task: TaskTarget::Id(task), forced, at: None };
        runtime.request(run(true)).expect("it exists");
        runtime.drain(5).expect("steps");
        assert_eq!((status(&runtime, task), calls.load(Ordering::SeqCst)), (TaskStatus::Completed, 2));
        for _ in 0..2 {
            assert_eq!(runtime.read::<i64>(task, "out").expect("a port"), Some(10), "it is a default");
        }
        runtime.request(run(false)).expect("it exists");
        runtime.drain(5).expect("steps");
        assert_eq!(calls.load(Ordering::SeqCst), 2, "these defaults were performed");
    });
}

/// Nothing of a failed step remains, and everything of a suspended one does.
#[test]
fn failed_step_leaves_nothing() {
    on_each_store(|store, _| {
        let runtime = script(Arc::clone(&store), TWO_INPUTS, |step| {
            let number: i64 = step.read("a")?.unwrap_or_default();
            step.write("out", &number)?;
            step.set("number", &number)?;
            match number {
                1 => step.fail("one is bad"),
                2 => panic!("two is worse"),
                3 => Ok(failing_call()?),
                _ => step.suspend(),
            }
        });
        for (number, message) in [(1, "one is bad"), (2, "two is worse"), (3, "missing")] {
            let task = runtime.create("Script", &()).expect("a task");
            runtime.write(task, "a", &number).expect("a port");
            match runtime.drain(5) {
                Err(WorkerError::StepFailed { task: failed, message: found }) => {
                    assert_eq!(failed, task);
                    assert!(found.contains(message), "{found}");
                }
                other => panic!("the step fails, and does not end with {other:?}"),
            }
            assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Failed, vec![]));
            assert_eq!(state(&*store, task, "number"), None);
        }
        let task = runtime.create("Script", &()).expect("a task");
        runtime.write(task, "a", &4).expect("a port");
        assert_eq!(runtime.drain_all(5).expect("steps"), 1);
        assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Suspended, vec![4]));
        assert_eq!(state(&*store, task, "number").as_deref(), Some("4"));
    });
}

fn failing_call() -> Result<(), std::io::Error> {
    Err(std::io::Error::other("missing"))
}

/// A step reads more items than its window has, and commits them in one unit.
#[test]
fn step_reads_more_than_its_window() {
    on_each_store(|store, _| {
        let runtime = script(store, TWO_INPUTS, |step| {
            let first: Option<i64> = step.read("a")?;
            assert_eq!(step.size("a")?, 24_999);
            let rest: Vec<i64> = step.read_all("a")?;
            step.write("out", &(first.unwrap_or_default() + rest.iter().sum::<i64>()))
        });
        let task = runtime.create("Script", &()).expect("a task");
        let port = PortTarget::new(task, PortDirection::In, PortName::parse("a").expect("a name"));
        let item = |number| PortItem::new(JsonText::of_number(number));
        let items = (0..25_000).map(item).collect();
        let write = TaskAct::Write { port, items, as_default: false, notify: true };
        runtime.request(write).expect("a port");
        runtime.drain(1).expect("one step");
        assert_eq!(read_all(&runtime, task), [312_487_500]);
    });
}

#[test]
fn step_sees_its_own_state() {
    on_each_store(|store, _| {
        let runtime = script(Arc::clone(&store), TWO_INPUTS, |step| {
            let number = step.get::<i64>("number")?.unwrap_or_default();
            step.set("number", &(number + 1))?;
            assert_eq!(step.get::<i64>("number")?, Some(number + 1));
            step.set("other", "x")?;
            step.unset("other")?;
            assert_eq!(step.get::<String>("other")?, None);
            if number < 3 {
                step.run_again();
            }
            Ok(())
        });
        let task = runtime.create("Script", &()).expect("a task");
        assert_eq!(runtime.drain(10).expect("steps"), 4);
        assert_eq!((state(&*store, task, "number").as_deref(), state(&*store, task, "other")), (Some("4"), None));
        assert!(matches!(runtime.drain(10), Ok(0)));
    });
}

#[test]
fn delayed_step_waits_for_its_time() {
    on_each_store(|store, clock| {
        let runtime = script(store, TWO_INPUTS, |step| {
            step.write("out", &1)?;
            let at = step.now().plus(Span::from_secs(10));
            step.run_at(at);
            step.suspend()
        });
        let task = runtime.create("Script", &()).expect("a task");
        for _ in 0..3 {
            assert_eq!(runtime.drain(10).expect("steps"), 1);
            clock.pass(Span::from_secs(10));
        }
        assert_eq!(read_all(&runtime, task), [1, 1, 1]);
    });
}

#[test]
fn endless_steps_are_noticed() {
    on_each_store(|store, _| {
        let runtime = script(store, TWO_INPUTS, |step| {
            step.run_again();
            Ok(())
        });
        runtime.create("Script", &()).expect("a task");
        assert!(matches!(runtime.drain(20), Err(WorkerError::TooManySteps(20))));
    });
}

struct Lifecycle;

impl Worker for Lifecycle {
    fn has_startup(&self) -> bool {
        true
    }

    fn startup(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.write("out", "startup")
    }

    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.write("out", "perform")
    }

    fn shutdown(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.write("out", "shutdown")
    }
}

#[test]
fn startup_comes_first_and_shutdown_last() {
    on_each_store(|store, _| {
        let ports = r#"{"outports":{"out":{}}}"#;
        let runtime = WorkerRuntime::new(store, "testq").and_then(|new| new.with_class("Lifecycle", ports, Lifecycle));
        let runtime = runtime.expect("a configuration");
        runtime.register().expect("it can register");
        let task = runtime.create("Lifecycle", &()).expect("a task");
        runtime.drain(5).expect("steps");
        let run = TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: None };
        runtime.request(run).expect("it exists");
        runtime.drain(5).expect("steps");
        runtime.terminate(task, false).expect("it exists");
        runtime.drain(5).expect("steps");
        let calls: Vec<String> = std::iter::from_fn(|| runtime.read(task, "out").expect("a port")).collect();
        assert_eq!(calls, ["startup", "perform", "perform", "shutdown"]);
        assert_eq!(status(&runtime, task), TaskStatus::Terminated);
    });
}

/// A worker that is too slow loses its step, and what it has done is thrown away.
#[test]
fn slow_worker_loses_its_step() {
    on_each_store(|store, clock| {
        let (calls, slow_clock) = (AtomicUsize::new(0), clock.clone());
        let other = Arc::clone(&store);
        let runtime = script(store, TWO_INPUTS, move |step| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                slow_clock.pass(Span::from_secs(60));
                // Another worker takes the step back and makes it.
                let runtime = script(Arc::clone(&other), TWO_INPUTS, |step| step.write("out", &2));
                runtime.perform_next()?;
            }
            step.write("out", &1)
        });
        let task = runtime.create("Script", &()).expect("a task");
        let report = runtime.perform_next().expect("a step").expect("it was ready");
        assert_eq!(report.outcome, StepOutcome::Lost);
        assert_eq!(read_all(&runtime, task), [2]);
    });
}

/// The log has one entry for each round, and one for what a step does outside of rounds.
#[test]
fn rounds_are_logged_one_by_one() {
    on_each_store(|store, _| {
        let runtime = script(Arc::clone(&store), TWO_INPUTS, |step| {
            step.for_inputs(&["a", "b"], |step, (a, b): (i64, i64)| step.write("out", &(a + b)))?;
            step.write("out", "done")
        });
        let task = runtime.create("Script", &()).expect("a task");
        runtime.write(task, "a", &1).expect("a port");
        runtime.write(task, "a", &2).expect("a port");
        let log = Channel::log();
        let mut listener = block_on(store.listen(vec![log])).expect("a listener");
        runtime.drain(5).expect("steps");
        for expected in [
            r#""read":[{"job":1,"data":[1],"inport":"a"},{"job":1,"data":[7],"inport":"b"}],"write":[{"job":1,"data":[8],"outport":"out"}]}"#,
            r#""read":[{"job":1,"data":[2],"inport":"a"},{"job":1,"data":[7],"inport":"b"}],"write":[{"job":1,"data":[9],"outport":"out"}]}"#,
            r#""read":[],"write":[{"job":1,"data":["done"],"outport":"out"}]}"#,
        ] {
            let entry = block_on(listener.next()).message;
            assert!(entry.as_str().starts_with(r#"{"job":1,"timestamp":"#), "{entry}");
            assert!(entry.as_str().ends_with(expected), "{entry}");
        }
    });
}

/// A port that does not exist fails the step at once.
#[test]
fn unknown_port_fails_the_step() {
    on_each_store(|store, _| {
        let runtime = script(store, TWO_INPUTS, |step| match step.args::<Vec<bool>>()?.first() {
            Some(true) => step.read::<i64>("unknown").map(drop),
            _ => step.write("unknown", &1),
        });
        let read = runtime.create("Script", &[true]).expect("a task");
        assert!(matches!(runtime.drain(5), Err(WorkerError::StepFailed { .. })));
        let write = runtime.create("Script", &()).expect("a task");
        let report = runtime.perform_next().expect("a step").expect("it was ready");
        assert!(matches!(report.outcome, StepOutcome::Refused(_)), "{report:?}");
        assert_eq!((status(&runtime, read), status(&runtime, write)), (TaskStatus::Failed, TaskStatus::Failed));
    });
}

fn write_numbers(runtime: &WorkerRuntime, task: TaskId, item: impl Fn(u64) -> PortItem, count: u64) {
    let port = PortTarget::new(task, PortDirection::In, PortName::parse("a").expect("a name"));
    for from in (0..count).step_by(5_000) {
        let items = (from..count.min(from + 5_000)).map(&item).collect();
        let write = TaskAct::Write { port: port.clone(), items, as_default: false, notify: true };
        runtime.request(write).expect("a port");
    }
}

/// A backlog that is larger than one unit is processed in several steps.
#[test]
fn backlog_is_processed_in_several_steps() {
    on_each_store(|store, _| {
        let runtime = script(store, r#"{"inports":{"a":{}},"outports":{"out":{},"all":{}}}"#, |step| {
            step.for_inputs(&["a"], |step, (text,): (String,)| {
                let sum = step.get::<usize>("sum")?.unwrap_or_default() + text.len();
                step.set("sum", &sum)?;
                step.write("all", &text)
            })?;
            let sum: Option<usize> = step.get("sum")?;
            step.write("out", &sum)
        });
        let task = runtime.create("Script", &()).expect("a task");
        let text = JsonText::of(&"x".repeat(2_000)).expect("JSON");
        write_numbers(&runtime, task, |_| PortItem::new(text.clone()), 10_000);
        let steps = runtime.drain(99).expect("no step fails");
        assert!((3..9).contains(&steps), "{steps} steps");
        assert_eq!((status(&runtime, task), read_all(&runtime, task)), (TaskStatus::Completed, vec![20_000_000]));
    });
}

/// What a step logs of large reads has a limit, so that it can be committed.
#[test]
fn step_reads_megabytes() {
    on_each_store(|store, _| {
        let runtime = script(store, TWO_INPUTS, |step| {
            let texts: Vec<String> = step.read_all("a")?;
            step.write("out", &texts.iter().map(String::len).sum::<usize>())
        });
        let task = runtime.create("Script", &()).expect("a task");
        let text = JsonText::of(&"x".repeat(2_000)).expect("JSON");
        write_numbers(&runtime, task, |_| PortItem::new(text.clone()), 1_200);
        let largest = JsonText::of(&"x".repeat((1 << 20) - 2)).expect("JSON");
        write_numbers(&runtime, task, |_| PortItem::new(largest.clone()), 1);
        runtime.drain(3).expect("no step fails");
        assert_eq!(read_all(&runtime, task), [2_400_000 + (1 << 20) - 2]);
    });
}

/// A default that is null is a value, and a default that has changed is performed once more.
#[test]
fn changed_default_is_performed_once_more() {
    on_each_store(|store, _| {
        let runtime =
            script(Arc::clone(&store), r#"{"inports":{"a":{"default":null}},"outports":{"all":{}}}"#, |step| {
                assert!(step.has_value("a")?);
                let mut done: Vec<Option<i64>> = step.get("done")?.unwrap_or_default();
                step.for_inputs(&["a"], |step, (a,): (Option<i64>,)| {
                    done.push(a);
                    step.set("done", &done)
                })
            });
        let task = runtime.create("Script", &()).expect("a task");
        let inport = PortTarget::new(task, PortDirection::In, PortName::parse("a").expect("a name"));
        let run = TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: None };
        let done = || {
            runtime.request(run.clone()).expect("it exists");
            runtime.drain(5).expect("steps");
            state(&*store, task, "done").unwrap_or_default()
        };
        assert_eq!((done().as_str(), done().as_str()), ("[null]", "[null]"));
        let item = Some(PortItem::new(JsonText::of_number(5)));
        runtime.request(TaskAct::SetDefault { port: inport.clone(), item }).expect("a port");
        assert_eq!((done().as_str(), done().as_str()), ("[null,5]", "[null,5]"));
        runtime.request(TaskAct::SetDefault { port: inport, item: None }).expect("a port");
        assert!(runtime.request(run.clone()).is_ok());
        assert!(matches!(runtime.drain(5), Err(WorkerError::StepFailed { .. })), "there is no value any more");
    });
}

/// A step creates a child with args and ports, which names its creator, and is found by its name from the next step on.
#[test]
fn step_creates_a_child_with_args_and_ports() {
    on_each_store(|store, _| {
        let runtime = script(Arc::clone(&store), "{}", |step| {
            if step.task().parent.is_some() {
                return step.suspend();
            }
            assert_eq!(step.child("none")?, None);
            match step.child("c")? {
                Some(child) => step.set("child", &child.id().map(TaskId::number)),
                None => {
                    let (inports, outports) = (r#"{"in":{"default":5}}"#, r#"{"out":{}}"#);
                    let child = step.create_child_with_ports("c", "Script", &(1, "x"), inports, outports)?;
                    assert_eq!(child.id(), None, "it gets its id at the commit");
                    step.suspend()
                }
            }
        });
        let task = runtime.create("Script", &()).expect("a task");
        runtime.drain(9).expect("steps");
        let child = runtime.find(TaskId::new(2).expect("an id")).expect("it was created");
        assert_eq!(
            (child.created_by.as_str(), child.args.map(|args| args.to_string())),
            ("job:1", Some(r#"[1,"x"]"#.into()))
        );
        assert_eq!(child.parent.map(|(parent, name)| (parent, name.to_string())), Some((task, "c".to_owned())));
        let window = block_on(store.window(child.id, &WindowLimits::STEP)).expect("a window");
        let window = window.expect("the task");
        assert_eq!((window.inports[0].name.as_str(), window.outports[0].name.as_str()), ("in", "out"));
        assert_eq!(state(&*store, task, "child").as_deref(), Some("2"));
    });
}
