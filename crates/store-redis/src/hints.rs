//! Hints: what others have changed. One message tells of a whole commit; each handle of this process has a bounded
//! queue of its own. A handle that does not listen loses the oldest ones, which is what hints are allowed to do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use cronhold_core::record::Key;
use cronhold_store::Hint;

use crate::inner::Inner;
use crate::keys;
use crate::link::{Heard, Link};

/// So many hints wait for one handle.
const WAITING_MAX: usize = 4_096;

/// Digits of a handle's id at the beginning of a message.
const HANDLE: usize = 16;

/// Tells handles apart, also those of other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandleId(u64);

impl HandleId {
    /// The id as it stands in messages.
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// What every handle of this process has not heard yet.
#[derive(Debug)]
pub(crate) struct Hints(Mutex<Handles>);

#[derive(Debug)]
struct Handles {
    first: u64,
    next: u64,
    waiting: BTreeMap<HandleId, Waiting>,
    is_listening: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    hints: VecDeque<Hint>,
    wakers: Vec<Waker>,
}

impl Hints {
    /// Nobody is there yet. Ids of handles begin with a number that other processes do not have.
    pub(crate) fn new(first: u64) -> Self {
        Self(Mutex::new(Handles { first, next: first, waiting: BTreeMap::new(), is_listening: false }))
    }

    /// A new handle.
    pub(crate) fn join(&self) -> HandleId {
        let mut handles = self.lock();
        let id = HandleId(handles.next);
        handles.next = handles.next.wrapping_add(1);
        handles.waiting.insert(id, Waiting::default());
        id
    }

    /// A handle is gone.
    pub(crate) fn leave(&self, id: HandleId) {
        self.lock().waiting.remove(&id);
    }

