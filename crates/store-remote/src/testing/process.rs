//! The process of a server that a test starts, suspends, ends and kills.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::waiting::{free_port, until};

/// Number of ports that are tried before a test fails.
const PORTS_MAX: usize = 20;

/// A process without input and output. Dropping it kills it.
#[derive(Debug)]
pub struct ServerProcess(Child);

impl ServerProcess {
    /// Starts a process. If the program is not installed, the test fails with `install`.
    pub fn spawn(command: &mut Command, install: &str) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}; {install}")))
    }

    /// Waits until `answers` is true, or until the process has ended. Returns whether it answers.
    pub fn wait_until_ready(&mut self, mut answers: impl FnMut() -> bool) -> bool {
        until("the server answers or ends", || {
            if self.0.try_wait().expect("the process is ours").is_some() {
                return Some(false);
            }
            answers().then_some(true)
        })
    }

    /// Suspends the process: connections stay open, and it does not reply. Waits until all its threads have stopped.
    pub fn suspend(&self) {
        self.signal(Signal::SIGSTOP);
        let threads = format!("/proc/{}/task", self.0.id());
        until("all threads have stopped", || {
            let threads = std::fs::read_dir(&threads).expect("the process exists").flatten();
            let mut stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
            // The state follows the name, which is in parentheses.
            stats.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))).then_some(())
        });
    }

    /// Continues a suspended process.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks the process to end, and waits for its end.
    pub fn terminate(mut self) {
        self.signal(Signal::SIGTERM);
        let _ = self.0.wait();
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).expect("a process id is a positive number");
        kill(Pid::from_raw(id), signal).expect("the process is ours");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `start` with free ports until it succeeds, because another process may take a port first. `start` returns what
/// it has started, or the log of the server, with which the test fails after too many attempts.
pub fn start_on_free_port<T>(mut start: impl FnMut(u16) -> Result<T, String>) -> T {
    let mut log = String::new();
    for _ in 0..PORTS_MAX {
        match start(free_port()) {
            Ok(started) => return started,
            Err(text) => log = text,
        }
    }
    panic!("the server did not start on any of {PORTS_MAX} ports:\n{log}");
}
