//! Acts on the events that Cronken's clients send to all nodes. Every node receives each event, and exactly one of them
//! carries it out, however slow the nodes are and however many events there are.
//!
//! An event is identified by its text and its place among all events, which is the same on every node
//! ([`EventPlace`]). The unit that carries it out takes a lock with that identity, so no other node carries it out, and
//! an equal event that follows has a lock of its own. Events that were rejected or changed nothing are locked too.
//!
//! Each node handles events one after the other in their common order, and goes on only when an event is carried out,
//! by itself or by another node. So when a later event takes effect, all earlier ones have.
//!
//! The lock lasts for [`LockName::EVENT_TTL`], counted from a time at which the event had been marked. A node that comes
//! to an event [`LATE`] after its mark ignores it, so none acts on an event whose lock has expired, also if its process
//! was stopped for hours. If no node comes to it in that time, the event is lost and each node logs that.

use std::sync::{Arc, Mutex};

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{Actor, JobSource, LockName, NodeRecord, RecordKey};
use cronhold_core::{JobId, NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_jobfile::foreign::ForeignForm;
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::{
    DefinitionUpdate, EventPlace, Fault, SharedEvent, Store, all_nodes, find_job, has_foreign_nodes, lock_mutex,
};

use crate::definition::{self, Dialect, ReadOptions};
use crate::event::{CronkenEvent, resume_all};
use crate::new_job_uid;
use crate::plan::rules;
use crate::report::{EventOutcome, FollowerObserver, SharedJobReport, mistakes_text};
use crate::requests::ReconcileRequests;
use crate::snapshot::{removed_holder, removed_lock};

/// An event that was marked longer ago is ignored. Much less than [`LockName::EVENT_TTL`], so that a command that is
/// sent in time finds the lock of a node that was faster.
const LATE: Span = Span::from_secs(5 * 60);
/// When to try again after the node or the store could not carry out an event.
const RETRY_AFTER: Span = Span::from_millis(200);
/// How long the store's time is computed from the node's uptime.
const TIME_KEPT: Span = Span::from_secs(10);
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
    pub(crate) store_time: StoreTimeCache,
}

