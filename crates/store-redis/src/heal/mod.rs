//! What happens when the store has gone back: a failover lost its last commits, a server came up with old records or
//! with none. Every process remembers what it has written itself. When the store does not have it any more, nothing is
//! committed until all that are alive have brought theirs back and the locks that nobody renews have run out.

mod known;
mod memory;
mod notebook;
mod recall;
#[cfg(test)]
mod tests;
mod wait;

use std::sync::atomic::AtomicBool;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cronhold_core::record::Record;
use cronhold_schedule::Span;
use cronhold_store::Fault;
use redis::Value;
use tokio::time::Instant;

pub(crate) use known::Known;
pub(crate) use memory::{Took, Written};
pub(crate) use notebook::Notebook;

use crate::codec::pack::Pack;
use crate::codec::reply;
use crate::inner::Inner;
use crate::link::Script;
use crate::{hints, keys, projection};
use memory::{Lost, Memory, Place};
use wait::Wait;

/// Records of one script call: while it runs, nobody else is answered.
const RECORDS_A_CALL: usize = 200;

static BEGIN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[
        include_str!("../scripts/prelude.lua"),
        include_str!("../scripts/ages.lua"),
        include_str!("../scripts/went_back.lua"),
    ])
});

static MERGE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[
        include_str!("../scripts/prelude.lua"),
        include_str!("../scripts/ages.lua"),
        include_str!("../scripts/records.lua"),
        projection::PARTS[0],
        projection::PARTS[1],
        include_str!("../scripts/merge.lua"),
    ])
});

/// What a process has written, and what it has brought back.
#[derive(Debug, Default)]
pub(crate) struct Heal {
    memory: Mutex<Memory>,
    wait: Wait,
    /// Held by whoever looks whether what is remembered is still so: where to go on.
    recalling: tokio::sync::Mutex<Option<Place>>,
    /// Whether hints were lost since that was begun.
    has_gap: AtomicBool,
    /// Held by whoever is bringing something back.
    busy: tokio::sync::Mutex<()>,
    /// What has happened so far, for people.
    past: Mutex<Past>,
}

#[derive(Debug, Default)]
struct Past {
    times: u64,
    records: u64,
}

/// How the store stands after it was found to have gone back.
struct Standing {
    epoch: String,
    seq: u64,
    /// The last of our own commits that it still has.
    has: u64,
}

impl Heal {
    /// A unit was done by the commit of this number.
    pub(crate) fn remember(&self, seq: u64, version: &str, written: Vec<Written>, took: Vec<Took>) {
        // No program must be alone because of one of our own, however long it is there.
        took.iter().filter(|took| !took.is_own()).for_each(|took| self.wait.saw(took.life));
        self.memory().remember(seq, version, written, took, Instant::now());
    }

    /// A record was read or is written, by which leases are known that runs may have.
    pub(crate) fn learn(&self, record: &Record) {
        self.wait.learn(record);
    }

    /// Nothing is committed for so many milliseconds at least after the store has gone back.
    #[cfg(feature = "testing")]
    pub(crate) fn set_least_wait(&self, millis: u64) {
        self.wait.set_least(millis);
    }

    /// Somebody else has written a record: bringing it back is up to them.
    pub(crate) fn forget(&self, kind: u8, field: &str) {
        self.memory().forget(kind, field);
    }

    /// What has happened, for people; nothing, when nothing has.
    pub(crate) fn warning(&self) -> Option<String> {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        (past.times > 0).then(|| {
            let Past { times, records } = *past;
            format!(
                "Redis has gone back to an earlier state {times} times since this process started; {records} records \
                 were brought back, and outputs were not"
            )
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, records: usize) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.times += 1;
        past.records += records as u64;
    }
}

impl Inner {
    /// The store has gone back: brings back what this process has written. Answers with what whoever asked is told.
    pub(crate) async fn heal(&self) -> Fault {
        let told = |what: &str| Fault::Away(format!("{}: {what}", self.link.server()));
        let Ok(_busy) = self.heal.busy.try_lock() else { return told(&going(self.heal.wait.millis())) };
        match self.bring_back().await {
            Ok(()) => told(&going(self.heal.wait.millis())),
            // Some of it may have been done; doing it again does no harm.
            Err(fault) => told(&format!("{}, and is not healed yet ({fault})", Fault::HEALING)),
        }
    }

