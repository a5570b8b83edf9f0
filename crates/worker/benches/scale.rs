//! Tasks at sizes that tests cannot have: a million items that one step reads, a task that lives through a thousand
//! restarts of its process, and a million writes by workers that are killed.
//!
//! Prints what it took, and the largest resident memory of this process. Argument: the number of items (1,000,000).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant as Moment;

use cronhold_core::task::{JsonText, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId, TaskStatus};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{TaskStore, WindowLimits};
use cronhold_store_sqlite::{Options, SqliteStore};
use cronhold_worker::{RuntimeEvent, StepResult, TaskStep, Worker, WorkerRuntime};

/// The environment variable that makes this program a worker; its value is the file.
const WORKER: &str = "CRONHOLD_BENCH_WORKER";
/// Items that one request writes.
const WRITTEN_AT_ONCE: u64 = 50_000;
/// Items that a step of the pump passes on.
const PUMPED_AT_ONCE: u64 = 5_000;
const RESTARTS: u64 = 1_000;
/// Steps that each worker ends before it is killed.
const STEPS_BEFORE_KILL: usize = 20;

/// Adds up everything in its port.
struct Adder;

impl Worker for Adder {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let (mut sum, mut count): (u64, u64) = step.get("total")?.unwrap_or_default();
        while let Some(number) = step.read::<u64>("in")? {
            sum += number;
            count += 1;
        }
        step.set("total", &(sum, count))
    }
}

/// Passes some numbers on in each step.
struct Pump;

impl Worker for Pump {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        for _ in 0..PUMPED_AT_ONCE {
            let Some(number) = step.read::<u64>("in")? else { return Ok(()) };
            step.write("out", &number)?;
        }
        step.run_again();
        Ok(())
    }
}

fn main() {
    #[expect(clippy::disallowed_methods, reason = "the environment makes a child process of the benchmark a worker")]
    if let Some(path) = std::env::var_os(WORKER).map(PathBuf::from) {
        return work_until_killed(&path);
    }
    let items = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    read_in_one_step(items);
    restart_often();
    kill_workers(items);
}

fn print(text: &str) {
    println!("{text}");
}

/// One step reads all items. Memory grows by the page cache of the writer at most, in which the commit deletes the items.
fn read_in_one_step(items: u64) {
    let place = Place::new("read");
    let runtime = runtime(&place.file());
    runtime.register().expect("it can register");
    let task = runtime.create("Adder", &()).expect("a task");
    write_numbers(&runtime, task, items);
    let (began, before) = (now(), peak_memory());
    assert_eq!(runtime.drain(1).expect("no step fails"), 1);
    let (took, after) = (began.elapsed(), peak_memory());
    assert_eq!(state(&**runtime.store(), task), format!("[{},{items}]", items * (items - 1) / 2));
    print(&format!(
        "{items} items read in one step: {took:.1?}, largest memory {before} KiB before, {after} KiB after"
    ));
}

/// Each restart opens the store again and makes one step.
fn restart_often() {
    let place = Place::new("restart");
    let began = now();
    let task = {
        let runtime = runtime(&place.file());
        runtime.register().expect("it can register");
        runtime.create("Adder", &()).expect("a task")
    };
    for number in 0..RESTARTS {
        // A task that makes more than 600 steps in a minute is terminated.
        let runtime = on_store(open(&place.file(), Span::from_secs(number)));
        runtime.register().expect("it can register");
        runtime.write(task, "in", &number).expect("a port");
        assert_eq!(runtime.drain(2).expect("no step fails"), 1);
    }
    let runtime = on_store(open(&place.file(), Span::from_secs(RESTARTS)));
    assert_eq!(state(&**runtime.store(), task), format!("[{},{RESTARTS}]", RESTARTS * (RESTARTS - 1) / 2));
    print(&format!("{RESTARTS} restarts with a write and a step each: {:.1?}", began.elapsed()));
}

