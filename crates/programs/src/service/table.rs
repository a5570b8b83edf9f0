//! The programs of a node that are requests to a service, as a table. It takes the time as an argument, does no I/O and
//! never waits: it returns requests to send, outputs to store and reports for the node, and receives their results.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::{OutputSummary, ResolvedProgram, ResolvedRequest, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_schedule::Span;

use super::judge::broken;
use crate::http::CancelToken;

/// The reason of a program that is not started because its lease has ended.
const LATE: &str = "the launch is too late: its lease has ended";
/// Why a request that an earlier daemon has sent has no result.
const INTERRUPTED: &str = "the daemon restarted while the request was under way";

/// All programs of a node that are requests.
///
/// Invariant: `timers` holds exactly the next time of each entry that has one.
#[derive(Debug, Default)]
pub(super) struct ServiceTable {
    entries: BTreeMap<RunId, ServiceEntry>,
    timers: BTreeSet<(Span, RunId)>,
    /// Requests that were not taken yet: at most one for each entry.
    requests: VecDeque<RequestTask>,
    /// Runs whose output was not taken yet.
    unstored: VecDeque<(RunId, u64)>,
    /// Reports that were not taken yet.
    reports: VecDeque<(RunId, ProgramReport)>,
}

/// A request to be sent.
#[derive(Debug)]
pub(super) struct RequestTask {
    pub(super) run: RunId,
    pub(super) request: ResolvedRequest,
    pub(super) token: CancelToken,
}

/// The result of a request.
#[derive(Debug)]
pub(super) struct RequestResult {
    pub(super) run: RunId,
    /// Identifies the request, because a later one of the same run may be under way.
    pub(super) token: CancelToken,
    pub(super) outcome: ExitOutcome,
    /// The length of the output to store.
    pub(super) output: u64,
}

#[derive(Debug)]
struct ServiceEntry {
    /// The uptime at which its lease ends.
    kill_at: Option<Span>,
    phase: ServicePhase,
}

#[derive(Debug)]
enum ServicePhase {
    /// The request waits for a thread, or was sent.
    Requesting(CancelToken),
    /// There is a response, which is being stored.
    Storing(ExitOutcome),
    /// The end was reported. It is kept until it is committed.
    Ended(ExitOutcome),
}

impl ServiceTable {
    /// Sends the request of a run, unless it was sent. With a lease it lasts until `kill_at`, unless that is extended.
    pub(super) fn launch(&mut self, run: &Run, launch_by: Span, kill_at: Option<Span>, uptime: Span) {
        if self.entries.contains_key(&run.id) {
            return;
        }
        if launch_by < uptime || kill_at.is_some_and(|kill_at| kill_at <= uptime) {
            return self.report(run.id, ProgramReport::NotLaunched(LATE.to_owned()));
        }
        self.begin(run, kill_at);
    }

    /// Adopts the request of a run that an earlier process has sent. Its response is lost: it is sent again if the job
    /// allows that, and otherwise its result is unknown.
    pub(super) fn adopt(&mut self, run: &Arc<Run>) {
        if let Some(entry) = self.entries.get(&run.id) {
            let report = match &entry.phase {
                ServicePhase::Ended(outcome) => ProgramReport::Ended(outcome.clone()),
                ServicePhase::Requesting(_) | ServicePhase::Storing(_) => ProgramReport::Launched,
            };
            return self.report(run.id, report);
        }
        let Some(ResolvedProgram::Http(http)) = &run.work else { return };
        match run.state {
            State::Stopping => self.report(run.id, ProgramReport::Ended(signalled(run.terms.signal))),
            _ if http.is_repeatable => self.begin(run, None),
            State::Starting => self.report(run.id, ProgramReport::Lost),
            _ => {
                let outcome = broken(Reason::NoResponse(INTERRUPTED.to_owned()));
                self.report(run.id, ProgramReport::Ended(outcome));
            }
        }
    }

    /// Extends leases. No lease becomes shorter, and a lease that has ended cannot be extended.
    pub(super) fn extend(&mut self, leases: &[(RunId, Span)], uptime: Span) {
        for (run, until) in leases {
            let Some(mut entry) = self.remove(*run) else { continue };
            if entry.kill_at.is_none_or(|kill_at| kill_at > uptime && kill_at < *until) {
                entry.kill_at = Some(*until);
            }
            self.insert(*run, entry);
        }
    }

