//! The messages between daemon and keeper. Their versions may differ, because a keeper outlives the daemon that is
//! replaced: the first message of each side names the protocols it supports, and both use the newest common one. Within
//! a protocol, fields are only added, with a default, and unknown fields are ignored.
//!
//! A message is its length in four bytes, little-endian, and then JSON. Times are microseconds since the machine
//! started, suspended time included, unless a field says otherwise.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fail;

/// The newest protocol that this version supports.
pub const PROTOCOL: u32 = 2;
/// The first protocol with [`ToKeeper::Ping`] and [`FromKeeper::Pong`].
pub(crate) const PROTOCOL_WITH_PINGS: u32 = 2;
/// The oldest protocol that this version supports.
pub const PROTOCOL_OLDEST: u32 = 1;
/// The longest message in bytes. A connection with a longer one is closed.
pub const MESSAGE_MAX: usize = 16 * 1024 * 1024;
/// Programs in one [`FromKeeper::Listed`].
pub const LISTED_MAX: usize = 1_000;

/// A run's id in the keeper: 128 bits that are used only once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub u128);

/// A message of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToKeeper {
    /// The first message.
    Hello {
        /// The newest protocol that the sender understands.
        protocol: u32,
        /// The oldest protocol that the sender understands.
        oldest: u32,
        /// The sender's version, for messages.
        version: String,
    },
    /// Start a program. The keeper refuses a run that it knows.
    Launch(Box<ProgramLaunch>),
    /// Request the end of a program: send the signal to its group now, and SIGKILL to everything that descends from it
    /// after the grace period.
    Stop {
        run: RunKey,
        /// The number of the first signal.
        signal: i32,
        /// Microseconds until SIGKILL.
        grace: u64,
    },
    /// Send a signal to a program's group.
    Signal {
        run: RunKey,
        /// The number of the signal.
        signal: i32,
    },
    /// Extend a lease: the program and everything that descends from it are dead by then, unless the lease is extended
    /// again. A lease never becomes shorter, and a lease that has ended cannot be extended.
    Lease {
        run: RunKey,
        /// The time by which the program is dead.
        kill_at: u64,
    },
    /// The daemon has stored the results of these runs, so the keeper need not remember them.
    Forget { runs: Vec<RunKey> },
    /// End as soon as no program runs, because a keeper of another version is to take over.
    Retire,
    /// Request a [`FromKeeper::Pong`]. Since protocol 2.
    Ping,
}

/// A message of the keeper. After its hello it lists all programs that it knows, and then reports what happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromKeeper {
    /// The answer to the hello. If the two have no protocol in common, the keeper closes the connection after it.
    Hello {
        /// The newest protocol that the sender understands.
        protocol: u32,
        /// The oldest protocol that the sender understands.
        oldest: u32,
        /// The sender's version, for messages.
        version: String,
        /// The keeper's process.
        pid: u32,
        /// What the keeper cannot do on this machine, as messages, such as limits by control groups.
        warnings: Vec<String>,
    },
    /// A part of the list of programs.
    Listed {
        /// The programs of this part.
        programs: Vec<ListedProgram>,
        /// Whether this is the last part.
        is_last: bool,
    },
    /// A program has started.
    Started {
        run: RunKey,
        /// The process, which is also the process group and the session.
        pid: u32,
    },
    /// A program was not started, and will not be.
    Refused {
        run: RunKey,
        /// The reason, as a message.
        why: String,
    },
    /// A program has ended. The keeper remembers it until the daemon sends [`ToKeeper::Forget`].
    Ended {
        run: RunKey,
        /// How it ended.
        #[serde(flatten)]
        end: ProgramEnd,
    },
    /// The answer to a ping. Since protocol 2.
    Pong {
        /// Why the keeper would refuse every launch now, as a message; `None` if it would not.
        #[serde(default)]
        problem: Option<String>,
    },
}