    async fn bring_back(&self) -> Result<(), Fault> {
        let Some(standing) = self.begin().await? else { return Ok(()) };
        let lost = self.heal.memory().lost_since(standing.has);
        let count = lost.records.len();
        tracing::warn!(
            event = "redis_rolled_back",
            seq = standing.seq,
            has = standing.has,
            records = count,
            "Redis has lost commits; restoring {count} records"
        );
        let mut records = lost.records.chunks(RECORDS_A_CALL);
        // At least one call, because the store has to learn how far this process had come.
        loop {
            let part = records.next().unwrap_or_default();
            let is_last = records.len() == 0;
            // Locks come last: whether their runs have ended is known then.
            let locks: &[Lost<Took>] = if is_last { &lost.locks } else { &[] };
            let answer = self.link.call(&MERGE, &self.slot, self.merge_call(&standing, part, locks, is_last)).await?;
            if let Value::BulkString(_) = answer {
                return Err(Fault::Away("it has gone back once more".to_owned()));
            }
            if is_last {
                break;
            }
        }
        self.heal.memory().is_healed();
        self.known.set(standing.epoch, standing.seq);
        self.note();
        self.heal.note(count);
        tracing::info!(event = "redis_records_restored", records = count, "restored {count} records");
        Ok(())
    }

    /// Says that the store has gone back, so that everybody stops. None, when it has not after all.
    async fn begin(&self) -> Result<Option<Standing>, Fault> {
        let (known, seq) = self.known.get();
        let wait = self.heal.wait.millis();
        let args = [
            self.settings().namespace.clone(),
            known,
            seq.to_string(),
            self.random_text(),
            wait.to_string(),
            crate::inner::SCHEMA.to_owned(),
            self.known.writer().to_string(),
            self.peers.known().to_owned(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let mut answer = reply::list(self.link.call(&BEGIN, &self.slot, args).await?)?.into_iter();
        let mut next = || answer.next().unwrap_or(Value::Nil);
        let epoch = reply::text(next())?;
        if epoch.is_empty() {
            return Ok(None);
        }
        let (seq, has) = (reply::number(&next())?.cast_unsigned(), reply::number(&next())?.cast_unsigned());
        Ok(Some(Standing { epoch, seq, has }))
    }

    fn merge_call(
        &self,
        standing: &Standing,
        records: &[Lost<Written>],
        locks: &[Lost<Took>],
        is_last: bool,
    ) -> Vec<Vec<u8>> {
        let mut told = Vec::new();
        let mut packed = Pack::default();
        packed.list(5 * records.len());
        for Lost { seq, version, what, .. } in records {
            packed.number(u64::from(what.kind));
            packed.text(&what.field);
            packed.text(format!("{seq:016x}"));
            packed.text(what.stored(version, *seq));
            packed.text(&what.shown);
            if let Some(key) = keys::kind(b'0' + what.kind).and_then(|kind| keys::key(kind, &what.field)) {
                hints::write_field(&key, &what.field, false, &mut told);
            }
        }
        let mut packed_locks = Pack::default();
        packed_locks.list(4 * locks.len());
        for Lost { version, what, .. } in locks {
            packed_locks.text(&what.lock);
            packed_locks.text(&what.holder);
            packed_locks.text(what.token(version));
            packed_locks.number(what.life);
        }
        let by = if is_last { self.known.own() } else { String::new() };
        vec![
            self.settings().namespace.clone().into_bytes(),
            self.peers.shown_settings().as_bytes().to_vec(),
            standing.epoch.clone().into_bytes(),
            by.into_bytes(),
            told,
            packed.into_bytes(),
            packed_locks.into_bytes(),
        ]
    }
}

/// What is said while it is going on, for so many milliseconds from now on.
pub(crate) fn going(millis: u64) -> String {
    format!(
        "{}; what its nodes remember is brought back, and nothing is committed for {} at most, counted anew when another \
         node misses something",
        Fault::HEALING,
        Span::from_millis(millis)
    )
}
