//! Units as arguments of the commit script. The caller packs them, so that the thread of the connection only sends.
//! Also reads the script's reply for each unit. `commit.lua` defines the layout.

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, RecordKey, RecordKind, RecordVersion};
use cronhold_schedule::{Instant, Span};
use cronhold_store::rollback::UnitWrites;
use cronhold_store::{Fault, Hint, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_records as records;
use redis::Value;

use crate::cronken::{Projection, Projector};
use crate::pack::Pack;
use crate::rollback_recovery::RedisRecovery;
use crate::{keys, notifications, reply};

/// Most units have at most this many arguments.
const TYPICAL_ARGS: usize = 16;

/// The index of the versions among the arguments.
const VERSIONS: usize = 1;

/// Stands for the version of a record that must not exist.
const ABSENT: &str = "----------------";

/// Placeholder between version and body until the seq is known.
const NO_SEQ: &[u8] = b" ---------------- ";

/// A unit, ready to be sent.
#[derive(Debug)]
pub(crate) struct PackedUnit {
    /// Compared records, then locks that are taken or released: the digit of the kind, and the field.
    pub(crate) fields: Vec<(u8, String)>,
    /// The layout of the unit, its versions, and then the texts that the layout refers to by index.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The arguments that are bodies of records.
    bodies: Vec<usize>,
    /// The notification for other handles.
    pub(crate) hints: Vec<u8>,
    /// Compared records, in the order of the script's indexes.
    compared: Vec<RecordKey>,
    /// Locks that are taken, in the order of the script's indexes.
    taken: Vec<LockName>,
    /// What it writes, kept for recovery after a rollback; `None` after it was taken.
    pub(crate) writes: Option<UnitWrites>,
    /// Set if the unit is malformed and must not be sent.
    pub(crate) refusal: Option<UnitRefusal>,
}

impl PackedUnit {
    /// Packs a unit.
    pub(crate) fn new(unit: Unit, recovery: &RedisRecovery, projector: &Projector) -> Self {
        let positions = unit.change_positions();
        let Unit { version, compare, changes, take, free } = unit;
        let mut packer = UnitPacker::new(version, recovery, projector);
        packer.add_compares(&compare);
        let added = positions.map(|positions| packer.add_changes(&changes, &positions));
        let refusal = added.err().map(UnitRefusal::Fault);
        let first_lock = packer.texts.len();
        packer.add_locks(&take, &free);
        for lock in free.iter().map(|free| &free.lock).chain(take.iter().map(|take| &take.lock)) {
            notifications::write_hint(&Hint::new(RecordKey::Lock(lock.clone())), &mut packer.hints);
        }
        let counts = [compare.len(), changes.len(), take.len(), free.len(), first_lock];
        let UnitPacker { mut texts, bodies, layout, fields, hints, .. } = packer;
        texts[0] = pack_layout(texts.len() - 1, counts, &layout);
        let compared = compare.into_iter().map(|(key, _)| key).collect();
        let taken = take.iter().map(|take| take.lock.clone()).collect();
        let writes = Some(UnitWrites { version, changes, take, free });
        Self { fields, arguments: texts, bodies, hints, compared, taken, writes, refusal }
    }

    /// Writes the predicted seq into the bodies; without a prediction, leaves the bodies without version and seq.
    pub(crate) fn stamp(&mut self, seq: Option<u64>) {
        for index in &self.bodies {
            let text = &mut self.arguments[*index];
            match seq {
                Some(seq) => text[records::SEQ].copy_from_slice(format!("{seq:016x}").as_bytes()),
                None => drop(text.drain(..records::BODY)),
            }
        }
    }

    /// Reads the script's reply for this unit.
    pub(crate) fn read_result(&self, reply: Value) -> Result<UnitReceipt, UnitRefusal> {
        match reply {
            Value::Int(0) => Ok(UnitReceipt::default()),
            Value::Int(index) => match usize::try_from(index - 1).ok().and_then(|index| self.compared.get(index)) {
                Some(key) => Err(UnitRefusal::Conflict(key.clone())),
                None => Err(reply::unexpected("an index into a unit", &Value::Int(index)).into()),
            },
            Value::Array(mut values) if values.len() == 2 => {
                let holder = holder(&reply::bytes(values.swap_remove(1))?.unwrap_or_default());
                let index = usize::try_from(reply::number(&values[0])? - 1).ok();
                let lock = index.and_then(|index| self.taken.get(index)).cloned();
                let lock = lock.ok_or_else(|| reply::unexpected("an index into a unit", &values[0]))?;
                Err(UnitRefusal::Held { lock, holder })
            }
            Value::Array(mut values) if values.len() == 1 => {
                let fences = reply::list(values.swap_remove(0))?;
                let fences = self.taken.iter().cloned().zip(fences).map(|(lock, fence)| {
                    let fence = reply::number(&fence)?;
                    Ok((lock, fence.cast_unsigned()))
                });
                Ok(UnitReceipt { fences: fences.collect::<Result<_, Fault>>()? })
            }
            other => Err(reply::unexpected("the result of a unit", &other).into()),
        }
    }
}

/// Packs the layout of a unit: the number of texts, the counts of each part, and the indexes.
fn pack_layout(texts: usize, counts: [usize; 5], layout: &[LayoutValue]) -> Vec<u8> {
    let mut pack = Pack::with_capacity(8 + 2 * layout.len());
    pack.list(1 + counts.len() + layout.len());
    pack.number(texts as u64);
    counts.iter().for_each(|count| pack.number(*count as u64));
    for value in layout {
        match value {
            LayoutValue::Number(number) => pack.number(*number as u64),
            LayoutValue::Letter(letter) => pack.text([*letter]),
        }
    }
    pack.into_bytes()
}

/// A value in the layout of a unit.
#[derive(Debug, Clone, Copy)]
enum LayoutValue {
    /// An index of a text, or the number of a kind.
    Number(usize),
    /// A code of the projection.
    Letter(u8),
}

/// Collects the parts of a unit.
struct UnitPacker<'a> {
    recovery: &'a RedisRecovery,
    projector: &'a Projector,
    /// The first is reserved for the layout, the second are the versions.
    texts: Vec<Vec<u8>>,
    version: String,
    bodies: Vec<usize>,
    layout: Vec<LayoutValue>,
    fields: Vec<(u8, String)>,
    hints: Vec<u8>,
}

