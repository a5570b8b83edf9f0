//! A connection to a daemon. Nothing here blocks: available messages are read, and outgoing ones wait in a buffer with
//! a limit. A daemon that does not read loses the connection, reconnects, and gets the whole list.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::frames::{FrameError, Inbox, encode};
use crate::protocol::{FromKeeper, ToKeeper};

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Reads in one turn.
const READS_MAX: usize = 16;
/// Bytes that may wait to be read by the daemon: a list of 100,000 programs has 15 MiB.
const OUT_MAX: usize = 32 * 1024 * 1024;
/// The capacity that an empty buffer keeps.
const KEPT_MAX: usize = 1024 * 1024;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionClosed {
    #[error("the daemon closed it")]
    Gone,
    #[error("the daemon does not read its messages")]
    Slow,
    #[error(transparent)]
    Invalid(#[from] FrameError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A connection to a daemon.
#[derive(Debug)]
pub(crate) struct DaemonConnection {
    socket: OwnedFd,
    inbox: Inbox,
    out: Vec<u8>,
    sent: usize,
    chunk: Box<[u8]>,
    /// Whether the loop waits for it to become readable, and writable.
    pub(crate) waits: (bool, bool),
}

impl DaemonConnection {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        let chunk = vec![0; READ].into_boxed_slice();
        Self { socket, inbox: Inbox::default(), out: Vec::new(), sent: 0, chunk, waits: (true, false) }
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Reads available bytes, up to a limit.
    pub(crate) fn receive(&mut self) -> Result<(), ConnectionClosed> {
        for _ in 0..READS_MAX {
            match rustix::net::recv(&self.socket, &mut *self.chunk, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(ConnectionClosed::Gone),
                Ok((length, _)) => {
                    self.inbox.push(&self.chunk[..length]);
                    if length < READ {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(ConnectionClosed::Io(error.into())),
            }
        }
        Ok(())
    }

    /// The next complete message.
    pub(crate) fn next(&mut self) -> Result<Option<ToKeeper>, ConnectionClosed> {
        Ok(self.inbox.next()?)
    }

    /// Adds a message to what is to be sent.
    pub(crate) fn add(&mut self, message: &FromKeeper) -> Result<(), ConnectionClosed> {
        encode(message, &mut self.out)?;
        if self.out.len() - self.sent > OUT_MAX { Err(ConnectionClosed::Slow) } else { Ok(()) }
    }

    /// Sends as much as the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectionClosed> {
        while self.sent < self.out.len() {
            match rustix::net::send(&self.socket, &self.out[self.sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(length) => self.sent += length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(ConnectionClosed::Io(error.into())),
            }
        }
        self.out.clear();
        self.out.shrink_to(KEPT_MAX);
        self.sent = 0;
        Ok(())
    }

    /// Whether something waits to be sent.
    pub(crate) fn is_behind(&self) -> bool {
        self.sent < self.out.len()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::protocol::RunKey;

    #[test]
    fn daemon_that_does_not_read_is_disconnected() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut connection = DaemonConnection::new(ours.into());
        let message = FromKeeper::Refused { run: RunKey(1), why: "x".repeat(1024 * 1024) };
        let mut added = 0;
        let error = loop {
            connection.flush().unwrap();
            match connection.add(&message) {
                Ok(()) => added += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ConnectionClosed::Slow), "{error}");
        assert!((31..40).contains(&added), "{added}");
        drop(theirs);
        assert!(connection.flush().is_err());
    }

    #[test]
    fn last_message_is_received_before_the_close() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut connection = DaemonConnection::new(ours.into());
        connection.receive().unwrap();
        let mut bytes = Vec::new();
        encode(&ToKeeper::Retire, &mut bytes).unwrap();
        io::Write::write_all(&mut &theirs, &bytes).unwrap();
        drop(theirs);
        connection.receive().unwrap();
        assert_eq!(connection.next().unwrap(), Some(ToKeeper::Retire));
        assert!(connection.next().unwrap().is_none());
        assert!(matches!(connection.receive(), Err(ConnectionClosed::Gone)));
    }
}
