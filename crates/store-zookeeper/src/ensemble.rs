//! The ensemble as the rest of the store uses it: the current session, which is replaced when it ends, the time, and what
//! is wrong. Each new session checks the version, the position and the permanent znodes before anything else uses it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cronhold_schedule::Instant;
use cronhold_store::{Fault, StoreLimits, lock_mutex};
use cronhold_store_remote::faults::as_unsent;
use tokio::time;

use crate::clock::LeaderClock;
use crate::faults;
use crate::known_znodes::KnownZnodes;
use crate::paths::ZnodePaths;
use crate::position::{EnsemblePosition, PositionTracker};
use crate::seal::ZnodeSeal;
use crate::server_version::ServerVersion;
use crate::url::ZooKeeperUrl;
use crate::wire::{WriteFailure, WriteRefusal, WriteRefusalReason, ZnodeStat, ZnodeWrite, ZooKeeperSession};

/// The format of the znodes. A later format has a higher number.
const FORMAT: u32 = 1;

/// Bytes of a transaction besides its largest record: a job is written together with its state and its cursors.
const RECORD_MARGIN: u64 = 48 << 10;

/// What is wrong with an ensemble whose store was deleted.
const NO_STORE: &str = "it has no store of Cronhold any more";

/// How often the permanent znodes are created while other processes create them too.
const CREATIONS_MAX: usize = 8;

/// The session with the ensemble, and what is known about the ensemble.
#[derive(Debug)]
pub(crate) struct Ensemble {
    url: ZooKeeperUrl,
    paths: ZnodePaths,
    session: tokio::sync::Mutex<SessionSlot>,
    known: Arc<KnownZnodes>,
    clock: LeaderClock,
    seal: ZnodeSeal,
    position: PositionTracker,
    version: Mutex<Option<ServerVersion>>,
    trouble: Mutex<Option<String>>,
}

/// The session, or how the last attempt to open one ended.
#[derive(Debug, Default)]
struct SessionSlot {
    session: Option<Arc<ZooKeeperSession>>,
    failure: Option<(time::Instant, Fault)>,
}

