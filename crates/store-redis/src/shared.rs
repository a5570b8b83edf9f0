//! What other programs write as well: jobs in Cronken's form, events, and their runs. Nothing here knows what they mean.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use cronhold_store::{Fault, Pending, Reading, Settle, Shared, SharedForm, SharedRun, Standing};
use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::foreign_runs;
use crate::link::{Heard, Link, Script};
use crate::outputs::{command, read_answer};
use crate::peers::Peers;

/// So many events wait for whoever acts on them; the oldest give way, and are counted.
const EVENTS_MAX: usize = 10_000;

/// So many forms are read or settled by one call, so that others are not kept waiting.
const FORMS_A_CALL: usize = 500;

static FORMS: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/shared.lua")]));

/// The shared part of a store.
pub(crate) struct SharedKeys {
    link: Link,
    /// Where the line lives.
    runtime: Handle,
    ns: String,
    peers: Arc<Peers>,
    /// Events that have come; there from the first time that somebody waits for them.
    inbox: OnceLock<Arc<Inbox>>,
}

/// Events that wait.
#[derive(Debug, Default)]
struct Inbox {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<String>,
    lost: u64,
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: String) {
        let mut waiting = self.waiting();
        if waiting.events.len() == EVENTS_MAX {
            waiting.events.pop_front();
            waiting.lost += 1;
        }
        waiting.events.push_back(event);
        drop(waiting);
        self.came.notify_one();
    }

    fn take(&self) -> Vec<String> {
        self.waiting().events.drain(..).collect()
    }
}

impl SharedKeys {
    pub(crate) fn new(link: Link, runtime: Handle, ns: &str, peers: Arc<Peers>) -> Self {
        Self { link, runtime, ns: ns.to_owned(), peers, inbox: OnceLock::new() }
    }

    /// What whoever runs it should know: events that came faster than they were taken are lost.
    pub(crate) fn warning(&self) -> Option<String> {
        let lost = self.inbox.get().map_or(0, |inbox| inbox.waiting().lost);
        (lost > 0).then(|| format!("{lost} events came faster than they could be acted on, and are lost"))
    }

    fn channel(&self) -> String {
        format!("{}:__events__", self.ns)
    }

    fn inbox(&self) -> &Arc<Inbox> {
        self.inbox.get_or_init(|| {
            let inbox = Arc::new(Inbox::default());
            let (link, channel, target) = (self.link.clone(), self.channel(), Arc::downgrade(&inbox));
            self.runtime.spawn(async move {
                let mut heard = link.listen(vec![channel]);
                while let Some(next) = heard.recv().await {
                    // Nobody waits any more when the store is gone.
                    let Some(inbox) = target.upgrade() else { return };
                    if let Heard::Message { payload, .. } = next {
                        inbox.put(String::from_utf8_lossy(&payload).into_owned());
                    }
                }
            });
            inbox
        })
    }

    fn keys(&self) -> [String; 3] {
        ["jobs", "cronhold:forms", "cronhold:meta"].map(|key| format!("{}:{key}", self.ns))
    }
}

impl Shared for SharedKeys {
    fn has_foreign_nodes(&self) -> bool {
        self.peers.are_there()
    }

