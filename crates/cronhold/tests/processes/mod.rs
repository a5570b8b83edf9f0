//! What tests with the real binary know of the machine's processes: whose they are, and how to be rid of those that a
//! keeper would keep. Each test binary takes this file in as a module of its own.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// What has not happened after this never will.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

/// What nobody tells is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until something is so, which nobody tells.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let (_nobody, never) = channel::<()>();
    for _ in 0..NEVER.as_millis() / LOOK_EVERY.as_millis() {
        if is_so() {
            return;
        }
        let _ = never.recv_timeout(LOOK_EVERY);
    }
    panic!("{what}: it never came to be so");
}

/// All processes of the machine.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("a system with processes").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process; none when there is no such process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The keeper of a data directory, if it runs.
pub(crate) fn keeper_of(data: &Path) -> Option<Pid> {
    let data = data.canonicalize().ok()?;
    let wanted = format!("keeper\0--data\0{}\0", data.display());
    let is_ours = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&wanted)
    };
    processes().find(is_ours).and_then(Pid::from_raw)
}

/// Ends the keeper of a data directory, and the programs that it would keep.
pub(crate) fn end_keeper_of(data: &Path) {
    let Some(keeper) = keeper_of(data) else { return };
    for child in processes().filter(|pid| parent(*pid) == Some(keeper.as_raw_nonzero().get())) {
        let _ = Pid::from_raw(child).map(|group| kill_process_group(group, Signal::KILL));
    }
    let _ = kill_process(keeper, Signal::KILL);
}
