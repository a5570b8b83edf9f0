//! Units, encoded for the script of a commit by whoever asks, so that the thread that has the line only sends; and what
//! the script answers for each, taken apart. `commit.lua` says what a unit looks like.

use std::ops::Range;

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
use crate::projection::Shown;
use crate::{keys, projection};

/// Most units have no more arguments than this.
const USUAL: usize = 16;

/// Where the seq stands in a stored text.
const SEQ: Range<usize> = 17..33;

/// Stands between version and body until the seq is known.
const NO_SEQ: &[u8] = b" ---------------- ";

/// A unit, ready to be sent.
#[derive(Debug)]
pub(crate) struct Order {
    /// What is compared, and then locks that are taken or freed: the digit of its kind, and its field.
    pub(crate) fields: Vec<(u8, String)>,
    /// Its form, and the texts that the form gives places to.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// Which of these are bodies.
    bodies: Vec<usize>,
    /// What others are told when it is done.
    pub(crate) told: Vec<u8>,
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
        let version = codec::version_text(version);
        let mut making = Making::new(&version, inner);
        let refusal = making.compare(&compare);
        let refusal = refusal.or_else(|| making.change(&compare, &changes));
        let first_lock = making.texts.len();
        let took = making.lock(&take, &free);
        for lock in free.iter().map(|free| &free.lock).chain(take.iter().map(|take| &take.lock)) {
            hints::write(&Hint::new(Key::Lock(lock.clone())), &mut making.told);
        }
        let counts = [compare.len(), changes.len(), take.len(), free.len(), first_lock];
        let Making { mut texts, bodies, form, fields, told, written, .. } = making;
        texts[0] = packed(texts.len() - 1, counts, &form);
        let compared = compare.into_iter().map(|(key, _)| key).collect();
        let taken = take.into_iter().map(|take| take.lock).collect();
        Self { fields, arguments: texts, bodies, told, compared, taken, version, written, took, refusal }
    }

    /// Writes the seq into its bodies that the commit is foreseen to have; without one, they are left as bodies alone.
    pub(crate) fn stamp(&mut self, seq: Option<u64>) {
        for place in &self.bodies {
            let text = &mut self.arguments[*place];
            match seq {
                Some(seq) => text[SEQ].copy_from_slice(format!("{seq:016x}").as_bytes()),
                None => drop(text.drain(..codec::BODY)),
            }
        }
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

/// The form of a unit: how many texts it has, how many of everything, and the rest of it.
fn packed(texts: usize, counts: [usize; 5], form: &[Part]) -> Vec<u8> {
    let mut pack = Pack::with_capacity(8 + 2 * form.len());
    pack.list(1 + counts.len() + form.len());
    pack.number(texts as u64);
    counts.iter().for_each(|count| pack.number(*count as u64));
    for part in form {
        match part {
            Part::Number(number) => pack.number(*number as u64),
            Part::Letter(letter) => pack.text([*letter]),
        }
    }
    pack.into_bytes()
}

/// A value in the form of a unit.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A place, or the number of a kind.
    Number(usize),
    /// How something is shown.
    Letter(u8),
}

/// A unit in the making.
struct Making<'a> {
    inner: &'a Inner,
    /// The first stands for the form, the second is the version.
    texts: Vec<Vec<u8>>,
    /// Which of the texts are bodies.
    bodies: Vec<usize>,
    form: Vec<Part>,
    /// What is compared: the digit of its kind, and its field.
    fields: Vec<(u8, String)>,
    /// What others are told of it.
    told: Vec<u8>,
    /// What is remembered of it.
    written: Vec<Written>,
}

impl<'a> Making<'a> {
    fn new(version: &str, inner: &'a Inner) -> Self {
        let mut texts = Vec::with_capacity(USUAL);
        texts.extend([Vec::new(), version.as_bytes().to_vec()]);
        Self {
            inner,
            texts,
            bodies: Vec::new(),
            form: Vec::new(),
            fields: Vec::new(),
            told: Vec::new(),
            written: Vec::new(),
        }
    }

