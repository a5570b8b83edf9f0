//! Points at which a process kills itself: a tool for tests that ask what is left when a power cut comes at the worst
//! moment. A test sets `CRONHOLD_FAIL_AT` for a daemon, which hands it on to its keeper; programs never see it. Without
//! debug assertions nothing of this is compiled.
//!
//! The name of a point says whose it is: `keeper-…`, `daemon-…`, or `stage-…` for the second stage of a launch. `NAME` kills whoever comes there, every time, and
//! `NAME:FILE` only the first: it leaves the file, and whoever finds it there goes on.
//!
//! In the same way a process can be told to play another than it is, such as one of a version that does not exist yet.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{Signal, getpid, kill_process};

/// The variable that names a point.
pub const VARIABLE: &str = "CRONHOLD_FAIL_AT";
/// The name with which a daemon and its keeper speak the protocol after ours, and no other.
pub const NEXT_PROTOCOL: &str = "next-protocol";
/// The name with which a keeper is of another version, and speaks as we do.
pub const OTHER_VERSION: &str = "other-version";

static ARMED: OnceLock<Armed> = OnceLock::new();

#[derive(Debug)]
struct Armed {
    name: String,
    once: Option<PathBuf>,
}

/// Says where this process kills itself: the value of [`VARIABLE`].
pub fn arm(value: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let (name, once) = value.split_once(':').map_or((value, None), |(name, file)| (name, Some(file)));
    // Whoever arms twice means the same.
    let _ = ARMED.set(Armed { name: name.to_owned(), once: once.map(PathBuf::from) });
}

/// A point with this name is reached. The process ends here without another word if it was armed for it.
#[inline]
pub fn point(name: &str) {
    if cfg!(debug_assertions) && ARMED.get().is_some_and(|armed| armed.is_for(name)) {
        // It cannot fail, and nothing comes after it.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// What the second stage of a launch is to be armed with; it has the environment of its program and not ours.
pub(crate) fn for_stage() -> Option<String> {
    let armed = ARMED.get().filter(|armed| cfg!(debug_assertions) && armed.name.starts_with("stage-"))?;
    let file = armed.once.as_ref().map_or_else(String::new, |file| format!(":{}", file.display()));
    Some(format!("{}{file}", armed.name))
}

/// Whether this process is to play another than it is.
#[inline]
pub(crate) fn plays(role: &str) -> bool {
    cfg!(debug_assertions) && ARMED.get().is_some_and(|armed| armed.name == role)
}

impl Armed {
    fn is_for(&self, name: &str) -> bool {
        let is_first = |file| OpenOptions::new().write(true).create_new(true).open(file).is_ok();
        self.name == name && self.once.as_ref().is_none_or(is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn every_time_or_once() {
        let always = Armed { name: "keeper-here".to_owned(), once: None };
        assert!(always.is_for("keeper-here") && always.is_for("keeper-here") && !always.is_for("keeper-there"));
        let scratch = Scratch::new();
        let once = Armed { name: "keeper-here".to_owned(), once: Some(scratch.path().join("died")) };
        assert!(!once.is_for("keeper-there") && once.is_for("keeper-here") && !once.is_for("keeper-here"));
    }
}
