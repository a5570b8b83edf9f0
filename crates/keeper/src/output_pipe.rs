//! The pipe between a program and its output file. A program gets a pipe and not the file itself, because a program
//! that opens `/dev/stderr` for writing would truncate a file. Both streams share one pipe, so their order is kept;
//! standard error has a second pipe only if the streams are to be told apart.
//!
//! The program's end can be read as well as written. So a program that loses all readers is neither ended by SIGPIPE
//! nor sees an error; it waits once the pipe is full.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::clock;
use crate::outputs::is_regular;
use crate::protocol::RunKey;
use crate::stderr_index;

/// Programs may run as another user, or become one, and open `/dev/stderr` then. Only processes that could read the
/// program's memory reach the pipe otherwise.
const MODE: u32 = 0o666;
/// Bytes that are copied at once, if they cannot be moved.
const COPY_MAX: usize = 64 * 1024;

/// The keeper's end of the pipe that a program writes to.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    read_end: OwnedFd,
    id: u64,
}

/// The keeper's ends of the pipes of a program.
#[derive(Debug)]
pub(crate) struct ProgramPipes {
    pub(crate) output: OutputPipe,
    /// The pipe of standard error, if it is not the same.
    pub(crate) stderr: Option<OutputPipe>,
}

/// The ends for the program.
#[derive(Debug)]
pub(crate) struct ProgramEnds {
    output: OwnedFd,
    stderr: Option<OwnedFd>,
}

/// The stream of a program that a pipe carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OutputStream {
    /// Standard output, and standard error unless it has a pipe of its own.
    Output,
    Stderr,
}

/// An output file that only this process appends to for now: the keeper and the collector both append.
#[derive(Debug)]
pub(crate) struct LockedOutput {
    file: OwnedFd,
}

/// Bytes were taken from the pipe and cannot be written.
#[derive(Debug)]
pub(crate) struct OutputLost {
    pub(crate) bytes: u64,
    pub(crate) reason: Errno,
}

impl OutputPipe {
    /// Creates a pipe. Also returns the end for the program.
    pub(crate) fn create() -> rustix::io::Result<(Self, OwnedFd)> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::fs::fchmod(&read_end, Mode::from_raw_mode(MODE))?;
        let path = format!("/proc/self/fd/{}", write_end.as_raw_fd());
        let program_end = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let id = rustix::fs::fstat(&read_end)?.st_ino;
        Ok((Self { read_end, id }, program_end))
    }

    /// The number by which `/proc` identifies the pipe.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether no process can write more.
    fn is_closed(&self) -> bool {
        let mut polled = [PollFd::new(&self.read_end, PollFlags::IN)];
        let is_polled = rustix::event::poll(&mut polled, Some(&clock::timespec(0))).is_ok();
        is_polled && polled[0].revents().contains(PollFlags::HUP)
    }
}

impl ProgramPipes {
    /// Creates the pipes of a program. Also returns the ends for the program.
    pub(crate) fn create(separate_stderr: bool) -> rustix::io::Result<(Self, ProgramEnds)> {
        let (output, output_end) = OutputPipe::create()?;
        let (stderr, stderr_end) = if separate_stderr { OutputPipe::create().map(Some)?.unzip() } else { (None, None) };
        Ok((Self { output, stderr }, ProgramEnds { output: output_end, stderr: stderr_end }))
    }

    /// Appends to the output of a run what is in the pipes now. Returns whether no process can write more.
    pub(crate) fn drain(&self, folder: &OwnedFd, run: RunKey) -> Result<bool, OutputLost> {
        let drained = drain(&self.output, OutputStream::Output, folder, run);
        if let Some(stderr) = &self.stderr {
            drain(stderr, OutputStream::Stderr, folder, run)?;
        }
        drained?;
        Ok(self.output.is_closed() && self.stderr.as_ref().is_none_or(OutputPipe::is_closed))
    }
}

impl ProgramEnds {
    /// The files for standard output and standard error.
    pub(crate) fn streams(&self) -> (&OwnedFd, &OwnedFd) {
        (&self.output, self.stderr.as_ref().unwrap_or(&self.output))
    }
}

impl AsFd for OutputPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }
}

/// Appends to the output of a run what is in a pipe now, and nothing that is written later. When it returns, everything
/// that another process took from the pipe before is in the file as well.
pub(crate) fn drain(pipe: &impl AsFd, stream: OutputStream, folder: &OwnedFd, run: RunKey) -> Result<(), OutputLost> {
    let waiting = |reason| OutputLost { bytes: rustix::io::ioctl_fionread(pipe).unwrap_or(0), reason };
    let output = LockedOutput::open(folder, run).map_err(waiting)?;
    let mut left = rustix::io::ioctl_fionread(pipe).map_err(waiting)?;
    while left > 0 {
        match output.append_stream(pipe, stream, left, folder, run)? {
            0 => break,
            moved => left = left.saturating_sub(moved),
        }
    }
    Ok(())
}