    /// Ends the request of a run. Any signal does: its connection is closed.
    pub(super) fn signal(&mut self, run: RunId, signal: Signal) {
        match self.entries.get(&run).map(|entry| &entry.phase) {
            None => self.report(run, ProgramReport::Lost),
            Some(ServicePhase::Requesting(_)) => self.cut(run, signalled(signal)),
            // The response has come.
            Some(ServicePhase::Storing(_) | ServicePhase::Ended(_)) => {}
        }
    }

    /// A request has a result.
    pub(super) fn receive(&mut self, result: RequestResult) {
        let RequestResult { run, token, outcome, output } = result;
        let Some(entry) = self.entries.get(&run) else { return };
        // The result of a request that was ended is of no use.
        if !matches!(&entry.phase, ServicePhase::Requesting(known) if known.is_same(&token)) {
            return;
        }
        if output == 0 {
            return self.end(run, ExitOutcome { written: Some(OutputSummary::default()), ..outcome });
        }
        self.enter(run, ServicePhase::Storing(outcome));
        self.unstored.push_back((run, output));
    }

    /// The output of a run is stored.
    pub(super) fn output_stored(&mut self, run: RunId, written: OutputSummary) {
        let Some(ServicePhase::Storing(outcome)) = self.entries.get(&run).map(|entry| &entry.phase) else { return };
        let outcome = ExitOutcome { written: Some(written), ..outcome.clone() };
        self.end(run, outcome);
    }

