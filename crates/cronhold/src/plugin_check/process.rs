//! An executable that is tried as a plug-in: a process in a group of its own, with a thread for each stream.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_schedule::Span;
use rustix::process::{Pid, kill_process_group};

/// Bytes that are read at once.
const READ_MAX: usize = 64 * 1024;

/// A process and what it writes.
#[derive(Debug)]
pub(super) struct PluginProcess {
    group: Pid,
    events: Receiver<ProcessEvent>,
}

/// What a process does.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    Wrote(ProcessStream, Vec<u8>),
    /// One of its streams has ended.
    Closed,
    Ended(Reason),
}

/// A stream that a process writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessStream {
    Output,
    Error,
}

impl ProcessStream {
    /// How many there are.
    pub(super) const COUNT: usize = 2;
}

impl PluginProcess {
    /// Starts a command with `input` on its standard input.
    pub(super) fn spawn(words: &[String], env: &[(&str, String)], input: String) -> io::Result<Self> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(env.iter().map(|(name, value)| (*name, value))).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let group = Pid::from_child(&child);
        let (sender, events) = channel();
        if let Some(mut stdin) = child.stdin.take() {
            // An executable that does not read its message is not in the way of others.
            thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        }
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, ProcessStream::Output, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, ProcessStream::Error, sender.clone());
        }
        thread::spawn(move || drop(sender.send(ProcessEvent::Ended(wait(child)))));
        Ok(Self { group, events })
    }

    /// The next event; `None` if there is none within this time.
    pub(super) fn next(&self, span: Span) -> Option<ProcessEvent> {
        self.events.recv_timeout(Duration::from_micros(span.micros())).ok()
    }

    /// Sends a signal to the process group.
    pub(super) fn signal(&self, signal: Signal) {
        let number = rustix::process::Signal::from_named_raw(signal.number());
        if let Some(number) = number {
            // The group may be gone.
            let _ = kill_process_group(self.group, number);
        }
    }
}

fn forward(mut stream: impl Read + Send + 'static, which: ProcessStream, sender: Sender<ProcessEvent>) {
    thread::spawn(move || {
        let mut buffer = vec![0; READ_MAX];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if sender.send(ProcessEvent::Wrote(which, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
        let _ = sender.send(ProcessEvent::Closed);
    });
}

fn wait(mut child: Child) -> Reason {
    child.wait().map_or(Reason::KeeperLost, reason)
}

fn reason(status: ExitStatus) -> Reason {
    match (status.code(), status.signal()) {
        (Some(code), _) => Reason::ExitCode(code),
        (None, number) => {
            let number = number.unwrap_or(0);
            Signal::from_number(number).map_or(Reason::ExitCode(128 + number), Reason::Signal)
        }
    }
}
