//! Data that other programs write as well: jobs in Cronken's form, events, and their runs. This module does not
//! interpret them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use cronhold_store::lock_mutex;
use cronhold_store::{
    DefinitionRules, DefinitionStatus, DefinitionUpdate, Fault, Pending, SharedDefinition, SharedEvent, SharedRun,
    SharedStore,
};
use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::event_sequencer::{EventMark, EventSequencer};
use super::{PeerFlag, foreign_runs};
use crate::connections::{ChannelEvent, RedisConnections, Script};
use crate::outputs::{command, read_reply};

/// Events that are queued. When there are more, the oldest are dropped and counted.
const EVENTS_MAX: usize = 10_000;

/// How long a process waits for a mark that it has published, and after it could not publish one, before it publishes
/// another one.
const MARK_WAIT: Duration = Duration::from_secs(1);
const MARK_RETRY: Duration = Duration::from_millis(100);

/// Definitions of one script call. While a script runs, the server serves no other request.
const FORMS_PER_CALL: usize = 500;

static FORMS: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/shared.lua")]));

static MARK: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/event_mark.lua")]));

/// The part of the namespace that Cronken's nodes and clients write as well.
pub(crate) struct SharedKeys {
    connections: RedisConnections,
    /// The runtime of the connections.
    runtime: Handle,
    namespace: String,
    peers: Arc<PeerFlag>,
    /// Received events. The subscription starts with the first caller that waits for them.
    inbox: OnceLock<Arc<EventInbox>>,
}

/// Received events that no caller has taken yet.
#[derive(Debug, Default)]
struct EventInbox {
    queue: Mutex<EventQueue>,
    has_events: Notify,
}

#[derive(Debug, Default)]
struct EventQueue {
    events: VecDeque<SharedEvent>,
    dropped: u64,
}

impl EventInbox {
    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        lock_mutex(&self.queue)
    }

    fn push(&self, event: SharedEvent) {
        let mut queue = self.queue();
        if queue.events.len() == EVENTS_MAX {
            queue.events.pop_front();
            queue.dropped += 1;
        }
        queue.events.push_back(event);
        drop(queue);
        self.has_events.notify_one();
    }

    fn take(&self) -> Vec<SharedEvent> {
        self.queue().events.drain(..).collect()
    }
}

impl SharedKeys {
    pub(crate) fn new(connections: RedisConnections, runtime: Handle, namespace: &str, peers: Arc<PeerFlag>) -> Self {
        Self { connections, runtime, namespace: namespace.to_owned(), peers, inbox: OnceLock::new() }
    }

    /// How many events were dropped because they arrived faster than they were handled.
    pub(crate) fn warning(&self) -> Option<String> {
        let dropped = self.inbox.get().map_or(0, |inbox| inbox.queue().dropped);
        (dropped > 0).then(|| format!("{dropped} events arrived faster than they were handled, and were dropped"))
    }

    fn channel(&self) -> String {
        format!("{}:__events__", self.namespace)
    }

    fn inbox(&self) -> &Arc<EventInbox> {
        self.inbox.get_or_init(|| {
            let inbox = Arc::new(EventInbox::default());
            let receiver = EventReceiver {
                connections: self.connections.clone(),
                channel: self.channel(),
                marks: format!("{}:cronhold:marks", self.namespace),
                mark_counter: [format!("{}:cronhold:mark_counter", self.namespace)],
                inbox: Arc::downgrade(&inbox),
                sequencer: EventSequencer::default(),
            };
            self.runtime.spawn(receiver.run());
            inbox
        })
    }

    fn keys(&self) -> [String; 3] {
        ["jobs", "cronhold:forms", "cronhold:meta"].map(|key| format!("{}:{key}", self.namespace))
    }
}

type MarkFuture = Pin<Box<dyn Future<Output = Option<EventMark>> + Send>>;

/// The mark that this process publishes.
enum Marking {
    Idle,
    Publishing(MarkFuture),
    /// It is published and has not arrived yet.
    Awaiting(EventMark, Pin<Box<Sleep>>),
}

/// Receives events and marks, and publishes marks.
struct EventReceiver {
    connections: RedisConnections,
    channel: String,
    marks: String,
    mark_counter: [String; 1],
    inbox: Weak<EventInbox>,
    sequencer: EventSequencer,
}

