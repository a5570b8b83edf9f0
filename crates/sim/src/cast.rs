//! Who is on the stage: the machines of a plot, all on one store.

use std::sync::Arc;

use cronhold_engine::MachineClock;
use cronhold_store::MemoryStore;

use crate::chance::SimRandom;
use crate::machine::{MachineParts, SimMachine};
use crate::plot::Scenario;
use crate::stage::SimContext;
use crate::time::WallClock;
use crate::variant::DeliberateBug;
use crate::weather::FaultPlan;

/// The machines of a plot and the clock of their store. A store that is shared has a time of its own; one on a machine
/// itself has the machine's.
pub(crate) fn cast(
    plot: &Scenario,
    stage: &SimContext,
    weather: &FaultPlan,
    variant: DeliberateBug,
) -> (Vec<SimMachine>, Arc<WallClock>) {
    let clock = |ahead| Arc::new(WallClock::new(stage.time.clone(), ahead));
    let clocks: Vec<Arc<WallClock>> = plot.machines.iter().map(|build| clock(build.ahead)).collect();
    let store_clock = if plot.is_shared { clock(0) } else { Arc::clone(&clocks[0]) };
    let time = Arc::clone(&store_clock);
    let store = MemoryStore::new(Arc::new(move || time.now()));
    let machine = |(number, clock)| {
        let parts = MachineParts {
            stage,
            store: &store,
            build: &plot.machines[number],
            clock,
            chance: SimRandom::of(plot.seed, "life of a machine", number as u64),
            weather,
            variant,
            is_shared: plot.is_shared,
        };
        SimMachine::new(number, parts)
    };
    (clocks.into_iter().enumerate().map(machine).collect(), store_clock)
}