impl<'a> UnitPacker<'a> {
    fn new(version: RecordVersion, recovery: &'a RedisRecovery, projector: &'a Projector) -> Self {
        let version = records::version_text(version);
        let mut texts = Vec::with_capacity(TYPICAL_ARGS);
        texts.extend([Vec::new(), version.as_bytes().to_vec()]);
        Self {
            recovery,
            projector,
            texts,
            version,
            bodies: Vec::new(),
            layout: Vec::new(),
            fields: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Adds a text and returns its index.
    fn add_text(&mut self, text: impl Into<Vec<u8>>) -> usize {
        self.texts.push(text.into());
        self.texts.len() - 1
    }

    /// Adds a body, with the version and room for the seq before it, and returns its index.
    fn add_body(&mut self, body: &[u8]) -> usize {
        let mut text = Vec::with_capacity(records::BODY + body.len());
        text.extend_from_slice(self.version.as_bytes());
        text.extend_from_slice(NO_SEQ);
        text.extend_from_slice(body);
        let index = self.add_text(text);
        self.bodies.push(index);
        index
    }

    /// Adds the records that the unit compares.
    fn add_compares(&mut self, compare: &[(RecordKey, Option<RecordVersion>)]) {
        for (key, expected) in compare {
            let kind = keys::digit(key.kind());
            self.fields.push((kind, keys::field(key)));
            self.layout.push(LayoutValue::Number(usize::from(kind)));
            let version = expected.map(records::version_text);
            self.texts[VERSIONS].extend_from_slice(version.as_deref().unwrap_or(ABSENT).as_bytes());
        }
    }

    /// Adds the records that the unit changes, given their positions among the compared ones.
    fn add_changes(&mut self, changes: &[RecordChange], positions: &[usize]) {
        for (change, position) in changes.iter().zip(positions) {
            let (digit, field) = self.fields[*position].clone();
            let (body, projection) = match change {
                RecordChange::Put(record) => {
                    self.recovery.observe_record(record);
                    (records::encode_body(record), self.projector.project(record))
                }
                RecordChange::Delete(_) => (Vec::new(), Projection::default()),
            };
            let body_index = if body.is_empty() { 0 } else { self.add_body(&body) };
            let Projection { kind, output, text, rest } = projection;
            let texts = if text.is_empty() { 0 } else { self.add_text(text) };
            self.texts.extend(rest.map(String::into_bytes));
            self.layout.extend([position + 1, usize::from(digit), body_index].map(LayoutValue::Number));
            self.layout.extend([LayoutValue::Letter(kind), LayoutValue::Number(texts), LayoutValue::Letter(output)]);
            let hint = Hint::of(change);
            notifications::write_field_hint(&hint.key, &field, hint.is_quiet, &mut self.hints);
        }
    }

    /// Adds the locks that the unit takes and releases.
    fn add_locks(&mut self, take: &[LockTake], free: &[LockRelease]) {
        let locks = take.iter().map(|take| &take.lock).chain(free.iter().map(|free| &free.lock));
        self.fields.extend(locks.map(|lock| (keys::digit(RecordKind::Lock), lock.as_str().to_owned())));
        for LockTake { lock, holder, ttl } in take {
            let (holder, ttl) = (holder.to_string(), ttl.map_or(0, ttl_millis).to_string());
            self.texts.extend([lock.as_str(), &holder, &ttl].map(|text| text.as_bytes().to_vec()));
        }
        for LockRelease { lock, holder } in free {
            self.texts.extend([lock.as_str(), &holder.to_string()].map(|text| text.as_bytes().to_vec()));
        }
    }
}

/// A time to live in whole milliseconds, plus one: Redis counts from the start of the current millisecond.
pub(crate) fn ttl_millis(ttl: Span) -> u64 {
    ttl.micros().div_ceil(1_000) + 1
}

/// The run that holds a lock, from the lock's token. For a token of another program, an id that no run of ours has.
pub(crate) fn holder(token: &[u8]) -> RunId {
    let text = String::from_utf8_lossy(token);
    let run = text.split(':').next().and_then(|run| RunId::parse(run).ok());
    run.unwrap_or_else(|| RunId::from_key(Instant::EPOCH, &text))
}
