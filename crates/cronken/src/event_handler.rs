//! Acts on the events that Cronken's clients send to all nodes. Every node receives each event, and exactly one of them
//! carries it out. A node that handles an event too late, because its process was stopped, leaves it to the other nodes,
//! which have handled it long ago.

use std::sync::Arc;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{Actor, JobSource, LockName, NodeRecord};
use cronhold_core::{JobId, NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_jobfile::foreign::ForeignForm;
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::{DefinitionUpdate, Fault, Store, all_nodes, find_job, has_foreign_nodes};

use crate::definition;
use crate::event::{CronkenEvent, resume_all};
use crate::new_job_uid;
use crate::plan::rules;
use crate::reconciler::read_options;
use crate::report::{EventOutcome, FollowerObserver, SharedJobReport, mistakes_text};
use crate::requests::ReconcileRequests;
use crate::snapshot::{removed_holder, removed_lock};

/// An event that may be older than this is left to the other nodes. They remember for [`ONCE`] that they have handled an
/// event, and an older one could be handled again after they have forgotten it.
const LATE: Span = Span::from_millis(300);
/// How long an event that takes more than one command is remembered as handled. Longer than [`LATE`].
const ONCE: Span = Span::from_millis(500);
/// How long a job stays removed whose definition stays: practically for ever, until a `reload` event restores it.
const REMOVED: Span = Span::from_secs(10 * 365 * 86_400);

/// Acts on events.
#[derive(Debug)]
pub(crate) struct EventHandler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) node: NodeHandle,
    pub(crate) node_id: NodeId,
    pub(crate) zones: Arc<ZoneRegistry>,
    pub(crate) requests: Arc<ReconcileRequests>,
    pub(crate) observer: Arc<dyn FollowerObserver>,
}

/// An event and when it may have arrived.
#[derive(Debug)]
pub(crate) struct ReceivedEvent {
    pub(crate) text: String,
    /// An uptime at which the event had not arrived yet.
    pub(crate) not_before: Span,
}

/// Why an event was not carried out.
#[derive(Debug)]
enum EventError {
    /// The node refused it.
    Refused(RequestError),
    /// The job in the event is invalid.
    InvalidJob(String),
}

impl EventHandler {
    /// Acts on an event and reports the outcome.
    pub(crate) async fn handle(&self, received: &ReceivedEvent, clock: &dyn MachineClock) {
        let outcome = match CronkenEvent::parse(&received.text) {
            Ok(Some(event)) => self.outcome(received, event, clock).await,
            Ok(None) => return,
            Err(error) => EventOutcome::Ignored { reason: error.to_string() },
        };
        self.observer.on_report(&SharedJobReport::Event { text: received.text.clone(), outcome });
    }

    async fn outcome(&self, received: &ReceivedEvent, event: CronkenEvent, clock: &dyn MachineClock) -> EventOutcome {
        let age = clock.uptime().minus(received.not_before);
        if age > LATE && self.has_other_nodes().await {
            let reason = format!("it may have arrived {age} ago, and other nodes have handled it");
            return EventOutcome::Ignored { reason };
        }
        match self.carry_out(&received.text, event).await {
            Ok(CommandReply::Unchanged) => EventOutcome::AlreadyApplied,
            Ok(_) => EventOutcome::Applied,
            Err(EventError::Refused(refused)) => EventOutcome::Ignored { reason: refused.to_string() },
            Err(EventError::InvalidJob(reason)) => EventOutcome::Ignored { reason },
        }
    }

    async fn carry_out(&self, text: &str, event: CronkenEvent) -> Result<CommandReply, EventError> {
        match event {
            CronkenEvent::Resume(None) => self.resume_all(text).await,
            CronkenEvent::Add(id, form) => self.add(text, id, &form).await,
            CronkenEvent::Remove(id) => self.remove(text, id).await,
            CronkenEvent::Drain(names) => self.drain(text, &names).await,
            CronkenEvent::Reload => {
                let is_first = self.is_first(text).await?;
                if is_first {
                    self.requests.reload();
                } else {
                    self.requests.check_soon();
                }
                Ok(answer(is_first))
            }
            CronkenEvent::Validate(names) => {
                let is_first = self.is_first(text).await?;
                if is_first {
                    self.requests.validate(names);
                }
                Ok(answer(is_first))
            }
            // Every node carries these out. All nodes receive them in the same order, so the last one decides. They are not
            // limited to one node, because between two equal events there may be one with the opposite effect.
            CronkenEvent::Pause(_) | CronkenEvent::Resume(Some(_)) => {
                let command = event.command(self.node.random_run_id()).expect("a single command does each of these");
                self.ensure(command).await
            }
            CronkenEvent::Signal(..) | CronkenEvent::Trigger(_) => {
                let command = event.command(self.node.random_run_id()).expect("a single command does each of these");
                self.once(text, command).await
            }
        }
    }

    /// Carries out a command, and notes in the same unit that the event is handled.
    async fn once(&self, event: &str, command: Command) -> Result<CommandReply, EventError> {
        let (once, holder) = (event_lock(event), self.node.random_run_id());
        self.ensure(Command::Event { once, holder, command: Box::new(command) }).await
    }

    /// Carries out a command that may have been carried out already.
    async fn ensure(&self, command: Command) -> Result<CommandReply, EventError> {
        match self.request(command).await {
            Ok(answer) => Ok(answer),
            Err(RequestError::Rejected(rejection)) if rejection.is_so_already() => Ok(CommandReply::Unchanged),
            Err(refused) => Err(refused.into()),
        }
    }

