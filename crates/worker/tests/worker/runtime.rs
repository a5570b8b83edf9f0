//! The runtime with its pool of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use cronhold_core::task::{
    ActOutcome, ClassName, NewTask, PortDirection, PortName, PortTarget, QueueName, TaskAct, TaskId, TaskStatus,
};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{MemoryTaskStore, ProcessSignal, TaskQuery, TaskStore};
use cronhold_worker::{RuntimeEvent, StepOutcome, WorkerRuntime};

use crate::samples::{Fibonacci, Script, script};
use crate::stores::on_each_store;

const PORTS: &str = r#"{"inports":{"in":{}},"outports":{"out":{}}}"#;

/// Several threads make the steps of a tree of tasks.
#[test]
fn threads_share_the_steps() {
    on_each_store(|store, _| {
        let (send, receive) = channel();
        let runtime = WorkerRuntime::new(Arc::clone(&store), "testq")
            .and_then(|runtime| runtime.with_class("Fibonacci", r#"{"outports":{"num":{}}}"#, Fibonacci))
            .expect("a configuration")
            .with_concurrency(4)
            .with_observer(move |event| match event {
                RuntimeEvent::StepEnded(report) => send.send(report.clone()).expect("the test waits"),
                RuntimeEvent::Quieted => {}
                other => panic!("the store works: {other:?}"),
            });
        runtime.register().expect("it can register");
        let root = runtime.create("Fibonacci", &[9]).expect("a task");
        let stop = runtime.stop_handle();
        thread::scope(|scope| {
            let running = scope.spawn(|| runtime.run());
            while runtime.find(root).expect("it exists").status != TaskStatus::Completed {
                let report = receive.recv().expect("steps are made");
                assert!(matches!(report.outcome, StepOutcome::Committed(_)), "{report:?}");
            }
            stop.stop();
            running.join().expect("it ends well").expect("it can stop");
        });
        assert_eq!(runtime.read::<i64>(root, "num").expect("a port"), Some(34));
        assert_eq!(block_on(store.processes()), Ok(Vec::new()), "it has left");
        let running = TaskQuery { status: Some(TaskStatus::Running), ..TaskQuery::default() };
        assert_eq!(block_on(store.page(&running, 9)), Ok(Vec::new()), "no step is left");
    });
}

/// A stop waits for the steps that run, and begins no others.
#[test]
fn stop_waits_for_running_steps() {
    on_each_store(|store, _| {
        let (began, has_begun) = channel();
        let (release, released) = channel::<()>();
        let (began, released) = (std::sync::Mutex::new(began), std::sync::Mutex::new(released));
        let runtime = script(Arc::clone(&store), PORTS, move |step| {
            began.lock().expect("not poisoned").send(()).expect("the test waits");
            released.lock().expect("not poisoned").recv().expect("the test sends it");
            step.write("out", &1)
        });
        let (first, second) =
            (runtime.create("Script", &()).expect("a task"), runtime.create("Script", &()).expect("a task"));
        let stop = runtime.stop_handle();
        thread::scope(|scope| {
            let running = scope.spawn(|| runtime.run());
            has_begun.recv().expect("a step begins");
            stop.stop();
            release.send(()).expect("the step waits");
            running.join().expect("it ends well").expect("it can stop");
        });
        let status = |task| runtime.find(task).expect("it exists").status;
        assert_eq!((status(first), status(second)), (TaskStatus::Completed, TaskStatus::Queued));
        assert_eq!(runtime.read::<i64>(first, "out").expect("a port"), Some(1));
    });
}

/// An observer that panics does not stop the runtime from making steps.
#[test]
fn panic_of_the_observer_holds_up_no_step() {
    on_each_store(|store, _| {
        let runtime = script(Arc::clone(&store), PORTS, |step| step.write("out", &1));
        let stop = runtime.stop_handle();
        let runtime = runtime.with_observer(move |event| {
            let RuntimeEvent::StepEnded(report) = event else { return };
            match report.task == TaskId::FIRST {
                true => panic!("the observer is wrong"),
                false => stop.stop(),
            }
        });
        let tasks = [(); 2].map(|()| runtime.create("Script", &()).expect("a task"));
        let ran = thread::scope(|scope| scope.spawn(|| runtime.run()).join());
        assert!(ran.is_err(), "the panic is not hidden");
        for task in tasks {
            assert_eq!(runtime.find(task).expect("it exists").status, TaskStatus::Completed);
        }
    });
}

/// A runtime that waits is woken by a task that another one creates, and by a signal through the store.
#[test]
fn waiting_runtime_is_woken() {
    on_each_store(|store, _| {
        let steps = Arc::new(AtomicUsize::new(0));
        let (send, receive) = channel();
        let runtime = {
            let steps = Arc::clone(&steps);
            WorkerRuntime::new(Arc::clone(&store), "testq")
                .and_then(|new| {
                    let work = move |_: &mut cronhold_worker::TaskStep<'_>| {
                        steps.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    };
                    new.with_class("Script", PORTS, Script(work))
                })
                .expect("a configuration")
                .with_lease(Span::from_millis(30))
                .with_observer(move |_| send.send(()).expect("the test waits"))
        };
        runtime.register().expect("it can register");
        thread::scope(|scope| {
            let running = scope.spawn(|| runtime.run());
            for _ in 0..20 {
                let (queue, class) = (QueueName::parse("testq"), ClassName::parse("Script"));
                runtime.create_task(NewTask::new(queue.expect("a name"), class.expect("a name"))).expect("a task");
                receive.recv().expect("a step is made");
            }
            assert_eq!(block_on(store.signal(runtime.process(), ProcessSignal::Stop)), Ok(true));
            running.join().expect("it ends well").expect("it can stop");
        });
        assert_eq!(steps.load(Ordering::SeqCst), 20);
    });
}

/// A delayed task is performed when its time comes, although nothing happens meanwhile.
#[test]
fn delayed_task_wakes_the_runtime() {
    let store = Arc::new(MemoryTaskStore::new(Arc::new(wall_clock)));
    let (send, receive) = channel();
    let send = std::sync::Mutex::new(send);
    let runtime = script(store, PORTS, move |step| {
        send.lock().expect("not poisoned").send(step.now()).expect("the test waits");
        Ok(())
    });
    let at = wall_clock().plus(Span::from_millis(40));
    let (queue, class) = (QueueName::parse("testq"), ClassName::parse("Script"));
    let task = NewTask { at: Some(at), ..NewTask::new(queue.expect("a name"), class.expect("a name")) };
    runtime.create_task(task).expect("a task");
    let stop = runtime.stop_handle();
    thread::scope(|scope| {
        let running = scope.spawn(|| runtime.run());
        let performed_at = receive.recv().expect("a step is made");
        stop.stop();
        running.join().expect("it ends well").expect("it can stop");
        assert!(performed_at >= at, "{performed_at} is before {at}");
    });
}

/// A task does not notice how often its worker is replaced, and the store forgets the processes that are gone.
#[test]
fn task_lives_through_a_thousand_restarts() {
    let seconds = Arc::new(AtomicI64::new(1_800_000_000));
    let clock = Arc::clone(&seconds);
    let now = move || Instant::from_secs(clock.load(Ordering::SeqCst));
    let store = Arc::new(MemoryTaskStore::new(Arc::new(now)));
    let restart = || {
        script(store.clone(), PORTS, |step| {
            let number: u64 = step.get("number")?.unwrap_or_default();
            step.set("number", &(number + 1))?;
            step.run_again();
            step.write("out", &number)
        })
    };
    let task = restart().create("Script", &()).expect("a task");
    for _ in 0..1_000 {
        seconds.fetch_add(30, Ordering::SeqCst);
        let report = restart().perform_next().expect("a step").expect("the task is ready");
        assert!(matches!(report.outcome, StepOutcome::Committed(_)), "{report:?}");
    }
    let port = PortTarget::new(task, PortDirection::Out, PortName::parse("out").expect("a name"));
    let all = TaskAct::Pop { port, count: 9_999, or_default: false };
    let Ok(ActOutcome::Items(items)) = restart().request(all) else { panic!("a read returns items") };
    let numbers: Vec<u64> = items.iter().map(|item| item.data.to().expect("a number")).collect();
    assert_eq!(numbers, (0..1_000).collect::<Vec<u64>>());
    let processes = block_on(store.processes()).expect("processes can be read");
    assert!(processes.len() <= 4, "{} processes are left", processes.len());
}

#[expect(clippy::disallowed_methods, reason = "the test is about real time")]
pub(crate) fn wall_clock() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    Instant::from_micros(i64::try_from(since.as_micros()).expect("it is before the year 200,000"))
}
