//! Finds everything that belongs to a run through `/proc`: its process group, its session, its descendants, processes
//! with its id in their environment or with its mark, processes that write to its output, and its control group. A
//! signal to the group is not enough, because programs can leave their group. So all processes are scanned once for all runs that must end, and signalled one by one. A process
//! that was found once stays known, because after the end of its parent its origin is no longer visible.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::{fs, io};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::protocol::RunKey;
use crate::{cgroups, run_mark};

/// The environment variable by which a process and its descendants are recognized.
pub(crate) const RUN_ID_VARIABLE: &str = "CRONHOLD_RUN_ID";
/// The longest environment that is read: what the kernel accepts with usual settings.
const ENVIRONMENT_MAX: u64 = 8 * 1024 * 1024;
/// Scans while processes are frozen. A program that forks faster is found by later scans.
const FREEZES_MAX: usize = 64;
/// Scans without anything new after which all processes are frozen.
const QUIET_SCANS: usize = 2;
/// How often processes are listed in one scan, if some are gone before they can be read.
const LISTS_MAX: usize = 10;
/// How many ancestors of a process are examined.
const ANCESTORS_MAX: usize = 64;
/// Standard output and error.
const OUTPUTS: [i32; 2] = [1, 2];
/// The parent of threads of the kernel, which have no environment.
const KERNEL: i32 = 2;

/// A process as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// The clock tick at which it began. Together with the pid it identifies a process.
    pub(crate) start: u64,
    /// Whether it is a zombie.
    pub(crate) is_dead: bool,
    /// The run in its environment.
    pub(crate) run_id: Option<RunKey>,
    /// The pipes that are its standard output and error, if it has no run in its environment; otherwise 0.
    outputs: [u64; 2],
    /// The mark of its run, if it has no run in its environment.
    mark: Option<u64>,
    /// Whether its environment was read. A process that executes another program has none for a moment.
    has_environment: bool,
}

/// The first process of a run, and the clock tick at which it began.
pub(crate) type Root = Option<(i32, u64)>;

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    pub(crate) run: RunKey,
    root: Root,
    /// The pipe for its output.
    output: Option<u64>,
    /// Its control group, which no process can leave.
    cgroup: Option<PathBuf>,
    /// What lived at the last scan: pid and clock tick at which it began.
    known: BTreeSet<(i32, u64)>,
}

/// All processes at one moment.
#[derive(Debug)]
pub(crate) struct ProcessSnapshot {
    processes: BTreeMap<i32, ProcessStat>,
    children: BTreeMap<i32, Vec<i32>>,
    /// Processes by their group, their session and their own pid.
    near: BTreeMap<i32, BTreeSet<i32>>,
    by_run: BTreeMap<RunKey, Vec<i32>>,
    /// Processes without a run in their environment, by the pipes that they write to.
    by_output: BTreeMap<u64, Vec<i32>>,
    /// Processes without a run in their environment, by the mark of their run.
    by_mark: BTreeMap<u64, Vec<i32>>,
    /// The keeper itself.
    own: i32,
}

impl ProcessTree {
    pub(crate) fn new(run: RunKey, root: Root, output: Option<u64>, cgroup: Option<PathBuf>) -> Self {
        Self { run, root, output, cgroup, known: BTreeSet::new() }
    }

    /// The pipe for its output.
    pub(crate) fn output(&self) -> Option<u64> {
        self.output
    }

    /// The live processes. They stay known from now on, even if their parents end.
    pub(crate) fn members(&mut self, snapshot: &ProcessSnapshot) -> Vec<ProcessStat> {
        let members = snapshot.members(self);
        self.known = members.iter().map(|process| (process.pid, process.start)).collect();
        members
    }
}

impl ProcessSnapshot {
    /// Scans all processes. Failing to scan is an error.
    pub(crate) fn take() -> io::Result<Self> {
        let own = i32::try_from(std::process::id()).expect("a process is an i32");
        let mut snapshot = Self::new(std::iter::empty(), own);
        snapshot.refresh()?;
        Ok(snapshot)
    }

