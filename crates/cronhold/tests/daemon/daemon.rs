//! A real daemon in its own directory. Tests wait for events in its log and for records in its store, never for a fixed
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cronhold_core::record::{ActionId, ActionRecord, Cursor, JobRecord, LockName, Record, RecordKey, Run, SkipSpan};
use cronhold_core::{RunId, RunNumber};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Query, RunQuery, Store};
use cronhold_store_sqlite::{Options, SqliteOpenError, SqliteStore};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::log_lines::find_event;
use super::processes::{NEVER, end_keeper_of, eventually, keeper_of, parent};

/// Seconds after which a test stops waiting for an event while other lines are logged.
const WAIT_SECONDS_MAX: i64 = 90;

/// A temporary directory with the data directory and the job files of a daemon.
pub(crate) struct Sandbox(PathBuf);

impl Sandbox {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("daemon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("jobs")).expect("a folder");
        Self(path)
    }

    /// Number of outputs that the keeper keeps. Its empty files for future runs do not count.
    pub(crate) fn kept_outputs(&self) -> usize {
        let names = fs::read_dir(self.path("home/keeper/outputs")).expect("there").flatten();
        names.filter(|entry| !entry.file_name().to_string_lossy().starts_with("spare-")).count()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    pub(crate) fn put_job(&self, id: &str, yaml: &str) {
        let file = self.job_file(id);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, yaml).expect("a file");
    }

    pub(crate) fn job_file(&self, id: &str) -> PathBuf {
        self.path(&format!("jobs/{id}.yaml"))
    }

    /// The command that starts a daemon here, on any free port. It does not inherit the environment of the test.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare_command(args);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }

    /// A command for the daemon of the sandbox.
    pub(crate) fn verb(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.current_dir(&self.0).args(args).args(["--data", "home"]);
        command
    }

    /// The same command without `--listen`. The log is JSON, which `wait_for_event` reads.
    pub(crate) fn bare_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().current_dir(&self.0).args(["up", "--data", "home", "--name", "test"]);
        command.args(["--log-format", "json"]).args(args);
        command
    }

    /// Starts a daemon with the job files, and waits until it is ready.
    pub(crate) fn up(&self) -> Daemon {
        let mut daemon = Daemon::start(&mut self.command(&["--jobs", "jobs"]));
        daemon.wait_for("ready");
        daemon
    }

    /// The output of a run, read from the store while the daemon uses it.
    pub(crate) fn output(&self, run: &Run) -> Vec<u8> {
        let store = Stored::open(&self.path("home/cronhold.db")).expect("a store");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        executor.block_on(store.read(run.id, 0, usize::MAX)).expect("an output").bytes
    }

    /// Waits until the process whose pid is in a file is gone.
    pub(crate) fn wait_for_death(&self, file: &Path) {
        let pid: i32 = fs::read_to_string(file).expect("there").trim().parse().expect("a number");
        eventually(&format!("{pid} is gone"), || parent(pid).is_none());
    }

    /// The pid of the keeper, if it runs.
    pub(crate) fn keeper(&self) -> Option<Pid> {
        keeper_of(&self.path("home"))
    }

    /// The holder of a lock, read from the store while the daemon uses it.
    pub(crate) fn holder(&self, lock: &str) -> Option<RunId> {
        let store = Stored::open(&self.path("home/cronhold.db")).expect("a store");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        let key = RecordKey::Lock(LockName::parse(lock).expect("a name"));
        let found = executor.block_on(store.load(&[key])).expect("the store works").remove(0);
        found.and_then(|stored| match stored.record {
            Record::Lock(lock) => Some(lock.holder),
            _ => None,
        })
    }

    /// The actions of all stored runs, read while the daemon uses the store.
    pub(crate) fn actions(&self) -> Vec<Arc<ActionRecord>> {
        let ids = self
            .stored()
            .runs
            .iter()
            .flat_map(|run| {
                let run = Arc::clone(run);
                (0..run.actions).map(move |number| RecordKey::Action(ActionId::new(run.id, number)))
            })
            .collect::<Vec<_>>();
        let store = Stored::open(&self.path("home/cronhold.db")).expect("a store");
        let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
        let found = executor.block_on(store.load(&ids)).expect("the store works");
        let actions = found.into_iter().filter_map(|stored| match stored?.record {
            Record::Action(action) => Some(action),
            _ => None,
        });
        actions.collect()
    }

    /// The stored records, read while the daemon uses the store.
    pub(crate) fn stored(&self) -> Stored {
        Stored::read(&self.path("home/cronhold.db"))
    }
}

