//! One process as the daemon knows it: its state, and the node's requests for it.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::command::ProgramReport;
use cronhold_core::record::Run;
use cronhold_core::signal::Signal;
use cronhold_engine::LaunchRequest;
use cronhold_keeper::ProgramEnd;
use cronhold_schedule::Span;

/// A process that the node requested, or a process of the keeper whose run is over.
#[derive(Debug)]
pub(super) struct ProcessEntry {
    /// `None` if the node has not requested it from this daemon.
    pub(super) run: Option<Arc<Run>>,
    /// Whether this daemon was the first to request it, so that no earlier one can have stored output of it.
    pub(super) is_new: bool,
    pub(super) fence: Option<u64>,
    /// The uptime after which it must not be started.
    pub(super) launch_by: Span,
    /// The uptime by which it must be dead, as the node last requested.
    pub(super) kill_at: Option<Span>,
    pub(super) state: ProcessState,
    /// Whether it counts as running only because a keeper that does not respond may have started it.
    pub(super) is_assumed: bool,
    /// The stop signal and the grace period, once a stop was requested.
    pub(super) stop: Option<(Signal, Span)>,
    /// Whether the run is final in the store, so that the node does not wait for a report.
    pub(super) is_settled: bool,
    /// The last report, for a node that requests it again.
    pub(super) last_report: Option<ProgramReport>,
}

/// The state of a process. ARCHITECTURE.md has the table of transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// The launch has not been sent to the keeper.
    Queued,
    /// The launch was sent to the keeper, which has not answered.
    Requested,
    /// The connection broke before the keeper answered. The keeper's next list decides.
    Uncertain,
    /// An earlier daemon may have started it. The keeper's list decides.
    Sought,
    Running,
    /// It has ended, and its output is being stored.
    Ended(ProgramEnd),
    /// It was lost with its keeper, and the output it wrote until then is being stored.
    Lost,
    /// The last report was delivered to the node.
    Reported,
}

impl ProcessEntry {
    /// A process that is to be started.
    pub(super) fn launched(request: LaunchRequest) -> Self {
        let LaunchRequest { run, fence, launch_by, kill_at } = request;
        Self { run: Some(run), is_new: true, fence, launch_by, kill_at, ..Self::new(ProcessState::Queued) }
    }

    /// A process that an earlier daemon may have started.
    pub(super) fn adopted(run: Arc<Run>) -> Self {
        Self { run: Some(run), ..Self::new(ProcessState::Sought) }
    }

    /// A process of the keeper whose run is over or unknown.
    pub(super) fn unclaimed() -> Self {
        Self { is_settled: true, ..Self::new(ProcessState::Sought) }
    }

    fn new(state: ProcessState) -> Self {
        Self {
            run: None,
            is_new: false,
            fence: None,
            launch_by: Span::ZERO,
            kill_at: None,
            state,
            is_assumed: false,
            stop: None,
            is_settled: false,
            last_report: None,
        }
    }

    /// The request to start it, if it waits to be started.
    pub(super) fn launch_request(&self) -> Option<LaunchRequest> {
        let run = self.run.clone().filter(|_| self.state == ProcessState::Queued)?;
        Some(LaunchRequest { run, fence: self.fence, launch_by: self.launch_by, kill_at: self.kill_at })
    }

    /// Whether the keeper has to decide what became of its launch.
    pub(super) fn waits_for_launch(&self) -> bool {
        match self.state {
            ProcessState::Requested | ProcessState::Uncertain => true,
            ProcessState::Sought => {
                self.run.as_ref().is_some_and(|run| matches!(run.state, State::Starting | State::Stopping))
            }
            _ => false,
        }
    }

    /// Whether the run is final in the store and the node has the last report.
    pub(super) fn is_done(&self) -> bool {
        self.is_settled && self.state == ProcessState::Reported
    }
}

impl ProcessState {
    /// Whether the keeper has it, or may be about to start it.
    pub(super) fn is_with_keeper(self) -> bool {
        matches!(self, Self::Requested | Self::Running)
    }

    /// Whether the program has ended or was lost.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Ended(_) | Self::Lost | Self::Reported)
    }
}
