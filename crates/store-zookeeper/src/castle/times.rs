//! Keeps the times true that castle-cron's znodes show: `NextRuntime` in `/jobs/NAME`, and `/nextjob`. `NextRuntime` is a
//! conditional set of its own, so that it never undoes an edit by hand. `/nextjob` is corrected under `/joblock`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cronhold_core::JobId;
use cronhold_jobfile::foreign::castle;
use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;

use super::CastleZnodes;
use super::job_lock::JobLock;
use super::job_texts::JobText;
use crate::wire::{WriteFailure, ZnodeWrite, ZooKeeperSession};

/// Times that one transaction sets.
const TIMES_PER_WRITE: usize = 64;

/// Bytes of the texts that one transaction sets, unless a single one is larger.
const BYTES_PER_WRITE: usize = 400_000;

/// How long a correction waits for `/joblock`.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A new time of a job.
#[derive(Debug)]
struct TimeUpdate {
    name: String,
    text: String,
    /// The version of the znode that has another time.
    version: i32,
}

impl CastleZnodes {
    /// Writes the times of these jobs where they are not right. A znode that has changed meanwhile is left alone: its
    /// watch reports the change.
    pub(super) async fn write_times(
        &self,
        session: &ZooKeeperSession,
        jobs: impl IntoIterator<Item = JobId>,
    ) -> Result<(), Fault> {
        let updates: Vec<TimeUpdate> = jobs.into_iter().filter_map(|job| self.time_update(&job)).collect();
        let mut rest = updates.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |update: &&TimeUpdate| {
                bytes += update.text.len();
                bytes <= BYTES_PER_WRITE
            };
            let count = rest.iter().take(TIMES_PER_WRITE).take_while(fits).count().max(1);
            let (updates, others) = rest.split_at(count);
            rest = others;
            if !self.write_together(session, updates).await? {
                for update in updates {
                    self.write_together(session, std::slice::from_ref(update)).await?;
                }
            }
        }
        Ok(())
    }

    fn time_update(&self, job: &JobId) -> Option<TimeUpdate> {
        let known = self.texts.get(job.as_str())?;
        let next = self.mirror.with_schedule(|schedule| schedule.next_of(job));
        let text = castle::with_next(&known.text, next)?;
        Some(TimeUpdate { name: job.to_string(), text, version: known.version })
    }

    async fn write_together(&self, session: &ZooKeeperSession, updates: &[TimeUpdate]) -> Result<bool, Fault> {
        let set = |update: &TimeUpdate| ZnodeWrite::Set {
            path: self.ensemble.paths().castle_job(&update.name),
            data: update.text.clone().into_bytes(),
            version: Some(update.version),
        };
        let writes: Vec<ZnodeWrite> = updates.iter().map(set).collect();
        match session.write(&writes).await {
            Ok(_) => {
                for update in updates {
                    let text = JobText { text: update.text.clone(), version: update.version.wrapping_add(1) };
                    self.texts.set(&update.name, Some(text));
                }
                Ok(true)
            }
            Err(WriteFailure::Refused(_)) => Ok(false),
            Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
        }
    }

    /// All jobs that have a znode.
    pub(super) fn all_jobs(&self) -> BTreeSet<JobId> {
        self.texts.names().iter().filter_map(|name| JobId::parse(name).ok()).collect()
    }

    /// Makes `/nextjob` true, under `/joblock`. Returns false if another client holds the lock for too long.
    pub(super) async fn correct_next_job(&self, session: &Arc<ZooKeeperSession>) -> Result<bool, Fault> {
        let Some(lock) = JobLock::acquire(&self.ensemble, session, LOCK_WAIT).await? else { return Ok(false) };
        let corrected = self.write_next_job(session).await;
        lock.release().await?;
        corrected.map(|()| true)
    }

    async fn write_next_job(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        self.mirror.read(|_| ()).await?;
        let Some(expected) = self.next_job.expected() else { return Ok(()) };
        let path = self.next_job.path().to_owned();
        let found = session.read(std::slice::from_ref(&path), true).await?.pop().flatten();
        let data = expected.into_bytes();
        let write = match found {
            Some(znode) if znode.data == data => return Ok(()),
            Some(_) => ZnodeWrite::Set { path, data, version: None },
            None => ZnodeWrite::Create { path, data, is_ephemeral: false },
        };
        match session.write(&[write]).await {
            // Another client has created or deleted it at the same time, which the watch reports.
            Ok(_) | Err(WriteFailure::Refused(_)) => Ok(()),
            Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
        }
    }

    /// For a command that has changed jobs: makes all times true, without following the znodes.
    pub(super) async fn publish_all_times(&self) -> Result<(), Fault> {
        let session = self.ensemble.session().await?;
        self.mirror.read(|_| ()).await?;
        self.load_texts().await?;
        self.write_times(&session, self.all_jobs()).await?;
        if self.correct_next_job(&session).await? {
            return Ok(());
        }
        let (seconds, path) = (LOCK_WAIT.as_secs(), self.ensemble.paths().castle_job_lock());
        Err(Fault::Unavailable(format!(
            "/nextjob is not up to date, because another client has held {path} for more than {seconds} s"
        )))
    }
}
