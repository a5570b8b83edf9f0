//! The parts of a store that all its handles share.

use std::path::PathBuf;
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_store::{Fault, HandleId, HintBoard, StoreHealthReport, Unit, WriterId};
use cronhold_store_remote::WriteCounters;

use crate::castle::CastleZnodes;
use crate::commit::{TransactionUnit, ZnodeCommitter};
use crate::ensemble::Ensemble;
use crate::heartbeat::HeartbeatTransaction;
use crate::known_znodes::KnownZnodes;
use crate::load::RecordLoader;
use crate::mirror::RecordMirror;
use crate::outputs::Outputs;
use crate::url::ZooKeeperUrl;
use crate::writer_registry::WriterRegistry;

/// The parts of a store.
#[derive(Debug)]
pub(crate) struct EnsembleStore {
    pub(crate) ensemble: Arc<Ensemble>,
    pub(crate) committer: ZnodeCommitter,
    pub(crate) records: RecordLoader,
    pub(crate) mirror: Arc<RecordMirror>,
    pub(crate) castle: Arc<CastleZnodes>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) heartbeats: HeartbeatTransaction,
    pub(crate) counters: Arc<WriteCounters>,
    pub(crate) board: Arc<HintBoard>,
    writers: Arc<WriterRegistry>,
}

impl EnsembleStore {
    /// Does not connect.
    pub(crate) fn new(url: &ZooKeeperUrl, zones: &Arc<ZoneRegistry>, file: Option<PathBuf>) -> Self {
        let (known, writers) = (Arc::new(KnownZnodes::default()), Arc::new(WriterRegistry::default()));
        let ensemble = Arc::new(Ensemble::new(url, file, Arc::clone(&known)));
        let (board, counters) = (Arc::new(HintBoard::default()), Arc::new(WriteCounters::default()));
        let outputs = Arc::new(Outputs::new(Arc::clone(&ensemble)));
        let mirror = RecordMirror::new(
            Arc::clone(&ensemble),
            Arc::clone(zones),
            Arc::clone(&writers),
            Arc::clone(&board),
            Arc::clone(&known),
        );
        let mirror = Arc::new(mirror);
        let castle = Arc::new(CastleZnodes::new(Arc::clone(&ensemble), Arc::clone(&mirror)));
        let committer = ZnodeCommitter::new(
            Arc::clone(&ensemble),
            Arc::clone(&known),
            Arc::clone(&writers),
            Arc::clone(&outputs),
            Arc::clone(&counters),
            castle.next_job(),
        );
        Self {
            committer,
            records: RecordLoader::new(Arc::clone(&ensemble), Arc::clone(&known), Arc::clone(zones)),
            mirror,
            castle,
            outputs,
            heartbeats: HeartbeatTransaction::new(Arc::clone(&ensemble), known, Arc::clone(zones)),
            counters,
            board,
            writers,
            ensemble,
        }
    }

    /// Encodes the records of units.
    pub(crate) fn encode_units(&self, units: Vec<Unit>) -> Vec<TransactionUnit> {
        units.into_iter().map(|unit| TransactionUnit::new(self.ensemble.paths(), unit)).collect()
    }

    /// Assigns a number to a new writer: the number of times that a znode was set.
    pub(crate) async fn enroll(&self, handle: HandleId) -> Result<WriterId, Fault> {
        let number = u32::try_from(self.ensemble.count_writer().await?).map_err(|_| {
            Fault::Permanent(format!("{}: all writer numbers are in use", self.ensemble.url().server_list()))
        })?;
        self.writers.enroll(number, handle);
        Ok(WriterId(number))
    }

    /// The state of the store.
    pub(crate) fn health(&self) -> StoreHealthReport {
        let description = format!("ZooKeeper {}", self.ensemble.url());
        let report = self.counters.health(self.ensemble.trouble(), description, self.ensemble.warnings());
        StoreHealthReport { sealed: self.ensemble.seal().reason(), ..report }
    }
}
