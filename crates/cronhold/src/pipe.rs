//! A pipe whose reader may close it before the end, as in `cronhold check jobs | head -1`. That is not an error and
//! must not change the exit code of the process.

use std::io::{self, ErrorKind, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Passes on what is written until the reader closes the pipe, and drops the rest.
#[derive(Debug)]
pub(crate) struct ClosablePipe<W> {
    to: W,
    is_closed: bool,
    /// Whether the writer gets an error, once, when the reader closes the pipe.
    reports_close: bool,
}

impl<W: Write> ClosablePipe<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, is_closed: false, reports_close: false }
    }

    /// A pipe for a writer that would continue forever, and has to stop when the reader closes the pipe.
    pub(crate) fn reporting_close(to: W) -> Self {
        Self { to, is_closed: false, reports_close: true }
    }

    fn unless_closed<T>(&mut self, dropped: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.is_closed {
            return Ok(dropped);
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                if self.reports_close { Err(error) } else { Ok(dropped) }
            }
            other => other,
        }
    }
}

/// Exits with code 0 when the reader of standard output closes it. A pipe reports that only to writes, and a process
/// that waits for something to write may wait for a long time.
pub(crate) fn end_with_reader() {
    // The thread ends with the process.
    std::thread::spawn(|| {
        let stdout = io::stdout();
        loop {
            // No event is requested: that the other end is closed is always reported.
            let mut end = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut end, None) {
                Err(Errno::INTR) => {}
                Ok(_) if end[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => std::process::exit(0),
                // If it cannot be determined, the next write fails.
                Ok(_) | Err(_) => return,
            }
        }
    });
}

impl<W: Write> Write for ClosablePipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), Write::flush)
    }
}
