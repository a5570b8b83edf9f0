//! The second stage between the keeper and a program: the keeper's own binary, which joins the control group, sets
//! limits, groups and user, and then becomes the program. It reads its instructions from its standard input. On a pipe
//! that closes by itself when the program begins, it reports that it is ready to become the program, or an error as
//! text. If the pipe closes without either, the stage was killed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::unistd::{Gid, Uid, User};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use super::{ROOT, SpawnError, UMASK, enter, io_priority, path, truncated, variable};
use crate::fail;
use crate::protocol::{ProcessLimits, ProgramFile, ProgramLaunch, StdinInput};

/// The command of the binary that runs this stage.
pub(crate) const STAGE_VERB: &str = "keeper-launch";
/// The number of the pipe's file.
pub(super) const REPORT: i32 = 3;
/// The longest report; a pipe takes that in one write.
pub(crate) const REPORT_MAX: usize = 4096;
/// The report that the stage is ready to become the program. No text begins with it.
pub(crate) const READY: u8 = 0;
/// The file of a program has this number or a larger one, so that it does not get in the way of redirections in scripts.
const FILE_FROM: i32 = 30;
/// The exit code of a stage that could not become the program. It is not reported.
const FAILED: u8 = 127;
/// Seconds of processor time between SIGXCPU and SIGKILL.
const CPU_TIME_GRACE: u64 = 5;

/// Instructions for the stage.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StageInstructions {
    argv: Vec<String>,
    path: Option<String>,
    cwd: String,
    umask: u32,
    user: Option<String>,
    #[serde(default)]
    stdin: Option<StdinInput>,
    #[serde(default)]
    file: Option<ProgramFile>,
    #[serde(default)]
    nice: Option<i8>,
    #[serde(default)]
    io_priority: Option<u16>,
    limits: ProcessLimits,
    /// The control group to join. Without one the memory limit applies to the address space.
    cgroup: Option<String>,
    /// The point at which a test kills it.
    #[serde(default)]
    fail_at: Option<String>,
}

impl StageInstructions {
    pub(super) fn new(launch: &ProgramLaunch, cgroup: Option<String>) -> Self {
        Self {
            argv: launch.argv.clone(),
            path: variable(&launch.env, "PATH").map(str::to_owned),
            cwd: launch.cwd.clone().unwrap_or_else(|| ROOT.to_owned()),
            umask: launch.umask.unwrap_or(UMASK),
            user: launch.user.clone(),
            stdin: launch.stdin.clone(),
            file: launch.file.clone(),
            nice: launch.nice,
            io_priority: launch.io_priority,
            limits: launch.limits,
            cgroup,
            fail_at: fail::for_stage(),
        }
    }

    /// Writes them into a file without a name.
    pub(super) fn write(&self) -> std::io::Result<OwnedFd> {
        text_file(&serde_json::to_vec(self)?)
    }
}

/// The second stage: `cronhold keeper-launch`. Returns only if it could not become the program.
pub fn launch_stage() -> ExitCode {
    let mut report = take_report();
    let error = match prepare() {
        Ok(instructions) => {
            fail::point("stage-prepared");
            // If the pipe cannot be written, the keeper will not see an error on it either.
            let _ = report.as_mut().map(|report| report.write_all(&[READY]));
            become_program(&instructions)
        }
        Err(error) => error,
    };
    if let Ok(mut report) = report {
        // A failure means that the keeper is gone, and a new keeper ends what it left.
        let _ = report.write_all(truncated(&error.to_string(), REPORT_MAX).as_bytes());
    }
    ExitCode::from(FAILED)
}

/// Opens the pipe once more, so that it closes when the program begins.
fn take_report() -> std::io::Result<File> {
    let file = rustix::fs::open(format!("/proc/self/fd/{REPORT}"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    nix::unistd::close(REPORT)?;
    Ok(File::from(file))
}

fn prepare() -> Result<StageInstructions, SpawnError> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).map_err(SpawnError::system("read instructions"))?;
    let instructions: StageInstructions = serde_json::from_slice(&text).map_err(SpawnError::NotFromKeeper)?;
    if let Some(point) = &instructions.fail_at {
        fail::arm(point);
    }
    fail::point("stage-told");
    let null = File::open("/dev/null").map_err(SpawnError::system("open /dev/null"))?;
    rustix::stdio::dup2_stdin(null).map_err(SpawnError::system("replace the standard input"))?;
    if let Some(group) = &instructions.cgroup {
        std::fs::write(format!("{group}/cgroup.procs"), "0").map_err(SpawnError::system("join the control group"))?;
    }
    limit(&instructions.limits, instructions.cgroup.is_some())?;
    set_priorities(&instructions)?;
    if let Some(user) = &instructions.user {
        become_user(user)?;
    }
    rustix::process::umask(Mode::from_raw_mode(instructions.umask));
    enter(&instructions.cwd)?;
    if let Some(input) = &instructions.stdin {
        set_stdin(input)?;
    }
    Ok(instructions)
}

