//! Commits: units are sent in batches, one script call each and all in one go, and what was done is remembered.

use std::sync::LazyLock;

use cronhold_store::{Committed, Fault, Refusal};
use redis::Value;

use crate::codec::reply;
use crate::hints::HandleId;
use crate::inner::Inner;
use crate::link::Script;
use crate::order::Order;
use crate::{foreign, projection};

/// Units of one script call: while it runs, nobody else is answered.
const UNITS_A_CALL: usize = 256;

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
        let calls: Vec<_> = orders.chunks_mut(UNITS_A_CALL).map(|part| self.call(by, part)).collect();
        if calls.is_empty() {
            return Vec::new();
        }
        let called = self.link.call_all(&COMMIT, &self.slot, calls, self.wait_for_replicas()).await;
        self.has_waited(&called.behind);
        let mut results = Vec::with_capacity(orders.len());
        for (part, answer) in orders.chunks_mut(UNITS_A_CALL).zip(called.answers) {
            let answer = match answer.and_then(reply::list) {
                Ok(answer) => self.settle(part, answer).await,
                Err(fault) => Err(fault),
            };
            match answer {
                Ok(of_part) => results.extend(of_part),
                Err(fault) => results.extend(part.iter().map(|_| Err(Refusal::Fault(fault.clone())))),
            }
        }
        results
    }

    /// The arguments of one call.
    fn call(&self, by: HandleId, part: &mut [Order]) -> Vec<Vec<u8>> {
        let (epoch, seq) = self.known.get();
        let peers = u8::from(self.settings().peers);
        let head = [
            self.settings().namespace.clone(),
            self.shown_settings.clone(),
            epoch,
            seq.to_string(),
            by.text(),
            self.random_text(),
            peers.to_string(),
        ];
        let units = part.iter_mut().map(|order| std::mem::take(&mut order.packed));
        head.into_iter().map(String::into_bytes).chain(units).collect()
    }

    /// What became of the units of one call.
    async fn settle(&self, part: &mut [Order], answer: Vec<Value>) -> Result<Vec<Result<Committed, Refusal>>, Fault> {
        let mut answer = self.standing(answer).await?.into_iter();
        let (seq, failures) = (answer.next().unwrap_or(Value::Nil), answer.next().unwrap_or(Value::Nil));
        let seq = reply::number(&seq)?.cast_unsigned();
        self.known.advance(seq);
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