    /// Scans again: leaves out processes that are gone, and reads those that are new. Other processes stay as they were
    /// read. A process may be gone before it is read, and have left a child that is not in the list. So processes are
    /// listed until all new ones could be read, which takes little time when few are new.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let mut processes = std::mem::take(&mut self.processes);
        processes.retain(|_, process| process.has_environment);
        for _ in 0..LISTS_MAX {
            let listed = list()?;
            processes.retain(|pid, _| listed.contains(pid));
            let mut has_missed = false;
            for pid in &listed {
                if processes.contains_key(pid) {
                    continue;
                }
                match read_whole(*pid) {
                    Ok(Some(process)) => drop(processes.insert(*pid, process)),
                    Ok(None) => {}
                    Err(error) if is_shortage(&error) => return Err(error),
                    Err(_) => has_missed = true,
                }
            }
            if !has_missed {
                break;
            }
        }
        *self = Self::new(processes.into_values(), self.own);
        Ok(())
    }

    fn new(processes: impl Iterator<Item = ProcessStat>, own: i32) -> Self {
        let processes: BTreeMap<i32, ProcessStat> = processes.map(|process| (process.pid, process)).collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut near: BTreeMap<i32, BTreeSet<i32>> = BTreeMap::new();
        let mut by_run: BTreeMap<RunKey, Vec<i32>> = BTreeMap::new();
        let mut by_output: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
        let mut by_mark: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
        for process in processes.values() {
            children.entry(process.parent).or_default().push(process.pid);
            for leader in [process.pid, process.group, process.session] {
                near.entry(leader).or_default().insert(process.pid);
            }
            if let Some(run_id) = process.run_id {
                by_run.entry(run_id).or_default().push(process.pid);
            }
            if let Some(mark) = process.mark {
                by_mark.entry(mark).or_default().push(process.pid);
            }
            for output in process.outputs.into_iter().filter(|output| *output != 0) {
                by_output.entry(output).or_default().push(process.pid);
            }
        }
        Self { processes, children, near, by_run, by_output, by_mark, own }
    }

    /// The processes of a run that live.
    fn members(&self, tree: &ProcessTree) -> Vec<ProcessStat> {
        let mut seen = BTreeSet::from([self.own]);
        let mut found: Vec<ProcessStat> = Vec::new();
        let mut next = self.seeds(tree);
        while let Some(pid) = next.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| seen.insert(pid)) else { continue };
            found.push(*process);
            next.extend(self.children.get(&pid).into_iter().flatten());
        }
        found.retain(|process| !process.is_dead);
        found
    }

    /// Processes that belong to the run regardless of their parents.
    fn seeds(&self, tree: &ProcessTree) -> Vec<i32> {
        let known = tree.known.iter().filter(|(pid, start)| self.has(*pid, *start)).map(|(pid, _)| *pid);
        let by_run = self.by_run.get(&tree.run).into_iter().flatten().copied();
        let by_output = tree.output.and_then(|output| self.by_output.get(&output)).into_iter().flatten().copied();
        let by_mark = self.by_mark.get(&run_mark::mark_of(tree.run)).into_iter().flatten().copied();
        let in_cgroup = tree.cgroup.iter().flat_map(|group| cgroups::members(group));
        known.chain(by_run).chain(by_mark).chain(by_output).chain(in_cgroup).chain(self.group(tree)).collect()
    }

    /// The group and the session of a run.
    fn group(&self, tree: &ProcessTree) -> Vec<i32> {
        let Some((leader, start)) = tree.root else { return Vec::new() };
        // A pid is reused when its process and its group are gone. Then it names another group.
        if self.processes.contains_key(&leader) && !self.has(leader, start) {
            return Vec::new();
        }
        let is_of_run =
            |process: &&ProcessStat| process.start >= start && process.run_id.is_none_or(|run_id| run_id == tree.run);
        let near = self.near.get(&leader).into_iter().flatten().filter_map(|pid| self.processes.get(pid));
        near.filter(is_of_run).map(|process| process.pid).collect()
    }

    fn has(&self, pid: i32, start: u64) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.start == start)
    }
}

/// Stops everything that is found with SIGSTOP, and scans again until nothing new is found: a stopped process cannot
/// fork, and its children still have it as their parent. Returns the last scan.
pub(crate) fn freeze(mut find: impl FnMut(&ProcessSnapshot) -> Vec<ProcessStat>) -> io::Result<ProcessSnapshot> {
    let mut stopped = BTreeSet::new();
    let mut snapshot = ProcessSnapshot::take()?;
    let mut quiet = 0;
    for _ in 0..FREEZES_MAX {
        let mut found = find(&snapshot);
        found.retain(|process| stopped.insert((process.pid, process.start)));
        found.iter().for_each(|process| send(process, Signal::STOP));
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET_SCANS {
            break;
        }
        snapshot.refresh()?;
    }
    Ok(snapshot)
}

