//! A pipe whose reader may leave before the end, as in `cronhold check jobs | head -1`. That is no error, and must not
//! change what the process exits with.

use std::io::{self, ErrorKind, Write};

/// Passes on what is written until the reader has left; what comes later is dropped.
#[derive(Debug)]
pub(crate) struct Pipe<W> {
    to: W,
    left: bool,
}

impl<W: Write> Pipe<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, left: false }
    }

    fn unless_left<T>(&mut self, dropped: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.left {
            return Ok(dropped);
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.left = true;
                Ok(dropped)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_left(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_left((), Write::flush)
    }
}
