//! Who is on the stage: the machines of a plot, all on one store.

use std::sync::Arc;

use cronhold_engine::MachineClock;
use cronhold_store::MemoryStore;

use crate::chance::SimRandom;
use crate::context::SimContext;
use crate::deliberate_bugs::DeliberateBug;
use crate::faults::FaultPlan;
use crate::machine::{MachineParts, SimMachine};
use crate::scenario::Scenario;
use crate::time::WallClock;

/// The machines of a plot and the clock of their store. A store that is shared has a time of its own; one on a machine
/// itself has the machine's.
pub(crate) fn build_cluster(
    scenario: &Scenario,
    context: &SimContext,
    fault_plan: &FaultPlan,
    variant: DeliberateBug,
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
            chance: SimRandom::of(scenario.seed, "life of a machine", number as u64),
            fault_plan,
            variant,
            is_shared: scenario.is_shared,
        };
        SimMachine::new(number, parts)
    };
    (clocks.into_iter().enumerate().map(machine).collect(), store_clock)
}
