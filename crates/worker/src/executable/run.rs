//! Starts an executable, registers its classes, and makes their steps by it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::task::{ClassName, JsonText};
use cronhold_schedule::Span;
use cronhold_store::tasks::TaskStore;

use super::class::ClassSettings;
use super::job::{perform_job, perform_job_by_process};
use super::open_steps::CancelReason;
use super::pool::ExecutablePool;
use super::protocol::make_step;
use super::simple::{make_step_by_filter, make_step_by_process};
use super::{ExecutableMode, ExecutableOptions};
use crate::bare::BareJobStep;
use crate::error::WorkerError;
use crate::runtime::{RuntimeEvent, StopHandle, WorkerRuntime};
use crate::step::TaskStep;
use crate::worker::{StepResult, StepStop, Worker};

/// Processes of one executable.
const PROCESSES_MAX: u32 = 256;
/// The ports of a class whose configuration is not given, for executables that are started for each step.
const ANY_PORTS: &str = r#"{"inports":{"*":{}},"outports":{"*":{}}}"#;

/// An executable that was started, with the classes that it performs.
#[derive(Debug)]
pub struct PreparedExecutable {
    pool: Arc<ExecutablePool>,
    classes: BTreeMap<ClassName, JsonText>,
}

/// The worker of one class, whose steps an executable makes.
#[derive(Debug)]
pub struct ExecutableWorker {
    pool: Arc<ExecutablePool>,
    class: ClassSettings,
}

/// Stops a worker process.
#[derive(Debug, Clone)]
pub struct ExecutableHandle {
    stop: StopHandle,
    pool: Arc<ExecutablePool>,
    is_stopping: Arc<AtomicBool>,
}

impl PreparedExecutable {
    /// Starts an executable. `configs` has configurations of classes, which replace those that the executable names
    /// itself; `only` has the classes to perform, all of them if it is empty.
    pub fn start(
        options: ExecutableOptions,
        configs: BTreeMap<ClassName, JsonText>,
        only: &[ClassName],
    ) -> Result<Self, WorkerError> {
        let (mode, concurrency) = (options.mode.clone(), options.concurrency.max(1));
        let pool = ExecutablePool::new(Arc::new(options));
        let started = match mode {
            ExecutableMode::EachStep => Ok((BTreeMap::new(), 0)),
            ExecutableMode::Protocol | ExecutableMode::Filter(..) => {
                pool.start_first().map(|ready| (ready.classes, concurrency.div_ceil(ready.concurrency) - 1))
            }
        };
        let prepared = started.and_then(|(mut classes, more)| {
            classes.extend(configs);
            let classes = choose_classes(classes, only, &mode)?;
            for _ in 0..more.min(PROCESSES_MAX) {
                pool.add_process(None)?;
            }
            Ok(classes)
        });
        match prepared {
            Ok(classes) => Ok(Self { pool, classes }),
            Err(error) => {
                pool.stop();
                Err(error)
            }
        }
    }

    /// The classes that the executable performs, with their configurations.
    pub const fn classes(&self) -> &BTreeMap<ClassName, JsonText> {
        &self.classes
    }

    /// A runtime that makes steps by the executable. `observer` receives what happens.
    pub fn runtime(
        &self,
        store: Arc<dyn TaskStore>,
        lease: Span,
        observer: impl Fn(&RuntimeEvent) + Send + Sync + 'static,
    ) -> Result<WorkerRuntime, WorkerError> {
        let options = &self.pool.options;
        let mut runtime = WorkerRuntime::new(store, &options.queue)?.with_lease(lease);
        runtime = runtime.with_concurrency(options.concurrency);
        for (class, config) in &self.classes {
            let settings = ClassSettings::parse(class, config).map_err(WorkerError::Executable)?;
            if settings.has_jobs && matches!(options.mode, ExecutableMode::Filter(..)) {
                let message = format!("class {class}: a filter cannot perform `jobs`, which have no ports");
                return Err(WorkerError::Executable(message));
            }
            let worker = ExecutableWorker { pool: Arc::clone(&self.pool), class: settings };
            runtime = runtime.with_class(class.as_str(), config.as_str(), worker)?;
        }
        let pool = Arc::clone(&self.pool);
        Ok(runtime.with_observer(move |event| {
            match event {
                RuntimeEvent::StepsLost(steps) => {
                    steps.iter().for_each(|step| pool.steps.cancel(Some(*step), CancelReason::LeaseLost));
                }
                RuntimeEvent::Quieted => pool.quiet(),
                _ => {}
            }
            observer(event);
        }))
    }

