//! What the daemon is asked by signals: the first SIGTERM or SIGINT asks it to stop, the second insists. SIGHUP means
//! that job files are to be read again, or, where someone had started the daemon from a terminal, that this is gone.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that the daemon listens to.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    has_terminal: bool,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The daemon is to stop; by which signal.
    Stop(&'static str),
    /// Job files are to be read again.
    Reload,
}

impl Signals {
    /// Takes them over from now on; must be called inside the executor.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            has_terminal: io::stdin().is_terminal(),
        })
    }

    /// Waits for one.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Asked::Stop("SIGINT"),
            _ = self.hangup.recv() => if self.has_terminal { Asked::Stop("SIGHUP") } else { Asked::Reload },
        }
    }

    /// Waits for one that asks to stop, and answers with its name.
    pub(crate) async fn next_stop(&mut self) -> &'static str {
        loop {
            if let Asked::Stop(name) = self.next().await {
                return name;
            }
        }
    }
}
