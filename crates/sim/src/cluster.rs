//! Builds the machines of a scenario, all on one store.

use std::sync::Arc;

use cronhold_engine::MachineClock;
use cronhold_store::{MemoryStore, StoreLimits};

use crate::context::SimContext;
use crate::deliberate_bugs::DeliberateBug;
use crate::faults::FaultPlan;
use crate::machine::{MachineParts, SimMachine};
use crate::random::SimRandom;
use crate::rollback::RollbackServer;
use crate::scenario::Scenario;
use crate::time::WallClock;

/// The machines of a scenario and their store.
pub(crate) struct SimCluster {
    pub(crate) machines: Vec<SimMachine>,
    pub(crate) store_clock: Arc<WallClock>,
    /// The store's part of a recovery, if the scenario has rollbacks.
    pub(crate) rollback_server: Option<Arc<RollbackServer>>,
}

/// Builds the machines of a scenario and the clock of their store. A shared store has its own clock; a local store uses
/// the clock of its machine.
pub(crate) fn build_cluster(
    scenario: &Scenario,
    context: &SimContext,
    fault_plan: &FaultPlan,
    bug: DeliberateBug,
) -> SimCluster {
    let clock = |ahead| Arc::new(WallClock::new(context.time.clone(), ahead));
    let clocks: Vec<Arc<WallClock>> = scenario.machines.iter().map(|build| clock(build.ahead)).collect();
    let store_clock = if scenario.is_shared { clock(0) } else { Arc::clone(&clocks[0]) };
    let time = Arc::clone(&store_clock);
    let limits = StoreLimits { kept: scenario.kept_max, ..StoreLimits::default() };
    let store = MemoryStore::with_limits(Arc::new(move || time.now()), limits);
    let rollback_server = scenario.has_rollbacks.then(|| {
        let holds_after_restart = bug != DeliberateBug::NoHoldAfterRestart;
        Arc::new(RollbackServer::new(store.clone(), context.time.clone(), holds_after_restart))
    });
    let machine = |(number, clock)| {
        let parts = MachineParts {
            context,
            store: &store,
            build: &scenario.machines[number],
            clock,
            rng: SimRandom::of(scenario.seed, "life of a machine", number as u64),
            fault_plan,
            bug,
            is_shared: scenario.is_shared,
            rollback_server: rollback_server.clone(),
        };
        SimMachine::new(number, parts)
    };
    let machines = clocks.into_iter().enumerate().map(machine).collect();
    SimCluster { machines, store_clock, rollback_server }
}
