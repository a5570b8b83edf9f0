//! `cronhold worker` beside a daemon: the example executables perform tasks that SQLite keeps, and nothing is lost or
//! doubled when the worker or the daemon is killed.

use std::fs;

use cronhold_core::task::TaskStatus;
use cronhold_store::tasks::ProcessSignal;
use rustix::process::{Pid, Signal};

use super::processes::{eventually, parent, processes};
use super::sandbox::Sandbox;
use super::task_stories::{StoryTasks, WorkerChild, example};

fn start_worker(sandbox: &Sandbox, options: &[&str], command: &[&str]) -> WorkerChild {
    WorkerChild::start(|args| sandbox.command(args), &sandbox.path("worker.log"), options, command)
}

#[test]
fn python_worker_performs_the_stories() {
    let sandbox = Sandbox::up("worker-python", &[]);
    let tasks = StoryTasks::of_daemon(&sandbox.path("home"));
    let mut worker = start_worker(&sandbox, &["--concurrency", "2"], &[&example("stories.py")]);
    tasks.wait_for_worker();
    tasks.tell_stories((6, 8));
    worker.signal(Signal::TERM);
    assert_eq!(worker.exit_code(), Some(0), "{}", fs::read_to_string(sandbox.path("worker.log")).expect("a log"));
    assert_eq!(tasks.executor.block_on(tasks.store.processes()).map(|live| live.len()), Ok(0), "it has left");
}

#[test]
fn shell_worker_performs_the_stories() {
    let sandbox = Sandbox::up("worker-shell", &[]);
    let tasks = StoryTasks::of_daemon(&sandbox.path("home"));
    let classes = example("classes.json");
    let options = ["--each", "--classes", &classes, "--concurrency", "2"];
    let mut worker = start_worker(&sandbox, &options, &[&example("stories.sh")]);
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
    let tasks = StoryTasks::of_daemon(&sandbox.path("home"));
    let options = ["--class", "Double", "--filter", "in", "out"];
    let command = ["jq", "-c", "--unbuffered", "if . == 1 then null else . * 2 end"];
    let mut worker = start_worker(&sandbox, &options, &command);
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
    let tasks = StoryTasks::of_daemon(&sandbox.path("home"));
    let options = ["--each", "--class", "Slow", "--log-format", "json"];
    let mut worker = start_worker(&sandbox, &options, &["sleep", "1000"]);
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
    let tasks = StoryTasks::of_daemon(&sandbox.path("home"));
    let script = example("stories.py");
    let start = || start_worker(&sandbox, &[], &[&script]);
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

/// Without a daemon, a worker exits as for one that is unreachable.
#[test]
fn worker_without_a_daemon_is_refused() {
    let sandbox = Sandbox::empty("worker-alone");
    let output = sandbox.run_command(&["worker", "--queue", "testq", "--", "true"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}
