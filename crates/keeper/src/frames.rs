//! Messages as bytes: the length in four bytes, little-endian, and then JSON. The keeper and its client share this
//! file.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::MESSAGE_MAX;

/// Bytes before a message.
const HEAD: usize = 4;
/// The capacity that an empty buffer keeps.
const KEPT_MAX: usize = 1024 * 1024;

/// Why a message cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than either side accepts.
    #[error("the message has {0} bytes; at most {MESSAGE_MAX} are allowed")]
    TooLong(usize),
    /// It is not a message of the protocol.
    #[error("not a message of the protocol: {0}")]
    Unknown(#[from] serde_json::Error),
}

/// Appends a message to a buffer. Appends nothing if it fails.
pub fn encode<M: Serialize>(message: &M, into: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = into.len();
    into.extend_from_slice(&[0; HEAD]);
    let result = serde_json::to_writer(&mut *into, message).map_err(FrameError::from).and_then(|()| {
        let length = into.len() - start - HEAD;
        if length > MESSAGE_MAX { Err(FrameError::TooLong(length)) } else { Ok(length) }
    });
    match result {
        Ok(length) => {
            let head = u32::try_from(length).expect("MESSAGE_MAX fits into four bytes").to_le_bytes();
            into[start..start + HEAD].copy_from_slice(&head);
            Ok(())
        }
        Err(error) => {
            into.truncate(start);
            Err(error)
        }
    }
}

/// Bytes that were received and not decoded yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// How many of them were decoded.
    taken: usize,
}

impl Inbox {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message. After an error nothing more can be decoded, because it is unknown where the next
    /// message begins.
    #[expect(clippy::should_implement_trait, reason = "the type of the message is a parameter")]
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
            self.compact();
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
        if length > MESSAGE_MAX {
            return Err(FrameError::TooLong(length));
        }
        let Some(body) = rest.get(..length) else {
            self.compact();
            return Ok(None);
        };
        let message = serde_json::from_slice(body)?;
        self.taken += HEAD + length;
        Ok(Some(message))
    }

    /// Moves the rest to the front, once for all messages that were decoded.
    fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_MAX {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{RunKey, ToKeeper};

    fn messages() -> Vec<ToKeeper> {
        vec![
            ToKeeper::Retire,
            ToKeeper::Forget { runs: vec![RunKey(1), RunKey(u128::MAX)] },
            ToKeeper::Stop { run: RunKey(7), signal: 15, grace: 1 },
        ]
    }

    #[test]
    fn messages_round_trip_however_the_bytes_are_split() {
        let mut bytes = Vec::new();
        for message in messages() {
            encode(&message, &mut bytes).unwrap();
        }
        for piece in 1..=bytes.len() {
            let mut inbox = Inbox::default();
            let mut seen = Vec::new();
            for part in bytes.chunks(piece) {
                inbox.push(part);
                while let Some(message) = inbox.next::<ToKeeper>().unwrap() {
                    seen.push(message);
                }
            }
            assert_eq!(seen, messages(), "in pieces of {piece}");
        }
    }

    #[test]
    fn invalid_and_long_messages_are_errors() {
        let mut inbox = Inbox::default();
        inbox.push(&u32::MAX.to_le_bytes());
        assert!(matches!(inbox.next::<ToKeeper>(), Err(FrameError::TooLong(_))));
        let mut inbox = Inbox::default();
        inbox.push(&[2, 0, 0, 0, b'{', b'}']);
        assert!(matches!(inbox.next::<ToKeeper>(), Err(FrameError::Unknown(_))));
    }

    #[test]
    fn message_that_is_too_long_is_not_encoded_in_part() {
        let mut bytes = vec![1, 2, 3];
        assert!(encode(&"x".repeat(MESSAGE_MAX), &mut bytes).is_err());
        assert_eq!(bytes, [1, 2, 3]);
    }
}
