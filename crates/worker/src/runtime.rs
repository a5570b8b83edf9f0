//! The runtime of a worker process: it registers workers, leases steps for a pool of threads, sends heartbeats, and
//! stops on request.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread::{self, Scope};

use cronhold_core::task::{ClassConfig, ClassName, QueueName, StepEnding, StepId, TaskId, TaskUnit};
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::{
    ArrivalMark, BareJob, LeaseClass, LeaseRequest, LeasedStep, ProcessHeartbeat, ProcessId, ProcessSignal, TaskStore,
    WindowLimits, WorkerProcess,
};

use crate::bare::{BareJobReport, perform_bare_job};
use crate::block_on::block_on;
use crate::error::WorkerError;
use crate::perform::{StepOutcome, StepReport, perform_step};
use crate::wake_signal::WakeSignal;
use crate::worker::Worker;

/// How long a step is held without a heartbeat.
const LEASE: Span = Span::from_secs(60);
/// The time between two heartbeats.
const BEAT: Span = Span::from_secs(5);
/// The pause after the store could not be reached.
const FAULT_PAUSE: Span = Span::from_secs(1);

/// A worker process: its queue, its classes, and how many steps it makes at once.
pub struct WorkerRuntime {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) queue: QueueName,
    process: ProcessId,
    classes: BTreeMap<ClassName, RegisteredWorker>,
    concurrency: u32,
    lease: Span,
    stop: StopHandle,
    observer: Option<RuntimeObserver>,
}

/// Is called with what happens.
type RuntimeObserver = Box<dyn Fn(&RuntimeEvent) + Send + Sync>;

/// What a runtime reports while it runs.
#[derive(Debug)]
pub enum RuntimeEvent {
    /// A step has ended, whether it succeeded or not.
    StepEnded(StepReport),
    /// A step has ended and could not be committed. It is repeated when its lease has expired.
    StepNotCommitted { task: TaskId, error: WorkerError },
    /// A job of a Sidekiq client has ended, whether it succeeded or not.
    JobEnded(BareJobReport),
    /// A job of a Sidekiq client has ended, and its end could not be committed. It is repeated when its lease has expired.
    JobNotCommitted { jid: String, error: WorkerError },
    /// The store had forgotten the process, which could not register again. It tries again with its next heartbeat.
    RegistrationFailed(WorkerError),
    /// The store has given these steps to other workers, because heartbeats came too late. What they do is not committed.
    StepsLost(Vec<StepId>),
    /// The runtime begins no further steps, because it was told so.
    Quieted,
    /// No steps could be leased. The runtime tries again after a second.
    LeaseFailed(WorkerError),
}

struct RegisteredWorker {
    config: ClassConfig,
    worker: Box<dyn Worker>,
}

/// Stops a runtime from another thread.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    is_quiet: AtomicBool,
    is_stopping: AtomicBool,
    /// For the thread that leases steps.
    leases: Arc<WakeSignal>,
    /// For the thread that sends heartbeats.
    beats: Arc<WakeSignal>,
}

/// The steps that run. A bare job has no task.
type HeldSteps = Mutex<BTreeMap<StepId, Option<TaskId>>>;

impl StopHandle {
    /// Begins no further steps. Those that run go on.
    pub fn quiet(&self) {
        self.0.is_quiet.store(true, Ordering::SeqCst);
        self.0.leases.notify();
    }

    /// Begins no further steps, and ends the runtime when those that run have ended.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        self.0.leases.notify();
        self.0.beats.notify();
    }

    fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::SeqCst)
    }

    fn is_quiet(&self) -> bool {
        self.0.is_quiet.load(Ordering::SeqCst) || self.is_stopping()
    }
}

impl WorkerRuntime {
    /// A runtime for a queue, without classes. Its process id is random.
    pub fn new(store: Arc<dyn TaskStore>, queue: &str) -> Result<Self, WorkerError> {
        let queue = QueueName::parse(queue).map_err(WorkerError::invalid("queue"))?;
        let process = ProcessId::new(&format!("worker:{}:{}", std::process::id(), random_step()?));
        let (classes, stop) = (BTreeMap::new(), StopHandle::default());
        Ok(Self { store, queue, process, classes, concurrency: 1, lease: LEASE, stop, observer: None })
    }

