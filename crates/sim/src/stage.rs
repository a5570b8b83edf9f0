//! Where a simulation takes place: what all its parts share, and the one place where events are told to the film and
//! to the checkers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::record::Run;
use cronhold_core::{RunId, World};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use crate::check::{Court, Finding};
use crate::executor::Executor;
use crate::film::{self, Film};
use crate::mirror::{Mirror, name};
use crate::time::Time;

/// What all parts of a simulation share. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Time.
    pub(crate) time: Time,
    /// What can go on.
    pub(crate) executor: Executor,
    /// Zones and calendars.
    pub(crate) world: World,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug)]
struct Told {
    film: Film,
    mirror: Mirror,
    court: Court,
    launches: u64,
    units: u64,
}

/// How much happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Units that were done.
    pub units: u64,
    /// Runs that were made, spans included.
    pub runs: u64,
    /// Programs that were started.
    pub launches: u64,
}

impl Stage {
    /// A stage on which nothing has happened yet.
    pub(crate) fn new(world: World, start: Instant, film: Film) -> Self {
        let told = Told { film, mirror: Mirror::default(), court: Court::default(), launches: 0, units: 0 };
        Self { time: Time::new(start), executor: Executor::default(), world, told: Arc::new(Mutex::new(told)) }
    }

    /// Adds a line to the film.
    pub(crate) fn say(&self, who: &str, what: impl FnOnce() -> String) {
        self.told().film.say(self.time.now(), who, what);
    }

    /// A unit was done, for a machine.
    pub(crate) fn committed(&self, who: &str, unit: &Unit) {
        let mut told = self.told();
        let Told { film, mirror, court, units, .. } = &mut *told;
        *units += 1;
        film.say(self.time.now(), who, || film::of_unit(unit, mirror));
        court.before(mirror, unit, &self.world);
        mirror.apply(unit);
        court.after(mirror, unit);
    }

    /// A program was started.
    pub(crate) fn launched(&self, who: &str, run: &Run) {
        let mut told = self.told();
        let Told { film, court, launches, .. } = &mut *told;
        *launches += 1;
        film.say(self.time.now(), who, || format!("program of {} starts", name(run)));
        court.launched(run);
    }

    /// A program is no more.
    pub(crate) fn ended(&self, who: &str, run: RunId, how: &str) {
        let mut told = self.told();
        let Told { film, mirror, court, .. } = &mut *told;
        film.say(self.time.now(), who, || {
            let known = mirror.runs.get(&run).map_or_else(|| run.to_string(), |run| name(run));
            format!("program of {known} {how}")
        });
        court.ended(run);
    }

    /// Everything has come to rest, or should have.
    pub(crate) fn rested(&self) {
        let mut told = self.told();
        let Told { mirror, court, .. } = &mut *told;
        court.rested(mirror, &self.world, self.time.day());
    }

    /// Asks what the store holds.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&Mirror) -> T) -> T {
        question(&self.told().mirror)
    }

    /// What a checker has found, if any has.
    pub(crate) fn finding(&self) -> Option<Finding> {
        self.told().court.finding()
    }

    /// How much has happened.
    pub(crate) fn tally(&self) -> Tally {
        let told = self.told();
        Tally { units: told.units, runs: told.mirror.runs.len() as u64, launches: told.launches }
    }

    /// The film so far; what follows is not filmed.
    pub(crate) fn take_film(&self) -> Vec<String> {
        std::mem::take(&mut self.told().film).into_lines()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
