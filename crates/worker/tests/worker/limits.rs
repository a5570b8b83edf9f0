//! What happens at the limits: steps whose messages have too many receivers, states and windows that grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cronhold_core::task::limits::{ALIASES_MAX, STATE_BYTES_MAX, STATE_FIELDS_MAX, VALUE_BYTES_MAX};
use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    Channel, ClassName, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, QueueName, StateField,
    TaskAct, TaskAlias, TaskId, TaskRefusal, TaskStatus, TaskTarget,
};
use cronhold_schedule::Instant;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{MemoryTaskStore, TaskStore, WindowLimits};
use cronhold_worker::{WorkerError, WorkerRuntime};

use crate::samples::script;
use crate::stores::on_each_store;

fn port(task: TaskId, direction: PortDirection, name: &str) -> PortTarget {
    PortTarget::new(task, direction, PortName::parse(name).expect("a name"))
}

fn write(runtime: &WorkerRuntime, port: PortTarget, items: Vec<PortItem>) {
    let write = TaskAct::Write { port, items, as_default: false, notify: true };
    runtime.request(write).expect("the port exists");
}

/// A text of a megabyte.
fn megabyte() -> PortItem {
    PortItem::new(JsonText::of_text(&"x".repeat(VALUE_BYTES_MAX - 2)))
}

fn new_task(inports: &str) -> NewTask {
    let (queue, class) = (QueueName::parse("testq"), ClassName::parse("Script"));
    let new = NewTask::new(queue.expect("a name"), class.expect("a name"));
    NewTask { inports: parse_ports(inports).expect(inports), ..new }
}

/// The messages of all rounds together have too many receivers. The step is repeated with half as many rounds, and no
/// message is lost or doubled.
#[test]
fn backlog_with_many_receivers_is_processed_in_several_steps() {
    let store = Arc::new(MemoryTaskStore::new(Arc::new(|| Instant::from_secs(1_800_000_000))));
    let ports = r#"{"inports":{"in":{}},"outports":{"out":{"channels":["/copies"]}}}"#;
    let runtime = script(store.clone(), ports, |step| {
        step.for_inputs(&["in"], |step, (text,): (JsonText,)| step.write("out", &text))
    });
    let task = runtime.create("Script", &()).expect("a task");
    runtime.drain(1).expect("a step");
    let create = TaskAct::Create(new_task(r#"{"copy":{"channels":["/copies"]}}"#));
    let receivers: Vec<TaskId> = (0..30)
        .map(|_| match runtime.request(create.clone()) {
            Ok(cronhold_core::task::ActOutcome::Created(id)) => id,
            other => panic!("a task is created, and not {other:?}"),
        })
        .collect();
    runtime.drain(30).expect("steps");
    // 8 MiB to each of 30 receivers are more than one unit can deliver.
    for _ in 0..8 {
        write(&runtime, port(task, PortDirection::In, "in"), vec![megabyte()]);
    }
    let before = block_on(store.totals()).expect("totals can be read").processed;
    let steps = runtime.drain(99).expect("no step fails") as u64;
    let processed = block_on(store.totals()).expect("totals can be read").processed - before;
    assert!(steps > processed, "some of the {steps} steps were refused: {processed} were committed");
    assert_eq!(runtime.find(task).expect("it exists").status, TaskStatus::Completed);
    for receiver in receivers {
        let window = block_on(store.window(receiver, &WindowLimits::STEP)).expect("a window").expect("the task");
        let copies = window.inports.iter().find(|port| port.name.as_str() == "copy").map(|port| port.size);
        assert_eq!(copies, Some(8), "each message is there once");
    }
}

/// A worker with a loop of its own asks whether there is room.
#[test]
fn step_knows_when_it_is_half_full() {
    on_each_store(|store, _| {
        let runtime = script(store, r#"{"inports":{"in":{}},"outports":{"out":{}}}"#, |step| {
            while step.has_room() {
                let Some(text) = step.read::<JsonText>("in")? else { return Ok(()) };
                step.write("out", &text)?;
            }
            step.run_again();
            step.suspend()
        });
        let task = runtime.create("Script", &()).expect("a task");
        for _ in 0..12 {
            write(&runtime, port(task, PortDirection::In, "in"), vec![megabyte()]);
        }
        assert_eq!(runtime.drain(9).expect("no step fails"), 2);
        assert_eq!(runtime.find(task).expect("it exists").status, TaskStatus::Completed);
    });
}

fn too_large(result: Result<impl std::fmt::Debug, WorkerError>) -> &'static str {
    match result {
        Err(WorkerError::Refused(TaskRefusal::TooLarge { what, .. })) => what,
        other => panic!("a limit refuses it, and not {other:?}"),
    }
}

