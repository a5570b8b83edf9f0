//! The node that holds the lock of a directory applies it. On a store with one node, that is always this node.

use std::fs;

use super::daemon::{Daemon, Sandbox};
use super::files::{TICK, jobs};
use super::log_lines::find_event;

/// The locks of the directory without a prefix, and of the one with the prefix `ops`.
const PLAIN: &str = "#cronhold/loader/";
const OPS: &str = "#cronhold/loader/ops";

#[test]
fn running_daemon_holds_its_loader_locks() {
    let sandbox = Sandbox::new("loader");
    sandbox.put_job("a", TICK);
    fs::create_dir(sandbox.path("ops")).expect("a folder");
    fs::write(sandbox.path("ops/b.yaml"), TICK).expect("written");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs", "--jobs", "ops=ops"]));
    daemon.wait_for("ready");
    let first = sandbox.holder(PLAIN);
    assert!(first.is_some() && sandbox.holder(OPS) == first, "{first:?}");
    let (status, log) = daemon.stop();
    let has_changed = |line| find_event(line, "loader_elsewhere", &[]).is_some();
    assert!(status.success() && !log.lines().any(has_changed), "{log}");
    assert_eq!((sandbox.holder(PLAIN), sandbox.holder(OPS)), (None, None), "a daemon that stops releases its locks");

    // A killed daemon does not release its lock. The next one has the same identity and still holds it.
    sandbox.up().kill();
    assert_eq!((sandbox.holder(PLAIN), sandbox.holder(OPS)), (first, None));
    let mut daemon = sandbox.up();
    assert_eq!(sandbox.holder(PLAIN), first);
    sandbox.put_job("a", &TICK.replace("1s", "2s"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    daemon.kill();
}

/// The store belonged to another node, which did not release its lock.
#[test]
fn daemon_with_new_identity_takes_over_loader_lock() {
    let sandbox = Sandbox::new("loader-other");
    sandbox.put_job("a", TICK);
    sandbox.up().kill();
    let before = sandbox.holder(PLAIN);
    fs::remove_file(sandbox.path("home/node-id")).expect("there");
    sandbox.put_job("b", TICK);
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("job_files_loaded", &[("put", "1"), ("unchanged", "1")]);
    daemon.wait_for("ready");
    assert_eq!(jobs(&sandbox), "a 1, b 1");
    let now = sandbox.holder(PLAIN);
    assert!(now.is_some() && now != before, "{now:?}");
    daemon.kill();
}
