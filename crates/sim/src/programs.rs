//! The programs of one machine. They run as long as their runs specify; some fail, and some ignore signals. Programs
//! whose lease has expired are killed whatever the daemon does. Without a keeper, programs die with the daemon; with a
//! keeper, they die with the keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use cronhold_core::command::{DeliveryResult, ExitOutcome, ProbeResult, ProgramReport};
use cronhold_core::record::{ActionRecord, ProgramExit, ResolvedProgram, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{RunId, State};
use cronhold_engine::{LaunchRequest, NodeHandle, ProbeRequest, ProgramRunner};
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

use crate::check::{DaemonChange, ObservedLaunch};
use crate::context::{SimContext, node_id};
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;
use crate::random::SimRandom;

/// How long a daemon takes to notice that its keeper hangs.
const NOTICED_AFTER: Span = Span::from_secs(6);
/// How long after `launch_by` a launch without an answer is decided.
const ANSWER_WITHIN: Span = Span::from_secs(5);
/// How long after its start a daemon decides about launches of an earlier one.
const SOUGHT_WITHIN: Span = Span::from_secs(15);
/// How often it is checked whether a keeper works again.
const KEEPER_LOOK: Span = Span::from_millis(500);

/// The programs of one machine. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct SimPrograms {
    host: Arc<ProgramHost>,
    inner: Arc<Mutex<SimProgramTable>>,
}

/// The environment of the programs of a machine.
#[derive(Debug)]
pub(crate) struct ProgramHost {
    pub(crate) context: SimContext,
    pub(crate) rng: SimRandom,
    /// Faults of their reports.
    pub(crate) fault_plan: FaultPlan,
    pub(crate) machine: usize,
    pub(crate) source: String,
    /// Whether programs outlive the daemon.
    pub(crate) has_keeper: bool,
    /// A deliberate bug: the daemon does not learn that its keeper fails.
    pub(crate) hides_failures: bool,
}

#[derive(Debug, Default)]
struct SimProgramTable {
    /// Receives reports; `None` while the daemon is down.
    handle: Option<NodeHandle>,
    /// Runs that this daemon process has launched or adopted.
    requested: BTreeSet<RunId>,
    live: BTreeMap<RunId, SimProgram>,
    /// Programs that have ended and whose end the store does not have yet. `None` if they died with their keeper.
    ended: BTreeMap<RunId, Option<ExitOutcome>>,
    /// When launches that a failing keeper has not taken are decided.
    deadlines: BTreeMap<RunId, Span>,
    /// Until when the keeper hangs or is missing. It enforces leases nevertheless: what a keeper and a daemon that fail
    /// together do not end, only fences protect against.
    fails_until: Span,
    /// Whether the daemon can know that it does.
    is_failure_known: bool,
}

#[derive(Debug)]
struct SimProgram {
    ends_at: Span,
    /// When its lease expires.
    kill_at: Option<Span>,
    outcome: ExitOutcome,
    /// Whether it ends on any signal, or only on SIGKILL.
    handles_signals: bool,
    waker: Option<Waker>,
}

impl SimPrograms {
    pub(crate) fn new(host: ProgramHost) -> Self {
        Self { host: Arc::new(host), inner: Arc::default() }
    }

    /// Connects the daemon, which receives reports from now on.
    pub(crate) fn connect(&self, handle: NodeHandle) {
        self.lock().handle = Some(handle);
        let programs = self.clone();
        let owner = TaskOwner::Daemon { machine: self.host.machine };
        self.host.context.executor.spawn(owner, async move {
            if programs.is_failing() {
                programs.report_keeper().await;
            }
        });
    }