impl LockedOutput {
    /// Opens the output of a run. A program may have replaced it: only a regular file without other links is written.
    pub(crate) fn open(folder: impl AsFd, run: RunKey) -> rustix::io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(folder, run.to_string(), flags, Mode::empty())?;
        if !is_regular(&rustix::fs::fstat(&file)?) {
            return Err(Errno::PERM);
        }
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file })
    }

    /// Moves at most `most` bytes of a stream to the end of the file, and records which of them are standard error.
    pub(crate) fn append_stream(
        &self,
        pipe: &impl AsFd,
        stream: OutputStream,
        most: u64,
        folder: impl AsFd,
        run: RunKey,
    ) -> Result<u64, OutputLost> {
        let from = self.end();
        let moved = self.append(pipe, most)?;
        if stream == OutputStream::Stderr && moved > 0 {
            // The bytes are stored all the same; only to which stream they belong is lost.
            let _ = stderr_index::record(folder, run, from, from + moved);
        }
        Ok(moved)
    }

    /// Moves at most `most` bytes of a pipe to the end of the file. Returns 0 if the pipe is empty. The kernel moves
    /// them, so that none is lost if this process is killed.
    fn append(&self, pipe: &impl AsFd, most: u64) -> Result<u64, OutputLost> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        loop {
            let mut end = self.end();
            match splice(pipe, None, &self.file, Some(&mut end), most, SpliceFlags::NONBLOCK) {
                Ok(moved) => return Ok(moved as u64),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                // The disk may be full, or the file system cannot take bytes from a pipe.
                Err(_) => return self.copy(pipe, most),
            }
        }
    }

    /// Appends a text.
    pub(crate) fn write(&self, text: &[u8]) -> Result<(), OutputLost> {
        let (mut end, mut rest) = (self.end(), text);
        while !rest.is_empty() {
            match rustix::io::pwrite(&self.file, rest, end) {
                Ok(count) => {
                    end += count as u64;
                    rest = &rest[count..];
                }
                Err(Errno::INTR) => {}
                Err(reason) => return Err(OutputLost { bytes: rest.len() as u64, reason }),
            }
        }
        Ok(())
    }

    fn copy(&self, pipe: &impl AsFd, most: usize) -> Result<u64, OutputLost> {
        let mut buffer = vec![0; most.min(COPY_MAX)];
        let count = take(pipe, &mut buffer);
        self.write(&buffer[..count])?;
        Ok(count as u64)
    }

    fn end(&self) -> u64 {
        rustix::fs::fstat(&self.file).ok().and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0)
    }
}

/// Takes bytes from a pipe. Returns 0 if it is empty.
pub(crate) fn take(pipe: &impl AsFd, buffer: &mut [u8]) -> usize {
    rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;
    use crate::scratch_dir::ScratchDir;

    const RUN: RunKey = RunKey(1);

    #[test]
    fn output_is_appended_until_the_pipe_is_empty_and_closed() {
        let scratch = ScratchDir::new();
        let path = scratch.path().join(RUN.to_string());
        fs::write(&path, "before\n").unwrap();
        let folder = scratch.open();
        let (pipe, ends) = ProgramPipes::create(false).unwrap();
        let program_end = ends.output;
        assert!(!pipe.drain(&folder, RUN).unwrap());
        let mut program_end = File::from(program_end);
        program_end.write_all(b"one\n").unwrap();
        // Opened as a program opens /dev/stderr.
        let again = format!("/proc/self/fd/{}", program_end.as_raw_fd());
        fs::write(again, "two\n").unwrap();
        assert!(!pipe.drain(&folder, RUN).unwrap());
        program_end.write_all(b"three").unwrap();
        drop(program_end);
        assert!(pipe.drain(&folder, RUN).unwrap());
        assert_eq!(fs::read_to_string(path).unwrap(), "before\none\ntwo\nthree");
    }

    #[test]
    fn streams_with_pipes_of_their_own_are_told_apart() {
        let scratch = ScratchDir::new();
        let path = scratch.path().join(RUN.to_string());
        fs::write(&path, "").unwrap();
        fs::write(scratch.path().join(stderr_index::name(RUN)), [0; 8]).unwrap();
        let folder = scratch.open();
        let (pipes, ends) = ProgramPipes::create(true).unwrap();
        let (output, stderr) = ends.streams();
        let [mut output, mut stderr] = [output, stderr].map(|end| File::from(end.try_clone().unwrap()));
        drop(ends);
        output.write_all(b"one\n").unwrap();
        assert!(!pipes.drain(&folder, RUN).unwrap());
        stderr.write_all(b"two\n").unwrap();
        assert!(!pipes.drain(&folder, RUN).unwrap());
        output.write_all(b"three\n").unwrap();
        drop(output);
        assert!(!pipes.drain(&folder, RUN).unwrap());
        drop(stderr);
        assert!(pipes.drain(&folder, RUN).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(stderr_index::stderr_parts(&path).unwrap(), Some(vec![(4, 8)]));
    }

    #[test]
    fn output_that_cannot_be_written_is_counted() {
        let scratch = ScratchDir::new();
        let folder = scratch.open();
        let (pipe, ends) = ProgramPipes::create(false).unwrap();
        File::from(ends.output).write_all(b"twelve bytes").unwrap();
        let lost = pipe.drain(&folder, RUN).unwrap_err();
        assert_eq!((lost.bytes, lost.reason), (12, Errno::NOENT));
        std::os::unix::fs::symlink("/dev/full", scratch.path().join(RUN.to_string())).unwrap();
        assert!(pipe.drain(&folder, RUN).is_err());
    }

    #[test]
    fn bytes_are_copied_if_they_cannot_be_moved() {
        let scratch = ScratchDir::new();
        let path = scratch.path().join(RUN.to_string());
        fs::write(&path, "").unwrap();
        let output = LockedOutput::open(scratch.open(), RUN).unwrap();
        let (pipe, program_end) = OutputPipe::create().unwrap();
        File::from(program_end).write_all(b"text").unwrap();
        assert_eq!((output.copy(&pipe, 3).unwrap(), output.copy(&pipe, 9).unwrap()), (3, 1));
        assert_eq!(fs::read_to_string(path).unwrap(), "text");
    }
}
