//! Jobs and tasks meet in channels, with a real daemon: messages of actions and of transitions start runs, once, although
//! the daemon is killed; messages wait while no daemon runs; the task of a job follows the job.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::task::{Channel, JsonText, PortDirection, PortName, TaskAct, TaskAlias, TaskId, TaskKey, TaskUnit};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::Store;
use cronhold_store::tasks::{TaskReceipt, TaskStore, TaskUnitError, TaskWindow, WindowLimits};
use cronhold_store_sqlite::{Options, SqliteStore};
use serde_json::{Value, json};

use super::daemon::Sandbox;
use super::http::Api;
use super::processes::eventually;

/// The store of a daemon that does not run.
pub(crate) struct ClosedStore {
    tasks: Arc<dyn TaskStore>,
    executor: tokio::runtime::Runtime,
    /// Closes the file when it is dropped.
    _store: SqliteStore,
}

impl ClosedStore {
    #[expect(clippy::disallowed_methods, reason = "a store that a test opens itself has the clock of the machine")]
    pub(crate) fn open(sandbox: &Sandbox) -> Self {
        let clock = Arc::new(|| Instant::from_micros(jiff::Timestamp::now().as_microsecond()));
        let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
        let store = SqliteStore::open(sandbox.path("home/cronhold.db"), options).expect("no daemon has it");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        Self { tasks: store.task_store().expect("it keeps tasks"), executor, _store: store }
    }

    pub(crate) fn tasks(&self) -> &dyn TaskStore {
        &*self.tasks
    }

    pub(crate) fn shared_tasks(&self) -> Arc<dyn TaskStore> {
        Arc::clone(&self.tasks)
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.executor.block_on(future)
    }

    pub(crate) fn commit(&self, acts: Vec<TaskAct>) -> Result<TaskReceipt, TaskUnitError> {
        self.executor.block_on(self.tasks.commit(vec![TaskUnit::request(acts)])).remove(0)
    }

    fn publish(&self, channel: &str, message: &str) {
        let channel = Channel::parse(channel).expect("a channel");
        let message = JsonText::parse(message).expect("JSON");
        self.commit(vec![TaskAct::Publish { channel, message }]).expect("published");
    }
}

