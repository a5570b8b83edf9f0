//! Why a program could not be started. A person reads these messages in the record of a run.

use std::fmt;
use std::io;

use nix::errno::Errno;

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("cannot create the output file: {0}")]
    Output(#[source] OsError),
    #[error("cannot create the output pipe: {0}")]
    OutputPipe(#[source] OsError),
    #[error("cannot create a control group with its limits: {0}")]
    Cgroup(#[source] OsError),
    #[error("the name of the program is empty")]
    EmptyName,
    #[error("cannot find the program `{program}` in PATH ({path})")]
    NotFound { program: String, path: String },
    #[error("cannot execute {0}: its permissions do not allow it")]
    NotExecutable(String),
    #[error("cannot execute {file}: {reason}")]
    Exec { file: String, reason: ExecFailure },
    #[error("cannot set the variable `{0}`: the name is empty or contains `=`")]
    VariableName(String),
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
    #[error("cannot enter the directory {path}: {source}")]
    Directory { path: String, source: OsError },
    #[error("cannot limit {what} to {value}: {source}{}", at_most(*allowed))]
    Limit { what: &'static str, value: u64, allowed: Option<u64>, source: OsError },
    #[error("cannot set `{what}` to {value}: {source}{}", needs_root(*value))]
    Priority { what: &'static str, value: i32, source: OsError },
    #[error("cannot open the standard input {path}: {source}")]
    Stdin { path: String, source: OsError },
    #[error("there is no user {0}")]
    UnknownUser(String),
    #[error("cannot start programs as {user}: the keeper runs as user {own} and not as root")]
    NotRoot { user: String, own: u32 },
    #[error("cannot look up the user {user}: {source}")]
    LookUpUser { user: String, source: OsError },
    #[error("cannot become the user {user}: {source}")]
    BecomeUser { user: String, source: OsError },
    /// Any other call of the system.
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: OsError },
    /// The second stage was not started by a keeper.
    #[error("this command is a part of the keeper, which starts it itself")]
    NotFromKeeper(#[source] serde_json::Error),
}

/// Why a file could not be executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecFailure {
    #[error("it does not exist")]
    Missing,
    #[error("its interpreter {0} does not exist")]
    MissingInterpreter(String),
    #[error("the loader or a library that it needs does not exist")]
    MissingLoader,
    #[error("it is a directory")]
    Directory,
    #[error("it may not be executed (permission denied)")]
    Denied,
    #[error("its interpreter {0} may not be executed")]
    DeniedInterpreter(String),
    #[error("it is neither a program of this machine nor a script that begins with #!")]
    Format,
    #[error("its arguments and environment are too long")]
    TooLong,
    #[error("the machine cannot run another process ({0})")]
    NoRoom(OsError),
    #[error("{0}")]
    Other(OsError),
}

/// An error of the system, with the system's description and without its number.
#[derive(Debug)]
pub(crate) struct OsError(io::Error);

impl SpawnError {
    /// An error of a system call, with the action that failed.
    pub(crate) fn system<E: Into<OsError>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }
}

impl<E: Into<io::Error>> From<E> for OsError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl OsError {
    pub(crate) fn from_number(errno: i32) -> Self {
        Self(io::Error::from_raw_os_error(errno))
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.raw_os_error() {
            Some(number) => f.write_str(&Errno::from_raw(number).desc().to_lowercase()),
            None => self.0.fmt(f),
        }
    }
}

impl std::error::Error for OsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn needs_root(nice: i32) -> &'static str {
    if nice < 0 { "; only root can make a program more urgent" } else { "" }
}

fn at_most(allowed: Option<u64>) -> String {
    allowed.map_or_else(String::new, |most| format!("; at most {most} is allowed here"))
}
