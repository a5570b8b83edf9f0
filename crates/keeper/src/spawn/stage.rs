//! The second stage between the keeper and a program: our own binary, started anew, which joins the control group, takes
//! on limits, groups and user, and then becomes the program. What it is to do stands in its standard input. Through a
//! pipe that closes by itself when the program begins it tells that it is ready to become the program, and in words what
//! goes wrong. A pipe that closes without either is that of a stage that was killed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::unistd::{Gid, Uid, User};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use super::{ROOT, UMASK, beginning, enter, path, variable, why};
use crate::fail;
use crate::protocol::{Launch, Limits};

/// The verb of our binary that means this stage.
pub(crate) const STAGE_VERB: &str = "keeper-launch";
/// The number under which the stage finds its pipe.
pub(super) const REPORT: i32 = 3;
/// How much the stage tells at most; a pipe takes that at once.
pub(crate) const REPORT_MAX: usize = 4096;
/// What the stage tells when all that is left to do is to become the program. No words begin with it.
pub(crate) const READY: u8 = 0;
/// How the stage ends when it could not become the program; nobody is told this number.
const FAILED: u8 = 127;
/// Seconds of processor time between the signal that asks and the one that ends.
const CPU_TIME_GRACE: u64 = 5;

/// What the stage is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Instructions {
    argv: Vec<String>,
    path: Option<String>,
    cwd: String,
    umask: u32,
    user: Option<String>,
    limits: Limits,
    /// The control group to join; without one the limit of memory is one of address space.
    cgroup: Option<String>,
    /// Where a test lets it fail.
    #[serde(default)]
    fail_at: Option<String>,
}

impl Instructions {
    pub(super) fn new(launch: &Launch, cgroup: Option<String>) -> Self {
        Self {
            argv: launch.argv.clone(),
            path: variable(&launch.env, "PATH").map(str::to_owned),
            cwd: launch.cwd.clone().unwrap_or_else(|| ROOT.to_owned()),
            umask: launch.umask.unwrap_or(UMASK),
            user: launch.user.clone(),
            limits: launch.limits,
            cgroup,
            fail_at: fail::for_stage(),
        }
    }

    /// A file without a name that holds them.
    pub(super) fn write(&self) -> std::io::Result<OwnedFd> {
        let mut file = File::from(rustix::fs::memfd_create("instructions", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(self)?)?;
        file.rewind()?;
        Ok(file.into())
    }
}

/// The second stage, as `cronhold keeper-launch`. It comes back only when it could not become the program.
pub fn launch_stage() -> ExitCode {
    let mut report = take_report();
    let why = match prepare() {
        Ok(instructions) => {
            fail::point("stage-prepared");
            // Whoever cannot be told hears nothing of what comes after it, either.
            let _ = report.as_mut().map(|report| report.write_all(&[READY]));
            become_program(&instructions)
        }
        Err(why) => why,
    };
    if let Ok(mut report) = report {
        // Nobody to tell means that the keeper is gone, and a new one ends what is left of it.
        let _ = report.write_all(beginning(&why, REPORT_MAX).as_bytes());
    }
    ExitCode::from(FAILED)
}

/// The pipe, opened once more so that it closes when the program begins.
fn take_report() -> std::io::Result<File> {
    let file = rustix::fs::open(format!("/proc/self/fd/{REPORT}"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    nix::unistd::close(REPORT)?;
    Ok(File::from(file))
}

fn prepare() -> Result<Instructions, String> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).map_err(|error| why("read instructions", error))?;
    let instructions: Instructions = serde_json::from_slice(&text)
        .map_err(|_| "this is a stage of the keeper, which starts it by itself".to_owned())?;
    if let Some(point) = &instructions.fail_at {
        fail::arm(point);
    }
    fail::point("stage-told");
    let null = File::open("/dev/null").map_err(|error| why("open /dev/null", error))?;
    rustix::stdio::dup2_stdin(null).map_err(|error| why("replace the standard input", error))?;
    if let Some(group) = &instructions.cgroup {
        std::fs::write(format!("{group}/cgroup.procs"), "0").map_err(|error| why("join the control group", error))?;
    }
    limit(&instructions.limits, instructions.cgroup.is_some())?;
    if let Some(user) = &instructions.user {
        become_user(user)?;
    }
    rustix::process::umask(Mode::from_raw_mode(instructions.umask));
    enter(&instructions.cwd)?;
    Ok(instructions)
}

/// Why it could not become the program.
fn become_program(instructions: &Instructions) -> String {
    let Some((name, arguments)) = instructions.argv.split_first() else { return "there is no program".to_owned() };
    let file = match path::find(name, instructions.path.as_deref()) {
        Ok(file) => file,
        Err(why) => return why,
    };
    // The standard library gives the program back the signals that it took from us.
    let error = Command::new(&file).arg0(name).args(arguments).exec();
    error.raw_os_error().map_or_else(|| error.to_string(), |errno| path::why_not(&file, errno))
}

fn limit(limits: &Limits, has_cgroup: bool) -> Result<(), String> {
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
        rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(hard) }).map_err(
            |error| {
                let most = allowed.map_or_else(String::new, |most| format!("; at most {most} is allowed here"));
                format!("{}{most}", why(&format!("limit {what} to {value}"), error))
            },
        )?;
    }
    Ok(())
}

/// Takes on a user with all of its groups.
fn become_user(user: &str) -> Result<(), String> {
    let number = user.parse::<u32>().ok().map(Uid::from_raw);
    let known = match number {
        Some(uid) => User::from_uid(uid),
        None => User::from_name(user),
    };
    let known = known.map_err(|error| why(&format!("look up the user {user}"), error))?;
    let (uid, gid) = match (&known, number) {
        (Some(known), _) => (known.uid, known.gid),
        (None, Some(uid)) => (uid, Gid::from_raw(uid.as_raw())),
        (None, None) => return Err(format!("there is no user {user}")),
    };
    let own = Uid::effective();
    if uid == own {
        return Ok(());
    }
    if !own.is_root() {
        return Err(format!("cannot start programs as {user}: the keeper runs as user {own} and not as root"));
    }
    let what = format!("become the user {user}");
    match known.as_ref().and_then(|known| std::ffi::CString::new(known.name.as_str()).ok()) {
        Some(name) => nix::unistd::initgroups(&name, gid),
        None => nix::unistd::setgroups(&[]),
    }
    .and_then(|()| nix::unistd::setgid(gid))
    .and_then(|()| nix::unistd::setuid(uid))
    .map_err(|error| why(&what, error))
}
