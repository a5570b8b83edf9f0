//! A machine: its clock, its programs, its line to the store, and the lives of the daemon on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::Record;
use cronhold_core::{DecisionContext, NodeId};
use cronhold_engine::{Engine, EngineEvent, EngineObserver, EntropySource, NodeHandle, NodePorts, Options};
use cronhold_store::{MemoryStore, Store};

use crate::chance::SimRandom;
use crate::check::DaemonChange;
use crate::connection::StoreConnection;
use crate::context::{SimContext, node_id};
use crate::deliberate_bugs::DeliberateBug;
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;
use crate::hint_delivery::HintDelivery;
use crate::observed_store::ObservedStore;
use crate::programs::{ProgramHost, SimPrograms};
use crate::scenario::{MachineSpec, machine_name};
use crate::time::WallClock;
use crate::trace;

/// A machine.
#[derive(Debug)]
pub(crate) struct SimMachine {
    /// Its name in the film.
    pub(crate) name: String,
    /// Its clock.
    pub(crate) clock: Arc<WallClock>,
    /// Whether there is one in this simulation.
    pub(crate) is_there: bool,
    number: usize,
    world: DecisionContext,
    context: SimContext,
    chance: SimRandom,
    fault_plan: FaultPlan,
    variant: DeliberateBug,
    store: Arc<dyn Store>,
    programs: SimPrograms,
    life: Option<DaemonLife>,
    /// Which act has paused its daemon.
    paused: Option<usize>,
}

/// One life of the daemon.
#[derive(Debug)]
struct DaemonLife {
    handle: NodeHandle,
    is_alive: Arc<AtomicBool>,
    is_stopping: bool,
}

/// What a machine is made of.
#[derive(Debug)]
pub(crate) struct MachineParts<'a> {
    /// What the simulation shares.
    pub(crate) context: &'a SimContext,
    /// The store that all share.
    pub(crate) store: &'a MemoryStore,
    /// What it is like.
    pub(crate) build: &'a MachineSpec,
    /// Its clock.
    pub(crate) clock: Arc<WallClock>,
    /// Its own chance.
    pub(crate) chance: SimRandom,
    /// What the way to the store is like.
    pub(crate) fault_plan: &'a FaultPlan,
    /// What is wrong with it on purpose.
    pub(crate) variant: DeliberateBug,
    /// Whether others use the store too.
    pub(crate) is_shared: bool,
}

impl SimMachine {
    /// A machine that is off.
    pub(crate) fn new(number: usize, parts: MachineParts<'_>) -> Self {
        let MachineParts { context, store, build, clock, chance, fault_plan, variant, is_shared } = parts;
        let name = machine_name(number);
        let tap = ObservedStore::new(store.clone(), context.clone(), number, is_shared);
        let programs = SimPrograms::new(ProgramHost {
            context: context.clone(),
            chance: chance.fork(),
            fault_plan: fault_plan.clone(),
            machine: number,
            who: name.clone(),
            has_keeper: build.has_keeper,
        });
        Self {
            clock,
            is_there: false,
            number,
            world: DecisionContext { labels: Arc::new(build.labels.clone()), ..context.world.clone() },
            context: context.clone(),
            fault_plan: fault_plan.clone(),
            variant,
            store: variant.before_the_store(Arc::new(tap), node_id(number)),
            programs,
            life: None,
            paused: None,
            name,
            chance,
        }
    }

    /// Its identity.
    pub(crate) fn node(&self) -> NodeId {
        node_id(self.number)
    }

    /// The way to talk to its daemon, while that is up.
    pub(crate) fn handle(&self) -> Option<&NodeHandle> {
        self.life.as_ref().map(|life| &life.handle)
    }

    /// Whose the tasks of its daemon are.
    pub(crate) fn whose(&self) -> TaskOwner {
        TaskOwner::Daemon { machine: self.number }
    }

