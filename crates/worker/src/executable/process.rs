//! An executable that runs: a process in a group of its own, with a thread for each stream. Lines go through bounded
//! queues, so that neither side can fill the memory of the other.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cronhold_store::lock_mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::message::LINE_BYTES_MAX;
use super::{ExecutableEvent, ExecutableObserver};

/// Lines to the executable that it has not read.
const UNREAD_LINES_MAX: usize = 1_000;
/// Lines of the executable that were not processed. It waits when there are more.
const UNPROCESSED_LINES_MAX: usize = 64;
/// Last lines of standard error that errors quote.
const STDERR_LINES_KEPT: usize = 10;
/// Bytes of a line of standard error that are used.
const STDERR_LINE_MAX: usize = 4_096;
/// How long the streams of a process that has ended are read, if its descendants keep them open.
const STREAMS_WAIT: Duration = Duration::from_secs(5);

/// A running executable. It is killed with its group when this is dropped.
#[derive(Debug)]
pub(super) struct LineProcess {
    pid: u32,
    group: Pid,
    /// `None` when the input is closed.
    input: Mutex<Option<SyncSender<String>>>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    has_ended: Arc<Mutex<bool>>,
}

/// What a process does.
#[derive(Debug)]
pub(super) enum LineEvent {
    Line(String),
    /// A line that is too long or not UTF-8. Nothing follows but the end.
    Malformed(String),
    Ended(ExitStatus),
}

/// Why a line cannot be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineSendError {
    Ended,
    /// The executable does not read what it gets.
    Unread,
}

impl LineProcess {
    /// Starts a command. The calling thread must live as long as the process, which is killed when the thread ends if
    /// there is a launcher.
    pub(super) fn spawn(
        launcher: &[OsString],
        command: &[OsString],
        observer: &ExecutableObserver,
    ) -> io::Result<(Self, Receiver<LineEvent>)> {
        let mut words: Vec<OsString> = launcher.to_vec();
        if !launcher.is_empty() {
            words.push(std::process::id().to_string().into());
        }
        words.extend_from_slice(command);
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (pid, group) = (child.id(), Pid::from_child(&child));
        let (input, lines) = sync_channel::<String>(UNREAD_LINES_MAX);
        let (sender, events) = sync_channel(UNPROCESSED_LINES_MAX);
        let (stderr, has_ended) = (Arc::default(), Arc::default());
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || write_lines(stdin, &lines));
        }
        let reads = child.stdout.take().map(|stdout| forward_lines(stdout, sender.clone()));
        let errors = child.stderr.take().map(|stream| keep_stderr(stream, Arc::clone(&stderr), observer.clone()));
        let ended = Arc::clone(&has_ended);
        thread::spawn(move || wait(child, group, &ended, &sender, [reads, errors]));
        Ok((Self { pid, group, input: Mutex::new(Some(input)), stderr, has_ended }, events))
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a line without waiting for the executable.
    pub(super) fn send(&self, mut line: String) -> Result<(), LineSendError> {
        line.push('\n');
        let input = lock_mutex(&self.input);
        match input.as_ref().map(|input| input.try_send(line)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(LineSendError::Unread),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(LineSendError::Ended),
        }
    }

    /// Ends the standard input once everything is written.
    pub(super) fn close_input(&self) {
        drop(lock_mutex(&self.input).take());
    }

    /// Kills the process and its group.
    pub(super) fn kill(&self) {
        let has_ended = lock_mutex(&self.has_ended);
        // Another process may have the number of one that has ended.
        if !*has_ended {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }

    /// The last lines of standard error, for messages.
    pub(super) fn last_stderr(&self) -> String {
        lock_mutex(&self.stderr).iter().cloned().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The text of an exit status, such as `exit code 3`.
pub(super) fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// A message with the last lines of standard error.
pub(super) fn with_stderr(message: String, stderr: &str) -> String {
    match stderr.is_empty() {
        true => message,
        false => format!("{message}: {stderr}"),
    }
}

fn write_lines(mut stdin: impl Write, lines: &Receiver<String>) {
    for line in lines {
        // An executable that does not read is not in the way: it ends its steps or they time out.
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn forward_lines(stdout: impl Read + Send + 'static, sender: SyncSender<LineEvent>) -> Receiver<()> {
    let (done, is_done) = sync_channel(0);
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut bytes = Vec::new();
            let limit = LINE_BYTES_MAX as u64 + 1;
            let event = match Read::by_ref(&mut stdout).take(limit).read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(_) if bytes.len() > LINE_BYTES_MAX => {
                    LineEvent::Malformed(format!("a line has more than {LINE_BYTES_MAX} bytes"))
                }
                Ok(_) => match String::from_utf8(bytes) {
                    Ok(line) => LineEvent::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
                    Err(_) => LineEvent::Malformed("a line is not UTF-8".to_owned()),
                },
            };
            let is_last = matches!(event, LineEvent::Malformed(_));
            if sender.send(event).is_err() || is_last {
                break;
            }
        }
        // The rest is read, so that the executable can end.
        let _ = io::copy(&mut stdout, &mut io::sink());
        drop(done);
    });
    is_done
}

fn keep_stderr(
    stream: impl Read + Send + 'static,
    kept: Arc<Mutex<VecDeque<String>>>,
    observer: ExecutableObserver,
) -> Receiver<()> {
    let (done, is_done) = sync_channel(0);
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut bytes = Vec::new();
            match Read::by_ref(&mut stream).take(STDERR_LINE_MAX as u64).read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            observer(&ExecutableEvent::Stderr { text: line.clone() });
            let mut kept = lock_mutex(&kept);
            kept.push_back(line);
            if kept.len() > STDERR_LINES_KEPT {
                kept.pop_front();
            }
        }
        drop(done);
    });
    is_done
}

/// Waits for the end of a process, kills what it has left in its group, and reports the end after its last line.
fn wait(
    mut child: Child,
    group: Pid,
    has_ended: &Mutex<bool>,
    sender: &SyncSender<LineEvent>,
    streams: [Option<Receiver<()>>; 2],
) {
    // The process keeps its number until it is waited for without this option.
    let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let _ = kill_process_group(group, Signal::KILL);
    let mut ended = lock_mutex(has_ended);
    let status = child.wait();
    *ended = true;
    drop(ended);
    for stream in streams.into_iter().flatten() {
        // A descendant in another group may keep a stream open. A reader whose lines are not taken ends with its process.
        while let Err(RecvTimeoutError::Timeout) = stream.recv_timeout(STREAMS_WAIT) {
            if sender.try_send(LineEvent::Malformed("its output is still open".to_owned())).is_ok() {
                break;
            }
        }
    }
    let _ = sender.send(LineEvent::Ended(status.unwrap_or_default()));
}
