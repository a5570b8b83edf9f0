//! Finding the keeper of a data directory, and starting one when nobody answers. Whoever starts one does not own it: it
//! lives on when the daemon is gone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::Setup;
use super::bell::{Bell, clock};
use super::line::Line;

/// Only the daemon's user may look in.
const MODE: u32 = 0o700;
/// Nobody but the daemon's user reads what the keeper logs.
const LOG_MODE: u32 = 0o600;
/// A keeper that cannot be reached so long after its start is said to be missing. It may have programs of a lost
/// keeper to end before it answers.
const START_WAIT: Duration = Duration::from_secs(15);
/// First and longest wait between two looks whether it answers.
const LOOK_MIN: Duration = Duration::from_millis(2);
const LOOK_MAX: Duration = Duration::from_millis(100);
/// Bytes at the end of the keeper's log that are looked at for a last word.
const LAST_WORDS: u64 = 4 * 1024;

/// Where the keeper is, and how it is started.
#[derive(Debug)]
pub(super) struct Connector {
    setup: Setup,
}

impl Connector {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup }
    }

    /// A line to the keeper, which is started if there is none. The error goes on after `the keeper`.
    pub(super) fn connect(&mut self, bell: &Bell, is_over: &AtomicBool) -> Result<Line, String> {
        let place = self.place();
        let dir = self.open_place().map_err(|error| format!("has no place at {}: {error}", place.display()))?;
        match self.call(&dir) {
            Ok(line) => return Ok(line),
            Err(error) if is_nobody(&error) => {}
            Err(error) => return Err(format!("cannot be reached at {}: {error}", place.join("socket").display())),
        }
        let (end, log_start) = self.start().map_err(|error| format!("could not be started: {error}"))?;
        let until = clock() + START_WAIT;
        let mut wait = LOOK_MIN;
        while clock() < until && !is_over.load(Ordering::Relaxed) {
            // Whether it has ended is asked first, so that it has had every chance when it is given up.
            let ended = end.try_recv();
            match self.call(&dir) {
                Ok(line) => return Ok(line),
                Err(error) if !is_nobody(&error) => return Err(format!("cannot be reached: {error}")),
                Err(_) => {}
            }
            match ended {
                Ok(status) => return Err(format!("ended at its start ({status}){}", self.last_words(log_start))),
                Err(TryRecvError::Disconnected) => return Err("was lost at its start".to_owned()),
                Err(TryRecvError::Empty) => bell.rest(wait, is_over),
            }
            wait = (wait * 2).min(LOOK_MAX);
        }
        Err(format!("does not answer {} s after its start{}", START_WAIT.as_secs(), self.last_words(log_start)))
    }

    fn place(&self) -> PathBuf {
        self.setup.data.join("keeper")
    }

    fn open_place(&self) -> io::Result<OwnedFd> {
        let place = self.place();
        DirBuilder::new().recursive(true).mode(MODE).create(&place)?;
        Ok(rustix::fs::open(&place, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Calls by the directory's descriptor, because the path of a socket may have no more than a hundred bytes.
    fn call(&self, dir: &OwnedFd) -> io::Result<Line> {
        let stream = UnixStream::connect(format!("/proc/self/fd/{}/socket", dir.as_raw_fd()))?;
        Line::new(stream, &self.setup.version)
    }

    /// Starts a keeper. When it ends, its status comes by the channel. What it says comes after so many bytes of its log.
    fn start(&self) -> io::Result<(Receiver<ExitStatus>, u64)> {
        let log = OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(self.place().join("log"))?;
        let log_start = log.metadata()?.len();
        let mut command = Command::new(&self.setup.program);
        command.arg("keeper").arg("--data").arg(&self.setup.data);
        command.args(&self.setup.log_args);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn()?;
        let (sender, end) = channel();
        // It lives as long as the keeper, so that no dead one is left as a zombie.
        std::thread::Builder::new().name("keeper's end".to_owned()).spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(status);
            }
        })?;
        Ok((end, log_start))
    }

    /// The last line of what a keeper has written into its log, as the end of a sentence, or why there can be none.
    fn last_words(&self, log_start: u64) -> String {
        let path = self.place().join("log");
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|mut log| {
            let length = log.metadata()?.len();
            let from = log_start.max(length.saturating_sub(LAST_WORDS));
            log.seek(SeekFrom::Start(from))?;
            log.take(length.saturating_sub(from)).read_to_end(&mut bytes)
        });
        let text = String::from_utf8_lossy(&bytes);
        match text.lines().rev().map(str::trim).find(|line| !line.is_empty()).filter(|_| read.is_ok()) {
            Some(line) => format!("; its last words in {}: {line}", path.display()),
            None => why_silent(&path),
        }
    }
}

/// Why a keeper has written nothing: an empty line shows whether anybody can, such as on a disk that is full.
fn why_silent(log: &Path) -> String {
    let written = OpenOptions::new().append(true).open(log).and_then(|mut log| log.write_all(b"\n"));
    let say = |error| format!("; it could not say why, because {} cannot be written: {error}", log.display());
    written.err().map(say).unwrap_or_default()
}

/// Whether an error means that no keeper is there.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}