/// The task with an alias, as it is while the daemon uses the store.
fn task(sandbox: &Sandbox, alias: &str) -> Option<TaskWindow> {
    let options =
        Options { clock: Arc::new(|| Instant::EPOCH), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let store = SqliteStore::open_reader(sandbox.path("home/cronhold.db"), options).ok()?;
    let tasks = store.task_store()?;
    let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
    executor.block_on(async {
        let key = TaskKey::Alias(TaskAlias::parse(alias).expect("an alias"));
        let task = tasks.find(&key).await.ok()??;
        tasks.window(task.id, &WindowLimits::STEP).await.ok()?
    })
}

/// Whether a task does not exist any more.
fn is_deleted(sandbox: &Sandbox, id: TaskId) -> bool {
    let options =
        Options { clock: Arc::new(|| Instant::EPOCH), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let Ok(store) = SqliteStore::open_reader(sandbox.path("home/cronhold.db"), options) else { return false };
    let tasks = store.task_store().expect("it keeps tasks");
    let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
    executor.block_on(tasks.find(&TaskKey::Id(id))) == Ok(None)
}

/// The channels to which the task of a job subscribes; `None` if it has no task.
fn channels(sandbox: &Sandbox, job: &str) -> Option<Vec<String>> {
    let window = task(sandbox, &format!("cronhold/trigger/{job}"))?;
    let port = window.inports.iter().find(|port| port.name.as_str() == "in")?;
    Some(port.channels.iter().map(ToString::to_string).collect())
}

fn subscribed(sandbox: &Sandbox, job: &str, expected: &[&str]) {
    let is_there = || channels(sandbox, job).is_some_and(|found| found == expected);
    eventually(&format!("{job} subscribes to {expected:?}"), is_there);
}

/// The runs of a job that have succeeded.
fn successes(sandbox: &Sandbox, job: &str) -> usize {
    let is_success = |run: &&Arc<cronhold_core::record::Run>| run.job.as_str() == job && run.state == State::Success;
    sandbox.stored().runs.iter().filter(is_success).count()
}

#[test]
fn message_of_an_action_starts_a_run_that_gets_the_message() {
    let sandbox = Sandbox::new("channel-message");
    let seen = sandbox.path("seen");
    sandbox.put_job(
        "prices",
        "program: {noop: true}\nparams: {region: {default: eu}}\n\
         on: {success: [{publish: {channel: '/prices/ready/{{ region }}', message: '{\"region\": \"{{ region }}\", \"rows\": 7}'}}]}\n",
    );
    let program = format!(
        "echo \"$CRONHOLD_ARG_REGION $CRONHOLD_ARG_FROM\" > {0}; cat \"$CRONHOLD_TRIGGERS_FILE\" >> {0}",
        seen.display()
    );
    sandbox.put_job(
        "report",
        &format!(
            "program: |\n  {program}\nparams: {{region: {{}}, from: {{}}}}\n\
             triggers: [{{channel: /prices, args: {{region: '{{{{ message.region }}}}', from: '{{{{ channel }}}}'}}}}]\n"
        ),
    );
    let daemon = sandbox.up();
    subscribed(&sandbox, "report", &["/prices"]);
    let api = Api::of(&sandbox);
    api.post("/api/v1/jobs/prices/runs", r#"{"args": {"region": "us"}}"#);
    eventually("the message started a run", || successes(&sandbox, "report") == 1);
    let text = fs::read_to_string(&seen).expect("the program has written it");
    let (line, triggers) = text.split_once('\n').expect("a line");
    assert_eq!(line, "us /prices/ready/us");
    let triggers: Value = serde_json::from_str(triggers).expect("JSON");
    assert_eq!(triggers[0]["channel"], json!("/prices/ready/us"));
    assert_eq!(triggers[0]["message"], json!({"region": "us", "rows": 7}));
    let stored = sandbox.stored();
    let run = stored.run("report", 1);
    assert_eq!(run.creator().map(ToString::to_string).as_deref(), Some("channel"));
    // A message that the job cannot use is kept apart, and does not stop the next one.
    sandbox.put_job("broken", "program: {noop: true}\non: {success: [{publish: {channel: /prices, message: none}}]}\n");
    eventually("the job is loaded", || api.exchange("GET", "/api/v1/jobs/broken", "").0.contains("200"));
    api.post("/api/v1/jobs/broken/runs", "{}");
    let refused = || {
        let window = task(&sandbox, "cronhold/trigger/report").expect("a task");
        let port = window.outports.into_iter().find(|port| port.name.as_str() == "refused").expect("a port");
        port.items.first().map(|item| item.data.value())
    };
    eventually("the message is refused", || refused().is_some());
    assert_eq!(refused().expect("a message")["message"], json!("none"));
    api.post("/api/v1/jobs/prices/runs", "{}");
    eventually("the next message started a run", || successes(&sandbox, "report") == 2);
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// Transitions of runs are messages, and each is in one run, although the daemon is killed at each step of a delivery.
#[cfg(debug_assertions)]
#[test]
fn every_transition_is_in_one_run_although_the_daemon_is_killed() {
    use super::daemon::Daemon;

    let sandbox = Sandbox::new("channel-kills");
    sandbox.put_job("work", "program: {noop: true}\noverlap: allow\nschedule: '@every 1s'\n");
    sandbox.put_job("count", "program: {noop: true}\ntriggers: [/cronhold/run/work/success]\n");
    let daemon = sandbox.up();
    subscribed(&sandbox, "count", &["/cronhold/run/work/success"]);
    // From the first message on, every transition is published.
    eventually("a message has started a run", || successes(&sandbox, "count") > 0);
    let known = ended(&sandbox, "work");
    daemon.kill();
    for point in ["daemon-before-publish", "daemon-after-publish", "daemon-messages-received", "daemon-messages-taken"]
    {
        let mut command = sandbox.command(&["--jobs", "jobs"]);
        Daemon::start(command.env(cronhold_keeper::fail::VARIABLE, point)).wait_for_death();
    }
    let daemon = sandbox.up();
    let consumers = || {
        let mut consumers: BTreeMap<String, usize> = BTreeMap::new();
        for run in sandbox.stored().runs.iter().filter(|run| run.job.as_str() == "count") {
            for trigger in run.triggers.iter() {
                let message = trigger.message.as_ref().expect("it came from a channel").message.value();
                *consumers.entry(message["run"].as_str().expect("an id").to_owned()).or_default() += 1;
            }
        }
        consumers
    };
    let wanted =
        || ended(&sandbox, "work").into_iter().filter(|run| !known.contains(run)).collect::<BTreeSet<String>>();
    eventually("some runs have ended", || wanted().len() > 4);
    let published = wanted();
    eventually("all messages are in runs", || {
        let consumers = consumers();
        published.iter().all(|run| consumers.contains_key(run))
    });
    assert!(consumers().values().all(|count| *count == 1), "{:?}", consumers());
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// The ids of the runs of a job that have succeeded.
#[cfg(debug_assertions)]
fn ended(sandbox: &Sandbox, job: &str) -> BTreeSet<String> {
    let stored = sandbox.stored();
    let runs = stored.runs.iter().filter(|run| run.job.as_str() == job && run.state == State::Success);
    runs.map(|run| run.id.to_string()).collect()
}

/// The task of a job with triggers follows it, and messages wait in it while no daemon runs.
#[test]
fn task_of_a_job_follows_the_job_and_keeps_messages_while_no_daemon_runs() {
    let sandbox = Sandbox::new("channel-task");
    let daemon = sandbox.up();
    let api = Api::of(&sandbox);
    let job = |channel: &str| json!({"program": {"noop": true}, "triggers": [channel]}).to_string();
    api.put("/api/v1/jobs/sum", &job("/numbers"));
    subscribed(&sandbox, "sum", &["/numbers"]);
    api.put("/api/v1/jobs/sum", &job("/figures"));
    subscribed(&sandbox, "sum", &["/figures"]);
    let id = task(&sandbox, "cronhold/trigger/sum").expect("a task").task.id;
    api.post("/api/v1/jobs/sum/rename", r#"{"to": "total"}"#);
    subscribed(&sandbox, "total", &["/figures"]);
    assert_eq!(task(&sandbox, "cronhold/trigger/total").expect("a task").task.id, id);
    assert_eq!(channels(&sandbox, "sum"), None);
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");

    let store = ClosedStore::open(&sandbox);
    (0..5).for_each(|number| store.publish("/figures/a", &number.to_string()));
    drop(store);
    let daemon = sandbox.up();
    let messages = || {
        let mut stored = sandbox.stored();
        // A page of runs begins with the newest one.
        stored.runs.sort_by_key(|run| run.number);
        let triggers: Vec<_> = stored.runs.iter().flat_map(|run| run.triggers.iter()).collect();
        let messages = triggers.iter().filter_map(|trigger| Some(trigger.message.as_ref()?.message.to_string()));
        messages.collect::<Vec<_>>()
    };
    eventually("the messages are in runs", || messages().len() == 5);
    assert_eq!(messages(), ["0", "1", "2", "3", "4"]);

    let api = Api::of(&sandbox);
    api.put("/api/v1/jobs/total", &json!({"program": {"noop": true}}).to_string());
    eventually("the task is deleted", || is_deleted(&sandbox, id));
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let store = ClosedStore::open(&sandbox);
    let found = store.executor.block_on(store.tasks().find(&TaskKey::Id(id))).expect("the store works");
    assert!(found.is_none(), "{found:?}");
    let port = PortName::parse("in").expect("a name");
    let acts = vec![TaskAct::Pop {
        port: cronhold_core::task::PortTarget::new(id, PortDirection::In, port),
        count: 1,
        or_default: false,
    }];
    assert!(store.commit(acts).is_err());
}
