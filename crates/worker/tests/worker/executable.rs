//! Executables as workers: what the protocol promises, by small scripts on the reference store.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use cronhold_core::task::{ClassName, JsonText, PortName, StepEnding, TaskId, TaskStatus};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::MemoryTaskStore;
use cronhold_worker::{ExecutableMode, ExecutableOptions, PreparedExecutable, StepOutcome, WorkerError, WorkerRuntime};

/// Reads `hello`, offers the class `Test`, and defines `id` for each step. What follows is the body of a loop over steps.
const BEGIN: &str = r#"
read -r hello
echo "{\"t\":\"ready\",\"protocol\":1,\"classes\":{\"Test\":$CONFIG},\"new\":[]}"
while read -r line; do
    case $line in *'"t":"step"'*) ;; *) continue ;; esac
    id=$(printf %s "$line" | sed 's/.*"step":"\([0-9a-f]*\)".*/\1/')
    finish() { printf '{"t":"end","step":"%s","as":"%s","acts":[%s]}\n' "$id" "$1" "$2"; }
"#;

/// A registered runtime whose class `Test` is a script.
struct ScriptWorker {
    prepared: PreparedExecutable,
    runtime: WorkerRuntime,
}

impl ScriptWorker {
    fn with_mode(mode: ExecutableMode, script: &str, configs: &str) -> Result<Self, WorkerError> {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        let options =
            ExecutableOptions { mode, restart_pause: Duration::ZERO, ..ExecutableOptions::new("testq", command) };
        let configs: BTreeMap<ClassName, JsonText> =
            JsonText::parse(configs).and_then(|configs| configs.to()).expect("configurations");
        let prepared = PreparedExecutable::start(options, configs, &[])?;
        let store = Arc::new(MemoryTaskStore::new(Arc::new(|| Instant::from_secs(1_800_000_000))));
        let runtime = prepared.runtime(store, Span::from_secs(60), |_| ())?;
        runtime.register()?;
        Ok(Self { prepared, runtime })
    }

    /// A script that speaks the protocol: the body of its loop over steps.
    fn new(config: &str, body: &str) -> Self {
        let script = format!("CONFIG='{config}'\n{BEGIN}\n{body}\ndone");
        Self::with_mode(ExecutableMode::Protocol, &script, "{}").expect("it is ready")
    }

    fn create(&self) -> TaskId {
        self.runtime.create("Test", &()).expect("a task")
    }

    /// The end of the next step: `completed`, `failed: WHY` and so on.
    fn step(&self) -> String {
        let report = self.runtime.perform_next().expect("it is committed").expect("a task is ready");
        match report.outcome {
            StepOutcome::Committed(StepEnding::Failed(error)) => format!("failed: {}", error.message),
            StepOutcome::Committed(StepEnding::Repeated(error)) => format!("repeated: {}", error.message),
            StepOutcome::Committed(StepEnding::Completed) => "completed".to_owned(),
            StepOutcome::Committed(StepEnding::Suspended) => "suspended".to_owned(),
            StepOutcome::Refused(refusal) => format!("refused: {refusal}"),
            other => format!("{other:?}"),
        }
    }

    fn read(&self, task: TaskId, port: &str) -> Option<i64> {
        self.runtime.read(task, port).expect("the port exists")
    }
}

impl Drop for ScriptWorker {
    fn drop(&mut self) {
        self.prepared.stop();
    }
}

const PORTS: &str = r#"{"inports":{"in":{},"other":{"default":10}},"outports":{"out":{}},"deadline_ms":20000}"#;

#[test]
fn acts_take_effect_together() {
    let body = r#"
    case $line in *'"args":[1]'*) finish done '{"take":{"port":"in"}}'; continue ;; esac
    finish done '{"take":{"port":"in"}},{"write":{"port":"out","data":5}},{"write":{"port":"out","list":[6,7]}},{"set":{"a":[]}},
{"queue":{"name":"child","class":"Test","args":[1]}},{"write":{"child":"child","port":"in","data":1}},{"alias":"first"},
{"context":{"by":"me"}},{"log":"text"},{"publish":{"channel":"/x","message":null}},{"run":{"self":true,"wait":5}}' | tr -d '\n'; echo"#;
    let worker = ScriptWorker::new(PORTS, body);
    let task = worker.create();
    worker.runtime.write(task, "in", &1).expect("the port exists");
    assert_eq!(worker.step(), "completed");
    assert_eq!([(); 3].map(|()| worker.read(task, "out")), [Some(5), Some(6), Some(7)]);
    assert_eq!(worker.runtime.find(task).expect("it exists").status, TaskStatus::Queued, "it runs later");
    assert_eq!(worker.step(), "completed", "the child has its item");
    let child = worker.runtime.find(TaskId::new(2).expect("an id")).expect("it exists");
    assert_eq!(child.parent.map(|(parent, name)| (parent, name.to_string())), Some((task, "child".to_owned())));
}

