//! Stories of several tasks that work together.

use cronhold_core::task::{
    ActOutcome, Channel, JsonText, PortDirection, PortName, PortTarget, TaskAct, TaskId, TaskStatus,
};
use cronhold_worker::{StepResult, TaskStep, WorkerRuntime};

use crate::samples::{Script, runtime};
use crate::stores::on_each_store;

fn status(runtime: &WorkerRuntime, task: TaskId) -> TaskStatus {
    runtime.find(task).expect("it exists").status
}

fn listen(runtime: &WorkerRuntime, task: TaskId, direction: PortDirection, port: &str, channel: &str) {
    let port = PortTarget::new(task, direction, PortName::parse(port).expect("a name"));
    let channels = vec![Channel::parse(channel).expect("a channel")];
    runtime.request(TaskAct::SetChannels { port, channels }).expect("the port exists");
}

fn publish(runtime: &WorkerRuntime, channel: &str, message: &str) {
    let (channel, message) = (Channel::parse(channel).expect("a channel"), JsonText::parse(message).expect("JSON"));
    assert_eq!(runtime.request(TaskAct::Publish { channel, message }).ok(), Some(ActOutcome::Done));
}

#[test]
fn sums_are_computed_once_they_are_ready() {
    on_each_store(|store, _| {
        let runtime = runtime(store);
        let (first, second) =
            (runtime.create("Sum", &()).expect("a task"), runtime.create("Sum", &()).expect("a task"));
        runtime.drain(10).expect("steps");
        assert_eq!(status(&runtime, first), TaskStatus::Suspended);
        for (task, numbers) in [(first, [1, 2, 3, 4].as_slice()), (second, &[4, 5, 6])] {
            numbers.iter().for_each(|number| runtime.write(task, "in", number).expect("a port"));
            runtime.write(task, "ready", &true).expect("a port");
        }
        runtime.drain(10).expect("steps");
        for (task, sum) in [(first, 10), (second, 15)] {
            assert_eq!(status(&runtime, task), TaskStatus::Completed);
            assert_eq!(runtime.read::<i64>(task, "sum").expect("a port"), Some(sum));
        }
    });
}

#[test]
fn fibonacci_number_is_computed_by_children() {
    on_each_store(|store, _| {
        let runtime = runtime(store);
        let task = runtime.create("Fibonacci", &[6]).expect("a task");
        runtime.drain(200).expect("steps");
        assert_eq!(status(&runtime, task), TaskStatus::Completed);
        assert_eq!(runtime.read::<i64>(task, "num").expect("a port"), Some(8));
        runtime.terminate(task, true).expect("it exists");
        runtime.drain(200).expect("steps");
        let task = cronhold_core::task::TaskTarget::Id(task);
        assert_eq!(runtime.request(TaskAct::Delete { task }).ok(), Some(ActOutcome::Deleted(true)));
    });
}

#[test]
fn flow_lets_a_child_add_numbers() {
    on_each_store(|store, _| {
        let runtime = runtime(store);
        let task = runtime.create("SumFlow", &()).expect("a task");
        runtime.drain(50).expect("steps");
        assert_eq!(status(&runtime, task), TaskStatus::Completed);
        assert_eq!(runtime.read::<i64>(task, "out").expect("a port"), Some(11));
    });
}

/// Multiplies by two.
fn double(step: &mut TaskStep<'_>) -> StepResult {
    step.for_inputs(&["in"], |step, (number,): (i64,)| step.write("out", &(2 * number)))
}

/// Lets two children double a number one after the other, and disowns the last one.
fn double_twice(step: &mut TaskStep<'_>) -> StepResult {
    let (Some(first), Some(second)) = (step.child("first")?, step.child("second")?) else {
        let first = step.create_child("first", "Double")?;
        step.create_child("second", "Double")?;
        step.write_to(&first, "in", &5)?;
        return step.suspend();
    };
    if let Some(number) = step.read_from::<i64>(&second, "out")? {
        step.disown(&second);
        return step.write("out", &number);
    }
    step.connect(&first, "out", &second, "in")?;
    step.suspend()
}

#[test]
fn workflow_connects_its_children() {
    on_each_store(|store, _| {
        let ports = r#"{"inports":{"in":{}},"outports":{"out":{}}}"#;
        let runtime = WorkerRuntime::new(store, "testq")
            .and_then(|runtime| runtime.with_class("Double", ports, Script(double)))
            .and_then(|runtime| runtime.with_class("Workflow", ports, Script(double_twice)))
            .expect("the configurations are valid");
        runtime.register().expect("it can register");
        let task = runtime.create("Workflow", &()).expect("a task");
        runtime.drain(50).expect("steps");
        assert_eq!(status(&runtime, task), TaskStatus::Completed);
        assert_eq!(runtime.read::<i64>(task, "out").expect("a port"), Some(20));
        let second = TaskId::new(3).expect("an id");
        assert_eq!(runtime.find(second).expect("it exists").parent, None);
    });
}

#[test]
fn four_sums_are_joined_by_channels() {
    on_each_store(|store, _| {
        let runtime = runtime(store);
        let tasks: Vec<TaskId> = (0..4).map(|_| runtime.create("Sum", &()).expect("a task")).collect();
        for (task, input, output) in [
            (tasks[0], "/test/in", Some("/test/chan1")),
            (tasks[1], "/test/chan1", Some("/test/chan2")),
            (tasks[2], "/test/chan1", Some("/test/chan2")),
            (tasks[3], "/test/chan2", None),
        ] {
            listen(&runtime, task, PortDirection::In, "ready", "/test/ready");
            listen(&runtime, task, PortDirection::In, "in", input);
            if let Some(output) = output {
                listen(&runtime, task, PortDirection::Out, "sum", output);
            }
        }
        ["1", "2", "4"].iter().for_each(|number| publish(&runtime, "/test/in", number));
        publish(&runtime, "/test/ready", "true");
        runtime.drain(20).expect("steps");
        assert_eq!(status(&runtime, tasks[3]), TaskStatus::Completed);
        assert_eq!(runtime.read::<i64>(tasks[3], "sum").expect("a port"), Some(14));
    });
}