    /// Adds a class with its configuration, a JSON object that may have `inports` and `outports`.
    pub fn with_class(mut self, class: &str, config: &str, worker: impl Worker) -> Result<Self, WorkerError> {
        let name = ClassName::parse(class).map_err(WorkerError::invalid("class"))?;
        let config = ClassConfig::parse(config).map_err(WorkerError::invalid(format!("class {class}")))?;
        self.classes.insert(name, RegisteredWorker { config, worker: Box::new(worker) });
        Ok(self)
    }

    /// How many steps the runtime makes at once; 1 unless this is called.
    #[must_use]
    pub fn with_concurrency(self, steps: u32) -> Self {
        Self { concurrency: steps.max(1), ..self }
    }

    /// How long a step is held after the last heartbeat; 60 seconds unless this is called.
    #[must_use]
    pub fn with_lease(self, lease: Span) -> Self {
        Self { lease, ..self }
    }

    /// Calls `observer` with what happens while the runtime runs, on the threads of the runtime.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(&RuntimeEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// The queue whose tasks the runtime performs.
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The store whose tasks the runtime performs.
    pub const fn store(&self) -> &Arc<dyn TaskStore> {
        &self.store
    }

    /// The id of the worker process.
    pub const fn process(&self) -> &ProcessId {
        &self.process
    }

    /// Stops the runtime from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Registers the process and its classes, so that tasks of these classes can be created.
    pub fn register(&self) -> Result<(), WorkerError> {
        let now = block_on(self.store.time())?;
        let process = WorkerProcess {
            id: self.process.clone(),
            queue: self.queue.clone(),
            classes: self.classes.keys().cloned().collect(),
            concurrency: self.concurrency,
            started_at: now,
            beat_at: now,
            busy: 0,
            is_quiet: false,
            signals: Vec::new(),
        };
        let configs = self.classes.iter().map(|(class, worker)| (class.clone(), worker.config.clone())).collect();
        Ok(block_on(self.store.register(process, configs))?)
    }

    /// Makes the next step on this thread; `None` if no task is ready.
    pub fn perform_next(&self) -> Result<Option<StepReport>, WorkerError> {
        match self.lease(1)?.pop() {
            Some(leased) => self.perform(leased).map(Some),
            None => Ok(None),
        }
    }

    /// Makes steps on this thread until no task is ready, and returns how many. Fails if there are more than `most`, and
    /// with the first step that fails.
    pub fn drain(&self, most: usize) -> Result<usize, WorkerError> {
        self.drain_with(most, |report| match &report.outcome {
            StepOutcome::Committed(StepEnding::Failed(error)) => {
                Err(WorkerError::StepFailed { task: report.task, message: error.message.clone() })
            }
            _ => Ok(()),
        })
    }

    /// Makes steps as [`WorkerRuntime::drain`] does, and goes on if a step fails.
    pub fn drain_all(&self, most: usize) -> Result<usize, WorkerError> {
        self.drain_with(most, |_| Ok(()))
    }

    fn drain_with(
        &self,
        most: usize,
        check: impl Fn(&StepReport) -> Result<(), WorkerError>,
    ) -> Result<usize, WorkerError> {
        let mut steps = 0;
        while let Some(report) = self.perform_next()? {
            steps += 1;
            check(&report)?;
            if steps > most {
                return Err(WorkerError::TooManySteps(most));
            }
        }
        Ok(steps)
    }

    /// Registers the process and makes steps until it is stopped, by a [`StopHandle`] or by a signal through the store.
    /// Returns when all steps have ended.
    pub fn run(&self) -> Result<(), WorkerError> {
        self.register()?;
        let held = HeldSteps::default();
        thread::scope(|scope| {
            let beats = scope.spawn(|| self.send_heartbeats(&held));
            self.lease_until_stopped(scope, &held);
            self.stop.0.beats.notify();
            // Its panic was reported when it happened.
            let _ = beats.join();
        });
        Ok(block_on(self.store.deregister(&self.process))?)
    }