/// How a program is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLaunch {
    pub run: RunKey,
    /// The program and its arguments; never empty. A program without a slash is searched in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// The working directory; the root directory if absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The file mode mask; 022 if absent.
    #[serde(default)]
    pub umask: Option<u32>,
    /// The user, by name or number; the keeper's user if absent.
    #[serde(default)]
    pub user: Option<String>,
    /// What it reads from its standard input; nothing if absent.
    #[serde(default)]
    pub stdin: Option<StdinInput>,
    /// A file that it can read; none if absent.
    #[serde(default)]
    pub file: Option<ProgramFile>,
    /// Its niceness; the keeper's if absent.
    #[serde(default)]
    pub nice: Option<i8>,
    /// How urgently the disk serves it, as the kernel writes it; as the keeper if absent.
    #[serde(default)]
    pub io_priority: Option<u16>,
    /// Whether its standard error has a pipe of its own, so that the streams can be told apart.
    #[serde(default)]
    pub separate_stderr: bool,
    /// Resource limits; none if absent.
    #[serde(default)]
    pub limits: ProcessLimits,
    /// How much of its output is kept.
    #[serde(default)]
    pub output: OutputLimits,
    /// The keeper refuses the launch after this time.
    pub launch_by: u64,
    /// When the lease ends, if there is one: the program is dead by then. The keeper refuses the launch if the signal
    /// before that is due already.
    #[serde(default)]
    pub kill_at: Option<u64>,
    /// The number of the signal that announces the end of the lease.
    pub stop_signal: i32,
    /// Microseconds between that signal and SIGKILL. The daemon makes this a small part of the lease.
    pub stop_grace: u64,
}

/// A file that a program can read as long as it runs. It has no name in any directory: the program finds its path in a
/// variable, and nothing has to be removed after the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    /// The variable that contains the path.
    pub variable: String,
    /// The content.
    pub text: String,
}

/// What a program reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinInput {
    /// This text.
    Text(String),
    /// A file. The program's user opens it, in the program's directory.
    File(String),
}

/// What a program and its descendants may use. An absent value means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Bytes of memory.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    #[serde(default)]
    pub cpu: Option<u64>,
    /// Processes and threads.
    #[serde(default)]
    pub pids: Option<u64>,
    /// Open files of each process.
    #[serde(default)]
    pub files: Option<u64>,
    /// Seconds of processor time of each process.
    #[serde(default)]
    pub cpu_time: Option<u64>,
    /// Bytes of a core dump; 0 for none.
    #[serde(default)]
    pub core: Option<u64>,
}

/// How much of an output is kept. What is between head and tail is punched out of the file, so that offsets stay as
/// they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimits {
    /// Bytes at the beginning.
    pub head: u64,
    /// Bytes at the end, at least.
    pub tail: u64,
}

/// A program that the keeper knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedProgram {
    pub run: RunKey,
    pub stage: ProgramStage,
}

/// The stage of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStage {
    Running {
        pid: u32,
    },
    /// It has ended.
    Ended(ProgramEnd),
    /// It was lost with an earlier keeper. It is verified to be gone, and its exit status is unknown.
    Lost,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// How the first process ended.
    pub exit: ProcessExit,
    /// The length of the output in bytes.
    pub output: u64,
    /// Whether the keeper ended it because its lease ended.
    #[serde(default)]
    pub by_lease: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// The oldest and the newest protocol that this process supports.
pub(crate) fn spoken() -> (u32, u32) {
    if fail::plays(fail::NEXT_PROTOCOL) { (PROTOCOL + 1, PROTOCOL + 1) } else { (PROTOCOL_OLDEST, PROTOCOL) }
}

/// Whether both sides have a protocol in common, given the oldest and the newest of the other side.
pub(crate) fn is_understood(oldest: u32, newest: u32) -> bool {
    let own = spoken();
    oldest <= own.1 && newest >= own.0
}

impl OutputLimits {
    /// 1 MiB at the beginning, 9 MiB at the end.
    pub const DEFAULT: Self = Self { head: 1 << 20, tail: 9 << 20 };
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl RunKey {
    /// Parses 32 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RunKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a run is 32 hex digits"))
    }
}