    /// Lets the keeper hang, or removes it, for a while. Programs continue.
    pub(crate) fn fail_keeper(&self, is_hung: bool, lasts: Span) {
        let ProgramHost { context, machine, source, .. } = &*self.host;
        if self.is_failing() {
            return;
        }
        context.log(source, || if is_hung { "keeper hangs" } else { "keeper is missing" }.to_owned());
        self.lock().fails_until = context.time.now().plus(lasts);
        context.daemon_changed(*machine, DaemonChange::KeeperFails);
        let (programs, machine) = (self.clone(), *machine);
        context.executor.spawn(TaskOwner::Detached, async move {
            let context = &programs.host.context;
            context.time.sleep(if is_hung { NOTICED_AFTER } else { Span::from_millis(50) }).await;
            if programs.is_failing() {
                programs.lock().is_failure_known = true;
                programs.report_keeper().await;
            }
            programs.keeper_works(None).await;
            context.log(&programs.host.source, || "keeper works again".to_owned());
            programs.lock().is_failure_known = false;
            context.daemon_changed(machine, DaemonChange::KeeperWorks);
            programs.report_keeper().await;
        });
    }

    /// Ends the failure of the keeper.
    pub(crate) fn repair_keeper(&self) {
        self.lock().fails_until = Span::ZERO;
    }

    fn is_failing(&self) -> bool {
        self.host.context.time.now() < self.lock().fails_until
    }

    /// Waits until the keeper works, at most until a time. Returns whether it works.
    async fn keeper_works(&self, until: Option<Span>) -> bool {
        let time = &self.host.context.time;
        while self.is_failing() {
            let now = time.now();
            if until.is_some_and(|until| until <= now) {
                return false;
            }
            let next = now.plus(KEEPER_LOOK).min(self.lock().fails_until);
            time.sleep(until.map_or(next, |until| until.min(next)).minus(now)).await;
        }
        true
    }

    /// Reports to the daemon whether the keeper can start programs.
    async fn report_keeper(&self) {
        let (handle, is_known) = {
            let inner = self.lock();
            (inner.handle.clone(), inner.is_failure_known)
        };
        if let Some(handle) = handle.filter(|_| !self.host.hides_failures) {
            handle.report_keeper(is_known.then(|| Arc::from("the keeper does not respond"))).await;
        }
    }

    /// A launch that the keeper has not taken: it is carried out if the keeper works in time, and otherwise the daemon
    /// decides that it was not.
    fn launch_later(&self, request: LaunchRequest) {
        let deadline = request.launch_by.plus(ANSWER_WITHIN);
        let mut inner = self.lock();
        inner.requested.insert(request.run.id);
        inner.deadlines.insert(request.run.id, deadline);
        drop(inner);
        let programs = self.clone();
        // A keeper drops the launches of a daemon that is gone.
        let owner = TaskOwner::Daemon { machine: self.host.machine };
        self.host.context.executor.spawn(owner, async move {
            let LaunchRequest { run, fence, launch_by, kill_at } = request;
            if programs.keeper_works(Some(deadline)).await {
                programs.start(&run, fence, launch_by, kill_at);
            } else {
                programs.report(run.id, ProgramReport::NotLaunched("the keeper does not respond".to_owned())).await;
            }
        });
    }

    /// The daemon has adopted all runs that it recovered. It receives a report about every other program.
    pub(crate) fn ready(&self) {
        let inner = self.lock();
        let known = inner.live.keys().chain(inner.ended.keys());
        let unknown: Vec<RunId> = known.filter(|run| !inner.requested.contains(run)).copied().collect();
        drop(inner);
        unknown.into_iter().for_each(|run| self.report_known(run));
    }

    /// The store has the end of a run, so that it can be forgotten here.
    pub(crate) fn settled(&self, run: RunId) {
        self.lock().ended.remove(&run);
    }

    /// The daemon is down. Without a keeper, its programs die.
    pub(crate) fn disconnect(&self) {
        let mut inner = self.lock();
        inner.handle = None;
        inner.requested.clear();
        inner.deadlines.clear();
        if self.host.has_keeper {
            return;
        }
        inner.ended.clear();
        drop(inner);
        self.end_all("dies");
    }

