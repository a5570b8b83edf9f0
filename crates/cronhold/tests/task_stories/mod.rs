//! Worker processes of the real binary, and stories that the example executables perform with tasks of any store. The
//! tests of each kind of store include this file as a module.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use cronhold_api::client::{CallerOptions, DaemonAddress};
use cronhold_core::task::{
    Channel, JsonText, PortDirection, PortItem, PortName, PortTarget, QueueName, TaskAct, TaskId, TaskStatus,
};
use cronhold_store::tasks::{TaskStore, TaskWindow, WindowLimits};
use cronhold_worker::{RemoteTaskStore, WorkerRuntime};
use rustix::process::{Pid, Signal, kill_process};

use crate::processes::eventually;

/// A worker process. It is killed on drop.
pub(crate) struct WorkerChild(pub(crate) Child);

impl WorkerChild {
    /// Starts a worker of the queue `testq`. `binary` is the program with arguments; `log` is created.
    pub(crate) fn start(
        binary: impl FnOnce(&[&str]) -> Command,
        log: &Path,
        options: &[&str],
        command: &[&str],
    ) -> Self {
        let args = [&["worker", "--queue", "testq", "--lease", "500ms"], options, &["--"], command].concat();
        let log = fs::File::create(log).expect("a file");
        Self(binary(&args).stdout(Stdio::null()).stderr(log).spawn().expect("the binary starts"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }

    pub(crate) fn kill(&mut self) {
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

/// The tasks of a store.
pub(crate) struct StoryTasks {
    pub(crate) executor: tokio::runtime::Runtime,
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) client: WorkerRuntime,
}

impl StoryTasks {
    pub(crate) fn new(store: Arc<dyn TaskStore>) -> Self {
        let client = WorkerRuntime::new(Arc::clone(&store), "testq").expect("a name");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        Self { executor, store, client }
    }

    /// The tasks of the daemon of a data directory, over its API.
    pub(crate) fn of_daemon(data: &Path) -> Self {
        let address = DaemonAddress::parse("http://127.0.0.1").expect("an address");
        let caller = CallerOptions { address, local: Some(data.to_owned()), token: None, user: None };
        Self::new(Arc::new(RemoteTaskStore::new(caller).expect("a thread")))
    }

    pub(crate) fn wait_for_worker(&self) {
        let queue = QueueName::parse("testq").expect("a name");
        eventually("the classes are registered", || {
            self.executor.block_on(self.store.classes(&queue)).is_ok_and(|classes| !classes.is_empty())
        });
    }

    pub(crate) fn create(&self, class: &str, args: &[i64]) -> TaskId {
        self.client.create(class, &args).expect("the class is registered")
    }

    pub(crate) fn window(&self, task: TaskId) -> Option<TaskWindow> {
        self.executor.block_on(self.store.window(task, &WindowLimits::STEP)).ok().flatten()
    }

    pub(crate) fn wait_until(&self, task: TaskId, status: TaskStatus) {
        eventually(&format!("task {task} is {status}"), || {
            self.window(task).is_some_and(|window| window.task.status == status)
        });
    }

    pub(crate) fn read(&self, task: TaskId, port: &str) -> Option<i64> {
        self.client.read(task, port).expect("the port exists")
    }

    pub(crate) fn write_all(&self, task: TaskId, port: &str, numbers: std::ops::Range<u64>) {
        let port = PortTarget::new(task, PortDirection::In, PortName::parse(port).expect("a name"));
        let items = numbers.map(|number| PortItem::new(JsonText::of_number(number))).collect();
        self.client.request(TaskAct::Write { port, items, as_default: false, notify: true }).expect("the port exists");
    }

    pub(crate) fn listen(&self, task: TaskId, direction: PortDirection, port: &str, channel: &str) {
        let port = PortTarget::new(task, direction, PortName::parse(port).expect("a name"));
        let channels = vec![Channel::parse(channel).expect("a channel")];
        self.client.request(TaskAct::SetChannels { port, channels }).expect("the port exists");
    }

    pub(crate) fn publish(&self, channel: &str, message: &str) {
        let (channel, message) = (Channel::parse(channel).expect("a channel"), JsonText::parse(message).expect("JSON"));
        self.client.request(TaskAct::Publish { channel, message }).expect("it is published");
    }

    /// A sum, a Fibonacci number by children, and four sums that are joined by channels.
    pub(crate) fn tell_stories(&self, fibonacci: (i64, i64)) {
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

/// The path of an example executable.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers").join(name);
    path.canonicalize().expect("an example").display().to_string()
}
