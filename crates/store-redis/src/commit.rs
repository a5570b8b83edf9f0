//! Commits units: sends them in batches, one script call each and all in one pipeline, and records what was committed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cronhold_core::record::RecordKind;
use cronhold_store::{Fault, HandleId, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_remote::WriteCounters;
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::cronken::{self, PeerFlag, Projector};
use crate::pack::Pack;
use crate::packed_unit::PackedUnit;
use crate::replication::Replication;
use crate::rollback_recovery::{RedisRecovery, check_reply, position_args};
use crate::{keys, notifications, reply};

/// Units of one script call. While a script runs, the server serves no other request.
const UNITS_PER_CALL: usize = 256;

/// Arguments of a call before those of its units.
const HEAD_ARGS: usize = 10;

static COMMIT: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[
        include_str!("scripts/records.lua"),
        cronken::PROJECTION_SCRIPTS[0],
        cronken::PROJECTION_SCRIPTS[1],
        cronken::FOREIGN_SCRIPT,
        include_str!("scripts/commit.lua"),
    ])
});

/// Commits units, and reports to the recovery which of them the server has.
#[derive(Debug)]
pub(crate) struct Committer {
    client: Arc<NamespaceClient>,
    recovery: Arc<RedisRecovery>,
    replication: Arc<Replication>,
    counters: Arc<WriteCounters>,
    peers: Arc<PeerFlag>,
    projector: Arc<Projector>,
    /// A channel that only this process subscribes to, if all subscribers are connected to the server that commits.
    own_channel: Option<String>,
    prediction: SeqPrediction,
}

/// The handle that commits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommittingHandle {
    pub(crate) by: HandleId,
    /// Whether this process has no other handle, which would need the notification.
    pub(crate) is_only_handle: bool,
}

/// Predicts the seq of a commit. The script works less for records whose text already contains the right seq. The
/// prediction holds while no other process commits; a wrong one costs time and nothing else.
#[derive(Debug, Default)]
struct SeqPrediction {
    /// Calls without a reply so far.
    in_flight: AtomicU64,
    /// Whether the last call had another seq than predicted.
    has_failed: AtomicBool,
}

