//! Drawing a plot from a seed. Every kind of act has a stream of chance to itself.

use std::collections::BTreeSet;

use cronhold_schedule::{Instant, Span};

use crate::chance::SimRandom;
use crate::scenario::{
    FaultKind, FaultPeriod, HintLoss, MachineSpec, Scenario, ScenarioAction, ScenarioCut, ScenarioEvent,
};
use crate::simulation::SimSettings;

/// Occurrences that a simulation has, about.
const OCCURRENCES: u64 = 250;
/// A large simulation: so many jobs for so long, which comes to about 200,000 occurrences.
const SCALE_JOBS: usize = 1_000;
const SCALE_NODES: usize = 5;
const SCALE_LENGTH: Span = Span::from_secs(7_200);
const SCALE_SHORTEST: u64 = 15;
/// Machines when the seed says how many.
const NODES_MAX: u64 = 5;

/// When simulations begin: an ordinary noon, and shortly before clocks change in New York and in Berlin.
const STARTS: [Instant; 4] = [
    Instant::from_secs(1_772_451_000),
    Instant::from_secs(1_772_952_600),
    Instant::from_secs(1_774_745_400),
    Instant::from_secs(1_792_889_400),
];

/// What machines may have and jobs may ask for.
pub(crate) const LABELS: [&str; 3] = ["disk", "fast", "north"];

impl Scenario {
    /// Draws the plot of a seed; what is cut is still numbered.
    pub(crate) fn draw(seed: u64, settings: SimSettings, cut: &ScenarioCut) -> Self {
        let chance = SimRandom::of(seed, "frame", 0);
        let (drawn_length, drawn_nodes) = (chance.secs(240, 2_400), chance.between(1, NODES_MAX));
        let drawn_jobs = if chance.one_in(4) { chance.index(28) + 3 } else { chance.index(8) + 3 };
        let length = settings.length.unwrap_or(if settings.scale { SCALE_LENGTH } else { drawn_length });
        let jobs = settings.jobs.unwrap_or(if settings.scale { SCALE_JOBS } else { drawn_jobs });
        let nodes = match settings.nodes {
            0 if settings.scale => SCALE_NODES,
            0 => usize::try_from(drawn_nodes).expect("small"),
            nodes => nodes,
        };
        let shortest = (length.secs() * jobs as u64 / OCCURRENCES).clamp(3, 300);
        let is_shared = chance.one_in(4) || nodes > 1;
        let is_clock_set = chance.one_in(5);
        let is_store_clock_set = chance.one_in(20) && is_shared;
        let mut scenario = Self {
            seed,
            length,
            start: *chance.pick(&STARTS),
            until: cut.until.unwrap_or(length).min(length),
            jobs,
            shortest: if settings.scale { SCALE_SHORTEST } else { shortest },
            usual: if settings.scale { 20_000 } else { *chance.pick(&[500, 2_000, 20_000, 80_000]) },
            is_shared,
            keeps_all: is_clock_set || is_store_clock_set,
            has_locks: !is_store_clock_set,
            machines: (0..nodes).map(|number| build(seed, number)).collect(),
            acts: Vec::new(),
        };
        scenario.draw_place();
        scenario.draw_losses();
        scenario.draw_failures();
        if is_clock_set {
            scenario.draw_clocks();
        }
        if is_store_clock_set {
            scenario.draw_store_clock();
        }
        scenario.draw_people();
        scenario
    }

    /// The machines and the jobs that are there from the beginning.
    fn draw_place(&mut self) {
        for machine in 0..self.machines.len() {
            self.add(Span::ZERO, ScenarioAction::Machine(machine));
        }
        for job in 0..self.jobs {
            let at = SimRandom::of(self.seed, "job is put", job as u64).micros(10_000, 3_000_000);
            self.add(at, ScenarioAction::Job(job));
        }
    }

    /// What gets lost all along.
    fn draw_losses(&mut self) {
        let chance = SimRandom::of(self.seed, "losses", 0);
        if chance.one_in(2) {
            self.add(Span::ZERO, ScenarioAction::Calls { away: chance.between(1, 30), unknown: chance.between(1, 60) });
        }
        let loss = |chance: &SimRandom| HintLoss {
            lost: *chance.pick(&[0, 10, 100, 1_000]),
            late: *chance.pick(&[0, 20, 200]),
            double: *chance.pick(&[0, 20, 200]),
        };
        let hints = loss(&chance);
        if chance.one_in(2) && self.is_shared {
            self.add(Span::ZERO, ScenarioAction::Hints(hints));
        }
        let reports = HintLoss { lost: chance.between(0, 60), ..loss(&chance) };
        if chance.one_in(4) {
            self.add(Span::ZERO, ScenarioAction::Reports(reports));
        }
    }

    /// Daemons that die or stand still, keepers that die, and storms.
    fn draw_failures(&mut self) {
        let chance = SimRandom::of(self.seed, "crashes", 0);
        for _ in 0..*chance.pick(&[0, 1, 2, 3, 8, 30]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            self.add(at, ScenarioAction::Crash { machine, steps: steps(&chance), down: down(&chance) });
        }
        let chance = SimRandom::of(self.seed, "stops", 0);
        for _ in 0..*chance.pick(&[0, 0, 1, 2]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            self.add(at, ScenarioAction::Stop { machine, gone: chance.secs(1, 5), down: down(&chance) });
        }
        let chance = SimRandom::of(self.seed, "pauses", 0);
        for _ in 0..*chance.pick(&[0, 0, 1, 2, 6]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            let lasts = chance.span(Span::from_millis(10), Span::from_secs(600));
            self.add(at, ScenarioAction::Pause { machine, steps: steps(&chance), lasts });
        }
        let chance = SimRandom::of(self.seed, "keepers", 0);
        for _ in 0..*chance.pick(&[0, 0, 0, 1, 2]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            if self.machines[machine].has_keeper {
                self.add(at, ScenarioAction::KeeperLoss { machine });
            }
        }
        let chance = SimRandom::of(self.seed, "storms", 0);
        for _ in 0..*chance.pick(&[0, 0, 0, 1, 2, 3]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            let kind = *chance.pick(&[FaultKind::Away, FaultKind::ReadOnly, FaultKind::Slow]);
            let storm = FaultPeriod { machine: chance.one_in(2).then_some(machine), kind };
            self.add(at, ScenarioAction::Storm { storm, lasts: chance.span(Span::from_secs(1), Span::from_secs(200)) });
        }
    }

