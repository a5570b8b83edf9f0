//! A machine: its clock, its programs, its connection to the store, and its daemon, which may crash and restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::decision::RecordChange;
use cronhold_core::policy::retention::KeptSpans;
use cronhold_core::record::Record;
use cronhold_core::{DecisionContext, NodeId};
use cronhold_engine::{Engine, EngineEvent, EngineObserver, EntropySource, NodeHandle, NodePorts, Options};
use cronhold_schedule::Span;
use cronhold_store::{MemoryStore, Store};

use crate::check::DaemonChange;
use crate::connection::StoreConnection;
use crate::context::{SimContext, node_id};
use crate::deliberate_bugs::DeliberateBug;
use crate::executor::TaskOwner;
use crate::faults::FaultPlan;
use crate::hint_delivery::HintDelivery;
use crate::observed_store::ObservedStore;
use crate::programs::{ProgramHost, SimPrograms};
use crate::random::SimRandom;
use crate::rollback::{RollbackClient, RollbackServer};
use crate::scenario::{MachineSpec, machine_name};
use crate::time::WallClock;
use crate::trace;
use crate::{NEWER_ZONES, newer_zones};

/// How long expired records are kept: longer than any fault phase, so that expiry does not hide what checkers look for.
pub(crate) const KEPT: Span = Span::from_secs(3 * 3_600);

#[derive(Debug)]
pub(crate) struct SimMachine {
    /// Its name in the trace.
    pub(crate) name: String,
    pub(crate) clock: Arc<WallClock>,
    /// Whether the scenario has started it.
    pub(crate) is_started: bool,
    number: usize,
    world: DecisionContext,
    context: SimContext,
    rng: SimRandom,
    fault_plan: FaultPlan,
    bug: DeliberateBug,
    store: Arc<dyn Store>,
    programs: SimPrograms,
    daemon: Option<DaemonProcess>,
    /// Number of the scenario event that paused its daemon.
    paused: Option<usize>,
    /// The store's part of a recovery, if the store can be rolled back.
    rollback_server: Option<Arc<RollbackServer>>,
}

/// One daemon process.
#[derive(Debug)]
struct DaemonProcess {
    handle: NodeHandle,
    is_alive: Arc<AtomicBool>,
    is_stopping: bool,
}

/// Arguments of [`SimMachine::new`].
#[derive(Debug)]
pub(crate) struct MachineParts<'a> {
    pub(crate) context: &'a SimContext,
    /// The store of all machines.
    pub(crate) store: &'a MemoryStore,
    pub(crate) build: &'a MachineSpec,
    pub(crate) clock: Arc<WallClock>,
    pub(crate) rng: SimRandom,
    /// Faults of its connection.
    pub(crate) fault_plan: &'a FaultPlan,
    /// The bug to inject.
    pub(crate) bug: DeliberateBug,
    /// Whether nodes share the store.
    pub(crate) is_shared: bool,
    /// The store's part of a recovery, if the store can be rolled back.
    pub(crate) rollback_server: Option<Arc<RollbackServer>>,
}

impl SimMachine {
    /// A machine whose daemon is not running.
    pub(crate) fn new(number: usize, parts: MachineParts<'_>) -> Self {
        let MachineParts { context, store, build, clock, rng, fault_plan, bug, is_shared, rollback_server } = parts;
        let name = machine_name(number);
        let observed = ObservedStore::new(store.clone(), context.clone(), number, is_shared);
        let programs = SimPrograms::new(ProgramHost {
            context: context.clone(),
            rng: rng.fork(),
            fault_plan: fault_plan.clone(),
            machine: number,
            source: name.clone(),
            has_keeper: build.has_keeper,
            hides_failures: bug == DeliberateBug::HiddenKeeperFailures,
        });
        Self {
            clock,
            is_started: false,
            number,
            world: DecisionContext { labels: Arc::new(build.labels.clone()), ..world_of(build, &context.world) },
            context: context.clone(),
            fault_plan: fault_plan.clone(),
            bug,
            store: bug.wrap_store(Arc::new(observed), node_id(number)),
            programs,
            daemon: None,
            paused: None,
            rollback_server,
            name,
            rng,
        }
    }

    /// The id of its node.
    pub(crate) fn node(&self) -> NodeId {
        node_id(self.number)
    }

    /// The handle of its daemon; `None` while the daemon is down.
    pub(crate) fn handle(&self) -> Option<&NodeHandle> {
        self.daemon.as_ref().map(|daemon| &daemon.handle)
    }

    /// The owner of the tasks of its daemon.
    pub(crate) fn owner(&self) -> TaskOwner {
        TaskOwner::Daemon { machine: self.number }
    }

