//! Events that other programs have sent to all nodes: each takes effect once, although every node hears it. A node that
//! hears one too late, because it was stopped meanwhile, leaves it to the others, which have acted long since.

use std::sync::Arc;

use cronhold_core::command::{Command, Provided};
use cronhold_core::decision::{Answer, Rejection};
use cronhold_core::record::{Actor, LockName, Node, Source};
use cronhold_core::{JobId, JobUid, NodeId, RunId};
use cronhold_engine::{Clock, Entropy, Handle, Refused};
use cronhold_jobfile::foreign::{Form, cronken};
use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, Span, Zones};
use cronhold_server::{Event, resume_everything};
use cronhold_store::{Fault, Settle, Store, all_nodes, find_job, has_foreign_nodes};

use super::bell::Bell;
use super::look::{all_mistakes, options, removed_holder};
use super::reconcile::reading;
use super::sight::removed_lock;
use crate::chance::SystemEntropy;
use crate::log::{Log, Weight};

/// In whose name the node is asked for what events want.
pub(super) const EVENT: &str = "event";
/// An event that came longer ago than this may be heard after others have acted on it and forgotten that they have. It is
/// shorter than the time for which they remember it.
const LATE: Span = Span::from_millis(300);
/// How long it is remembered that somebody acts on an event that takes more than one command.
const ONCE: Span = Span::from_millis(500);
/// How long a job stays removed whose definition stays: until all definitions are read again, however long that is.
const REMOVED: Span = Span::from_secs(10 * 365 * 86_400);

/// Acts on events.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) store: Arc<dyn Store>,
    pub(super) node: Handle,
    pub(super) this: NodeId,
    pub(super) zones: Arc<Zones>,
    pub(super) bell: Arc<Bell>,
    pub(super) log: Log,
}

/// An event as it was heard.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) text: String,
    /// When nothing had come yet, in uptime: it is not older than that.
    pub(super) since: Span,
}

/// Why nothing came of an event.
#[derive(Debug)]
enum Ignored {
    /// What it asks for cannot be done.
    Refused(Refused),
    /// It makes no sense.
    Wrong(String),
}

impl Control {
    /// Acts on an event; what comes of it is said.
    pub(super) async fn act(&self, heard: &Heard, clock: &dyn Clock) {
        let text = &heard.text;
        let event = match Event::parse(text) {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(error) => return self.say(Weight::Usual, text, &format!("ignored: {error}")),
        };
        let age = clock.uptime().minus(heard.since);
        if age > LATE && self.has_company().await {
            let words = format!("ignored: it may have come {age} ago, and other nodes have acted on it");
            return self.say(Weight::Usual, text, &words);
        }
        match self.perform(text, event).await {
            Ok(Answer::Unchanged) => self.say(Weight::Detail, text, "nothing is left to be done"),
            Ok(_) => self.say(Weight::Usual, text, "done"),
            Err(Ignored::Refused(refused)) => self.say(Weight::Usual, text, &format!("ignored: {refused}")),
            Err(Ignored::Wrong(why)) => self.say(Weight::Usual, text, &format!("ignored: {why}")),
        }
    }

    async fn perform(&self, text: &str, event: Event) -> Result<Answer, Ignored> {
        match event {
            Event::Resume(None) => self.resume_all(text).await,
            Event::Add(id, form) => self.add(text, id, &form).await,
            Event::Remove(id) => self.remove(text, id).await,
            Event::Drain(names) => self.drain(text, &names).await,
            Event::Reload => {
                let is_first = self.is_first(text).await?;
                if is_first {
                    self.bell.want_all_anew();
                } else {
                    self.bell.want_all_soon();
                }
                Ok(answer(is_first))
            }
            Event::Validate(names) => {
                let is_first = self.is_first(text).await?;
                if is_first {
                    self.bell.want_validation(names);
                }
                Ok(answer(is_first))
            }
            // Whoever hears them in their order ends with the last, so that they need not be done once only: between two
            // that say the same there may be one that says the opposite.
            Event::Pause(_) | Event::Resume(Some(_)) => {
                let command = event.command(self.node.random_run_id()).expect("one command does each of these");
                self.settled(command).await
            }
            Event::Signal(..) | Event::Trigger(_) => {
                let command = event.command(self.node.random_run_id()).expect("one command does each of these");
                self.once(text, command).await
            }
        }
    }

    /// Asks for what an event wants, in the same unit in which it is noted that somebody has done it.
    async fn once(&self, digested: &str, command: Command) -> Result<Answer, Ignored> {
        let (once, holder) = (event_lock(digested), self.node.random_run_id());
        self.settled(Command::Event { once, holder, command: Box::new(command) }).await
    }

    /// Asks for something that may be so already.
    async fn settled(&self, command: Command) -> Result<Answer, Ignored> {
        match self.ask(command).await {
            Ok(answer) => Ok(answer),
            Err(Refused::Rejected(rejection)) if rejection.is_so_already() => Ok(Answer::Unchanged),
            Err(refused) => Err(refused.into()),
        }
    }