    /// Clocks of machines that are set.
    fn draw_clocks(&mut self) {
        let chance = SimRandom::of(self.seed, "clocks", 0);
        for _ in 0..chance.between(1, 2) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            // Nodes that share a store go by its time, so nothing depends on their own; a node that is alone has no
            // other, and what it did by a wrong one is done.
            let most = if self.is_shared && chance.one_in(2) { 5 * 3_600_000_000 } else { 200_000_000 };
            self.add(at, ScenarioAction::SetClock { machine, ahead: either_way(&chance, most) });
        }
    }

    fn draw_store_clock(&mut self) {
        let chance = SimRandom::of(self.seed, "store clock", 0);
        for _ in 0..chance.between(1, 2) {
            let at = self.moment(&chance);
            self.add(at, ScenarioAction::SetStoreClock { ahead: either_way(&chance, 60_000_000) });
        }
    }

    /// People who want things.
    fn draw_people(&mut self) {
        let chance = SimRandom::of(self.seed, "meddling", 0);
        for _ in 0..chance.between(0, 60) {
            let at = self.moment(&chance);
            self.add(at, ScenarioAction::Meddle);
        }
        let chance = SimRandom::of(self.seed, "draining", 0);
        for _ in 0..*chance.pick(&[0, 0, 1, 3]) {
            let (at, machine) = (self.moment(&chance), self.machine(&chance));
            self.add(at, ScenarioAction::Drain { machine, on: true });
            let later = at.plus(chance.span(Span::from_secs(1), Span::from_secs(600)));
            self.add(later, ScenarioAction::Drain { machine, on: false });
        }
    }

    fn add(&mut self, at: Span, what: ScenarioAction) {
        self.acts.push(ScenarioEvent { at, what });
    }

    fn moment(&self, chance: &SimRandom) -> Span {
        chance.micros(0, self.length.micros())
    }

    fn machine(&self, chance: &SimRandom) -> usize {
        chance.index(self.machines.len())
    }
}

fn build(seed: u64, number: usize) -> MachineSpec {
    let chance = SimRandom::of(seed, "machine", number as u64);
    let has = |label: &&&str| chance.one_in(2) || (number == 0 && **label == LABELS[0]);
    let labels: BTreeSet<String> = LABELS.iter().filter(has).map(|label| (*label).to_owned()).collect();
    MachineSpec { labels, has_keeper: chance.one_in(2), ahead: either_way(&chance, 200_000) }
}

/// Steps that a daemon still does. It stands still most of the time, so a moment alone would mostly hit it idle.
fn steps(chance: &SimRandom) -> u64 {
    if chance.one_in(4) { 0 } else { chance.between(1, 400) }
}

/// How long a daemon is down.
fn down(chance: &SimRandom) -> Span {
    if chance.one_in(4) { chance.secs(60, 600) } else { chance.micros(1, 10_000_000) }
}

/// So much at most, in either direction.
fn either_way(chance: &SimRandom, most: i64) -> i64 {
    let width = u64::try_from(2 * most).expect("positive");
    chance.between(0, width).cast_signed() - most
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

    use super::*;

    fn scenario(seed: u64) -> Scenario {
        Scenario::draw(seed, SimSettings::default(), &ScenarioCut::default())
    }

    /// Jobs name these places, and a change of clocks that comes after the end would show nothing.
    #[test]
    fn clocks_change_inside_of_some_simulations() {
        let zones = ZoneRegistry::bundled();
        for place in ["Europe/Berlin", "America/New_York"] {
            let zone = zones.get(place).expect("bundled");
            let ahead = |at: Instant| i64::from(zone.local(at.secs()).second_of_day()) - at.secs().rem_euclid(86_400);
            let changes = |scenario: &Scenario| {
                let (from, to) = (ahead(scenario.start), ahead(scenario.start.plus(scenario.length)));
                (to - from).rem_euclid(86_400) != 0
            };
            let count = (0..200).filter(|seed| changes(&scenario(*seed))).count();
            assert!(count > 20, "{place}: in {count} of 200");
        }
    }

    #[test]
    fn everything_that_can_happen_does_in_some_simulation() {
        let kinds: BTreeSet<&str> = (0..200).flat_map(|seed| scenario(seed).acts).map(|act| act.what.kind()).collect();
        assert_eq!(kinds.len(), 13, "{kinds:?}");
        let nodes: BTreeSet<usize> = (0..50).map(|seed| scenario(seed).machines.len()).collect();
        assert_eq!(nodes, (1..=5).collect());
    }

    /// What is left out leaves the rest as it is.
    #[test]
    fn a_cut_changes_no_number() {
        let cut = ScenarioCut { without: BTreeSet::from([3]), until: Some(Span::from_secs(100)) };
        let words = |scenario: &Scenario| scenario.acts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(words(&scenario(7)), words(&Scenario::draw(7, SimSettings::default(), &cut)));
    }
}
