//! The programs of one machine: they take as long as their runs say, some fail, some do not listen, and they die with
//! the machine's daemon unless a keeper holds them.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use cronhold_core::RunId;
use cronhold_core::command::{Report, Verdict};
use cronhold_core::record::{Exit, Run, Work};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_engine::{Handle, Outside, Task};
use cronhold_schedule::Span;
use cronhold_store::Pending;

use crate::chance::Chance;
use crate::executor::Whose;
use crate::stage::Stage;

/// The programs of one machine. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    stage: Stage,
    chance: Chance,
    machine: usize,
    who: String,
    /// Whether programs outlive the daemon.
    has_keeper: bool,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Where reports go, while the daemon is up.
    handle: Option<Handle>,
    live: BTreeMap<RunId, Program>,
    /// What the keeper remembers of programs that have ended; without one, what this life of the daemon has seen.
    ended: BTreeMap<RunId, Verdict>,
}

#[derive(Debug)]
struct Program {
    ends_at: Span,
    verdict: Verdict,
    /// Whether it ends when it is asked to, or only when it is killed.
    listens: bool,
    waker: Option<Waker>,
}

impl Programs {
    /// No programs yet.
    pub(crate) fn new(stage: Stage, chance: Chance, machine: usize, who: String, has_keeper: bool) -> Self {
        Self { stage, chance, machine, who, has_keeper, inner: Arc::default() }
    }

    /// The daemon is up, and can be told.
    pub(crate) fn connect(&self, handle: Handle) {
        self.lock().handle = Some(handle);
    }

    /// The daemon is gone, and without a keeper so are the programs.
    pub(crate) fn disconnect(&self) {
        let mut inner = self.lock();
        inner.handle = None;
        if self.has_keeper {
            return;
        }
        inner.ended.clear();
        let died = std::mem::take(&mut inner.live);
        drop(inner);
        self.stage.executor.end(Whose::Program { machine: self.machine });
        for run in died.into_keys() {
            self.stage.ended(&self.who, run, "dies");
        }
    }

    fn launch(&self, run: &Run) {
        let known = {
            let inner = self.lock();
            inner.live.contains_key(&run.id) || inner.ended.contains_key(&run.id)
        };
        // Whoever starts programs knows what it was asked before.
        if known {
            return;
        }
        if self.chance.one_in(60) {
            let report = Report::NotLaunched("no such file".to_owned());
            return self.report_later(run.id, vec![report]);
        }
        self.stage.launched(&self.who, run);
        let duration = match &run.work {
            Some(Work::Noop(duration)) => *duration,
            _ => Span::ZERO,
        };
        let verdict = match self.chance.between(0, 9) {
            0 | 1 => failed(Reason::ExitCode(1), Exit::Code(1)),
            2 => failed(Reason::Signal(Signal::TERM), Exit::Signal(Signal::TERM)),
            _ => Verdict::SUCCESS,
        };
        let ends_at = self.stage.time.now().plus(duration).plus(self.chance.micros(10, 5_000));
        let program = Program { ends_at, verdict, listens: !self.chance.one_in(5), waker: None };
        self.lock().live.insert(run.id, program);
        let (programs, id, start) = (self.clone(), run.id, self.chance.micros(10, 30_000));
        self.stage.executor.spawn(self.whose(), async move { programs.play(id, start).await });
    }

    /// One program from its start to its end.
    async fn play(&self, run: RunId, start: Span) {
        self.stage.time.sleep(start).await;
        self.report(run, Report::Launched).await;
        poll_fn(|context| {
            let mut inner = self.lock();
            let Some(program) = inner.live.get_mut(&run) else { return Poll::Ready(()) };
            if program.ends_at <= self.stage.time.now() {
                return Poll::Ready(());
            }
            program.waker = Some(context.waker().clone());
            self.stage.time.wake_at(program.ends_at, context.waker());
            Poll::Pending
        })
        .await;
        let ended = self.lock().live.remove(&run);
        let Some(Program { verdict, .. }) = ended else { return };
        self.stage.ended(&self.who, run, if verdict.success { "succeeds" } else { "fails" });
        self.lock().ended.insert(run, verdict.clone());
        self.stage.time.sleep(self.chance.micros(10, 30_000)).await;
        self.report(run, Report::Ended(verdict)).await;
    }

    /// Tells a program to end, by a signal that it may not listen to.
    fn tell(&self, run: RunId, signal: Signal) {
        let mut inner = self.lock();
        let is_known = inner.ended.contains_key(&run);
        let Some(program) = inner.live.get_mut(&run) else {
            drop(inner);
            if !is_known {
                self.report_later(run, vec![Report::Lost]);
            }
            return;
        };
        if signal != Signal::KILL && !program.listens {
            return;
        }
        let reaction = self.chance.micros(10, 800_000);
        let ends_at = self.stage.time.now().plus(if signal == Signal::KILL { Span::ZERO } else { reaction });
        if ends_at < program.ends_at {
            program.ends_at = ends_at;
            program.verdict = failed(Reason::Signal(signal), Exit::Signal(signal));
        }
        let waker = program.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Says what became of a program of an earlier life.
    fn adopt(&self, run: RunId) {
        let inner = self.lock();
        let reports = match (inner.live.contains_key(&run), inner.ended.get(&run)) {
            (true, _) => vec![Report::Launched],
            (false, Some(verdict)) => vec![Report::Launched, Report::Ended(verdict.clone())],
            (false, None) => vec![Report::Lost],
        };
        drop(inner);
        self.report_later(run, reports);
    }

    fn report_later(&self, run: RunId, reports: Vec<Report>) {
        let (programs, wait) = (self.clone(), self.chance.micros(10, 10_000));
        self.stage.executor.spawn(Whose::Daemon { machine: self.machine }, async move {
            programs.stage.time.sleep(wait).await;
            for report in reports {
                programs.report(run, report).await;
            }
        });
    }

    async fn report(&self, run: RunId, report: Report) {
        let handle = self.lock().handle.clone();
        if let Some(handle) = handle {
            handle.report(run, report).await;
        }
    }

    fn whose(&self) -> Whose {
        if self.has_keeper { Whose::Nobody } else { Whose::Program { machine: self.machine } }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outside for Programs {
    fn perform(&self, task: Task) -> Pending<'_, ()> {
        Box::pin(async move {
            match task {
                Task::Launch { run, .. } => self.launch(&run),
                Task::Adopt { run } => self.adopt(run.id),
                Task::Stop { run } => self.tell(run.id, run.terms.signal),
                Task::Signal { run, signal } => self.tell(run, signal),
                Task::Extend { .. } => {}
            }
        })
    }
}

fn failed(reason: Reason, exit: Exit) -> Verdict {
    Verdict { success: false, reason: Some(reason), exit: Some(exit), written: None }
}