    /// The keeper died, and its programs with it. The next keeper detects and reports that.
    pub(crate) fn lose_keeper(&self) {
        let died = self.end_all("dies with its keeper");
        self.lock().ended.extend(died.iter().map(|run| (*run, None)));
        died.into_iter().for_each(|run| self.report_later(run, vec![ProgramReport::KeeperLost]));
    }

    /// Whether programs are running.
    pub(crate) fn any_running(&self) -> bool {
        !self.lock().live.is_empty()
    }

    /// Stops all reports.
    pub(crate) fn dismiss(&self) {
        self.lock().handle = None;
    }

    fn end_all(&self, how: &str) -> Vec<RunId> {
        let died = std::mem::take(&mut self.lock().live);
        self.host.context.executor.end(TaskOwner::Program { machine: self.host.machine });
        for run in died.keys() {
            self.host.context.ended(&self.host.source, *run, how);
        }
        died.into_keys().collect()
    }

    fn start(&self, run: &Run, fence: Option<u64>, launch_by: Span, kill_at: Option<Span>) {
        let ProgramHost { context, rng, source, .. } = &*self.host;
        let mut inner = self.lock();
        inner.requested.insert(run.id);
        // A launch is idempotent.
        if inner.live.contains_key(&run.id) || inner.ended.contains_key(&run.id) {
            return;
        }
        drop(inner);
        let now = context.time.now();
        let is_late = launch_by < now || kill_at.is_some_and(|kill_at| kill_at <= now);
        if is_late || rng.one_in(60) {
            let why = if is_late { "the launch deadline has passed" } else { "no such file" };
            return self.report_later(run.id, vec![ProgramReport::NotLaunched(why.to_owned())]);
        }
        let node = node_id(self.host.machine);
        context.launched(source, &ObservedLaunch { run, node, fence, kill_at });
        let duration = match &run.work {
            Some(ResolvedProgram::Noop(duration)) => *duration,
            _ => Span::ZERO,
        };
        let outcome = match rng.between(0, 9) {
            0 | 1 => failed(Reason::ExitCode(1), ProgramExit::Code(1)),
            2 => failed(Reason::Signal(Signal::TERM), ProgramExit::Signal(Signal::TERM)),
            _ => ExitOutcome::SUCCESS,
        };
        let ends_at = now.plus(duration).plus(rng.micros(10, 5_000));
        let program = SimProgram { ends_at, kill_at, outcome, handles_signals: !rng.one_in(5), waker: None };
        self.lock().live.insert(run.id, program);
        let (programs, id, report_after) = (self.clone(), run.id, rng.micros(10, 30_000));
        let owner = TaskOwner::Program { machine: self.host.machine };
        context.executor.spawn(owner, async move { programs.run_program(id, now.plus(report_after)).await });
        let programs = self.clone();
        context.executor.spawn(owner, async move {
            programs.host.context.time.sleep(report_after).await;
            programs.report(id, ProgramReport::Launched).await;
        });
    }

    /// Runs one program to its end. Its start is reported at `report_at`, and its end not before that.
    async fn run_program(&self, run: RunId, report_at: Span) {
        let ProgramHost { context, rng, source, .. } = &*self.host;
        let is_killed = poll_fn(|task| {
            let mut inner = self.lock();
            let Some(program) = inner.live.get_mut(&run) else { return Poll::Ready(false) };
            let now = context.time.now();
            let ends_at = program.kill_at.map_or(program.ends_at, |kill_at| kill_at.min(program.ends_at));
            if ends_at <= now {
                return Poll::Ready(program.kill_at == Some(ends_at));
            }
            program.waker = Some(task.waker().clone());
            context.time.wake_at(ends_at, task.waker());
            Poll::Pending
        });
        let is_killed = is_killed.await;
        let ended = self.lock().live.remove(&run);
        let Some(SimProgram { mut outcome, .. }) = ended else { return };
        if is_killed {
            outcome = failed(Reason::LockLost, ProgramExit::Signal(Signal::KILL));
        }
        let how = if is_killed { "is killed: its lease has expired" } else { describe_outcome(&outcome) };
        context.ended(source, run, how);
        self.lock().ended.insert(run, Some(outcome.clone()));
        self.keeper_works(None).await;
        let wait = report_at.minus(context.time.now()).plus(rng.micros(10, 30_000));
        context.time.sleep(wait).await;
        self.report(run, ProgramReport::Ended(outcome)).await;
    }

