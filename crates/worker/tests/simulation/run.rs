//! Plays one seed: a time with faults, then a time without them, in which everything is done that is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use cronhold_core::task::{ClassConfig, ClassName, NewTask, TaskAct, TaskStatus, TaskTarget, TaskUnit};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{LeaseRequest, MemoryTaskStore, ProcessId, TaskStore, WindowLimits, WorkerProcess};
use cronhold_worker::perform_step_with;

use crate::actors::{LEASE, live_as_client, live_as_worker, queue};
use crate::faulty::{FaultyTasks, StoreMistake};
use crate::promises::{TaskPromises, all_windows, lease_classes};
use crate::stage::ActorStage;
use crate::stories::{CLASSES, TroubleFlag, worker_of};

const WORKERS: usize = 3;
const CLIENTS: usize = 2;
/// Numbers that each client writes.
const NUMBERS: u64 = 25;
/// Points at which actors are interrupted in the time with faults.
const LENGTH: usize = 900;
/// Rounds of the time without faults, after which nothing may be left.
const ROUNDS: usize = 12;
/// Steps of one of these rounds.
const ROUND_STEPS: usize = 300;

/// What has happened in one seed or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SeedReport {
    pub(crate) steps: u64,
    pub(crate) lost: u64,
    pub(crate) crashes: u64,
    pub(crate) faults: u64,
    pub(crate) items: u64,
}

impl SeedReport {
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.lost += other.lost;
        self.crashes += other.crashes;
        self.faults += other.faults;
        self.items += other.items;
    }
}

/// Plays a seed. Returns what has happened, or the promise that was broken.
pub(crate) fn play(seed: u64, mistake: Option<StoreMistake>) -> Result<SeedReport, String> {
    let stage = Arc::new(ActorStage::new(seed, WORKERS + CLIENTS, LENGTH));
    let promises = Arc::new(TaskPromises::default());
    let clock = Arc::clone(&stage);
    let store: Arc<dyn TaskStore> = Arc::new(MemoryTaskStore::new(Arc::new(move || clock.now())));
    let trouble: TroubleFlag = Arc::new(AtomicBool::new(true));
    prepare(&*store);
    let handle = |actor: usize, is_mortal| {
        let (store, stage, promises) = (Arc::clone(&store), Arc::clone(&stage), Arc::clone(&promises));
        FaultyTasks::new(store, stage, promises, actor, mistake, is_mortal)
    };
    thread::scope(|scope| {
        for actor in 0..WORKERS + CLIENTS {
            let (stage, trouble, handle) = (&stage, &trouble, &handle);
            scope.spawn(move || {
                let part = stage.enter(actor);
                match actor.checked_sub(WORKERS) {
                    None => {
                        while !stage.is_over() {
                            live_as_worker(&handle(actor, true), trouble);
                        }
                    }
                    Some(client) => {
                        let first = client as u64 * NUMBERS;
                        live_as_client(&handle(actor, false), first..first + NUMBERS);
                    }
                }
                drop(part);
            });
        }
        stage.wait_for_end();
    });
    trouble.store(false, Ordering::SeqCst);
    if stage.finding().is_none() {
        finish(&*store, &stage, &trouble);
        promises.check_end(&*store, &stage);
    }
    let count = |number: &AtomicU64| number.load(Ordering::SeqCst);
    let items = promises.written().len() as u64;
    match stage.finding() {
        Some(finding) => Err(finding),
        None => Ok(SeedReport {
            steps: count(&promises.steps),
            lost: count(&promises.lost),
            crashes: count(&promises.crashes),
            faults: count(&promises.faults),
            items,
        }),
    }
}

/// Registers the classes, and creates a pump, a boss and a sink.
fn prepare(store: &dyn TaskStore) {
    let name = |class: &str| ClassName::parse(class).expect("a name");
    let process = WorkerProcess {
        id: ProcessId::new("worker"),
        queue: queue(),
        classes: CLASSES.iter().map(|(class, _)| name(class)).collect(),
        concurrency: 3,
        started_at: block_on(store.time()).expect("a time"),
        beat_at: block_on(store.time()).expect("a time"),
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    let config = |(class, config): &(&str, &str)| (name(class), ClassConfig::parse(config).expect("a configuration"));
    block_on(store.register(process, CLASSES.iter().map(config).collect())).expect("it can register");
    let create = |class| TaskAct::Create(NewTask::new(queue(), name(class)));
    let unit = TaskUnit::request(vec![create("Pump"), create("Boss"), create("Sink")]);
    block_on(store.commit(vec![unit])).remove(0).expect("tasks can be created");
}

/// Lets one worker without faults do what is left. What has failed or was terminated is run again.
fn finish(store: &dyn TaskStore, stage: &ActorStage, trouble: &TroubleFlag) {
    for _ in 0..ROUNDS {
        stage.pass(LEASE);
        for window in all_windows(store) {
            if matches!(window.task.status, TaskStatus::Failed | TaskStatus::Terminated) {
                let run = TaskAct::Run { task: TaskTarget::Id(window.task.id), forced: true, at: None };
                block_on(store.commit(vec![TaskUnit::request(vec![run])])).remove(0).expect("it can run");
            }
        }
        for _ in 0..ROUND_STEPS {
            let steps = vec![cronhold_core::task::StepId::from_random(stage.random_bits())];
            let (classes, limits) = (lease_classes(), WindowLimits::STEP);
            let request = LeaseRequest { queue: queue(), classes, steps, lease: LEASE, limits };
            let Some(leased) = block_on(store.lease(request)).expect("the store has no faults").pop() else { break };
            let worker = worker_of(leased.window.task.class.as_str(), trouble);
            perform_step_with(store, &*worker, leased, &|_| {}).expect("the store has no faults");
        }
    }
}
