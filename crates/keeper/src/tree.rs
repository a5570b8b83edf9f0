//! Everything that belongs to a run, found through `/proc`: its group, its session, what descends from it, and what
//! carries its mark in its environment. Signals alone reach groups, and programs leave their group at will; so this file
//! looks at all processes once for all runs that must end, and ends them one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::protocol::RunKey;

/// The variable by which a process and its descendants are known.
pub(crate) const MARK: &str = "CRONHOLD_RUN_ID";
/// No environment is longer than what the kernel takes for arguments and environment together in usual settings.
const ENVIRONMENT_MAX: u64 = 8 * 1024 * 1024;

/// A process as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// The tick at which it began; with the pid it names a process for ever.
    pub(crate) start: u64,
    /// Dead, and not yet waited for.
    pub(crate) is_dead: bool,
    /// The run whose mark it carries.
    pub(crate) mark: Option<RunKey>,
}

/// The process that a run began with, and the tick at which it did.
pub(crate) type Root = Option<(i32, u64)>;

/// All processes of a moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    processes: BTreeMap<i32, Process>,
    children: BTreeMap<i32, Vec<i32>>,
    /// Ourselves.
    own: i32,
}

impl Snapshot {
    /// Looks at all processes.
    pub(crate) fn take() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let processes = pids.filter_map(|pid| {
            let mut process = look(pid)?;
            process.mark = mark_of(pid);
            Some(process)
        });
        Self::new(processes, i32::try_from(std::process::id()).expect("a process is an i32"))
    }

    fn new(processes: impl Iterator<Item = Process>, own: i32) -> Self {
        let processes: BTreeMap<i32, Process> = processes.map(|process| (process.pid, process)).collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for process in processes.values() {
            children.entry(process.parent).or_default().push(process.pid);
        }
        Self { processes, children, own }
    }

    /// What lives of a run.
    pub(crate) fn members(&self, run: RunKey, root: Root) -> Vec<&Process> {
        let mut seen = BTreeSet::from([self.own]);
        let mut found: Vec<&Process> = Vec::new();
        let mut next: Vec<i32> =
            self.processes.values().filter(|process| self.is_seed(process, run, root)).map(|seed| seed.pid).collect();
        while let Some(pid) = next.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| seen.insert(pid)) else { continue };
            found.push(process);
            next.extend(self.children.get(&pid).into_iter().flatten());
        }
        found.retain(|process| !process.is_dead);
        found
    }

    /// Whether a process is one of the run by what it is itself, whoever its parent is.
    fn is_seed(&self, process: &Process, run: RunKey, root: Root) -> bool {
        if process.pid == self.own {
            return false;
        }
        let Some((pid, start)) = root else { return process.mark == Some(run) };
        // A number comes back when all that used it is gone. Then it names another's group.
        let is_reused = self.processes.get(&pid).is_some_and(|leader| leader.start != start);
        let is_near = process.pid == pid || process.group == pid || process.session == pid;
        let is_group = is_near && !is_reused && process.start >= start;
        process.mark == Some(run) || (is_group && process.mark.is_none_or(|mark| mark == run))
    }
}

/// Sends a signal to exactly this process: if its number names another by now, to none.
pub(crate) fn send(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if look(process.pid).is_some_and(|now| now.start == process.start) {
        // It may have ended by itself meanwhile, which is what we want.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// A process without its mark.
pub(crate) fn look(pid: i32) -> Option<Process> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a program may hold spaces and parentheses: fields are counted from the last one.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(Process {
        pid,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        mark: None,
    })
}

/// The mark in the environment that a process was started with; none of those of others, whose environment is not shown.
fn mark_of(pid: i32) -> Option<RunKey> {
    use std::io::Read;
    let mut environment = Vec::new();
    fs::File::open(format!("/proc/{pid}/environ")).ok()?.take(ENVIRONMENT_MAX).read_to_end(&mut environment).ok()?;
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        parse_mark(std::str::from_utf8(value).ok()?)
    })
}

/// A run as programs see it: with the hyphens of a UUID, or without.
pub(crate) fn parse_mark(text: &str) -> Option<RunKey> {
    RunKey::parse(&text.replace('-', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: i32 = 2;
    const RUN: RunKey = RunKey(5);

    fn process(pid: i32, parent: i32, group: i32, start: u64, mark: Option<u128>) -> Process {
        Process { pid, parent, group, session: group, start, is_dead: false, mark: mark.map(RunKey) }
    }

    fn members(processes: Vec<Process>, root: Root) -> Vec<i32> {
        let snapshot = Snapshot::new(processes.into_iter(), OWN);
        let mut pids: Vec<i32> = snapshot.members(RUN, root).into_iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn group_descendants_and_marked_ones_belong_to_a_run() {
        let all = vec![
            process(1, 0, 1, 0, None),
            process(OWN, 1, 1, 1, Some(5)),
            process(10, OWN, 10, 50, Some(5)),
            process(11, 10, 10, 51, None),
            process(12, OWN, 12, 52, Some(5)),
            process(13, 12, 13, 53, None),
            process(20, OWN, 20, 50, Some(6)),
            process(21, 20, 20, 51, None),
        ];
        assert_eq!(members(all.clone(), Some((10, 50))), [10, 11, 12, 13]);
        assert_eq!(members(all, None), [10, 11, 12, 13]);
    }

    #[test]
    fn a_number_that_came_back_is_not_of_the_run() {
        let all = vec![process(10, 1, 10, 90, None), process(11, 10, 10, 91, None), process(12, 1, 12, 60, Some(5))];
        assert_eq!(members(all, Some((10, 50))), [12]);
        let orphans = vec![process(11, 1, 10, 51, None), process(12, 1, 10, 52, Some(6)), process(13, 1, 10, 9, None)];
        assert_eq!(members(orphans, Some((10, 50))), [11]);
    }

    #[test]
    fn the_dead_are_not_counted_and_their_children_are() {
        let dead = Process { is_dead: true, ..process(10, OWN, 10, 50, None) };
        assert_eq!(members(vec![dead, process(11, 10, 11, 51, None)], Some((10, 50))), [11]);
    }

    #[test]
    fn names_with_parentheses_are_read() {
        let rest = "S 4 5 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let read = parse(3, &format!("3 (a) b) (c) {rest}")).unwrap();
        assert_eq!(read, Process { pid: 3, parent: 4, group: 5, session: 6, start: 777, is_dead: false, mark: None });
        assert_eq!(parse(3, "3 (a"), None);
    }

    #[test]
    fn we_find_ourselves() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(look(own).is_some_and(|process| process.start > 0 && !process.is_dead));
    }

    #[test]
    fn marks_are_read_with_and_without_hyphens() {
        assert_eq!(parse_mark("00000000-0000-0000-0000-000000000005"), Some(RUN));
        assert_eq!(parse_mark("00000000000000000000000000000005"), Some(RUN));
        assert_eq!(parse_mark("5"), None);
    }
}
