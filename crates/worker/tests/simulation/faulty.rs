//! The store as one process reaches it: requests and replies get lost, the process crashes, and others go on in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::task::{ChildName, PortAddress, StepEnding, TaskAct, TaskId, TaskRefusal, TaskUnit, UnitOrigin};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::{
    HeartbeatReply, LeaseRequest, LeasedStep, PortWindow, ProcessHeartbeat, TaskReceipt, TaskStore, TaskStoreWrapper,
    TaskUnitError, TaskWindow, WindowLimits,
};
use cronhold_store::{Fault, Pending};

use crate::promises::TaskPromises;
use crate::stage::ActorStage;

/// One of this many requests is not carried out, or its reply is lost.
const FAULT_IN: usize = 12;
/// One of this many requests is the last one of its process.
const CRASH_IN: usize = 90;

/// A mistake that a store or a worker could have, to test that the checks find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreMistake {
    /// A step that has lost its lease writes anyway.
    NoFence,
    /// What a step has read is not taken.
    NoTake,
    /// A write does not wake the task.
    NoWake,
    /// A request takes effect each time that it is sent.
    NoKey,
    /// The lease of a lost step does not expire.
    NoExpiry,
    /// A step is carried out again when its unit is sent again.
    StepTwice,
}

impl StoreMistake {
    pub(crate) const ALL: [Self; 6] =
        [Self::NoFence, Self::NoTake, Self::NoWake, Self::NoKey, Self::NoExpiry, Self::StepTwice];

    /// Parts of findings, one of which reports the mistake.
    pub(crate) const fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::NoFence | Self::NoTake | Self::NoKey | Self::StepTwice => &["items differ", "published"],
            Self::NoWake => &["is left"],
            Self::NoExpiry => &["is still"],
        }
    }
}

/// A handle of one process on the store.
#[derive(Debug)]
pub(crate) struct FaultyTasks {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) stage: Arc<ActorStage>,
    pub(crate) promises: Arc<TaskPromises>,
    pub(crate) actor: usize,
    pub(crate) mistake: Option<StoreMistake>,
    has_crashed: AtomicBool,
    /// Whether the process can crash.
    is_mortal: bool,
}

impl FaultyTasks {
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        stage: Arc<ActorStage>,
        promises: Arc<TaskPromises>,
        actor: usize,
        mistake: Option<StoreMistake>,
        is_mortal: bool,
    ) -> Self {
        Self { store, stage, promises, actor, mistake, has_crashed: AtomicBool::new(false), is_mortal }
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.has_crashed.load(Ordering::SeqCst)
    }

    /// Before the request reaches the store.
    fn send(&self, what: &str) -> Result<(), Fault> {
        self.stage.interrupt(self.actor);
        if self.has_crashed() {
            return Err(Fault::Permanent("the process is dead".to_owned()));
        }
        if self.stage.once_in(FAULT_IN) {
            self.note("is lost", what);
            return Err(Fault::Unavailable("the request is lost".to_owned()));
        }
        self.crash("crashes before", what)
    }

    /// After the store has carried out the request.
    fn receive(&self, what: &str) -> Result<(), Fault> {
        self.promises.check(&*self.store, &self.stage);
        self.stage.interrupt(self.actor);
        if self.stage.once_in(FAULT_IN) {
            self.note("loses the reply to", what);
            return Err(Fault::OutcomeUnknown("the reply is lost".to_owned()));
        }
        self.crash("crashes after", what)
    }

    fn crash(&self, when: &str, what: &str) -> Result<(), Fault> {
        if !self.is_mortal || !self.stage.once_in(CRASH_IN) {
            return Ok(());
        }
        self.promises.count_crash();
        self.stage.trace(|| format!("{} {when} {what}", self.actor));
        self.has_crashed.store(true, Ordering::SeqCst);
        Err(Fault::Permanent("the process is dead".to_owned()))
    }

    fn note(&self, how: &str, what: &str) {
        self.promises.count_fault();
        self.stage.trace(|| format!("{} {how} {what}", self.actor));
    }

    async fn request<T>(&self, what: &str, request: Pending<'_, Result<T, Fault>>) -> Result<T, Fault> {
        self.send(what)?;
        let reply = request.await;
        self.receive(what)?;
        reply
    }

    /// The unit as a store or a worker with the mistake has it.
    fn mistaken(&self, mut unit: TaskUnit) -> TaskUnit {
        match self.mistake {
            Some(StoreMistake::NoTake) => unit.acts.retain(|act| !matches!(act, TaskAct::Take { .. })),
            Some(StoreMistake::NoWake) => {
                for act in &mut unit.acts {
                    if let TaskAct::Write { notify, .. } = act {
                        *notify = false;
                    }
                }
            }
            Some(StoreMistake::NoKey) => {
                if let UnitOrigin::Request { key } = &mut unit.origin {
                    *key = None;
                }
            }
            _ => {}
        }
        unit
    }

    /// Commits a unit once more where a mistake does so.
    async fn commit_again(&self, unit: &TaskUnit, result: &Result<TaskReceipt, TaskUnitError>) {
        let UnitOrigin::Step { ending, .. } = &unit.origin else { return };
        let is_again = match (self.mistake, result) {
            (Some(StoreMistake::NoFence), Err(TaskUnitError::Refused(TaskRefusal::StepLost(_)))) => true,
            (Some(StoreMistake::StepTwice), Ok(TaskReceipt::Repeated(_))) => *ending != StepEnding::Started,
            _ => false,
        };
        if is_again {
            let writes = unit.acts.iter().filter(|act| matches!(act, TaskAct::Write { .. }));
            self.store.commit(vec![TaskUnit::request(writes.cloned().collect())]).await;
        }
    }
}

impl TaskStoreWrapper for FaultyTasks {
    fn inside(&self) -> &dyn TaskStore {
        &*self.store
    }

    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        Box::pin(async move {
            let count = units.len();
            let failed = |fault: Fault| vec![Err(TaskUnitError::Fault(fault)); count];
            if let Err(fault) = self.send("a commit") {
                return failed(fault);
            }
            let given = units.clone();
            let results = self.store.commit(units.into_iter().map(|unit| self.mistaken(unit)).collect()).await;
            for (unit, result) in given.iter().zip(&results) {
                self.stage.trace(|| format!("{} commits {unit:?}: {result:?}", self.actor));
                self.promises.note_commit(unit, result, &self.stage);
                self.commit_again(unit, result).await;
            }
            match self.receive("a commit") {
                Ok(()) => results,
                Err(fault) => failed(fault),
            }
        })
    }

    fn lease(&self, mut request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        if self.mistake == Some(StoreMistake::NoExpiry) {
            request.lease = Span::from_secs(1_000_000_000);
        }
        Box::pin(async move {
            let leased = self.request("a lease", self.store.lease(request)).await;
            self.stage.trace(|| {
                let tasks =
                    leased.as_ref().map(|steps| steps.iter().map(|step| step.window.task.id).collect::<Vec<_>>());
                format!("{} leases {tasks:?}", self.actor)
            });
            leased
        })
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        Box::pin(self.request("a heartbeat", self.store.heartbeat(beat)))
    }

    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>> {
        Box::pin(self.request("a window", self.store.window(task, limits)))
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        Box::pin(self.request("a read", self.store.items(port, from, limits)))
    }

    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>> {
        Box::pin(self.request("a child", self.store.child(task, name)))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move {
            self.stage.interrupt(self.actor);
            self.store.time().await
        })
    }
}