    fn events(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async move {
            let inbox = self.inbox();
            loop {
                let events = inbox.take();
                if !events.is_empty() {
                    return events;
                }
                inbox.came.notified().await;
            }
        })
    }

    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>> {
        let (link, publish) = (self.link.clone(), command("PUBLISH", &[&self.channel(), event]));
        on(&self.runtime, async move {
            let answer = link.ask_one(publish).await?;
            read_answer::<u64>(answer).map(drop)
        })
    }

    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedForm>, Fault>> {
        let (link, keys, names) = (self.link.clone(), self.keys(), names.map(<[String]>::to_vec));
        let peers = Arc::clone(&self.peers);
        on(&self.runtime, async move {
            let names = match names {
                Some(names) => names,
                None => all_names(&link, &keys).await?,
            };
            let mut forms = Vec::with_capacity(names.len());
            for part in names.chunks(FORMS_A_CALL) {
                let was_enrolled = peers.is_enrolled();
                let word = read_forms(&link, &keys, part, &mut forms).await?;
                peers.overheard(&word, was_enrolled);
            }
            Ok(forms)
        })
    }

    fn settle<'a>(&'a self, forms: &'a [Settle]) -> Pending<'a, Result<Vec<bool>, Fault>> {
        let (link, keys, forms) = (self.link.clone(), self.keys(), forms.to_vec());
        on(&self.runtime, async move {
            let mut settled = Vec::with_capacity(forms.len());
            for part in forms.chunks(FORMS_A_CALL) {
                let args = part.iter().flat_map(|Settle { name, found, text, reading }| {
                    let name = name.clone().into_bytes();
                    [name, marked(found.as_deref()), marked(text.as_deref()), word(*reading).to_vec()]
                });
                let args = std::iter::once(b"settle".to_vec()).chain(args).collect();
                let answers: Vec<bool> = read_answer(link.call(&FORMS, &keys, args).await?)?;
                settled.extend(answers);
            }
            Ok(settled)
        })
    }

    fn foreign_runs<'a>(&'a self, job: Option<&'a str>, limit: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>> {
        let (link, ns, job) = (self.link.clone(), self.ns.clone(), job.map(str::to_owned));
        on(&self.runtime, async move { foreign_runs::read(&link, &ns, job.as_deref(), limit).await })
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKeys({})", self.ns)
    }
}

/// Does something where the line lives, and waits for it wherever the caller is.
fn on<'a, T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Pending<'a, Result<T, Fault>> {
    let runtime = runtime.clone();
    Box::pin(async move {
        let done = runtime.spawn(work).await;
        done.unwrap_or_else(|error| Err(Fault::Unknown(format!("the line to Redis was closed: {error}"))))
    })
}

/// A text or none, as one argument.
fn marked(text: Option<&str>) -> Vec<u8> {
    text.map_or_else(|| b"-".to_vec(), |text| format!("+{text}").into_bytes())
}

/// By whose rules a form was read, as one argument.
fn word(reading: Reading) -> &'static [u8] {
    match reading {
        Reading::Ours => b"",
        Reading::Theirs => b"theirs",
    }
}

/// Names of jobs that are there or were settled once, in order.
async fn all_names(link: &Link, [jobs, forms, _]: &[String; 3]) -> Result<Vec<String>, Fault> {
    let answers = link.ask([jobs, forms].map(|key| command("HKEYS", &[key])).into()).await?;
    let mut names = BTreeSet::new();
    for answer in answers {
        // A name that is no text cannot be asked for again, and is nobody's job.
        let found: Vec<Vec<u8>> = read_answer(link.checked(answer)?)?;
        names.extend(found.into_iter().filter_map(|name| String::from_utf8(name).ok()));
    }
    Ok(names.into_iter().collect())
}

/// Reads forms. Answers with what the namespace says of peers.
async fn read_forms(
    link: &Link,
    keys: &[String; 3],
    names: &[String],
    forms: &mut Vec<SharedForm>,
) -> Result<String, Fault> {
    let named = names.iter().map(|name| name.clone().into_bytes());
    let args = std::iter::once(b"read".to_vec()).chain(named).collect();
    let answers: Vec<Value> = read_answer(link.call(&FORMS, keys, args).await?)?;
    let mut answers = answers.into_iter();
    let peers = read_answer(answers.next().unwrap_or(Value::Nil))?;
    for name in names {
        let text: Option<Vec<u8>> = read_answer(answers.next().unwrap_or(Value::Nil))?;
        let standing = match read_answer::<u8>(answers.next().unwrap_or(Value::Nil))? {
            0 => Standing::New,
            1 => Standing::Settled(Reading::Ours),
            3 => Standing::Settled(Reading::Theirs),
            _ => Standing::Changed,
        };
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        forms.push(SharedForm { name: name.clone(), text, standing });
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_give_way() {
        let inbox = Inbox::default();
        (0..EVENTS_MAX + 2).for_each(|number| inbox.put(number.to_string()));
        assert_eq!(inbox.waiting().lost, 2);
        let events = inbox.take();
        assert_eq!((events.len(), events[0].as_str()), (EVENTS_MAX, "2"));
        assert!(inbox.take().is_empty());
    }
}