    /// Asks the node, which does nothing when it was held up for so long that others have acted.
    async fn ask(&self, command: Command) -> Result<Answer, Refused> {
        match self.node.ask_within(actor(), command.clone(), LATE).await {
            Err(Refused::Late) if !self.has_company().await => self.node.ask(actor(), command).await,
            answer => answer,
        }
    }

    /// Whether this node is the first to act on an event that takes more than one command.
    async fn is_first(&self, text: &str) -> Result<bool, Ignored> {
        let (lock, holder) = (event_lock(text), self.node.random_run_id());
        match self.ask(Command::Hold { lock, holder, ttl: ONCE }).await {
            Ok(_) => Ok(true),
            Err(Refused::Rejected(Rejection::Locked { .. })) => Ok(false),
            Err(refused) => Err(refused.into()),
        }
    }

    async fn resume_all(&self, text: &str) -> Result<Answer, Ignored> {
        let is_first = self.is_first(text).await?;
        if is_first {
            resume_everything(&self.node, &*self.store, &actor()).await?;
        }
        Ok(answer(is_first))
    }

    /// Makes a job. Its definition is written first and as it was sent, so that nothing of it is lost; should nobody come
    /// to make the job, the definition is removed again by whoever looks next.
    async fn add(&self, text: &str, id: JobId, form: &Form) -> Result<Answer, Ignored> {
        let options = options(&self.zones, has_foreign_nodes(&*self.store));
        let read = cronken::read_form(form, &options);
        let job = read.job.ok_or_else(|| Ignored::Wrong(all_mistakes(&read.mistakes)))?;
        if find_job(&*self.store, &id).await?.is_some() {
            return Err(Refused::Rejected(Rejection::JobThere(id)).into());
        }
        if let Some(shared) = self.store.shared() {
            let (name, text) = (id.to_string(), Some(form.to_string()));
            let written = Settle { name, found: None, text, reading: reading(&options) };
            shared.settle(&[written]).await?;
        }
        let (uid, source) = (JobUid::from_bits(SystemEntropy.bits()), Source::Foreign);
        let put = Command::PutJob { id, job: Arc::new(job), source, uid, provided: Provided::New };
        self.once(text, put).await
    }

    /// Removes a job while its definition stays, which brings it back when all definitions are read again. That it is
    /// meant so is noted first, because whoever finds a definition without its job removes it. A definition that says less
    /// than the job cannot bring it back, and goes with it.
    async fn remove(&self, text: &str, id: JobId) -> Result<Answer, Ignored> {
        let Some(record) = find_job(&*self.store, &id).await? else {
            return Err(Refused::Rejected(Rejection::NoJob(id)).into());
        };
        let source = record.source.clone();
        if let Source::Directory(_) = source {
            let rejection = Rejection::OtherSource { job: id, source_of_job: source };
            return Err(Refused::Rejected(rejection).into());
        }
        let has_foreign = has_foreign_nodes(&*self.store);
        let shown = cronken::write(&record.job, None, &options(&self.zones, has_foreign));
        if shown.unexpressed.is_empty() {
            let lock = removed_lock(&id);
            self.node.ask(actor(), Command::Hold { lock, holder: removed_holder(), ttl: REMOVED }).await?;
        }
        self.once(text, Command::RemoveJob { id, source, provided: Provided::Any }).await
    }

    /// Lets nodes start nothing any more. Names that none of our nodes has are those of others.
    async fn drain(&self, text: &str, names: &[String]) -> Result<Answer, Ignored> {
        let (nodes, now) = (all_nodes(&*self.store).await?, self.store.time().await?);
        let mut answer = Answer::Unchanged;
        let is_meant = |node: &&Arc<Node>| node.is_there(now) && names.contains(&node.name);
        for node in nodes.iter().filter(is_meant) {
            let digested = format!("{text}\n{}", node.name);
            if self.once(&digested, Command::Drain { node: node.id, on: true }).await? != Answer::Unchanged {
                answer = Answer::Done;
            }
        }
        Ok(answer)
    }

    /// Whether other nodes are there. Where that cannot be found out, nothing can be done either.
    async fn has_company(&self) -> bool {
        let (Ok(nodes), Ok(now)) = (all_nodes(&*self.store).await, self.store.time().await) else { return true };
        nodes.iter().any(|node| node.id != self.this && node.is_there(now))
    }

    fn say(&self, weight: Weight, text: &str, words: &str) {
        let shown = shortened(text).replace(|sign: char| sign.is_control(), " ");
        self.log.emit(weight, "foreign_event", format!("event {shown}: {words}"));
    }
}

impl From<Refused> for Ignored {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Fault> for Ignored {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault.into())
    }
}

/// The lock that says that somebody acts on an event. The same text is the same event for as long as that is held.
fn event_lock(text: &str) -> LockName {
    let digest = RunId::from_key(Instant::EPOCH, text);
    LockName::of_event(&digest.to_string()).expect("a digest is short")
}

fn answer(is_first: bool) -> Answer {
    if is_first { Answer::Done } else { Answer::Unchanged }
}

fn actor() -> Actor {
    Actor::Operator(EVENT.to_owned())
}