    /// Sends a command to the node, which refuses it if it cannot start on it in time and there are other nodes.
    async fn request(&self, command: Command) -> Result<CommandReply, RequestError> {
        match self.node.request_within(Actor::ForeignEvent, command.clone(), LATE).await {
            Err(RequestError::Late) if !self.has_other_nodes().await => {
                self.node.request(Actor::ForeignEvent, command).await
            }
            answer => answer,
        }
    }

    /// Whether this node is the first to handle an event that takes more than one command. Notes that it is handled.
    async fn is_first(&self, event: &str) -> Result<bool, EventError> {
        let (lock, holder) = (event_lock(event), self.node.random_run_id());
        match self.request(Command::AcquireLock { lock, holder, ttl: ONCE }).await {
            Ok(_) => Ok(true),
            Err(RequestError::Rejected(Rejection::Locked { .. })) => Ok(false),
            Err(refused) => Err(refused.into()),
        }
    }

    async fn resume_all(&self, text: &str) -> Result<CommandReply, EventError> {
        let is_first = self.is_first(text).await?;
        if is_first {
            resume_all(&self.node, &*self.store, &Actor::ForeignEvent).await?;
        }
        Ok(answer(is_first))
    }

    /// Creates a job. Its definition is written first, exactly as it was sent, so that nothing of it is lost. If no node
    /// gets to create the job, the next reconciliation removes the definition.
    async fn add(&self, text: &str, id: JobId, form: &ForeignForm) -> Result<CommandReply, EventError> {
        let options = read_options(&self.zones, has_foreign_nodes(&*self.store));
        let read = definition::read_form(form, &options);
        let job = read.job.ok_or_else(|| EventError::InvalidJob(mistakes_text(&read.mistakes)))?;
        if find_job(&*self.store, &id).await?.is_some() {
            return Err(RequestError::Rejected(Rejection::JobThere(id)).into());
        }
        if let Some(shared) = self.store.shared() {
            let (name, text) = (id.to_string(), Some(form.to_string()));
            let written = DefinitionUpdate { name, found: None, text, reading: rules(&options) };
            shared.settle(&[written]).await?;
        }
        let (uid, source) = (new_job_uid(&self.node), JobSource::Foreign);
        let put = Command::PutJob { id, job: Arc::new(job), source, uid, provided: Precondition::New };
        self.once(text, put).await
    }

    /// Removes a job while its definition stays, so that a `reload` event restores the job. The job is marked as removed
    /// first, because a reconciliation removes a definition without a job. A definition that cannot express the whole job
    /// could not restore it, so it is removed with the job.
    async fn remove(&self, text: &str, id: JobId) -> Result<CommandReply, EventError> {
        let Some(record) = find_job(&*self.store, &id).await? else {
            return Err(RequestError::Rejected(Rejection::NoJob(id)).into());
        };
        let source = record.source.clone();
        if let JobSource::Directory(_) = source {
            let rejection = Rejection::OtherSource { job: id, source_of_job: source };
            return Err(RequestError::Rejected(rejection).into());
        }
        let has_foreign = has_foreign_nodes(&*self.store);
        let written = definition::write(&record.job, None, &read_options(&self.zones, has_foreign));
        if written.unexpressed.is_empty() {
            let (lock, holder) = (removed_lock(&id), removed_holder());
            self.node.request(Actor::ForeignEvent, Command::AcquireLock { lock, holder, ttl: REMOVED }).await?;
        }
        self.once(text, Command::RemoveJob { id, source, provided: Precondition::Any }).await
    }

    /// Drains the nodes with these names. A name that no node of Cronhold has belongs to a node of Cronken.
    async fn drain(&self, text: &str, names: &[String]) -> Result<CommandReply, EventError> {
        let (nodes, now) = (all_nodes(&*self.store).await?, self.store.time().await?);
        let mut answer = CommandReply::Unchanged;
        let is_named = |node: &&Arc<NodeRecord>| node.is_there(now) && names.contains(&node.name);
        for node in nodes.iter().filter(is_named) {
            let event = format!("{text}\n{}", node.name);
            if self.once(&event, Command::Drain { node: node.id, on: true }).await? != CommandReply::Unchanged {
                answer = CommandReply::Done;
            }
        }
        Ok(answer)
    }

    /// Whether other nodes of Cronhold are running. If the store is unreachable, nothing can be carried out either.
    async fn has_other_nodes(&self) -> bool {
        let (Ok(nodes), Ok(now)) = (all_nodes(&*self.store).await, self.store.time().await) else { return true };
        nodes.iter().any(|node| node.id != self.node_id && node.is_there(now))
    }
}

impl From<RequestError> for EventError {
    fn from(refused: RequestError) -> Self {
        Self::Refused(refused)
    }
}

impl From<Fault> for EventError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault.into())
    }
}

/// The lock that marks an event as handled. While it is held, the same text is the same event.
fn event_lock(text: &str) -> LockName {
    let digest = RunId::from_key(Instant::EPOCH, text);
    LockName::of_event(&digest.to_string()).expect("a digest is short")
}

fn answer(is_first: bool) -> CommandReply {
    if is_first { CommandReply::Done } else { CommandReply::Unchanged }
}
