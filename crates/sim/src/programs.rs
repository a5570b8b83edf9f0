//! The programs of one machine: they take as long as their runs say, some fail, some do not listen. Whoever has them
//! ends those whose lease is over, whatever the daemon does. They die with the machine's daemon unless a keeper holds
//! them; then they die with the keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use cronhold_core::RunId;
use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::{ProgramExit, ResolvedProgram, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_engine::{LaunchRequest, NodeHandle, ProgramRunner};
use cronhold_schedule::Span;

use crate::chance::SimRandom;
use crate::check::ObservedLaunch;
use crate::context::{SimContext, node_id};
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;

/// The programs of one machine. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct SimPrograms {
    place: Arc<ProgramHost>,
    inner: Arc<Mutex<SimProgramTable>>,
}

/// Where programs are.
#[derive(Debug)]
pub(crate) struct ProgramHost {
    /// What the simulation shares.
    pub(crate) context: SimContext,
    /// Their own chance.
    pub(crate) chance: SimRandom,
    /// What the way of their reports is like.
    pub(crate) fault_plan: FaultPlan,
    /// Which machine, and its name.
    pub(crate) machine: usize,
    pub(crate) who: String,
    /// Whether programs outlive the daemon.
    pub(crate) has_keeper: bool,
}

#[derive(Debug, Default)]
struct SimProgramTable {
    /// Where reports go, while the daemon is up.
    handle: Option<NodeHandle>,
    /// What this life of the daemon has asked for.
    asked: BTreeSet<RunId>,
    live: BTreeMap<RunId, SimProgram>,
    /// What is remembered of programs that are no more until the store has it: how they ended, or nothing when they
    /// died with their keeper.
    ended: BTreeMap<RunId, Option<ExitOutcome>>,
}

#[derive(Debug)]
struct SimProgram {
    ends_at: Span,
    /// When its lease is over.
    kill_at: Option<Span>,
    verdict: ExitOutcome,
    /// Whether it ends when it is asked to, or only when it is killed.
    listens: bool,
    waker: Option<Waker>,
}

impl SimPrograms {
    /// No programs yet.
    pub(crate) fn new(place: ProgramHost) -> Self {
        Self { place: Arc::new(place), inner: Arc::default() }
    }

    /// The daemon is up, and can be told.
    pub(crate) fn connect(&self, handle: NodeHandle) {
        self.lock().handle = Some(handle);
    }

    /// The daemon has asked for all that its earlier lives have left. What else there is it has to hear of.
    pub(crate) fn ready(&self) {
        let inner = self.lock();
        let known = inner.live.keys().chain(inner.ended.keys());
        let strays: Vec<RunId> = known.filter(|run| !inner.asked.contains(run)).copied().collect();
        drop(inner);
        strays.into_iter().for_each(|run| self.answer(run));
    }

    /// The store has the end of a run, so nobody else has to remember it.
    pub(crate) fn settled(&self, run: RunId) {
        self.lock().ended.remove(&run);
    }

    /// The daemon is gone, and without a keeper so are the programs.
    pub(crate) fn disconnect(&self) {
        let mut inner = self.lock();
        inner.handle = None;
        inner.asked.clear();
        if self.place.has_keeper {
            return;
        }
        inner.ended.clear();
        drop(inner);
        self.end_all("dies");
    }

    /// The keeper is gone, and so are the programs. Another one finds out and says so.
    pub(crate) fn lose_keeper(&self) {
        let died = self.end_all("dies with its keeper");
        self.lock().ended.extend(died.iter().map(|run| (*run, None)));
        died.into_iter().for_each(|run| self.report_later(run, vec![ProgramReport::KeeperLost]));
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.lock().live.is_empty()
    }

    /// Nobody will be told anything any more.
    pub(crate) fn dismiss(&self) {
        self.lock().handle = None;
    }

    fn end_all(&self, how: &str) -> Vec<RunId> {
        let died = std::mem::take(&mut self.lock().live);
        self.place.context.executor.end(TaskOwner::Program { machine: self.place.machine });
        for run in died.keys() {
            self.place.context.ended(&self.place.who, *run, how);
        }
        died.into_keys().collect()
    }

    fn begin(&self, run: &Run, fence: Option<u64>, launch_by: Span, kill_at: Option<Span>) {
        let ProgramHost { context, chance, who, .. } = &*self.place;
        let mut inner = self.lock();
        inner.asked.insert(run.id);
        // Whoever starts programs knows what it was asked before.
        if inner.live.contains_key(&run.id) || inner.ended.contains_key(&run.id) {
            return;
        }
        drop(inner);
        let now = context.time.now();
        let is_late = launch_by < now || kill_at.is_some_and(|kill_at| kill_at <= now);
        if is_late || chance.one_in(60) {
            let why = if is_late { "it came too late to be started" } else { "no such file" };
            return self.report_later(run.id, vec![ProgramReport::NotLaunched(why.to_owned())]);
        }
        let node = node_id(self.place.machine);
        context.launched(who, &ObservedLaunch { run, node, fence, kill_at });
        let duration = match &run.work {
            Some(ResolvedProgram::Noop(duration)) => *duration,
            _ => Span::ZERO,
        };
        let verdict = match chance.between(0, 9) {
            0 | 1 => failed(Reason::ExitCode(1), ProgramExit::Code(1)),
            2 => failed(Reason::Signal(Signal::TERM), ProgramExit::Signal(Signal::TERM)),
            _ => ExitOutcome::SUCCESS,
        };
        let ends_at = now.plus(duration).plus(chance.micros(10, 5_000));
        let program = SimProgram { ends_at, kill_at, verdict, listens: !chance.one_in(5), waker: None };
        self.lock().live.insert(run.id, program);
        let (programs, id, told_after) = (self.clone(), run.id, chance.micros(10, 30_000));
        let whose = TaskOwner::Program { machine: self.place.machine };
        context.executor.spawn(whose, async move { programs.simulate(id, now.plus(told_after)).await });
        let programs = self.clone();
        context.executor.spawn(whose, async move {
            programs.place.context.time.sleep(told_after).await;
            programs.report(id, ProgramReport::Launched).await;
        });
    }

