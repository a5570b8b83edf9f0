//! A short stage between this process and an executable. It makes the executable die with this process, which only the
//! process itself can request.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The exit code of a stage that cannot start its command, as of a shell.
const NOT_STARTED: u8 = 127;

/// Replaces this process by a command. `words` are the id of the process that it dies with, the executable and its
/// arguments. Returns only if that fails.
pub fn launch_worker_stage(words: &[OsString]) -> ExitCode {
    let error = match words {
        [parent, command, arguments @ ..] => launch(parent, command, arguments),
        _ => io::Error::from(io::ErrorKind::InvalidInput),
    };
    let command = words.get(1).map(|command| command.to_string_lossy()).unwrap_or_default();
    // Without a reader of standard error, the exit code is left.
    let _ = writeln!(io::stderr(), "cannot start `{command}`: {error}");
    ExitCode::from(NOT_STARTED)
}

fn launch(parent: &OsString, command: &OsString, arguments: &[OsString]) -> io::Error {
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The parent may have died before the request took effect.
    if parent.is_none() || getppid() != parent {
        return io::Error::other("the worker process has ended");
    }
    Command::new(command).args(arguments).exec()
}