    /// Reports, while the keeper fails, what its journal shows about a launch.
    fn seek_later(&self, run: RunId) {
        let programs = self.clone();
        let owner = TaskOwner::Daemon { machine: self.host.machine };
        self.host.context.executor.spawn(owner, async move {
            let now = programs.host.context.time.now();
            let until = programs.lock().deadlines.get(&run).copied().unwrap_or(now.plus(SOUGHT_WITHIN));
            if programs.keeper_works(Some(until)).await {
                return programs.report_known(run);
            }
            let was_taken = {
                let inner = programs.lock();
                inner.live.contains_key(&run) || inner.ended.contains_key(&run)
            };
            programs.report(run, if was_taken { ProgramReport::Launched } else { ProgramReport::Lost }).await;
        });
    }

    /// Sends a signal to a program, which may ignore it.
    fn send_signal(&self, run: RunId, signal: Signal) {
        let mut inner = self.lock();
        let is_known = inner.ended.contains_key(&run);
        let Some(program) = inner.live.get_mut(&run) else {
            drop(inner);
            if !is_known {
                self.report_later(run, vec![ProgramReport::Lost]);
            }
            return;
        };
        if signal != Signal::KILL && !program.handles_signals {
            return;
        }
        let reaction = self.host.rng.micros(10, 800_000);
        let wait = if signal == Signal::KILL { Span::ZERO } else { reaction };
        let ends_at = self.host.context.time.now().plus(wait);
        if ends_at < program.ends_at {
            program.ends_at = ends_at;
            program.outcome = failed(Reason::Signal(signal), ProgramExit::Signal(signal));
        }
        let waker = program.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Reports all that is known about a program.
    fn report_known(&self, run: RunId) {
        let inner = self.lock();
        let reports = match (inner.live.contains_key(&run), inner.ended.get(&run)) {
            (true, _) => vec![ProgramReport::Launched],
            (false, Some(Some(outcome))) => vec![ProgramReport::Launched, ProgramReport::Ended(outcome.clone())],
            (false, Some(None)) => vec![ProgramReport::KeeperLost],
            (false, None) => vec![ProgramReport::Lost],
        };
        drop(inner);
        self.report_later(run, reports);
    }

    fn report_later(&self, run: RunId, reports: Vec<ProgramReport>) {
        let (programs, wait) = (self.clone(), self.host.rng.micros(10, 10_000));
        self.host.context.executor.spawn(self.report_owner(), async move {
            programs.host.context.time.sleep(wait).await;
            programs.keeper_works(None).await;
            for report in reports {
                programs.report(run, report).await;
            }
        });
    }

    /// Sends a report, which may be lost, late or duplicated.
    async fn report(&self, run: RunId, report: ProgramReport) {
        let ProgramHost { context, fault_plan, rng, source, .. } = &*self.host;
        let copies = fault_plan.reports(rng);
        if copies.is_empty() {
            context.log_program(source, run, || format!("is not reported: {report:?} is lost"));
        }
        for late in copies {
            if late.is_zero() {
                self.deliver(run, report.clone()).await;
            } else {
                let (programs, report) = (self.clone(), report.clone());
                context.executor.spawn(self.report_owner(), async move {
                    programs.host.context.time.sleep(late).await;
                    programs.deliver(run, report).await;
                });
            }
        }
    }

    async fn deliver(&self, run: RunId, report: ProgramReport) {
        let handle = self.lock().handle.clone();
        if let Some(handle) = handle {
            handle.report(run, report).await;
        }
    }

    /// Reports of a keeper are independent of the daemon; without a keeper they are in the daemon itself.
    fn report_owner(&self) -> TaskOwner {
        if self.host.has_keeper { TaskOwner::Detached } else { TaskOwner::Daemon { machine: self.host.machine } }
    }

    fn lock(&self) -> MutexGuard<'_, SimProgramTable> {
        lock_mutex(&self.inner)
    }
}

