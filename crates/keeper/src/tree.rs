//! Everything that belongs to a run, found through `/proc`: its group, its session, what descends from it, what carries
//! its mark in its environment, and what is in its control group. Signals alone reach groups, and programs leave their
//! group at will; so this file looks at all processes once for all runs that must end, and ends them one by one. What was
//! found once stays known, because a process whose parent has ended does not show any more whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::cgroups;
use crate::protocol::RunKey;

/// The variable by which a process and its descendants are known.
pub(crate) const MARK: &str = "CRONHOLD_RUN_ID";
/// No environment is longer than what the kernel takes for arguments and environment together in usual settings.
const ENVIRONMENT_MAX: u64 = 8 * 1024 * 1024;
/// So often it is looked for more that has to stand still. Who forks faster than that is caught by later looks.
const FREEZES_MAX: usize = 8;

/// A process as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) run: RunKey,
    root: Root,
    /// Its control group, which nothing can leave.
    cgroup: Option<PathBuf>,
    /// What lived at the last look, each with the tick at which it began.
    known: BTreeSet<(i32, u64)>,
}

/// All processes of a moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    processes: BTreeMap<i32, Process>,
    children: BTreeMap<i32, Vec<i32>>,
    /// By their group, their session and themselves.
    near: BTreeMap<i32, BTreeSet<i32>>,
    marked: BTreeMap<RunKey, Vec<i32>>,
    /// Ourselves.
    own: i32,
}

impl Tree {
    pub(crate) fn new(run: RunKey, root: Root, cgroup: Option<PathBuf>) -> Self {
        Self { run, root, cgroup, known: BTreeSet::new() }
    }

    /// What lives of it. It is known from now on, whatever becomes of its parents.
    pub(crate) fn members(&mut self, snapshot: &Snapshot) -> Vec<Process> {
        let members = snapshot.members(self);
        self.known = members.iter().map(|process| (process.pid, process.start)).collect();
        members
    }
}

impl Snapshot {
    /// Looks at all processes. What ends meanwhile is not there; that we cannot look is something else.
    pub(crate) fn take() -> io::Result<Self> {
        let mut processes = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            match read_stat(pid) {
                Ok(process) => processes.extend(process.map(|process| Process { mark: mark_of(pid), ..process })),
                Err(error) if is_shortage(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self::new(processes.into_iter(), i32::try_from(std::process::id()).expect("a process is an i32")))
    }

    fn new(processes: impl Iterator<Item = Process>, own: i32) -> Self {
        let processes: BTreeMap<i32, Process> = processes.map(|process| (process.pid, process)).collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut near: BTreeMap<i32, BTreeSet<i32>> = BTreeMap::new();
        let mut marked: BTreeMap<RunKey, Vec<i32>> = BTreeMap::new();
        for process in processes.values() {
            children.entry(process.parent).or_default().push(process.pid);
            for leader in [process.pid, process.group, process.session] {
                near.entry(leader).or_default().insert(process.pid);
            }
            if let Some(mark) = process.mark {
                marked.entry(mark).or_default().push(process.pid);
            }
        }
        Self { processes, children, near, marked, own }
    }

    /// What lives of a run.
    fn members(&self, tree: &Tree) -> Vec<Process> {
        let mut seen = BTreeSet::from([self.own]);
        let mut found: Vec<Process> = Vec::new();
        let mut next = self.seeds(tree);
        while let Some(pid) = next.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| seen.insert(pid)) else { continue };
            found.push(*process);
            next.extend(self.children.get(&pid).into_iter().flatten());
        }
        found.retain(|process| !process.is_dead);
        found
    }

    /// Processes that are of the run by what they are themselves, whoever their parents are.
    fn seeds(&self, tree: &Tree) -> Vec<i32> {
        let known = tree.known.iter().filter(|(pid, start)| self.has(*pid, *start)).map(|(pid, _)| *pid);
        let marked = self.marked.get(&tree.run).into_iter().flatten().copied();
        let in_cgroup = tree.cgroup.iter().flat_map(|group| cgroups::members(group));
        known.chain(marked).chain(in_cgroup).chain(self.group(tree)).collect()
    }

    /// The group and the session of a run.
    fn group(&self, tree: &Tree) -> Vec<i32> {
        let Some((leader, start)) = tree.root else { return Vec::new() };
        // A number comes back when all that used it is gone. Then it names another's group.
        if self.processes.contains_key(&leader) && !self.has(leader, start) {
            return Vec::new();
        }
        let is_of_run = |process: &&Process| process.start >= start && process.mark.is_none_or(|mark| mark == tree.run);
        let near = self.near.get(&leader).into_iter().flatten().filter_map(|pid| self.processes.get(pid));
        near.filter(is_of_run).map(|process| process.pid).collect()
    }

    fn has(&self, pid: i32, start: u64) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.start == start)
    }
}

