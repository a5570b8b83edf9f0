//! A connection to a daemon. Nothing here waits: what comes is taken as far as it came, and what is to be sent lies in a
//! buffer with a limit. Whoever does not read what we say loses the connection, comes again, and gets the whole list.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::frames::{FrameError, Inbox, encode};
use crate::protocol::{FromKeeper, ToKeeper};

/// How much is read at once.
const READ: usize = 64 * 1024;
/// How often that is done before other work has its turn.
const READS_MAX: usize = 16;
/// What may wait to be read by the other side: a list of 100,000 programs has 15 MiB.
const OUT_MAX: usize = 32 * 1024 * 1024;
/// A buffer that is empty again keeps this much.
const KEPT_MAX: usize = 1024 * 1024;

/// The connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Closed {
    #[error("the other side went away")]
    Gone,
    #[error("it does not read what it is told")]
    Slow,
    #[error(transparent)]
    Garbage(#[from] FrameError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    socket: OwnedFd,
    inbox: Inbox,
    out: Vec<u8>,
    sent: usize,
    chunk: Box<[u8]>,
    /// What is waited for: to read, to write.
    pub(crate) waits: (bool, bool),
}

impl Line {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        let chunk = vec![0; READ].into_boxed_slice();
        Self { socket, inbox: Inbox::default(), out: Vec::new(), sent: 0, chunk, waits: (true, false) }
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Takes what came, within bounds.
    pub(crate) fn receive(&mut self) -> Result<(), Closed> {
        for _ in 0..READS_MAX {
            match rustix::net::recv(&self.socket, &mut *self.chunk, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Closed::Gone),
                Ok((length, _)) => {
                    self.inbox.push(&self.chunk[..length]);
                    if length < READ {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Closed::Io(error.into())),
            }
        }
        Ok(())
    }

    /// The next whole message of what came.
    pub(crate) fn next(&mut self) -> Result<Option<ToKeeper>, Closed> {
        Ok(self.inbox.next()?)
    }

    /// Adds a message to what is to be sent.
    pub(crate) fn tell(&mut self, message: &FromKeeper) -> Result<(), Closed> {
        encode(message, &mut self.out)?;
        if self.out.len() - self.sent > OUT_MAX { Err(Closed::Slow) } else { Ok(()) }
    }

    /// Sends as much as the other side takes.
    pub(crate) fn flush(&mut self) -> Result<(), Closed> {
        while self.sent < self.out.len() {
            match rustix::net::send(&self.socket, &self.out[self.sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(length) => self.sent += length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Closed::Io(error.into())),
            }
        }
        self.out.clear();
        self.out.shrink_to(KEPT_MAX);
        self.sent = 0;
        Ok(())
    }

    /// Whether something waits for the other side to read.
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
    fn who_does_not_read_is_left() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut line = Line::new(ours.into());
        let message = FromKeeper::Refused { run: RunKey(1), why: "x".repeat(1024 * 1024) };
        let mut told = 0;
        let error = loop {
            line.flush().unwrap();
            match line.tell(&message) {
                Ok(()) => told += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Closed::Slow), "{error}");
        assert!((31..40).contains(&told), "{told}");
        drop(theirs);
        assert!(line.flush().is_err());
    }

    #[test]
    fn an_end_of_the_other_side_is_seen_after_its_last_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut line = Line::new(ours.into());
        line.receive().unwrap();
        let mut bytes = Vec::new();
        encode(&ToKeeper::Retire, &mut bytes).unwrap();
        io::Write::write_all(&mut &theirs, &bytes).unwrap();
        drop(theirs);
        line.receive().unwrap();
        assert_eq!(line.next().unwrap(), Some(ToKeeper::Retire));
        assert!(line.next().unwrap().is_none());
        assert!(matches!(line.receive(), Err(Closed::Gone)));
    }
}
