//! Workers that are killed at any moment lose nothing and double nothing. The worker is this test binary again; an
//! environment variable makes it one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

use cronhold_core::task::{JsonText, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId};
use cronhold_schedule::{Span, ZoneRegistry};
use cronhold_store::ClockFn;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{TaskStore, WindowLimits};
use cronhold_store_sqlite::{Options, SqliteStore};
use cronhold_worker::{RuntimeEvent, StepOutcome, StepResult, TaskStep, Worker, WorkerRuntime};

use crate::runtime::wall_clock;

/// The environment variable that makes this binary a worker; its value is the file.
const WORKER: &str = "CRONHOLD_TEST_WORKER";
/// Printed by the worker for each step that is committed, with the number of its task.
const STEP: &str = "step ";
/// Numbers that are moved: 0, 1, 2 and so on. A task may make 600 steps a minute.
const NUMBERS: u64 = 1_000;
/// How often the worker is killed.
const KILLS: u64 = 6;
/// How long steps are held, by a clock that jumps between two rounds.
const LEASE: Span = Span::from_secs(3_600);
/// The environment variable with the number of the round.
const ROUND: &str = "CRONHOLD_TEST_WORKER_ROUND";

/// Passes some numbers on, and counts them.
struct Pump;

impl Worker for Pump {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let mut count: u64 = step.get("count")?.unwrap_or_default();
        for _ in 0..1 + count % 5 {
            let Some(number) = step.read::<u64>("in")? else { return Ok(()) };
            step.write("out", &number)?;
            count += 1;
            step.set("count", &count)?;
        }
        step.run_again();
        Ok(())
    }
}

/// Adds up what it gets.
struct Adder;

impl Worker for Adder {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let (mut sum, mut count): (u64, u64) = step.get("total")?.unwrap_or_default();
        for number in step.read_all::<u64>("in")? {
            sum += number;
            count += 1;
        }
        step.set("total", &(sum, count))
    }
}

/// The runtime of a round. Its clock is so far ahead that the leases of the rounds before have expired, and no lease
/// expires within a round, however slow the machine is.
fn runtime(path: &Path, round: u64) -> (Arc<dyn TaskStore>, WorkerRuntime) {
    let store = open(path, Arc::new(move || wall_clock().plus(Span::from_secs(round * 7_200))));
    (Arc::clone(&store), runtime_on(store))
}

pub(crate) fn open(path: &Path, clock: ClockFn) -> Arc<dyn TaskStore> {
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    Arc::new(SqliteStore::open(path, options).expect("no other process has it").tasks())
}

pub(crate) fn runtime_on(store: Arc<dyn TaskStore>) -> WorkerRuntime {
    let pump = r#"{"inports":{"in":{}},"outports":{"out":{"channels":["/numbers"]}}}"#;
    let adder = r#"{"inports":{"in":{"channels":["/numbers"]}}}"#;
    WorkerRuntime::new(store, "testq")
        .and_then(|runtime| runtime.with_class("Pump", pump, Pump))
        .and_then(|runtime| runtime.with_class("Adder", adder, Adder))
        .expect("the configurations are valid")
        .with_concurrency(3)
        .with_lease(LEASE)
}

#[test]
fn killed_workers_lose_and_double_nothing() {
    run_worker_if_requested();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("worker-kills-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a directory can be created");
    let path = folder.join("cronhold.db");
    let (pump, adder) = create_tasks(&runtime(&path, 0).1, NUMBERS);
    for round in 1..=KILLS {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "kills::killed_workers_lose_and_double_nothing", "--nocapture"]).env(WORKER, &path);
        command.env(ROUND, round.to_string());
        let mut worker = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(worker.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        // Each task makes a step in each round: one that only loses steps fails.
        let mut left = [(pump, 5), (adder, 5)];
        while left.iter().any(|(_, steps)| *steps > 0) {
            let line = lines.next().expect("the worker makes steps");
            let task = line.strip_prefix(STEP).and_then(|task| TaskId::parse(task).ok());
            for (_, steps) in left.iter_mut().filter(|(of, steps)| task == Some(*of) && *steps > 0) {
                *steps -= 1;
            }
        }
        worker.kill().expect("it can be killed");
        worker.wait().expect("it is dead");
    }
    let (send, receive) = channel();
    let (store, runtime) = runtime(&path, KILLS + 1);
    let runtime = runtime.with_observer(move |_| send.send(()).expect("the test waits"));
    let window = |task| block_on(store.window(task, &WindowLimits::STEP)).expect("a window").expect("the task");
    assert!(window(pump).inports[0].size > 0, "the worker was killed while it had something to do");
    let stop = runtime.stop_handle();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| runtime.run());
        let is_done = || {
            let windows = [window(pump), window(adder)];
            windows.iter().all(|window| window.inports[0].size == 0 && !window.task.status.is_pending())
                && windows.iter().all(|window| window.task.lease.is_none())
        };
        while !is_done() {
            receive.recv().expect("a step ends");
        }
        stop.stop();
        running.join().expect("it ends well").expect("it can stop");
    });
    assert_exact(&*store, (pump, adder), NUMBERS);
    drop((store, runtime));
    // A leftover directory does no harm: no other test uses its name.
    let _ = fs::remove_dir_all(&folder);
}

/// Asserts that each number was passed on and added up once.
pub(crate) fn assert_exact(store: &dyn TaskStore, (pump, adder): (TaskId, TaskId), numbers: u64) {
    let field = |task, field: &str| {
        let state = block_on(store.window(task, &WindowLimits::STEP)).expect("a window").expect("the task").state;
        state.into_iter().find(|(name, _)| name.as_str() == field).map(|(_, value)| value.to_string())
    };
    assert_eq!(field(pump, "count"), Some(numbers.to_string()));
    assert_eq!(field(adder, "total"), Some(format!("[{},{numbers}]", numbers * (numbers - 1) / 2)));
}

/// Creates both tasks, and writes the numbers.
pub(crate) fn create_tasks(runtime: &WorkerRuntime, numbers: u64) -> (TaskId, TaskId) {
    runtime.register().expect("it can register");
    let adder = runtime.create("Adder", &()).expect("a task");
    let pump = runtime.create("Pump", &()).expect("a task");
    let port = PortTarget::new(pump, PortDirection::In, PortName::parse("in").expect("a name"));
    let items = (0..numbers).map(|number| PortItem::new(JsonText::of_number(number))).collect();
    runtime.request(TaskAct::Write { port, items, as_default: false, notify: true }).expect("a port");
    (pump, adder)
}

/// Runs a worker if the environment variable is set, until it is killed.
fn run_worker_if_requested() {
    #[expect(clippy::disallowed_methods, reason = "the environment makes a child process of the test a worker")]
    let variable = |name| std::env::var_os(name);
    let Some(path) = variable(WORKER).map(PathBuf::from) else { return };
    let round = variable(ROUND).and_then(|round| round.to_str()?.parse().ok()).expect("a number");
    let (_, runtime) = runtime(&path, round);
    let runtime = runtime.with_observer(|event| {
        if let RuntimeEvent::StepEnded(report) = event
            && let StepOutcome::Committed(_) = report.outcome
        {
            // The test may have closed the pipe.
            let _ = writeln!(std::io::stdout(), "{STEP}{}", report.task);
        }
    });
    runtime.run().expect("it runs until it is killed");
}
