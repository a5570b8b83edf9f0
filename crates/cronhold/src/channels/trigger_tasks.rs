//! The tasks of jobs with `triggers`. Each such job has one: its in port subscribes to the channels of the job, so messages
//! wait there while no node runs. The task names the uid of its job, by which it is found after a rename, and has the alias
//! `cronhold/trigger/JOB`.
//!
//! Every change here compares what is stored and can be made again, so a crash at any point is repaired by the next look
//! at the job.

use std::sync::Arc;

use cronhold_core::record::{JobRecord, Record, RecordKey, RenameProgress};
use cronhold_core::task::{
    Channel, ClassConfig, ClassName, JsonText, NewTask, PortDirection, PortMap, PortName, PortOptions, PortTarget,
    QueueName, TaskAct, TaskAlias, TaskId, TaskKey, TaskRecord, TaskRefusal, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_core::{JobId, JobUid};
use cronhold_store::tasks::{TaskQuery, TaskStore, TaskUnitError, WindowLimits};
use cronhold_store::{Fault, Store};

/// The queue and the class of the tasks.
const QUEUE: &str = "cronhold";
const CLASS: &str = "Cronhold::Trigger";
/// What the class registers. Nobody needs messages about its status, and a trigger on `/` would receive its own.
const CONFIG: &str =
    r#"{"inports":{"in":{}},"outports":{"refused":{}},"status_publish":false,"description":"Starts runs of a job"}"#;
/// Tasks that are read at once.
const PAGE: usize = 500;

/// The tasks of jobs with triggers.
#[derive(Debug, Clone)]
pub(super) struct TriggerTasks {
    store: Arc<dyn Store>,
    tasks: Arc<dyn TaskStore>,
}

pub(super) fn queue() -> QueueName {
    QueueName::parse(QUEUE).expect("it is a name")
}

pub(super) fn class() -> ClassName {
    ClassName::parse(CLASS).expect("it is a name")
}

pub(super) fn class_config() -> ClassConfig {
    ClassConfig::parse(CONFIG).expect("it is a configuration")
}

/// The port with the messages.
pub(super) fn in_port() -> PortName {
    PortName::parse("in").expect("it is a name")
}

/// The port with the messages that cannot start a run.
pub(super) fn refused_port() -> PortName {
    PortName::parse("refused").expect("it is a name")
}

/// The job of a task, by its aliases; `None` if it has lost its job.
pub(super) fn job_of(aliases: &[TaskAlias]) -> Option<JobId> {
    aliases.iter().find_map(TaskAlias::trigger_job)
}

/// The channels that a job subscribes to. A channel below another one receives nothing that the other one does not.
fn channels_of(job: &JobRecord) -> Vec<Channel> {
    let all: Vec<Channel> = job.job.triggers.iter().filter_map(|one| Channel::parse(&one.channel).ok()).collect();
    let is_below = |channel: &Channel| channel.levels()[1..].iter().any(|above| all.contains(above));
    let mut channels: Vec<Channel> = all.iter().filter(|channel| !is_below(channel)).cloned().collect();
    channels.sort();
    channels.dedup();
    channels
}

/// The uid that the args of a task name.
fn uid_of(task: &TaskRecord) -> Option<String> {
    let args: Vec<String> = task.args.as_ref()?.to().ok()?;
    args.into_iter().next()
}

impl TriggerTasks {
    pub(super) fn new(store: Arc<dyn Store>, tasks: Arc<dyn TaskStore>) -> Self {
        Self { store, tasks }
    }

    /// Whether a job has triggers or a task.
    pub(super) async fn concern(&self, id: &JobId) -> Result<bool, TaskUnitError> {
        let has_triggers = self.load_job(id).await?.is_some_and(|job| !job.job.triggers.is_empty());
        let Some(alias) = TaskAlias::of_trigger(id) else { return Ok(false) };
        Ok(has_triggers || self.tasks.find(&TaskKey::Alias(alias)).await?.is_some())
    }

    /// Compares a job with its task: creates the task, moves it, changes its channels, or ends it. The class has to be
    /// registered. Returns whether the job has a task now.
    pub(super) async fn reconcile(&self, id: &JobId) -> Result<bool, TaskUnitError> {
        let Some(alias) = TaskAlias::of_trigger(id) else { return Ok(false) };
        let Some(job) = self.load_job(id).await? else {
            self.follow_missing_job(id, &alias).await?;
            return Ok(false);
        };
        let task = self.tasks.find(&TaskKey::Alias(alias.clone())).await?;
        let (uid, channels) = (job.uid.to_string(), channels_of(&job));
        let task = match task {
            Some(task) if uid_of(&task) == Some(uid.clone()) => Some(task),
            // The task of an earlier job of this name.
            Some(other) => {
                self.end(&other, Some(&alias)).await?;
                None
            }
            None => None,
        };
        let has_task = !channels.is_empty();
        match task {
            Some(task) if has_task => self.adjust(&task, channels).await?,
            Some(task) => self.end(&task, Some(&alias)).await?,
            None if has_task => match self.task_of_uid(job.uid).await? {
                Some(renamed) => self.rename(renamed, alias, channels).await?,
                None => self.create(&uid, alias, channels).await?,
            },
            None => {}
        }
        Ok(has_task)
    }

    /// The jobs that tasks belong to, each with whether its task is about to end. Tasks without a job are ended.
    pub(super) async fn jobs(&self) -> Result<Vec<(Option<JobId>, bool)>, TaskUnitError> {
        let mut jobs = Vec::new();
        for task in self.all().await? {
            let job = job_of(&self.aliases(task.id).await?);
            if job.is_none() {
                self.end(&task, None).await?;
            }
            let is_ended = job.is_none() && task.status != TaskStatus::Terminated;
            jobs.push((job, is_ended));
        }
        Ok(jobs)
    }

    /// Deletes a task that has shut down.
    pub(super) async fn delete(&self, task: TaskId) -> Result<(), TaskUnitError> {
        self.request(vec![TaskAct::Delete { task: TaskTarget::Id(task) }]).await
    }

    /// The job of this id is gone. If it is being renamed, its task follows it; otherwise the task ends.
    async fn follow_missing_job(&self, id: &JobId, alias: &TaskAlias) -> Result<(), TaskUnitError> {
        let Some(task) = self.tasks.find(&TaskKey::Alias(alias.clone())).await? else { return Ok(()) };
        let state = self.store.load(&[RecordKey::JobState(id.clone())]).await?.into_iter().flatten().next();
        if let Some(Record::JobState(state)) = state.map(|stored| stored.record)
            && let Some(RenameProgress::To(to)) = &state.renaming
            && let Some(job) = self.load_job(to).await?
            && uid_of(&task) == Some(job.uid.to_string())
            && let Some(alias) = TaskAlias::of_trigger(to)
        {
            return self.rename(task, alias, channels_of(&job)).await;
        }
        self.end(&task, Some(alias)).await
    }

    async fn create(&self, uid: &str, alias: TaskAlias, channels: Vec<Channel>) -> Result<(), TaskUnitError> {
        let inports = PortMap::from([(in_port(), PortOptions { channels, ..PortOptions::default() })]);
        let args = JsonText::list([&JsonText::of_text(uid)]);
        let task =
            NewTask { args: Some(args), created_by: QUEUE.to_owned(), inports, ..NewTask::new(queue(), class()) };
        self.request(vec![TaskAct::Create(task), TaskAct::AddAlias { task: TaskTarget::New(0), alias }]).await
    }

    /// Lets a task subscribe to other channels. A task that has failed, or was terminated by hand, makes steps again.
    async fn adjust(&self, task: &TaskRecord, channels: Vec<Channel>) -> Result<(), TaskUnitError> {
        let limits = WindowLimits { items: 1, bytes: 1, children: 0 };
        let Some(window) = self.tasks.window(task.id, &limits).await? else { return Ok(()) };
        let mut acts = Vec::new();
        let port = window.inports.iter().find(|port| port.name == in_port());
        if port.is_none_or(|port| port.channels != channels) {
            let port = PortTarget::new(task.id, PortDirection::In, in_port());
            acts.push(TaskAct::SetChannels { port, channels });
        }
        if matches!(task.status, TaskStatus::Failed | TaskStatus::Terminated) {
            acts.push(TaskAct::Run { task: TaskTarget::Id(task.id), forced: true, at: None });
        }
        if acts.is_empty() { Ok(()) } else { self.request(acts).await }
    }

    async fn rename(&self, task: TaskRecord, alias: TaskAlias, channels: Vec<Channel>) -> Result<(), TaskUnitError> {
        let target = TaskTarget::Id(task.id);
        let aliases = self.aliases(task.id).await?;
        let old = aliases.into_iter().filter(|known| known.trigger_job().is_some() && *known != alias);
        let mut acts: Vec<TaskAct> = old.map(|alias| TaskAct::RemoveAlias { task: target, alias }).collect();
        acts.push(TaskAct::AddAlias { task: target, alias });
        self.request(acts).await?;
        self.adjust(&task, channels).await
    }

    /// Terminates a task, which is deleted when it has shut down.
    async fn end(&self, task: &TaskRecord, alias: Option<&TaskAlias>) -> Result<(), TaskUnitError> {
        if task.status == TaskStatus::Terminated {
            return self.delete(task.id).await;
        }
        let target = TaskTarget::Id(task.id);
        let alias = alias.cloned().map(|alias| TaskAct::RemoveAlias { task: target, alias });
        let channels =
            TaskAct::SetChannels { port: PortTarget::new(task.id, PortDirection::In, in_port()), channels: Vec::new() };
        let terminate = TaskAct::Terminate { task: target, recursive: true };
        self.request(alias.into_iter().chain([channels, terminate]).collect()).await
    }

    /// Commits a request. Another node may have made the same change, which the next look at the job finds.
    async fn request(&self, acts: Vec<TaskAct>) -> Result<(), TaskUnitError> {
        match self.tasks.commit(vec![TaskUnit::request(acts)]).await.pop() {
            Some(Err(TaskUnitError::Refused(
                TaskRefusal::AliasTaken { .. } | TaskRefusal::UnknownAlias { .. } | TaskRefusal::UnknownTask(_),
            ))) => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    async fn load_job(&self, id: &JobId) -> Result<Option<Arc<JobRecord>>, Fault> {
        let found = self.store.load(&[RecordKey::Job(id.clone())]).await?.into_iter().flatten().next();
        Ok(found.and_then(|stored| match stored.record {
            Record::Job(job) => Some(job),
            _ => None,
        }))
    }

    async fn task_of_uid(&self, uid: JobUid) -> Result<Option<TaskRecord>, Fault> {
        let (uid, all) = (uid.to_string(), self.all().await?);
        let is_alive = |task: &TaskRecord| !matches!(task.status, TaskStatus::Terminating | TaskStatus::Terminated);
        Ok(all.into_iter().find(|task| is_alive(task) && uid_of(task).as_ref() == Some(&uid)))
    }

    async fn aliases(&self, task: TaskId) -> Result<Vec<TaskAlias>, Fault> {
        let limits = WindowLimits { items: 1, bytes: 1, children: 0 };
        Ok(self.tasks.window(task, &limits).await?.map(|window| window.aliases).unwrap_or_default())
    }

    async fn all(&self) -> Result<Vec<TaskRecord>, Fault> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = self.page(after, PAGE).await?;
            after = page.last().map(|task| task.id);
            let is_last = page.len() < PAGE;
            all.extend(page.into_iter().filter(|task| task.class == class()));
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn page(&self, after: Option<TaskId>, limit: usize) -> Result<Vec<TaskRecord>, Fault> {
        self.tasks.page(&TaskQuery { status: None, queue: Some(queue()), after }, limit).await
    }
}
