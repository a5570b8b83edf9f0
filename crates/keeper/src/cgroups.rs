//! Control groups, where the machine lets us have some: version 2, with a subtree that was given to us. They limit
//! memory, processor and processes of a program together with all that descends from it. Where there are none we say so
//! once, in the first message to each daemon.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::protocol::{Limits, RunKey};

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// What the file system of version 2 calls itself.
const MAGIC: u64 = 0x6367_7270;
/// The group that holds the keeper, and all that was in the subtree when it came: a group with limits for its children
/// may hold no processes itself.
const OWN_GROUP: &str = "keeper";
/// What we limit.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The period over which the processor is shared, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// What the groups of programs are called, before the run.
const PREFIX: &str = "run-";
/// Groups that are tried to be removed when one of them is to be.
const REMOVED_AT_ONCE: usize = 4;

/// The control groups of programs.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// The subtree that is ours, or why there is none.
    base: Result<PathBuf, String>,
    /// Groups that nobody needs: what a program has left in the background keeps its group for as long as it lives.
    left: VecDeque<RunKey>,
}

impl Cgroups {
    /// Looks whether there is a subtree for us.
    pub(crate) fn find() -> Self {
        Self::new(find())
    }

    fn new(base: Result<PathBuf, String>) -> Self {
        let entries = base.iter().filter_map(|base| fs::read_dir(base).ok()).flatten().flatten();
        let left = entries.filter_map(|entry| RunKey::parse(entry.file_name().to_str()?.strip_prefix(PREFIX)?));
        let left = left.collect();
        Self { base, left }
    }

    /// What cannot be limited here, in words.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warn = |why: &String| {
            format!(
                "no control groups for programs ({why}): limits of cpu and pids have no effect, \
                 and a limit of memory is one of the address space of each process"
            )
        };
        self.base.as_ref().err().map(warn).into_iter().collect()
    }

    /// Makes the group of a program, when its limits need one and there can be one.
    pub(crate) fn create(&self, run: RunKey, limits: &Limits) -> Result<Option<String>, String> {
        let Ok(base) = &self.base else { return Ok(None) };
        if limits.memory.is_none() && limits.cpu.is_none() && limits.pids.is_none() {
            return Ok(None);
        }
        let group = group(base, run);
        let result = fs::create_dir(&group).and_then(|()| limit(&group, limits));
        match result {
            Ok(()) => Ok(Some(group.display().to_string())),
            Err(error) => {
                // An empty group costs nothing, should it stay.
                let _ = fs::remove_dir(&group);
                Err(format!("cannot make a control group with its limits: {error}"))
            }
        }
    }

    /// The group of a run, if it has one.
    pub(crate) fn place(&self, run: RunKey) -> Option<PathBuf> {
        self.base.as_ref().ok().map(|base| group(base, run)).filter(|group| group.is_dir())
    }

    /// Ends all that is in the group of a run, if it has one.
    pub(crate) fn kill(&self, run: RunKey) {
        if let Ok(base) = &self.base {
            // Without a group, or with a kernel that cannot do this, its processes are ended one by one.
            let _ = fs::write(group(base, run).join("cgroup.kill"), "1");
        }
    }

    /// Removes the group of a run, if it has one, as soon as nothing lives there any more.
    pub(crate) fn remove(&mut self, run: RunKey) {
        let Ok(base) = &self.base else { return };
        self.left.push_front(run);
        for _ in 0..self.left.len().min(REMOVED_AT_ONCE) {
            let Some(run) = self.left.pop_front() else { return };
            if fs::remove_dir(group(base, run)).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
                self.left.push_back(run);
            }
        }
    }
}

#[cfg(test)]
impl Cgroups {
    /// As on a machine that has none.
    pub(crate) fn none() -> Self {
        Self::new(Err("none here".to_owned()))
    }
}

/// The processes that are in a group now.
pub(crate) fn members(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn group(base: &Path, run: RunKey) -> PathBuf {
    base.join(format!("{PREFIX}{run}"))
}

fn limit(group: &Path, limits: &Limits) -> io::Result<()> {
    if let Some(memory) = limits.memory {
        fs::write(group.join("memory.max"), memory.to_string())?;
        // Without this a program over its limit would fill the swap; not every kernel has it.
        let _ = fs::write(group.join("memory.swap.max"), "0");
    }
    if let Some(cpu) = limits.cpu {
        let quota = (cpu.saturating_mul(CPU_PERIOD) / 1_000).max(1_000);
        fs::write(group.join("cpu.max"), format!("{quota} {CPU_PERIOD}"))?;
    }
    if let Some(pids) = limits.pids {
        fs::write(group.join("pids.max"), pids.to_string())?;
    }
    Ok(())
}

fn find() -> Result<PathBuf, String> {
    let is_unified = rustix::fs::statfs(ROOT).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(MAGIC));
    if !is_unified {
        return Err("this machine has no unified control groups of version 2".to_owned());
    }
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("our own control group is unknown")?;
    let own = Path::new(ROOT).join(own);
    // An earlier keeper, or whoever started us, has prepared the subtree already.
    if own.file_name().is_some_and(|name| name == OWN_GROUP)
        && let Some(base) = own.parent().filter(|base| is_ready(base) && is_ours(base))
    {
        return Ok(base.to_owned());
    }
    if !is_ours(&own) {
        return Err("no subtree of control groups was delegated to this service".to_owned());
    }
    prepare(&own).map_err(|error| format!("the delegated subtree cannot be prepared: {error}"))?;
    Ok(own)
}

