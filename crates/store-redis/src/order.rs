//! Units, encoded for the script of a commit by whoever asks, so that the thread that has the line only sends; and what
//! the script answers for each, taken apart.

use cronhold_core::RunId;
use cronhold_core::decision::{Change, Free, Take};
use cronhold_core::record::{Key, Kind, LockName, Record, Version};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Committed, Fault, Hint, Refusal, Unit};
use redis::Value;

use crate::codec::pack::Pack;
use crate::codec::{self, reply};
use crate::heal::{Took, Written};
use crate::hints;
use crate::inner::Inner;
use crate::{keys, projection};

/// Most units fit into this.
const USUAL: usize = 2_048;

/// A unit, ready to be sent.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) packed: Vec<u8>,
    /// What is compared, in the order in which the script names it.
    compared: Vec<Key>,
    /// Locks that are taken, in the same way.
    taken: Vec<LockName>,
    pub(crate) version: String,
    /// What is written, for whoever has to bring it back.
    pub(crate) written: Vec<Written>,
    /// What is taken and freed, for the same.
    pub(crate) took: Vec<Took>,
    /// Why it cannot be done at all, when it cannot.
    pub(crate) refusal: Option<Refusal>,
}

impl Order {
    /// Makes a unit ready.
    pub(crate) fn new(unit: Unit, inner: &Inner) -> Self {
        let Unit { version, compare, changes, take, free } = unit;
        let mut pack = Pack::with_capacity(USUAL);
        pack.list(6);
        let version = codec::version_text(version);
        pack.text(&version);
        let fields: Vec<String> = compare.iter().map(|(key, _)| keys::field(key)).collect();
        let refusal = write_compare(&mut pack, &compare, &fields);
        let (told, written) = (Vec::new(), Vec::with_capacity(changes.len()));
        let mut changing = Changing { compare: &compare, fields, inner, told, written };
        let refusal = refusal.or(changing.write(&mut pack, &changes));
        let Changing { mut told, written, .. } = changing;
        let took = write_locks(&mut pack, &take, &free);
        let locks = free.into_iter().map(|free| free.lock).chain(take.iter().map(|take| take.lock.clone()));
        locks.for_each(|lock| hints::write(&Hint::new(Key::Lock(lock)), &mut told));
        pack.text(told);
        let compared = compare.into_iter().map(|(key, _)| key).collect();
        let taken = take.into_iter().map(|take| take.lock).collect();
        Self { packed: pack.into_bytes(), compared, taken, version, written, took, refusal }
    }

    /// What a script answered for it.
    pub(crate) fn result(&self, answer: Value) -> Result<Committed, Refusal> {
        match answer {
            Value::Int(0) => Ok(Committed::default()),
            Value::Int(place) => match usize::try_from(place - 1).ok().and_then(|place| self.compared.get(place)) {
                Some(key) => Err(Refusal::Conflict(key.clone())),
                None => Err(reply::strange("a place in a unit", &Value::Int(place)).into()),
            },
            Value::Array(mut values) if values.len() == 2 => {
                let holder = holder(&reply::bytes(values.swap_remove(1))?.unwrap_or_default());
                let place = usize::try_from(reply::number(&values[0])? - 1).ok();
                let lock = place.and_then(|place| self.taken.get(place)).cloned();
                let lock = lock.ok_or_else(|| reply::strange("a place in a unit", &values[0]))?;
                Err(Refusal::Held { lock, holder })
            }
            Value::Array(mut values) if values.len() == 1 => {
                let fences = reply::list(values.swap_remove(0))?;
                let fences = self.taken.iter().cloned().zip(fences).map(|(lock, fence)| {
                    let fence = reply::number(&fence)?;
                    Ok((lock, fence.cast_unsigned()))
                });
                Ok(Committed { fences: fences.collect::<Result<_, Fault>>()? })
            }
            other => Err(reply::strange("what became of a unit", &other).into()),
        }
    }
}