impl Ensemble {
    /// Does not connect. `file` keeps the position of the store, and `known` is cleared with each new session.
    pub(crate) fn new(url: &ZooKeeperUrl, file: Option<PathBuf>, known: Arc<KnownZnodes>) -> Self {
        let paths = ZnodePaths::new(url.root());
        Self {
            url: url.clone(),
            seal: ZnodeSeal::new(paths.seal()),
            paths,
            session: tokio::sync::Mutex::default(),
            known,
            clock: LeaderClock::default(),
            position: PositionTracker::new(file),
            version: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    pub(crate) fn url(&self) -> &ZooKeeperUrl {
        &self.url
    }

    pub(crate) fn paths(&self) -> &ZnodePaths {
        &self.paths
    }

    pub(crate) fn clock(&self) -> &LeaderClock {
        &self.clock
    }

    pub(crate) fn seal(&self) -> &ZnodeSeal {
        &self.seal
    }

    /// How much the store keeps.
    pub(crate) fn limits(&self) -> StoreLimits {
        let settings = self.url.settings();
        let request = self.url.request_bytes_max() as u64;
        StoreLimits {
            record: Some(request.saturating_sub(RECORD_MARGIN)),
            unit: Some(request),
            output: Some(settings.output),
            outputs: Some(settings.outputs),
            kept: Some(settings.keep),
        }
    }

    /// The session. Connects if there is none. If an attempt fails, all who waited for it get its fault, so that each
    /// request fails by its own deadline.
    pub(crate) async fn session(&self) -> Result<Arc<ZooKeeperSession>, Fault> {
        self.position.check()?;
        let begin = time::Instant::now();
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.session.as_ref().filter(|session| session.is_alive()) {
            return Ok(Arc::clone(session));
        }
        if let Some((_, fault)) = slot.failure.as_ref().filter(|(at, _)| *at >= begin) {
            return Err(fault.clone());
        }
        *slot = SessionSlot::default();
        self.known.clear();
        let connected = self.connect().await;
        *lock_mutex(&self.trouble) = connected.as_ref().err().map(ToString::to_string);
        let session = Arc::new(connected.inspect_err(|fault| {
            slot.failure = Some((time::Instant::now(), fault.clone()));
        })?);
        slot.session = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Why the last session could not be opened; `None` if it could.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock_mutex(&self.trouble).clone()
    }

    async fn connect(&self) -> Result<ZooKeeperSession, Fault> {
        let session = ZooKeeperSession::connect(&self.url).await?;
        self.prepare(&session).await?;
        Ok(session)
    }

    /// The time of the store, which never decreases. Also finds out whether the store is sealed, rolled back or replaced.
    pub(crate) async fn time(&self) -> Result<Instant, Fault> {
        let session = self.session().await?;
        let time = self.observe_time(&session).await?;
        let mut found = session.read(&[self.paths.seal(), self.paths.meta()], false).await?;
        let (meta, seal) = (found.pop().flatten(), found.pop().flatten());
        let servers = self.url.server_list();
        let Some(meta) = meta else { return Err(self.position.reject(&servers, NO_STORE)) };
        self.position.verify_epoch(&servers, &read_meta(&meta.data, &self.paths.meta())?)?;
        self.seal.learn(seal)?;
        Ok(time)
    }

    /// A lower bound of the time, by the clock of the current leader, to which its clock can be set back.
    pub(crate) async fn lock_time(&self) -> Result<Instant, Fault> {
        let time = self.observe_time(&*self.session().await?).await?;
        Ok(self.clock.lower_bound(time::Instant::now()).unwrap_or(time))
    }

    /// A lower bound of the time that can be compared with the ends of these locks.
    pub(crate) async fn time_after(&self, stats: &[ZnodeStat]) -> Result<Instant, Fault> {
        let now = time::Instant::now();
        match self.clock.lower_bound(now).filter(|_| stats.iter().all(|stat| self.clock.covers(stat, now))) {
            Some(time) => Ok(time),
            None => self.lock_time().await,
        }
    }

    /// Counts the writers, and returns the number of a new one.
    pub(crate) async fn count_writer(&self) -> Result<i32, Fault> {
        let session = self.session().await?;
        let before = self.position.known();
        let stat = session.set(&self.paths.writers(), b"").await.map_err(as_unsent)?;
        self.position.verify_writers(&self.url.server_list(), before, &stat)?;
        Ok(stat.version)
    }

    /// Sets the clock, and returns the time of the store.
    async fn observe_time(&self, session: &ZooKeeperSession) -> Result<Instant, Fault> {
        let (sent, before) = (time::Instant::now(), self.position.known());
        let stat = session.set(&self.paths.clock(), b"").await.map_err(as_unsent)?;
        self.position.verify_clock(&self.url.server_list(), before, &stat)?;
        Ok(self.clock.observe(&stat, sent, time::Instant::now()))
    }

    /// What its operator should know.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let version = *lock_mutex(&self.version);
        let old = version.filter(|version| *version < ServerVersion::SAFE);
        let warn = |version| {
            format!(
                "ZooKeeper {version} can lose transactions when a member joins the ensemble, and runs with them; upgrade \
                 to {} or later",
                ServerVersion::SAFE
            )
        };
        let behind = self.clock.setback(time::Instant::now()).map(|span| {
            format!(
                "the clock of the ZooKeeper leader is {span} behind a time that it had before, because it was set back or \
                 the leader has changed; nothing becomes due until it reaches that time"
            )
        });
        old.map(warn).into_iter().chain(behind).collect()
    }

    /// Checks a new session: the version of the servers, that the store was not rolled back, and that its znodes exist.
    async fn prepare(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        let servers = self.url.server_list();
        if self.url.tls().is_none() {
            let version = ServerVersion::find(self.url.servers()).await;
            if version.is_some_and(|version| version < ServerVersion::OLDEST) {
                return Err(Fault::Permanent(format!("{servers}: {}", faults::TOO_OLD)));
            }
            *lock_mutex(&self.version) = version;
        }
        let before = self.position.known();
        let (epoch, writers) = self.create_permanent(session, &servers).await?;
        let sent = time::Instant::now();
        let stat = session.set(&self.paths.clock(), b"").await.map_err(as_unsent)?;
        let found = EnsemblePosition { epoch, zxid: stat.zxid, clock: stat.version, writers: writers.version };
        self.position.verify(&servers, before.as_ref(), &found)?;
        self.clock.observe(&stat, sent, time::Instant::now());
        Ok(())
    }

    /// Creates folders again that were deleted while the store is in use.
    pub(crate) async fn create_folders(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        let servers = self.url.server_list();
        let (epoch, _) = self.create_permanent(session, &servers).await?;
        self.position.verify_epoch(&servers, &epoch)
    }

    /// Creates the permanent znodes that do not exist, and returns the epoch of the store and the state of the writers.
    async fn create_permanent(&self, session: &ZooKeeperSession, servers: &str) -> Result<(String, ZnodeStat), Fault> {
        let meta = self.paths.meta();
        let mut paths = self.paths.permanent();
        let folders = paths.len();
        paths.push(meta.clone());
        let place = |path: &str| paths.iter().position(|other| other == path).expect("it is permanent");
        let counts = [place(&self.paths.writers()), place(&self.paths.clock())];
        for _ in 0..CREATIONS_MAX {
            let found = session.read(&paths, true).await?;
            let missing = paths.iter().zip(&found).filter(|(_, znode)| znode.is_none()).map(|(path, _)| path);
            let create =
                |path: &String, data: Vec<u8>| ZnodeWrite::Create { path: path.clone(), data, is_ephemeral: false };
            let writes: Vec<ZnodeWrite> = match &found[folders] {
                Some(found_meta) => {
                    let epoch = read_meta(&found_meta.data, &meta)?;
                    if let Some(place) = counts.iter().find(|place| found[**place].is_none()) {
                        // Its data version counts, and a new znode would begin at 0 again.
                        return Err(Fault::Permanent(format!(
                            "{servers}: the znode {} was deleted, and cannot be created again; restore the ensemble",
                            paths[*place]
                        )));
                    }
                    if let (true, Some(writers)) = (found.iter().all(Option::is_some), &found[counts[0]]) {
                        return Ok((epoch, writers.stat));
                    }
                    missing.map(|path| create(path, Vec::new())).collect()
                }
                None if self.position.has_known_store() => return Err(self.position.reject(servers, NO_STORE)),
                None => {
                    let text = format!("{FORMAT} {:016x}\n", random()?).into_bytes();
                    let data = |path: &String| if *path == meta { text.clone() } else { Vec::new() };
                    missing.map(|path| create(path, data(path))).collect()
                }
            };
            match session.write(&writes).await {
                // Another process creates them at the same time.
                Ok(_) | Err(WriteFailure::Refused(WriteRefusal { reason: WriteRefusalReason::Exists, .. })) => {}
                Err(WriteFailure::Refused(refusal)) => {
                    return Err(faults::unexpected(servers, &format!("{refusal:?} for a new znode")));
                }
                Err(WriteFailure::Fault(fault)) => return Err(as_unsent(fault)),
            }
        }
        Err(faults::unreachable(servers, "other processes keep changing the znodes of the store"))
    }
}

/// The epoch in the data of the znode `meta`.
fn read_meta(data: &[u8], path: &str) -> Result<String, Fault> {
    let text = std::str::from_utf8(data).unwrap_or_default();
    match text.trim_end().split_once(' ') {
        Some((format, epoch)) if format.parse() == Ok(FORMAT) => Ok(epoch.to_owned()),
        Some((format, _)) => Err(Fault::Permanent(format!(
            "the znode {path} has format {format}, and this version of Cronhold supports format {FORMAT}; upgrade this node"
        ))),
        None => {
            Err(Fault::Permanent(format!("the znode {path} is not one of Cronhold; choose another root in the URL")))
        }
    }
}

/// A number that no other process has.
pub(crate) fn random() -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Fault::Permanent(format!("cannot get random numbers from the system: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}
