//! What all handles on a store share: the line, what was seen of the store so far, and counts. What it can do is
//! written where it belongs: [`crate::commit`], [`crate::load`], [`crate::listing`], [`crate::beat`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use cronhold_core::NodeId;
use cronhold_schedule::{Instant, Zones};
use cronhold_store::{Fault, Health, Writer};
use redis::{Cmd, Value};
use tokio::time::Instant as Moment;

use crate::codec::reply;
use crate::commit::Foresight;
use crate::heal::{self, Heal, Known, Notebook};
use crate::hints::Hints;
use crate::link::{Link, Script};
use crate::outputs::{Outputs, command};
use crate::peers::Peers;
use crate::projection::Names;
use crate::url::{RedisUrl, Settings};
use crate::{keys, start};

static ENROLL: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[
        include_str!("scripts/prelude.lua"),
        include_str!("scripts/ages.lua"),
        include_str!("scripts/enroll.lua"),
    ])
});

/// The form of our keys that this program knows.
pub(crate) const SCHEMA: &str = "1";

/// How long a commit waits for one replica.
const REPLICA_MILLIS: u128 = 500;

/// What all handles share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) url: RedisUrl,
    pub(crate) zones: Arc<Zones>,
    pub(crate) accept_loss: bool,
    pub(crate) link: Link,
    /// The key whose hash slot all keys are in.
    pub(crate) slot: [String; 1],
    /// Whether nodes of Cronken run the same jobs.
    pub(crate) peers: Arc<Peers>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) outputs: Outputs,
    pub(crate) names: Names,
    pub(crate) known: Known,
    pub(crate) foresight: Foresight,
    pub(crate) tally: Tally,
    pub(crate) tending: Tending,
    pub(crate) heal: Heal,
    notebook: Option<Notebook>,
    /// What the server should be set up otherwise for.
    warnings: Mutex<Vec<String>>,
    random: AtomicU64,
}