    /// A text; answers with its place.
    fn text(&mut self, text: impl Into<Vec<u8>>) -> usize {
        self.texts.push(text.into());
        self.texts.len() - 1
    }

    /// A body, with version and room for the seq before it; answers with its place.
    fn body(&mut self, body: &[u8]) -> usize {
        let mut text = Vec::with_capacity(codec::BODY + body.len());
        text.extend_from_slice(&self.texts[1]);
        text.extend_from_slice(NO_SEQ);
        text.extend_from_slice(body);
        let place = self.text(text);
        self.bodies.push(place);
        place
    }

    /// What a unit compares. Locks are taken and not compared.
    fn compare(&mut self, compare: &[(Key, Option<Version>)]) -> Option<Refusal> {
        let mut refusal = None;
        for (key, expected) in compare {
            if key.kind() == Kind::Lock {
                refusal = Some(broken(&format!("compares {key}")));
            }
            let kind = keys::digit(key.kind());
            self.fields.push((kind, keys::field(key)));
            let version = expected.map_or(0, |version| self.text(codec::version_text(version)));
            self.form.extend([usize::from(kind), version].map(Part::Number));
        }
        refusal
    }

    /// What a unit changes.
    fn change(&mut self, compare: &[(Key, Option<Version>)], changes: &[Change]) -> Option<Refusal> {
        let mut place = 0;
        for change in changes {
            let key = change.key();
            // Changes mostly come in the order in which they are compared.
            let (before, after) = compare.split_at(place);
            let Some(found) = after.iter().chain(before).position(|(compared, _)| *compared == key) else {
                return Some(broken(&format!("changes {key} without comparing it")));
            };
            let index = (place + found) % compare.len();
            place = index + 1;
            let (digit, field) = self.fields[index].clone();
            let (body, shown) = match change {
                Change::Put(record) => {
                    self.inner.heal.learn(record);
                    (codec::body(record), shown(record, self.inner))
                }
                Change::Delete(_) => (Vec::new(), Shown::default()),
            };
            let body_place = if body.is_empty() { 0 } else { self.body(&body) };
            let remembered = shown.text();
            let Shown { kind, output, texts } = shown;
            let texts = texts.map_or(0, |texts| {
                let place = self.texts.len();
                self.texts.extend(texts.map(String::into_bytes));
                place
            });
            self.form.extend([place, usize::from(digit), body_place].map(Part::Number));
            self.form.extend([Part::Letter(kind), Part::Number(texts), Part::Letter(output)]);
            hints::write_field(&key, &field, Hint::of(change).is_quiet, &mut self.told);
            self.written.push(Written { kind: digit, field, body, shown: remembered, lasts: lasts(change) });
        }
        None
    }

    /// What a unit takes and frees.
    fn lock(&mut self, take: &[Take], free: &[Free]) -> Vec<Took> {
        let locks = take.iter().map(|take| &take.lock).chain(free.iter().map(|free| &free.lock));
        self.fields.extend(locks.map(|lock| (keys::digit(Kind::Lock), lock.as_str().to_owned())));
        let mut took = Vec::with_capacity(take.len() + free.len());
        for Take { lock, holder, ttl } in take {
            let (lock, holder, life) = (lock.as_str().to_owned(), holder.to_string(), ttl.map_or(0, life));
            self.texts.extend([lock.as_str(), &holder, &life.to_string()].map(|text| text.as_bytes().to_vec()));
            took.push(Took { lock, holder, fence: 0, life, is_taken: true });
        }
        for Free { lock, holder } in free {
            let (lock, holder) = (lock.as_str().to_owned(), holder.to_string());
            self.texts.extend([&lock, &holder].map(|text| text.as_bytes().to_vec()));
            took.push(Took { lock, holder, fence: 0, life: 0, is_taken: false });
        }
        took
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
fn shown(record: &Record, inner: &Inner) -> Shown {
    match record {
        Record::Run(run) => projection::shown(run, inner.settings().lines, &inner.names),
        Record::JobState(state) => Shown::pause(state.pauses.is_paused()),
        Record::Pause(pauses) => Shown::pause(pauses.is_paused()),
        _ => Shown::default(),
    }
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
