//! Steps of tasks a second: without effects, and with one item read and one written. Each worker leases a batch of steps
//! and commits their ends together.
//!
//! Prints one table. Arguments: tasks (2,000), steps of each task (10), workers (4), and steps of a batch (64).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant as Moment;

use cronhold_core::task::{
    ClassConfig, ClassName, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, QueueName, StepEnding,
    StepId, TaskAct, TaskId, TaskTarget, TaskUnit,
};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{LeaseClass, LeaseRequest, LeasedStep, ProcessId, TaskStore, WindowLimits, WorkerProcess};
use cronhold_store_sqlite::{Options, SqliteStore, SqliteTaskStore};

/// Tasks that are created in one unit.
const CREATED_A_UNIT: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepLoad {
    NoOp,
    ReadAndWrite,
}

#[derive(Debug, Clone, Copy)]
struct BenchSize {
    tasks: usize,
    steps: usize,
    workers: usize,
    batch: usize,
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let mut next = |default| numbers.next().unwrap_or(default);
    let size = BenchSize { tasks: next(2_000), steps: next(10), workers: next(4), batch: next(64) };
    let mut table = format!("{size:?}\n{:<16} {:>10} {:>12}\n", "step", "steps", "steps/s");
    for (name, load) in [("no-op", StepLoad::NoOp), ("read and write", StepLoad::ReadAndWrite)] {
        let (steps, per_second) = measure(load, size);
        table.push_str(&format!("{name:<16} {steps:>10} {per_second:>12.0}\n"));
    }
    print(&table);
}

fn print(table: &str) {
    println!("{table}");
}

fn measure(load: StepLoad, size: BenchSize) -> (u64, f64) {
    let folder = bench_folder();
    let store = open(&folder.join("cronhold.db"));
    prepare(&store, load, size);
    let (next_step, done) = (AtomicU64::new(1), AtomicUsize::new(0));
    let wanted = size.tasks * size.steps;
    let began = now();
    thread::scope(|scope| {
        for _ in 0..size.workers {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < wanted {
                    let first = next_step.fetch_add(size.batch as u64, Ordering::Relaxed);
                    let leased = lease(&store, first, size.batch);
                    let count = leased.len();
                    let units: Vec<TaskUnit> = leased.iter().map(|step| end_of(step, load)).collect();
                    if units.is_empty() {
                        thread::yield_now();
                        continue;
                    }
                    for result in block_on(store.commit(units)) {
                        result.expect("each step holds its task");
                    }
                    done.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    let took = began.elapsed().as_secs_f64();
    let steps = done.load(Ordering::Relaxed) as u64;
    drop(store);
    fs::remove_dir_all(&folder).expect("the folder can be removed");
    (steps, steps as f64 / took)
}

fn end_of(leased: &LeasedStep, load: StepLoad) -> TaskUnit {
    let task = leased.window.task.id;
    let mut acts = vec![TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: None }];
    if load == StepLoad::ReadAndWrite {
        let port = |direction, name| PortTarget::new(task, direction, PortName::parse(name).expect("a name"));
        let window = &leased.window.inports[0];
        let items = vec![PortItem::new(JsonText::of_number(1))];
        acts.push(TaskAct::Take { port: port(PortDirection::In, "in"), position: window.position, count: 1 });
        acts.push(TaskAct::Write { port: port(PortDirection::Out, "out"), items, as_default: false, notify: true });
    }
    TaskUnit::step(task, leased.step, StepEnding::Completed, acts)
}

fn lease(store: &SqliteTaskStore, first: u64, count: usize) -> Vec<LeasedStep> {
    let step = |number: u64| StepId::from_random(u128::from(number).to_be_bytes());
    let request = LeaseRequest {
        queue: QueueName::parse("bench").expect("a name"),
        classes: vec![LeaseClass { name: ClassName::parse("Bench").expect("a name"), has_startup: false }],
        steps: (first..first + count as u64).map(step).collect(),
        lease: Span::from_secs(60),
        limits: WindowLimits::STEP,
    };
    block_on(store.lease(request)).expect("steps can be leased")
}

/// Registers the class, and creates the tasks with what they read.
fn prepare(store: &SqliteTaskStore, load: StepLoad, size: BenchSize) {
    let (queue, class) = (QueueName::parse("bench").expect("a name"), ClassName::parse("Bench").expect("a name"));
    let ports = match load {
        StepLoad::NoOp => "{}",
        StepLoad::ReadAndWrite => r#"{"inports":{"in":{}},"outports":{"out":{}}}"#,
    };
    let process = WorkerProcess {
        id: ProcessId::new("bench"),
        queue: queue.clone(),
        classes: vec![class.clone()],
        concurrency: 1,
        started_at: Instant::EPOCH,
        beat_at: Instant::EPOCH,
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    let config = ClassConfig::parse(ports).expect("a configuration");
    block_on(store.register(process, vec![(class.clone(), config)])).expect("a class can be registered");
    let all: Vec<TaskAct> =
        (0..size.tasks).map(|_| TaskAct::Create(NewTask::new(queue.clone(), class.clone()))).collect();
    let mut units: Vec<TaskUnit> = all.chunks(CREATED_A_UNIT).map(|acts| TaskUnit::request(acts.to_vec())).collect();
    if load == StepLoad::ReadAndWrite {
        units.extend((1..=size.tasks as u64).map(|task| {
            let task = TaskId::new(task).expect("ids count from 1");
            let port = PortTarget::new(task, PortDirection::In, PortName::parse("in").expect("a name"));
            // Workers may begin some steps more than are counted.
            let items = vec![PortItem::new(JsonText::of_number(7)); 2 * size.steps + 10];
            TaskUnit::request(vec![TaskAct::Write { port, items, as_default: false, notify: true }])
        }));
    }
    for result in block_on(store.commit(units)) {
        result.expect("tasks can be created");
    }
}

fn open(path: &Path) -> SqliteTaskStore {
    let began = now();
    let clock = Arc::new(move || {
        let micros = i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Instant::from_micros(1_800_000_000_000_000 + micros)
    });
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    SqliteStore::open(path, options).expect("a new store").tasks()
}

fn bench_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-tasks-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be created");
    folder
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Moment {
    Moment::now()
}
