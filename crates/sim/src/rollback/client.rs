//! The daemon's part of a recovery: it sends its position with each request, remembers what it has written, and restores
//! that after a rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, NodeRecord};
use cronhold_schedule::Span;
use cronhold_store::rollback::{LostWrites, RollbackTracker, UnitWrites};
use cronhold_store::{Fault, Unit, UnitReceipt, UnitRefusal, WriterId};

use super::RollbackServer;
use super::server::{CommitReply, PositionRefusal, RecoveryReply, StoreRequest};
use crate::connection::{CallKind, StoreConnection};

/// One of this many heartbeats verifies the journal.
const BEATS_PER_VERIFICATION: u64 = 8;
/// How often a recovery checks whether all replies to earlier commits have arrived.
const REPLY_CHECK_EVERY: Span = Span::from_millis(1);

/// What one daemon process remembers of the store.
#[derive(Debug)]
pub(crate) struct RollbackClient {
    server: Arc<RollbackServer>,
    tracker: RollbackTracker,
    process: u64,
    /// Commits that were sent and have no reply yet.
    commits_in_flight: AtomicUsize,
    /// Whether it restores what it has written; false only to check that checkers detect it.
    restores: bool,
}

impl RollbackClient {
    /// `process` identifies the daemon process.
    pub(crate) fn new(server: Arc<RollbackServer>, process: u64, restores: bool) -> Self {
        Self { server, tracker: RollbackTracker::default(), process, commits_in_flight: AtomicUsize::new(0), restores }
    }

    fn request(&self) -> StoreRequest {
        StoreRequest { process: self.process, position: self.tracker.position() }
    }
}

impl StoreConnection {
    pub(crate) async fn enroll_tracked(&self, client: &RollbackClient) -> Result<WriterId, Fault> {
        let (server, request) = (Arc::clone(&client.server), client.request());
        let reply = self.call(CallKind::Write("enrolling"), move |store| {
            Box::pin(async move { server.enroll(store, &request).await })
        });
        let (writer, epoch, seq) = self.check_position(client, reply.await).await?;
        client.tracker.start_epoch(epoch, seq);
        client.tracker.record_writer(writer.0);
        Ok(writer)
    }

    pub(crate) async fn commit_tracked(
        &self,
        client: &RollbackClient,
        units: Vec<Unit>,
    ) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        let writes: Vec<UnitWrites> = units.iter().map(UnitWrites::from).collect();
        let (server, request) = (Arc::clone(&client.server), client.request());
        client.commits_in_flight.fetch_add(1, Ordering::Relaxed);
        let reply = self.call(CallKind::Write("commit"), move |store| {
            Box::pin(async move { Ok(server.commit(store, &request, units).await) })
        });
        let reply = reply.await;
        client.commits_in_flight.fetch_sub(1, Ordering::Relaxed);
        match self.check_position(client, reply).await {
            Ok(CommitReply { seq, results }) => {
                client.tracker.observe_seq(seq);
                for (writes, receipt) in writes.into_iter().zip(&results) {
                    let Ok(receipt) = receipt else { continue };
                    for change in &writes.changes {
                        if let RecordChange::Put(record) = change {
                            client.tracker.observe_record(record);
                        }
                    }
                    client.tracker.record_commit(seq, writes, &receipt.fences, self.context.time.now());
                }
                results
            }
            Err(fault) => writes.iter().map(|_| Err(UnitRefusal::Fault(fault.clone()))).collect(),
        }
    }

    pub(crate) async fn beat_tracked(
        &self,
        client: &RollbackClient,
        node: NodeRecord,
        locks: Vec<(LockName, RunId)>,
    ) -> Result<Vec<(LockName, RunId)>, Fault> {
        let (server, request) = (Arc::clone(&client.server), client.request());
        let reply = self.call(CallKind::Write("beat"), move |store| {
            Box::pin(async move { server.beat(store, &request, &node, &locks).await })
        });
        let (seq, lost) = self.check_position(client, reply.await).await?;
        client.tracker.observe_seq(seq);
        if self.rng.one_in(BEATS_PER_VERIFICATION) {
            self.verify_journal(client).await;
        }
        Ok(lost)
    }

    /// Drops records that other processes have written from the journal, as the Redis store does with some heartbeats.
    async fn verify_journal(&self, client: &RollbackClient) {
        let entries = client.tracker.versions_after(None, usize::MAX);
        let (server, request) = (Arc::clone(&client.server), client.request());
        let reply = self.call(CallKind::Write("verification"), move |_| {
            Box::pin(async move { Ok(server.verify(&request, entries).await) })
        });
        // After a failure the next verification covers everything.
        if let Ok(Ok(changed)) = reply.await {
            changed.iter().for_each(|(key, version)| client.tracker.forget_version(key, *version));
        }
    }

    /// The reply, unless the store rejected the request. After a rollback the daemon restores its writes first.
    async fn check_position<T>(
        &self,
        client: &RollbackClient,
        reply: Result<Result<T, PositionRefusal>, Fault>,
    ) -> Result<T, Fault> {
        match reply? {
            Ok(reply) => Ok(reply),
            Err(PositionRefusal::Held) => Err(Fault::Restarted("commits are rejected for a while".to_owned())),
            Err(PositionRefusal::RolledBack) => {
                self.recover(client).await?;
                Err(Fault::Recovering("restored what was lost".to_owned()))
            }
        }
    }

    async fn recover(&self, client: &RollbackClient) -> Result<(), Fault> {
        let (server, request) = (Arc::clone(&client.server), client.request());
        let (hold, writer) = (client.tracker.hold().span(), client.tracker.writer());
        let begin = self.call(CallKind::Write("beginning of a recovery"), move |_| {
            Box::pin(async move { Ok(server.begin_recovery(&request, hold, writer)) })
        });
        let Some(RecoveryReply { epoch, seq, own_seq }) = begin.await? else { return Ok(()) };
        // The Redis store has one ordered connection for commits and recovery: replies of the former server arrive, or
        // the connection breaks, before the first reply of the restarted one. Here each call has a delay of its own.
        while client.commits_in_flight.load(Ordering::Relaxed) > 0 {
            self.context.time.sleep(REPLY_CHECK_EVERY).await;
        }
        let lost = match client.restores {
            true => client.tracker.lost_after(own_seq),
            false => LostWrites { records: Vec::new(), locks: Vec::new() },
        };
        let count = lost.records.len();
        self.context.log(&self.source, || format!("restores {count} records"));
        let (server, process, of_epoch) = (Arc::clone(&client.server), client.process, epoch.clone());
        let own_seq = client.tracker.position().own_seq;
        let restore = self.call(CallKind::Write("restoring"), move |_| {
            Box::pin(async move { Ok(server.restore(process, &of_epoch, own_seq, lost).await) })
        });
        if restore.await? {
            client.tracker.complete_recovery(epoch, seq);
        }
        Ok(())
    }
}
