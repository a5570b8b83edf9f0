//! The keeper of a node in a benchmark. It is started like that of a daemon, but it must not outlive the benchmark.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cronhold_cli::CliError;
use cronhold_engine::MachineClock;
use cronhold_keeper::client::{ClientOptions, KeeperClient};
use cronhold_programs::output::OutputShipper;
use cronhold_programs::{EventObserver, LocalRunner, ProgramEvent};
use cronhold_schedule::Span;
use cronhold_store::{Store, lock_mutex};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use crate::clock::SystemClock;
use crate::daemon::{VERSION, cannot_start};

/// How long a keeper may take to start.
const START_WAIT: Span = Span::from_secs(20);
/// How long a keeper may take to end before it is killed.
const END_WAIT: Span = Span::from_secs(5);

/// The keeper of a node: the connection to it, the thread that stores outputs, and its process.
#[derive(Debug)]
pub(super) struct BenchKeeper {
    client: KeeperClient,
    outputs: OutputShipper,
    process: Arc<KeeperProcess>,
}

/// What is known about the process of a keeper.
#[derive(Debug, Default)]
pub(super) struct KeeperProcess {
    /// The process. `None` until there is a connection.
    handle: Mutex<Option<OwnedFd>>,
    /// Why there is no connection.
    problem: Mutex<Option<String>>,
    has_changed: Notify,
}

impl KeeperProcess {
    /// Receives the events of the programs.
    pub(super) fn observer(self: &Arc<Self>) -> EventObserver {
        let process = Arc::clone(self);
        Box::new(move |event| process.on_event(event))
    }

    fn on_event(&self, event: &ProgramEvent) {
        match event {
            ProgramEvent::KeeperConnected { pid, .. } | ProgramEvent::OtherKeeperConnected { pid, .. } => {
                let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
                *lock_mutex(&self.handle) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                if lock_mutex(&self.handle).is_none() {
                    *lock_mutex(&self.problem) = Some("the process of the keeper cannot be opened".to_owned());
                }
            }
            ProgramEvent::KeeperUnreachable(why) => *lock_mutex(&self.problem) = Some(why.clone()),
            _ => return,
        }
        self.has_changed.notify_waiters();
    }

    /// Waits until `found` returns a value.
    async fn wait_for<T>(&self, found: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            // Created before the check, so that no change is missed.
            let has_changed = self.has_changed.notified();
            if let Some(value) = found(self) {
                return value;
            }
            has_changed.await;
        }
    }
}

impl BenchKeeper {
    /// Starts a keeper for a data directory, which must be an absolute path, and waits until it is connected.
    pub(super) async fn start(
        data: &Path,
        program: &Path,
        store: Arc<dyn Store>,
        (runner, process): (&Arc<LocalRunner>, Arc<KeeperProcess>),
        clock: &dyn MachineClock,
    ) -> Result<Self, CliError> {
        let outputs = OutputShipper::start(data.to_owned(), store, Arc::clone(runner), SystemClock::new);
        let outputs = outputs.map_err(|error| cannot_start(&error))?;
        let options = ClientOptions {
            data: data.to_owned(),
            program: program.to_owned(),
            version: VERSION.to_owned(),
            log_args: Vec::new(),
            env: Vec::new(),
        };
        let client = KeeperClient::start(options, runner.keeper_wakeup(), Arc::clone(runner) as _);
        let keeper = Self { client: client.map_err(|error| cannot_start(&error))?, outputs, process };
        let problem = tokio::select! {
            biased;
            problem = keeper.failure() => Some(problem),
            () = keeper.process.wait_for(|process| lock_mutex(&process.handle).is_some().then_some(())) => None,
            () = clock.sleep(START_WAIT) => Some(failure("it does not reply")),
        };
        match problem {
            None => Ok(keeper),
            Some(problem) => {
                keeper.end(clock).await;
                Err(problem)
            }
        }
    }

    /// Waits until the keeper fails.
    pub(super) async fn failure(&self) -> CliError {
        self.process.wait_for(|process| lock_mutex(&process.problem).as_deref().map(failure)).await
    }

    /// Ends the keeper and its programs, and waits for it.
    pub(super) async fn end(self, clock: &dyn MachineClock) {
        drop(self.client);
        drop(self.outputs);
        let handle = lock_mutex(&self.process.handle).take();
        if let Some(handle) = handle {
            // A keeper without a daemon also ends by itself after some seconds.
            let _ = end_process(handle, clock).await;
        }
    }
}

/// Sends SIGTERM, and SIGKILL if the process does not end.
async fn end_process(handle: OwnedFd, clock: &dyn MachineClock) -> io::Result<()> {
    let handle = AsyncFd::new(handle)?;
    for signal in [Signal::TERM, Signal::KILL] {
        pidfd_send_signal(handle.get_ref(), signal)?;
        tokio::select! {
            biased;
            ended = handle.readable() => return ended.map(|_| ()),
            () = clock.sleep(END_WAIT) => {}
        }
    }
    Ok(())
}

fn failure(why: &str) -> CliError {
    let message = format!("cannot run programs: {why}");
    CliError::refused(message, "check that this program can be started again, and the limit of processes (`ulimit -u`)")
}
