//! Outputs of runs: a znode with the length, and below it pieces of a fixed size. The length and the piece that changes
//! are written together, and the version of the length orders appends of different processes.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_store::{Chunk, Fault, OutputSizes};
use cronhold_store_remote::faults::as_unsent;

use crate::ensemble::Ensemble;
use crate::wire::{WriteFailure, ZnodeWrite, ZooKeeperSession};

/// Bytes of a piece.
const PIECE: u64 = 128 << 10;

/// How often an append is repeated because another process appends to the same output.
const ATTEMPTS_MAX: usize = 16;

/// Znodes that are deleted in one transaction of several outputs. Their paths have at most 300 bytes.
const DELETIONS_MAX: usize = 1_000;

/// Outputs that are read or deleted in one request.
const BATCH: usize = 200;

/// Reads and writes outputs.
#[derive(Debug)]
pub(crate) struct Outputs {
    ensemble: Arc<Ensemble>,
}

/// The length of an output, and the data version of its znode.
#[derive(Debug, Clone, Copy)]
struct OutputHead {
    length: u64,
    version: Option<i32>,
}

impl Outputs {
    pub(crate) fn new(ensemble: Arc<Ensemble>) -> Self {
        Self { ensemble }
    }

    /// Appends the part of `bytes` that is not stored yet; `from` is the position of the first byte. Returns the length.
    pub(crate) async fn append(&self, run: RunId, from: u64, bytes: &[u8]) -> Result<u64, Fault> {
        let session = self.ensemble.session().await?;
        let most = self.ensemble.url().settings().output;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                self.ensemble.create_folders(&session).await?;
            }
            let seal = self.ensemble.seal().check(&session, attempt > 0).await?;
            let mut head = self.head(&session, run).await?;
            loop {
                let Some(known) = head.length.checked_sub(from) else {
                    return Err(Fault::Permanent(format!(
                        "cannot append to the output of run {run} at byte {from}: it has {} bytes",
                        head.length
                    )));
                };
                let rest = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
                if rest.is_empty() {
                    return Ok(head.length);
                }
                if head.length + rest.len() as u64 > most {
                    let message =
                        format!("the output of run {run} would exceed {most} bytes, which this store keeps at most");
                    return Err(Fault::Permanent(message));
                }
                match self.append_to_piece(&session, &seal, run, head, rest).await? {
                    Some(longer) => head = longer,
                    None => break,
                }
            }
        }
        Err(Fault::Unavailable(format!("other processes keep appending to the output of run {run}")))
    }

    /// Fills the last piece, or begins a new one. `None` if the output has changed meanwhile.
    async fn append_to_piece(
        &self,
        session: &ZooKeeperSession,
        seal: &ZnodeWrite,
        run: RunId,
        head: OutputHead,
        bytes: &[u8],
    ) -> Result<Option<OutputHead>, Fault> {
        let paths = self.ensemble.paths();
        let (piece, used) = (head.length - head.length % PIECE, head.length % PIECE);
        let path = paths.piece(run, piece);
        let taken = bytes.len().min(usize::try_from(PIECE - used).unwrap_or(usize::MAX));
        let length = head.length + taken as u64;
        let lengthen = match head.version {
            Some(version) => {
                ZnodeWrite::Set { path: paths.output(run), data: length_text(length), version: Some(version) }
            }
            None => ZnodeWrite::Create { path: paths.output(run), data: length_text(length), is_ephemeral: false },
        };
        let write = if used == 0 {
            ZnodeWrite::Create { path, data: bytes[..taken].to_vec(), is_ephemeral: false }
        } else {
            let found = session.read(std::slice::from_ref(&path), false).await?.pop().flatten();
            let Some(mut znode) = found.filter(|znode| znode.data.len() as u64 == used) else { return Ok(None) };
            znode.data.extend_from_slice(&bytes[..taken]);
            ZnodeWrite::Set { path, data: znode.data, version: Some(znode.stat.version) }
        };
        match session.write(&[lengthen, write, seal.clone()]).await {
            Ok(_) => Ok(Some(OutputHead { length, version: Some(head.version.map_or(0, |version| version + 1)) })),
            Err(WriteFailure::Refused(_)) => Ok(None),
            Err(WriteFailure::Fault(fault)) => Err(fault),
        }
    }

    /// Reads at most `most` bytes from a position.
    pub(crate) async fn read(&self, run: RunId, from: u64, most: usize) -> Result<Chunk, Fault> {
        let session = self.ensemble.session().await?;
        let length = self.head(&session, run).await?.length;
        let from = from.min(length);
        let until = from.saturating_add(most as u64).min(length);
        let mut bytes = Vec::new();
        let mut start = from - from % PIECE;
        while start < until {
            let path = self.ensemble.paths().piece(run, start);
            let piece = session.read(&[path], false).await?.pop().flatten();
            // The output was deleted meanwhile.
            let Some(piece) = piece else { return Ok(Chunk::default()) };
            let place = |at: u64| usize::try_from(at.saturating_sub(start).min(piece.data.len() as u64)).unwrap_or(0);
            bytes.extend_from_slice(&piece.data[place(from)..place(until)]);
            start += PIECE;
        }
        Ok(Chunk { bytes, length })
    }

    /// Runs that have an output, ordered by id, after this one.
    pub(crate) async fn list(&self, after: Option<RunId>, limit: usize) -> Result<Vec<RunId>, Fault> {
        let mut runs = self.all().await?;
        runs.retain(|run| after.is_none_or(|after| *run > after));
        runs.truncate(limit);
        Ok(runs)
    }

    /// The size of all outputs, and of those of these runs. The number of outputs is limited, so all lengths are read.
    pub(crate) async fn sizes(&self, runs: &[RunId]) -> Result<OutputSizes, Fault> {
        let total = self.lengths(&self.all().await?).await?.iter().sum();
        Ok(OutputSizes { total, of_runs: self.lengths(runs).await? })
    }

    /// Deletes outputs.
    pub(crate) async fn drop_all(&self, runs: &[RunId]) -> Result<(), Fault> {
        let session = self.ensemble.session().await?;
        let seal = self.ensemble.seal().check(&session, true).await?;
        let paths = self.ensemble.paths();
        for batch in runs.chunks(BATCH) {
            let outputs: Vec<String> = batch.iter().map(|run| paths.output(*run)).collect();
            let heads = session.read(&outputs, true).await?;
            let existing: Vec<String> =
                outputs.into_iter().zip(heads).filter(|(_, head)| head.is_some()).map(|(path, _)| path).collect();
            let mut deletions: Vec<Vec<ZnodeWrite>> = Vec::new();
            for (output, pieces) in existing.iter().zip(session.children(&existing).await?) {
                let delete = |path: String| ZnodeWrite::Delete { path, version: None };
                let pieces = pieces.into_iter().map(|piece| format!("{output}/{piece}"));
                deletions.push(pieces.chain([output.clone()]).map(delete).collect());
            }
            self.delete_together(&session, &seal, &deletions).await?;
        }
        Ok(())
    }

    /// Deletes several outputs in one transaction; if that is refused or too large, each in one of its own.
    async fn delete_together(
        &self,
        session: &ZooKeeperSession,
        seal: &ZnodeWrite,
        outputs: &[Vec<ZnodeWrite>],
    ) -> Result<(), Fault> {
        if outputs.iter().map(Vec::len).sum::<usize>() <= DELETIONS_MAX
            && delete(session, seal, outputs.iter().flatten()).await?
        {
            return Ok(());
        }
        for output in outputs {
            // If it is refused, another process deletes it, or a run that is still going on appends to it.
            for part in output.chunks(DELETIONS_MAX) {
                if !delete(session, seal, part.iter()).await? {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn head(&self, session: &ZooKeeperSession, run: RunId) -> Result<OutputHead, Fault> {
        let path = self.ensemble.paths().output(run);
        let found = session.read(std::slice::from_ref(&path), true).await?.pop().flatten();
        let Some(znode) = found else { return Ok(OutputHead { length: 0, version: None }) };
        Ok(OutputHead { length: read_length(&path, &znode.data)?, version: Some(znode.stat.version) })
    }

    async fn all(&self) -> Result<Vec<RunId>, Fault> {
        let session = self.ensemble.session().await?;
        session.sync().await?;
        let names = session.children(&[self.ensemble.paths().outputs()]).await?;
        let mut runs: Vec<RunId> = names.iter().flatten().filter_map(|name| RunId::parse(name).ok()).collect();
        runs.sort_unstable();
        Ok(runs)
    }

    async fn lengths(&self, runs: &[RunId]) -> Result<Vec<u64>, Fault> {
        let session = self.ensemble.session().await?;
        let mut lengths = Vec::with_capacity(runs.len());
        for batch in runs.chunks(BATCH) {
            let paths: Vec<String> = batch.iter().map(|run| self.ensemble.paths().output(*run)).collect();
            for (path, head) in paths.iter().zip(session.read(&paths, false).await?) {
                // An unreadable one is reported to those who read it or append to it.
                lengths.push(head.and_then(|head| read_length(path, &head.data).ok()).unwrap_or(0));
            }
        }
        Ok(lengths)
    }
}

/// Deletes znodes in one transaction. Returns false if it is refused.
async fn delete(
    session: &ZooKeeperSession,
    seal: &ZnodeWrite,
    deletions: impl Iterator<Item = &ZnodeWrite>,
) -> Result<bool, Fault> {
    let writes: Vec<ZnodeWrite> = deletions.cloned().chain([seal.clone()]).collect();
    match session.write(&writes).await {
        Ok(_) => Ok(true),
        Err(WriteFailure::Refused(_)) => Ok(false),
        Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
    }
}

fn length_text(length: u64) -> Vec<u8> {
    length.to_string().into_bytes()
}

fn read_length(path: &str, data: &[u8]) -> Result<u64, Fault> {
    let length = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
    length.ok_or_else(|| Fault::Permanent(format!("the znode {path} is not an output of Cronhold; delete it")))
}