    /// Leases as many steps as threads are free, and waits for arrivals, due times and ended steps in between.
    fn lease_until_stopped<'s>(&'s self, scope: &'s Scope<'s, '_>, held: &'s HeldSteps) {
        let mut is_quiet = false;
        loop {
            if !is_quiet && self.stop.is_quiet() {
                is_quiet = true;
                self.observe(&RuntimeEvent::Quieted);
            }
            let busy = lock_mutex(held).len();
            if self.stop.is_stopping() && busy == 0 {
                return;
            }
            let free = (self.concurrency as usize).saturating_sub(busy);
            // Read before the lease, so that nothing that arrives after it is missed.
            let mark = block_on(self.store.arrivals(&self.queue, None));
            if free == 0 || self.stop.is_quiet() {
                self.stop.0.leases.wait(None);
                continue;
            }
            match self.lease_with_jobs(free) {
                Ok((steps, jobs)) if steps.is_empty() && jobs.is_empty() => self.wait(mark),
                Ok((steps, jobs)) => {
                    steps.into_iter().for_each(|step| self.start(scope, held, step));
                    jobs.into_iter().for_each(|job| self.start_job(scope, held, job));
                }
                Err(error) => {
                    self.observe(&RuntimeEvent::LeaseFailed(error));
                    self.stop.0.leases.wait(Some(FAULT_PAUSE));
                }
            }
        }
    }

    /// Leases steps, and jobs of Sidekiq clients for the threads that remain free.
    fn lease_with_jobs(&self, free: usize) -> Result<(Vec<LeasedStep>, Vec<BareJob>), WorkerError> {
        let steps = self.lease(free)?;
        let classes = self.classes.iter().filter(|(_, worker)| worker.worker.performs_jobs());
        let classes: Vec<ClassName> = classes.map(|(name, _)| name.clone()).collect();
        let rest = free.saturating_sub(steps.len());
        if classes.is_empty() || rest == 0 {
            return Ok((steps, Vec::new()));
        }
        let mut request = self.lease_request(rest)?;
        request.classes.retain(|class| classes.contains(&class.name));
        // Steps that are leased are made, whether there are jobs or not.
        let jobs = block_on(self.store.lease_bare_jobs(request));
        let jobs = if steps.is_empty() { jobs? } else { jobs.unwrap_or_default() };
        Ok((steps, jobs))
    }

    /// Performs a bare job on a thread of its own. Without a thread, its lease expires, and it is repeated.
    fn start_job<'s>(&'s self, scope: &'s Scope<'s, '_>, held: &'s HeldSteps, job: BareJob) {
        let hold = StepHold::new(self, held, job.step, None);
        let jid = job.jid.clone();
        let make = move || {
            let worker = self.classes.get(&job.class).expect("only own classes are leased");
            let event = match perform_bare_job(&*self.store, &*worker.worker, &job) {
                Ok(report) => RuntimeEvent::JobEnded(report),
                Err(error) => RuntimeEvent::JobNotCommitted { jid: job.jid, error },
            };
            drop(hold);
            self.observe(&event);
        };
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, make) {
            let error = WorkerError::System(format!("no thread for a job: {error}"));
            self.observe(&RuntimeEvent::JobNotCommitted { jid, error });
            self.stop.0.leases.wait(Some(FAULT_PAUSE));
        }
    }

    /// Makes a step on a thread of its own. Without a thread, the step is given back.
    fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, held: &'s HeldSteps, leased: LeasedStep) {
        let (step, task) = (leased.step, leased.window.task.id);
        let hold = StepHold::new(self, held, step, Some(task));
        let make = move || {
            let event = match self.perform(leased) {
                Ok(report) => RuntimeEvent::StepEnded(report),
                Err(error) => RuntimeEvent::StepNotCommitted { task, error },
            };
            drop(hold);
            self.observe(&event);
        };
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, make) {
            let unit = TaskUnit::step(task, step, StepEnding::GivenBack, Vec::new());
            // If this fails too, the step is repeated when its lease has expired.
            block_on(self.store.commit(vec![unit]));
            let error = WorkerError::System(format!("no thread for a step: {error}"));
            self.observe(&RuntimeEvent::StepNotCommitted { task, error });
            // The end of the hold has notified this very thread.
            self.stop.0.leases.wait(Some(Span::ZERO));
            self.stop.0.leases.wait(Some(FAULT_PAUSE));
        }
    }

    /// Waits until there may be something to lease, or the runtime stops.
    fn wait(&self, mark: ArrivalMark) {
        let most = block_on(self.store.next_due()).ok().flatten().map(|due| {
            let now = block_on(self.store.time()).unwrap_or(due);
            if due > now { due.since(now) } else { Span::ZERO }
        });
        if most == Some(Span::ZERO) {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.stop.0.leases));
        let mut arrivals = pin!(self.store.arrivals(&self.queue, Some(mark)));
        if arrivals.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.stop.0.leases.wait(most);
        }
    }

    /// Sends heartbeats until the runtime has stopped, and obeys the signals in their replies.
    fn send_heartbeats(&self, held: &HeldSteps) {
        loop {
            self.stop.0.beats.wait(Some(BEAT.min(Span::from_micros(self.lease.micros() / 3))));
            let all = lock_mutex(held).clone();
            let steps = all.iter().filter_map(|(step, task)| Some(((*task)?, *step))).collect();
            let jobs: Vec<StepId> = all.iter().filter(|(_, task)| task.is_none()).map(|(step, _)| *step).collect();
            if self.stop.is_stopping() && all.is_empty() {
                return;
            }
            let (process, is_quiet) = (self.process.clone(), self.stop.is_quiet());
            let beat = ProcessHeartbeat { process, held: steps, is_quiet, lease: self.lease };
            let Ok(reply) = block_on(self.store.heartbeat(beat)) else { continue };
            let mut lost = reply.lost;
            if !jobs.is_empty() {
                // If this fails, the end of a job that is lost is refused. A job that has ended meanwhile is not lost.
                let gone = block_on(self.store.hold_bare_jobs(&self.process, jobs, self.lease)).unwrap_or_default();
                let running = lock_mutex(held);
                lost.extend(gone.into_iter().filter(|step| running.contains_key(step)));
            }
            if !lost.is_empty() {
                self.observe(&RuntimeEvent::StepsLost(lost));
            }
            if reply.is_unknown
                && let Err(error) = self.register()
            {
                self.observe(&RuntimeEvent::RegistrationFailed(error));
            }
            match reply.signal {
                Some(ProcessSignal::Quiet) => self.stop.quiet(),
                Some(ProcessSignal::Stop) => self.stop.stop(),
                None => {}
            }
        }
    }

    fn observe(&self, event: &RuntimeEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    fn lease(&self, count: usize) -> Result<Vec<LeasedStep>, WorkerError> {
        Ok(block_on(self.store.lease(self.lease_request(count)?))?)
    }

    fn lease_request(&self, count: usize) -> Result<LeaseRequest, WorkerError> {
        let class = |(name, worker): (&ClassName, &RegisteredWorker)| LeaseClass {
            name: name.clone(),
            has_startup: worker.worker.has_startup(),
        };
        Ok(LeaseRequest {
            queue: self.queue.clone(),
            classes: self.classes.iter().map(class).collect(),
            steps: (0..count).map(|_| random_step()).collect::<Result<_, _>>()?,
            lease: self.lease,
            limits: WindowLimits::STEP,
        })
    }

    fn perform(&self, leased: LeasedStep) -> Result<StepReport, WorkerError> {
        let worker = self.classes.get(&leased.window.task.class).expect("only own classes are leased");
        perform_step(&*self.store, &*worker.worker, leased)
    }
}

/// Holds a step until it is dropped, also by a panic.
struct StepHold<'s> {
    held: &'s HeldSteps,
    step: StepId,
    stop: &'s StopHandle,
}

impl<'s> StepHold<'s> {
    fn new(runtime: &'s WorkerRuntime, held: &'s HeldSteps, step: StepId, task: Option<TaskId>) -> Self {
        lock_mutex(held).insert(step, task);
        Self { held, step, stop: &runtime.stop }
    }
}

impl Drop for StepHold<'_> {
    fn drop(&mut self) {
        lock_mutex(self.held).remove(&self.step);
        self.stop.0.leases.notify();
    }
}

/// A new random id.
fn random_step() -> Result<StepId, WorkerError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| WorkerError::System(error.to_string()))?;
    Ok(StepId::from_random(bits))
}

impl std::fmt::Debug for WorkerRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let classes: Vec<&ClassName> = self.classes.keys().collect();
        f.debug_struct("WorkerRuntime").field("queue", &self.queue).field("classes", &classes).finish_non_exhaustive()
    }
}