/// The time of the store, and the uptime of the node at that time.
#[derive(Debug, Default)]
pub(crate) struct StoreTimeCache(Mutex<Option<(Instant, Span)>>);

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
    pub(crate) async fn handle(&self, received: &SharedEvent, clock: &dyn MachineClock) {
        let outcome = match CronkenEvent::parse(&received.text) {
            Ok(Some(event)) => self.outcome(received, &event, clock).await,
            Ok(None) => return,
            Err(error) => EventOutcome::Ignored { reason: error.to_string() },
        };
        self.observer.on_report(&SharedJobReport::Event { text: received.text.clone(), outcome });
    }

    async fn outcome(&self, received: &SharedEvent, event: &CronkenEvent, clock: &dyn MachineClock) -> EventOutcome {
        if received.place.is_none() && self.has_other_nodes().await {
            let reason = "this node had just subscribed to events, so the other nodes handle it".to_owned();
            return EventOutcome::Ignored { reason };
        }
        let identity = self.identity(received);
        loop {
            match self.age(received.place.as_ref(), clock).await {
                Ok(age) if age > LATE => {
                    let reason = format!("it was sent {age} ago, and events are carried out within {LATE}");
                    return EventOutcome::Ignored { reason };
                }
                Ok(_) => {}
                Err(_) => {
                    clock.sleep(RETRY_AFTER).await;
                    continue;
                }
            }
            return match self.carry_out(&identity, event.clone()).await {
                Ok(CommandReply::Unchanged) => EventOutcome::AlreadyApplied,
                Ok(_) => EventOutcome::Applied,
                Err(EventError::Refused(refused)) if is_transient(&refused) => {
                    clock.sleep(RETRY_AFTER).await;
                    continue;
                }
                Err(error) => self.rejected(&identity, error).await,
            };
        }
    }

    /// Marks an event as handled that cannot be carried out. It may be possible after later events, and a slow node must
    /// not carry it out then.
    async fn rejected(&self, identity: &str, error: EventError) -> EventOutcome {
        let is_first = self.is_first(identity).await;
        match error {
            EventError::Refused(RequestError::Rejected(rejection)) if rejection.is_so_already() => {
                EventOutcome::AlreadyApplied
            }
            // Another node has carried it out before.
            _ if matches!(is_first, Ok(false)) => EventOutcome::AlreadyApplied,
            EventError::Refused(refused) => EventOutcome::Ignored { reason: refused.to_string() },
            EventError::InvalidJob(reason) => EventOutcome::Ignored { reason },
        }
    }

    /// What tells an event from all others. Without a place this node is the only one, and has received it once.
    fn identity(&self, received: &SharedEvent) -> String {
        match &received.place {
            Some(EventPlace { mark, index, .. }) => format!("{mark}\n{index}\n{}", received.text),
            None => self.node.random_run_id().to_string(),
        }
    }

    /// How long ago an event was marked, by the store's clock.
    async fn age(&self, place: Option<&EventPlace>, clock: &dyn MachineClock) -> Result<Span, Fault> {
        let Some(place) = place else { return Ok(Span::ZERO) };
        let uptime = clock.uptime();
        let known = *lock_mutex(&self.store_time.0);
        let (time, at) = match known.filter(|(_, at)| uptime.minus(*at) < TIME_KEPT) {
            Some(known) => known,
            None => {
                let known = (self.store.time().await?, uptime);
                *lock_mutex(&self.store_time.0) = Some(known);
                known
            }
        };
        Ok(time.plus(uptime.minus(at)).since(place.marked_at))
    }

    async fn carry_out(&self, identity: &str, event: CronkenEvent) -> Result<CommandReply, EventError> {
        match event {
            CronkenEvent::Resume(None) => self.resume_all(identity).await,
            CronkenEvent::Add(id, form) => self.add(identity, id, &form).await,
            CronkenEvent::Remove(id) => self.remove(identity, id).await,
            CronkenEvent::Drain(names) => self.drain(identity, &names).await,
            CronkenEvent::Reload => {
                let is_first = self.is_first(identity).await?;
                if is_first {
                    self.requests.reload();
                } else {
                    self.requests.check_soon();
                }
                Ok(answer(is_first))
            }
            CronkenEvent::Validate(names) => {
                let is_first = self.is_first(identity).await?;
                if is_first {
                    self.requests.validate(names);
                }
                Ok(answer(is_first))
            }
            CronkenEvent::Pause(_)
            | CronkenEvent::Resume(Some(_))
            | CronkenEvent::Signal(..)
            | CronkenEvent::Trigger(_) => {
                let command = event.command(self.node.random_run_id()).expect("a single command does each of these");
                self.once(identity, command).await
            }
        }
    }

    /// Carries out a command, and notes in the same unit that the event is handled. An attempt without a reply may have
    /// succeeded, so each attempt has a holder of its own.
    async fn once(&self, identity: &str, command: Command) -> Result<CommandReply, EventError> {
        let (once, holder) = (event_lock(identity), self.node.random_run_id());
        let event = Command::Event { once, holder, command: Box::new(command) };
        Ok(self.node.request(Actor::ForeignEvent, event).await?)
    }

    /// Whether this node is the first to handle an event that takes more than one command. Notes that it is handled.
    async fn is_first(&self, identity: &str) -> Result<bool, EventError> {
        let (lock, holder, ttl) = (event_lock(identity), self.node.random_run_id(), LockName::EVENT_TTL);
        match self.node.request(Actor::ForeignEvent, Command::AcquireLock { lock, holder, ttl }).await {
            Ok(_) => Ok(true),
            Err(RequestError::Rejected(Rejection::Locked { .. })) => Ok(false),
            Err(refused) => Err(refused.into()),
        }
    }

    /// Whether an event is handled already. Asked before steps that are not in the unit which takes the lock.
    async fn is_handled(&self, identity: &str) -> Result<bool, EventError> {
        let found = self.store.load(&[RecordKey::Lock(event_lock(identity))]).await?;
        Ok(found.iter().any(Option::is_some))
    }

    async fn resume_all(&self, identity: &str) -> Result<CommandReply, EventError> {
        let is_first = self.is_first(identity).await?;
        if is_first {
            resume_all(&self.node, &*self.store, &Actor::ForeignEvent).await?;
        }
        Ok(answer(is_first))
    }

    /// How the definitions in events are read. Only Cronken has events.
    fn read_options(&self) -> ReadOptions<'_> {
        let dialect = if has_foreign_nodes(&*self.store) { Dialect::Cronken } else { Dialect::Cron };
        ReadOptions { zones: &self.zones, dialect }
    }

    /// Creates a job. Its definition is written first, exactly as it was sent, so that nothing of it is lost. If no node
    /// gets to create the job, the next reconciliation removes the definition.
    async fn add(&self, identity: &str, id: JobId, form: &ForeignForm) -> Result<CommandReply, EventError> {
        if self.is_handled(identity).await? {
            return Ok(CommandReply::Unchanged);
        }
        let options = self.read_options();
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
        self.once(identity, put).await
    }

    /// Removes a job while its definition stays, so that a `reload` event restores the job. The job is marked as removed
    /// first, because a reconciliation removes a definition without a job. A definition that cannot express the whole job
    /// could not restore it, so it is removed with the job.
    async fn remove(&self, identity: &str, id: JobId) -> Result<CommandReply, EventError> {
        if self.is_handled(identity).await? {
            return Ok(CommandReply::Unchanged);
        }
        let Some(record) = find_job(&*self.store, &id).await? else {
            return Err(RequestError::Rejected(Rejection::NoJob(id)).into());
        };
        let source = record.source.clone();
        if let JobSource::Directory(_) = source {
            let rejection = Rejection::OtherSource { job: id, source_of_job: source };
            return Err(RequestError::Rejected(rejection).into());
        }
        let written = definition::write(&record.job, None, &self.read_options());
        if written.unexpressed.is_empty() {
            let (lock, holder) = (removed_lock(&id), removed_holder());
            self.node.request(Actor::ForeignEvent, Command::AcquireLock { lock, holder, ttl: REMOVED }).await?;
        }
        self.once(identity, Command::RemoveJob { id, source, provided: Precondition::Any }).await
    }

    /// Drains the nodes with these names. A name that no node of Cronhold has belongs to a node of Cronken.
    async fn drain(&self, identity: &str, names: &[String]) -> Result<CommandReply, EventError> {
        if self.is_handled(identity).await? {
            return Ok(CommandReply::Unchanged);
        }
        let (nodes, now) = (all_nodes(&*self.store).await?, self.store.time().await?);
        let mut answer = CommandReply::Unchanged;
        let is_named = |node: &&Arc<NodeRecord>| node.is_there(now) && names.contains(&node.name);
        for node in nodes.iter().filter(is_named) {
            let event = format!("{identity}\n{}", node.name);
            if self.once(&event, Command::Drain { node: node.id, on: true }).await? != CommandReply::Unchanged {
                answer = CommandReply::Done;
            }
        }
        // A node that starts later is not drained by it.
        self.is_first(identity).await?;
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

/// Whether the same request may succeed later.
fn is_transient(refused: &RequestError) -> bool {
    match refused {
        RequestError::Busy | RequestError::Late | RequestError::Contended => true,
        RequestError::Failed(fault) => fault.is_transient(),
        RequestError::Rejected(_) | RequestError::Stopping => false,
    }
}

/// The lock that marks an event as handled.
fn event_lock(identity: &str) -> LockName {
    let digest = RunId::from_key(Instant::EPOCH, identity);
    LockName::of_event(&digest.to_string()).expect("a digest is short")
}

fn answer(is_first: bool) -> CommandReply {
    if is_first { CommandReply::Done } else { CommandReply::Unchanged }
}
