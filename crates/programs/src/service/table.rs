//! The programs of a node that are requests to a service, as a table. It takes the time as an argument, does no I/O and
//! never waits: it returns requests to send, outputs to store and reports for the node, and receives their results.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::{OutputSummary, ResolvedProgram, ResolvedRequest, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::Span;

use super::judge::{Judgement, broken};
use crate::http::CancelToken;

/// The reason of a program that is not started because its lease has ended.
const LATE: &str = "the launch is too late: its lease has ended";
/// Why a request that an earlier daemon has sent has no result.
const INTERRUPTED: &str = "the daemon restarted while the request was under way";
/// Polls in a row that the service refuses, after which the run ends.
const REFUSALS_MAX: u32 = 5;
/// The longest wait between two polls of a service that does not respond, unless the job polls less often.
const POLL_WAIT_MAX: Span = Span::from_secs(60);
/// The longest wait between a cancellation and the next poll.
const CANCEL_WAIT_MAX: Span = Span::from_secs(1);

/// All programs of a node that are requests.
///
/// Invariant: `timers` holds exactly the next time of each entry that has one.
#[derive(Debug, Default)]
pub(super) struct ServiceTable {
    entries: BTreeMap<RunId, ServiceEntry>,
    timers: BTreeSet<(Span, RunId)>,
    /// Requests that were not taken yet: at most two for each entry.
    requests: VecDeque<RequestTask>,
    /// Runs whose output was not taken yet.
    unstored: VecDeque<(RunId, u64)>,
    /// Reports that were not taken yet.
    reports: VecDeque<(RunId, ProgramReport)>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// It is the program.
    Program,
    /// It starts a remote task.
    Start,
    /// It polls a remote task.
    Poll,
    /// It cancels a remote task.
    Cancel,
}

/// A request to be sent.
#[derive(Debug)]
pub(super) struct RequestTask {
    pub(super) run: Arc<Run>,
    pub(super) kind: RequestKind,
    pub(super) request: ResolvedRequest,
    pub(super) token: CancelToken,
}

#[derive(Debug)]
struct ServiceEntry {
    run: Arc<Run>,
    /// The uptime at which its lease ends.
    kill_at: Option<Span>,
    phase: ServicePhase,
    /// The signal that requested its end.
    stop: Option<Signal>,
    /// Whether the service has accepted the cancellation of the task.
    is_cancelled: bool,
    /// Polls in a row that the service has refused, and that it has not answered.
    refused: u32,
    unanswered: u32,
}

#[derive(Debug)]
enum ServicePhase {
    /// The request waits for a thread, or was sent.
    Requesting(RequestKind, CancelToken),
    /// The task was reported. It is polled when the report is committed.
    TaskReported,
    /// The task is polled, or cancelled, at this uptime.
    Idle(Span),
    /// The lease of a run with a task has ended. If it is extended again, the task is polled on.
    Lapsed,
    /// There is a final response, which is being stored.
    Storing(ExitOutcome),
    /// The end was reported. It is kept until it is committed.
    Ended(ExitOutcome),
}

impl ServiceTable {
    /// Sends the request of a run, unless it was sent, or follows its task if it has one. With a lease it lasts until
    /// `kill_at`, unless that is extended.
    pub(super) fn launch(&mut self, run: &Arc<Run>, launch_by: Span, kill_at: Option<Span>, uptime: Span) {
        if self.entries.contains_key(&run.id) {
            return;
        }
        if run.remote_task().is_some() {
            return self.follow(run, kill_at, uptime);
        }
        if launch_by < uptime || kill_at.is_some_and(|kill_at| kill_at <= uptime) {
            return self.report(run.id, ProgramReport::NotLaunched(LATE.to_owned()));
        }
        self.begin(run, kill_at);
    }

    /// Adopts the program of a run that an earlier process has started. A task is polled on. The response to another
    /// request is lost: it is sent again if the job allows that, and otherwise its result is unknown.
    pub(super) fn adopt(&mut self, run: &Arc<Run>, uptime: Span) {
        if let Some(entry) = self.entries.get(&run.id) {
            let report = match &entry.phase {
                ServicePhase::Ended(outcome) => ProgramReport::Ended(outcome.clone()),
                _ => ProgramReport::Launched,
            };
            return self.report(run.id, report);
        }
        match run.state {
            _ if run.remote_task().is_some() => {
                self.follow(run, None, uptime);
            }
            State::Stopping => self.report(run.id, ProgramReport::Ended(signalled(run.terms.signal))),
            _ if run.can_move() => self.begin(run, None),
            State::Starting => self.report(run.id, ProgramReport::Lost),
            _ => {
                let outcome = broken(Reason::NoResponse(INTERRUPTED.to_owned()));
                self.report(run.id, ProgramReport::Ended(outcome));
            }
        }
    }

