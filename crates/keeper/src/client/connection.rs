//! One connection to a keeper, with a buffer for each direction.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::ConnectionError;
use super::wakeup::{Wakeup, awake_clock, poll_ready};
use crate::frames::{FrameError, Inbox, encode};
use crate::protocol::{FromKeeper, PROTOCOL_WITH_PINGS, ToKeeper, is_understood, spoken};

/// No more messages are taken from the delegate while this many bytes wait to be sent.
const OUT_MAX: usize = 1 << 20;
/// Bytes in one read.
const READ_MAX: usize = 256 * 1024;
/// How long the keeper may take to answer the hello.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// The answer of a keeper to the hello.
#[derive(Debug)]
pub(super) struct KeeperHello {
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) warnings: Vec<String>,
    /// The newest protocol of the keeper.
    protocol: u32,
}

impl KeeperHello {
    pub(super) fn understands_pings(&self) -> bool {
        self.protocol >= PROTOCOL_WITH_PINGS
    }
}

/// A connection to a keeper. Nothing here blocks except the waits.
#[derive(Debug)]
pub(super) struct KeeperConnection {
    stream: UnixStream,
    inbox: Inbox,
    /// The buffer for reads.
    read_buffer: Vec<u8>,
    outbox: Vec<u8>,
    /// How many bytes of `outbox` were sent.
    sent: usize,
}

impl KeeperConnection {
    /// Takes a socket that does not block, and sends the hello.
    pub(super) fn new(stream: UnixStream, version: &str) -> io::Result<Self> {
        let mut connection =
            Self { stream, inbox: Inbox::default(), read_buffer: vec![0; READ_MAX], outbox: Vec::new(), sent: 0 };
        let (oldest, protocol) = spoken();
        let hello = ToKeeper::Hello { protocol, oldest, version: version.to_owned() };
        connection.put(&hello).map_err(io::Error::other)?;
        connection.write()?;
        Ok(connection)
    }

    /// Waits for the answer to the hello; `None` if the client is dropped before it comes.
    pub(super) fn receive_hello(
        &mut self,
        wakeup: &Wakeup,
        is_stopping: &AtomicBool,
    ) -> Result<Option<KeeperHello>, ConnectionError> {
        let until = awake_clock() + HELLO_WAIT;
        let message = loop {
            if let Some(message) = self.inbox.next().map_err(ConnectionError::InvalidHello)? {
                break message;
            }
            let left = until.saturating_sub(awake_clock());
            if is_stopping.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if left.is_zero() {
                return Err(ConnectionError::NoHello { after: HELLO_WAIT });
            }
            let waited = self.wait(wakeup, PollFlags::IN, Some(left)).map_err(ConnectionError::Socket);
            let (is_readable, is_notified) = waited?;
            if is_notified {
                // Messages wait for the connection in any case.
                wakeup.clear();
            }
            match is_readable.then(|| self.read()) {
                Some(Ok(0)) => return Err(ConnectionError::ClosedBeforeHello),
                Some(Err(error)) if !is_transient(&error) => return Err(ConnectionError::Socket(error)),
                _ => {}
            }
        };
        let FromKeeper::Hello { protocol, oldest, version, pid, warnings } = message else {
            return Err(ConnectionError::NotAHello);
        };
        if !is_understood(oldest, protocol) {
            return Err(ConnectionError::OtherProtocol { version, pid, theirs: (oldest, protocol), ours: spoken() });
        }
        Ok(Some(KeeperHello { version, pid, warnings, protocol }))
    }

    /// Whether another message may be added.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < OUT_MAX
    }

    /// Adds a message to what is to be sent.
    pub(super) fn put(&mut self, message: &ToKeeper) -> Result<(), FrameError> {
        encode(message, &mut self.outbox)
    }

    /// Sends what can be sent.
    pub(super) fn send(&mut self) -> Result<(), ConnectionError> {
        self.write().map_err(ConnectionError::Socket)
    }

    /// Waits until a message arrives, the wakeup is notified, more can be sent, or the time has passed, and returns the
    /// messages.
    pub(super) fn receive(
        &mut self,
        wakeup: &Wakeup,
        most: Option<Duration>,
    ) -> Result<Vec<FromKeeper>, ConnectionError> {
        // The list often arrives with the hello, and there may be no further message for a long time.
        let messages = self.messages()?;
        if !messages.is_empty() {
            return Ok(messages);
        }
        let wanted = if self.outbox.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let (is_readable, is_notified) = self.wait(wakeup, wanted, most).map_err(ConnectionError::Socket)?;
        if is_notified {
            wakeup.clear();
        }
        let is_closed = is_readable && self.read().map_or_else(|error| !is_transient(&error), |count| count == 0);
        // Messages that arrived before the close are handled first; the next call finds the connection closed again.
        let messages = self.messages()?;
        if messages.is_empty() && is_closed { Err(ConnectionError::Closed) } else { Ok(messages) }
    }

    /// Waits for the socket or the wakeup. Returns whether each of them is ready.
    fn wait(&self, wakeup: &Wakeup, wanted: PollFlags, most: Option<Duration>) -> io::Result<(bool, bool)> {
        let mut fds = [PollFd::new(&self.stream, wanted), PollFd::new(wakeup, PollFlags::IN)];
        poll_ready(&mut fds, most)?;
        let [is_ready, is_notified] = fds.map(|fd| !fd.revents().is_empty());
        Ok((is_ready, is_notified))
    }

    /// All complete messages that have arrived.
    fn messages(&mut self) -> Result<Vec<FromKeeper>, ConnectionError> {
        let mut messages = Vec::new();
        loop {
            match self.inbox.next() {
                Ok(Some(message)) => messages.push(message),
                Err(error) if messages.is_empty() => return Err(ConnectionError::Invalid(error)),
                Ok(None) | Err(_) => return Ok(messages),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.outbox.len() {
            match self.stream.write(&self.outbox[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The keeper may have sent something before it closed its side.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let count = self.stream.read(&mut self.read_buffer)?;
        self.inbox.push(&self.read_buffer[..count]);
        Ok(count)
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