impl Inner {
    pub(crate) fn new(
        url: RedisUrl,
        zones: Arc<Zones>,
        accept_loss: bool,
        link: Link,
        notebook: Option<Notebook>,
    ) -> Result<Self, getrandom::Error> {
        let mut seeds = [0; 16];
        getrandom::fill(&mut seeds)?;
        let [handles, random] =
            [&seeds[..8], &seeds[8..]].map(|seed| seed.iter().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte)));
        let noted = notebook.as_ref().and_then(Notebook::read);
        let peers = Arc::new(Peers::new(&url.settings));
        let namespace = &url.settings.namespace;
        Ok(Self {
            slot: [keys::meta(namespace)],
            outputs: Outputs::new(link.clone(), namespace, Arc::clone(&peers)),
            zones,
            accept_loss,
            link,
            peers,
            hints: Arc::new(Hints::new(handles)),
            names: Names::default(),
            known: Known::new(&format!("{handles:016x}"), noted),
            foresight: Foresight::default(),
            tally: Tally::default(),
            tending: Tending::default(),
            heal: Heal::default(),
            notebook,
            warnings: Mutex::default(),
            random: AtomicU64::new(random),
            url,
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.url.settings
    }

    /// A text that nobody else has: a random number that this process counts on from.
    pub(crate) fn random_text(&self) -> String {
        format!("{:016x}", self.random.fetch_add(1, Ordering::Relaxed))
    }

    /// A number for a new writer.
    pub(crate) async fn enroll(&self) -> Result<Writer, Fault> {
        let seen = start::look(&self.link, self.accept_loss).await?;
        if let Some(refusal) = seen.refusal {
            return Err(Fault::Broken(refusal));
        }
        self.tally.replicas.store(seen.replicas, Ordering::Relaxed);
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = seen.warnings;
        let (epoch, seq) = self.known.get();
        let args = [
            self.settings().namespace.clone(),
            epoch,
            seq.to_string(),
            self.random_text(),
            SCHEMA.to_owned(),
            self.peers.wanted().to_owned(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let answer = reply::list(self.link.call(&ENROLL, &self.slot, args).await?)?;
        let mut answer = self.standing(answer).await?.into_iter();
        let mut next = || answer.next().unwrap_or(Value::Nil);
        let writer = reply::number(&next())?;
        let (epoch, seq) = (reply::text(next())?, reply::number(&next())?);
        self.peers.enrolled(reply::number(&next())? != 0);
        self.known.set(epoch, seq.cast_unsigned());
        self.note();
        let writer =
            u32::try_from(writer).map_err(|_| reply::strange("the number of a writer", &Value::Int(writer)))?;
        self.known.enrolled(writer);
        self.link.has_worked();
        Ok(Writer(writer))
    }

    /// The answer of a script, unless it says that nothing may be written now.
    pub(crate) async fn standing(&self, answer: Vec<Value>) -> Result<Vec<Value>, Fault> {
        let word = match answer.first() {
            Some(Value::BulkString(word)) => word.as_slice(),
            _ => return Ok(answer),
        };
        let server = self.link.server();
        match word {
            b"healing" => {
                let rest = answer.get(1).map_or(Ok(0), reply::number)?;
                Err(Fault::Away(format!("{server}: {}", heal::going(u64::try_from(rest).unwrap_or(0)))))
            }
            b"back" => Err(self.heal().await),
            _ => Err(reply::strange("what a script says", &answer[0])),
        }
    }

    /// The store's own time. It is the first that everybody asks for, so that whoever only looks hears of peers as well.
    pub(crate) async fn time(&self) -> Result<Instant, Fault> {
        let peers = command("HGET", &[&self.slot[0], "peers"]);
        let mut answers = self.link.ask(vec![command("TIME", &[]), peers]).await?.into_iter();
        let mut next = || answers.next().unwrap_or(Value::Nil);
        let answer = reply::list(self.link.checked(next())?)?;
        // A key that cannot be read is told of by whoever needs it.
        if let Value::BulkString(word) = next() {
            self.peers.saw(&String::from_utf8_lossy(&word));
        }
        let parts = answer.into_iter().map(|part| {
            let part = reply::text(part)?;
            part.parse::<i64>().map_err(|_| Fault::Broken(format!("Redis says that it is `{part}`")))
        });
        match parts.collect::<Result<Vec<_>, Fault>>()?[..] {
            [seconds, micros] => Ok(Instant::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros))),
            _ => Err(Fault::Broken("Redis does not say what time it is".to_owned())),
        }
    }

    /// What is sent behind a commit: a master that has replicas is asked whether one of them has it.
    pub(crate) fn wait_for_replicas(&self) -> Vec<Cmd> {
        let has_replicas = self.tally.replicas.load(Ordering::Relaxed) > 0;
        // Whoever waits for the answer must not give up before the server does.
        let millis = REPLICA_MILLIS.min(self.settings().timeout.as_millis() / 4).to_string();
        if has_replicas { vec![command("WAIT", &["1", &millis])] } else { Vec::new() }
    }

    /// Counts the replicas anew. Without an answer, what was known of them stays.
    pub(crate) async fn count_replicas(&self) {
        if let Ok(replicas) = start::replicas(&self.link).await {
            self.tally.replicas.store(replicas, Ordering::Relaxed);
        }
    }

    /// Notes on disk how far the store has come.
    pub(crate) fn note(&self) {
        if let Some(notebook) = &self.notebook {
            let (epoch, seq) = self.known.epoch();
            notebook.note(&epoch, seq, Moment::now());
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the replicas have said.
    pub(crate) fn has_waited(&self, answers: &[Value]) {
        if let Some(Value::Int(count)) = answers.first() {
            if *count == 0 {
                // They may be gone for good, and every commit would wait for them.
                self.tally.replicas.store(0, Ordering::Relaxed);
            }
            self.tally.unheard.store(*count == 0, Ordering::Relaxed);
        }
    }

    /// How the store is doing.
    pub(crate) fn health(&self) -> Health {
        let Tally { commits, units, failures, unheard, .. } = &self.tally;
        let unheard = unheard
            .load(Ordering::Relaxed)
            .then(|| "no replica has the latest commits: they are lost if the server is".to_owned());
        let failures = failures.load(Ordering::Relaxed);
        let strange = (failures > 0).then(|| {
            format!("{failures} writes to keys that Cronken's clients read were left out: the keys are of a wrong type")
        });
        Health {
            trouble: self.link.trouble().or_else(|| self.tally.refused()),
            description: format!("Redis at {}", self.url),
            commits: commits.load(Ordering::Relaxed),
            units: units.load(Ordering::Relaxed),
            warnings: self
                .warnings()
                .into_iter()
                .chain(unheard)
                .chain(strange)
                .chain(self.heal.warning())
                .chain(self.peers.warning())
                .collect(),
        }
    }
}

/// Counts for those who ask how the store is doing.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    commits: AtomicU64,
    units: AtomicU64,
    /// Writes to keys that are not ours alone which were left out.
    failures: AtomicU64,
    /// Replicas that the server had when it was last asked.
    pub(crate) replicas: AtomicU64,
    /// Whether the latest commit reached no replica.
    unheard: AtomicBool,
    /// Why the latest write was not done, if it was not.
    refused: Mutex<Option<String>>,
}

impl Tally {
    /// A commit of so many units was answered.
    pub(crate) fn count(&self, units: usize, failures: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.units.fetch_add(units as u64, Ordering::Relaxed);
        self.failed(failures);
    }

    /// What came of a write.
    pub(crate) fn wrote(&self, fault: Option<&Fault>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused = fault.map(ToString::to_string);
    }

    fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn failed(&self, failures: u64) {
        self.failures.fetch_add(failures, Ordering::Relaxed);
    }
}

/// When nodes of this process were last shown to others.
#[derive(Debug, Default)]
pub(crate) struct Tending(Mutex<BTreeMap<NodeId, Moment>>);

impl Tending {
    /// Whether a node's time has come; it is shown then.
    pub(crate) fn comes(&self, node: NodeId, now: Moment, every: Duration) -> bool {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let comes = shown.get(&node).is_none_or(|last| now.duration_since(*last) >= every);
        if comes {
            shown.insert(node, now);
        }
        comes
    }

    /// It was not shown after all.
    pub(crate) fn forget(&self, node: NodeId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
    }
}