    /// Stops a runtime of this executable from another thread.
    pub fn handle(&self, runtime: &WorkerRuntime) -> ExecutableHandle {
        let (stop, pool) = (runtime.stop_handle(), Arc::clone(&self.pool));
        ExecutableHandle { stop, pool, is_stopping: Arc::default() }
    }

    /// Cancels a step that no process makes, which executables have to ignore.
    pub fn cancel_unknown_step(&self) {
        self.pool.cancel_unknown_step();
    }

    /// Tells the processes that no more steps come.
    pub fn quiet(&self) {
        self.pool.quiet();
    }

    /// Ends the processes. Call it when the runtime has ended.
    pub fn stop(&self) {
        self.pool.stop();
    }
}

/// The classes to perform. Those without a configuration get the usual one of their mode.
fn choose_classes(
    known: BTreeMap<ClassName, JsonText>,
    only: &[ClassName],
    mode: &ExecutableMode,
) -> Result<BTreeMap<ClassName, JsonText>, WorkerError> {
    let usual = |class: &ClassName| match mode {
        ExecutableMode::Protocol => {
            let names: Vec<&str> = known.keys().map(ClassName::as_str).collect();
            let message = format!("it has no class `{class}`; its classes are: {}", names.join(", "));
            Err(WorkerError::Executable(message))
        }
        ExecutableMode::EachStep => Ok(ANY_PORTS.to_owned()),
        ExecutableMode::Filter(from, to) => {
            Ok(format!(r#"{{"inports":{{"{from}":{{}}}},"outports":{{"{to}":{{}}}}}}"#))
        }
    };
    let classes: BTreeMap<ClassName, JsonText> = match only {
        [] => known,
        only => {
            let config = |class: &ClassName| match known.get(class) {
                Some(config) => Ok((class.clone(), config.clone())),
                None => Ok((class.clone(), JsonText::parse(&usual(class)?).map_err(WorkerError::invalid("class"))?)),
            };
            only.iter().map(config).collect::<Result<_, WorkerError>>()?
        }
    };
    match classes.is_empty() {
        true => Err(WorkerError::Executable("it has no classes".to_owned())),
        false => Ok(classes),
    }
}

impl Worker for ExecutableWorker {
    fn has_startup(&self) -> bool {
        self.class.has_startup
    }

    fn startup(&self, step: &mut TaskStep<'_>) -> StepResult {
        self.call("startup", step)
    }

    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        self.call("perform", step)
    }

    fn performs_jobs(&self) -> bool {
        self.class.has_jobs
    }

    fn perform_job(&self, job: &mut BareJobStep<'_>) -> StepResult {
        let result = match &self.pool.options.mode {
            ExecutableMode::EachStep => perform_job_by_process(&self.pool, &self.class, job),
            ExecutableMode::Protocol | ExecutableMode::Filter(..) => perform_job(&self.pool, &self.class, job),
        };
        // A job that ends its executable is retried with Sidekiq's growing pauses, and not at once without end.
        result.map_err(|stop| match stop {
            StepStop::Repeated(message) => StepStop::Failed(message),
            other => other,
        })
    }

    fn shutdown(&self, step: &mut TaskStep<'_>) -> StepResult {
        match self.class.has_shutdown {
            true => self.call("shutdown", step),
            false => Ok(()),
        }
    }
}

impl ExecutableWorker {
    fn call(&self, call: &'static str, step: &mut TaskStep<'_>) -> StepResult {
        match &self.pool.options.mode {
            ExecutableMode::Protocol => make_step(&self.pool, &self.class, call, step),
            ExecutableMode::EachStep => make_step_by_process(&self.pool, &self.class, call, step),
            // A filter knows only items.
            ExecutableMode::Filter(..) if call != "perform" => Ok(()),
            ExecutableMode::Filter(from, to) => make_step_by_filter(&self.pool, &self.class, (from, to), step),
        }
    }
}

impl ExecutableHandle {
    /// Begins no further steps.
    pub fn quiet(&self) {
        self.stop.quiet();
    }

    /// Stops when the steps that run have ended. The second call gives these steps back at once.
    pub fn stop(&self) {
        self.stop.stop();
        if self.is_stopping.swap(true, Ordering::SeqCst) {
            self.pool.steps.cancel(None, CancelReason::Stopping);
        }
    }
}
