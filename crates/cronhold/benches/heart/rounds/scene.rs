//! The environment of one round: a data directory, job files, the daemon, which is restarted several times, and its
//! keeper.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{Record, Run};
use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::{Query, RunQuery, Store};
use cronhold_store_sqlite::{Options, SqliteStore};
use rustix::process::{Pid, Signal, kill_process};

use super::writer::VERB;
use super::{PROGRAMS, TICK};

use crate::burden::programs_of;

/// After this long, a round stops waiting and fails.
const NEVER: Span = Span::from_secs(120);
const POLL_INTERVAL: Span = Span::from_millis(50);
/// More runs than a round has.
const RUNS_MAX: usize = 60_000;

/// A directory, and the daemon that runs in it, if any.
pub(super) struct Scene<'a> {
    pub(super) dir: PathBuf,
    clock: &'a dyn MachineClock,
    daemon: Option<Child>,
    lives: usize,
}

impl<'a> Scene<'a> {
    /// A directory without jobs.
    pub(super) fn new(dir: PathBuf, clock: &'a dyn MachineClock) -> Self {
        fs::create_dir_all(dir.join("jobs/many")).expect("a folder");
        Self { dir, clock, daemon: None, lives: 0 }
    }

    /// Writes the job files of a round. All programs are due at one instant, and one more job runs every second.
    pub(super) fn put_jobs(&self, seed: u64, due: Instant) {
        let program = std::env::current_exe().expect("this program has a file");
        let (program, starts) = (program.display(), self.dir.join("starts"));
        for number in 0..PROGRAMS {
            let yaml = format!(
                "program: 'exec {program} {VERB} {seed} {number} {} $CRONHOLD_RUN_ID'\nshell: /bin/sh\n\
                 overlap: allow\nschedule: {{at: '{due}'}}\n",
                starts.display()
            );
            fs::write(self.dir.join(format!("jobs/many/{number}.yaml")), yaml).expect("a file");
        }
        let tick = "program: [/bin/true]\noverlap: allow\nschedule: {every: 1s}\n";
        fs::write(self.dir.join(format!("jobs/{TICK}.yaml")), tick).expect("a file");
    }

    /// Starts a daemon with its own log file.
    pub(super) fn start(&mut self) {
        self.lives += 1;
        let log = fs::File::create(self.log()).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.args(["up", "--data", "home", "--jobs", "jobs", "--name", "rounds", "--no-listen"]);
        command.args(["--log-format", "json"]);
        command.current_dir(&self.dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.daemon = Some(command.spawn().expect("the daemon starts"));
    }

    /// Whether the daemon has logged that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        fs::read_to_string(self.log()).is_ok_and(|log| events(&log, "ready").next().is_some())
    }

    fn log(&self) -> PathBuf {
        self.log_of(self.lives)
    }

    fn log_of(&self, life: usize) -> PathBuf {
        self.dir.join(format!("daemon-{life}.log"))
    }

