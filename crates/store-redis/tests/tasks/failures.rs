//! Tasks while servers fail, and in a Cluster.

use std::sync::Arc;

use cronhold_core::task::{ActOutcome, ClassConfig, ClassName, StepEnding, TaskAct, TaskId, TaskRefusal, TaskUnit};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{
    LeaseClass, LeaseRequest, ProcessId, TaskReceipt, TaskStore, TaskUnitError, WindowLimits, WorkerProcess,
};
use cronhold_store_redis::testing::{ClusterSet, RedisServer, ServerOptions, until};
use cronhold_store_redis::{Options, RedisStore, RedisTaskStore, RedisUrl};

use crate::fixture::{new_task, queue_name, step_id};

fn open(url: &str) -> RedisTaskStore {
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    RedisStore::open(&RedisUrl::parse(url).expect("a URL"), options).expect("it can be opened").tasks()
}

fn class() -> ClassName {
    ClassName::parse("Pass").expect("a name")
}

/// Registers the class, as soon as the server replies.
fn register(store: &RedisTaskStore) {
    let process = WorkerProcess {
        id: ProcessId::new("vm:1:1"),
        queue: queue_name(),
        classes: vec![class()],
        concurrency: 1,
        started_at: Instant::EPOCH,
        beat_at: Instant::EPOCH,
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    until("the class is registered", || {
        let classes = vec![(class(), ClassConfig::empty())];
        block_on(store.register(process.clone(), classes)).ok()
    });
}

/// Creates a task once, and sends the request again until the server confirms it.
fn create_once(store: &RedisTaskStore, key: &str) -> TaskId {
    let unit = || TaskUnit::request(vec![TaskAct::Create(new_task("Pass"))]).once(key);
    until("the server confirms the request", || match block_on(store.commit(vec![unit()])).remove(0) {
        Ok(TaskReceipt::Committed(outcomes)) => match outcomes[0] {
            ActOutcome::Created(id) => Some(id),
            _ => panic!("{outcomes:?}: a task is created"),
        },
        Ok(TaskReceipt::Repeated(created)) => created.first().copied(),
        Err(TaskUnitError::Fault(fault)) => {
            assert!(fault.is_transient(), "{fault}");
            None
        }
        Err(TaskUnitError::Refused(refusal)) => panic!("{refusal}"),
    })
}

fn request(step: u8) -> LeaseRequest {
    LeaseRequest {
        queue: queue_name(),
        classes: vec![LeaseClass { name: class(), has_startup: false }],
        steps: vec![step_id(step)],
        lease: Span::from_secs(60),
        limits: WindowLimits::STEP,
    }
}

fn complete(store: &RedisTaskStore, task: TaskId, step: u8) -> Result<TaskReceipt, TaskUnitError> {
    block_on(store.commit(vec![TaskUnit::step(task, step_id(step), StepEnding::Completed, Vec::new())])).remove(0)
}

#[test]
fn requests_and_steps_survive_a_server_that_fails() {
    let mut server = RedisServer::start_with(ServerOptions { aof: true, ..Default::default() });
    let store = open(&server.url_with("timeout=1s"));
    register(&store);
    let first = create_once(&store, "a");
    let leased = block_on(store.lease(request(1))).expect("it can be leased");
    assert_eq!(leased[0].window.task.id, first);
    // The outcome of a request to a frozen server is unknown. It takes effect once.
    server.freeze();
    let unit = TaskUnit::request(vec![TaskAct::Create(new_task("Pass"))]).once("b");
    assert!(matches!(block_on(store.commit(vec![unit]))[0], Err(TaskUnitError::Fault(_))));
    server.thaw();
    let second = create_once(&store, "b");
    server.restart();
    assert_eq!((create_once(&store, "a"), create_once(&store, "b")), (first, second));
    assert_eq!(server.cli(&["SCARD", "jobs"]), "2");
    until("the step is committed", || complete(&store, first, 1).ok());
    // A server that has lost everything does not use an id again that a process has seen.
    server.restart_empty();
    register(&store);
    let third = create_once(&store, "c");
    assert!(third > second, "{third}");
    let lost = complete(&store, first, 1);
    assert_eq!(lost, Err(TaskUnitError::Refused(TaskRefusal::StepLost(first))));
}

#[test]
fn tasks_of_a_cluster_are_in_one_slot() {
    let set = ClusterSet::start(false);
    let store = open(&set.url_with("timeout=10s"));
    register(&store);
    let task = create_once(&store, "a");
    assert_eq!(block_on(store.lease(request(1))).expect("it can be leased").len(), 1);
    assert!(complete(&store, task, 1).is_ok());
    let master = &set.servers[set.master_of("{sidejob}")];
    assert_eq!(master.cli(&["GET", "{sidejob}:job:1:status"]), "completed");
}
