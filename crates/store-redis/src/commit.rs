//! Commits: units are sent in batches, one script call each and all in one go, and what was done is remembered.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cronhold_core::record::Kind;
use cronhold_store::{Committed, Fault, Refusal};
use redis::Value;

use crate::codec::pack::Pack;
use crate::codec::reply;
use crate::hints::HandleId;
use crate::inner::Inner;
use crate::link::Script;
use crate::order::Order;
use crate::{foreign, keys, projection};

/// Units of one script call: while it runs, nobody else is answered.
const UNITS_A_CALL: usize = 256;

/// Arguments of a call that stand before its units.
const HEAD: usize = 9;

static COMMIT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[
        include_str!("scripts/prelude.lua"),
        include_str!("scripts/records.lua"),
        projection::PARTS[0],
        projection::PARTS[1],
        foreign::PART,
        include_str!("scripts/commit.lua"),
    ])
});

/// Which seq a commit will have. Records whose texts have it already cost the script less, because it does not have to make
/// them once more. That works for as long as no other process commits; when it does not, nothing is harmed.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    /// Calls that are not answered yet.
    on_their_way: AtomicU64,
    /// Whether the last call had another seq than was foreseen.
    fails: AtomicBool,
}

impl Inner {
    /// Does units in their order.
    pub(crate) async fn carry_out(&self, by: HandleId, mut orders: Vec<Order>) -> Vec<Result<Committed, Refusal>> {
        if let Some(refused) = orders.iter_mut().position(|order| order.refusal.is_some()) {
            // A mistake of ours, which others in the same commit have nothing to do with.
            let rest = orders.split_off(refused + 1);
            let refusal = orders.pop().and_then(|order| order.refusal).expect("it was found by it");
            let mut results = Box::pin(self.carry_out(by, orders)).await;
            results.push(Err(refusal));
            results.extend(Box::pin(self.carry_out(by, rest)).await);
            return results;
        }
        let calls = orders.chunks_mut(UNITS_A_CALL).map(|part| self.call(by, part));
        let (foreseen, calls): (Vec<_>, Vec<_>) = calls.unzip();
        if calls.is_empty() {
            return Vec::new();
        }
        let called = self.link.call_all(&COMMIT, &self.slot, calls, self.wait_for_replicas()).await;
        self.has_waited(&called.behind);
        let mut results = Vec::with_capacity(orders.len());
        for ((part, answer), foreseen) in orders.chunks_mut(UNITS_A_CALL).zip(called.answers).zip(foreseen) {
            self.foresight.on_their_way.fetch_sub(1, Ordering::Relaxed);
            let answer = match answer.and_then(reply::list) {
                Ok(answer) => self.settle(part, foreseen, answer).await,
                Err(fault) => Err(fault),
            };
            match answer {
                Ok(of_part) => results.extend(of_part),
                Err(fault) => results.extend(part.iter().map(|_| Err(Refusal::Fault(fault.clone())))),
            }
        }
        results
    }

    /// The seq that one call is foreseen to have, and its arguments.
    fn call(&self, by: HandleId, part: &mut [Order]) -> (u64, Vec<Vec<u8>>) {
        let (epoch, seq) = self.known.get();
        let foreseen = seq + self.foresight.on_their_way.fetch_add(1, Ordering::Relaxed) + 1;
        let stamp = (!self.foresight.fails.load(Ordering::Relaxed)).then_some(foreseen);
        part.iter_mut().for_each(|order| order.stamp(stamp));
        let mut told = by.text().into_bytes();
        part.iter().for_each(|order| told.extend_from_slice(&order.told));
        let lengths: String = part.iter().map(|order| format!("{:08x}", order.told.len())).collect();
        let (counts, fields) = compared(part);
        let count: usize = part.iter().map(|order| order.arguments.len()).sum();
        let mut call: Vec<Vec<u8>> = Vec::with_capacity(HEAD + fields.len() + count);
        call.push(self.settings().namespace.clone().into_bytes());
        call.push(self.peers.shown_settings().as_bytes().to_vec());
        call.push(epoch.into_bytes());
        call.push(seq.to_string().into_bytes());
        call.push(told);
        call.push(lengths.into_bytes());
        call.push(self.random_text().into_bytes());
        call.push(stamp.map(|seq| format!("{seq:016x}")).unwrap_or_default().into_bytes());
        call.push(counts);
        call.extend(fields);
        part.iter_mut().for_each(|order| call.append(&mut order.arguments));
        (foreseen, call)
    }

    /// What became of the units of one call.
    async fn settle(
        &self,
        part: &mut [Order],
        foreseen: u64,
        answer: Vec<Value>,
    ) -> Result<Vec<Result<Committed, Refusal>>, Fault> {
        let mut answer = self.standing(answer).await?.into_iter();
        let (seq, failures) = (answer.next().unwrap_or(Value::Nil), answer.next().unwrap_or(Value::Nil));
        let seq = reply::number(&seq)?.cast_unsigned();
        self.known.advance(seq);
        self.foresight.fails.store(seq != foreseen, Ordering::Relaxed);
        self.tally.count(part.len(), reply::number(&failures)?.cast_unsigned());
        if answer.len() != part.len() {
            return Err(Fault::Unknown(format!("Redis answered for {} of {} units", answer.len(), part.len())));
        }
        let mut results = Vec::with_capacity(part.len());
        for (order, answer) in part.iter_mut().zip(answer) {
            let result = order.result(answer);
            if let Ok(committed) = &result {
                self.remember(seq, order, committed);
            }
            results.push(result);
        }
        self.note();
        Ok(results)
    }

    /// Remembers what a unit has done, in case that the store forgets it.
    fn remember(&self, seq: u64, order: &mut Order, committed: &Committed) {
        let (written, mut took) = (std::mem::take(&mut order.written), std::mem::take(&mut order.took));
        if written.is_empty() && took.is_empty() {
            return;
        }
        self.known.wrote(seq);
        for (took, (_, fence)) in took.iter_mut().zip(&committed.fences) {
            took.fence = *fence;
        }
        self.heal.remember(seq, &order.version, written, took);
    }
}

/// What the units of one call compare: how many fields of each kind, and the fields, kind by kind. The one record that has
/// no name is there once.
fn compared(part: &mut [Order]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut by_kind: [Vec<Vec<u8>>; keys::KINDS.len()] = Default::default();
    let pause = keys::digit(Kind::Pause);
    for (kind, field) in part.iter_mut().flat_map(|order| order.fields.drain(..)) {
        let fields = &mut by_kind[usize::from(kind)];
        if kind != pause || fields.is_empty() {
            fields.push(field.into_bytes());
        }
    }
    let mut counts = Pack::default();
    counts.list(by_kind.len());
    by_kind.iter().for_each(|fields| counts.number(fields.len() as u64));
    (counts.into_bytes(), by_kind.into_iter().flatten().collect())
}
