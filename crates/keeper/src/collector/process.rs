//! The collector's own process: `cronhold keeper-outputs`. Its standard input is the socket of its keeper, and its
//! standard output the directory of the outputs.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::stdio::{stderr, stdin, stdout};

use super::{ADD, ADD_STDERR, END, RUN_BYTES, RUNS_MAX};
use crate::home;
use crate::output_pipe::{LockedOutput, OutputLost, OutputStream, take};
use crate::protocol::RunKey;

/// Events of one pass.
const EVENTS_MAX: usize = 256;
/// Bytes that are taken from one pipe before the others have their turn; a pipe rarely has more.
const TURN_MAX: u64 = 1024 * 1024;
/// Bytes that are dropped at once.
const DROP_MAX: usize = 64 * 1024;
/// The token of the keeper's socket. Those of pipes count from zero.
const CONTROL: u64 = u64::MAX;
/// Signals to the whole service do not end the collector: it ends after the last program.
const IGNORED: [Signal; 5] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGXFSZ, Signal::SIGPIPE];

/// A pipe and the run that its bytes belong to.
#[derive(Debug)]
struct CollectedPipe {
    run: RunKey,
    stream: OutputStream,
    pipe: OwnedFd,
    /// Whether the run is over, so that its bytes are dropped.
    is_ended: bool,
    /// Bytes that could not be written since the last that could.
    lost: u64,
}

/// All pipes.
#[derive(Debug)]
struct Collector {
    epoll: OwnedFd,
    pipes: BTreeMap<u64, CollectedPipe>,
    tokens: BTreeMap<(RunKey, OutputStream), u64>,
    next_token: u64,
    /// Whether the keeper is gone.
    is_orphan: bool,
    buffer: Vec<u8>,
}

/// Collects outputs until the keeper is gone and every pipe is closed: `cronhold keeper-outputs`.
pub fn collect_outputs() -> ExitCode {
    match Collector::new().and_then(Collector::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_line(&format!("the collector of outputs cannot continue: {error}"));
            ExitCode::FAILURE
        }
    }
}

impl Collector {
    fn new() -> io::Result<Self> {
        let mut signals = SigSet::empty();
        IGNORED.iter().for_each(|signal| signals.add(*signal));
        signals.thread_block()?;
        home::raise_file_limit();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stdin(), EventData::new_u64(CONTROL), EventFlags::IN)?;
        Ok(Self {
            epoll,
            pipes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            is_orphan: false,
            buffer: vec![0; DROP_MAX],
        })
    }

    fn run(mut self) -> io::Result<()> {
        while !self.is_orphan || !self.pipes.is_empty() {
            let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events {
                let (token, flags) = (event.data.u64(), event.flags);
                match token {
                    CONTROL => self.receive()?,
                    _ => self.collect(token, flags.contains(EventFlags::HUP)),
                }
            }
            if self.is_orphan && self.pipes.values().all(|pipe| pipe.is_ended) {
                // A new keeper waits for this. What is left are background processes of runs that are over.
                let _ = rustix::fs::flock(stdout(), FlockOperation::Unlock);
            }
        }
        Ok(())
    }

    /// Receives a message of the keeper.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1 + RUNS_MAX * RUN_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RUNS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let length = match recvmsg(stdin(), &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Ok(message) => message.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            // The keeper is gone.
            Err(_) => 0,
        };
        let Some((kind, runs)) = bytes[..length].split_first() else {
            self.is_orphan = true;
            epoll::delete(&self.epoll, stdin())?;
            return Ok(());
        };
        let runs =
            runs.chunks_exact(RUN_BYTES).filter_map(|bytes| Some(RunKey(u128::from_le_bytes(bytes.try_into().ok()?))));
        let pipes = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(pipes) => Some(pipes),
            _ => None,
        });
        match *kind {
            ADD => runs.zip(pipes.flatten()).try_for_each(|(run, pipe)| self.add(run, OutputStream::Output, pipe)),
            ADD_STDERR => {
                runs.zip(pipes.flatten()).try_for_each(|(run, pipe)| self.add(run, OutputStream::Stderr, pipe))
            }
            END => {
                runs.for_each(|run| self.end(run));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, run: RunKey, stream: OutputStream, pipe: OwnedFd) -> io::Result<()> {
        let token = self.next_token;
        self.next_token += 1;
        epoll::add(&self.epoll, &pipe, EventData::new_u64(token), EventFlags::IN)?;
        self.tokens.insert((run, stream), token);
        self.pipes.insert(token, CollectedPipe { run, stream, pipe, is_ended: false, lost: 0 });
        Ok(())
    }

    fn end(&mut self, run: RunKey) {
        for stream in [OutputStream::Output, OutputStream::Stderr] {
            if let Some(pipe) = self.tokens.get(&(run, stream)).and_then(|token| self.pipes.get_mut(token)) {
                pipe.is_ended = true;
            }
        }
    }

    /// Moves what is in a pipe to its file, and forgets the pipe when nothing more can come.
    fn collect(&mut self, token: u64, is_closed: bool) {
        let Some(pipe) = self.pipes.get_mut(&token) else { return };
        let count = pipe.move_bytes(&mut self.buffer);
        if count == 0 && is_closed {
            // The keeper has the same pipe open, so closing it here does not end its events.
            let _ = epoll::delete(&self.epoll, &pipe.pipe);
            self.tokens.remove(&(pipe.run, pipe.stream));
            self.pipes.remove(&token);
        }
    }
}

impl CollectedPipe {
    /// Moves bytes to the file. Returns how many were taken from the pipe. What cannot be written is dropped: a program
    /// does not wait for a disk that is full.
    fn move_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        if rustix::io::ioctl_fionread(&self.pipe) == Ok(0) {
            return 0;
        }
        if self.is_ended {
            return take(&self.pipe, buffer) as u64;
        }
        let output = match LockedOutput::open(stdout(), self.run) {
            Ok(output) => output,
            Err(reason) => {
                let bytes = take(&self.pipe, buffer) as u64;
                // The keeper removes the output of a run that is stored.
                if reason != Errno::NOENT {
                    self.drop_bytes(&OutputLost { bytes, reason });
                }
                return bytes;
            }
        };
        if self.lost > 0 && output.write(lost_notice(self.lost).as_bytes()).is_ok() {
            self.lost = 0;
        }
        match output.append_stream(&self.pipe, self.stream, TURN_MAX, stdout(), self.run) {
            Ok(count) => count,
            Err(lost) => {
                self.drop_bytes(&lost);
                lost.bytes
            }
        }
    }

    fn drop_bytes(&mut self, lost: &OutputLost) {
        if self.lost == 0 {
            log_line(&format!("cannot write the output of run {}: {}", self.run, io::Error::from(lost.reason)));
        }
        self.lost += lost.bytes;
    }
}

/// The line that stands for bytes that could not be written.
fn lost_notice(bytes: u64) -> String {
    format!("\n[… {bytes} bytes could not be written …]\n")
}

/// Logs a line. The standard error is the keeper's log.
fn log_line(text: &str) {
    // Whether it can be written makes no difference.
    let _ = rustix::io::write(stderr(), format!("{text}\n").as_bytes());
}
