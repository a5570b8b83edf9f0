//! The task that keeps the mirror up to date. After an interruption it reads everything again, because servers do not
//! report what happened meanwhile.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cronhold_core::record::RecordKey;
use cronhold_store::{Fault, lock_mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::{NamedHint, RecordMirror};
use crate::paths::RecordPlace;
use crate::wire::{TreeWatch, WatchReport, Znode, ZooKeeperSession};

/// Znodes of one read.
const READS_MAX: usize = 500;

/// Pause after the ensemble was unreachable.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Requests for an update that have not been answered yet.
type WaitingRequests = Vec<oneshot::Sender<()>>;

/// Follows changes until the store is closed.
pub(super) async fn follow(mirror: Arc<RecordMirror>, mut requests: mpsc::Receiver<oneshot::Sender<()>>) {
    let mut waiting = WaitingRequests::new();
    loop {
        if mirror.follow_session(&mut requests, &mut waiting).await.is_err() {
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// Changes that were reported and not read yet.
#[derive(Debug, Default)]
struct PendingChanges {
    paths: BTreeSet<String>,
    /// Whether the connection is down.
    is_interrupted: bool,
    /// Whether the watch reports nothing more.
    is_ended: bool,
}

impl PendingChanges {
    fn add(&mut self, report: WatchReport) {
        match report {
            WatchReport::Changed(path) => drop(self.paths.insert(path)),
            WatchReport::Interrupted => self.is_interrupted = true,
            WatchReport::Ended => self.is_ended = true,
        }
    }

    /// Adds all reports that have arrived.
    async fn drain(&mut self, watch: &mut TreeWatch) {
        while !self.is_ended {
            let report = tokio::select! {
                biased;
                report = watch.next() => report,
                () = ready(()) => return,
            };
            self.add(report);
        }
    }
}

impl RecordMirror {
    /// Follows changes until the connection is lost.
    async fn follow_session(
        &self,
        requests: &mut mpsc::Receiver<oneshot::Sender<()>>,
        waiting: &mut WaitingRequests,
    ) -> Result<(), Fault> {
        let session = self.ensemble.session().await?;
        let mut watch = session.watch(&self.ensemble.paths().records()).await?;
        self.reload(&session).await?;
        let mut changes = PendingChanges::default();
        while !changes.is_ended {
            if !changes.is_interrupted {
                let paths: Vec<String> = std::mem::take(&mut changes.paths).into_iter().collect();
                self.read_paths(&session, &paths).await?;
                for request in waiting.drain(..) {
                    // The caller may have given up.
                    let _ = request.send(());
                }
            }
            tokio::select! {
                report = watch.next() => changes.add(report),
                Some(request) = requests.recv() => waiting.push(request),
            }
            while let Ok(request) = requests.try_recv() {
                waiting.push(request);
            }
            // Everything that was reported before these requests has arrived.
            changes.drain(&mut watch).await;
        }
        Ok(())
    }

    /// Reads all records. Changes in the meantime are reported.
    async fn reload(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        session.sync().await?;
        let folders = self.ensemble.paths().record_folders();
        let names = session.children(&folders).await?;
        let in_folder = |folder: &String, names: Vec<String>| -> Vec<String> {
            names.into_iter().map(|name| format!("{folder}/{name}")).collect()
        };
        let paths: Vec<String> =
            folders.iter().zip(names).flat_map(|(folder, names)| in_folder(folder, names)).collect();
        self.read_paths(session, &paths).await?;
        let seen: BTreeSet<String> = paths.into_iter().collect();
        let gone = lock_mutex(&self.state).paths_besides(self.ensemble.paths(), &seen);
        self.read_paths(session, &gone).await?;
        self.is_loaded.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A deleted znode can be created again, and then counts from 0.
    fn forget_deleted(&self, paths: &[String], found: &[Option<Znode>]) {
        let deleted = paths.iter().zip(found).filter(|(_, znode)| znode.is_none());
        let places = deleted.filter_map(|(path, _)| self.ensemble.paths().place(path));
        let keys: Vec<RecordKey> = places.filter_map(RecordPlace::into_key).collect();
        self.known.forget(&keys);
    }

    /// Reads znodes, and publishes what has changed.
    async fn read_paths(&self, session: &ZooKeeperSession, paths: &[String]) -> Result<(), Fault> {
        for paths in paths.chunks(READS_MAX) {
            let found = session.read(paths, false).await?;
            self.forget_deleted(paths, &found);
            let mut state = lock_mutex(&self.state);
            let apply = |(path, znode): (&String, &Option<_>)| {
                state.apply(self.ensemble.paths(), &self.zones, &self.writers, path, znode.as_ref())
            };
            let hints: Vec<NamedHint> = paths.iter().zip(&found).filter_map(apply).collect();
            let has_new_times = state.schedule().has_changes();
            drop(state);
            if has_new_times {
                self.times_changed.notify_one();
            }
            // Nothing is new to a process that has just begun to follow changes.
            if self.is_loaded.load(Ordering::Relaxed) {
                self.publish(hints);
            }
        }
        Ok(())
    }
}
