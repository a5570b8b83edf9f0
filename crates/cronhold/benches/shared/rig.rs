//! Nodes of the benchmarks: a directory and a kind of store for each measurement.

use std::path::{Path, PathBuf};

use cronhold_cli::CliError;
use cronhold_daemon::bench::node::{BenchNode, NodeSetup, with_node};
use cronhold_wiring::StoreUrl;

/// Returns the URL of a new store for a directory.
pub(crate) type Stores<'a> = &'a dyn Fn(&Path) -> StoreUrl;

/// Runs some work with a node for no-op programs, in a directory that is removed afterwards.
pub(crate) fn on_node<T>(
    name: &str,
    stores: Stores<'_>,
    work: impl AsyncFnOnce(&BenchNode) -> Result<T, CliError>,
) -> T {
    let dir = scratch(name);
    let result = run(NodeSetup::new(&dir, stores(&dir)), work);
    let _ = std::fs::remove_dir_all(dir);
    result
}

/// Runs some work with a node that has a keeper, for real programs.
pub(crate) fn on_node_with_keeper<T>(
    name: &str,
    stores: Stores<'_>,
    work: impl AsyncFnOnce(&BenchNode, &Path) -> Result<T, CliError>,
) -> T {
    let dir = scratch(name);
    let setup = NodeSetup::new(&dir, stores(&dir)).with_keeper(env!("CARGO_BIN_EXE_cronhold"));
    let result = run(setup, async |node| work(node, &dir).await);
    let _ = std::fs::remove_dir_all(&dir);
    result
}

/// Runs some work with a node. Panics if it fails.
pub(crate) fn run<T>(setup: NodeSetup, work: impl AsyncFnOnce(&BenchNode) -> Result<T, CliError>) -> T {
    block_on(with_node(setup, std::future::pending(), work)).expect("the node works")
}

/// An empty directory for one measurement.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs a future on the kind of executor that the daemon uses.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor").block_on(work)
}
