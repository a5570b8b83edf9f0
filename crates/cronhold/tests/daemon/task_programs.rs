//! Jobs whose program is a task, with a real daemon: the run waits for its task across restarts, a stop terminates the task,
//! and a request takes effect once although the daemon is killed around it.

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_core::task::{TaskKey, TaskRecord, TaskStatus};
use cronhold_store::tasks::{TaskQuery, WindowLimits};
use cronhold_worker::{StepResult, TaskStep, Worker, WorkerRuntime};

use super::channels::ClosedStore;
use super::daemon::Sandbox;
use super::http::Api;
use super::processes::eventually;

/// Copies numbers, so that its task is completed when its in port is empty.
struct Copy;

impl Worker for Copy {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.for_inputs(&["number"], |step, (number,): (i64,)| step.write("copy", &number))
    }
}

impl ClosedStore {
    fn runtime(&self) -> WorkerRuntime {
        let ports = r#"{"inports":{"number":{}},"outports":{"copy":{}}}"#;
        let runtime = WorkerRuntime::new(self.shared_tasks(), "numbers").expect("a queue");
        let runtime = runtime.with_class("Copy", ports, Copy).expect("a class");
        runtime.register().expect("registered");
        runtime
    }

    fn all(&self) -> Vec<TaskRecord> {
        self.block_on(self.tasks().page(&TaskQuery::default(), 100)).expect("a page")
    }

    /// Items of the port `number` of a task.
    fn numbers(&self, task: &TaskRecord) -> Vec<String> {
        let found = self.block_on(self.tasks().find(&TaskKey::Id(task.id))).expect("the store works").expect("there");
        let window = self.block_on(self.tasks().window(found.id, &WindowLimits::STEP)).expect("works").expect("there");
        window.inports[0].items.iter().map(|item| item.data.to_string()).collect()
    }
}

fn run(sandbox: &Sandbox, job: &str, number: u64) -> Option<Run> {
    let stored = sandbox.stored();
    stored.runs.iter().find(|run| run.job.as_str() == job && run.number.0 == number).map(|run| (**run).clone())
}

fn wait_for(sandbox: &Sandbox, job: &str, number: u64, state: State) {
    eventually(&format!("{job}#{number} is {state}"), || {
        run(sandbox, job, number).is_some_and(|run| run.state == state)
    });
}

#[test]
fn run_ends_with_its_task_and_a_stop_terminates_the_task() {
    let sandbox = Sandbox::new("task-waits");
    let program = "task: {queue: numbers, class: Copy, args: ['{{ x }}', text], in: {number: '{{ x }}'}, wait: true}";
    sandbox.put_job("copy", &format!("program: {{{program}}}\nparams: {{x: {{default: 7}}}}\noverlap: allow\n"));
    sandbox.up().stop();
    drop(ClosedStore::open(&sandbox).runtime());

    let daemon = sandbox.up();
    Api::of(&sandbox).post("/api/v1/jobs/copy/runs", "{}");
    eventually("the task exists", || run(&sandbox, "copy", 1).is_some_and(|run| run.remote_task().is_some()));
    assert_eq!(run(&sandbox, "copy", 1).expect("there").state, State::Running);
    daemon.kill();
    let store = ClosedStore::open(&sandbox);
    assert_eq!(store.runtime().drain(10).expect("steps"), 1);
    let [task] = &store.all()[..] else { panic!("one task") };
    assert_eq!(task.args.as_ref().map(ToString::to_string).as_deref(), Some(r#"[7,"text"]"#));
    drop(store);

    let daemon = sandbox.up();
    wait_for(&sandbox, "copy", 1, State::Success);
    let api = Api::of(&sandbox);
    api.post("/api/v1/jobs/copy/runs", "{}");
    eventually("the task exists", || run(&sandbox, "copy", 2).is_some_and(|run| run.remote_task().is_some()));
    api.post(&format!("/api/v1/runs/{}/stop", run(&sandbox, "copy", 2).expect("there").id), "{}");
    wait_for(&sandbox, "copy", 2, State::Stopping);
    daemon.kill();
    let store = ClosedStore::open(&sandbox);
    // The daemon may have been killed before it could terminate the task.
    let second = store.all().remove(1);
    if second.status == TaskStatus::Terminating {
        store.runtime().drain(10).expect("the shutdown");
    }
    drop(store);
    let daemon = sandbox.up();
    let ends = || run(&sandbox, "copy", 2).is_some_and(|run| run.state.is_finished());
    eventually("the run has ended, at the latest after its grace period", ends);
    assert_eq!(run(&sandbox, "copy", 2).expect("there").state, State::Failure);
    // A class that no worker has registered.
    sandbox.put_job("lost", "program: {task: {queue: numbers, class: Nothing}}\n");
    eventually("the job is loaded", || Api::of(&sandbox).exchange("GET", "/api/v1/jobs/lost", "").0.contains("200"));
    Api::of(&sandbox).post("/api/v1/jobs/lost/runs", "{}");
    wait_for(&sandbox, "lost", 1, State::Error);
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let store = ClosedStore::open(&sandbox);
    assert!(matches!(store.all()[1].status, TaskStatus::Terminating | TaskStatus::Terminated), "{:?}", store.all()[1]);
}

#[cfg(debug_assertions)]
#[test]
fn value_is_written_once_although_the_daemon_is_killed() {
    use super::daemon::Daemon;

    let sandbox = Sandbox::new("task-writes");
    sandbox.up().stop();
    let store = ClosedStore::open(&sandbox);
    let task = store.runtime().create("Copy", &()).expect("a task");
    drop(store);
    sandbox.put_job(
        "feed",
        &format!(
            "program: {{task: {{write: {{to: {task}, port: number, data: 7}}}}}}\noverlap: allow\nschedule: '@reboot'\n"
        ),
    );
    for point in ["daemon-before-task", "daemon-after-task"] {
        let mut command = sandbox.command(&["--jobs", "jobs"]);
        Daemon::start(command.env(cronhold_keeper::fail::VARIABLE, point)).wait_for_death();
    }
    let daemon = sandbox.up();
    // The second daemon may be killed by the run of the first one, before it has a run of its own.
    Api::of(&sandbox).post("/api/v1/jobs/feed/runs", "{}");
    let states = || sandbox.stored().runs.iter().map(|run| run.state).collect::<Vec<_>>();
    eventually("all runs have ended", || states().len() >= 3 && states().iter().all(|state| state.is_finished()));
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let states = states();
    assert!(states.iter().all(|state| *state == State::Success), "{states:?}");
    let store = ClosedStore::open(&sandbox);
    let task = store.all().remove(0);
    assert_eq!(store.numbers(&task), vec!["7"; states.len()]);
}
