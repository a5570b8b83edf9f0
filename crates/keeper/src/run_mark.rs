//! Marks the processes of a run by a resource limit that Linux does not enforce: the soft limit on file locks. All
//! descendants of a program inherit it. Unlike the environment and the open files of a process, its limits can be read
//! by every user, also those of a setuid program, and a process that clears its environment keeps them.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::protocol::RunKey;

/// The line of the limit in `/proc/PID/limits`.
const LINE: &str = "Max file locks";
/// The bits of a run's id that are part of its mark. They are random.
const ID_BITS: u128 = (1 << 62) - 1;
/// Set in every mark, so that it is far above any limit that a program could reach or that a person would set.
const HIGH: u64 = 1 << 62;

/// The mark of the processes of a run.
pub(crate) fn mark_of(run: RunKey) -> u64 {
    u64::try_from(run.0 & ID_BITS).expect("62 bits fit") | HIGH
}

/// Marks this process, and all that it starts, until the returned limit is restored. If the hard limit is lower than
/// the mark, nothing changes.
pub(crate) fn set_mark(run: RunKey) -> Rlimit {
    let before = getrlimit(Resource::Locks);
    let _ = setrlimit(Resource::Locks, Rlimit { current: Some(mark_of(run)), ..before });
    before
}

/// Restores the limit that [`set_mark`] returned.
pub(crate) fn restore(before: Rlimit) {
    // The hard limit has not changed, so the call cannot fail.
    let _ = setrlimit(Resource::Locks, before);
}

/// The mark of a process; `None` if it has none, or is gone.
pub(crate) fn read_mark(pid: i32) -> Option<u64> {
    parse_mark(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

fn parse_mark(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    line.split_whitespace().next()?.parse().ok().filter(|soft| soft & HIGH != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_read_from_the_limits_of_a_process() {
        let limits = |soft: &str| format!("Limit  Soft  Hard  Units\nMax file locks   {soft}   unlimited   locks\n");
        let mark = mark_of(RunKey(u128::MAX - 4));
        assert_eq!(parse_mark(&limits(&mark.to_string())), Some(mark));
        assert_eq!([limits("unlimited"), limits("1000"), String::new()].map(|text| parse_mark(&text)), [None; 3]);
        assert_ne!(mark, mark_of(RunKey(u128::MAX - 3)));
    }

    #[test]
    fn child_inherits_the_mark() {
        let run = RunKey(0x1234_5678_9abc);
        let before = set_mark(run);
        let mut child = std::process::Command::new("sleep").arg("600").env_clear().spawn().unwrap();
        restore(before);
        let read = read_mark(i32::try_from(child.id()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read, Some(mark_of(run)));
        assert_ne!(read_mark(i32::try_from(std::process::id()).unwrap()), read);
    }
}
