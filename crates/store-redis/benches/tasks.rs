//! Steps of tasks a second on Redis, on this machine: no-op steps, and steps that take one item and
//! write one. A step is a lease and a commit. Leases and commits have 256 steps each.
//!
//! Prints one table. Argument: number of steps of each kind (10,240).

use std::sync::Arc;
use std::time::Instant as Moment;

use cronhold_core::task::{
    ClassConfig, ClassName, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, QueueName, StepEnding,
    StepId, TaskAct, TaskId, TaskUnit,
};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{LeaseClass, LeaseRequest, LeasedStep, ProcessId, TaskStore, WindowLimits, WorkerProcess};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

const STEPS: usize = 10_240;
const BATCH: usize = 256;

fn main() {
    let steps = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(STEPS);
    let server = RedisServer::start();
    let url = RedisUrl::parse(&server.url()).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    let redis = RedisStore::open(&url, options).expect("a store");
    measure("Redis", &redis.tasks(), steps);
}

/// Measures both kinds of steps.
fn measure(name: &str, store: &dyn TaskStore, steps: usize) {
    register(store);
    for (kind, class) in [("no-op steps", "Pass"), ("steps with a read and a write", "Pipe")] {
        create(store, class, steps);
        let begun = now();
        let mut done = 0;
        while done < steps {
            let leased = lease(store, class, done);
            assert!(!leased.is_empty(), "there are tasks left");
            done += leased.len();
            let units = leased.iter().map(end).collect();
            assert!(block_on(store.commit(units)).iter().all(Result::is_ok), "each holds its task");
        }
        println!("{name:<8} {kind:<32} {:>9.0} a second", steps as f64 / begun.elapsed().as_secs_f64());
    }
}

fn class(name: &str) -> ClassName {
    ClassName::parse(name).expect(name)
}

fn queue() -> QueueName {
    QueueName::parse("bench").expect("a name")
}

fn register(store: &dyn TaskStore) {
    let ports = r#"{"inports":{"in":{}},"outports":{"out":{}}}"#;
    let configs = [("Pass", "{}"), ("Pipe", ports)];
    let configs: Vec<_> =
        configs.iter().map(|(name, text)| (class(name), ClassConfig::parse(text).expect(text))).collect();
    let process = WorkerProcess {
        id: ProcessId::new("bench:1:1"),
        queue: queue(),
        classes: configs.iter().map(|(name, _)| name.clone()).collect(),
        concurrency: 1,
        started_at: Instant::EPOCH,
        beat_at: Instant::EPOCH,
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    block_on(store.register(process, configs)).expect("a worker can register");
}

fn port(task: TaskId, direction: PortDirection, name: &str) -> PortTarget {
    PortTarget::new(task, direction, PortName::parse(name).expect(name))
}

fn create(store: &dyn TaskStore, name: &str, count: usize) {
    for _ in 0..count / BATCH {
        let acts = vec![TaskAct::Create(NewTask::new(queue(), class(name))); BATCH];
        let receipt = block_on(store.commit(vec![TaskUnit::request(acts)])).remove(0).expect("tasks can be created");
        let cronhold_store::tasks::TaskReceipt::Committed(outcomes) = receipt else { panic!("it has no key") };
        if name == "Pass" {
            continue;
        }
        let write = outcomes.iter().filter_map(|outcome| match outcome {
            cronhold_core::task::ActOutcome::Created(id) => Some(TaskAct::Write {
                port: port(*id, PortDirection::In, "in"),
                items: vec![PortItem::new(JsonText::of_number(7))],
                as_default: false,
                notify: false,
            }),
            _ => None,
        });
        block_on(store.commit(vec![TaskUnit::request(write.collect())])).remove(0).expect("items can be written");
    }
}

fn lease(store: &dyn TaskStore, name: &str, from: usize) -> Vec<LeasedStep> {
    let number = |step: usize| StepId::from_random((step as u128 + name.len() as u128 * 1_000_000_000).to_be_bytes());
    let shift = if name == "Pass" { 0 } else { 1 << 40 };
    let request = LeaseRequest {
        queue: queue(),
        classes: vec![LeaseClass { name: class(name), has_startup: false }],
        steps: (from + shift..from + shift + BATCH).map(number).collect(),
        lease: Span::from_secs(60),
        limits: WindowLimits::STEP,
    };
    block_on(store.lease(request)).expect("steps can be leased")
}

fn end(leased: &LeasedStep) -> TaskUnit {
    let task = leased.window.task.id;
    let mut acts = Vec::new();
    if let Some(window) = leased.window.inports.first() {
        let item = PortItem::new(window.items[0].data.clone());
        acts.push(TaskAct::Take { port: port(task, PortDirection::In, "in"), position: window.position, count: 1 });
        let port = port(task, PortDirection::Out, "out");
        acts.push(TaskAct::Write { port, items: vec![item], as_default: false, notify: true });
    }
    TaskUnit::step(task, leased.step, StepEnding::Completed, acts)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Moment {
    Moment::now()
}
