//! Reads the definitions in `/jobs`, and updates them together with the marks that they agree with their jobs.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use cronhold_core::JobId;
use cronhold_jobfile::foreign::castle;
use cronhold_store::{DefinitionUpdate, Fault, SharedDefinition};
use cronhold_store_remote::faults::as_unsent;

use super::CastleZnodes;
use super::job_texts::{FoundForm, JobText, all_names, mark_of, read_forms, znodes_of};
use crate::faults;
use crate::wire::{WriteFailure, Znode, ZnodeWrite, ZooKeeperSession};

/// How often an update is repeated because the znode has changed, for example its next time.
const ATTEMPTS_MAX: usize = 16;

/// Updates that are sent without waiting for each other. The first start with many jobs writes a znode for each.
const UPDATES_IN_FLIGHT: usize = 64;

impl CastleZnodes {
    /// The definitions with these names, or all.
    pub(super) async fn read_definitions(&self, names: Option<&[String]>) -> Result<Vec<SharedDefinition>, Fault> {
        let (session, paths) = (self.ensemble.session().await?, self.ensemble.paths());
        let found = match names {
            Some(names) => read_forms(&session, paths, names).await?,
            None => read_forms(&session, paths, &all_names(&session, paths).await?).await?,
        };
        Ok(found.into_iter().map(FoundForm::into_definition).collect())
    }

    /// Updates definitions, each only if its text is still the one that was found, except for the next time.
    pub(super) async fn settle_definitions(&self, updates: &[DefinitionUpdate]) -> Result<Vec<bool>, Fault> {
        let session = self.ensemble.session().await?;
        let mut settled = Vec::with_capacity(updates.len());
        for part in updates.chunks(UPDATES_IN_FLIGHT) {
            let part = part.iter().map(|update| Box::pin(self.settle_definition(&session, update)));
            settled.extend(all_of(part.collect()).await);
        }
        settled.into_iter().collect()
    }

    async fn settle_definition(&self, session: &ZooKeeperSession, update: &DefinitionUpdate) -> Result<bool, Fault> {
        let paths = self.ensemble.paths();
        for _ in 0..ATTEMPTS_MAX {
            let names = [update.name.clone()];
            let Some(found) = read_forms(session, paths, &names).await?.pop() else { return Ok(false) };
            let now = found.text().map(|text| castle::without_next(&text.text));
            if now != update.found.as_deref().map(castle::without_next) {
                return Ok(false);
            }
            let text = update.text.as_deref().map(|text| self.with_next_time(&update.name, text));
            let mut writes = self.writes_of(&found, text.as_deref());
            writes.push(self.ensemble.seal().check(session, true).await?);
            if writes.iter().map(ZnodeWrite::bytes).sum::<usize>() > self.ensemble.url().request_bytes_max() {
                // castle-cron does not see a job whose text no request can hold. The job itself is stored.
                return Ok(true);
            }
            match session.write(&writes).await {
                Ok(_) => {
                    self.note_written(&found, text);
                    return Ok(true);
                }
                Err(WriteFailure::Refused(_)) => self.ensemble.create_folders(session).await?,
                Err(WriteFailure::Fault(fault)) => return Err(as_unsent(fault)),
            }
        }
        let servers = self.ensemble.url().server_list();
        Err(faults::unreachable(&servers, &format!("other processes keep changing /jobs/{}", update.name)))
    }

    /// The text with the next time of the job, if that is known.
    fn with_next_time(&self, name: &str, text: &str) -> String {
        let id = JobId::parse(name).ok().filter(|_| self.mirror.is_loaded());
        let next = id.map(|id| self.mirror.with_schedule(|schedule| schedule.next_of(&id)));
        next.and_then(|next| castle::with_next(text, next)).unwrap_or_else(|| text.to_owned())
    }

    /// The operations that replace the text and the mark.
    fn writes_of(&self, found: &FoundForm, text: Option<&str>) -> Vec<ZnodeWrite> {
        let [job, mark] = znodes_of(self.ensemble.paths(), &found.name);
        let write = |path: String, before: Option<&Znode>, data: Option<Vec<u8>>| {
            let version = before.map(|znode| znode.stat.version);
            match (version, data) {
                (Some(version), Some(data)) if before.is_some_and(|znode| znode.data == data) => {
                    Some(ZnodeWrite::Check { path, version })
                }
                (Some(version), Some(data)) => Some(ZnodeWrite::Set { path, data, version: Some(version) }),
                (Some(version), None) => Some(ZnodeWrite::Delete { path, version: Some(version) }),
                (None, Some(data)) => Some(ZnodeWrite::Create { path, data, is_ephemeral: false }),
                (None, None) => None,
            }
        };
        let text_write = write(job, found.job.as_ref(), text.map(|text| text.as_bytes().to_vec()));
        let mark_write = write(mark, found.mark.as_ref(), text.map(mark_of));
        text_write.into_iter().chain(mark_write).collect()
    }

    fn note_written(&self, found: &FoundForm, text: Option<String>) {
        let version = |text: &str| match &found.job {
            Some(znode) if znode.data == text.as_bytes() => znode.stat.version,
            Some(znode) => znode.stat.version.wrapping_add(1),
            None => 0,
        };
        let text = text.map(|text| JobText { version: version(&text), text });
        self.texts.set(&found.name, text);
    }
}

/// Waits for all futures, and returns their results in order.
async fn all_of<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(ready) = Pin::new(future).poll(context) {
                *result = Some(ready);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