impl EventReceiver {
    /// Runs until the store is dropped.
    async fn run(mut self) {
        let mut messages = self.connections.subscribe(vec![self.channel.clone(), self.marks.clone()]);
        let mut marking = Marking::Idle;
        // The first message reports that the subscription is there. A mark from before would be missed.
        let mut message = messages.recv().await;
        loop {
            match message.take() {
                Some(message) => self.receive(message, &mut marking),
                None => return,
            }
            // The store was dropped.
            if self.inbox.strong_count() == 0 {
                return;
            }
            message = loop {
                if matches!(marking, Marking::Idle) && self.sequencer.needs_mark() {
                    marking = Marking::Publishing(self.publish_mark());
                }
                tokio::select! {
                    message = messages.recv() => break message,
                    published = marking.finished() => {
                        let awaited = published.filter(|mark| !self.sequencer.has_seen(mark));
                        let wait = |mark| Marking::Awaiting(mark, Box::pin(sleep(MARK_WAIT)));
                        marking = awaited.map_or(Marking::Idle, wait);
                    }
                }
            };
        }
    }

    fn receive(&mut self, message: ChannelEvent, marking: &mut Marking) {
        let Some(inbox) = self.inbox.upgrade() else { return };
        match message {
            ChannelEvent::Gap => {
                self.sequencer.miss();
                *marking = Marking::Idle;
            }
            ChannelEvent::Message { channel, payload } if channel == self.marks => {
                let Some(mark) = EventMark::parse(&String::from_utf8_lossy(&payload)) else { return };
                self.sequencer.close(mark).into_iter().for_each(|event| inbox.push(event));
                if let Marking::Awaiting(mark, _) = marking
                    && self.sequencer.has_seen(mark)
                {
                    *marking = Marking::Idle;
                }
            }
            ChannelEvent::Message { payload, .. } => {
                self.sequencer.receive(String::from_utf8_lossy(&payload).into_owned());
                inbox.queue().dropped += self.sequencer.take_dropped();
            }
        }
    }

    /// Publishes a mark. `None` after a while if that failed.
    fn publish_mark(&self) -> MarkFuture {
        let (connections, keys, channel) = (self.connections.clone(), self.mark_counter.clone(), self.marks.clone());
        Box::pin(async move {
            let published = connections.call_script(&MARK, &keys, vec![channel.into_bytes()]).await;
            let mark = published.ok().and_then(|reply| EventMark::parse(&read_reply::<String>(reply).ok()?));
            if mark.is_none() {
                sleep(MARK_RETRY).await;
            }
            mark
        })
    }
}

impl Marking {
    /// Waits until the mark is published, or until it should have arrived.
    async fn finished(&mut self) -> Option<EventMark> {
        match self {
            Self::Idle => std::future::pending().await,
            Self::Publishing(mark) => mark.await,
            Self::Awaiting(_, until) => {
                until.await;
                None
            }
        }
    }
}

impl SharedStore for SharedKeys {
    fn has_foreign_nodes(&self) -> bool {
        self.peers.has_peers()
    }

    fn events(&self) -> Pending<'_, Vec<SharedEvent>> {
        Box::pin(async move {
            let inbox = self.inbox();
            loop {
                let events = inbox.take();
                if !events.is_empty() {
                    return events;
                }
                inbox.has_events.notified().await;
            }
        })
    }

    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>> {
        let (connections, publish) = (self.connections.clone(), command("PUBLISH", &[&self.channel(), event]));
        spawn_on(&self.runtime, async move {
            let reply = connections.request_one(publish).await?;
            read_reply::<u64>(reply).map(drop)
        })
    }

    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedDefinition>, Fault>> {
        let (connections, keys, names) = (self.connections.clone(), self.keys(), names.map(<[String]>::to_vec));
        let peers = Arc::clone(&self.peers);
        spawn_on(&self.runtime, async move {
            let names = match names {
                Some(names) => names,
                None => all_names(&connections, &keys).await?,
            };
            let mut forms = Vec::with_capacity(names.len());
            for part in names.chunks(FORMS_PER_CALL) {
                let was_enrolled = peers.is_enrolled();
                let word = read_forms(&connections, &keys, part, &mut forms).await?;
                peers.observe_definitions(&word, was_enrolled);
            }
            Ok(forms)
        })
    }

    fn settle<'a>(&'a self, forms: &'a [DefinitionUpdate]) -> Pending<'a, Result<Vec<bool>, Fault>> {
        let (connections, keys, forms) = (self.connections.clone(), self.keys(), forms.to_vec());
        spawn_on(&self.runtime, async move {
            let mut settled = Vec::with_capacity(forms.len());
            for part in forms.chunks(FORMS_PER_CALL) {
                let args = part.iter().flat_map(|DefinitionUpdate { name, found, text, reading }| {
                    let name = name.clone().into_bytes();
                    [
                        name,
                        optional_arg(found.as_deref()),
                        optional_arg(text.as_deref()),
                        reading_arg(*reading).to_vec(),
                    ]
                });
                let args = std::iter::once(b"settle".to_vec()).chain(args).collect();
                let replies: Vec<bool> = read_reply(connections.call_script(&FORMS, &keys, args).await?)?;
                settled.extend(replies);
            }
            Ok(settled)
        })
    }

    fn foreign_runs<'a>(&'a self, job: Option<&'a str>, limit: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>> {
        let (connections, namespace, job) = (self.connections.clone(), self.namespace.clone(), job.map(str::to_owned));
        spawn_on(
            &self.runtime,
            async move { foreign_runs::read(&connections, &namespace, job.as_deref(), limit).await },
        )
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKeys({})", self.namespace)
    }
}

