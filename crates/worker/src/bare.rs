//! Performs bare jobs: jobs that plain Sidekiq clients have pushed. They are not tasks, so they have no ports, no state and
//! no children.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cronhold_core::task::{Channel, ClassName, JsonText, NewTask, QueueName, StepError, TaskAct};
use cronhold_store::tasks::{BareJob, BareJobEnd, BareJobEnding, TaskStore};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::block_on::block_on;
use crate::error::WorkerError;
use crate::worker::{StepResult, StepStop, Worker};

/// A bare job while it is performed. What it does to tasks takes effect together with its end, or not at all.
#[derive(Debug)]
pub struct BareJobStep<'j> {
    store: &'j dyn TaskStore,
    job: &'j BareJob,
    acts: Vec<TaskAct>,
}

/// What a bare job has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareJobReport {
    pub jid: String,
    pub ending: BareJobEnding,
}

impl<'j> BareJobStep<'j> {
    pub(crate) const fn new(store: &'j dyn TaskStore, job: &'j BareJob) -> Self {
        Self { store, job, acts: Vec::new() }
    }

    /// What the job does to tasks, in order.
    pub(crate) fn into_acts(self) -> Vec<TaskAct> {
        self.acts
    }

    /// The store of the tasks.
    pub(crate) const fn store(&self) -> &dyn TaskStore {
        self.store
    }

    /// The job as it was leased.
    pub(crate) const fn job(&self) -> &BareJob {
        self.job
    }

    /// Sidekiq's id of the job.
    pub fn jid(&self) -> &str {
        &self.job.jid
    }

    /// The queue in which the job was.
    pub const fn queue(&self) -> &QueueName {
        &self.job.queue
    }

    /// The args, such as a tuple.
    pub fn args<T: DeserializeOwned>(&self) -> StepResult<T> {
        Ok(self.job.args.to()?)
    }

    /// Creates a task.
    pub fn create(&mut self, queue: &str, class: &str, args: &impl Serialize) -> StepResult {
        let args = JsonText::of(args)?;
        let new = NewTask::new(QueueName::parse(queue)?, ClassName::parse(class)?);
        self.acts.push(TaskAct::Create(NewTask { args: Some(args).filter(|args| args.as_str() != "null"), ..new }));
        Ok(())
    }

    /// Publishes a message.
    pub fn publish(&mut self, channel: &str, message: &impl Serialize) -> StepResult {
        let (channel, message) = (Channel::parse(channel)?, JsonText::of(message)?);
        self.acts.push(TaskAct::Publish { channel, message });
        Ok(())
    }

    /// Does anything else to tasks.
    pub fn act(&mut self, act: TaskAct) {
        self.acts.push(act);
    }
}

/// Performs a bare job that was leased, and commits its end.
pub(crate) fn perform_bare_job(
    store: &dyn TaskStore,
    worker: &dyn Worker,
    job: &BareJob,
) -> Result<BareJobReport, WorkerError> {
    let mut step = BareJobStep::new(store, job);
    let result = catch_unwind(AssertUnwindSafe(|| worker.perform_job(&mut step)));
    let result = result.unwrap_or_else(|_| Err(StepStop::Failed("the worker panicked".to_owned())));
    let ending = match result {
        Ok(()) => BareJobEnding::Completed,
        Err(StepStop::Failed(message)) => BareJobEnding::Failed(StepError::new(message)),
        Err(StepStop::Suspended) => BareJobEnding::Failed(StepError::new("a job cannot wait for input")),
        Err(StepStop::Repeated(_) | StepStop::GivenBack) => BareJobEnding::GivenBack,
    };
    let acts = if ending == BareJobEnding::Completed { step.into_acts() } else { Vec::new() };
    let end = BareJobEnd { step: job.step, ending: ending.clone(), acts };
    match block_on(store.end_bare_jobs(vec![end])).pop() {
        Some(Ok(())) => Ok(BareJobReport { jid: job.jid.clone(), ending }),
        Some(Err(error)) => Err(WorkerError::System(format!("the end of job {} was not stored: {error}", job.jid))),
        None => Err(WorkerError::System("the store did not reply to the end of a job".to_owned())),
    }
}