/// What a unit compares. Locks are taken and not compared.
fn write_compare(pack: &mut Pack, compare: &[(Key, Option<Version>)], fields: &[String]) -> Option<Refusal> {
    pack.list(3 * compare.len());
    let mut refusal = None;
    for ((key, expected), field) in compare.iter().zip(fields) {
        if key.kind() == Kind::Lock {
            refusal = Some(broken(&format!("compares {key}")));
        }
        pack.number(u64::from(keys::digit(key.kind())));
        pack.text(field);
        pack.text(expected.map(codec::version_text).unwrap_or_default());
    }
    refusal
}

/// What a unit changes, in the making.
struct Changing<'a> {
    compare: &'a [(Key, Option<Version>)],
    /// The fields of what is compared.
    fields: Vec<String>,
    inner: &'a Inner,
    /// What others are told of it.
    told: Vec<u8>,
    /// What is remembered of it.
    written: Vec<Written>,
}

impl Changing<'_> {
    fn write(&mut self, pack: &mut Pack, changes: &[Change]) -> Option<Refusal> {
        pack.list(3 * changes.len());
        let mut place = 0;
        for change in changes {
            let key = change.key();
            // Changes mostly come in the order in which they are compared.
            let (before, after) = self.compare.split_at(place);
            let Some(found) = after.iter().chain(before).position(|(compared, _)| *compared == key) else {
                return Some(broken(&format!("changes {key} without comparing it")));
            };
            let index = (place + found) % self.compare.len();
            place = index + 1;
            pack.number(place as u64);
            let (body, shown) = match change {
                Change::Put(record) => (codec::body(record), shown(record, self.inner)),
                Change::Delete(_) => (Vec::new(), Vec::new()),
            };
            pack.text(&body);
            pack.text(&shown);
            let field = self.fields[index].clone();
            hints::write_field(&key, &field, Hint::of(change).is_quiet, &mut self.told);
            self.written.push(Written { kind: keys::digit(key.kind()), field, body, shown, lasts: lasts(change) });
        }
        None
    }
}

/// Whether a change matters for as long as nobody has written the record again.
fn lasts(change: &Change) -> bool {
    match change {
        Change::Put(Record::Run(run)) => !run.state.is_finished(),
        Change::Put(Record::Identity(_)) | Change::Delete(_) => false,
        Change::Put(_) => true,
    }
}

/// What Cronken's clients are shown of a record.
fn shown(record: &Record, inner: &Inner) -> Vec<u8> {
    match record {
        Record::Run(run) => projection::argument(run, inner.settings().lines, &inner.names),
        Record::JobState(state) => if state.pauses.is_paused() { b"1" } else { b"0" }.to_vec(),
        _ => Vec::new(),
    }
}

/// What a unit takes and frees.
fn write_locks(pack: &mut Pack, take: &[Take], free: &[Free]) -> Vec<Took> {
    let mut took = Vec::with_capacity(take.len() + free.len());
    pack.list(3 * take.len());
    for Take { lock, holder, ttl } in take {
        pack.text(lock.as_str());
        let (holder, life) = (holder.to_string(), ttl.map_or(0, life));
        pack.text(&holder);
        pack.number(life);
        took.push(Took { lock: lock.as_str().to_owned(), holder, fence: 0, life, is_taken: true });
    }
    pack.list(2 * free.len());
    for Free { lock, holder } in free {
        let holder = holder.to_string();
        pack.text(lock.as_str());
        pack.text(&holder);
        took.push(Took { lock: lock.as_str().to_owned(), holder, fence: 0, life: 0, is_taken: false });
    }
    took
}

/// A time to live in whole milliseconds, and one more: Redis counts from the beginning of the one that it is in.
fn life(ttl: Span) -> u64 {
    ttl.micros().div_ceil(1_000) + 1
}

fn broken(what: &str) -> Refusal {
    Refusal::Fault(Fault::Broken(format!("a unit {what}")))
}

/// The run that holds a lock by its token. A token of another program stands for a run that nobody else has.
pub(crate) fn holder(token: &[u8]) -> RunId {
    let text = String::from_utf8_lossy(token);
    let run = text.split(':').next().and_then(|run| RunId::parse(run).ok());
    run.unwrap_or_else(|| RunId::from_key(Instant::EPOCH, &text))
}
