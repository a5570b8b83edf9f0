//! Points at which a process kills itself, for tests of crashes. A test sets `CRONHOLD_FAIL_AT` for a daemon, which
//! passes it on to its keeper; programs never see it. A build without debug assertions does not contain this.
//!
//! The prefix of a name selects the process: `keeper-…`, `daemon-…`, or `stage-…` for the second stage of a launch.
//! `NAME` kills every process that reaches the point. `NAME:FILE` kills only the first, which creates the file; a
//! process that finds the file continues.
//!
//! In the same way a process can pretend to have another version or protocol.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{Signal, getpid, kill_process};

/// The variable that names a point.
pub const VARIABLE: &str = "CRONHOLD_FAIL_AT";
/// The name with which a daemon and its keeper speak only the next protocol.
pub const NEXT_PROTOCOL: &str = "next-protocol";
/// The name with which a keeper pretends to have another version.
pub const OTHER_VERSION: &str = "other-version";

static ARMED: OnceLock<ArmedPoint> = OnceLock::new();

#[derive(Debug)]
struct ArmedPoint {
    name: String,
    once: Option<PathBuf>,
}

/// Sets where this process kills itself: the value of [`VARIABLE`].
pub fn arm(value: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let (name, once) = value.split_once(':').map_or((value, None), |(name, file)| (name, Some(file)));
    // A second call has the same value.
    let _ = ARMED.set(ArmedPoint { name: name.to_owned(), once: once.map(PathBuf::from) });
}

/// Kills the process if it was armed for this point.
#[inline]
pub fn point(name: &str) {
    if cfg!(debug_assertions) && ARMED.get().is_some_and(|armed| armed.is_for(name)) {
        // The call cannot fail, and the process ends here.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// The value for the second stage of a launch, which has the environment of its program and not the keeper's.
pub(crate) fn for_stage() -> Option<String> {
    let armed = ARMED.get().filter(|armed| cfg!(debug_assertions) && armed.name.starts_with("stage-"))?;
    let file = armed.once.as_ref().map_or_else(String::new, |file| format!(":{}", file.display()));
    Some(format!("{}{file}", armed.name))
}

/// Whether this process is to pretend something.
#[inline]
pub(crate) fn plays(role: &str) -> bool {
    cfg!(debug_assertions) && ARMED.get().is_some_and(|armed| armed.name == role)
}

impl ArmedPoint {
    fn is_for(&self, name: &str) -> bool {
        let is_first = |file| OpenOptions::new().write(true).create_new(true).open(file).is_ok();
        self.name == name && self.once.as_ref().is_none_or(is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn point_kills_every_time_or_once() {
        let always = ArmedPoint { name: "keeper-here".to_owned(), once: None };
        assert!(always.is_for("keeper-here") && always.is_for("keeper-here") && !always.is_for("keeper-there"));
        let scratch = ScratchDir::new();
        let once = ArmedPoint { name: "keeper-here".to_owned(), once: Some(scratch.path().join("died")) };
        assert!(!once.is_for("keeper-there") && once.is_for("keeper-here") && !once.is_for("keeper-here"));
    }
}
