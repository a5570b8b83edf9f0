//! A directory with a daemon that is killed and restarted, the commands that are sent to it, and its store.

use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use cronhold_core::record::{Cursor, LockName, Record, RecordKey, Run, SkipSpan};
use cronhold_keeper::fail::VARIABLE;
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Query, RunQuery, Store};
use cronhold_store_sqlite::{Options, SqliteStore};
use rustix::process::{Pid, Signal, kill_process};

use super::log_lines::find_event;
use super::processes::{end_keeper_of, eventually};

/// A temporary directory for a daemon. Its keeper and programs are killed on drop.
pub(crate) struct Sandbox(PathBuf);

impl Sandbox {
    pub(crate) fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("jobs")).expect("a directory");
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    pub(crate) fn put_job(&self, id: &str, yaml: &str) {
        fs::write(self.0.join(format!("jobs/{id}.yaml")), yaml).expect("a file");
    }

    /// The file that a killed process leaves. While it exists, the fail point is disarmed.
    pub(crate) fn died(&self) -> PathBuf {
        self.0.join("died")
    }

    /// The binary with arguments. It does not inherit the environment of the test.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().env("CRONHOLD_DATA", "home").current_dir(&self.0).args(args).stdin(Stdio::null());
        command
    }

    /// Starts a daemon. If a point is given, the first process that reaches it is killed.
    pub(crate) fn start(&self, point: Option<&str>) -> Daemon {
        let mut command = self.command(&[
            "up",
            "--name",
            "test",
            "--jobs",
            "jobs",
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ]);
        if let Some(point) = point {
            command.env(VARIABLE, format!("{point}:{}", self.died().display()));
        }
        let log = OpenOptions::new().create(true).append(true).open(self.0.join("log")).expect("a log");
        let log_start = log.metadata().expect("a file").len();
        Daemon { child: command.stderr(log).spawn().expect("the binary starts"), log_start }
    }

    /// Waits until a daemon is ready.
    pub(crate) fn wait_until_ready(&self, daemon: &Daemon) {
        let start = usize::try_from(daemon.log_start).expect("a short log");
        let is_ready = |line: &str| find_event(line, "ready", &[]).is_some();
        eventually("the daemon is ready", || self.log()[start..].lines().any(is_ready));
    }

    /// The log of all daemons in this directory.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.0.join("log")).expect("a log")
    }

    /// Runs a command, and waits until it exits.
    pub(crate) fn run_command(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary starts")
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) {
        let Output { status, stdout, stderr } = self.run_command(args);
        let output = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert_eq!(status.code(), Some(0), "{args:?}: {output}");
    }

    /// The stored records, read while the daemon uses the store.
    pub(crate) fn stored(&self) -> Stored {
        let options =
            Options { clock: Arc::new(|| Instant::EPOCH), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
        Stored(SqliteStore::open_reader(self.0.join("home/cronhold.db"), options).expect("a store"))
    }

    /// The data directory of the daemon.
    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }
}

impl Drop for Sandbox {
    /// Kills the keeper and its programs. Keeps the directory for inspection if the test has failed.
    fn drop(&mut self) {
        end_keeper_of(&self.home());
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A running daemon. It is killed on drop.
pub(crate) struct Daemon {
    child: Child,
    /// The offset in the log at which its part begins.
    log_start: u64,
}

impl Daemon {
    /// Whether it has killed itself. Panics if it has exited in another way.
    pub(crate) fn is_dead(&mut self) -> bool {
        let Some(status) = self.child.try_wait().expect("a child") else { return false };
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status:?}");
        true
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Sends SIGTERM, and waits until the daemon has exited.
    pub(crate) fn stop(mut self) {
        self.send(Signal::TERM);
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The store, open for reading.
pub(crate) struct Stored(SqliteStore);

impl Stored {
    fn page(&self, query: &Query) -> Vec<Record> {
        let page = wait_for(self.0.page(query, usize::from(u16::MAX))).expect("a page");
        page.records.into_iter().map(|stored| stored.record).collect()
    }

    pub(crate) fn runs(&self) -> Vec<Arc<Run>> {
        let records = self.page(&Query::Runs(RunQuery::default())).into_iter();
        records.filter_map(|record| if let Record::Run(run) = record { Some(run) } else { None }).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Arc<SkipSpan>> {
        let records = self.page(&Query::Runs(RunQuery::default())).into_iter();
        records.filter_map(|record| if let Record::SkipSpan(span) = record { Some(span) } else { None }).collect()
    }

    pub(crate) fn cursors(&self) -> Vec<Arc<Cursor>> {
        let records = self.page(&Query::Cursors { after: None }).into_iter();
        records.filter_map(|record| if let Record::Cursor(cursor) = record { Some(cursor) } else { None }).collect()
    }

    pub(crate) fn output(&self, run: &Run) -> String {
        let chunk = wait_for(self.0.read(run.id, 0, usize::MAX)).expect("an output");
        String::from_utf8(chunk.bytes).expect("text")
    }

    /// The record of a lock; `None` if it is free.
    pub(crate) fn holder(&self, lock: &str) -> Option<Record> {
        let key = RecordKey::Lock(LockName::parse(lock).expect("a name"));
        wait_for(self.0.load(&[key])).expect("an answer").pop().flatten().map(|stored| stored.record)
    }
}

fn wait_for<T>(pending: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("an executor").block_on(pending)
}
