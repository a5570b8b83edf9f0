//! Notifications of changes between processes. One message on a channel reports a whole commit; the hint board delivers
//! it to the handles of this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cronhold_core::record::RecordKey;
use cronhold_store::{HandleId, Hint, HintBoard};

use crate::connections::{ChannelEvent, RedisConnections};
use crate::core::StoreCore;
use crate::keys;

/// Hex digits of the sender's handle at the start of a message.
const HANDLE_LEN: usize = 16;

/// Hex digits of the seq at the end of a message.
const SEQ_LEN: usize = 16;

/// The sender of messages about restored records, see `restore.lua`. No handle has this id.
const NO_HANDLE: HandleId = HandleId::from_bits(0);

/// Delivers messages of the channel to the handles of this process.
#[derive(Debug)]
pub(crate) struct Notifications {
    board: Arc<HintBoard>,
    is_subscribed: AtomicBool,
}

impl Notifications {
    /// `first_handle` is random, so that handles of different processes differ.
    pub(crate) fn new(first_handle: u64) -> Self {
        Self { board: Arc::new(HintBoard::starting_at(first_handle)), is_subscribed: AtomicBool::new(false) }
    }

    pub(crate) fn board(&self) -> &Arc<HintBoard> {
        &self.board
    }

    /// Whether the caller must start the subscription: true for the first call only.
    pub(crate) fn claim_subscription(&self) -> bool {
        !self.is_subscribed.swap(true, Ordering::Relaxed)
    }

    /// Publishes a message to all handles but its sender. Returns the hints and the seq of the commit if another process
    /// sent it.
    fn receive(&self, message: &[u8]) -> Option<(Vec<Hint>, u64)> {
        let (by, rest) = split_sender(message)?;
        // Usually the sender is the only handle of this process, and nothing needs to be parsed.
        if !self.board.has_others(by) {
            return None;
        }
        let (hints, seq) = rest.split_at_checked(rest.len().checked_sub(SEQ_LEN)?)?;
        let (hints, seq) = (read_hints(hints)?, hex_number(seq)?);
        self.board.publish(by, &hints);
        (!self.board.has_issued(by) && by != NO_HANDLE).then_some((hints, seq))
    }
}

/// Receives messages until the store is dropped.
pub(crate) async fn run_subscription(connections: RedisConnections, channels: Vec<String>, store: Weak<StoreCore>) {
    let mut events = connections.subscribe(channels);
    drop(connections);
    while let Some(event) = events.recv().await {
        let Some(store) = store.upgrade() else { return };
        match event {
            ChannelEvent::Message { payload, .. } => {
                let Some((hints, seq)) = store.notifications.receive(&payload) else { continue };
                for Hint { key, .. } in hints {
                    store.recovery.forget(&key, seq);
                }
            }
            // Nodes find missed changes by their periodic reads. The journal is verified in a separate task, so that
            // the next messages are received meanwhile.
            ChannelEvent::Gap => drop(tokio::spawn(async move { store.recovery.verify_all().await })),
        }
    }
}

/// A handle as messages name it.
pub(crate) fn handle_text(handle: HandleId) -> String {
    format!("{:016x}", handle.to_bits())
}

/// Appends a hint to a message: a letter for the kind, a flag for quiet hints, the length of the field as four hex
/// digits, and the field.
pub(crate) fn write_hint(hint: &Hint, into: &mut Vec<u8>) {
    write_field_hint(&hint.key, &keys::field(&hint.key), hint.is_quiet, into);
}

/// Like [`write_hint`], for a caller that already has the field.
pub(crate) fn write_field_hint(key: &RecordKey, field: &str, is_quiet: bool, into: &mut Vec<u8>) {
    // Longer fields have arguments of many kilobytes. They are not reported.
    let Ok(length) = u16::try_from(field.len()) else { return };
    into.push(keys::hint_letter(key.kind()));
    into.push(if is_quiet { b'q' } else { b'!' });
    into.extend_from_slice(format!("{length:04x}").as_bytes());
    into.extend_from_slice(field.as_bytes());
}

/// The sender of a message, and the rest of it.
fn split_sender(message: &[u8]) -> Option<(HandleId, &[u8])> {
    let (handle, rest) = message.split_at_checked(HANDLE_LEN)?;
    Some((HandleId::from_bits(hex_number(handle)?), rest))
}

/// The hints of a message; `None` if it is malformed.
fn read_hints(mut rest: &[u8]) -> Option<Vec<Hint>> {
    let mut hints = Vec::new();
    while let [kind, flag, a, b, c, d, more @ ..] = rest {
        let length = usize::try_from(hex_number(&[*a, *b, *c, *d])?).ok()?;
        let (field, more) = more.split_at_checked(length)?;
        let key = keys::hint_kind(*kind).and_then(|kind| keys::key(kind, std::str::from_utf8(field).ok()?));
        // An unknown kind comes from a newer version.
        hints.extend(key.map(|key| Hint { key, is_quiet: *flag == b'q' }));
        rest = more;
    }
    Some(hints)
}

fn hex_number(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::task::{Poll, Waker};

    use cronhold_core::JobId;

    use super::*;

    const OTHER_PROCESS: HandleId = HandleId::from_bits(77);
    const SEQ: u64 = 0x2a;

    fn key(number: usize) -> RecordKey {
        RecordKey::Job(JobId::parse(&format!("größe/{number}")).expect("a valid id"))
    }

    fn message(by: HandleId, hints: &[Hint]) -> Vec<u8> {
        let mut message = handle_text(by).into_bytes();
        hints.iter().for_each(|hint| write_hint(hint, &mut message));
        message.extend_from_slice(format!("{SEQ:016x}").as_bytes());
        message
    }

    fn take(notifications: &Notifications, id: HandleId) -> Vec<Hint> {
        match notifications.board().poll(id, Waker::noop()) {
            Poll::Ready(hints) => hints,
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn message_reaches_other_handles_and_is_returned_if_another_process_sent_it() {
        let notifications = Notifications::new(u64::MAX);
        let [a, b] = [notifications.board().join(), notifications.board().join()];
        let sent = [Hint::new(key(1)), Hint { key: key(2), is_quiet: true }];
        assert_eq!(notifications.receive(&message(a, &sent)), None, "a handle of this process sent it");
        assert_eq!((take(&notifications, a), take(&notifications, b)), (vec![], sent.to_vec()));
        assert_eq!(notifications.receive(&message(OTHER_PROCESS, &sent)), Some((sent.to_vec(), SEQ)));
        assert_eq!((take(&notifications, a), take(&notifications, b)), (sent.to_vec(), sent.to_vec()));
    }

    #[test]
    fn malformed_messages_are_ignored() {
        let notifications = Notifications::new(1);
        let (a, whole) = (notifications.board().join(), message(OTHER_PROCESS, &[Hint::new(key(1))]));
        for length in 0..whole.len() {
            notifications.receive(&whole[..length]);
            notifications.receive(b"hello, this is not a message at all");
        }
        assert_eq!(take(&notifications, a), []);
        notifications.receive(&whole);
        assert_eq!(take(&notifications, a).len(), 1);
    }
}
