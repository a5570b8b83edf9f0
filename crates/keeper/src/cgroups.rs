//! Control groups of version 2, if a subtree was delegated to the keeper. They limit memory, processor and processes of
//! a program together with everything that descends from it. If there are none, the hello to each daemon contains a
//! warning.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::protocol::{ProcessLimits, RunKey};
use crate::spawn::SpawnError;

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// The magic number of the file system of version 2.
const MAGIC: u64 = 0x6367_7270;
/// The group of the keeper, and of everything that was in the subtree before: a group whose children have limits may
/// not contain processes itself.
const OWN_GROUP: &str = "keeper";
/// The controllers that are used.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The period over which the processor is shared, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// The names of programs' groups: this and the run.
const PREFIX: &str = "run-";
/// Groups that are tried each time when one is to be removed.
const REMOVED_AT_ONCE: usize = 4;

/// The control groups of programs.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// The delegated subtree, or why there is none.
    base: Result<PathBuf, CgroupError>,
    /// Groups to be removed: a background process keeps its group as long as it lives.
    left: VecDeque<RunKey>,
}

/// Why there are no control groups for programs.
#[derive(Debug, thiserror::Error)]
enum CgroupError {
    #[error("this machine has no unified control groups of version 2")]
    NotUnified,
    #[error("cannot read the keeper's control group: {0}")]
    OwnGroup(#[source] io::Error),
    #[error("the keeper's control group is unknown")]
    NoOwnGroup,
    #[error("no subtree of control groups was delegated to this service")]
    NotDelegated,
    #[error("cannot prepare the delegated subtree: {0}")]
    Prepare(#[source] io::Error),
}

impl Cgroups {
    /// Finds the delegated subtree.
    pub(crate) fn find() -> Self {
        Self::new(find())
    }

    fn new(base: Result<PathBuf, CgroupError>) -> Self {
        let entries = base.iter().filter_map(|base| fs::read_dir(base).ok()).flatten().flatten();
        let left = entries.filter_map(|entry| RunKey::parse(entry.file_name().to_str()?.strip_prefix(PREFIX)?));
        let left = left.collect();
        Self { base, left }
    }

    /// What cannot be limited on this machine, as messages.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warn = |why: &CgroupError| {
            format!(
                "no control groups for programs ({why}): limits of cpu and pids have no effect, \
                 and a memory limit applies to the address space of each process"
            )
        };
        self.base.as_ref().err().map(warn).into_iter().collect()
    }

    /// Creates the group of a program. Returns `None` if its limits do not need one, or if there are none.
    pub(crate) fn create(&self, run: RunKey, limits: &ProcessLimits) -> Result<Option<String>, SpawnError> {
        let Ok(base) = &self.base else { return Ok(None) };
        if limits.memory.is_none() && limits.cpu.is_none() && limits.pids.is_none() {
            return Ok(None);
        }
        let group = group(base, run);
        let result = fs::create_dir(&group).and_then(|()| limit(&group, limits));
        match result {
            Ok(()) => Ok(Some(group.display().to_string())),
            Err(error) => {
                // If it stays, an empty group costs nothing.
                let _ = fs::remove_dir(&group);
                Err(SpawnError::Cgroup(error.into()))
            }
        }
    }

    /// The group of a run, if it has one.
    pub(crate) fn group_of(&self, run: RunKey) -> Option<PathBuf> {
        self.base.as_ref().ok().map(|base| group(base, run)).filter(|group| group.is_dir())
    }

    /// Kills everything in the group of a run, if it has one.
    pub(crate) fn kill(&self, run: RunKey) {
        if let Ok(base) = &self.base {
            // Without a group, or with an older kernel, its processes are killed one by one.
            let _ = fs::write(group(base, run).join("cgroup.kill"), "1");
        }
    }

