//! A store with a registered worker for the cases: short forms of requests, which panic with what they expected.

use std::cell::Cell;
use std::sync::Arc;

use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    ActOutcome, Channel, ChildName, ClassConfig, ClassName, JsonText, NewTask, PortAddress, PortDirection, PortItem,
    PortName, PortTarget, QueueName, StateField, StepEnding, StepError, StepId, TaskAct, TaskAlias, TaskId, TaskKey,
    TaskRecord, TaskRefusal, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_schedule::{Instant, Span};

use super::super::block_on;
use super::TaskSubject;
use crate::tasks::{
    ChannelListener, LeaseClass, LeaseRequest, LeasedStep, PortWindow, ProcessId, TaskReceipt, TaskStore,
    TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};

/// The classes that [`TaskFixture::of`] registers on the queue `testq`.
const CLASSES: [(&str, &str); 5] = [
    ("Pass", "{}"),
    ("Pipe", r#"{"inports":{"in":{},"other":{"default":"default"}},"outports":{"out":{}}}"#),
    ("Open", r#"{"inports":{"*":{"default":123}},"outports":{"*":{"default":123,"channels":["/open"]}}}"#),
    ("Silent", r#"{"status_publish":false}"#),
    ("Starter", "{}"),
];

/// How long steps are held.
pub(super) const LEASE: Span = Span::from_secs(60);

/// A handle on a store with a registered worker.
#[derive(Debug)]
pub(super) struct TaskFixture {
    pub(super) store: Arc<dyn TaskStore>,
    /// Distinguishes the steps of several fixtures.
    number: u64,
    steps: Cell<u64>,
}

pub(super) fn json(text: &str) -> JsonText {
    JsonText::parse(text).expect(text)
}

pub(super) fn id(number: u64) -> TaskId {
    TaskId::new(number).expect("numbers from 1 are ids")
}

pub(super) fn queue_name() -> QueueName {
    QueueName::parse("testq").expect("a name")
}

pub(super) fn class_name(text: &str) -> ClassName {
    ClassName::parse(text).expect(text)
}

pub(super) fn child_name(text: &str) -> ChildName {
    ChildName::parse(text).expect(text)
}

pub(super) fn channel(text: &str) -> Channel {
    Channel::parse(text).expect(text)
}

pub(super) fn alias(text: &str) -> TaskAlias {
    TaskAlias::parse(text).expect(text)
}

/// A port such as `in:numbers` or `out:sum`.
pub(super) fn address(task: TaskId, port: &str) -> PortAddress {
    let (direction, name) = port.split_once(':').expect("a direction and a name");
    let direction = if direction == "in" { PortDirection::In } else { PortDirection::Out };
    PortAddress { task, direction, port: PortName::parse(name).expect(name) }
}

pub(super) fn port(task: TaskId, name: &str) -> PortTarget {
    let PortAddress { task, direction, port } = address(task, name);
    PortTarget::new(task, direction, port)
}

pub(super) fn item(data: &str) -> PortItem {
    PortItem::new(json(data))
}

/// A write of these values.
pub(super) fn write(task: TaskId, name: &str, values: &[&str]) -> TaskAct {
    let items = values.iter().map(|value| item(value)).collect();
    TaskAct::Write { port: port(task, name), items, as_default: false, notify: true }
}

pub(super) fn set_state(task: TaskId, field: &str, value: &str) -> TaskAct {
    let field = StateField::parse(field).expect(field);
    TaskAct::SetState { task: TaskTarget::Id(task), fields: vec![(field, json(value))] }
}

pub(super) fn run(task: TaskId) -> TaskAct {
    TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: None }
}

pub(super) fn run_at(task: TaskId, at: Instant) -> TaskAct {
    TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: Some(at) }
}

pub(super) fn terminate(task: TaskId, recursive: bool) -> TaskAct {
    TaskAct::Terminate { task: TaskTarget::Id(task), recursive }
}

pub(super) fn publish(to: &str, message: &str) -> TaskAct {
    TaskAct::Publish { channel: channel(to), message: json(message) }
}

pub(super) fn new_task(class: &str) -> NewTask {
    NewTask::new(queue_name(), class_name(class))
}

pub(super) fn child_of(parent: TaskId, name: &str, class: &str) -> NewTask {
    NewTask { parent: Some((TaskTarget::Id(parent), child_name(name))), ..new_task(class) }
}

pub(super) fn with_inports(class: &str, ports: &str) -> NewTask {
    NewTask { inports: parse_ports(ports).expect(ports), ..new_task(class) }
}

/// The data of items as JSON lines, such as `1 2`.
pub(super) fn values(items: &[PortItem]) -> String {
    items.iter().map(|item| item.data.as_str()).collect::<Vec<_>>().join(" ")
}

impl TaskFixture {
    /// A new handle, on which the classes are registered.
    pub(super) fn of(subject: &dyn TaskSubject) -> Self {
        let fixture = Self::on(subject.store(), 1);
        fixture.register("host:1", &CLASSES);
        fixture
    }

    /// A handle on a store whose classes are registered.
    pub(super) fn on(store: Arc<dyn TaskStore>, number: u64) -> Self {
        Self { store, number, steps: Cell::new(0) }
    }

    pub(super) fn register(&self, process: &str, classes: &[(&str, &str)]) {
        let configs: Vec<(ClassName, ClassConfig)> = classes
            .iter()
            .map(|(class, config)| (class_name(class), ClassConfig::parse(config).expect(config)))
            .collect();
        let now = self.now();
        let process = WorkerProcess {
            id: ProcessId::new(process),
            queue: queue_name(),
            classes: configs.iter().map(|(class, _)| class.clone()).collect(),
            concurrency: 2,
            started_at: now,
            beat_at: now,
            busy: 0,
            is_quiet: false,
            signals: Vec::new(),
        };
        block_on(self.store.register(process, configs)).expect("a worker can register");
    }

    pub(super) fn deregister(&self, process: &str) {
        block_on(self.store.deregister(&ProcessId::new(process))).expect("a worker can stop");
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        block_on(self.store.next_due()).expect("times can be read")
    }

    pub(super) fn now(&self) -> Instant {
        block_on(self.store.time()).expect("the store has a clock")
    }

    pub(super) fn commit_unit(&self, unit: TaskUnit) -> Result<TaskReceipt, TaskRefusal> {
        let mut results = block_on(self.store.commit(vec![unit]));
        assert_eq!(results.len(), 1, "one unit has one result");
        results.remove(0).map_err(|error| match error {
            TaskUnitError::Refused(refusal) => refusal,
            TaskUnitError::Fault(fault) => panic!("the store failed: {fault}"),
        })
    }

    /// Carries out acts in one request.
    pub(super) fn commit(&self, acts: Vec<TaskAct>) -> Result<Vec<ActOutcome>, TaskRefusal> {
        self.commit_unit(TaskUnit::request(acts)).map(|receipt| match receipt {
            TaskReceipt::Committed(outcomes) => outcomes,
            TaskReceipt::Repeated(_) => panic!("a request without a key is never repeated"),
        })
    }

    /// Carries out one act.
    pub(super) fn act(&self, act: TaskAct) -> ActOutcome {
        let text = format!("{act:?}");
        let mut outcomes = self.commit(vec![act]).unwrap_or_else(|refusal| panic!("{text} is refused: {refusal}"));
        assert_eq!(outcomes.len(), 1, "one act has one outcome");
        outcomes.remove(0)
    }

    /// Why one act is refused.
    pub(super) fn refusal(&self, act: TaskAct) -> TaskRefusal {
        let text = format!("{act:?}");
        self.commit(vec![act]).expect_err(&text)
    }

    pub(super) fn create(&self, class: &str) -> TaskId {
        self.create_task(new_task(class))
    }

    pub(super) fn create_task(&self, new: NewTask) -> TaskId {
        match self.act(TaskAct::Create(new)) {
            ActOutcome::Created(id) => id,
            other => panic!("a task is created, and not {other:?}"),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<TaskRecord> {
        block_on(self.store.find(&TaskKey::parse(key).expect(key))).expect("tasks can be read")
    }

    pub(super) fn record(&self, task: TaskId) -> TaskRecord {
        self.find(&task.to_string()).unwrap_or_else(|| panic!("task {task} exists"))
    }

    pub(super) fn status(&self, task: TaskId) -> TaskStatus {
        self.record(task).status
    }

    pub(super) fn window(&self, task: TaskId) -> TaskWindow {
        let window = block_on(self.store.window(task, &WindowLimits::STEP)).expect("tasks can be read");
        window.unwrap_or_else(|| panic!("task {task} exists"))
    }

    /// A port; `None` if it is not listed.
    pub(super) fn port(&self, task: TaskId, name: &str) -> Option<PortWindow> {
        let (window, port) = (self.window(task), address(task, name));
        let ports = if port.direction == PortDirection::In { window.inports } else { window.outports };
        ports.into_iter().find(|window| window.name == port.port)
    }

    /// The names of all ports, such as `in other | out`.
    pub(super) fn ports(&self, task: TaskId) -> String {
        let window = self.window(task);
        let names = |ports: &[PortWindow]| ports.iter().map(|port| port.name.to_string()).collect::<Vec<_>>().join(" ");
        format!("{} | {}", names(&window.inports), names(&window.outports))
    }

    /// The values in a port, such as `1 2`; empty if there are none.
    pub(super) fn values(&self, task: TaskId, name: &str) -> String {
        values(&self.port(task, name).unwrap_or_else(|| panic!("port {name} exists")).items)
    }

    /// Takes one value or the default.
    pub(super) fn read(&self, task: TaskId, name: &str) -> Option<String> {
        match self.act(TaskAct::Pop { port: port(task, name), count: 1, or_default: true }) {
            ActOutcome::Items(items) => items.first().map(|item| item.data.to_string()),
            other => panic!("a read returns items, and not {other:?}"),
        }
    }

    /// The children, such as `a=2 b=3`.
    pub(super) fn children(&self, task: TaskId) -> String {
        let children = block_on(self.store.children(task, None, 1_000)).expect("children can be read");
        children.iter().map(|(name, id)| format!("{name}={id}")).collect::<Vec<_>>().join(" ")
    }

    /// A field of the state.
    pub(super) fn state(&self, task: TaskId, field: &str) -> Option<String> {
        let state = self.window(task).state;
        state.into_iter().find(|(name, _)| name.as_str() == field).map(|(_, value)| value.to_string())
    }

    /// New ids of steps.
    pub(super) fn step_ids(&self, count: u64) -> Vec<StepId> {
        let first = self.steps.get();
        self.steps.set(first + count);
        let bits = |step: u64| u128::from(self.number) << 64 | u128::from(step);
        (first..first + count).map(|step| StepId::from_random(bits(step).to_be_bytes())).collect()
    }

    /// Leases at most `count` steps of any class.
    pub(super) fn lease_many(&self, count: u64) -> Vec<LeasedStep> {
        let class = |(name, _): &(&str, &str)| LeaseClass { name: class_name(name), has_startup: *name == "Starter" };
        self.lease_classes(count, CLASSES.iter().map(class).collect())
    }

    pub(super) fn lease_classes(&self, count: u64, classes: Vec<LeaseClass>) -> Vec<LeasedStep> {
        let steps = self.step_ids(count);
        let request = LeaseRequest { queue: queue_name(), classes, steps, lease: LEASE, limits: WindowLimits::STEP };
        block_on(self.store.lease(request)).expect("steps can be leased")
    }

    /// Leases one step; `None` if no task is ready.
    pub(super) fn lease(&self) -> Option<LeasedStep> {
        self.lease_many(1).pop()
    }

    /// Leases one step, which must be of this task.
    pub(super) fn lease_of(&self, task: TaskId) -> LeasedStep {
        let leased = self.lease().unwrap_or_else(|| panic!("task {task} is ready"));
        assert_eq!(leased.window.task.id, task, "the step is of the task that waits longest");
        leased
    }

    /// Commits the end of a step.
    pub(super) fn end(
        &self,
        leased: &LeasedStep,
        ending: StepEnding,
        acts: Vec<TaskAct>,
    ) -> Result<TaskReceipt, TaskRefusal> {
        self.commit_unit(TaskUnit::step(leased.window.task.id, leased.step, ending, acts))
    }

    /// Commits the end of a step, which must hold its task.
    pub(super) fn finish(&self, leased: &LeasedStep, ending: StepEnding) {
        let receipt = self.end(leased, ending, Vec::new());
        assert_eq!(receipt, Ok(TaskReceipt::Committed(Vec::new())), "the step holds its task");
    }

    /// Commits the ends of several steps together, which must hold their tasks.
    pub(super) fn finish_all(&self, leased: &[LeasedStep], ending: &StepEnding) {
        let unit = |step: &LeasedStep| TaskUnit::step(step.window.task.id, step.step, ending.clone(), Vec::new());
        let results = block_on(self.store.commit(leased.iter().map(unit).collect()));
        assert!(results.iter().all(|result| *result == Ok(TaskReceipt::Committed(Vec::new()))), "each holds its task");
    }

    /// Makes a step of a task, which must be the next one.
    pub(super) fn perform(&self, task: TaskId, ending: StepEnding) {
        let leased = self.lease_of(task);
        self.finish(&leased, ending);
    }

    /// Creates a task and brings it into a status.
    pub(super) fn create_in(&self, status: TaskStatus) -> TaskId {
        let task = self.create("Pipe");
        match status {
            TaskStatus::Queued => {}
            TaskStatus::Running => drop(self.lease_of(task)),
            TaskStatus::Suspended => self.perform(task, StepEnding::Suspended),
            TaskStatus::Completed => self.perform(task, StepEnding::Completed),
            TaskStatus::Failed => self.perform(task, StepEnding::Failed(StepError::new("no"))),
            TaskStatus::Terminating => {
                self.perform(task, StepEnding::Completed);
                self.act(terminate(task, false));
            }
            TaskStatus::Terminated => {
                self.act(terminate(task, false));
                self.perform(task, StepEnding::ShutDown(None));
            }
        }
        assert_eq!(self.status(task), status, "the task is in its status");
        task
    }

    pub(super) fn listen(&self, channels: &[&str]) -> Box<dyn ChannelListener> {
        let channels = channels.iter().map(|text| channel(text)).collect();
        block_on(self.store.listen(channels)).expect("messages can be received")
    }

    /// The messages that arrive before a last one, which this publishes. Each as `CHANNEL MESSAGE`.
    pub(super) fn heard(&self, listener: &mut dyn ChannelListener, on: &str) -> Vec<String> {
        self.act(publish(on, r#""end""#));
        let mut heard = Vec::new();
        loop {
            let message = block_on(listener.next());
            if message.message.as_str() == r#""end""# {
                return heard;
            }
            heard.push(format!("{} {}", message.channel, message.message));
        }
    }
}
