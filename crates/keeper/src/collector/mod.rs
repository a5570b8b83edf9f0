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

use crate::output_pipe::OutputPipe;
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
    /// A program is about to be started with this pipe.
    Add(RunKey, Rc<OutputPipe>),
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

    /// Hands over the pipe of a program that is about to be started.
    pub(crate) fn add(&mut self, run: RunKey, pipe: Rc<OutputPipe>) {
        self.unsent.push_back(CollectorMessage::Add(run, pipe));
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
    pub(crate) fn restart(&mut self, running: Vec<(RunKey, Rc<OutputPipe>)>, spawner: &Spawner, now: u64) {
        self.unsent = running.into_iter().map(|(run, pipe)| CollectorMessage::Add(run, pipe)).collect();
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

/// Sends the first messages of the same kind as one. Returns their number.
fn send_first(control: &OwnedFd, unsent: &VecDeque<CollectorMessage>) -> rustix::io::Result<usize> {
    let is_add = matches!(unsent.front(), Some(CollectorMessage::Add(..)));
    let mut bytes = vec![if is_add { ADD } else { END }];
    let mut pipes: Vec<BorrowedFd<'_>> = Vec::new();
    let mut count = 0;
    for message in unsent.iter().take(RUNS_MAX) {
        let run = match message {
            CollectorMessage::Add(run, pipe) if is_add => {
                pipes.push(pipe.as_fd());
                run
            }
            CollectorMessage::End(run) if !is_add => run,
            CollectorMessage::Add(..) | CollectorMessage::End(_) => break,
        };
        bytes.extend_from_slice(&run.0.to_le_bytes());
        count += 1;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RUNS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !pipes.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
    }
    sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(count)
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