    /// Extends leases. No lease becomes shorter, and that of a request that has ended with it cannot be extended.
    pub(super) fn extend(&mut self, leases: &[(RunId, Span)], uptime: Span) {
        for (run, until) in leases {
            let Some(mut entry) = self.remove(*run) else { continue };
            let is_lapsed = matches!(entry.phase, ServicePhase::Lapsed);
            let is_earlier = |kill_at| (kill_at > uptime || is_lapsed) && kill_at < *until;
            let is_held = entry.stop.is_none() || entry.kill_at.is_some();
            if is_held && entry.kill_at.is_none_or(is_earlier) {
                entry.kill_at = Some(*until);
            }
            if is_lapsed && *until > uptime {
                entry.phase = ServicePhase::Idle(uptime);
            }
            self.insert(*run, entry);
        }
    }

    /// Ends the program of a run. A request is ended by closing its connection. A remote task is cancelled, and the run
    /// ends when the service says that it is over, or with SIGKILL.
    pub(super) fn signal(&mut self, run: RunId, signal: Signal, uptime: Span) {
        let Some(entry) = self.entries.get_mut(&run) else {
            return self.report(run, ProgramReport::Lost);
        };
        entry.stop = Some(signal);
        let is_kill = signal == Signal::KILL;
        match &entry.phase {
            // The final response has come.
            ServicePhase::Storing(_) | ServicePhase::Ended(_) => {}
            ServicePhase::Requesting(RequestKind::Program, _) => self.cut(run, signalled(signal)),
            // Until the service has named its task, the task cannot be cancelled.
            ServicePhase::Requesting(RequestKind::Start, _) | ServicePhase::TaskReported if !is_kill => {}
            ServicePhase::Requesting(RequestKind::Cancel, _) if !is_kill => {}
            _ if entry.is_cancelled && !is_kill => {}
            _ if is_kill || entry.cancel().is_none() => {
                if let Some(request) = entry.cancel().filter(|_| !entry.is_cancelled) {
                    // The run ends without waiting for its result.
                    let (run, token) = (Arc::clone(&entry.run), CancelToken::default());
                    self.requests.push_back(RequestTask { run, kind: RequestKind::Cancel, request, token });
                }
                self.cut(run, signalled(signal));
            }
            _ => self.cancel_task(run, uptime),
        }
    }

