//! A line to a keeper: bytes wait in two buffers, and the thread waits for whichever side can go on.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::Heard;
use super::bell::{Bell, watch};
use crate::frames::{FrameError, Inbox, encode};
use crate::protocol::{FromKeeper, ToKeeper, is_understood, spoken};

/// No more messages are taken from the party while so many bytes wait to be sent.
const OUT_MAX: usize = 1 << 20;
/// Bytes that are read at once.
const READ_MAX: usize = 256 * 1024;
/// A keeper that has not answered the hello after this time is none.
const HELLO_WAIT: Duration = Duration::from_secs(10);

/// A line to a keeper.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    coming: Inbox,
    /// What is read goes through here.
    scratch: Vec<u8>,
    going: Vec<u8>,
    /// How much of `going` is gone.
    gone: usize,
}

impl Line {
    /// A line on a socket, with the hello on its way.
    pub(super) fn new(stream: UnixStream, version: &str) -> io::Result<Self> {
        let mut line =
            Self { stream, coming: Inbox::default(), scratch: vec![0; READ_MAX], going: Vec::new(), gone: 0 };
        let (oldest, protocol) = spoken();
        let hello = ToKeeper::Hello { protocol, oldest, version: version.to_owned() };
        line.put(&hello).map_err(io::Error::other)?;
        line.stream.set_read_timeout(Some(HELLO_WAIT))?;
        line.stream.set_write_timeout(Some(HELLO_WAIT))?;
        line.stream.write_all(&line.going)?;
        line.going.clear();
        Ok(line)
    }

    /// Waits for the answer to the hello.
    pub(super) fn greeting(&mut self) -> Result<Heard, String> {
        let said = loop {
            match self.coming.next() {
                Ok(Some(said)) => break said,
                Ok(None) => {}
                Err(error) => return Err(format!("does not speak as one: {error}")),
            }
            match self.read() {
                Ok(0) => return Err("closed the line instead of an answer".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("did not answer: {error}")),
            }
        };
        let FromKeeper::Hello { protocol, oldest, version, pid, warnings } = said else {
            return Err("began with something other than a hello".to_owned());
        };
        if !is_understood(oldest, protocol) {
            let own = spoken();
            return Err(format!(
                "that runs here (version {version}, pid {pid}) speaks protocol {oldest} to {protocol}, and this daemon \
                 speaks {} to {}; its programs go on: start a daemon of version {version} to \
                 look after them, or end it with `kill {pid}` when they are over",
                own.0, own.1
            ));
        }
        self.stream.set_nonblocking(true).map_err(|error| format!("cannot be waited for: {error}"))?;
        Ok(Heard::Connected { version, pid, warnings })
    }

    /// Whether another message may be put.
    pub(super) fn has_room(&self) -> bool {
        self.going.len() - self.gone < OUT_MAX
    }

    /// Puts a message on its way.
    pub(super) fn put(&mut self, message: &ToKeeper) -> Result<(), FrameError> {
        encode(message, &mut self.going)
    }

    /// Sends what can be sent.
    pub(super) fn send(&mut self) -> Result<(), String> {
        self.write().map_err(|error| broken(&error))
    }

    /// Waits until something comes, the bell rings or more can be sent, and answers with what has come.
    pub(super) fn receive(&mut self, bell: &Bell) -> Result<Vec<FromKeeper>, String> {
        // The list often comes with the greeting, and nothing may come after it for a long time.
        let said = self.understand()?;
        if !said.is_empty() {
            return Ok(said);
        }
        let wanted = if self.going.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut fds = [PollFd::new(&self.stream, wanted), PollFd::new(bell, PollFlags::IN)];
        watch(&mut fds, None).map_err(|error| broken(&error))?;
        let [has_come, has_rung] = fds.map(|fd| !fd.revents().is_empty());
        if has_rung {
            bell.hush();
        }
        let is_over = has_come && self.read().map_or_else(|error| !is_passing(&error), |count| count == 0);
        // What it said before the line broke is heard first; the next time finds the line broken again.
        let said = self.understand()?;
        if said.is_empty() && is_over { Err("has closed the line".to_owned()) } else { Ok(said) }
    }

    /// All messages that have come whole.
    fn understand(&mut self) -> Result<Vec<FromKeeper>, String> {
        let mut said = Vec::new();
        loop {
            match self.coming.next() {
                Ok(Some(message)) => said.push(message),
                Err(error) if said.is_empty() => return Err(format!("said what nobody understands: {error}")),
                Ok(None) | Err(_) => return Ok(said),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while self.gone < self.going.len() {
            match self.stream.write(&self.going[self.gone..]) {
                Ok(count) => self.gone += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Whoever does not take any more may have said something before.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.going.clear();
        self.gone = 0;
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let count = self.stream.read(&mut self.scratch)?;
        self.coming.push(&self.scratch[..count]);
        Ok(count)
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn broken(error: &io::Error) -> String {
    format!("cannot be talked to: {error}")
}
