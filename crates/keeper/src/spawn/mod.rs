//! Starts programs. The usual way is one `posix_spawn`, which does not copy the keeper's memory and fails at once if a
//! file cannot be executed: the keeper itself changes to the program's directory, and back. A program with another user
//! or with limits needs a second stage between the keeper and itself, because those can only be changed from inside a
//! process.

mod error;
mod io_priority;
mod path;
mod stage;

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::collector::COLLECTOR_VERB;
use crate::output_pipe::ProgramEnds;
use crate::protocol::{ProcessLimits, ProgramLaunch, RunKey};
use crate::tree;
use crate::{KeeperError, home, run_mark};

pub(crate) use error::{ExecFailure, OsError, SpawnError};
pub use stage::launch_stage;
pub(crate) use stage::{READY, REPORT_MAX, STAGE_VERB};

/// The keeper's directory between two spawns, and that of programs without one.
const ROOT: &str = "/";
/// The file mode mask of the keeper between two spawns, and of programs without one.
pub(crate) const UMASK: u32 = 0o022;
/// The keeper's own binary, even if its file was replaced in the meantime.
const OWN_BINARY: &str = "/proc/self/exe";

/// What every spawn needs.
#[derive(Debug)]
pub(crate) struct Spawner {
    null: OwnedFd,
    attributes: PosixSpawnAttr,
    /// How many files a program may open.
    file_limit: Rlimit,
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct SpawnedProcess {
    pub(crate) pid: i32,
    /// The clock tick at which it began.
    pub(crate) start: u64,
    /// The pipe on which a second stage reports a failure. It closes when the program begins.
    pub(crate) report: Option<OwnedFd>,
}

impl Spawner {
    /// Prepares what every spawn needs, and changes to the root directory.
    pub(crate) fn new() -> Result<Self, KeeperError> {
        rustix::process::chdir(ROOT).map_err(KeeperError::io("enter the root directory"))?;
        rustix::process::umask(Mode::from_raw_mode(UMASK));
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(KeeperError::io("open /dev/null"))?;
        let attributes = attributes().map_err(KeeperError::io("prepare to start programs"))?;
        Ok(Self { null, attributes, file_limit: home::raise_file_limit() })
    }

    /// Starts a program that writes its output to these pipes.
    pub(crate) fn spawn(
        &self,
        launch: &ProgramLaunch,
        ends: &ProgramEnds,
        cgroup: Option<String>,
    ) -> Result<SpawnedProcess, SpawnError> {
        let environment = environment(launch)?;
        if needs_stage(launch) {
            self.staged(launch, ends, &environment, cgroup)
        } else {
            self.direct(launch, ends, &environment)
        }
    }