/// Runs a task on the runtime of the connections, and waits for it on any executor.
fn spawn_on<'a, T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Pending<'a, Result<T, Fault>> {
    let runtime = runtime.clone();
    Box::pin(async move {
        let done = runtime.spawn(work).await;
        done.unwrap_or_else(|error| Err(Fault::OutcomeUnknown(format!("the store was closed: {error}"))))
    })
}

/// An optional text as one argument.
fn optional_arg(text: Option<&str>) -> Vec<u8> {
    text.map_or_else(|| b"-".to_vec(), |text| format!("+{text}").into_bytes())
}

/// The rules by which a definition was read, as one argument.
fn reading_arg(reading: DefinitionRules) -> &'static [u8] {
    match reading {
        DefinitionRules::Ours => b"",
        DefinitionRules::Theirs => b"theirs",
    }
}

/// Names of jobs that are defined or were settled once, in order.
async fn all_names(connections: &RedisConnections, [jobs, forms, _]: &[String; 3]) -> Result<Vec<String>, Fault> {
    let replies = connections.request([jobs, forms].map(|key| command("HKEYS", &[key])).into()).await?;
    let mut names = BTreeSet::new();
    for reply in replies {
        // A name that is not UTF-8 is not a job of ours.
        let found: Vec<Vec<u8>> = read_reply(connections.check_reply(reply)?)?;
        names.extend(found.into_iter().filter_map(|name| String::from_utf8(name).ok()));
    }
    Ok(names.into_iter().collect())
}

/// Reads definitions. Returns the word in the namespace that says whether there are peers.
async fn read_forms(
    connections: &RedisConnections,
    keys: &[String; 3],
    names: &[String],
    forms: &mut Vec<SharedDefinition>,
) -> Result<String, Fault> {
    let named = names.iter().map(|name| name.clone().into_bytes());
    let args = std::iter::once(b"read".to_vec()).chain(named).collect();
    let replies: Vec<Value> = read_reply(connections.call_script(&FORMS, keys, args).await?)?;
    let mut replies = replies.into_iter();
    let peers = read_reply(replies.next().unwrap_or(Value::Nil))?;
    for name in names {
        let text: Option<Vec<u8>> = read_reply(replies.next().unwrap_or(Value::Nil))?;
        let standing = match read_reply::<u8>(replies.next().unwrap_or(Value::Nil))? {
            0 => DefinitionStatus::New,
            1 => DefinitionStatus::Settled(DefinitionRules::Ours),
            3 => DefinitionStatus::Settled(DefinitionRules::Theirs),
            _ => DefinitionStatus::Changed,
        };
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        forms.push(SharedDefinition { name: name.clone(), text, standing });
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_inbox_drops_the_oldest_events() {
        let inbox = EventInbox::default();
        let event = |number: usize| SharedEvent { text: number.to_string(), place: None };
        (0..EVENTS_MAX + 2).for_each(|number| inbox.push(event(number)));
        assert_eq!(inbox.queue().dropped, 2);
        let events = inbox.take();
        assert_eq!((events.len(), events[0].text.as_str()), (EVENTS_MAX, "2"));
        assert!(inbox.take().is_empty());
    }
}
