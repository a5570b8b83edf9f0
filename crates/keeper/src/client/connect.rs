//! Finds the keeper of a data directory, and starts one if there is none. The daemon that starts a keeper does not own
//! it: the keeper outlives the daemon.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::connection::KeeperConnection;
use super::wakeup::{Wakeup, clock};
use super::{ClientOptions, ConnectionError, LastLogLine};

/// Permissions of the keeper's directory: only the daemon's user may enter it.
const MODE: u32 = 0o700;
/// Permissions of the keeper's log: only the daemon's user may read it.
const LOG_MODE: u32 = 0o600;
/// How long a keeper may take to answer after it was started. It may have to end programs of a lost keeper first.
const START_WAIT: Duration = Duration::from_secs(15);
/// The first and the longest wait between two attempts to connect to a keeper that was just started.
const RETRY_MIN: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(100);
/// Bytes at the end of the keeper's log in which the last line is searched for.
const LOG_TAIL: u64 = 4 * 1024;

/// Connects to the keeper of a data directory.
#[derive(Debug)]
pub(super) struct Connector {
    options: ClientOptions,
}

impl Connector {
    pub(super) fn new(options: ClientOptions) -> Self {
        Self { options }
    }

    /// Connects to the keeper, and starts one if there is none.
    pub(super) fn connect(
        &mut self,
        wakeup: &Wakeup,
        is_stopping: &AtomicBool,
    ) -> Result<KeeperConnection, ConnectionError> {
        let folder = self.folder();
        let dir = self.open_folder().map_err(|source| ConnectionError::Directory { path: folder.clone(), source })?;
        if let Some(connection) = self.try_connect(&dir)? {
            return Ok(connection);
        }
        let (end, log_start) = self.start().map_err(ConnectionError::Start)?;
        let until = clock() + START_WAIT;
        let mut wait = RETRY_MIN;
        while clock() < until && !is_stopping.load(Ordering::Relaxed) {
            // Checked before the attempt, so that the keeper has every chance before the client gives up.
            let ended = end.try_recv();
            if let Some(connection) = self.try_connect(&dir)? {
                return Ok(connection);
            }
            match ended {
                Ok(status) => {
                    return Err(ConnectionError::EndedAtStart { status, log: self.last_log_line(log_start) });
                }
                Err(TryRecvError::Disconnected) => return Err(ConnectionError::LostAtStart),
                Err(TryRecvError::Empty) => wakeup.rest(wait, is_stopping),
            }
            wait = (wait * 2).min(RETRY_MAX);
        }
        Err(ConnectionError::NoAnswer { after: START_WAIT, log: self.last_log_line(log_start) })
    }

    fn folder(&self) -> PathBuf {
        self.options.data.join("keeper")
    }

    fn open_folder(&self) -> io::Result<OwnedFd> {
        let folder = self.folder();
        DirBuilder::new().recursive(true).mode(MODE).create(&folder)?;
        Ok(rustix::fs::open(&folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Connects by the directory's descriptor, because the path of a socket is limited to about a hundred bytes. `None`
    /// if there is no keeper.
    fn try_connect(&self, dir: &OwnedFd) -> Result<Option<KeeperConnection>, ConnectionError> {
        let connected = connect_socket(&format!("/proc/self/fd/{}/socket", dir.as_raw_fd()))
            .and_then(|stream| KeeperConnection::new(stream, &self.options.version));
        match connected {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ConnectionError::NotAccepting),
            Err(source) => Err(ConnectionError::Connect { socket: self.folder().join("socket"), source }),
        }
    }

    /// Starts a keeper. Returns a channel for its exit status, and the length of its log before it was started.
    fn start(&self) -> io::Result<(Receiver<ExitStatus>, u64)> {
        let log = OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(self.folder().join("log"))?;
        let log_start = log.metadata()?.len();
        let mut command = Command::new(&self.options.program);
        command.arg("keeper").arg("--data").arg(&self.options.data);
        command.args(&self.options.log_args);
        command.env_clear().envs(self.options.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn()?;
        let (sender, end) = channel();
        // The thread lives as long as the keeper, so that a dead keeper does not stay a zombie.
        std::thread::Builder::new().name("keeper's end".to_owned()).spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(status);
            }
        })?;
        Ok((end, log_start))
    }

    /// The last line that the keeper wrote into its log since it was started.
    fn last_log_line(&self, log_start: u64) -> LastLogLine {
        let path = self.folder().join("log");
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|mut log| {
            let length = log.metadata()?.len();
            let from = log_start.max(length.saturating_sub(LOG_TAIL));
            log.seek(SeekFrom::Start(from))?;
            log.take(length.saturating_sub(from)).read_to_end(&mut bytes)
        });
        let text = String::from_utf8_lossy(&bytes);
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).filter(|_| read.is_ok()) {
            return LastLogLine::Line { path, line: line.to_owned() };
        }
        // An empty line shows whether the log can be written at all, such as on a full disk.
        let written = OpenOptions::new().append(true).open(&path).and_then(|mut log| log.write_all(b"\n"));
        written.err().map_or(LastLogLine::None, |error| LastLogLine::Unwritable { path, error })
    }
}

/// Connects without waiting: a keeper that hangs accepts nothing.
fn connect_socket(path: &str) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}
