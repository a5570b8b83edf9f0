//! A real Sidekiq pushes jobs that are leased here, and its API reads what is stored.

use std::process::Command;

use cronhold_core::task::{StepError, TaskAct, TaskTarget};
use cronhold_schedule::Span;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{
    BareJob, BareJobEnd, BareJobEnding, ProcessHeartbeat, ProcessId, ProcessSignal, TaskStore,
};
use cronhold_store_redis::testing::RedisServer;
use serde_json::{Value, json};

use crate::fixture::{ClockedStore, LEASE, PROCESS, new_task, step_id};

/// Runs a command of the script, and returns what it prints.
fn sidekiq(server: &RedisServer, command: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tasks/sidekiq.rb");
    let output = Command::new("ruby").args([script, &server.url(), command]).output();
    let output = output.expect("ruby cannot be started; install Sidekiq: apt-get install ruby-sidekiq");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn beat(store: &ClockedStore, held: &[&BareJob]) -> Option<ProcessSignal> {
    let process = ProcessId::new(PROCESS);
    let beat = ProcessHeartbeat { process: process.clone(), held: Vec::new(), is_quiet: false, lease: LEASE };
    let reply = block_on(store.store.heartbeat(beat)).expect("a process can beat");
    let held = held.iter().map(|job| job.step).collect();
    assert_eq!(block_on(store.store.hold_bare_jobs(&process, held, LEASE)), Ok(Vec::new()));
    reply.signal
}

fn lease_job(store: &ClockedStore, step: u8) -> Vec<BareJob> {
    block_on(store.store.lease_bare_jobs(store.request(&["Hard"], &[step]))).expect("jobs can be leased")
}

fn end(store: &ClockedStore, job: &BareJob, ending: BareJobEnding, acts: Vec<TaskAct>) -> bool {
    block_on(store.store.end_bare_jobs(vec![BareJobEnd { step: job.step, ending, acts }])).remove(0).is_ok()
}

#[test]
fn sidekiq_pushes_jobs_and_reads_what_is_stored() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", "{}"), ("Hard", "{}")]);
    let task = store.create(new_task("Pipe"));
    let jid = sidekiq(&server, "push")["jid"].clone();
    let jobs = lease_job(&store, 1);
    assert_eq!(jobs.len(), 1);
    assert_eq!((json!(jobs[0].jid), jobs[0].args.as_str()), (jid.clone(), r#"[1,"x",[]]"#));
    assert_eq!(lease_job(&store, 2), [], "it is held");
    assert_eq!(beat(&store, &[&jobs[0]]), None);
    let found = sidekiq(&server, "look");
    assert_eq!(found["queues"], json!({"testq": 1}));
    assert_eq!(found["jids"], json!([task.number()]), "the number of a task is its jid");
    assert_eq!(found["work"], json!([[PROCESS, "testq", jid, "Hard"]]));
    assert_eq!(found["processes"][0][0], json!(PROCESS));
    sidekiq(&server, "quiet");
    sidekiq(&server, "stop");
    assert_eq!(
        (beat(&store, &[]), beat(&store, &[]), beat(&store, &[])),
        (Some(ProcessSignal::Quiet), Some(ProcessSignal::Stop), None)
    );
    let error = StepError { message: "no luck".to_owned(), backtrace: Some("here\nthere".to_owned()) };
    assert!(end(&store, &jobs[0], BareJobEnding::Failed(error), Vec::new()));
    assert!(!end(&store, &jobs[0], BareJobEnding::Completed, Vec::new()), "it has ended");
    let found = sidekiq(&server, "look");
    assert_eq!(found["retries"], json!([[jid, "no luck", 0, ["here"]]]));
    assert_eq!((&found["processed"], &found["failed"]), (&json!(1), &json!(1)));
    // Its next attempt, which also creates a task.
    store.pass(Span::from_secs(60));
    assert_eq!(lease_job(&store, 2), [], "it is moved to its queue");
    let again = lease_job(&store, 3);
    assert_eq!((again.len(), &again[0].jid), (1, &jobs[0].jid));
    assert!(end(&store, &again[0], BareJobEnding::Completed, vec![TaskAct::Create(new_task("Pipe"))]));
    let found = sidekiq(&server, "look");
    assert_eq!(
        (&found["processed"], &found["retries"], &found["queues"]),
        (&json!(2), &json!([]), &json!({"testq": 2}))
    );
}

/// The entry of a worker that was lost is the next one again. An end whose acts are impossible fails the job.
#[test]
fn lost_job_is_leased_again() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Hard", "{}")]);
    let entry = r#"{"class":"Hard","queue":"testq","args":[],"jid":"b4a577edbccf1d805744efa9","retry":0}"#;
    server.cli(&["LPUSH", "queue:testq", entry, "this is not JSON"]);
    let lost = lease_job(&store, 1);
    assert_eq!((lost.len(), server.cli(&["LLEN", "queue:testq"]).as_str()), (1, "0"));
    store.pass(LEASE);
    let again = lease_job(&store, 2);
    assert_eq!(again.len(), 0, "it is back in its queue with the next lease");
    let again = lease_job(&store, 3);
    assert_eq!(again.iter().map(|job| job.step).collect::<Vec<_>>(), [step_id(3)]);
    assert!(!end(&store, &lost[0], BareJobEnding::Completed, Vec::new()));
    assert!(end(&store, &again[0], BareJobEnding::GivenBack, Vec::new()));
    let again = lease_job(&store, 4);
    let missing = TaskAct::Run { task: TaskTarget::New(7), forced: false, at: None };
    assert!(!end(&store, &again[0], BareJobEnding::Completed, vec![missing]));
    assert_eq!(lease_job(&store, 5), []);
    let dead = server.cli(&["ZRANGE", "dead", "0", "-1"]);
    assert!(dead.contains("b4a577edbccf1d805744efa9") && dead.contains("this is not JSON"), "{dead}");
}