impl Drop for Sandbox {
    /// Kills the keeper and its programs, and removes the directory.
    fn drop(&mut self) {
        end_keeper_of(&self.path("home"));
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running daemon. It is killed on drop.
pub(crate) struct Daemon {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// The fields of a run, such as `backup#42`, that enters a state.
fn run_fields<'a>(run: &'a str, state: &'a str) -> [(&'static str, &'a str); 3] {
    let (job, number) = run.rsplit_once('#').expect("a job and a number");
    [("job", job), ("number", number), ("state", state)]
}

/// Seconds of the monotonic clock.
fn seconds() -> i64 {
    clock_gettime(ClockId::Monotonic).tv_sec
}

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits until an event is logged, and returns it. Other lines do not extend the timeout.
    pub(crate) fn wait_for(&mut self, event: &str) -> Value {
        self.wait_for_event(event, &[])
    }

    /// Waits until an event with these fields is logged, and returns it.
    pub(crate) fn wait_for_event(&mut self, event: &str, fields: &[(&str, &str)]) -> Value {
        let begin = seconds();
        while seconds() - begin < WAIT_SECONDS_MAX {
            if let Some(found) = find_event(&self.next_line(), event, fields) {
                return found;
            }
        }
        panic!("there was no {event} with {fields:?} among these lines:\n{}", self.seen.join("\n"))
    }

    /// Returns the first event with these fields, also if it was logged before. Waits for it if necessary.
    pub(crate) fn wait_until_logged(&mut self, event: &str, fields: &[(&str, &str)]) -> Value {
        let found = self.seen.iter().find_map(|line| find_event(line, event, fields));
        found.unwrap_or_else(|| self.wait_for_event(event, fields))
    }

    /// Waits until a run, such as `backup#42`, enters a state.
    pub(crate) fn wait_for_run(&mut self, run: &str, state: &str) -> Value {
        self.wait_for_event("run_state", &run_fields(run, state))
    }

    /// Returns the event of a run that enters a state, also if it was logged before. Waits for it if necessary.
    pub(crate) fn wait_until_run(&mut self, run: &str, state: &str) -> Value {
        self.wait_until_logged("run_state", &run_fields(run, state))
    }

    /// Waits for `count` more lines.
    pub(crate) fn wait_for_lines(&mut self, count: usize) {
        (0..count).for_each(|_| drop(self.next_line()));
    }

    /// Waits until all runs for times up to `reached` are finished, and asserts that each second has exactly one
    /// outcome. Reads the store after every `lines` lines of the log.
    pub(crate) fn wait_until_complete(
        &mut self,
        sandbox: &Sandbox,
        reached: &BTreeMap<String, Instant>,
        lines: usize,
    ) -> Stored {
        loop {
            self.wait_for_lines(lines);
            let stored = sandbox.stored();
            if stored.is_over(reached) {
                stored.assert_complete(reached);
                return stored;
            }
        }
    }

    /// Fails with the line if one is logged within `span`.
    pub(crate) fn is_silent_for(&mut self, span: Duration) -> Result<(), String> {
        match self.lines.recv_timeout(span) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(line) => Err(line),
            Err(RecvTimeoutError::Disconnected) => Err("it has ended".to_owned()),
        }
    }

