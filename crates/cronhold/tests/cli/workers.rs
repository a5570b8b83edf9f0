//! `cronhold worker` beside a daemon: the example executables perform tasks that SQLite keeps, and nothing is lost or
//! doubled when the worker or the daemon is killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use cronhold_api::client::{CallerOptions, DaemonAddress};
use cronhold_core::task::{
    Channel, JsonText, PortDirection, PortItem, PortName, PortTarget, QueueName, TaskAct, TaskId, TaskStatus,
};
use cronhold_store::tasks::{ProcessSignal, TaskStore, TaskWindow, WindowLimits};
use cronhold_worker::{RemoteTaskStore, WorkerRuntime};
use rustix::process::{Pid, Signal, kill_process};

use super::processes::{eventually, parent, processes};
use super::sandbox::Sandbox;

/// A worker process. It is killed on drop.
struct WorkerChild(Child);

impl WorkerChild {
    fn start(sandbox: &Sandbox, options: &[&str], command: &[&str]) -> Self {
        let args = [&["worker", "--queue", "testq", "--lease", "500ms"], options, &["--"], command].concat();
        let log = fs::File::create(sandbox.path("worker.log")).expect("a file");
        Self(sandbox.command(&args).stdout(Stdio::null()).stderr(log).spawn().expect("the binary starts"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }

    fn kill(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for WorkerChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tasks of a daemon, as its API shows them.
struct DaemonTasks {
    executor: tokio::runtime::Runtime,
    store: Arc<dyn TaskStore>,
    client: WorkerRuntime,
}

impl DaemonTasks {
    fn of(sandbox: &Sandbox) -> Self {
        let address = DaemonAddress::parse("http://127.0.0.1").expect("an address");
        let caller = CallerOptions { address, local: Some(sandbox.path("home")), token: None, user: None };
        let store: Arc<dyn TaskStore> = Arc::new(RemoteTaskStore::new(caller).expect("a thread"));
        let client = WorkerRuntime::new(Arc::clone(&store), "testq").expect("a name");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        Self { executor, store, client }
    }

    fn wait_for_worker(&self) {
        let queue = QueueName::parse("testq").expect("a name");
        eventually("the classes are registered", || {
            self.executor.block_on(self.store.classes(&queue)).is_ok_and(|classes| !classes.is_empty())
        });
    }

    fn create(&self, class: &str, args: &[i64]) -> TaskId {
        self.client.create(class, &args).expect("the class is registered")
    }

    fn window(&self, task: TaskId) -> Option<TaskWindow> {
        self.executor.block_on(self.store.window(task, &WindowLimits::STEP)).ok().flatten()
    }

    fn wait_until(&self, task: TaskId, status: TaskStatus) {
        eventually(&format!("task {task} is {status}"), || {
            self.window(task).is_some_and(|window| window.task.status == status)
        });
    }

    fn read(&self, task: TaskId, port: &str) -> Option<i64> {
        self.client.read(task, port).expect("the port exists")
    }

    fn write_all(&self, task: TaskId, port: &str, numbers: std::ops::Range<u64>) {
        let port = PortTarget::new(task, PortDirection::In, PortName::parse(port).expect("a name"));
        let items = numbers.map(|number| PortItem::new(JsonText::of_number(number))).collect();
        self.client.request(TaskAct::Write { port, items, as_default: false, notify: true }).expect("the port exists");
    }

    fn listen(&self, task: TaskId, direction: PortDirection, port: &str, channel: &str) {
        let port = PortTarget::new(task, direction, PortName::parse(port).expect("a name"));
        let channels = vec![Channel::parse(channel).expect("a channel")];
        self.client.request(TaskAct::SetChannels { port, channels }).expect("the port exists");
    }

    fn publish(&self, channel: &str, message: &str) {
        let (channel, message) = (Channel::parse(channel).expect("a channel"), JsonText::parse(message).expect("JSON"));
        self.client.request(TaskAct::Publish { channel, message }).expect("it is published");
    }

    /// A sum, a Fibonacci number by children, and four sums that are joined by channels.
    fn tell_stories(&self, fibonacci: (i64, i64)) {
        let sum = self.create("Sum", &[]);
        self.wait_until(sum, TaskStatus::Suspended);
        self.write_all(sum, "in", 0..200);
        self.client.write(sum, "ready", &true).expect("the port exists");
        self.wait_until(sum, TaskStatus::Completed);
        assert_eq!(self.read(sum, "sum"), Some(19_900));
        let number = self.create("Fibonacci", &[fibonacci.0]);
        let four: Vec<TaskId> = (0..4).map(|_| self.create("Sum", &[])).collect();
        for (task, input, output) in [
            (four[0], "/test/in", Some("/test/chan1")),
            (four[1], "/test/chan1", Some("/test/chan2")),
            (four[2], "/test/chan1", Some("/test/chan2")),
            (four[3], "/test/chan2", None),
        ] {
            self.listen(task, PortDirection::In, "in", input);
            if let Some(output) = output {
                self.listen(task, PortDirection::Out, "sum", output);
            }
        }
        ["1", "2", "4"].iter().for_each(|number| self.publish("/test/in", number));
        // One after the other: the example takes the sign that it is ready, and adds what is there then.
        for task in &four {
            self.client.write(*task, "ready", &true).expect("the port exists");
            self.wait_until(*task, TaskStatus::Completed);
        }
        assert_eq!(self.read(four[3], "sum"), Some(14));
        self.wait_until(number, TaskStatus::Completed);
        assert_eq!(self.read(number, "num"), Some(fibonacci.1));
    }
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers").join(name);
    path.canonicalize().expect("an example").display().to_string()
}

#[test]
fn python_worker_performs_the_stories() {
    let sandbox = Sandbox::up("worker-python", &[]);
    let tasks = DaemonTasks::of(&sandbox);
    let mut worker = WorkerChild::start(&sandbox, &["--concurrency", "2"], &[&example("stories.py")]);
    tasks.wait_for_worker();
    tasks.tell_stories((6, 8));
    worker.signal(Signal::TERM);
    assert_eq!(worker.exit_code(), Some(0), "{}", fs::read_to_string(sandbox.path("worker.log")).expect("a log"));
    assert_eq!(tasks.executor.block_on(tasks.store.processes()).map(|live| live.len()), Ok(0), "it has left");
}

#[test]
fn shell_worker_performs_the_stories() {
    let sandbox = Sandbox::up("worker-shell", &[]);
    let tasks = DaemonTasks::of(&sandbox);
    let classes = example("classes.json");
    let options = ["--each", "--classes", &classes, "--concurrency", "2"];
    let mut worker = WorkerChild::start(&sandbox, &options, &[&example("stories.sh")]);
    tasks.wait_for_worker();
    tasks.tell_stories((4, 3));
    let process = tasks.executor.block_on(tasks.store.processes()).expect("processes")[0].id.clone();
    let signal = tasks.executor.block_on(tasks.store.signal(&process, ProcessSignal::Stop));
    assert_eq!(signal, Ok(true));
    assert_eq!(worker.exit_code(), Some(0), "a signal through the store stops it");
}

#[test]
fn filter_turns_items_into_items() {
    let sandbox = Sandbox::up("worker-filter", &[]);
    let tasks = DaemonTasks::of(&sandbox);
    let options = ["--class", "Double", "--filter", "in", "out"];
    let command = ["jq", "-c", "--unbuffered", "if . == 1 then null else . * 2 end"];
    let mut worker = WorkerChild::start(&sandbox, &options, &command);
    tasks.wait_for_worker();
    let task = tasks.create("Double", &[]);
    tasks.write_all(task, "in", 0..100);
    let sizes = |task| {
        let window = tasks.window(task)?;
        Some((window.inports[0].size, window.outports[0].size))
    };
    eventually("all items are doubled", || sizes(task) == Some((0, 99)));
    assert_eq!((tasks.read(task, "out"), tasks.read(task, "out")), (Some(0), Some(4)), "null is nothing");
    worker.signal(Signal::INT);
    assert_eq!(worker.exit_code(), Some(0));
}

/// A signal makes a worker quiet, the next one waits for its steps, and another one gives them back.
#[test]
fn signals_stop_a_worker_step_by_step() {
    let sandbox = Sandbox::up("worker-signals", &[]);
    let tasks = DaemonTasks::of(&sandbox);
    let options = ["--each", "--class", "Slow", "--log-format", "json"];
    let mut worker = WorkerChild::start(&sandbox, &options, &["sleep", "1000"]);
    tasks.wait_for_worker();
    let task = tasks.create("Slow", &[]);
    tasks.wait_until(task, TaskStatus::Running);
    worker.signal(Signal::TSTP);
    let live = || tasks.executor.block_on(tasks.store.processes()).unwrap_or_default();
    eventually("the worker is quiet", || live().iter().any(|process| process.is_quiet));
    let waiting = tasks.create("Slow", &[]);
    worker.signal(Signal::TERM);
    let log = || fs::read_to_string(sandbox.path("worker.log")).expect("a log");
    eventually("the worker has received it", || log().contains("\"worker_stopping\""));
    let status = |task| tasks.window(task).map(|window| window.task.status);
    assert_eq!((status(task), status(waiting)), (Some(TaskStatus::Running), Some(TaskStatus::Queued)));
    worker.signal(Signal::TERM);
    assert_eq!(worker.exit_code(), Some(0), "{}", log());
    assert_eq!(status(task), Some(TaskStatus::Queued), "it is given back at once");
}

/// Numbers that are added in steps of three.
const NUMBERS: u64 = 300;

#[test]
fn killed_worker_and_daemon_lose_and_double_nothing() {
    let sandbox = Sandbox::up("worker-kills", &[]);
    let tasks = DaemonTasks::of(&sandbox);
    let script = example("stories.py");
    let start = || WorkerChild::start(&sandbox, &[], &[&script]);
    let mut worker = start();
    tasks.wait_for_worker();
    let task = tasks.create("Adder", &[]);
    let total = || -> (u64, u64) {
        let state = tasks.window(task).map(|window| window.state).unwrap_or_default();
        state.first().map_or((0, 0), |(_, value)| value.to().expect("two numbers"))
    };
    tasks.write_all(task, "in", 0..NUMBERS);
    eventually("the worker has begun", || total().1 > 10);
    let pid = Pid::from_child(&worker.0).as_raw_nonzero().get();
    let executable = processes().find(|child| parent(*child) == Some(pid)).expect("the executable");
    worker.kill();
    eventually("the executable dies with the worker", || is_over(executable));
    let before = total().1;
    assert!(before < NUMBERS, "the worker was killed while it had something to do");
    let mut worker = start();
    eventually("the next worker goes on", || total().1 > before + 10);
    sandbox.end(Signal::KILL);
    sandbox.start();
    let before = total().1;
    assert!(before < NUMBERS, "the daemon was killed while there was something to do");
    eventually("the worker goes on with the next daemon", || total().1 > before + 10);
    worker.kill();
    let worker = start();
    eventually("all numbers are added", || total().1 == NUMBERS);
    tasks.wait_until(task, TaskStatus::Completed);
    assert_eq!(total(), (NUMBERS * (NUMBERS - 1) / 2, NUMBERS));
    drop(worker);
}

/// Whether a process has ended, waited for or not.
fn is_over(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.is_empty() || status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Runs `cronhold worker check`, and returns its exit code and its output.
fn check(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String) {
    let output = sandbox.run_command(&[&["worker", "check"], args].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn check_says_what_is_right_and_wrong() {
    let sandbox = Sandbox::empty("worker-check");
    let script = example("stories.py");
    let (code, text) =
        check(&sandbox, &["--class", "Sum", "--in", "in=20", "--in", "in=1", "--in", "ready=true", "--", &script]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("out port sum: [21]"), "{text}");
    for (name, script) in [
        ("silent", "exit 3"),
        ("noise", "read -r line; echo noise"),
        ("other version", r#"read -r line; echo '{"t":"ready","protocol":9}'; cat"#),
        ("no classes", r#"read -r line; echo '{"t":"ready","protocol":1}'; cat"#),
        (
            "bad act",
            r#"read -r line; echo '{"t":"ready","protocol":1,"classes":{"A":{}}}'
            while read -r line; do
                id=$(printf %s "$line" | sed 's/.*"step":"\([0-9a-f]*\)".*/\1/')
                echo "{\"t\":\"end\",\"step\":\"$id\",\"as\":\"done\",\"acts\":[{\"write\":{\"port\":\"x\",\"data\":1}}]}"
            done"#,
        ),
    ] {
        let (code, text) = check(&sandbox, &["--", "sh", "-c", script]);
        assert_eq!(code, Some(1), "{name}: {text}");
        assert!(text.contains("PROBLEM"), "{name}: {text}");
    }
}

/// A worker without a daemon says so.
#[test]
fn worker_without_a_daemon_is_refused() {
    let sandbox = Sandbox::empty("worker-alone");
    let output = sandbox.run_command(&["worker", "--queue", "testq", "--", "true"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}
