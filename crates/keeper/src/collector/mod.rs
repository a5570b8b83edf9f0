//! The collector: a process that moves the output of programs from their pipes to their files. It is a process of its
//! own so that a keeper that dies, or waits for a disk, does not hold up programs or lose their output. It outlives its
//! keeper until every pipe is closed. If it dies itself, the keeper starts another one: the keeper has the pipes too.
//!
//! A message of the keeper is one byte, the ids of some runs, and, for new runs, their pipes.

mod process;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};

use crate::output_pipe::{OutputPipe, OutputStream, ProgramPipes};
use crate::protocol::RunKey;
use crate::spawn::{SpawnError, Spawner};
use crate::{clock, log};

pub use process::collect_outputs;

/// The command of the binary that runs the collector.
pub(crate) const COLLECTOR_VERB: &str = "keeper-outputs";
/// Runs in one message.
const RUNS_MAX: usize = 64;
/// Bytes of a run's id in a message.
const RUN_BYTES: usize = 16;
/// The kinds of messages.
const ADD: u8 = b'+';
const ADD_STDERR: u8 = b'!';
const END: u8 = b'-';
/// How long after a failed start, or while the collector is too busy to receive, the keeper tries again, in
/// microseconds.
const RESTART_AFTER: u64 = 1_000_000;
const RESEND_AFTER: u64 = 20_000;
/// How long the collector of an earlier keeper may take to store what dead programs wrote, and the time between two
/// checks.
const EARLIER_WITHIN: u64 = 5_000_000;
const EARLIER_CHECK: u64 = 5_000;

/// The keeper's side of the collector.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    /// The directory of the outputs.
    folder: OwnedFd,
    process: Option<CollectorProcess>,
    /// Messages that were not sent yet.
    unsent: VecDeque<CollectorMessage>,
    /// No start and no message is tried before this time.
    not_before: u64,
}

#[derive(Debug)]
struct CollectorProcess {
    pid: i32,
    control: OwnedFd,
}

#[derive(Debug)]
enum CollectorMessage {
    /// A program is about to be started, and this stream has a pipe.
    Add(RunKey, OutputStream, Rc<ProgramPipes>),
    /// The run is over: what is written from now on is dropped.
    End(RunKey),
}

impl OutputCollector {
    /// Starts a collector for the outputs in a directory.
    pub(crate) fn start(folder: OwnedFd, spawner: &Spawner) -> Result<Self, SpawnError> {
        let mut collector = Self { folder, process: None, unsent: VecDeque::new(), not_before: 0 };
        collector.process = Some(collector.spawn(spawner)?);
        Ok(collector)
    }

    fn spawn(&self, spawner: &Spawner) -> Result<CollectorProcess, SpawnError> {
        let flags = SocketFlags::CLOEXEC;
        let (control, other_end) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(SpawnError::system("create a socket for the collector of outputs"))?;
        let pid = spawner.collector(&other_end, &self.folder)?;
        Ok(CollectorProcess { pid, control })
    }

    /// Hands over the pipes of a program that is about to be started.
    pub(crate) fn add(&mut self, run: RunKey, pipes: &Rc<ProgramPipes>) {
        self.unsent.push_back(CollectorMessage::Add(run, OutputStream::Output, Rc::clone(pipes)));
        if pipes.stderr.is_some() {
            self.unsent.push_back(CollectorMessage::Add(run, OutputStream::Stderr, Rc::clone(pipes)));
        }
    }

    /// A run is over, and some process still has its pipe.
    pub(crate) fn end(&mut self, run: RunKey) {
        self.unsent.push_back(CollectorMessage::End(run));
    }

    /// A child of the keeper has ended. Returns whether it was the collector.
    pub(crate) fn child_ended(&mut self, pid: i32) -> bool {
        let is_collector = self.process.as_ref().is_some_and(|process| process.pid == pid);
        if is_collector {
            log::line("the collector of outputs has died; starting another one");
            self.process = None;
        }
        is_collector
    }

    /// Whether there is no collector, and it is time to start one.
    pub(crate) fn must_restart(&self, now: u64) -> bool {
        self.process.is_none() && self.not_before <= now
    }

    /// Starts another collector for these programs.
    pub(crate) fn restart(&mut self, running: &[(RunKey, Rc<ProgramPipes>)], spawner: &Spawner, now: u64) {
        self.unsent.clear();
        running.iter().for_each(|(run, pipes)| self.add(*run, pipes));
        match self.spawn(spawner) {
            Ok(process) => self.process = Some(process),
            Err(error) => {
                log::line(&format!("cannot start the collector of outputs: {error}"));
                self.not_before = now + RESTART_AFTER;
            }
        }
    }

    /// When there is something to do; `None` if there is nothing.
    pub(crate) fn due(&self) -> Option<u64> {
        (self.process.is_none() || !self.unsent.is_empty()).then_some(self.not_before)
    }

    /// Sends what was not sent yet. Never waits for the collector.
    pub(crate) fn send(&mut self, now: u64) {
        let Some(process) = &self.process else { return };
        while !self.unsent.is_empty() {
            match send_first(&process.control, &self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::INTR) => {}
                // It is busy, or has died, which SIGCHLD reports.
                Err(_) => {
                    self.not_before = now + RESEND_AFTER;
                    return;
                }
            }
        }
    }
}

impl CollectorMessage {
    fn kind(&self) -> u8 {
        match self {
            Self::Add(_, OutputStream::Output, _) => ADD,
            Self::Add(_, OutputStream::Stderr, _) => ADD_STDERR,
            Self::End(_) => END,
        }
    }

    fn run(&self) -> RunKey {
        match self {
            Self::Add(run, ..) | Self::End(run) => *run,
        }
    }

    /// The pipe that is sent with the message.
    fn pipe(&self) -> Option<&OutputPipe> {
        match self {
            Self::Add(_, OutputStream::Output, pipes) => Some(&pipes.output),
            Self::Add(_, OutputStream::Stderr, pipes) => pipes.stderr.as_ref(),
            Self::End(_) => None,
        }
    }
}

/// Sends the first messages of the same kind as one. Returns their number.
fn send_first(control: &OwnedFd, unsent: &VecDeque<CollectorMessage>) -> rustix::io::Result<usize> {
    let kind = unsent.front().map_or(END, CollectorMessage::kind);
    let first: Vec<&CollectorMessage> =
        unsent.iter().take(RUNS_MAX).take_while(|message| message.kind() == kind).collect();
    let mut bytes = vec![kind];
    first.iter().for_each(|message| bytes.extend_from_slice(&message.run().0.to_le_bytes()));
    let pipes: Vec<BorrowedFd<'_>> = first.iter().filter_map(|message| message.pipe()).map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RUNS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !pipes.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
    }
    sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(first.len())
}

/// Waits until the collector of an earlier keeper has stored what programs that are dead now have written, and lets
/// later keepers wait for the collector of this one.
pub(crate) fn wait_for_earlier(folder: &OwnedFd) {
    let give_up = clock::now() + EARLIER_WITHIN;
    while rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive).is_err() {
        if clock::now() > give_up {
            log::line("the collector of an earlier keeper still has outputs of lost programs; they may be incomplete");
            return;
        }
        let _ = rustix::event::poll(&mut [], Some(&clock::timespec(EARLIER_CHECK)));
    }
    // The collector inherits this lock with the directory, and releases it after the keeper and its programs are gone.
    if let Err(error) = rustix::fs::flock(folder, FlockOperation::NonBlockingLockShared) {
        log::line(&format!("cannot lock the directory of outputs: {error}"));
    }
}