    fn next_line(&mut self) -> String {
        match self.lines.recv_timeout(NEVER) {
            Ok(line) => {
                self.seen.push(line.clone());
                line
            }
            Err(_) => panic!("no line was logged in time; before that:\n{}", self.seen.join("\n")),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is gone");
    }

    /// Waits until the daemon has killed itself.
    pub(crate) fn wait_for_death(&mut self) {
        let mut status = None;
        eventually("the daemon was killed", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let signal = status.and_then(|status| status.signal());
        assert_eq!(signal, Some(Signal::KILL.as_raw()), "{status:?}: {:?}", self.lines.iter().collect::<Vec<_>>());
    }

    /// Waits until the daemon has exited. Returns its exit status and its log.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it ends");
        self.seen.extend(self.lines.iter());
        (status, self.seen.join("\n"))
    }

    /// Sends SIGTERM, and waits until the daemon has exited.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.send(Signal::TERM);
        self.end()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The records that tests check.
pub(crate) struct Stored {
    pub(crate) jobs: Vec<Arc<JobRecord>>,
    pub(crate) cursors: Vec<Arc<Cursor>>,
    pub(crate) runs: Vec<Arc<Run>>,
    pub(crate) spans: Vec<Arc<SkipSpan>>,
}

impl Stored {
    pub(crate) fn read(file: &Path) -> Self {
        Self::try_read(file).expect("a store")
    }

    fn open(file: &Path) -> Result<SqliteStore, SqliteOpenError> {
        let options =
            Options { clock: Arc::new(|| Instant::EPOCH), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
        SqliteStore::open_reader(file, options)
    }

    /// The run of a job with this number.
    pub(crate) fn run(&self, job: &str, number: u64) -> &Run {
        let found = self.runs.iter().find(|run| run.job.as_str() == job && run.number == RunNumber(number));
        found.unwrap_or_else(|| panic!("there is no {job}#{number}"))
    }

    /// Like `read`, for a store that may not exist yet.
    pub(crate) fn try_read(file: &Path) -> Result<Self, SqliteOpenError> {
        let store = Self::open(file)?;
        let page = |query| {
            let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
            executor.block_on(store.page(&query, usize::from(u16::MAX))).expect("a page").records
        };
        let jobs = page(Query::Jobs { after: None }).into_iter().filter_map(|stored| match stored.record {
            Record::Job(job) => Some(job),
            _ => None,
        });
        let cursors = page(Query::Cursors { after: None }).into_iter().filter_map(|stored| match stored.record {
            Record::Cursor(cursor) => Some(cursor),
            _ => None,
        });
        let (mut runs, mut spans) = (Vec::new(), Vec::new());
        for stored in page(Query::Runs(RunQuery::default())) {
            match stored.record {
                Record::Run(run) => runs.push(run),
                Record::SkipSpan(span) => spans.push(span),
                _ => {}
            }
        }
        Ok(Self { jobs: jobs.collect(), cursors: cursors.collect(), runs, spans })
    }

    /// The last claimed occurrence of each job.
    pub(crate) fn reached(&self) -> BTreeMap<String, Instant> {
        let reached = self.cursors.iter().filter_map(|cursor| Some((cursor.job.to_string(), cursor.last?)));
        reached.collect()
    }

    /// Whether all runs for times up to these are finished.
    fn is_over(&self, reached: &BTreeMap<String, Instant>) -> bool {
        let is_before = |run: &Run| reached.get(run.job.as_str()).is_some_and(|last| run.nominal <= *last);
        self.runs.iter().filter(|run| is_before(run)).all(|run| run.state.is_finished())
    }

    /// Asserts that each second up to these has exactly one outcome. Each job must have one schedule, `every: 1s`.
    fn assert_complete(&self, reached: &BTreeMap<String, Instant>) {
        for cursor in &self.cursors {
            let Some(last) = reached.get(cursor.job.as_str()) else { continue };
            let mut seen = BTreeSet::new();
            let mut twice = Vec::new();
            let runs = self.runs.iter().filter(|run| run.job == cursor.job && run.attempt == 1);
            let spans = self.spans.iter().filter(|span| span.job == cursor.job);
            let runs = runs.map(|run| (run.nominal, run.nominal));
            for (from, to) in runs.chain(spans.map(|span| (span.range.from, span.range.to))) {
                let seconds = from.secs()..=to.secs();
                twice.extend(seconds.filter(|second| !seen.insert(*second)));
            }
            assert_eq!(twice, [] as [i64; 0], "{} has two outcomes at these seconds", cursor.job);
            let expected: BTreeSet<i64> = (cursor.since.secs() + 1..=last.secs()).collect();
            let missing: Vec<&i64> = expected.difference(&seen).collect();
            assert_eq!(missing, [] as [&i64; 0], "{} has no outcome at these seconds", cursor.job);
        }
    }
}

/// Runs a command, and returns its standard output, its standard error and its exit code as text.
pub(crate) fn transcript(command: &mut Command) -> String {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("UTF-8");
    let mut errors = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("UTF-8");
    errors.lines().for_each(|line| text += &format!("err| {line}\n"));
    let status = child.wait().expect("it ends");
    text + &format!("exit {}\n", status.code().expect("no signal"))
}
