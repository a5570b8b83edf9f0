//! `cronhold bench`: measures this machine and a store, for operators. The benchmarks of the project use the same
//! measurements with other sizes.
//!
//! In reading order: `session` runs the stages of the command in a `scratch_place`; `machine` measures the machine
//! without a node; `node` starts a node, which `runs`, `due_at_once` and `programs` measure.

mod bench_keeper;
pub mod due_at_once;
pub mod machine;
pub mod node;
pub mod programs;
mod run_recorder;
pub mod runs;
pub mod samples;
mod scratch_directory;
mod scratch_place;
mod session;
mod stages;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use cronhold_cli::{BenchArgs, BenchReport, CliError, ExitStatus};
use cronhold_wiring::{ScratchStores, StoreError, StoreUrl};

pub use self::run_recorder::RunRecorder;

use self::scratch_directory::ScratchDirectory;
use self::scratch_place::ScratchPlace;
use self::session::{BenchPrograms, BenchSession};
use crate::await_store::unusable;
use crate::clock::SystemClock;
use crate::daemon::cannot_start;
use crate::progress_line::ProgressLine;
use crate::signals::SignalListener;
use crate::state_dir::{EnvPaths, StateDir};

/// Cells of the progress bar.
const BAR: u64 = 20;
/// The program that is started, and where it is if `PATH` does not say.
const PROGRAM: &str = "true";
const PROGRAM_DEFAULT: &str = "/bin/true";

/// What the command takes from its process.
#[derive(Debug)]
pub struct BenchEnv {
    /// Directories and URLs that the environment names.
    pub places: EnvPaths,
    /// The path of this program, which is also the keeper.
    pub program: PathBuf,
    /// The value of `PATH`.
    pub path: Option<OsString>,
    /// Whether standard error is a terminal that shows progress.
    pub is_terminal: bool,
    /// Whether the output may contain colours.
    pub colours: bool,
}

/// Measures this machine and a store, and prints the result. Leaves nothing behind, also if it fails or is interrupted
/// by a signal.
pub fn bench(
    wanted: &BenchArgs,
    env: &BenchEnv,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<ExitStatus, CliError> {
    let home = StateDir::choose(wanted.data.as_deref(), &env.places)?;
    let url = env.places.named_store(wanted.store.as_deref())?.unwrap_or_else(|| home.store_url());
    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let executor = executor.map_err(|error| cannot_start(&error))?;
    // From here on a signal waits until it can be handled.
    let (signals, clock) = executor
        .block_on(async { Ok((SignalListener::new()?, SystemClock::new()?)) })
        .map_err(|error: std::io::Error| cannot_start(&error))?;
    let directory = ScratchDirectory::create(disk_of(&url, home.path()))?;
    let stores = ScratchStores::find(&url, directory.path()).map_err(|error| store_error(&error, &url))?;
    let place = ScratchPlace::new(directory, stores);
    let line = ProgressLine::new(err, env.is_terminal, BAR);
    let noop = find_program(env.path.as_deref());
    let programs = BenchPrograms { keeper: &env.program, noop: &noop };
    let session = BenchSession::new(&place, programs, signals, clock, line, wanted);
    let measured = executor.block_on(session.measure());
    let report = delete_stores(&place, measured)?;
    drop(place);
    wanted.show(&report, env.colours, out)
}

/// Deletes the scratch stores, after success or failure.
fn delete_stores(place: &ScratchPlace, measured: Result<BenchReport, CliError>) -> Result<BenchReport, CliError> {
    let Err(error) = place.delete_stores() else { return measured };
    let before = match measured {
        Err(CliError::Refused { message, .. } | CliError::Unreachable { message, .. }) => format!("{message}; "),
        _ => String::new(),
    };
    let message = format!("{before}cannot delete the keys of the benchmark: {error}");
    Err(CliError::refused(message, format!("delete all keys of this namespace: {}", place.stores())))
}

/// The directory whose disk is measured: that of an SQLite store, or the data directory, in which the keeper works.
fn disk_of<'a>(url: &'a StoreUrl, data: &'a Path) -> &'a Path {
    match url {
        StoreUrl::Sqlite(path) => path.parent().unwrap_or(data),
        #[cfg(feature = "redis")]
        StoreUrl::Redis(_) => data,
        #[cfg(feature = "zookeeper")]
        StoreUrl::ZooKeeper(_) => data,
    }
}

fn store_error(error: &StoreError, url: &StoreUrl) -> CliError {
    match error {
        StoreError::NamespaceInUse(_) => {
            let hint = "name a namespace that is not in use, or none: the benchmark deletes all keys of its namespace";
            CliError::refused(error.to_string(), hint)
        }
        StoreError::Fault(fault) if fault.is_transient() => {
            let hint = Some(format!("check that it is running: {url}"));
            CliError::Unreachable { message: fault.to_string(), hint }
        }
        StoreError::Fault(fault) => unusable(fault),
        other => CliError::Refused { message: other.to_string(), hint: None },
    }
}

/// The program that does nothing. The keeper and the bare loop get the same path, so that neither searches for it.
fn find_program(path: Option<&std::ffi::OsStr>) -> PathBuf {
    let found =
        path.and_then(|path| std::env::split_paths(path).map(|dir| dir.join(PROGRAM)).find(|file| file.is_file()));
    found.filter(|file| file.is_absolute()).unwrap_or_else(|| PathBuf::from(PROGRAM_DEFAULT))
}