/// Sends a signal to exactly this process, and to none if its pid was reused.
pub(crate) fn send(process: &ProcessStat, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read_process(process.pid).is_some_and(|now| now.start == process.start) {
        // It may have ended in the meantime.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// Reads one process, without its environment.
pub(crate) fn read_process(pid: i32) -> Option<ProcessStat> {
    read_stat(pid).ok().flatten()
}

fn read_stat(pid: i32) -> io::Result<Option<ProcessStat>> {
    Ok(parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat"))?))
}

/// Whether an error is not about the process that was read.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
}

/// The name of a program may contain spaces and parentheses, so fields are counted from the last parenthesis.
fn parse(pid: i32, stat: &str) -> Option<ProcessStat> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(ProcessStat {
        pid,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        run_id: None,
        outputs: [0; 2],
        mark: None,
        has_environment: true,
    })
}

/// All processes.
fn list() -> io::Result<BTreeSet<i32>> {
    let mut pids = BTreeSet::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

/// Reads one process with its environment, or with its output and its mark if it has no run in its environment.
fn read_whole(pid: i32) -> io::Result<Option<ProcessStat>> {
    let Some(mut process) = read_stat(pid)? else { return Ok(None) };
    if process.is_dead || process.parent == KERNEL {
        return Ok(Some(process));
    }
    match environment_of(pid) {
        Ok(environment) => {
            process.has_environment = !environment.is_empty();
            process.run_id = run_id_in(&environment);
        }
        Err(error) if is_shortage(&error) => return Err(error),
        // It belongs to another user.
        Err(_) => {}
    }
    if process.run_id.is_none() {
        process.outputs = OUTPUTS.map(|number| pipe_of(pid, number).unwrap_or(0));
        process.mark = run_mark::read_mark(pid);
    }
    Ok(Some(process))
}

/// The run that a process belongs to: the one in its environment, or in that of its nearest ancestor that has one.
/// Passes over environments that cannot be read.
pub fn run_of_process(pid: i32) -> Option<RunKey> {
    let ancestors = std::iter::successors(Some(pid), |pid| Some(read_process(*pid)?.parent));
    let mut ancestors = ancestors.take(ANCESTORS_MAX).take_while(|pid| *pid > 1);
    ancestors.find_map(|pid| run_id_in(&environment_of(pid).ok()?))
}

/// The environment that a process was started with.
fn environment_of(pid: i32) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut environment = Vec::new();
    fs::File::open(format!("/proc/{pid}/environ"))?.take(ENVIRONMENT_MAX).read_to_end(&mut environment)?;
    Ok(environment)
}

/// The pipe that an open file of a process is, if it is one and can be read.
fn pipe_of(pid: i32, number: i32) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?;
    link.to_str()?.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()
}

/// Opens a pipe that is the standard output or error of a process, for reading.
pub(crate) fn open_output(process: &ProcessStat, output: u64) -> Option<OwnedFd> {
    let number = OUTPUTS.into_iter().find(|number| pipe_of(process.pid, *number) == Some(output))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = rustix::fs::open(format!("/proc/{}/fd/{number}", process.pid), flags, Mode::empty()).ok()?;
    (rustix::fs::fstat(&pipe).ok()?.st_ino == output).then_some(pipe)
}

fn run_id_in(environment: &[u8]) -> Option<RunKey> {
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(RUN_ID_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
        parse_run_id(std::str::from_utf8(value).ok()?)
    })
}