    /// A request has a result. Returns whether its response is the output of the run, which the caller writes and then
    /// reports with [`Self::output_written`].
    pub(super) fn receive(&mut self, id: RunId, token: &CancelToken, judgement: Judgement, uptime: Span) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        // The result of a request that was ended is of no use.
        if !matches!(&entry.phase, ServicePhase::Requesting(_, known) if known.is_same(token)) {
            return false;
        }
        let every = entry.every();
        let phase = match judgement {
            Judgement::Final(outcome) => ServicePhase::Storing(outcome),
            Judgement::TaskStarted(task) => {
                self.report(id, ProgramReport::TaskStarted(task));
                self.enter(id, ServicePhase::TaskReported);
                return false;
            }
            Judgement::Pending => {
                (entry.refused, entry.unanswered) = (0, 0);
                ServicePhase::Idle(uptime.plus(every))
            }
            Judgement::Unanswered => {
                entry.unanswered += 1;
                let doubled = every.micros().saturating_mul(1 << entry.unanswered.min(16));
                ServicePhase::Idle(uptime.plus(Span::from_micros(doubled).min(every.max(POLL_WAIT_MAX))))
            }
            // The service does not know the task any more.
            Judgement::Refused(_) if entry.is_cancelled => {
                ServicePhase::Storing(signalled(entry.stop.unwrap_or(Signal::TERM)))
            }
            Judgement::Refused(outcome) => {
                entry.refused += 1;
                if entry.refused >= REFUSALS_MAX {
                    ServicePhase::Storing(outcome)
                } else {
                    ServicePhase::Idle(uptime.plus(every))
                }
            }
            Judgement::Cancelled { is_accepted } => {
                entry.is_cancelled |= is_accepted;
                ServicePhase::Idle(uptime.plus(every.min(CANCEL_WAIT_MAX)))
            }
        };
        let is_final = matches!(phase, ServicePhase::Storing(_));
        self.enter(id, phase);
        is_final
    }

    /// The output of a run is in its file, with this length.
    pub(super) fn output_written(&mut self, run: RunId, length: u64) {
        if length > 0 {
            return self.unstored.push_back((run, length));
        }
        self.output_stored(run, OutputSummary::default());
    }

    /// The output of a run is stored.
    pub(super) fn output_stored(&mut self, run: RunId, written: OutputSummary) {
        let Some(ServicePhase::Storing(outcome)) = self.entries.get(&run).map(|entry| &entry.phase) else { return };
        let outcome = ExitOutcome { written: Some(written), ..outcome.clone() };
        self.end(run, outcome);
    }

    /// A change of an unfinished run is committed. A task is polled from then on, because it is stored.
    pub(super) fn committed(&mut self, run: &Arc<Run>, uptime: Span) {
        let Some(entry) = self.entries.get_mut(&run.id) else { return };
        entry.run = Arc::clone(run);
        if !matches!(entry.phase, ServicePhase::TaskReported) || run.remote_task().is_none() {
            return;
        }
        let (stop, every) = (entry.stop, entry.every());
        self.enter(run.id, ServicePhase::Idle(uptime.plus(every)));
        if let Some(signal) = stop {
            self.signal(run.id, signal, uptime);
        }
    }

    /// The end of a run is committed, or another node has taken the run over. Returns whether the run was here.
    pub(super) fn settle(&mut self, run: RunId) -> bool {
        let Some(entry) = self.remove(run) else { return false };
        if let ServicePhase::Requesting(_, token) = entry.phase {
            token.cancel();
        }
        true
    }

    /// Whether a run is here.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.entries.contains_key(&run)
    }

    /// Takes all requests to send.
    pub(super) fn take_requests(&mut self) -> Vec<RequestTask> {
        self.requests.drain(..).collect()
    }

    /// Takes runs whose output has to be stored, with its length.
    pub(super) fn take_unstored(&mut self, most: usize) -> Vec<(RunId, u64)> {
        let count = self.unstored.len().min(most);
        self.unstored.drain(..count).collect()
    }

    /// Takes up to `most` available reports. Requests may be due as well.
    pub(super) fn take_reports(&mut self, uptime: Span, most: usize) -> Vec<(RunId, ProgramReport)> {
        self.send_due(uptime);
        let count = self.reports.len().min(most);
        self.reports.drain(..count).collect()
    }

    /// The uptime at which there is a report to take or a request to send: zero if there is one now.
    pub(super) fn next(&self) -> Option<Span> {
        if self.reports.is_empty() { self.timers.first().map(|(at, _)| *at) } else { Some(Span::ZERO) }
    }

    /// Sends the requests that are due, and ends what has no lease any more.
    fn send_due(&mut self, uptime: Span) {
        while let Some((_, id)) = self.timers.first().copied().filter(|(at, _)| *at <= uptime) {
            let Some(entry) = self.entries.get(&id) else { return };
            if entry.kill_at.is_some_and(|kill_at| kill_at <= uptime) {
                self.lapse(id);
                continue;
            }
            let wants_cancel = entry.stop.is_some() && !entry.is_cancelled;
            let cancel = entry.cancel().filter(|_| wants_cancel).map(|request| (RequestKind::Cancel, request));
            let Some((kind, request)) = cancel.or_else(|| Some((RequestKind::Poll, entry.poll()?))) else { return };
            self.send(id, kind, request);
        }
    }

    /// The lease of a run has ended. Another node may follow its task now.
    fn lapse(&mut self, id: RunId) {
        let Some(entry) = self.entries.get(&id) else { return };
        if entry.run.remote_task().is_none() {
            return self.cut(id, broken(Reason::LockLost));
        }
        if let ServicePhase::Requesting(_, token) = &entry.phase {
            token.cancel();
        }
        self.enter(id, ServicePhase::Lapsed);
    }

    /// Requests the cancellation of a task. That needs no lease: whichever node does it, the task ends.
    fn cancel_task(&mut self, id: RunId, uptime: Span) {
        let Some(entry) = self.remove(id) else { return };
        if let ServicePhase::Requesting(_, token) = &entry.phase {
            token.cancel();
        }
        self.insert(id, ServiceEntry { kill_at: None, phase: ServicePhase::Idle(uptime), ..entry });
        self.send_due(uptime);
    }

    fn begin(&mut self, run: &Arc<Run>, kill_at: Option<Span>) {
        let (kind, request) = match &run.work {
            Some(ResolvedProgram::Http(http)) => (RequestKind::Program, http.request.clone()),
            Some(ResolvedProgram::Remote(remote)) => (RequestKind::Start, remote.start.clone()),
            _ => return,
        };
        self.insert(run.id, ServiceEntry::new(run, kill_at, ServicePhase::TaskReported));
        self.send(run.id, kind, request);
        self.report(run.id, ProgramReport::Launched);
    }

    /// Polls the task of a run, or cancels it if the run was asked to stop.
    fn follow(&mut self, run: &Arc<Run>, kill_at: Option<Span>, uptime: Span) {
        self.insert(run.id, ServiceEntry::new(run, kill_at, ServicePhase::Idle(uptime)));
        self.report(run.id, ProgramReport::Launched);
        match run.state {
            State::Stopping => self.signal(run.id, run.terms.signal, uptime),
            _ => self.send_due(uptime),
        }
    }

    fn send(&mut self, id: RunId, kind: RequestKind, request: ResolvedRequest) {
        let Some(entry) = self.entries.get(&id) else { return };
        let (run, token) = (Arc::clone(&entry.run), CancelToken::default());
        self.requests.push_back(RequestTask { run, kind, request, token: token.clone() });
        self.enter(id, ServicePhase::Requesting(kind, token));
    }

    /// Ends a run before its final response.
    fn cut(&mut self, run: RunId, outcome: ExitOutcome) {
        if let Some(ServicePhase::Requesting(_, token)) = self.entries.get(&run).map(|entry| &entry.phase) {
            token.cancel();
        }
        self.end(run, outcome);
    }

    fn end(&mut self, run: RunId, outcome: ExitOutcome) {
        self.enter(run, ServicePhase::Ended(outcome.clone()));
        self.report(run, ProgramReport::Ended(outcome));
    }

    fn enter(&mut self, run: RunId, phase: ServicePhase) {
        if let Some(entry) = self.remove(run) {
            self.insert(run, ServiceEntry { phase, ..entry });
        }
    }

    fn insert(&mut self, run: RunId, entry: ServiceEntry) {
        self.timers.extend(entry.timer().map(|at| (at, run)));
        self.entries.insert(run, entry);
    }

    fn remove(&mut self, run: RunId) -> Option<ServiceEntry> {
        let entry = self.entries.remove(&run)?;
        if let Some(at) = entry.timer() {
            self.timers.remove(&(at, run));
        }
        Some(entry)
    }

    fn report(&mut self, run: RunId, report: ProgramReport) {
        self.reports.push_back((run, report));
    }
}