    /// What a handle has not heard yet; it is woken when there is something.
    pub(crate) fn poll(&self, id: HandleId, waker: &Waker) -> Poll<Vec<Hint>> {
        let mut handles = self.lock();
        let waiting = handles.waiting.entry(id).or_default();
        if waiting.hints.is_empty() {
            if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
                waiting.wakers.push(waker.clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(waiting.hints.drain(..).collect())
    }

    /// Whether nobody has listened so far. Whoever asks first listens from now on.
    pub(crate) fn begins(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_listening, true)
    }

    /// A message has come: all handles but the one that sent it are told. Answers with what another process has changed.
    fn tell(&self, message: &[u8]) -> Vec<Hint> {
        let Some((by, rest)) = sender(message) else { return Vec::new() };
        // Most messages are those of the only handle that would be told.
        if self.lock().waiting.keys().eq([&by]) {
            return Vec::new();
        }
        let Some(hints) = read(rest) else { return Vec::new() };
        let mut wakers = Vec::new();
        let mut handles = self.lock();
        for (_, waiting) in handles.waiting.iter_mut().filter(|(id, _)| **id != by) {
            waiting.hints.extend(hints.iter().cloned());
            let surplus = waiting.hints.len().saturating_sub(WAITING_MAX);
            waiting.hints.drain(..surplus);
            if !waiting.hints.is_empty() {
                wakers.append(&mut waiting.wakers);
            }
        }
        // Ids are given one after the other. Nobody has the first of all: it tells of what was brought back.
        let is_ours = by.0.wrapping_sub(handles.first) < handles.next.wrapping_sub(handles.first);
        drop(handles);
        wakers.into_iter().for_each(Waker::wake);
        if is_ours || by == HandleId(0) { Vec::new() } else { hints }
    }

    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens until nobody is there any more who could be told.
pub(crate) async fn listen(link: Link, channel: String, inner: Weak<Inner>) {
    let mut heard = link.listen(vec![channel]);
    drop(link);
    while let Some(heard) = heard.recv().await {
        let Some(inner) = inner.upgrade() else { return };
        match heard {
            Heard::Message { payload, .. } => {
                for Hint { key, .. } in inner.hints.tell(&payload) {
                    inner.heal.forget(keys::digit(key.kind()), &keys::field(&key));
                }
            }
            // Nodes find what they have missed when they look now and then. What is remembered is looked at here, aside:
            // the next messages are heard meanwhile.
            Heard::Gap => drop(tokio::spawn(async move { inner.recall_all().await })),
        }
    }
}

/// A hint as part of a message: a digit for the kind, whether it is quiet, four digits for the length of the field, the
/// field.
pub(crate) fn write(hint: &Hint, into: &mut Vec<u8>) {
    write_field(&hint.key, &keys::field(&hint.key), hint.is_quiet, into);
}

/// The same, by whoever has the field already.
pub(crate) fn write_field(key: &Key, field: &str, is_quiet: bool, into: &mut Vec<u8>) {
    // A field that is longer has args of many kilobytes. Nobody hears of it.
    let Ok(length) = u16::try_from(field.len()) else { return };
    into.push(b'0' + keys::digit(key.kind()));
    into.push(if is_quiet { b'q' } else { b'!' });
    into.extend_from_slice(format!("{length:04x}").as_bytes());
    into.extend_from_slice(field.as_bytes());
}

/// Who sent a message, and the rest of it.
fn sender(message: &[u8]) -> Option<(HandleId, &[u8])> {
    let (handle, rest) = message.split_at_checked(HANDLE)?;
    Some((HandleId(number(handle)?), rest))
}

/// What a message tells of.
fn read(mut rest: &[u8]) -> Option<Vec<Hint>> {
    let mut hints = Vec::new();
    while let [kind, flag, a, b, c, d, more @ ..] = rest {
        let length = usize::try_from(number(&[*a, *b, *c, *d])?).ok()?;
        let (field, more) = more.split_at_checked(length)?;
        let key = keys::kind(*kind).and_then(|kind| keys::key(kind, std::str::from_utf8(field).ok()?));
        // A kind that this program does not know is a newer one's.
        hints.extend(key.map(|key| Hint { key, is_quiet: *flag == b'q' }));
        rest = more;
    }
    Some(hints)
}

fn number(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;

    use super::*;

    fn key(number: usize) -> Key {
        Key::Job(JobId::parse(&format!("größe/{number}")).expect("a name"))
    }

    fn message(by: HandleId, hints: &[Hint]) -> Vec<u8> {
        let mut message = by.text().into_bytes();
        hints.iter().for_each(|hint| write(hint, &mut message));
        message
    }

    fn heard(hints: &Hints, id: HandleId) -> Vec<Hint> {
        match hints.poll(id, Waker::noop()) {
            Poll::Ready(hints) => hints,
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn others_are_told_and_the_oldest_are_lost() {
        let hints = Hints::new(u64::MAX);
        let [a, b] = [hints.join(), hints.join()];
        let sent = [Hint::new(key(1)), Hint { key: key(2), is_quiet: true }];
        hints.tell(&message(a, &sent));
        assert_eq!((heard(&hints, a), heard(&hints, b)), (vec![], sent.to_vec()));
        let many: Vec<Hint> = (0..WAITING_MAX + 3).map(|number| Hint::new(key(number))).collect();
        hints.tell(&message(b, &many));
        let late = heard(&hints, a);
        assert_eq!((late.len(), &late[0].key), (WAITING_MAX, &key(3)));
    }

    #[test]
    fn what_is_no_message_tells_nothing() {
        let hints = Hints::new(1);
        let (a, whole) = (hints.join(), message(HandleId(77), &[Hint::new(key(1))]));
        for length in 0..whole.len() {
            hints.tell(&whole[..length]);
            hints.tell(b"hello, this is no message at all");
        }
        assert_eq!(heard(&hints, a), []);
        hints.tell(&whole);
        assert_eq!(heard(&hints, a).len(), 1);
    }
}