    /// Starts its daemon.
    pub(crate) fn start(&mut self) {
        assert!(self.daemon.is_none(), "one daemon at a time");
        let is_alive = Arc::new(AtomicBool::new(true));
        let connection = StoreConnection {
            store: Arc::clone(&self.store),
            context: self.context.clone(),
            fault_plan: self.fault_plan.clone(),
            rng: self.rng.fork(),
            machine: self.number,
            source: self.name.clone(),
            is_alive: Arc::clone(&is_alive),
            hint_delivery: HintDelivery::default(),
            rollback: self.rollback_server.as_ref().map(|server| {
                let restores = self.bug != DeliberateBug::NothingRestored;
                RollbackClient::new(Arc::clone(server), self.number as u64, restores)
            }),
        };
        let store = self.bug.wrap_connection(Arc::new(connection), &self.context, self.owner(), &self.rng);
        let ports = NodePorts {
            clock: self.clock.clone(),
            entropy: Arc::new(MachineEntropy(self.rng.fork())),
            store,
            programs: self.bug.wrap_programs(Arc::new(self.programs.clone()), &self.context, self.owner()),
            feed: Arc::new(TraceObserver {
                context: self.context.clone(),
                source: self.name.clone(),
                machine: self.number,
                programs: self.programs.clone(),
            }),
        };
        // Every claim is prepared ahead, so that faults can fall between its decision and its commit.
        let kept = KeptSpans { outcomes: KEPT, removed_job: KEPT, ad_hoc_job: KEPT, node: KEPT, fence: KEPT };
        let options = Options { prepare_ahead_min: 1, kept, ..Options::new(self.node(), &self.name) };
        let (engine, handle) = Engine::new(ports, options, self.world.clone());
        self.programs.connect(handle.clone());
        let beginning = handle.clone();
        self.context.executor.spawn(self.owner(), async move { beginning.begin().await });
        self.daemon = Some(DaemonProcess { handle, is_alive, is_stopping: false });
        self.context.log(&self.name, || "starts".to_owned());
        self.context.daemon_changed(self.number, DaemonChange::Up);
        let (context, source) = (self.context.clone(), self.name.clone());
        self.context.executor.spawn(self.owner(), async move {
            let end = engine.run().await;
            context
                .log(&source, || end.map_or_else(|fault| format!("gives up: {fault}"), |()| "has stopped".to_owned()));
        });
    }

    /// Asks its daemon to stop. Returns false if the daemon is not running.
    pub(crate) fn stop(&mut self) -> bool {
        let Some(daemon) = &mut self.daemon else { return false };
        daemon.is_stopping = true;
        self.context.log(&self.name, || "is asked to stop".to_owned());
        self.context.daemon_changed(self.number, DaemonChange::Down);
        let handle = daemon.handle.clone();
        self.context.executor.spawn(TaskOwner::Detached, async move { handle.stop().await });
        true
    }

    /// Kills its daemon at once, also one that is stopping.
    pub(crate) fn crash(&mut self) {
        let Some(daemon) = self.daemon.take() else { return };
        if self.paused.take().is_some() {
            self.context.resumed(self.number, &self.name);
        }
        self.context.log(&self.name, || if daemon.is_stopping { "is killed" } else { "crashes" }.to_owned());
        self.context.daemon_changed(self.number, DaemonChange::Down);
        daemon.is_alive.store(false, Ordering::Relaxed);
        self.context.executor.end(self.owner());
        self.programs.disconnect();
    }

    /// Suspends its daemon for a scenario event. Returns false if it is down or already suspended.
    pub(crate) fn pause(&mut self, event: usize) -> bool {
        if self.daemon.is_none() || self.paused.is_some() {
            return false;
        }
        self.paused = Some(event);
        self.context.paused(self.number, &self.name);
        true
    }

    /// Resumes its daemon if that scenario event suspended it.
    pub(crate) fn resume(&mut self, event: usize) {
        if self.paused.take_if(|by| *by == event).is_some() {
            self.context.resumed(self.number, &self.name);
        }
    }

    /// Whether programs are running.
    pub(crate) fn is_busy(&self) -> bool {
        self.programs.any_running()
    }

    /// Ends the simulation of this machine. Its daemon and its programs hold references to each other and would leak
    /// otherwise.
    pub(crate) fn dismiss(&mut self) {
        self.daemon = None;
        self.programs.dismiss();
    }

    /// Kills its keeper.
    pub(crate) fn lose_keeper(&self) {
        self.context.log(&self.name, || "loses its keeper".to_owned());
        self.programs.lose_keeper();
    }

    /// Lets its keeper hang, or removes it, for a while.
    pub(crate) fn fail_keeper(&self, is_hung: bool, lasts: Span) {
        self.programs.fail_keeper(is_hung, lasts);
    }

    /// Ends the fault phase: repairs the keeper, corrects the clock, and resumes the daemon, or restarts it if it is
    /// stopping or down.
    pub(crate) fn recover(&mut self) {
        self.clock.set(0);
        self.programs.repair_keeper();
        if self.paused.take().is_some() {
            self.context.resumed(self.number, &self.name);
        }
        if self.daemon.as_ref().is_some_and(|daemon| daemon.is_stopping) {
            self.crash();
        }
        if self.daemon.is_none() && self.is_started {
            self.start();
        }
        // Its clock may have been set.
        self.context.daemon_changed(self.number, DaemonChange::Disturbed);
    }
}

/// Random bits for a node.
#[derive(Debug)]
struct MachineEntropy(SimRandom);

impl EntropySource for MachineEntropy {
    fn bits(&self) -> u128 {
        u128::from(self.0.bits()) << 64 | u128::from(self.0.bits())
    }
}

/// Receives the events of a node, for the trace and for its programs.
#[derive(Debug)]
struct TraceObserver {
    context: SimContext,
    source: String,
    machine: usize,
    programs: SimPrograms,
}

impl EngineObserver for TraceObserver {
    fn on_event(&self, event: &EngineEvent<'_>) {
        match event {
            EngineEvent::Ready { .. } => self.programs.ready(),
            // The node claims nothing for some seconds from now on, however long ago the clock was set.
            EngineEvent::ClockStep { .. } => self.context.daemon_changed(self.machine, DaemonChange::Disturbed),
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
        if let Some(text) = trace::describe_event(event) {
            self.context.log(&self.source, || text);
        }
    }
}

/// The decision context of a machine, with its own time zone data.
fn world_of(build: &MachineSpec, world: &DecisionContext) -> DecisionContext {
    match build.has_newer_zones {
        true => DecisionContext { zones: newer_zones(), zones_version: NEWER_ZONES.into(), ..world.clone() },
        false => world.clone(),
    }
}