/// Whether the children of a group can be limited.
fn is_ready(base: &Path) -> bool {
    let controllers = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    CONTROLLERS.iter().all(|wanted| controllers.split_whitespace().any(|has| has == *wanted))
}

/// Whether a subtree was given to us: by its owner, or by the mark that service managers leave.
fn is_ours(base: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_owner = own != 0 && fs::metadata(base).is_ok_and(|metadata| metadata.uid() == own);
    let is_marked = ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(base, *name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    });
    is_owner || is_marked
}

/// Moves all processes of a subtree into a group of their own, and lets its children be limited.
fn prepare(base: &Path) -> io::Result<()> {
    let own_group = base.join(OWN_GROUP);
    fs::create_dir(&own_group).or_else(|error| if own_group.is_dir() { Ok(()) } else { Err(error) })?;
    for pid in fs::read_to_string(base.join("cgroup.procs"))?.lines() {
        fs::write(own_group.join("cgroup.procs"), pid)?;
    }
    let wanted: Vec<String> = CONTROLLERS.iter().map(|name| format!("+{name}")).collect();
    fs::write(base.join("cgroup.subtree_control"), wanted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const RUN: RunKey = RunKey(1);

    fn limits() -> Limits {
        Limits { memory: Some(1 << 20), cpu: Some(1_500), pids: Some(7), ..Limits::default() }
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let scratch = Scratch::new();
        let cgroups = Cgroups::new(Ok(scratch.path().to_owned()));
        let group = cgroups.create(RUN, &limits()).unwrap().unwrap();
        let read = |name: &str| fs::read_to_string(Path::new(&group).join(name)).unwrap();
        assert_eq!(read("memory.max"), "1048576");
        assert_eq!(read("cpu.max"), "150000 100000");
        assert_eq!(read("pids.max"), "7");
        assert!(cgroups.create(RUN, &limits()).is_err_and(|why| why.contains("control group")));
        assert!(cgroups.warnings().is_empty());
        assert_eq!(cgroups.place(RUN), Some(group.into()));
        assert_eq!(cgroups.place(RunKey(2)), None);
    }

    #[test]
    fn without_groups_there_is_a_warning_and_no_error() {
        let cgroups = Cgroups::none();
        assert_eq!(cgroups.create(RUN, &limits()), Ok(None));
        assert!(cgroups.warnings().iter().any(|warning| warning.contains("none here")));
        let scratch = Scratch::new();
        let files_only = Limits { files: Some(3), ..Limits::default() };
        assert_eq!(Cgroups::new(Ok(scratch.path().to_owned())).create(RUN, &files_only), Ok(None));
    }

    /// A folder with something in it cannot be removed, like a group with a process.
    #[test]
    fn a_group_that_cannot_be_removed_yet_is_removed_later() {
        let scratch = Scratch::new();
        let place = |run: RunKey| group(scratch.path(), run);
        let make = |run: RunKey| fs::create_dir(place(run)).unwrap();
        let earlier = RunKey(7);
        make(earlier);
        let mut cgroups = Cgroups::new(Ok(scratch.path().to_owned()));
        make(RUN);
        fs::create_dir(place(RUN).join("busy")).unwrap();
        cgroups.remove(RUN);
        assert!(place(RUN).exists() && !place(earlier).exists());
        fs::remove_dir(place(RUN).join("busy")).unwrap();
        // One that has no group is asked for like others.
        cgroups.remove(RunKey(2));
        assert!(!place(RUN).exists() && cgroups.left.is_empty());
    }

    #[test]
    fn a_subtree_is_prepared_by_moving_what_is_in_it() {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("cgroup.procs"), "12\n").unwrap();
        prepare(scratch.path()).unwrap();
        assert_eq!(fs::read_to_string(scratch.path().join("keeper/cgroup.procs")).unwrap(), "12");
        assert_eq!(fs::read_to_string(scratch.path().join("cgroup.subtree_control")).unwrap(), "+cpu +memory +pids");
        assert!(!is_ready(scratch.path()));
        fs::write(scratch.path().join("cgroup.subtree_control"), "cpu io memory pids").unwrap();
        assert!(is_ready(scratch.path()));
    }
}