    /// One program to its end. That it has started is told at some moment, and its end not before that.
    async fn simulate(&self, run: RunId, told_at: Span) {
        let ProgramHost { context, chance, who, .. } = &*self.place;
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
        let Some(SimProgram { mut verdict, .. }) = ended else { return };
        if is_killed {
            verdict = failed(Reason::LockLost, ProgramExit::Signal(Signal::KILL));
        }
        let how = if is_killed { "is killed: its lease is over" } else { verdict_in_words(&verdict) };
        context.ended(who, run, how);
        self.lock().ended.insert(run, Some(verdict.clone()));
        let wait = told_at.minus(context.time.now()).plus(chance.micros(10, 30_000));
        context.time.sleep(wait).await;
        self.report(run, ProgramReport::Ended(verdict)).await;
    }

    /// Tells a program to end, by a signal that it may not listen to.
    fn tell(&self, run: RunId, signal: Signal) {
        let mut inner = self.lock();
        let is_known = inner.ended.contains_key(&run);
        let Some(program) = inner.live.get_mut(&run) else {
            drop(inner);
            if !is_known {
                self.report_later(run, vec![ProgramReport::Lost]);
            }
            return;
        };
        if signal != Signal::KILL && !program.listens {
            return;
        }
        let reaction = self.place.chance.micros(10, 800_000);
        let wait = if signal == Signal::KILL { Span::ZERO } else { reaction };
        let ends_at = self.place.context.time.now().plus(wait);
        if ends_at < program.ends_at {
            program.ends_at = ends_at;
            program.verdict = failed(Reason::Signal(signal), ProgramExit::Signal(signal));
        }
        let waker = program.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Says all that is known of a program.
    fn answer(&self, run: RunId) {
        let inner = self.lock();
        let reports = match (inner.live.contains_key(&run), inner.ended.get(&run)) {
            (true, _) => vec![ProgramReport::Launched],
            (false, Some(Some(verdict))) => vec![ProgramReport::Launched, ProgramReport::Ended(verdict.clone())],
            (false, Some(None)) => vec![ProgramReport::KeeperLost],
            (false, None) => vec![ProgramReport::Lost],
        };
        drop(inner);
        self.report_later(run, reports);
    }

    fn report_later(&self, run: RunId, reports: Vec<ProgramReport>) {
        let (programs, wait) = (self.clone(), self.place.chance.micros(10, 10_000));
        self.place.context.executor.spawn(self.courier(), async move {
            programs.place.context.time.sleep(wait).await;
            for report in reports {
                programs.report(run, report).await;
            }
        });
    }

    /// Sends a report on its way, on which it may get lost, come late or come twice.
    async fn report(&self, run: RunId, report: ProgramReport) {
        let ProgramHost { context, fault_plan, chance, who, .. } = &*self.place;
        let copies = fault_plan.reports(chance);
        if copies.is_empty() {
            context.say_of(who, run, || format!("is not reported: {report:?} gets lost"));
        }
        for late in copies {
            if late.is_zero() {
                self.deliver(run, report.clone()).await;
            } else {
                let (programs, report) = (self.clone(), report.clone());
                context.executor.spawn(self.courier(), async move {
                    programs.place.context.time.sleep(late).await;
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

    /// Reports of a keeper are on their way whatever the daemon does; without one they are in the daemon itself.
    fn courier(&self) -> TaskOwner {
        if self.place.has_keeper { TaskOwner::Nobody } else { TaskOwner::Daemon { machine: self.place.machine } }
    }

    fn lock(&self) -> MutexGuard<'_, SimProgramTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramRunner for SimPrograms {
    fn launch(&self, request: LaunchRequest) {
        let LaunchRequest { run, fence, launch_by, kill_at } = request;
        self.begin(&run, fence, launch_by, kill_at);
    }

    fn adopt(&self, run: Arc<Run>) {
        self.lock().asked.insert(run.id);
        self.answer(run.id);
    }

    /// Programs may live longer. One that is told an earlier end than before keeps the later.
    fn extend(&self, leases: &[(RunId, Span)]) {
        let mut inner = self.lock();
        for (run, until) in leases {
            // Its task wakes at the earlier end, and finds that it has moved.
            if let Some(kill_at) = inner.live.get_mut(run).and_then(|program| program.kill_at.as_mut()) {
                *kill_at = (*until).max(*kill_at);
                self.place.context.extended(*run, *kill_at);
            }
        }
    }

    fn stop(&self, run: &Run) {
        self.tell(run.id, run.terms.signal);
    }

    fn signal(&self, run: RunId, signal: Signal) {
        self.tell(run, signal);
    }
}

fn failed(reason: Reason, exit: ProgramExit) -> ExitOutcome {
    ExitOutcome { success: false, reason: Some(reason), exit: Some(exit), written: None }
}

fn verdict_in_words(verdict: &ExitOutcome) -> &'static str {
    if verdict.success { "succeeds" } else { "fails" }
}