    /// The end of a run is committed. Returns whether the run was here.
    pub(super) fn settle(&mut self, run: RunId) -> bool {
        let Some(entry) = self.remove(run) else { return false };
        if let ServicePhase::Requesting(token) = entry.phase {
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

    /// Takes up to `most` available reports.
    pub(super) fn take_reports(&mut self, uptime: Span, most: usize) -> Vec<(RunId, ProgramReport)> {
        while let Some((_, run)) = self.timers.first().copied().filter(|(at, _)| *at <= uptime) {
            self.cut(run, broken_lease());
        }
        let count = self.reports.len().min(most);
        self.reports.drain(..count).collect()
    }

    /// The uptime at which there is a report to take: zero if there is one now.
    pub(super) fn next(&self) -> Option<Span> {
        if self.reports.is_empty() { self.timers.first().map(|(at, _)| *at) } else { Some(Span::ZERO) }
    }

    fn begin(&mut self, run: &Run, kill_at: Option<Span>) {
        let Some(ResolvedProgram::Http(http)) = &run.work else { return };
        let token = CancelToken::default();
        let phase = ServicePhase::Requesting(token.clone());
        self.insert(run.id, ServiceEntry { kill_at, phase });
        self.requests.push_back(RequestTask { run: run.id, request: http.request.clone(), token });
        self.report(run.id, ProgramReport::Launched);
    }

    /// Ends a request before its response.
    fn cut(&mut self, run: RunId, outcome: ExitOutcome) {
        if let Some(ServicePhase::Requesting(token)) = self.entries.get(&run).map(|entry| &entry.phase) {
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
    /// When there is something to do without a request or a result.
    fn timer(&self) -> Option<Span> {
        self.kill_at.filter(|_| matches!(self.phase, ServicePhase::Requesting(_)))
    }
}

/// The outcome of a request that a signal ended.
fn signalled(signal: Signal) -> ExitOutcome {
    broken(Reason::Signal(signal))
}

/// The outcome of a request whose lease has ended.
fn broken_lease() -> ExitOutcome {
    broken(Reason::LockLost)
}

#[cfg(test)]
mod tests {
    use super::super::testing::http_run;
    use super::*;

    fn up(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    /// The reports that there are at an uptime, as text.
    fn reports(table: &mut ServiceTable, secs: u64) -> String {
        let words = table.take_reports(up(secs), 10).into_iter().map(|(_, report)| match report {
            ProgramReport::Launched => "launched".to_owned(),
            ProgramReport::Lost => "lost".to_owned(),
            ProgramReport::NotLaunched(why) => format!("not launched: {why}"),
            ProgramReport::Ended(ExitOutcome { reason, success, .. }) => {
                format!("ended {success}: {}", reason.map(|reason| reason.to_string()).unwrap_or_default())
            }
            other => format!("{other:?}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn launched(kill_at: Option<u64>) -> (ServiceTable, Run, CancelToken) {
        let (mut table, run) = (ServiceTable::default(), http_run(false, State::Starting));
        table.launch(&run, up(10), kill_at.map(up), up(0));
        table.launch(&run, up(10), kill_at.map(up), up(0));
        let mut requests = table.take_requests();
        assert_eq!(requests.len(), 1, "a launch is idempotent");
        assert_eq!(reports(&mut table, 0), "launched");
        (table, run, requests.remove(0).token)
    }

    fn success(run: &Run, token: &CancelToken, output: u64) -> RequestResult {
        RequestResult { run: run.id, token: token.clone(), outcome: ExitOutcome::SUCCESS, output }
    }

    #[test]
    fn end_is_reported_after_the_output_is_stored() {
        let (mut table, run, token) = launched(None);
        table.receive(success(&run, &token, 7));
        assert_eq!((reports(&mut table, 1).as_str(), table.next()), ("", None));
        assert_eq!(table.take_unstored(9), [(run.id, 7)]);
        table.signal(run.id, Signal::TERM);
        table.output_stored(run.id, OutputSummary { bytes: 7, tail: vec!["a line".to_owned()] });
        assert_eq!(table.next(), Some(Span::ZERO));
        assert_eq!(reports(&mut table, 1), "ended true: ");
        // The report may be lost: it is repeated until it is committed.
        table.adopt(&Arc::new(run.clone()));
        assert_eq!(reports(&mut table, 1), "ended true: ");
        assert!(table.settle(run.id) && !table.settle(run.id));
        table.adopt(&Arc::new(http_run(false, State::Running)));
        assert_eq!(reports(&mut table, 1), format!("ended false: no response: {INTERRUPTED}"));
    }

    #[test]
    fn response_without_a_body_needs_no_output() {
        let (mut table, run, token) = launched(None);
        table.receive(success(&run, &token, 0));
        assert_eq!(reports(&mut table, 1), "ended true: ");
    }

    #[test]
    fn signal_ends_the_request_and_its_late_result_is_ignored() {
        let (mut table, run, token) = launched(Some(30));
        table.signal(run.id, Signal::TERM);
        assert!(token.is_cancelled());
        assert_eq!(reports(&mut table, 1), "ended false: signal SIGTERM");
        table.receive(success(&run, &token, 7));
        assert_eq!((reports(&mut table, 99).as_str(), table.next()), ("", None));
        assert!(table.take_unstored(9).is_empty());
        table.settle(run.id);
        table.signal(run.id, Signal::KILL);
        assert_eq!(reports(&mut table, 1), "lost");
    }

    #[test]
    fn lease_ends_the_request_unless_extended() {
        for (extension, end) in [(None, 20), (Some((40, 10)), 40), (Some((15, 10)), 20), (Some((99, 20)), 20)] {
            let (mut table, run, token) = launched(Some(20));
            if let Some((until, at)) = extension {
                table.extend(&[(run.id, up(until))], up(at));
            }
            assert_eq!(table.next(), Some(up(end)), "{extension:?}");
            assert_eq!(reports(&mut table, end - 1), "", "{extension:?}");
            assert!(!token.is_cancelled());
            assert_eq!(reports(&mut table, end), "ended false: lock lost", "{extension:?}");
            assert!(token.is_cancelled());
        }
        let (mut table, run) = (ServiceTable::default(), http_run(false, State::Starting));
        table.launch(&run, up(9), Some(up(5)), up(5));
        table.launch(&run, up(4), None, up(5));
        assert_eq!(reports(&mut table, 5), format!("not launched: {LATE}, not launched: {LATE}"));
    }

    #[test]
    fn adopted_request_is_sent_again_only_if_the_job_allows_it() {
        let interrupted = format!("ended false: no response: {INTERRUPTED}");
        for (is_repeatable, state, expected, count) in [
            (false, State::Starting, "lost", 0),
            (false, State::Running, interrupted.as_str(), 0),
            (false, State::Stopping, "ended false: signal SIGTERM", 0),
            (true, State::Starting, "launched", 1),
            (true, State::Running, "launched", 1),
            (true, State::Stopping, "ended false: signal SIGTERM", 0),
        ] {
            let (mut table, run) = (ServiceTable::default(), Arc::new(http_run(is_repeatable, state)));
            table.adopt(&run);
            assert_eq!(reports(&mut table, 1), expected, "{is_repeatable} {state}");
            assert_eq!(table.take_requests().len(), count);
            if count == 1 {
                table.adopt(&run);
                assert_eq!((reports(&mut table, 1).as_str(), table.take_requests().len()), ("launched", 0));
            }
        }
    }
}