impl ProgramRunner for SimPrograms {
    fn launch(&self, request: LaunchRequest) {
        if self.is_failing() {
            return self.launch_later(request);
        }
        let LaunchRequest { run, fence, launch_by, kill_at } = request;
        self.start(&run, fence, launch_by, kill_at);
    }

    fn adopt(&self, run: Arc<Run>) {
        self.lock().requested.insert(run.id);
        if !self.is_failing() {
            return self.report_known(run.id);
        }
        if run.state == State::Starting {
            self.seek_later(run.id);
        }
    }

    /// Extends leases. A lease is never shortened.
    fn extend(&self, leases: &[(RunId, Span)]) {
        let mut inner = self.lock();
        for (run, until) in leases {
            // Its task wakes at the earlier end and reads the new one.
            if let Some(kill_at) = inner.live.get_mut(run).and_then(|program| program.kill_at.as_mut()) {
                *kill_at = (*until).max(*kill_at);
                self.host.context.extended(*run, *kill_at);
            }
        }
    }

    fn release(&self, _: RunId) {}

    fn stop(&self, run: &Run) {
        self.signal(run.id, run.terms.signal);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        if !self.is_failing() {
            return self.send_signal(run, signal);
        }
        let programs = self.clone();
        let owner = TaskOwner::Daemon { machine: self.host.machine };
        self.host.context.executor.spawn(owner, async move {
            programs.keeper_works(None).await;
            programs.send_signal(run, signal);
        });
    }

    /// The receiver may be slow, and its reply may be lost.
    fn deliver(&self, action: Arc<ActionRecord>) {
        let (programs, rng) = (self.clone(), &self.host.rng);
        let (wait, is_received, is_confirmed) = (rng.micros(10, 3_000_000), !rng.one_in(5), !rng.one_in(5));
        self.host.context.executor.spawn(TaskOwner::Daemon { machine: self.host.machine }, async move {
            let context = &programs.host.context;
            context.time.sleep(wait).await;
            if is_received {
                context.delivered(&programs.host.source, &action);
            }
            let result = match is_received && is_confirmed {
                true => DeliveryResult::Delivered,
                false => DeliveryResult::Failed("no reply".to_owned()),
            };
            let handle = programs.lock().handle.clone();
            if let Some(handle) = handle {
                handle.report_delivery(action.id, action.attempts, result).await;
            }
        });
    }

    /// The check may be slow, and its answer may be lost.
    fn probe(&self, request: ProbeRequest) {
        let (programs, rng) = (self.clone(), &self.host.rng);
        let (wait, holds, is_lost) = (rng.micros(10, 5_000_000), rng.one_in(3), rng.one_in(6));
        self.host.context.executor.spawn(TaskOwner::Daemon { machine: self.host.machine }, async move {
            programs.host.context.time.sleep(wait).await;
            let handle = programs.lock().handle.clone().filter(|_| !is_lost);
            if let Some(handle) = handle {
                let result = ProbeResult { holds, message: String::new() };
                handle.report_probe(request.run.id, request.attempt, result).await;
            }
        });
    }
}

fn failed(reason: Reason, exit: ProgramExit) -> ExitOutcome {
    ExitOutcome { success: false, reason: Some(reason), exit: Some(exit), written: None, response: None }
}

fn describe_outcome(outcome: &ExitOutcome) -> &'static str {
    if outcome.success { "succeeds" } else { "fails" }
}
