//! `cronhold worker`: opens the tasks of a daemon or of a shared store, starts the executable, and makes steps until a
//! signal stops it.

pub mod check;
mod events;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use cronhold_cli::{CliError, CliSession, ExitStatus, TaskStorePlace, WorkerRunArgs, WorkerUse};
use cronhold_store::tasks::TaskStore;
use cronhold_wiring::{StoreContext, StoreUrl};
use cronhold_worker::{
    ExecutableHandle, ExecutableMode, ExecutableOptions, PreparedExecutable, RemoteTaskStore, WorkerError,
};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::clock;
use crate::daemon::store_failure;
use crate::log::{self, LogOptions};

/// The verb with which a worker starts this program between itself and its executable.
pub const LAUNCH_VERB: &str = "worker-launch";
/// What a user can do about an executable that is refused.
const CHECK_HINT: &str = "`cronhold worker check -- CMD` shows what is wrong with it";

/// What a worker needs from its process.
#[derive(Debug)]
pub struct WorkerEnv<'a> {
    /// This program.
    pub program: &'a Path,
    pub zookeeper_servers: Option<String>,
    pub log_filter: Option<String>,
}

/// Runs a worker until it is stopped.
pub fn run(args: &WorkerRunArgs, session: &CliSession<'_>, env: &WorkerEnv<'_>) -> Result<ExitStatus, CliError> {
    let (queue, lease) = (args.queue()?, args.lease()?);
    log::install_unbuffered(LogOptions::choose(&args.log, None, env.log_filter.as_deref())?, io::stderr());
    let store = open_store(session, env)?;
    let options = ExecutableOptions {
        concurrency: args.concurrency,
        mode: mode(&args.used)?,
        launcher: launcher(env.program),
        observer: Arc::new(events::log_executable),
        ..ExecutableOptions::new(queue.as_str(), args.command.clone())
    };
    let configs = args.used.configs()?;
    let prepared = PreparedExecutable::start(options, configs, &args.used.class_names()?).map_err(failure)?;
    let runtime = prepared.runtime(store, lease, events::log_runtime).map_err(failure)?;
    stop_by_signals(prepared.handle(&runtime))
        .map_err(|error| CliError::Refused { message: format!("cannot receive signals: {error}"), hint: None })?;
    let classes: Vec<&str> = prepared.classes().keys().map(|class| class.as_str()).collect();
    let (classes, process) = (classes.join(", "), runtime.process().to_string());
    info!(event = "worker_started", %queue, process, "performs tasks of queue {queue}: {classes}");
    let result = runtime.run();
    prepared.stop();
    info!(event = "worker_stopped", %queue, "the worker has stopped");
    result.map_err(failure)?;
    Ok(ExitStatus::Done)
}

/// The tasks of the daemon or of the shared store that the command line selects.
fn open_store(session: &CliSession<'_>, env: &WorkerEnv<'_>) -> Result<Arc<dyn TaskStore>, CliError> {
    match cronhold_cli::task_store_place(session)? {
        TaskStorePlace::Daemon(caller) => Ok(Arc::new(RemoteTaskStore::new(caller).map_err(failure)?)),
        TaskStorePlace::Store { origin, url } => {
            let url = StoreUrl::parse_with(&url, env.zookeeper_servers.as_deref());
            let url = url.map_err(|error| CliError::flag(origin, error))?;
            if !url.is_shared() {
                let message = format!("{origin}: only its daemon can use an SQLite store");
                return Err(CliError::usage(message, "name the daemon with --data or --url"));
            }
            let context = StoreContext::new(Arc::new(clock::now), Arc::clone(session.zones));
            let store = cronhold_wiring::open(&url, context).map_err(|error| store_failure(&error))?;
            store.task_store().ok_or_else(|| {
                let message = format!("{origin}: the store {url} keeps no tasks");
                CliError::refused(
                    message,
                    "use a store on Redis, or a daemon on Redis or with the embedded SQLite store",
                )
            })
        }
    }
}

fn mode(used: &WorkerUse) -> Result<ExecutableMode, CliError> {
    let filter = used.filter_ports()?;
    let needs_class = || {
        CliError::usage("an executable without the protocol names no classes", "name them with --class or --classes")
    };
    let has_classes = !used.class_names()?.is_empty() || !used.configs()?.is_empty();
    match (filter, used.each) {
        (None, false) => Ok(ExecutableMode::Protocol),
        _ if !has_classes => Err(needs_class()),
        (Some((from, to)), _) => Ok(ExecutableMode::Filter(from, to)),
        (None, true) => Ok(ExecutableMode::EachStep),
    }
}

fn launcher(program: &Path) -> Vec<OsString> {
    vec![program.into(), LAUNCH_VERB.into()]
}

/// Stops the worker by SIGTERM and SIGINT, and makes it quiet by SIGTSTP and SIGUSR1.
fn stop_by_signals(handle: ExecutableHandle) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt, mut pause, mut user) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind);
        let pause = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        (
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
            listen(pause)?,
            listen(SignalKind::user_defined1())?,
        )
    };
    // The thread ends with the process; nothing joins it.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => stop(&handle, "SIGTERM"),
                    _ = interrupt.recv() => stop(&handle, "SIGINT"),
                    _ = pause.recv() => handle.quiet(),
                    _ = user.recv() => handle.quiet(),
                }
            }
        });
    })?;
    Ok(())
}

fn stop(handle: &ExecutableHandle, name: &str) {
    warn!(event = "worker_stopping", "{name} received; the worker stops when its steps have ended");
    handle.stop();
}

/// The error of a worker, as commands report it.
fn failure(error: WorkerError) -> CliError {
    let message = error.to_string();
    match error {
        WorkerError::Store(fault) if fault.is_transient() => {
            CliError::Unreachable { message, hint: Some("check that the daemon or the store is running".to_owned()) }
        }
        WorkerError::Executable(_) => CliError::refused(message, CHECK_HINT),
        _ => CliError::Refused { message, hint: None },
    }
}