/// A pump passes all items on to an adder, in processes that are killed again and again.
fn kill_workers(items: u64) {
    let place = Place::new("kill");
    let (pump, adder) = {
        let runtime = runtime(&place.file());
        runtime.register().expect("it can register");
        let adder = runtime.create("Adder", &()).expect("a task");
        let pump = runtime.create("Pump", &()).expect("a task");
        write_numbers(&runtime, pump, items);
        (pump, adder)
    };
    let (began, mut kills) = (now(), 0);
    loop {
        let program = std::env::current_exe().expect("this program");
        let mut worker = Command::new(program)
            .env(WORKER, place.file())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(worker.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let ended = lines.take(STEPS_BEFORE_KILL).count();
        worker.kill().expect("it can be killed, or has ended");
        worker.wait().expect("it is dead");
        if ended < STEPS_BEFORE_KILL {
            break;
        }
        kills += 1;
    }
    let runtime = runtime(&place.file());
    assert_eq!(state(&**runtime.store(), adder), format!("[{},{items}]", items * (items - 1) / 2));
    assert_eq!(runtime.find(pump).expect("it exists").status, TaskStatus::Completed);
    print(&format!("{items} items passed on by workers that were killed {kills} times: {:.1?}", began.elapsed()));
}

/// Makes steps until it is killed, or both tasks have nothing to do.
fn work_until_killed(path: &Path) {
    let store = open(path, Span::ZERO);
    let runtime = on_store(Arc::clone(&store));
    if is_done(&*store) {
        return;
    }
    let stop = runtime.stop_handle();
    let runtime = runtime.with_observer(move |event| {
        if let RuntimeEvent::StepEnded(report) = event {
            // The benchmark may have closed the pipe.
            let _ = writeln!(std::io::stdout(), "step of {}", report.task);
        }
        if is_done(&*store) {
            stop.stop();
        }
    });
    runtime.run().expect("it runs until it is killed");
}

/// Whether both tasks have nothing to do.
fn is_done(store: &dyn TaskStore) -> bool {
    [1, 2].into_iter().all(|number| {
        let window = block_on(store.window(TaskId::new(number).expect("an id"), &WindowLimits::STEP));
        let window = window.expect("the store works").expect("the task exists");
        window.inports[0].size == 0 && !window.task.status.is_pending() && window.task.lease.is_none()
    })
}

fn write_numbers(runtime: &WorkerRuntime, task: TaskId, items: u64) {
    let port = PortTarget::new(task, PortDirection::In, PortName::parse("in").expect("a name"));
    let mut next = 0;
    while next < items {
        let end = items.min(next + WRITTEN_AT_ONCE);
        let items = (next..end).map(|number| PortItem::new(JsonText::of_number(number))).collect();
        runtime
            .request(TaskAct::Write { port: port.clone(), items, as_default: false, notify: true })
            .expect("the port exists");
        next = end;
    }
}

fn state(store: &dyn TaskStore, task: TaskId) -> String {
    let window = block_on(store.window(task, &WindowLimits::STEP)).expect("a window").expect("the task");
    window
        .state
        .into_iter()
        .find(|(field, _)| field.as_str() == "total")
        .map(|(_, value)| value.to_string())
        .unwrap_or_default()
}

fn runtime(path: &Path) -> WorkerRuntime {
    on_store(open(path, Span::ZERO))
}

fn on_store(store: Arc<dyn TaskStore>) -> WorkerRuntime {
    let adder = r#"{"inports":{"in":{"channels":["/numbers"]}}}"#;
    let pump = r#"{"inports":{"in":{}},"outports":{"out":{"channels":["/numbers"]}}}"#;
    WorkerRuntime::new(store, "bench")
        .and_then(|runtime| runtime.with_class("Adder", adder, Adder))
        .and_then(|runtime| runtime.with_class("Pump", pump, Pump))
        .expect("the configurations are valid")
        .with_concurrency(2)
        .with_lease(Span::from_secs(2))
}

/// Opens a store whose clock is ahead.
fn open(path: &Path, ahead: Span) -> Arc<dyn TaskStore> {
    let clock = Arc::new(move || wall_clock().plus(ahead));
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    Arc::new(SqliteStore::open(path, options).expect("no other process has it").tasks())
}

/// A folder that is removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-scale-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be created");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("cronhold.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A leftover directory does no harm: no other run uses its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The largest resident memory of this process so far, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Moment {
    Moment::now()
}

#[expect(clippy::disallowed_methods, reason = "leases of killed processes expire in real time")]
fn wall_clock() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    Instant::from_micros(i64::try_from(since.as_micros()).expect("it is before the year 200,000"))
}
