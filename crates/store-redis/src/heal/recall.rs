//! Looks whether what this process remembers is still so. Hints tell of what others have changed, and may be lost: without
//! this, a job that others deleted long ago would come back when the store is healed.

use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use cronhold_store::Fault;

use super::memory::Place;
use crate::codec::pack::Pack;
use crate::codec::reply;
use crate::inner::Inner;
use crate::link::Script;

/// Records of one script call: while it runs, nobody else is answered.
const RECORDS_A_CALL: usize = 500;

/// Records that are looked at each time; the next time goes on from there. After a gap all are.
const RECORDS_A_TIME: usize = 20_000;

static RECALL: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("../scripts/prelude.lua"), include_str!("../scripts/recall.lua")]));

impl Inner {
    /// Hints were lost: looks at everything. Does nothing when that is going on already: it begins anew then.
    pub(crate) async fn recall_all(&self) {
        self.heal.has_gap.store(true, Ordering::Release);
        let Ok(mut place) = self.heal.recalling.try_lock() else { return };
        while self.heal.has_gap.swap(false, Ordering::AcqRel) {
            *place = None;
            loop {
                if self.recall_next(&mut place).await.is_err() {
                    self.heal.has_gap.store(true, Ordering::Release);
                    return;
                }
                if place.is_none() {
                    break;
                }
            }
        }
    }

    /// Looks at some of it, and at all of it in time; at all of it now, when that could not be done after a gap.
    pub(crate) async fn recall_some(&self) {
        if self.heal.has_gap.load(Ordering::Acquire) {
            return self.recall_all().await;
        }
        let Ok(mut place) = self.heal.recalling.try_lock() else { return };
        for _ in 0..RECORDS_A_TIME / RECORDS_A_CALL {
            // What could not be looked at now is looked at the next time.
            if self.recall_next(&mut place).await.is_err() || place.is_none() {
                return;
            }
        }
    }

    /// Looks at the records after this place, and forgets those that others have changed. Moves the place on; to none
    /// at the end.
    async fn recall_next(&self, place: &mut Option<Place>) -> Result<(), Fault> {
        let remembered = self.heal.memory().remembered(place.as_ref(), RECORDS_A_CALL);
        let Some((last, _)) = remembered.last() else {
            *place = None;
            return Ok(());
        };
        let mut packed = Pack::default();
        packed.list(3 * remembered.len());
        for ((kind, field), version) in &remembered {
            packed.number(u64::from(*kind));
            packed.text(field);
            packed.text(version.stored());
        }
        let (known, seq) = self.known.get();
        let args = vec![
            self.settings().namespace.clone().into_bytes(),
            known.into_bytes(),
            seq.to_string().into_bytes(),
            packed.into_bytes(),
        ];
        let answer = reply::list(self.link.call(&RECALL, &self.slot, args).await?)?;
        let answer = self.standing(answer).await?;
        let mut memory = self.heal.memory();
        for changed in answer.iter().skip(1) {
            let changed = usize::try_from(reply::number(changed)?).ok().and_then(|at| remembered.get(at));
            if let Some((place, version)) = changed {
                memory.forget_version(place, version);
            }
        }
        *place = (remembered.len() == RECORDS_A_CALL).then(|| last.clone());
        Ok(())
    }
}