    /// Removes the group of a run, if it has one, as soon as it is empty.
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
    /// As on a machine without control groups.
    pub(crate) fn none() -> Self {
        Self::new(Err(CgroupError::NotUnified))
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

fn limit(group: &Path, limits: &ProcessLimits) -> io::Result<()> {
    if let Some(memory) = limits.memory {
        fs::write(group.join("memory.max"), memory.to_string())?;
        // Otherwise a program over its limit would fill the swap. Not every kernel has this.
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

fn find() -> Result<PathBuf, CgroupError> {
    let is_unified = rustix::fs::statfs(ROOT).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(MAGIC));
    if !is_unified {
        return Err(CgroupError::NotUnified);
    }
    let own = fs::read_to_string("/proc/self/cgroup").map_err(CgroupError::OwnGroup)?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(CgroupError::NoOwnGroup)?;
    let own = Path::new(ROOT).join(own);
    // An earlier keeper, or the service manager, has prepared the subtree already.
    if own.file_name().is_some_and(|name| name == OWN_GROUP)
        && let Some(base) = own.parent().filter(|base| is_ready(base) && is_ours(base))
    {
        return Ok(base.to_owned());
    }
    if !is_ours(&own) {
        return Err(CgroupError::NotDelegated);
    }
    prepare(&own).map_err(CgroupError::Prepare)?;
    Ok(own)
}

/// Whether the children of a group can be limited.
fn is_ready(base: &Path) -> bool {
    let controllers = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    CONTROLLERS.iter().all(|wanted| controllers.split_whitespace().any(|has| has == *wanted))
}

/// Whether a subtree was delegated to the keeper: by its owner, or by the attribute that service managers set.
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
    use crate::scratch_dir::ScratchDir;

    const RUN: RunKey = RunKey(1);

    fn limits() -> ProcessLimits {
        ProcessLimits { memory: Some(1 << 20), cpu: Some(1_500), pids: Some(7), ..ProcessLimits::default() }
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let scratch = ScratchDir::new();
        let cgroups = Cgroups::new(Ok(scratch.path().to_owned()));
        let group = cgroups.create(RUN, &limits()).unwrap().unwrap();
        let read = |name: &str| fs::read_to_string(Path::new(&group).join(name)).unwrap();
        assert_eq!(read("memory.max"), "1048576");
        assert_eq!(read("cpu.max"), "150000 100000");
        assert_eq!(read("pids.max"), "7");
        assert!(cgroups.create(RUN, &limits()).is_err_and(|error| matches!(error, SpawnError::Cgroup(_))));
        assert!(cgroups.warnings().is_empty());
        assert_eq!(cgroups.group_of(RUN), Some(group.into()));
        assert_eq!(cgroups.group_of(RunKey(2)), None);
    }

    #[test]
    fn without_groups_there_is_a_warning_and_no_error() {
        let cgroups = Cgroups::none();
        assert_eq!(cgroups.create(RUN, &limits()).unwrap(), None);
        assert_eq!(cgroups.warnings().len(), 1);
        let scratch = ScratchDir::new();
        let files_only = ProcessLimits { files: Some(3), ..ProcessLimits::default() };
        assert_eq!(Cgroups::new(Ok(scratch.path().to_owned())).create(RUN, &files_only).unwrap(), None);
    }

    /// A directory that is not empty cannot be removed, like a group with a process.
    #[test]
    fn group_that_cannot_be_removed_yet_is_removed_later() {
        let scratch = ScratchDir::new();
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
        // A run without a group is handled like the others.
        cgroups.remove(RunKey(2));
        assert!(!place(RUN).exists() && cgroups.left.is_empty());
    }

    #[test]
    fn subtree_is_prepared_by_moving_its_processes() {
        let scratch = ScratchDir::new();
        fs::write(scratch.path().join("cgroup.procs"), "12\n").unwrap();
        prepare(scratch.path()).unwrap();
        assert_eq!(fs::read_to_string(scratch.path().join("keeper/cgroup.procs")).unwrap(), "12");
        assert_eq!(fs::read_to_string(scratch.path().join("cgroup.subtree_control")).unwrap(), "+cpu +memory +pids");
        assert!(!is_ready(scratch.path()));
        fs::write(scratch.path().join("cgroup.subtree_control"), "cpu io memory pids").unwrap();
        assert!(is_ready(scratch.path()));
    }
}
