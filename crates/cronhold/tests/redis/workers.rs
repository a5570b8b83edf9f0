//! `cronhold worker` on Redis: the example executable performs tasks without a daemon, and jobs that plain Sidekiq clients
//! have pushed, also beside a daemon.

use std::fs;
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};
use rustix::process::Signal;

use crate::processes::eventually;
use crate::sandbox::Sandbox;
use crate::task_stories::{StoryTasks, WorkerChild, example};

fn tasks_of(sandbox: &Sandbox) -> StoryTasks {
    let url = RedisUrl::parse(&sandbox.server.url()).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    let store = RedisStore::open(&url, options).expect("it can be opened");
    StoryTasks::new(Arc::new(store.tasks()))
}

/// Starts a worker on the tasks that `place` selects.
fn start_worker(sandbox: &Sandbox, place: [&str; 2], options: &[&str], command: &[&str]) -> WorkerChild {
    let binary = |args: &[&str]| sandbox.command(&[&place, args].concat());
    WorkerChild::start(binary, &sandbox.path("worker.log"), options, command)
}

#[test]
fn python_worker_performs_the_stories_without_a_daemon() {
    let sandbox = Sandbox::new("worker-python");
    let tasks = tasks_of(&sandbox);
    let url = sandbox.server.url();
    let command = [example("stories.py")];
    let mut worker = start_worker(&sandbox, ["--store", &url], &["--concurrency", "2"], &[&command[0]]);
    tasks.wait_for_worker();
    tasks.tell_stories((6, 8));
    worker.signal(Signal::TERM);
    assert_eq!(worker.exit_code(), Some(0), "{}", fs::read_to_string(sandbox.path("worker.log")).expect("a log"));
    assert_eq!(tasks.executor.block_on(tasks.store.processes()).map(|live| live.len()), Ok(0), "it has left");
}

/// The entry of a job of class `Mail` as Sidekiq's client writes it.
fn push_job(sandbox: &Sandbox, jid: &str, text: &str, retry: &str) {
    let entry = format!(
        r#"{{"retry":{retry},"queue":"testq","class":"Mail","args":["{text}",[]],"jid":"{jid}","created_at":1794893950.5,"enqueued_at":1794893950.5}}"#
    );
    sandbox.server.cli(&["SADD", "queues", "testq"]);
    sandbox.server.cli(&["LPUSH", "queue:testq", &entry]);
}

/// Pushes jobs of which one succeeds, one is retried, and one is dead, and waits for their ends.
fn perform_jobs(sandbox: &Sandbox, tasks: &StoryTasks) {
    let server = &sandbox.server;
    tasks.wait_for_worker();
    push_job(sandbox, "a1", "good", "true");
    push_job(sandbox, "b2", "bad", "true");
    push_job(sandbox, "c3", "bad", "0");
    let log = || fs::read_to_string(sandbox.path("worker.log")).expect("a log");
    eventually("all jobs have ended", || {
        let count = |key: &str| server.cli(&["ZCARD", key]).trim().to_owned();
        (count("retry").as_str(), count("dead").as_str(), server.cli(&["EXISTS", "job:1:worker"]).trim())
            == ("1", "1", "1")
    });
    let created = server.cli(&["GET", "job:1:worker"]);
    assert!(created.contains(r#""args":["good"]"#), "{created}: {}", log());
    let failed = server.cli(&["ZRANGE", "retry", "0", "-1"]);
    assert!(failed.contains(r#""jid":"b2""#) && failed.contains("no such address"), "{failed}: {}", log());
    assert!(failed.contains(r#""args":["bad",[]]"#), "the entry keeps what its client wrote: {failed}");
    assert!(server.cli(&["ZRANGE", "dead", "0", "-1"]).contains(r#""jid":"c3""#));
    assert_eq!(server.cli(&["HLEN", "cronhold:bare"]).trim(), "0", "nothing is held");
}

/// A class that performs jobs: it creates a task with the first arg, or fails.
const MAIL: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["t"] == "hello":
        print('{"t":"ready","protocol":1,"classes":{"Mail":{"jobs":true}}}', flush=True)
    if message["t"] != "step":
        continue
    end = {"t": "end", "step": message["step"], "as": "done"}
    if message["call"] == "job":
        text, empty = message["args"]
        assert (message["jid"], empty, message["attempt"]) in [(jid, [], 1) for jid in ("a1", "b2", "c3")]
        if text == "good":
            end["acts"] = [{"queue": {"class": "Mail", "args": [text]}}, {"publish": {"channel": "/mails", "message": 1}}]
        else:
            end.update({"as": "fail", "error": "no such address"})
    print(json.dumps(end), flush=True)
"#;

#[test]
fn executable_performs_jobs_of_sidekiq_clients() {
    let sandbox = Sandbox::new("worker-jobs");
    let tasks = tasks_of(&sandbox);
    let url = sandbox.server.url();
    let worker = start_worker(&sandbox, ["--store", &url], &[], &["python3", "-c", MAIL]);
    perform_jobs(&sandbox, &tasks);
    drop(worker);
}

#[test]
fn worker_beside_a_daemon_performs_jobs_of_sidekiq_clients() {
    let sandbox = Sandbox::new("worker-jobs-daemon");
    let node = sandbox.up("one", &[]);
    let tasks = StoryTasks::of_daemon(&sandbox.path("one"));
    sandbox.put("classes.json", r#"{"Mail": {"jobs": true}}"#);
    let script = r#"case $(jq -r '"\(.call) \(.args[0])"') in
        "job good") echo '{"queue":{"class":"Mail","args":["good"]}}' ;;
        "job bad") echo "no such address" >&2; exit 1 ;;
    esac"#;
    let options = ["--each", "--classes", "classes.json"];
    let worker = start_worker(&sandbox, ["--data", "one"], &options, &["sh", "-c", script]);
    perform_jobs(&sandbox, &tasks);
    drop(worker);
    node.stop();
}
