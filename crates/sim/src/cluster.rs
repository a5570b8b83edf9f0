//! Builds the machines of a scenario, all on one store.

use std::sync::Arc;

use cronhold_engine::MachineClock;
use cronhold_store::MemoryStore;

use crate::context::SimContext;
use crate::deliberate_bugs::DeliberateBug;
use crate::faults::FaultPlan;
use crate::machine::{MachineParts, SimMachine};
use crate::random::SimRandom;
use crate::scenario::Scenario;
use crate::time::WallClock;

/// Builds the machines of a scenario and the clock of their store. A shared store has its own clock; a local store uses
/// the clock of its machine.
pub(crate) fn build_cluster(
    scenario: &Scenario,
    context: &SimContext,
    fault_plan: &FaultPlan,
    bug: DeliberateBug,
) -> (Vec<SimMachine>, Arc<WallClock>) {
    let clock = |ahead| Arc::new(WallClock::new(context.time.clone(), ahead));
    let clocks: Vec<Arc<WallClock>> = scenario.machines.iter().map(|build| clock(build.ahead)).collect();
    let store_clock = if scenario.is_shared { clock(0) } else { Arc::clone(&clocks[0]) };
    let time = Arc::clone(&store_clock);
    let store = MemoryStore::new(Arc::new(move || time.now()));
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
        };
        SimMachine::new(number, parts)
    };
    (clocks.into_iter().enumerate().map(machine).collect(), store_clock)
}
