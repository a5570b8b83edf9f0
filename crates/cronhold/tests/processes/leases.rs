//! A program with a lease is dead when the lease ends, whether its daemon is there or not, and lives for as long as some
//! daemon extends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_cli::LogFormat;
use cronhold_core::record::{CommandLine, Process, Run, Work};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_daemon::clock::{SystemClock, now};
use cronhold_daemon::log::{Log, LogOptions};
use cronhold_daemon::outside::Programs;
use cronhold_engine::{Clock, Outside, Task};
use cronhold_keeper::client::{Client, Setup};
use cronhold_programs::launch::Surroundings;
use cronhold_schedule::{Instant, Span};
use tracing::Level;

use super::processes::{end_keeper_of, eventually, keeper_of, parent};

/// How long a lease is that ends within a test. All that comes before its end has to be done in this time.
const SHORT: Span = Span::from_secs(8);
/// No test takes so long.
const LONG: Span = Span::from_secs(600);

/// A directory of a daemon, without a trace at the end.
struct Place(PathBuf);

/// The part of a daemon that has programs. Dropping it closes the line to the keeper without a word, as a kill does.
struct Daemon {
    programs: Arc<Programs>,
    clock: Arc<dyn Clock>,
    _client: Client,
    _executor: tokio::runtime::Runtime,
}

impl Place {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("leases-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("there"))
    }

    /// A run whose program writes its process into a file, heeds no signal that can be ignored, and goes on for long.
    fn run(&self, number: u8, lease: Option<Span>) -> Arc<Run> {
        let text = format!("trap '' TERM; echo $$ > {}; sleep 600 & wait", self.pid_file(number).display());
        let process = Process::plain(CommandLine::Shell { text, shell: Some("/bin/sh".to_owned()) });
        let (id, job) = (RunId::from_random(now(), [number; 10]), JobId::parse("leased").expect("an id"));
        let blank = Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        let work = Some(Work::Process(Box::new(process)));
        let mut run = Run { state: State::Starting, work, ..blank };
        (run.terms.lease, run.terms.grace) = (lease, Span::from_secs(1));
        Arc::new(run)
    }

    fn pid_file(&self, number: u8) -> PathBuf {
        self.0.join(format!("pid-{number}"))
    }

    /// The process of a run that has begun.
    fn pid(&self, number: u8) -> i32 {
        let read = || fs::read_to_string(self.pid_file(number)).ok().filter(|text| text.ends_with('\n'));
        eventually("it has begun", || read().is_some());
        read().and_then(|text| text.trim().parse().ok()).expect("a number")
    }

    fn daemon(&self) -> Daemon {
        // The clock wants an executor for its timer, though nobody here waits by it.
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
        let clock: Arc<dyn Clock> = {
            let _inside = executor.enter();
            Arc::new(SystemClock::new().expect("a timer"))
        };
        let log = Log::new(LogOptions::new(LogFormat::Text, Level::WARN), std::io::sink());
        let programs = Programs::new(Arc::clone(&clock), Surroundings::new([]), log).expect("a bell");
        let programs = Arc::new(programs);
        let program = PathBuf::from(env!("CARGO_BIN_EXE_cronhold"));
        let setup = Setup {
            data: self.0.clone(),
            program,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            log_args: Vec::new(),
        };
        let client = Client::start(setup, programs.keeper_bell(), Arc::clone(&programs) as _).expect("a thread");
        eventually("there is a keeper", || keeper_of(&self.0).is_some());
        Daemon { programs, clock, _client: client, _executor: executor }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        end_keeper_of(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Daemon {
    fn launch(&self, run: &Arc<Run>, kill_at: Option<Span>) {
        self.perform(Task::Launch { run: Arc::clone(run), fence: None, launch_by: self.after(LONG), kill_at });
    }

    /// The uptime that is so much later than now.
    fn after(&self, span: Span) -> Span {
        self.clock.uptime().plus(span)
    }

    /// Tasks are taken at once, and nobody waits for what comes of them. The keeper is told as a daemon does it that has
    /// handed out all it has.
    fn perform(&self, task: Task) {
        drop(self.programs.perform(task));
        self.programs.keeper_bell().ring();
    }
}

/// The keeper waits for its children, so the dead are gone.
fn is_alive(pid: i32) -> bool {
    parent(pid).is_some()
}

#[test]
fn a_leased_program_does_not_outlive_its_lease_without_a_daemon() {
    let place = Place::new("killed");
    let daemon = place.daemon();
    let (leased, free) = (place.run(1, Some(SHORT)), place.run(2, None));
    daemon.launch(&leased, Some(daemon.after(SHORT)));
    daemon.launch(&free, None);
    let [leased_pid, free_pid] = [1, 2].map(|number| place.pid(number));
    assert!(is_alive(leased_pid) && is_alive(free_pid));
    drop(daemon);
    eventually("the leased one is dead", || !is_alive(leased_pid));
    assert!(is_alive(free_pid), "what has no lease goes on");
    // The next daemon finds what is left.
    let daemon = place.daemon();
    for run in [leased, free] {
        daemon.perform(Task::Adopt { run });
    }
    eventually("one runs", || daemon.programs.running() == 1);
}

#[test]
fn a_lease_that_a_later_daemon_extends_does_not_end() {
    let place = Place::new("extended");
    let daemon = place.daemon();
    let kept = place.run(1, Some(SHORT));
    let kill_at = daemon.after(SHORT);
    daemon.launch(&kept, Some(kill_at));
    let kept_pid = place.pid(1);
    drop(daemon);
    let daemon = place.daemon();
    daemon.perform(Task::Adopt { run: Arc::clone(&kept) });
    daemon.perform(Task::Extend { leases: vec![(kept.id, daemon.after(LONG))] });
    // When one is dead whose lease ends no sooner, the first lease of the other has passed.
    daemon.launch(&place.run(2, Some(SHORT)), Some(daemon.after(SHORT).max(kill_at)));
    let other_pid = place.pid(2);
    eventually("the other one is dead", || !is_alive(other_pid));
    assert!(is_alive(kept_pid));
}
