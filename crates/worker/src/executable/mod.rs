//! Workers that are executables of any kind. `cronhold worker` runs one, and programs that use this crate can.
//!
//! In reading order: [`run`] starts an executable and makes steps by it; [`message`], [`change`] and [`step_line`] have
//! protocol 1; [`exchange`] has the conversation about one step or job, [`protocol`] what is special about steps, and
//! [`apply`] carries out their acts; [`job`] and [`job_acts`] have jobs of Sidekiq clients; [`simple`] has the modes
//! without the protocol; [`pool`] keeps processes running, [`process`] is one of them; [`open_steps`] finds the
//! step of a message; [`launch`] makes an executable die with its worker process.

mod apply;
mod change;
mod class;
mod exchange;
mod job;
mod job_acts;
mod launch;
mod message;
mod open_steps;
mod pool;
mod process;
mod protocol;
mod run;
mod simple;
mod step_line;

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cronhold_core::task::PortName;

pub use launch::launch_worker_stage;
pub use message::{LINE_BYTES_MAX, PROTOCOL};
pub use open_steps::CancelReason;
pub use run::{ExecutableHandle, ExecutableWorker, PreparedExecutable};

/// How an executable is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutableMode {
    /// It speaks protocol 1.
    Protocol,
    /// It is started for each step.
    EachStep,
    /// It turns each item of the first port into an item of the second one.
    Filter(PortName, PortName),
}

/// Receives what happens, on threads of the pool.
pub type ExecutableObserver = Arc<dyn Fn(&ExecutableEvent) + Send + Sync>;

/// An executable, and how it is used.
#[derive(Clone)]
pub struct ExecutableOptions {
    pub queue: String,
    /// The name of the worker process in `hello`.
    pub process: String,
    /// Steps that are made at once.
    pub concurrency: u32,
    pub mode: ExecutableMode,
    /// The executable and its arguments.
    pub command: Vec<OsString>,
    /// Words before the command that start [`launch_worker_stage`]; empty if the executable need not die with this process.
    pub launcher: Vec<OsString>,
    /// The first pause before an executable that has ended is started again. Each further one is twice as long, up to a
    /// minute.
    pub restart_pause: Duration,
    pub observer: ExecutableObserver,
}

/// What happens to an executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutableEvent {
    Started {
        pid: u32,
    },
    /// A message `log`.
    Log {
        level: String,
        text: String,
    },
    /// A line of its standard error.
    Stderr {
        text: String,
    },
    /// It broke the protocol, and is killed.
    Problem {
        text: String,
    },
    /// It has ended, and is started again after this time.
    Ended {
        why: String,
        /// Its exit code; `None` if it was killed or could not be started.
        code: Option<i32>,
        restart: Option<Duration>,
    },
    /// A line that it gets.
    Sent {
        line: String,
    },
    /// A line that it has written.
    Received {
        line: String,
    },
}

impl ExecutableOptions {
    /// Protocol 1, without a launcher and an observer.
    pub fn new(queue: &str, command: Vec<OsString>) -> Self {
        Self {
            queue: queue.to_owned(),
            process: format!("worker:{}", std::process::id()),
            concurrency: 1,
            mode: ExecutableMode::Protocol,
            command,
            launcher: Vec::new(),
            restart_pause: Duration::from_secs(1),
            observer: Arc::new(|_| ()),
        }
    }

    fn program(&self) -> String {
        self.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl fmt::Debug for ExecutableOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableOptions")
            .field("queue", &self.queue)
            .field("mode", &self.mode)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}
