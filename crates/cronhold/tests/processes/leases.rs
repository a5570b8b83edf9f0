//! A program with a lease is killed when the lease expires, with or without a daemon. It runs for as long as any daemon
//! extends the lease.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::record::{CommandLine, ResolvedProcess, ResolvedProgram, Run};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_daemon::clock::{SystemClock, now};
use cronhold_engine::{LaunchRequest, MachineClock, ProgramRunner};
use cronhold_keeper::client::{ClientOptions, KeeperClient};
use cronhold_programs::host_env::HostEnv;
use cronhold_programs::{LocalRunner, MailSettings};
use cronhold_schedule::{Instant, Span};

use super::processes::{end_keeper_of, eventually, keeper_of, parent};

/// A lease that expires within a test. Everything before its expiry must happen in this time.
const SHORT: Span = Span::from_secs(8);
/// Longer than any test.
const LONG: Span = Span::from_secs(600);

/// The data directory of a daemon. It is removed on drop.
struct Sandbox(PathBuf);

/// The part of a daemon that runs programs. Dropping it closes the connection to the keeper, as a kill does.
struct Daemon {
    programs: Arc<LocalRunner>,
    clock: Arc<dyn MachineClock>,
    _client: KeeperClient,
    _executor: tokio::runtime::Runtime,
}

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("leases-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("there"))
    }

    /// A run whose program writes its pid into a file, ignores SIGTERM, and runs for a long time.
    fn run(&self, number: u8, lease: Option<Span>) -> Arc<Run> {
        let text = format!("trap '' TERM; echo $$ > {}; sleep 600 & wait", self.pid_file(number).display());
        let process = ResolvedProcess::plain(CommandLine::Shell { text, shell: Some("/bin/sh".to_owned()) });
        let (id, job) = (RunId::from_random(now(), [number; 10]), JobId::parse("leased").expect("an id"));
        let blank = Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        let work = Some(ResolvedProgram::Process(Box::new(process)));
        let mut run = Run { state: State::Starting, work, ..blank };
        (run.terms.lease, run.terms.grace) = (lease, Span::from_secs(1));
        Arc::new(run)
    }

    fn pid_file(&self, number: u8) -> PathBuf {
        self.0.join(format!("pid-{number}"))
    }

    /// The pid of the program of a run. Waits until it is written.
    fn pid(&self, number: u8) -> i32 {
        let read = || fs::read_to_string(self.pid_file(number)).ok().filter(|text| text.ends_with('\n'));
        eventually("the program has started", || read().is_some());
        read().and_then(|text| text.trim().parse().ok()).expect("a number")
    }

    fn daemon(&self) -> Daemon {
        // The timer of the clock needs an executor, although nothing here waits for it.
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
        let clock: Arc<dyn MachineClock> = {
            let _inside = executor.enter();
            Arc::new(SystemClock::new().expect("a timer"))
        };
        let version = env!("CARGO_PKG_VERSION");
        let programs = LocalRunner::new(
            version,
            Arc::clone(&clock),
            HostEnv::new([]),
            Box::new(|_| {}),
            self.0.clone(),
            MailSettings::default(),
        );
        let programs = Arc::new(programs.expect("a descriptor"));
        let program = PathBuf::from(env!("CARGO_BIN_EXE_cronhold"));
        let (data, version) = (self.0.clone(), version.to_owned());
        let options = ClientOptions { data, program, version, log_args: Vec::new(), env: Vec::new() };
        let client = KeeperClient::start(options, programs.keeper_wakeup(), Arc::clone(&programs) as _);
        let client = client.expect("a thread");
        eventually("there is a keeper", || keeper_of(&self.0).is_some());
        Daemon { programs, clock, _client: client, _executor: executor }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        end_keeper_of(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Daemon {
    fn launch(&self, run: &Arc<Run>, kill_at: Option<Span>) {
        let launch_by = self.after(LONG);
        self.request(|programs| {
            programs.launch(LaunchRequest { run: Arc::clone(run), fence: None, launch_by, kill_at });
        });
    }

    /// The uptime at `span` from now.
    fn after(&self, span: Span) -> Span {
        self.clock.uptime().plus(span)
    }

    /// Makes a request, and wakes the keeper client, as the daemon does after each batch of requests.
    fn request(&self, request: impl FnOnce(&LocalRunner)) {
        request(&self.programs);
        self.programs.keeper_wakeup().notify();
    }
}

/// Whether a process exists. The keeper reaps its children, so there are no zombies.
fn is_alive(pid: i32) -> bool {
    parent(pid).is_some()
}

#[test]
fn expired_lease_kills_program_without_a_daemon() {
    let sandbox = Sandbox::new("killed");
    let daemon = sandbox.daemon();
    let (leased, free) = (sandbox.run(1, Some(SHORT)), sandbox.run(2, None));
    daemon.launch(&leased, Some(daemon.after(SHORT)));
    daemon.launch(&free, None);
    let [leased_pid, free_pid] = [1, 2].map(|number| sandbox.pid(number));
    assert!(is_alive(leased_pid) && is_alive(free_pid));
    drop(daemon);
    eventually("the leased one is dead", || !is_alive(leased_pid));
    assert!(is_alive(free_pid), "a program without a lease keeps running");
    // The next daemon adopts the remaining program.
    let daemon = sandbox.daemon();
    for run in [leased, free] {
        daemon.request(|programs| programs.adopt(run));
    }
    eventually("one runs", || daemon.programs.running_count() == 1);
}

#[test]
fn lease_extended_by_next_daemon_keeps_program_running() {
    let sandbox = Sandbox::new("extended");
    let daemon = sandbox.daemon();
    let kept = sandbox.run(1, Some(SHORT));
    let kill_at = daemon.after(SHORT);
    daemon.launch(&kept, Some(kill_at));
    let kept_pid = sandbox.pid(1);
    drop(daemon);
    let daemon = sandbox.daemon();
    daemon.request(|programs| programs.adopt(Arc::clone(&kept)));
    daemon.request(|programs| programs.extend(&[(kept.id, daemon.after(LONG))]));
    // The lease of the second program expires no sooner than the first lease. When the second program is dead, the
    // first lease has expired.
    daemon.launch(&sandbox.run(2, Some(SHORT)), Some(daemon.after(SHORT).max(kill_at)));
    let other_pid = sandbox.pid(2);
    eventually("the other one is dead", || !is_alive(other_pid));
    assert!(is_alive(kept_pid));
}