    fn direct(
        &self,
        launch: &ProgramLaunch,
        ends: &ProgramEnds,
        environment: &[CString],
    ) -> Result<SpawnedProcess, SpawnError> {
        let arguments = launch.argv.iter().map(|argument| c_string(argument.clone(), "an argument"));
        let arguments = arguments.collect::<Result<Vec<CString>, SpawnError>>()?;
        let (stdout, stderr) = ends.streams();
        let actions = actions(&[(&self.null, 0), (stdout, 1), (stderr, 2)])
            .map_err(SpawnError::system("redirect the standard streams"))?;
        let path = launch.cwd.as_deref().unwrap_or(ROOT);
        let mask = launch.umask.unwrap_or(UMASK);
        enter(path)?;
        if mask != UMASK {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
        let result = path::find(&launch.argv[0], variable(&launch.env, "PATH")).and_then(|file| {
            self.posix_spawn(file.as_str(), &actions, &arguments, environment, Some(launch.run))
                .map_err(|errno| path::exec_error(&file, errno as i32))
        });
        if mask != UMASK {
            rustix::process::umask(Mode::from_raw_mode(UMASK));
        }
        if path != ROOT {
            rustix::process::chdir(ROOT).expect("the root directory can always be entered");
        }
        let pid = result?.as_raw();
        Ok(SpawnedProcess { pid, start: start_of(pid), report: None })
    }

    fn staged(
        &self,
        launch: &ProgramLaunch,
        ends: &ProgramEnds,
        environment: &[CString],
        cgroup: Option<String>,
    ) -> Result<SpawnedProcess, SpawnError> {
        let instructions = stage::StageInstructions::new(launch, cgroup);
        let instructions = instructions.write().map_err(SpawnError::system("write instructions"))?;
        let (report, write_end) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(SpawnError::system("create a pipe"))?;
        // Invariant: none of these files has a number from 0 to 3. Those below 3 are the standard streams, and 3 is the
        // lock, the first file that the keeper opened and keeps open.
        let (stdout, stderr) = ends.streams();
        let actions = actions(&[(&instructions, 0), (stdout, 1), (stderr, 2), (&write_end, stage::REPORT)])
            .map_err(SpawnError::system("redirect the standard streams"))?;
        let arguments = [c"cronhold".to_owned(), CString::new(STAGE_VERB).expect("no zero byte in our own verb")];
        let pid = self
            .posix_spawn(OWN_BINARY, &actions, &arguments, environment, Some(launch.run))
            .map_err(|errno| path::exec_error("the second stage of the keeper", errno as i32))?
            .as_raw();
        Ok(SpawnedProcess { pid, start: start_of(pid), report: Some(report) })
    }

    /// Starts the collector of outputs, and returns its process.
    pub(crate) fn collector(&self, control: &OwnedFd, folder: &OwnedFd) -> Result<i32, SpawnError> {
        let actions =
            actions(&[(control, 0), (folder, 1)]).map_err(SpawnError::system("redirect the standard streams"))?;
        let arguments = [c"cronhold".to_owned(), CString::new(COLLECTOR_VERB).expect("no zero byte in our own verb")];
        let pid = self.posix_spawn(OWN_BINARY, &actions, &arguments, &[], None);
        Ok(pid.map_err(|errno| path::exec_error("the collector of outputs", errno as i32))?.as_raw())
    }

    /// Starts a process with the file limit of programs, which is lower than the keeper's own, and with the mark of its
    /// run.
    fn posix_spawn(
        &self,
        file: &str,
        actions: &PosixSpawnFileActions,
        arguments: &[CString],
        environment: &[CString],
        run: Option<RunKey>,
    ) -> nix::Result<Pid> {
        let Rlimit { current, maximum } = self.file_limit;
        let own = Rlimit { current: maximum, maximum };
        // Neither exceeds the hard limit, so the calls cannot fail.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
        let unmarked = run.map(run_mark::set_mark);
        let spawned = posix_spawn(file, actions, &self.attributes, arguments, environment);
        if let Some(unmarked) = unmarked {
            run_mark::restore(unmarked);
        }
        let _ = setrlimit(Resource::Nofile, own);
        spawned
    }
}

/// Whether a program needs settings that can only be changed from inside a process.
pub(crate) fn needs_stage(launch: &ProgramLaunch) -> bool {
    let has_priority = launch.nice.is_some() || launch.io_priority.is_some();
    let has_input = launch.stdin.is_some() || launch.file.is_some();
    launch.user.is_some() || has_input || has_priority || launch.limits != ProcessLimits::default()
}

/// A session and a process group of its own, no signal blocked and none ignored.
fn attributes() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;
    let session = PosixSpawnFlags::from_bits_retain(i32::from(nix::libc::POSIX_SPAWN_SETSID));
    let signals = PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    attributes.set_flags(session | signals)?;
    Ok(attributes)
}

fn actions(files: &[(&OwnedFd, i32)]) -> nix::Result<PosixSpawnFileActions> {
    let mut actions = PosixSpawnFileActions::init()?;
    for (file, number) in files {
        actions.add_dup2(file.as_raw_fd(), *number)?;
    }
    Ok(actions)
}

/// Changes to the working directory of a program.
fn enter(path: &str) -> Result<(), SpawnError> {
    if path == ROOT {
        return Ok(());
    }
    rustix::process::chdir(path).map_err(|error| SpawnError::Directory { path: path.to_owned(), source: error.into() })
}

/// The beginning of a text, at most `most` bytes of it.
pub(crate) fn truncated(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn start_of(pid: i32) -> u64 {
    // It exists: only the keeper can wait for it, and has not.
    tree::read_process(pid).map_or(0, |process| process.start)
}

/// The environment of a program. It always has the id of the run, by which descendants of the program are recognized.
fn environment(launch: &ProgramLaunch) -> Result<Vec<CString>, SpawnError> {
    let mut variables = Vec::with_capacity(launch.env.len() + 1);
    let mut has_run_id = false;
    for (name, value) in &launch.env {
        if name.is_empty() || name.contains('=') {
            return Err(SpawnError::VariableName(name.clone()));
        }
        if name == tree::RUN_ID_VARIABLE {
            if has_run_id || tree::parse_run_id(value) != Some(launch.run) {
                continue;
            }
            has_run_id = true;
        }
        variables.push(c_string(format!("{name}={value}"), "a variable")?);
    }
    if !has_run_id {
        variables.push(c_string(format!("{}={}", tree::RUN_ID_VARIABLE, launch.run), "a variable")?);
    }
    Ok(variables)
}

fn variable<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

fn c_string(text: String, what: &'static str) -> Result<CString, SpawnError> {
    CString::new(text).map_err(|_| SpawnError::ZeroByte(what))
}