    /// Its daemon starts.
    pub(crate) fn start(&mut self) {
        assert!(self.life.is_none(), "one daemon at a time");
        let is_alive = Arc::new(AtomicBool::new(true));
        let line = StoreConnection {
            store: Arc::clone(&self.store),
            context: self.context.clone(),
            fault_plan: self.fault_plan.clone(),
            chance: self.chance.fork(),
            machine: self.number,
            who: self.name.clone(),
            is_alive: Arc::clone(&is_alive),
            mail: HintDelivery::default(),
        };
        let store = self.variant.before_the_line(Arc::new(line), &self.context, self.whose(), &self.chance);
        let ports = NodePorts {
            clock: self.clock.clone(),
            entropy: Arc::new(MachineEntropy(self.chance.fork())),
            store,
            programs: self.variant.before_the_programs(Arc::new(self.programs.clone()), &self.context, self.whose()),
            feed: Arc::new(TraceObserver {
                context: self.context.clone(),
                who: self.name.clone(),
                programs: self.programs.clone(),
            }),
        };
        // Each claim is decided ahead, so that whatever can happen between decision and commit happens here.
        let options = Options { prepare_ahead_min: 1, ..Options::new(self.node(), &self.name) };
        let (engine, handle) = Engine::new(ports, options, self.world.clone());
        self.programs.connect(handle.clone());
        let begins = handle.clone();
        self.context.executor.spawn(self.whose(), async move { begins.begin().await });
        self.life = Some(DaemonLife { handle, is_alive, is_stopping: false });
        self.context.say(&self.name, || "starts".to_owned());
        self.context.turned(self.number, DaemonChange::Up);
        let (context, who) = (self.context.clone(), self.name.clone());
        self.context.executor.spawn(self.whose(), async move {
            let end = engine.run().await;
            context.say(&who, || end.map_or_else(|fault| format!("gives up: {fault}"), |()| "has stopped".to_owned()));
        });
    }

    /// Its daemon is asked to stop. Answers whether there is one.
    pub(crate) fn stop(&mut self) -> bool {
        let Some(life) = &mut self.life else { return false };
        life.is_stopping = true;
        self.context.say(&self.name, || "is asked to stop".to_owned());
        self.context.turned(self.number, DaemonChange::Down);
        let handle = life.handle.clone();
        self.context.executor.spawn(TaskOwner::Nobody, async move { handle.stop().await });
        true
    }

    /// Its daemon is killed, wherever it is, and also one that was asked to stop and takes too long.
    pub(crate) fn crash(&mut self) {
        let Some(life) = self.life.take() else { return };
        if self.paused.take().is_some() {
            self.context.resumed(self.number, &self.name);
        }
        self.context.say(&self.name, || if life.is_stopping { "is gone" } else { "crashes" }.to_owned());
        self.context.turned(self.number, DaemonChange::Down);
        life.is_alive.store(false, Ordering::Relaxed);
        self.context.executor.end(self.whose());
        self.programs.disconnect();
    }

    /// Its daemon stands still, by an act of this number. Answers whether it did not already.
    pub(crate) fn pause(&mut self, act: usize) -> bool {
        if self.life.is_none() || self.paused.is_some() {
            return false;
        }
        self.paused = Some(act);
        self.context.paused(self.number, &self.name);
        true
    }

    /// Its daemon goes on, if that act has paused it.
    pub(crate) fn resume(&mut self, act: usize) {
        if self.paused.take_if(|by| *by == act).is_some() {
            self.context.resumed(self.number, &self.name);
        }
    }

    /// Whether it has programs.
    pub(crate) fn is_busy(&self) -> bool {
        self.programs.are_there()
    }

    /// The simulation is over. Its daemon and its programs hold each other, and nobody would let go of them otherwise.
    pub(crate) fn dismiss(&mut self) {
        self.life = None;
        self.programs.dismiss();
    }

    /// Its keeper dies.
    pub(crate) fn lose_keeper(&self) {
        self.context.say(&self.name, || "loses its keeper".to_owned());
        self.programs.lose_keeper();
    }

    /// All trouble is over: what is paused goes on, and what was asked to stop is gone.
    pub(crate) fn recover(&mut self) {
        self.clock.set(0);
        if self.paused.take().is_some() {
            self.context.resumed(self.number, &self.name);
        }
        if self.life.as_ref().is_some_and(|life| life.is_stopping) {
            self.crash();
        }
        if self.life.is_none() && self.is_there {
            self.start();
        }
    }
}

/// Chance as a node sees it.
#[derive(Debug)]
struct MachineEntropy(SimRandom);

impl EntropySource for MachineEntropy {
    fn bits(&self) -> u128 {
        u128::from(self.0.bits()) << 64 | u128::from(self.0.bits())
    }
}

/// News of a node, for the film and for whoever has its programs.
#[derive(Debug)]
struct TraceObserver {
    context: SimContext,
    who: String,
    programs: SimPrograms,
}

impl EngineObserver for TraceObserver {
    fn on_event(&self, news: &EngineEvent<'_>) {
        match news {
            EngineEvent::Ready { .. } => self.programs.ready(),
            EngineEvent::Committed { done, .. } => {
                for change in &done.changes {
                    if let RecordChange::Put(Record::Run(run)) = change
                        && run.state.is_finished()
                    {
                        self.programs.settled(run.id);
                    }
                }
            }
            _ => {}
        }
        if let Some(text) = trace::of_news(news) {
            self.context.say(&self.who, || text);
        }
    }
}