impl SeqPrediction {
    /// The seq of the next call if the last one that this process knows is `seq`.
    fn next(&self, seq: u64) -> u64 {
        seq + self.in_flight.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether predicted seqs are worth writing into the records.
    fn is_reliable(&self) -> bool {
        !self.has_failed.load(Ordering::Relaxed)
    }

    fn end_call(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    fn compare(&self, predicted: u64, seq: u64) {
        self.has_failed.store(seq != predicted, Ordering::Relaxed);
    }
}

impl Committer {
    pub(crate) fn new(
        client: Arc<NamespaceClient>,
        recovery: Arc<RedisRecovery>,
        replication: Arc<Replication>,
        counters: Arc<WriteCounters>,
        peers: Arc<PeerFlag>,
        projector: Arc<Projector>,
        own_channel: Option<String>,
    ) -> Self {
        let prediction = SeqPrediction::default();
        Self { client, recovery, replication, counters, peers, projector, own_channel, prediction }
    }

    /// Encodes units for [`Self::commit`].
    pub(crate) fn pack(&self, units: Vec<Unit>) -> Vec<PackedUnit> {
        units.into_iter().map(|unit| PackedUnit::new(unit, &self.recovery, &self.projector)).collect()
    }

    /// Commits units in their order, and returns a result for each.
    pub(crate) async fn commit(
        &self,
        sender: CommittingHandle,
        mut units: Vec<PackedUnit>,
    ) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        if let Some(malformed) = units.iter_mut().position(|unit| unit.refusal.is_some()) {
            // A malformed unit is a bug of the caller. It must not affect the others.
            let rest = units.split_off(malformed + 1);
            let refusal = units.pop().and_then(|unit| unit.refusal).expect("this unit has a refusal");
            let mut results = Box::pin(self.commit(sender, units)).await;
            results.push(Err(refusal));
            results.extend(Box::pin(self.commit(sender, rest)).await);
            return results;
        }
        let calls = units.chunks_mut(UNITS_PER_CALL).map(|part| self.call_args(sender, part));
        let (predicted, calls): (Vec<_>, Vec<_>) = calls.unzip();
        if calls.is_empty() {
            return Vec::new();
        }
        let called = self.client.call_batch(&COMMIT, calls, self.replication.wait_command()).await;
        self.replication.record_wait(&called.trailing);
        let mut results = Vec::with_capacity(units.len());
        for ((part, reply), predicted) in units.chunks_mut(UNITS_PER_CALL).zip(called.replies).zip(predicted) {
            self.prediction.end_call();
            let of_part = match reply.and_then(reply::list) {
                Ok(reply) => self.read_reply(part, predicted, reply).await,
                Err(fault) => Err(fault),
            };
            match of_part {
                Ok(of_part) => results.extend(of_part),
                Err(fault) => {
                    if matches!(fault, Fault::OutcomeUnknown(_)) {
                        let writes = part.iter_mut().filter_map(|unit| unit.writes.take());
                        writes.for_each(|writes| self.recovery.record_unconfirmed(writes));
                    }
                    results.extend(part.iter().map(|_| Err(UnitRefusal::Fault(fault.clone()))));
                }
            }
        }
        results
    }

    /// The predicted seq of one call, and its arguments.
    fn call_args(&self, sender: CommittingHandle, part: &mut [PackedUnit]) -> (u64, Vec<Vec<u8>>) {
        let (position, seq) = position_args(&self.recovery);
        let predicted = self.prediction.next(seq);
        let stamp = self.prediction.is_reliable().then_some(predicted);
        part.iter_mut().for_each(|unit| unit.stamp(stamp));
        let stamp_text = stamp.map(|seq| format!("{seq:016x}")).unwrap_or_default();
        let mut hints = notifications::handle_text(sender.by).into_bytes();
        part.iter().for_each(|unit| hints.extend_from_slice(&unit.hints));
        hints.extend_from_slice(stamp_text.as_bytes());
        let is_quiet = sender.is_only_handle && !self.replication.has_replicas();
        let own_channel = self.own_channel.as_ref().filter(|_| is_quiet).cloned().unwrap_or_default();
        let lengths: String = part.iter().map(|unit| format!("{:08x}", unit.hints.len())).collect();
        let (counts, fields) = compared_fields(part);
        let count: usize = part.iter().map(|unit| unit.arguments.len()).sum();
        let mut args: Vec<Vec<u8>> = Vec::with_capacity(HEAD_ARGS + fields.len() + count);
        args.push(self.client.namespace_arg());
        args.push(self.peers.projection_settings().as_bytes().to_vec());
        args.push(position.into_bytes());
        args.push(seq.to_string().into_bytes());
        args.push(hints);
        args.push(lengths.into_bytes());
        args.push(self.client.unique_token().into_bytes());
        args.push(stamp_text.into_bytes());
        args.push(own_channel.into_bytes());
        args.push(counts);
        args.extend(fields);
        part.iter_mut().for_each(|unit| args.append(&mut unit.arguments));
        (predicted, args)
    }

    /// The results of the units of one call.
    async fn read_reply(
        &self,
        part: &mut [PackedUnit],
        predicted: u64,
        reply: Vec<Value>,
    ) -> Result<Vec<Result<UnitReceipt, UnitRefusal>>, Fault> {
        if let Some(fault) = self.client.seal().refusal(&reply) {
            return Err(fault);
        }
        let mut reply = check_reply(&self.recovery, reply).await?.into_iter();
        let (seq, skipped) = (reply.next().unwrap_or(Value::Nil), reply.next().unwrap_or(Value::Nil));
        let seq = reply::number(&seq)?.cast_unsigned();
        self.recovery.observe_seq(seq);
        self.prediction.compare(predicted, seq);
        self.counters.count_commit(part.len());
        self.projector.count_skipped(reply::number(&skipped)?.cast_unsigned());
        if reply.len() != part.len() {
            return Err(Fault::OutcomeUnknown(format!("Redis replied to {} of {} units", reply.len(), part.len())));
        }
        let mut results = Vec::with_capacity(part.len());
        for (unit, reply) in part.iter_mut().zip(reply) {
            let result = unit.read_result(reply);
            if let Ok(committed) = &result {
                self.record(seq, unit, committed);
            }
            results.push(result);
        }
        self.recovery.save_position();
        Ok(results)
    }

    /// Records what a unit has written, in case the server loses it.
    fn record(&self, seq: u64, unit: &mut PackedUnit, committed: &UnitReceipt) {
        if let Some(writes) = unit.writes.take().filter(|writes| !writes.is_empty()) {
            self.recovery.record_commit(seq, writes, &committed.fences);
        }
    }
}

/// The fields that the units of one call compare: how many of each kind, whether the states have the fields of the jobs,
/// and the fields, kind by kind. The global pause, which is a single record, occurs once.
fn compared_fields(part: &mut [PackedUnit]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut by_kind: [Vec<Vec<u8>>; keys::KINDS.len()] = Default::default();
    let [pause, job, job_state] = [RecordKind::Pause, RecordKind::Job, RecordKind::JobState].map(keys::digit);
    for (kind, field) in part.iter_mut().flat_map(|unit| unit.fields.drain(..)) {
        let fields = &mut by_kind[usize::from(kind)];
        if kind != pause || fields.is_empty() {
            fields.push(field.into_bytes());
        }
    }
    let has_fields_of_jobs = by_kind[usize::from(job)] == by_kind[usize::from(job_state)];
    let mut counts = Pack::default();
    counts.list(by_kind.len() + 1);
    by_kind.iter().for_each(|fields| counts.number(fields.len() as u64));
    counts.number(u64::from(has_fields_of_jobs));
    if has_fields_of_jobs {
        by_kind[usize::from(job_state)].clear();
    }
    (counts.into_bytes(), by_kind.into_iter().flatten().collect())
}