/// Lets all that is found stand still, and looks again until nothing new is found: what stands still cannot fork, and has
/// children that show whose they are. The last look has all of it.
pub(crate) fn freeze(mut find: impl FnMut(&Snapshot) -> Vec<Process>) -> io::Result<Snapshot> {
    let mut still = BTreeSet::new();
    let mut snapshot = Snapshot::take()?;
    for _ in 0..FREEZES_MAX {
        let mut found = find(&snapshot);
        found.retain(|process| still.insert((process.pid, process.start)));
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|process| send(process, Signal::STOP));
        snapshot = Snapshot::take()?;
    }
    Ok(snapshot)
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
    read_stat(pid).ok().flatten()
}

fn read_stat(pid: i32) -> io::Result<Option<Process>> {
    Ok(parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat"))?))
}

/// Whether an error says nothing of the process that was asked for.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
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
    use crate::scratch::Scratch;

    const OWN: i32 = 2;
    const RUN: RunKey = RunKey(5);

    fn process(pid: i32, parent: i32, group: i32, start: u64, mark: Option<u128>) -> Process {
        Process { pid, parent, group, session: group, start, is_dead: false, mark: mark.map(RunKey) }
    }

    fn members(processes: Vec<Process>, root: Root) -> Vec<i32> {
        look_again(&mut Tree::new(RUN, root, None), processes)
    }

    fn look_again(tree: &mut Tree, processes: Vec<Process>) -> Vec<i32> {
        let snapshot = Snapshot::new(processes.into_iter(), OWN);
        let mut pids: Vec<i32> = tree.members(&snapshot).into_iter().map(|process| process.pid).collect();
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
    fn what_was_found_once_stays_known_without_its_parent() {
        let mut tree = Tree::new(RUN, Some((10, 50)), None);
        let stray = process(11, 10, 11, 51, None);
        assert_eq!(look_again(&mut tree, vec![process(10, OWN, 10, 50, None), stray]), [10, 11]);
        let orphan = Process { parent: OWN, ..stray };
        assert_eq!(look_again(&mut tree, vec![orphan, process(12, 11, 12, 52, None)]), [11, 12]);
        // Its child has lost it meanwhile, and its number is another's; one that nobody knew is not of the run.
        let others =
            vec![process(11, OWN, 11, 90, None), process(12, OWN, 12, 52, None), process(13, OWN, 13, 53, None)];
        assert_eq!(look_again(&mut tree, others), [12]);
        assert!(members(vec![orphan], Some((10, 50))).is_empty());
    }

    #[test]
    fn what_is_in_the_control_group_belongs_to_the_run() {
        let scratch = Scratch::new();
        let mut tree = Tree::new(RUN, Some((10, 50)), Some(scratch.path().to_owned()));
        let all = vec![process(10, OWN, 10, 50, None), process(11, 1, 11, 51, None), process(12, 1, 12, 51, None)];
        assert_eq!(look_again(&mut tree, all.clone()), [10]);
        fs::write(scratch.path().join("cgroup.procs"), "10\n12\n99\n").unwrap();
        assert_eq!(look_again(&mut tree, all), [10, 12]);
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