#[test]
fn act_that_cannot_be_fails_the_step() {
    for (acts, expected) in [
        (
            r#"{"set":{"a":1}},{"take":{"port":"in","count":2}}"#,
            "protocol: act 2: 2 items are taken from port `in`, which has 1",
        ),
        (r#"{"write":{"port":"none","data":1}}"#, "protocol: act 1: there is no outport `none`"),
        (r#"{"write":{"port":"out"}}"#, "protocol: act 1: `write` needs either `data` or `list`"),
        (r#"{"jump":{}}"#, "protocol: act 1: "),
        (r#"{"run":{"child":"none"}}"#, "protocol: act 1: the task has no child `none`"),
    ] {
        let worker = ScriptWorker::new(PORTS, &format!("finish done '{acts}'"));
        let task = worker.create();
        worker.runtime.write(task, "in", &1).expect("the port exists");
        let outcome = worker.step();
        assert!(outcome.starts_with(&format!("failed: {expected}")), "{acts}: {outcome}");
    }
}

#[test]
fn executable_that_breaks_the_protocol_is_started_again() {
    for (name, mistake) in [
        ("noise", "echo noise"),
        ("unknown step", "id=0123456789abcdef0123456789abcdef; finish done ''"),
        ("end", "echo why >&2; exit 3"),
    ] {
        // The second attempt is made by another process.
        let body = format!(
            r#"case $line in *'"attempt":1,'*) {mistake} ;; *) finish done '{{"write":{{"port":"out","data":1}}}}' ;; esac"#
        );
        let worker = ScriptWorker::new(PORTS, &body);
        let task = worker.create();
        let outcome = worker.step();
        assert!(outcome.starts_with("repeated: the executable was lost"), "{name}: {outcome}");
        assert_eq!((worker.step().as_str(), worker.read(task, "out")), ("completed", Some(1)), "{name}");
    }
}

#[test]
fn step_past_its_deadline_fails() {
    let config = r#"{"outports":{"out":{}},"deadline_ms":200}"#;
    // It ends the step when it is cancelled, and so it is not killed.
    let body = r#"read -r cancel; case $cancel in *'"t":"cancel"'*) finish done '' ;; esac"#;
    let worker = ScriptWorker::new(config, body);
    worker.create();
    assert_eq!(worker.step(), "failed: timed out after 200 ms");
    worker.create();
    assert_eq!(worker.step(), "failed: timed out after 200 ms", "the same process makes the next step");
}

#[test]
fn needs_are_answered() {
    let body = r#"
    printf '{"t":"need","step":"%s","id":[1],"items":{"port":"in","from":65,"count":3}}\n' "$id"
    read -r have
    case $have in *'"id":[1]'*'"more":true'*'"items":[65,66,67]'*) finish done '{"write":{"port":"out","data":1}}' ;;
        *) printf '{"t":"end","step":"%s","as":"fail","error":"%s"}\n' "$id" "$(printf %s "$have" | tr -d '"')" ;; esac"#;
    let worker = ScriptWorker::new(PORTS, body);
    let task = worker.create();
    (0..70).for_each(|number| worker.runtime.write(task, "in", &number).expect("the port exists"));
    assert_eq!((worker.step().as_str(), worker.read(task, "out")), ("completed", Some(1)));
}

#[test]
fn inputs_that_are_read_together_are_rows() {
    let config = r#"{"inports":{"in":{},"other":{"default":10}},"outports":{"out":{}},"for_inputs":["in","other"]}"#;
    let body = r#"
    case $line in *'"rows":[[1,10],[2,10]]'*) finish done '{"write":{"port":"out","data":3}}' ;; *) finish fail '' ;; esac"#;
    let worker = ScriptWorker::new(config, body);
    let task = worker.create();
    assert_eq!(worker.step(), "completed", "without rows, the executable is not asked");
    (1..3).for_each(|number| worker.runtime.write(task, "in", &number).expect("the port exists"));
    assert_eq!((worker.step().as_str(), worker.read(task, "out")), ("completed", Some(3)));
    assert_eq!(worker.runtime.perform_next().expect("the store works"), None, "the items were taken");
}

#[test]
fn executable_that_is_not_ready_is_refused() {
    for (script, expected) in [
        ("echo why >&2; exit 3", "it ended with exit code 3 before it replied to `hello`: why"),
        ("read -r line; echo '{\"t\":\"ready\",\"protocol\":2}'; cat", "only 1 is offered"),
        ("read -r line; echo '{\"t\":\"ready\",\"protocol\":1}'; cat", "it has no classes"),
    ] {
        let refused = ScriptWorker::with_mode(ExecutableMode::Protocol, script, "{}");
        let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn process_for_each_step_ends_it_by_its_exit_code() {
    for (script, expected, written) in [
        (r#"echo '{"write":{"port":"out","data":1}}'"#, "completed", Some(1)),
        (r#"echo '{"write":{"port":"out","data":1}}'; exit 75"#, "suspended", Some(1)),
        (r#"echo '{"write":{"port":"out","data":1}}'; echo why >&2; exit 2"#, "failed: exit code 2: why", None),
        ("echo noise", "failed: protocol: line 1:", None),
    ] {
        let configs = format!(r#"{{"Test":{PORTS}}}"#);
        let worker = ScriptWorker::with_mode(ExecutableMode::EachStep, script, &configs).expect("it is ready");
        let task = worker.create();
        let outcome = worker.step();
        assert!(outcome.starts_with(expected), "{script}: {outcome}");
        assert_eq!(worker.read(task, "out"), written, "{script}");
    }
}

#[test]
fn filter_without_a_line_for_an_item_fails() {
    let port = |name: &str| PortName::parse(name).expect("a name");
    let configs = r#"{"Test":{"inports":{"in":{}},"outports":{"out":{}},"deadline_ms":200}}"#;
    let mode = ExecutableMode::Filter(port("in"), port("out"));
    let script = "while read -r line; do if [ $line -gt 0 ]; then echo $line; else echo skipped >&2; fi; done";
    let worker = ScriptWorker::with_mode(mode, script, configs).expect("it is ready");
    let task = worker.create();
    assert_eq!(worker.step(), "completed", "there is nothing to do");
    worker.runtime.write(task, "in", &3).expect("the port exists");
    assert_eq!((worker.step().as_str(), worker.read(task, "out")), ("completed", Some(3)));
    worker.runtime.write(task, "in", &0).expect("the port exists");
    let outcome = worker.step();
    assert!(outcome.starts_with("failed: timed out") && outcome.ends_with("skipped"), "{outcome}");
}
