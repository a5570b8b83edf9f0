//! The conformance suite for tasks on files, and what is particular to this store.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_core::task::{
    ActOutcome, ClassConfig, ClassName, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, QueueName,
    StateField, TaskAct, TaskId, TaskTarget, TaskUnit,
};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::conformance::tasks::TaskSubject;
use cronhold_store::tasks::{ProcessId, TaskQuery, TaskReceipt, TaskStore, TaskUnitError, WindowLimits, WorkerProcess};
use cronhold_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;

use crate::places::Place;

struct TaskFile {
    place: Place,
    micros: Arc<AtomicI64>,
    store: Mutex<Option<SqliteStore>>,
}

impl TaskFile {
    fn open(&self) -> SqliteStore {
        let micros = Arc::clone(&self.micros);
        let clock = Arc::new(move || Instant::from_micros(micros.load(Ordering::Relaxed)));
        let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
        SqliteStore::open(self.place.database(), options).expect("it can be opened")
    }
}

impl TaskSubject for TaskFile {
    fn store(&self) -> Arc<dyn TaskStore> {
        let mut store = self.store.lock().expect("not poisoned");
        Arc::new(store.get_or_insert_with(|| self.open()).tasks())
    }

    fn pass(&self, span: Span) {
        let micros = i64::try_from(span.micros()).expect("a short span");
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn reopen(&self) -> Arc<dyn TaskStore> {
        *self.store.lock().expect("not poisoned") = None;
        self.store()
    }
}

fn file() -> TaskFile {
    let micros = Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros()));
    TaskFile { place: Place::new(), micros, store: Mutex::default() }
}

cronhold_store::task_conformance_tests!(file);

fn new_task() -> NewTask {
    NewTask::new(QueueName::parse("q").expect("a name"), ClassName::parse("Pipe").expect("a name"))
}