/// Becomes the program. Returns only if that failed.
fn become_program(instructions: &StageInstructions) -> SpawnError {
    let Some((name, arguments)) = instructions.argv.split_first() else { return SpawnError::EmptyName };
    let file = match path::find(name, instructions.path.as_deref()) {
        Ok(file) => file,
        Err(error) => return error,
    };
    let mut command = Command::new(&file);
    if let Some(given) = &instructions.file {
        match provide_file(&given.text) {
            Ok(path) => drop(command.env(&given.variable, path)),
            Err(source) => return SpawnError::System { what: "write the file of the program", source: source.into() },
        }
    }
    // The standard library restores the signals that it changed in this process.
    let error = command.arg0(name).args(arguments).exec();
    match error.raw_os_error() {
        Some(errno) => path::exec_error(&file, errno),
        None => SpawnError::System { what: "execute the program", source: error.into() },
    }
}

/// Sets priorities. Only root may make a program more urgent than the keeper, so this precedes the change of user.
fn set_priorities(instructions: &StageInstructions) -> Result<(), SpawnError> {
    if let Some(nice) = instructions.nice {
        rustix::process::setpriority_process(None, nice.into()).map_err(|error| SpawnError::Priority {
            what: "nice",
            value: nice.into(),
            source: error.into(),
        })?;
    }
    if let Some(priority) = instructions.io_priority {
        io_priority::set(priority).map_err(SpawnError::system("set the priority for the disk (ionice)"))?;
    }
    Ok(())
}

/// Lets the program read a text or a file.
fn set_stdin(input: &StdinInput) -> Result<(), SpawnError> {
    let file = match input {
        StdinInput::Text(text) => {
            text_file(text.as_bytes()).map(File::from).map_err(SpawnError::system("write the standard input"))?
        }
        StdinInput::File(path) => {
            open_input(path).map_err(|source| SpawnError::Stdin { path: path.clone(), source: source.into() })?
        }
    };
    rustix::stdio::dup2_stdin(file).map_err(SpawnError::system("replace the standard input"))
}

/// Creates a file without a name that the program inherits, and returns its path. Only the program's user can open it, and
/// it is gone when the program, which keeps this process, ends.
fn provide_file(text: &str) -> std::io::Result<String> {
    let file = text_file(text.as_bytes())?;
    rustix::fs::fchmod(&file, Mode::RUSR)?;
    // The program may have a limit that does not allow such a number.
    let given = fcntl_dupfd_cloexec(&file, FILE_FROM).or_else(|_| fcntl_dupfd_cloexec(&file, REPORT))?;
    fcntl_setfd(&given, FdFlags::empty())?;
    let number = given.into_raw_fd();
    Ok(format!("/proc/{}/fd/{number}", std::process::id()))
}

/// Opens a regular file. A pipe or a device could block the start.
fn open_input(path: &str) -> std::io::Result<File> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// A file without a name that has this content.
fn text_file(content: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

fn limit(limits: &ProcessLimits, has_cgroup: bool) -> Result<(), SpawnError> {
    let memory = limits.memory.filter(|_| !has_cgroup);
    let wanted = [
        (Resource::As, memory, 0, "memory"),
        (Resource::Nofile, limits.files, 0, "open files"),
        (Resource::Cpu, limits.cpu_time, CPU_TIME_GRACE, "processor time"),
        (Resource::Core, limits.core, 0, "core dumps"),
    ];
    for (resource, value, grace, what) in wanted {
        let Some(value) = value else { continue };
        let allowed = rustix::process::getrlimit(resource).maximum;
        let hard = allowed.map_or(value.saturating_add(grace), |most| most.min(value.saturating_add(grace)).max(value));
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(hard) })
            .map_err(|error| SpawnError::Limit { what, value, allowed, source: error.into() })?;
    }
    Ok(())
}

/// Becomes a user with all of its groups.
fn become_user(user: &str) -> Result<(), SpawnError> {
    let number = user.parse::<u32>().ok().map(Uid::from_raw);
    let known = match number {
        Some(uid) => User::from_uid(uid),
        None => User::from_name(user),
    };
    let known = known.map_err(|error| SpawnError::LookUpUser { user: user.to_owned(), source: error.into() })?;
    let (uid, gid) = match (&known, number) {
        (Some(known), _) => (known.uid, known.gid),
        (None, Some(uid)) => (uid, Gid::from_raw(uid.as_raw())),
        (None, None) => return Err(SpawnError::UnknownUser(user.to_owned())),
    };
    let own = Uid::effective();
    if uid == own {
        return Ok(());
    }
    if !own.is_root() {
        return Err(SpawnError::NotRoot { user: user.to_owned(), own: own.as_raw() });
    }
    match known.as_ref().and_then(|known| std::ffi::CString::new(known.name.as_str()).ok()) {
        Some(name) => nix::unistd::initgroups(&name, gid),
        None => nix::unistd::setgroups(&[]),
    }
    .and_then(|()| nix::unistd::setgid(gid))
    .and_then(|()| nix::unistd::setuid(uid))
    .map_err(|error| SpawnError::BecomeUser { user: user.to_owned(), source: error.into() })
}
