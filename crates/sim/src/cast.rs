//! Who is on the stage: the machines of a plot, all on one store.

use std::sync::Arc;

use cronhold_engine::Clock;
use cronhold_store::MemoryStore;

use crate::chance::Chance;
use crate::machine::{Machine, Parts};
use crate::plot::Plot;
use crate::stage::Stage;
use crate::time::WallClock;
use crate::variant::Variant;
use crate::weather::Weather;

/// The machines of a plot and the clock of their store. A store that is shared has a time of its own; one on a machine
/// itself has the machine's.
pub(crate) fn cast(plot: &Plot, stage: &Stage, weather: &Weather, variant: Variant) -> (Vec<Machine>, Arc<WallClock>) {
    let clock = |ahead| Arc::new(WallClock::new(stage.time.clone(), ahead));
    let clocks: Vec<Arc<WallClock>> = plot.machines.iter().map(|build| clock(build.ahead)).collect();
    let store_clock = if plot.is_shared { clock(0) } else { Arc::clone(&clocks[0]) };
    let time = Arc::clone(&store_clock);
    let store = MemoryStore::new(Arc::new(move || time.now()));
    let machine = |(number, clock)| {
        let parts = Parts {
            stage,
            store: &store,
            build: &plot.machines[number],
            clock,
            chance: Chance::of(plot.seed, "life of a machine", number as u64),
            weather,
            variant,
            is_shared: plot.is_shared,
        };
        Machine::new(number, parts)
    };
    (clocks.into_iter().enumerate().map(machine).collect(), store_clock)
}