    /// Kills the daemon with SIGKILL.
    pub(super) fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("it is ours");
            daemon.wait().expect("it is gone");
        }
    }

    /// Stops the daemon and its keeper with SIGTERM. Returns a violation if that fails.
    pub(super) async fn stop(&mut self) -> Option<String> {
        let mut daemon = self.daemon.take()?;
        signal(Pid::from_child(&daemon), Signal::TERM);
        let mut status = None;
        self.eventually(|| {
            status = daemon.try_wait().expect("it is ours");
            status.is_some()
        })
        .await;
        let _ = daemon.kill();
        if !status.is_some_and(|status| status.success()) {
            return Some(format!("the daemon ended with {status:?}"));
        }
        if let Some(keeper) = self.keeper() {
            signal(keeper, Signal::TERM);
        }
        let is_gone = self.eventually(|| there(&self.dir).next().is_none()).await;
        (!is_gone).then(|| "a process of the round is left".to_owned())
    }

    /// The pid of the keeper, if it runs.
    pub(super) fn keeper(&self) -> Option<Pid> {
        let arguments = format!("\0keeper\0--data\0{}\0", self.dir.join("home").display());
        processes().find(|pid| command_line(*pid).contains(&arguments)).and_then(Pid::from_raw)
    }

    /// Whether the keeper has a program or a zombie.
    pub(super) fn has_children(&self) -> bool {
        let keeper = self.keeper().map(|pid| pid.as_raw_nonzero().to_string());
        keeper.and_then(|pid| programs_of(&pid)).is_some_and(|mut programs| programs.next().is_some())
    }

    /// Kills the keeper, if there is one.
    pub(super) fn kill_keeper(&self) -> bool {
        let keeper = self.keeper();
        keeper.is_some_and(|keeper| kill_process(keeper, Signal::KILL).is_ok())
    }

    /// Whether one of the programs is running.
    pub(super) fn has_programs(&self) -> bool {
        let starts = self.dir.join("starts").display().to_string();
        processes().any(|pid| command_line(pid).contains(&starts))
    }

    /// The number of started programs.
    pub(super) fn starts(&self) -> usize {
        fs::read_to_string(self.dir.join("starts")).map_or(0, |text| text.lines().count())
    }

    /// The number of outputs that the keeper keeps. Its empty files for future runs do not count.
    pub(super) fn kept_outputs(&self) -> usize {
        let files = fs::read_dir(self.dir.join("home/keeper/outputs")).into_iter().flatten().flatten();
        files.filter(|entry| !entry.file_name().to_string_lossy().starts_with("spare-")).count()
    }

    /// The store, opened for reading while the daemon uses it.
    pub(super) fn store(&self) -> Option<SqliteStore> {
        let zones = Arc::new(ZoneRegistry::bundled());
        let options = Options { clock: Arc::new(|| Instant::EPOCH), zones, size_max: None };
        SqliteStore::open_reader(self.dir.join("home/cronhold.db"), options).ok()
    }

    /// All stored runs.
    pub(super) async fn runs(&self) -> Vec<Arc<Run>> {
        let Some(store) = self.store() else { return Vec::new() };
        let page = store.page(&Query::Runs(RunQuery::default()), RUNS_MAX).await.expect("a page");
        let runs = page.records.into_iter().filter_map(|stored| match stored.record {
            Record::Run(run) => Some(run),
            _ => None,
        });
        runs.collect()
    }

    /// Sleeps.
    pub(super) async fn rest(&self, millis: u64) {
        self.clock.sleep(Span::from_millis(millis)).await;
    }

    /// Polls until a condition holds. Returns false after a timeout.
    pub(super) async fn eventually(&self, mut holds: impl FnMut() -> bool) -> bool {
        let begin = self.clock.uptime();
        while !holds() {
            if self.clock.uptime().minus(begin) > NEVER {
                return false;
            }
            self.clock.sleep(POLL_INTERVAL).await;
        }
        true
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Removes the files of a stopped daemon.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(self.dir.join("home"));
        let _ = fs::remove_file(self.dir.join("starts"));
    }

    /// Kills all remaining processes of the round. Returns whether that succeeded.
    pub(super) async fn end_all(&self) -> bool {
        for pid in there(&self.dir) {
            signal(pid, Signal::KILL);
        }
        self.eventually(|| there(&self.dir).next().is_none()).await
    }

    /// The number of programs that ended while no daemon ran, according to the logs of the daemons.
    pub(super) fn ended_alone(&self) -> u64 {
        let logs = (1..=self.lives).filter_map(|life| fs::read_to_string(self.log_of(life)).ok());
        let found = logs.flat_map(|log| events(&log, "programs_found").collect::<Vec<_>>());
        found.filter_map(|event| event["ended"].as_u64()).sum()
    }

    /// Waits until the job that runs every second succeeds after an instant. Returns false after a timeout.
    pub(super) async fn ticks_after(&self, after: Instant) -> bool {
        let begin = self.clock.uptime();
        while self.clock.uptime().minus(begin) < NEVER {
            let is_well =
                |run: &Arc<Run>| run.job.as_str() == TICK && run.nominal > after && run.state == State::Success;
            if self.runs().await.iter().any(is_well) {
                return true;
            }
            self.clock.sleep(POLL_INTERVAL).await;
        }
        false
    }

    fn is_daemon_dead(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(|daemon| daemon.try_wait().expect("it is ours").is_some())
    }

    /// Waits until all programs of the round have an end in the store.
    pub(super) async fn wait_for_ends(&mut self) -> Result<Vec<Arc<Run>>, String> {
        let begin = self.clock.uptime();
        loop {
            let runs = self.runs().await;
            let is_over = |run: &&Arc<Run>| run.job.as_str() != TICK && run.state.is_finished();
            let over = runs.iter().filter(is_over).count();
            if over >= PROGRAMS {
                return Ok(runs);
            }
            if self.is_daemon_dead() {
                return Err("the daemon has ended by itself".to_owned());
            }
            if self.clock.uptime().minus(begin) > NEVER {
                return Err(format!("only {over} runs have ended after {NEVER}"));
            }
            self.clock.sleep(POLL_INTERVAL).await;
        }
    }
}

fn signal(pid: Pid, signal: Signal) {
    // The process may have exited already.
    let _ = kill_process(pid, signal);
}

/// The live processes whose command line contains the directory.
fn there(dir: &Path) -> impl Iterator<Item = Pid> {
    let dir = dir.display().to_string();
    processes().filter(move |pid| command_line(*pid).contains(&dir)).filter_map(Pid::from_raw)
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The arguments of a process, each with a zero byte at its end; empty if the process is dead.
fn command_line(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// The events of one name in a log.
fn events<'a>(log: &'a str, name: &'a str) -> impl Iterator<Item = serde_json::Value> + 'a {
    let objects = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    objects.filter(move |event| event["event"] == name)
}