impl ServiceEntry {
    fn new(run: &Arc<Run>, kill_at: Option<Span>, phase: ServicePhase) -> Self {
        let run = Arc::clone(run);
        Self { run, kill_at, phase, stop: None, is_cancelled: false, refused: 0, unanswered: 0 }
    }

    /// When there is something to do without a request or a result.
    fn timer(&self) -> Option<Span> {
        match self.phase {
            ServicePhase::Requesting(..) => self.kill_at,
            ServicePhase::Idle(at) => Some(self.kill_at.map_or(at, |kill_at| kill_at.min(at))),
            ServicePhase::TaskReported | ServicePhase::Lapsed | ServicePhase::Storing(_) | ServicePhase::Ended(_) => {
                None
            }
        }
    }

    /// The request that polls the task.
    fn poll(&self) -> Option<ResolvedRequest> {
        self.run.service.as_ref()?.poll.clone()
    }

    /// The request that cancels the task.
    fn cancel(&self) -> Option<ResolvedRequest> {
        self.run.service.as_ref()?.cancel.clone()
    }

    /// Time between two polls.
    fn every(&self) -> Span {
        match &self.run.work {
            Some(ResolvedProgram::Remote(remote)) => remote.every,
            _ => Span::ZERO,
        }
    }
}

/// The outcome of a program that a signal ended.
fn signalled(signal: Signal) -> ExitOutcome {
    broken(Reason::Signal(signal))
}