fn register(store: &dyn TaskStore) {
    let config = ClassConfig::parse(r#"{"inports":{"in":{}}}"#).expect("a configuration");
    let class = ClassName::parse("Pipe").expect("a name");
    let process = WorkerProcess {
        id: ProcessId::new("host:1"),
        queue: QueueName::parse("q").expect("a name"),
        classes: vec![class.clone()],
        concurrency: 1,
        started_at: Instant::EPOCH,
        beat_at: Instant::EPOCH,
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    block_on(store.register(process, vec![(class, config)])).expect("a worker can register");
}

fn commit(store: &dyn TaskStore, acts: Vec<TaskAct>) -> Result<TaskReceipt, TaskUnitError> {
    block_on(store.commit(vec![TaskUnit::request(acts)])).remove(0)
}

/// A row that was damaged by hand fails the requests that need it, and no others.
#[test]
fn damaged_row_fails_only_its_requests() {
    let file = file();
    let store = file.store();
    register(&*store);
    commit(&*store, vec![TaskAct::Create(new_task()), TaskAct::Create(new_task())]).expect("two tasks");
    let someone = Connection::open(file.place.database()).expect("a shell");
    someone.execute("UPDATE tasks SET status = 'done' WHERE id = 1", []).expect("a change");
    let run = |number| {
        let task = TaskTarget::Id(TaskId::new(number).expect("an id"));
        TaskUnit::request(vec![TaskAct::Run { task, forced: false, at: None }])
    };
    let mut results = block_on(store.commit(vec![run(1), run(2)]));
    assert_eq!(results.pop(), Some(Ok(TaskReceipt::Committed(vec![ActOutcome::Ran(TaskId::new(2))]))));
    let fault = results.pop().expect("two results").expect_err("its row is damaged");
    assert!(matches!(&fault, TaskUnitError::Fault(fault) if !fault.is_transient()), "{fault}");
    assert!(fault.to_string().contains("column status"), "{fault}");
}

/// Jobs and tasks share a file: a store that is opened for reading only shows tasks beside the one that writes.
#[test]
fn reader_sees_tasks_and_changes_nothing() {
    let file = file();
    let store = file.store();
    register(&*store);
    commit(&*store, vec![TaskAct::Create(new_task())]).expect("a task");
    let clock = Arc::new(|| Instant::EPOCH);
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let reader = SqliteStore::open_reader(file.place.database(), options).expect("a reader").tasks();
    assert_eq!(block_on(reader.page(&TaskQuery::default(), 9)).map(|page| page.len()), Ok(1));
    let fault = commit(&reader, vec![TaskAct::Create(new_task())]).expect_err("it is open for reading only");
    assert!(matches!(fault, TaskUnitError::Fault(_)), "{fault}");
}

/// A port with many items is counted and read in pages, and one unit takes all of them.
#[test]
fn port_holds_many_items() {
    const ITEMS: u64 = 100_000;
    let file = file();
    let store = file.store();
    register(&*store);
    commit(&*store, vec![TaskAct::Create(new_task())]).expect("a task");
    let task = TaskId::new(1).expect("an id");
    let port = PortTarget::new(task, PortDirection::In, PortName::parse("in").expect("a name"));
    for part in 0..10 {
        let item = |number: u64| PortItem::new(JsonText::of_number(part * ITEMS / 10 + number));
        let items = (0..ITEMS / 10).map(item).collect();
        let write = TaskAct::Write { port: port.clone(), items, as_default: false, notify: true };
        commit(&*store, vec![write]).expect("a write");
    }
    let address = cronhold_core::task::PortAddress { task, direction: PortDirection::In, port: port.port.clone() };
    let page = |from| block_on(store.items(&address, from, &WindowLimits::ITEMS)).expect("a page").expect("the port");
    let first = page(0).position;
    let (mut position, mut sum) = (first, 0);
    while position < first + ITEMS {
        let page = page(position);
        assert_eq!((page.size, page.position), (ITEMS, position));
        assert!(!page.items.is_empty(), "a page has at least one item");
        sum += page.items.iter().map(|item| item.data.to::<u64>().expect("a number")).sum::<u64>();
        position += page.items.len() as u64;
    }
    let field = StateField::parse("sum").expect("a field");
    let state = TaskAct::SetState { task: TaskTarget::Id(task), fields: vec![(field, JsonText::of_number(sum))] };
    let take = TaskAct::Take { port, position: first, count: ITEMS };
    commit(&*store, vec![take, state]).expect("all of them are there");
    let window = block_on(store.window(task, &WindowLimits::STEP)).expect("a window").expect("the task");
    assert_eq!((window.inports[0].size, window.state[0].1.as_str()), (0, "4999950000"));
}

/// Nothing remains of a deleted task, whatever it had.
#[test]
fn deleted_task_leaves_no_rows() {
    let file = file();
    let store = file.store();
    register(&*store);
    let task = TaskTarget::New(0);
    let port = |direction, name: &str| PortTarget { task, direction, port: PortName::parse(name).expect("a name") };
    let write = |port| {
        let items = vec![PortItem::new(JsonText::null()); 3];
        TaskAct::Write { port, items, as_default: false, notify: true }
    };
    let ports = cronhold_core::task::port::parse_ports(r#"{"out":{"default":1},"*":{}}"#).expect("ports");
    let channels = vec![cronhold_core::task::Channel::parse("/a").expect("a channel")];
    let fields = vec![(StateField::parse("f").expect("a name"), JsonText::null())];
    let child =
        NewTask { parent: Some((task, cronhold_core::task::ChildName::parse("c").expect("a name"))), ..new_task() };
    let acts = vec![
        TaskAct::Create(NewTask { outports: ports, ..new_task() }),
        TaskAct::SetChannels { port: port(PortDirection::In, "in"), channels },
        write(port(PortDirection::In, "in")),
        write(port(PortDirection::Out, "any")),
        TaskAct::SetState { task, fields },
        TaskAct::AddAlias { task, alias: cronhold_core::task::TaskAlias::parse("alias").expect("an alias") },
        TaskAct::Create(child),
        TaskAct::Terminate { task, recursive: true },
    ];
    commit(&*store, acts).expect("a task with all kinds of rows");
    let shutdown = |number: u128| {
        let request = cronhold_store::tasks::LeaseRequest {
            queue: QueueName::parse("q").expect("a name"),
            classes: vec![cronhold_store::tasks::LeaseClass {
                name: ClassName::parse("Pipe").expect("a name"),
                has_startup: false,
            }],
            steps: vec![cronhold_core::task::StepId::from_random(number.to_be_bytes())],
            lease: Span::from_secs(60),
            limits: WindowLimits::STEP,
        };
        let leased = block_on(store.lease(request)).expect("steps").pop().expect("a shutdown");
        let ending = cronhold_core::task::StepEnding::ShutDown(None);
        let unit = TaskUnit::step(leased.window.task.id, leased.step, ending, Vec::new());
        block_on(store.commit(vec![unit])).remove(0).expect("it holds its task");
    };
    (1..=2).for_each(shutdown);
    let delete = TaskAct::Delete { task: TaskTarget::Id(TaskId::FIRST) };
    let deleted = commit(&*store, vec![delete]);
    assert_eq!(deleted, Ok(TaskReceipt::Committed(vec![ActOutcome::Deleted(true)])));
    let someone = Connection::open(file.place.database()).expect("a shell");
    for table in ["tasks", "task_aliases", "task_state", "task_ports", "task_items", "task_channels"] {
        let count: i64 =
            someone.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("rows");
        assert_eq!(count, 0, "{table}");
    }
}
