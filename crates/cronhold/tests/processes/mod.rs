//! Helpers for processes of the machine: finds keepers and parents, and kills what a keeper would keep running. Each
//! test binary includes this file as a module.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// After this long, a test stops waiting and fails.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

/// The interval at which a condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until a condition holds. Panics after [`NEVER`].
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let (_sender, receiver) = channel::<()>();
    for _ in 0..NEVER.as_millis() / POLL_INTERVAL.as_millis() {
        if holds() {
            return;
        }
        let _ = receiver.recv_timeout(POLL_INTERVAL);
    }
    panic!("timed out: {what}");
}

/// All processes of the machine.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("a system with processes").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process; `None` if there is no such process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The keeper of a data directory, if it runs.
pub(crate) fn keeper_of(data: &Path) -> Option<Pid> {
    let data = data.canonicalize().ok()?;
    let wanted = format!("keeper\0--data\0{}\0", data.display());
    let is_ours = |pid: &i32| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command_line).contains(&wanted)
    };
    processes().find(is_ours).and_then(Pid::from_raw)
}

/// Kills the keeper of a data directory and its programs.
pub(crate) fn end_keeper_of(data: &Path) {
    let Some(keeper) = keeper_of(data) else { return };
    for child in processes().filter(|pid| parent(*pid) == Some(keeper.as_raw_nonzero().get())) {
        let _ = Pid::from_raw(child).map(|group| kill_process_group(group, Signal::KILL));
    }
    let _ = kill_process(keeper, Signal::KILL);
}