/// A step loads the whole state, so a state has a limit.
#[test]
fn state_of_a_task_is_limited() {
    on_each_store(|store, _| {
        let runtime = script(store, "{}", |_| Ok(()));
        let (many, large) =
            (runtime.create("Script", &()).expect("a task"), runtime.create("Script", &()).expect("a task"));
        let field = |number: usize| StateField::parse(&format!("f{number}")).expect("a name");
        let set = |task, fields| TaskAct::SetState { task: TaskTarget::Id(task), fields };
        let fields = (0..STATE_FIELDS_MAX).map(|number| (field(number), JsonText::null())).collect();
        runtime.request(set(many, fields)).expect("as many as possible");
        runtime.request(set(many, vec![(field(0), JsonText::of_number(1))])).expect("a field that exists");
        let one_more = set(many, vec![(field(STATE_FIELDS_MAX), JsonText::null())]);
        assert_eq!(too_large(runtime.request(one_more.clone())), "fields of the state of a task");
        runtime.request(TaskAct::UnsetState { task: TaskTarget::Id(many), fields: vec![field(7)] }).expect("a field");
        runtime.request(one_more).expect("there is room again");

        let value = megabyte().data;
        for number in 0..STATE_BYTES_MAX / VALUE_BYTES_MAX - 1 {
            runtime.request(set(large, vec![(field(number), value.clone())])).expect("it fits");
        }
        assert_eq!(too_large(runtime.request(set(large, vec![(field(99), value)]))), "bytes of the state of a task");
    });
}

#[test]
fn aliases_of_a_task_are_limited() {
    on_each_store(|store, _| {
        let runtime = script(store, "{}", |_| Ok(()));
        let task = TaskTarget::Id(runtime.create("Script", &()).expect("a task"));
        let add =
            |number| TaskAct::AddAlias { task, alias: TaskAlias::parse(&format!("a{number}")).expect("an alias") };
        (0..ALIASES_MAX).for_each(|number| drop(runtime.request(add(number)).expect("it is free")));
        assert_eq!(too_large(runtime.request(add(ALIASES_MAX))), "aliases of a task");
        runtime.request(add(0)).expect("it has this alias already");
    });
}

/// A connection with many targets counts each item once for each of them.
#[test]
fn connections_to_many_ports_are_limited() {
    on_each_store(|store, _| {
        let runtime = script(store, r#"{"inports":{"*":{}}}"#, |_| Ok(()));
        let task = runtime.create("Script", &()).expect("a task");
        let from = port(task, PortDirection::In, "from");
        let to =
            |count: usize| (0..count).map(|number| port(task, PortDirection::In, &format!("to{number}"))).collect();
        let connect = |count| TaskAct::Connect { from: from.clone(), to: to(count) };
        write(&runtime, from.clone(), vec![megabyte(); 2]);
        assert_eq!(too_large(runtime.request(connect(9))), "bytes of items to move");
        runtime.request(TaskAct::Pop { port: from.clone(), count: 9, or_default: false }).expect("items");
        write(&runtime, from.clone(), vec![PortItem::new(JsonText::null()); 1_001]);
        assert_eq!(too_large(runtime.request(connect(100))), "items to move");
        runtime.request(connect(2)).expect("it is possible");
    });
}

/// A task with many large ports is loaded in parts, and its step reads them all.
#[test]
fn window_of_many_large_ports_is_limited() {
    on_each_store(|store, _| {
        let loaded = Arc::new(AtomicI64::new(0));
        let sum = Arc::clone(&loaded);
        let runtime = script(Arc::clone(&store), r#"{"inports":{"*":{}}}"#, move |step| {
            for number in 0..12 {
                for text in step.read_all::<String>(&format!("p{number}"))? {
                    sum.fetch_add(i64::try_from(text.len())?, Ordering::SeqCst);
                }
            }
            Ok(())
        });
        let task = runtime.create("Script", &()).expect("a task");
        for number in 0..12 {
            write(&runtime, port(task, PortDirection::In, &format!("p{number}")), vec![megabyte()]);
        }
        let limits = WindowLimits { bytes: VALUE_BYTES_MAX, ..WindowLimits::STEP };
        let window = block_on(store.window(task, &limits)).expect("a window").expect("the task");
        let items: Vec<usize> = window.inports.iter().map(|port| port.items.len()).collect();
        assert_eq!(items, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0], "the rest is loaded when it is read");
        assert!(window.inports.iter().all(|port| port.size == 1));
        runtime.drain(1).expect("a step");
        assert_eq!(loaded.load(Ordering::SeqCst), 12 * i64::try_from(VALUE_BYTES_MAX - 2).expect("small"));
    });
}

/// A publication that is requested, and not caused, is refused as a whole if it has too many receivers.
#[test]
fn request_with_too_many_deliveries_is_refused() {
    let store = Arc::new(MemoryTaskStore::new(Arc::new(|| Instant::from_secs(1_800_000_000))));
    let runtime = script(store.clone(), "{}", |_| Ok(()));
    for _ in 0..130 {
        runtime.create_task(new_task(r#"{"in":{"channels":["/a"]}}"#)).expect("a task");
    }
    let channel = Channel::parse("/a/b").expect("a channel");
    let publish = TaskAct::Publish { channel, message: megabyte().data };
    assert_eq!(too_large(runtime.request(publish)), "bytes of port writes caused by messages");
    let window = block_on(store.window(TaskId::FIRST, &WindowLimits::STEP)).expect("a window").expect("the task");
    assert_eq!(window.inports[0].size, 0, "nothing was delivered");
}
