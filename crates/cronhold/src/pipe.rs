//! A pipe whose reader may leave before the end, as in `cronhold check jobs | head -1`. That is no error, and must not
//! change what the process exits with.

use std::io::{self, ErrorKind, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Passes on what is written until the reader has left; what comes later is dropped.
#[derive(Debug)]
pub(crate) struct Pipe<W> {
    to: W,
    left: bool,
    /// Whether the writer hears once that the reader has left.
    tells: bool,
}

impl<W: Write> Pipe<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, left: false, tells: false }
    }

    /// One for a writer who would go on for ever, and has to know that there is no reason to.
    pub(crate) fn telling(to: W) -> Self {
        Self { to, left: false, tells: true }
    }

    fn unless_left<T>(&mut self, dropped: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.left {
            return Ok(dropped);
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.left = true;
                if self.tells { Err(error) } else { Ok(dropped) }
            }
            other => other,
        }
    }
}

/// Ends the process, as one that is done, when whoever reads its answers leaves. A pipe tells that to those who write, and
/// who waits for something to write may wait long.
pub(crate) fn end_with_reader() {
    // The thread ends with the process, which has nobody else to wait for it.
    std::thread::spawn(|| {
        let stdout = io::stdout();
        loop {
            // Nothing is asked for but what is always told: that the other end is closed.
            let mut end = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut end, None) {
                Err(Errno::INTR) => {}
                Ok(_) if end[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => std::process::exit(0),
                // Where it cannot be known, the next answer finds out.
                Ok(_) | Err(_) => return,
            }
        }
    });
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_left(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_left((), Write::flush)
    }
}
