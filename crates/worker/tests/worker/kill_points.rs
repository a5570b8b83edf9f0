//! A process that makes steps and holds the store is killed at each point of a step: before and after each of its
//! requests. The process is this test binary again; an environment variable makes it one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cronhold_core::task::{PortAddress, TaskUnit};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::{
    LeaseRequest, LeasedStep, PortWindow, TaskReceipt, TaskStore, TaskStoreWrapper, TaskUnitError, WindowLimits,
};
use cronhold_store::{Fault, Pending};

use crate::kills::{assert_exact, create_tasks, open, runtime_on};

/// The environment variables that make this binary a worker: the file, the point at which it stops, and the round, which
/// is how many leases have expired before.
const FILE: &str = "CRONHOLD_TEST_KILL_FILE";
const POINT: &str = "CRONHOLD_TEST_KILL_POINT";
const ROUND: &str = "CRONHOLD_TEST_KILL_ROUND";
/// Printed when the point is reached.
const REACHED: &str = "the point is reached";
/// Points of some steps: leases, reads beyond the window, and commits, each before and after.
const POINTS: usize = 20;
/// Numbers that are moved. More than a window has, so that steps read further.
const NUMBERS: u64 = 300;

/// Stops for ever at a point.
#[derive(Debug)]
struct StoppingTasks {
    store: Arc<dyn TaskStore>,
    left: AtomicUsize,
}

impl StoppingTasks {
    fn pass_point(&self) {
        let less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            // The test kills this process when it has read the line.
            writeln!(std::io::stdout(), "{REACHED}").expect("the test reads it");
            loop {
                thread::park();
            }
        }
    }
}

impl TaskStoreWrapper for StoppingTasks {
    fn inside(&self) -> &dyn TaskStore {
        &*self.store
    }

    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        Box::pin(async move {
            self.pass_point();
            let results = self.store.commit(units).await;
            self.pass_point();
            results
        })
    }

    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        Box::pin(async move {
            self.pass_point();
            let leased = self.store.lease(request).await;
            self.pass_point();
            leased
        })
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        Box::pin(async move {
            let page = self.store.items(port, from, limits).await;
            self.pass_point();
            page
        })
    }
}

/// A clock for a round, in which all leases of the rounds before have expired.
fn store_in_round(path: &Path, round: usize) -> Arc<dyn TaskStore> {
    let now = Instant::from_secs(1_800_000_000).plus(Span::from_secs(7_200 * u64::try_from(round).expect("small")));
    open(path, Arc::new(move || now))
}

#[test]
fn process_killed_at_every_point_of_a_step_loses_and_doubles_nothing() {
    run_worker_if_requested();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("worker-kill-points-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a directory can be created");
    let path = folder.join("cronhold.db");
    let tasks = create_tasks(&runtime_on(store_in_round(&path, 0)), NUMBERS);
    for point in 0..POINTS {
        let round = point + 1;
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let test = "kill_points::process_killed_at_every_point_of_a_step_loses_and_doubles_nothing";
        command.args(["--exact", test, "--nocapture"]).stdin(Stdio::null()).stdout(Stdio::piped());
        command.env(FILE, &path).env(POINT, point.to_string()).env(ROUND, round.to_string());
        let mut worker = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(worker.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == REACHED), "point {point} is reached");
        worker.kill().expect("it can be killed");
        worker.wait().expect("it is dead");
        // A task fails if it only loses steps, so another process makes some in between, when the lease has expired.
        let runtime = runtime_on(store_in_round(&path, round + 1));
        for _ in 0..2 {
            runtime.perform_next().expect("a step").expect("a task is ready");
        }
    }
    let store = store_in_round(&path, POINTS + 2);
    runtime_on(Arc::clone(&store)).drain(600).expect("no step fails");
    assert_exact(&*store, tasks, NUMBERS);
    drop(store);
    // A leftover directory does no harm: no other test uses its name.
    let _ = fs::remove_dir_all(&folder);
}

/// Makes steps until the point is reached, if the environment variables are set.
fn run_worker_if_requested() {
    #[expect(clippy::disallowed_methods, reason = "the environment makes a child process of the test a worker")]
    let variable = |name| std::env::var_os(name);
    let number = |name| variable(name).and_then(|text| text.to_str()?.parse::<usize>().ok());
    let (Some(path), Some(point), Some(round)) = (variable(FILE).map(PathBuf::from), number(POINT), number(ROUND))
    else {
        return;
    };
    let store = StoppingTasks { store: store_in_round(&path, round), left: AtomicUsize::new(point) };
    let runtime = runtime_on(Arc::new(store));
    while runtime.perform_next().expect("the store works").is_some() {}
    panic!("the point is reached before nothing is left to do");
}
