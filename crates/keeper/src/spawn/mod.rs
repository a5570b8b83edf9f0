//! Starting programs. The usual way is one `posix_spawn`, which costs no copy of our memory and tells at once when a
//! file cannot be executed: we ourselves go to where the program starts, and come back. A program with another user or
//! with limits takes a second stage between us and it, because those can only be changed from within.

mod path;
mod stage;

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::KeeperError;
use crate::protocol::{Launch, Limits};
use crate::tree;

pub use stage::launch_stage;
pub(crate) use stage::{READY, REPORT_MAX, STAGE_VERB};

/// Where we are between two spawns, and where programs start that name no place.
const ROOT: &str = "/";
/// The file mode mask that we have between two spawns, and that programs have that name none.
pub(crate) const UMASK: u32 = 0o022;
/// Our own binary, also when its file was replaced meanwhile.
const OWN_BINARY: &str = "/proc/self/exe";

/// What every spawn needs.
#[derive(Debug)]
pub(crate) struct Spawner {
    null: OwnedFd,
    attributes: PosixSpawnAttr,
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: i32,
    /// The tick at which it began.
    pub(crate) start: u64,
    /// Where a second stage tells why it could not go on; it closes when the program begins.
    pub(crate) report: Option<OwnedFd>,
}

impl Spawner {
    /// Prepares what every spawn needs, and goes to where we are between them.
    pub(crate) fn new() -> Result<Self, KeeperError> {
        rustix::process::chdir(ROOT).map_err(KeeperError::io("go to the root directory"))?;
        rustix::process::umask(Mode::from_raw_mode(UMASK));
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(KeeperError::io("open /dev/null"))?;
        let attributes = attributes().map_err(KeeperError::io("prepare to start programs"))?;
        Ok(Self { null, attributes })
    }

    /// Starts a program whose output goes to this file, or says in words why not.
    pub(crate) fn spawn(&self, launch: &Launch, output: &OwnedFd, cgroup: Option<String>) -> Result<Spawned, String> {
        let environment = environment(launch)?;
        if needs_stage(launch) {
            self.staged(launch, output, &environment, cgroup)
        } else {
            self.direct(launch, output, &environment)
        }
    }

    fn direct(&self, launch: &Launch, output: &OwnedFd, environment: &[CString]) -> Result<Spawned, String> {
        let arguments = texts(&launch.argv, "an argument")?;
        let actions = actions(&[(&self.null, 0), (output, 1), (output, 2)]).map_err(|error| error.to_string())?;
        let place = launch.cwd.as_deref().unwrap_or(ROOT);
        let mask = launch.umask.unwrap_or(UMASK);
        enter(place)?;
        if mask != UMASK {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
        let result = path::find(&launch.argv[0], variable(&launch.env, "PATH")).and_then(|file| {
            posix_spawn(file.as_str(), &actions, &self.attributes, &arguments, environment)
                .map_err(|errno| path::why_not(&file, errno as i32))
        });
        if mask != UMASK {
            rustix::process::umask(Mode::from_raw_mode(UMASK));
        }
        if place != ROOT {
            rustix::process::chdir(ROOT).expect("the root directory can always be entered");
        }
        let pid = result?.as_raw();
        Ok(Spawned { pid, start: start_of(pid), report: None })
    }

    fn staged(
        &self,
        launch: &Launch,
        output: &OwnedFd,
        environment: &[CString],
        cgroup: Option<String>,
    ) -> Result<Spawned, String> {
        let told =
            stage::Instructions::new(launch, cgroup).write().map_err(|error| why("write instructions", error))?;
        let (report, write_end) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|error| why("make a pipe", error))?;
        // Invariant: none of these is 0 to 3. Those below 3 are standard streams, and the first file that we opened
        // for life has 3, if it was not taken before us.
        let actions = actions(&[(&told, 0), (output, 1), (output, 2), (&write_end, stage::REPORT)])
            .map_err(|error| error.to_string())?;
        let arguments = [c"cronhold".to_owned(), CString::new(STAGE_VERB).expect("no zero byte in our own verb")];
        let pid = posix_spawn(OWN_BINARY, &actions, &self.attributes, &arguments, environment)
            .map_err(|errno| path::why_not("the second stage of the keeper", errno as i32))?
            .as_raw();
        Ok(Spawned { pid, start: start_of(pid), report: Some(report) })
    }
}

/// Whether a program needs what can only be changed from within.
pub(crate) fn needs_stage(launch: &Launch) -> bool {
    launch.user.is_some() || launch.limits != Limits::default()
}

/// A session and group of its own, no signal blocked and none ignored.
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

/// Goes to where a program starts.
fn enter(place: &str) -> Result<(), String> {
    if place == ROOT {
        return Ok(());
    }
    rustix::process::chdir(place).map_err(|error| why(&format!("enter the directory {place}"), error))
}

fn why<E: Into<std::io::Error>>(what: &str, error: E) -> String {
    let error = error.into();
    format!("cannot {what}: {}", error.raw_os_error().map_or_else(|| error.to_string(), path::words))
}

/// The beginning of a text, at most so many bytes of it.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn start_of(pid: i32) -> u64 {
    // It cannot be gone: nobody but us waits for it, and we have not.
    tree::look(pid).map_or(0, |process| process.start)
}

/// The environment of a program. It always carries the mark of its run, by which all that descends from it is found.
fn environment(launch: &Launch) -> Result<Vec<CString>, String> {
    let mut variables = Vec::with_capacity(launch.env.len() + 1);
    let mut is_marked = false;
    for (name, value) in &launch.env {
        if name.is_empty() || name.contains('=') {
            return Err(format!("cannot set the variable `{name}`: the name is empty or holds `=`"));
        }
        if name == tree::MARK {
            if is_marked || tree::parse_mark(value) != Some(launch.run) {
                continue;
            }
            is_marked = true;
        }
        variables.push(text(format!("{name}={value}"), "a variable")?);
    }
    if !is_marked {
        variables.push(text(format!("{}={}", tree::MARK, launch.run), "a variable")?);
    }
    Ok(variables)
}

fn variable<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

fn texts(texts: &[String], what: &str) -> Result<Vec<CString>, String> {
    texts.iter().map(|argument| text(argument.clone(), what)).collect()
}

fn text(text: String, what: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{what} holds a zero byte, which no program can be given"))
}
