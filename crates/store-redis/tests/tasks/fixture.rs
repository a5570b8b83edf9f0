//! Stores on a test's server, with a registered worker, and short forms of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cronhold_core::task::{ActOutcome, ClassConfig, ClassName, NewTask, QueueName, StepId, TaskAct, TaskId, TaskUnit};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{
    LeaseClass, LeaseRequest, LeasedStep, ProcessHeartbeat, ProcessId, TaskReceipt, TaskStore, WindowLimits,
    WorkerProcess,
};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisTaskStore, RedisUrl};

/// How long steps are held.
pub(crate) const LEASE: Span = Span::from_secs(60);

/// The process that is registered.
pub(crate) const PROCESS: &str = "vm:77:abcdef";

/// Opens a store with these parameters in its URL. Busy machines get time to reply.
pub(crate) fn open(server: &RedisServer, params: &str) -> RedisStore {
    let params = format!("timeout=30s&{params}");
    let url = RedisUrl::parse(&server.url_with(params.trim_end_matches('&'))).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    RedisStore::open(&url, options).expect("it can be opened")
}

/// A store whose clock shows `2027-01-15T08:00:00.25Z` until a test advances it.
pub(crate) struct ClockedStore {
    pub(crate) store: RedisTaskStore,
    micros: Arc<AtomicI64>,
}

pub(crate) fn queue_name() -> QueueName {
    QueueName::parse("testq").expect("a name")
}

pub(crate) fn step_id(number: u8) -> StepId {
    StepId::from_random([number; 16])
}

pub(crate) fn new_task(class: &str) -> NewTask {
    NewTask::new(queue_name(), ClassName::parse(class).expect(class))
}

impl ClockedStore {
    pub(crate) fn open(server: &RedisServer, params: &str) -> Self {
        let micros = Arc::new(AtomicI64::new(1_800_000_000_250_000));
        let of_clock = Arc::clone(&micros);
        let clock = Arc::new(move || Instant::from_micros(of_clock.load(Ordering::SeqCst)));
        Self { store: open(server, params).tasks_with_clock(clock), micros }
    }

    pub(crate) fn pass(&self, span: Span) {
        self.micros.fetch_add(i64::try_from(span.micros()).expect("a short span"), Ordering::SeqCst);
    }

    pub(crate) fn register(&self, classes: &[(&str, &str)]) {
        let now = block_on(self.store.time()).expect("the time");
        let classes: Vec<(ClassName, ClassConfig)> = classes
            .iter()
            .map(|(class, config)| (ClassName::parse(class).expect(class), ClassConfig::parse(config).expect(config)))
            .collect();
        let process = WorkerProcess {
            id: ProcessId::new(PROCESS),
            queue: queue_name(),
            classes: classes.iter().map(|(class, _)| class.clone()).collect(),
            concurrency: 2,
            started_at: now,
            beat_at: now,
            busy: 0,
            is_quiet: false,
            signals: Vec::new(),
        };
        block_on(self.store.register(process, classes)).expect("a worker can register");
    }

    pub(crate) fn commit(&self, acts: Vec<TaskAct>) -> Vec<ActOutcome> {
        match block_on(self.store.commit(vec![TaskUnit::request(acts)])).remove(0) {
            Ok(TaskReceipt::Committed(outcomes)) => outcomes,
            other => panic!("the unit is committed, and not {other:?}"),
        }
    }

    pub(crate) fn create(&self, new: NewTask) -> TaskId {
        match self.commit(vec![TaskAct::Create(new)]).remove(0) {
            ActOutcome::Created(id) => id,
            other => panic!("a task is created, and not {other:?}"),
        }
    }

    /// A request for steps of some classes.
    pub(crate) fn request(&self, classes: &[&str], steps: &[u8]) -> LeaseRequest {
        let class = |name: &&str| LeaseClass { name: ClassName::parse(name).expect(name), has_startup: false };
        LeaseRequest {
            queue: queue_name(),
            classes: classes.iter().map(class).collect(),
            steps: steps.iter().map(|number| step_id(*number)).collect(),
            lease: LEASE,
            limits: WindowLimits::STEP,
        }
    }

    /// Sends a heartbeat without steps.
    pub(crate) fn beat(&self) {
        let process = ProcessId::new(PROCESS);
        let beat = ProcessHeartbeat { process, held: Vec::new(), is_quiet: false, lease: LEASE };
        block_on(self.store.heartbeat(beat)).expect("a process can beat");
    }

    pub(crate) fn lease(&self, classes: &[&str], steps: &[u8]) -> Vec<LeasedStep> {
        block_on(self.store.lease(self.request(classes, steps))).expect("steps can be leased")
    }
}
