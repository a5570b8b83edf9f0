//! What the daemon and the keeper say to each other. Both may be of different versions, because a keeper lives on when
//! the daemon is replaced: the first message of each side names the protocols it understands, and the newest that both
//! know is spoken. Fields are only ever added, with a default, and unknown fields are ignored.
//!
//! A message is its length in four bytes, little-endian, and then JSON. Times are microseconds of the clock that counts
//! from the start of the machine, suspended time included, unless a field says otherwise.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fail;

/// The newest protocol that this version speaks.
pub const PROTOCOL: u32 = 1;
/// The oldest protocol that this version speaks.
pub const PROTOCOL_OLDEST: u32 = 1;
/// No message is longer: whoever sends a longer one is not one of us.
pub const MESSAGE_MAX: usize = 16 * 1024 * 1024;
/// Programs in one part of a list.
pub const LISTED_MAX: usize = 1_000;

/// A run, as the keeper knows it: 128 bits that come only once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub u128);

/// What the daemon says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToKeeper {
    /// The first message.
    Hello {
        /// The newest protocol that it understands.
        protocol: u32,
        /// The oldest protocol that it understands.
        oldest: u32,
        /// Its version, for people.
        version: String,
    },
    /// Start a program. A run that is known already is refused.
    Launch(Box<Launch>),
    /// Ask a program to end: the signal to its group now, SIGKILL to all that descends from it after the grace.
    Stop {
        /// Which.
        run: RunKey,
        /// The number of the first signal.
        signal: i32,
        /// Microseconds until SIGKILL.
        grace: u64,
    },
    /// Send a program's group a signal.
    Signal {
        /// Which.
        run: RunKey,
        /// The number of the signal.
        signal: i32,
    },
    /// Extend a lease: unless it is extended again, the program and all that descends from it is dead by then. A lease
    /// never becomes shorter, and one that has ended stays so.
    Lease {
        /// Which.
        run: RunKey,
        /// When.
        kill_at: u64,
    },
    /// What became of these runs is stored: the keeper need not remember them.
    Forget {
        /// Which.
        runs: Vec<RunKey>,
    },
    /// End as soon as no program runs, because a newer version wants the place.
    Retire,
}

/// What the keeper says. After its hello it tells all it knows in parts, and then what happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromKeeper {
    /// The answer to the hello. When no protocol is known to both the keeper closes the line after it.
    Hello {
        /// The newest protocol that it understands.
        protocol: u32,
        /// The oldest protocol that it understands.
        oldest: u32,
        /// Its version, for people.
        version: String,
        /// Its process.
        pid: u32,
        /// What it cannot do here, in words, such as limits by control groups.
        warnings: Vec<String>,
    },
    /// A part of all that it knows.
    Listed {
        /// Programs.
        programs: Vec<Program>,
        /// Whether this is the last part.
        is_last: bool,
    },
    /// A program has started.
    Started {
        /// Which.
        run: RunKey,
        /// Its process, which is also its group and session.
        pid: u32,
    },
    /// A program was not started, and will not be.
    Refused {
        /// Which.
        run: RunKey,
        /// Why, in words.
        why: String,
    },
    /// A program has ended. It is remembered until the daemon says that it is stored.
    Ended {
        /// Which.
        run: RunKey,
        /// How.
        #[serde(flatten)]
        end: End,
    },
}

/// How a program is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// For which run.
    pub run: RunKey,
    /// The program and its arguments; never empty. A program without a slash is looked for in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Where it starts; the root when absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Its file mode mask; 022 when absent.
    #[serde(default)]
    pub umask: Option<u32>,
    /// Who runs it, by name or number; whoever the keeper is when absent.
    #[serde(default)]
    pub user: Option<String>,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// How much of its output is kept.
    #[serde(default)]
    pub output: OutputLimits,
    /// It is refused when it comes later than this.
    pub launch_by: u64,
    /// When its lease ends, if it has one: it is dead by then. It is refused when the signal before that is due already.
    #[serde(default)]
    pub kill_at: Option<u64>,
    /// The signal that comes before the end of its lease, by its number.
    pub stop_signal: i32,
    /// Microseconds between that and SIGKILL. Who gives a lease sees to it that this is a small part of it.
    pub stop_grace: u64,
}

/// What a program and its descendants may use; without limit where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
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

/// How much of an output is kept: what is between the first and the last bytes is punched out of the file, so that all
/// offsets stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimits {
    /// Bytes at the beginning.
    pub head: u64,
    /// Bytes at the end, at least.
    pub tail: u64,
}

/// What the keeper knows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Which.
    pub run: RunKey,
    /// Where it stands.
    pub stage: Stage,
}

/// Where a program stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It runs.
    Running {
        /// Its process.
        pid: u32,
    },
    /// It has ended.
    Ended(End),
    /// An earlier keeper was lost with it. It is gone for sure, and nobody knows how it ended.
    Lost,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How its first process ended.
    pub exit: Exit,
    /// How long its output is.
    pub output: u64,
    /// Whether it was told to end because its lease did. A keeper that does not know how to say so says nothing.
    #[serde(default)]
    pub by_lease: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// The oldest and the newest protocol that this process speaks.
pub(crate) fn spoken() -> (u32, u32) {
    let later = u32::from(fail::plays(fail::NEXT_PROTOCOL));
    (PROTOCOL_OLDEST + later, PROTOCOL + later)
}

/// Whether there is a protocol that both sides speak, given the oldest and the newest of the other.
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
    /// Reads 32 hex digits.
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