/// Reads a run id as programs see it: with the hyphens of a UUID, or without.
pub(crate) fn parse_run_id(text: &str) -> Option<RunKey> {
    RunKey::parse(&text.replace('-', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_dir::ScratchDir;

    const OWN: i32 = 2;
    const RUN: RunKey = RunKey(5);

    fn process(pid: i32, parent: i32, group: i32, start: u64, run_id: Option<u128>) -> ProcessStat {
        let run_id = run_id.map(RunKey);
        let (session, is_dead, outputs, mark, has_environment) = (group, false, [0; 2], None, true);
        ProcessStat { pid, parent, group, session, start, is_dead, run_id, outputs, mark, has_environment }
    }

    fn members(processes: Vec<ProcessStat>, root: Root) -> Vec<i32> {
        look_again(&mut ProcessTree::new(RUN, root, None, None), processes)
    }

    fn look_again(tree: &mut ProcessTree, processes: Vec<ProcessStat>) -> Vec<i32> {
        let snapshot = ProcessSnapshot::new(processes.into_iter(), OWN);
        let mut pids: Vec<i32> = tree.members(&snapshot).into_iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn group_descendants_and_processes_with_the_run_id_belong_to_a_run() {
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
    fn reused_pid_does_not_belong_to_the_run() {
        let all = vec![process(10, 1, 10, 90, None), process(11, 10, 10, 91, None), process(12, 1, 12, 60, Some(5))];
        assert_eq!(members(all, Some((10, 50))), [12]);
        let orphans = vec![process(11, 1, 10, 51, None), process(12, 1, 10, 52, Some(6)), process(13, 1, 10, 9, None)];
        assert_eq!(members(orphans, Some((10, 50))), [11]);
    }

    #[test]
    fn zombies_are_left_out_and_their_children_are_not() {
        let dead = ProcessStat { is_dead: true, ..process(10, OWN, 10, 50, None) };
        assert_eq!(members(vec![dead, process(11, 10, 11, 51, None)], Some((10, 50))), [11]);
    }

    #[test]
    fn process_stays_known_after_its_parent_ended() {
        let mut tree = ProcessTree::new(RUN, Some((10, 50)), None, None);
        let stray = process(11, 10, 11, 51, None);
        assert_eq!(look_again(&mut tree, vec![process(10, OWN, 10, 50, None), stray]), [10, 11]);
        let orphan = ProcessStat { parent: OWN, ..stray };
        assert_eq!(look_again(&mut tree, vec![orphan, process(12, 11, 12, 52, None)]), [11, 12]);
        // Its child has lost its parent, whose pid was reused. A process that was not known does not belong to the run.
        let others =
            vec![process(11, OWN, 11, 90, None), process(12, OWN, 12, 52, None), process(13, OWN, 13, 53, None)];
        assert_eq!(look_again(&mut tree, others), [12]);
        assert!(members(vec![orphan], Some((10, 50))).is_empty());
    }

    #[test]
    fn processes_of_the_control_group_belong_to_the_run() {
        let scratch = ScratchDir::new();
        let mut tree = ProcessTree::new(RUN, Some((10, 50)), None, Some(scratch.path().to_owned()));
        let all = vec![process(10, OWN, 10, 50, None), process(11, 1, 11, 51, None), process(12, 1, 12, 51, None)];
        assert_eq!(look_again(&mut tree, all.clone()), [10]);
        fs::write(scratch.path().join("cgroup.procs"), "10\n12\n99\n").unwrap();
        assert_eq!(look_again(&mut tree, all), [10, 12]);
    }

    #[test]
    fn processes_that_write_to_the_output_belong_to_the_run() {
        let writer = |pid, outputs| ProcessStat { outputs, ..process(pid, OWN, pid, 60, None) };
        let all = vec![writer(10, [70, 0]), writer(11, [71, 70]), writer(12, [71, 0]), process(13, 11, 13, 61, None)];
        let mut tree = ProcessTree::new(RUN, None, Some(70), None);
        assert_eq!(look_again(&mut tree, all.clone()), [10, 11, 13]);
        assert!(members(all, None).is_empty());
    }

    #[test]
    fn processes_with_the_mark_belong_to_the_run() {
        let marked =
            |pid, run| ProcessStat { mark: Some(run_mark::mark_of(RunKey(run))), ..process(pid, OWN, pid, 60, None) };
        let all = vec![marked(10, 5), marked(11, 6), process(12, 10, 12, 61, None), process(13, OWN, 13, 60, None)];
        assert_eq!(members(all, None), [10, 12]);
    }

    #[test]
    fn stat_with_parentheses_in_the_name_is_parsed() {
        let rest = "S 4 5 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let read = parse(3, &format!("3 (a) b) (c) {rest}")).unwrap();
        assert_eq!(read, ProcessStat { session: 6, ..process(3, 4, 5, 777, None) });
        assert_eq!(parse(3, "3 (a"), None);
    }

    #[test]
    fn own_process_is_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(read_process(own).is_some_and(|process| process.start > 0 && !process.is_dead));
    }

    #[test]
    fn run_ids_are_read_with_and_without_hyphens() {
        assert_eq!(parse_run_id("00000000-0000-0000-0000-000000000005"), Some(RUN));
        assert_eq!(parse_run_id("00000000000000000000000000000005"), Some(RUN));
        assert_eq!(parse_run_id("5"), None);
    }
}
