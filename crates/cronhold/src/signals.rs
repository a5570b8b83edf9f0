//! Signals of the daemon. The first SIGTERM or SIGINT stops it in order, the second at once. SIGHUP reloads the job
//! files. If the daemon was started from a terminal, SIGHUP stops it, because the terminal is gone.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives the signals of the process.
#[derive(Debug)]
pub(crate) struct SignalListener {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    has_terminal: bool,
}

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// Stop the daemon; with the name of the signal.
    Stop(&'static str),
    /// Reload the job files.
    Reload,
}

impl SignalListener {
    /// Replaces the default handlers. Must be called inside the executor.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            has_terminal: io::stdin().is_terminal(),
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop("SIGTERM"),
            _ = self.interrupt.recv() => SignalRequest::Stop("SIGINT"),
            _ = self.hangup.recv() => if self.has_terminal { SignalRequest::Stop("SIGHUP") } else { SignalRequest::Reload },
        }
    }

    /// Waits for a request to stop, and returns the name of the signal. Other requests are dropped.
    pub(crate) async fn next_stop(&mut self) -> &'static str {
        loop {
            if let SignalRequest::Stop(name) = self.next().await {
                return name;
            }
        }
    }
}
