//! Draws a scenario from a seed. Every kind of event has its own stream of random numbers.

use std::collections::BTreeSet;

use cronhold_schedule::{Instant, Span};

use crate::random::SimRandom;
use crate::scenario::{
    FaultKind, FaultPeriod, HintLoss, MachineSpec, Scenario, ScenarioAction, ScenarioCut, ScenarioEvent,
};
use crate::simulation::SimSettings;

/// Approximate number of occurrences in a simulation.
const OCCURRENCES: u64 = 250;
/// A large simulation has about 200,000 occurrences.
const SCALE_JOBS: usize = 1_000;
const SCALE_NODES: usize = 5;
const SCALE_LENGTH: Span = Span::from_secs(7_200);
const SCALE_SHORTEST: u64 = 15;
/// One of this many seeds has rollbacks, if its store is shared, and which of them.
const ROLLBACKS_EVERY: u64 = 16;
const ROLLBACKS_AT: u64 = 9;
/// The first writers have enrolled by then. A client that is new to an emptied store cannot know what was lost.
const ENROLLED_BY: Span = Span::from_secs(10);
/// Maximum number of machines when the seed decides it.
const NODES_MAX: u64 = 5;

/// Start times of simulations: an ordinary noon, and shortly before clock changes in New York and in Berlin.
const STARTS: [Instant; 4] = [
    Instant::from_secs(1_772_451_000),
    Instant::from_secs(1_772_952_600),
    Instant::from_secs(1_774_745_400),
    Instant::from_secs(1_792_889_400),
];

/// Seeds in which jobs have actions: one in so many, at this remainder.
const ACTIONS_EVERY: u64 = 3;
const ACTIONS_AT: u64 = 2;

/// Seeds in which the store keeps few runs: one in so many, at this remainder, and how many it keeps.
const LIMITS_EVERY: u64 = 4;
const LIMITS_AT: u64 = 3;
const KEPT_MAX: u32 = 2;

/// Seeds in which jobs have batching policies and get triggers: one in so many, at this remainder.
const TRIGGERS_EVERY: u64 = 3;
const TRIGGERS_AT: u64 = 1;

/// Labels of machines, which jobs may select.
pub(crate) const LABELS: [&str; 3] = ["disk", "fast", "north"];

impl Scenario {
    /// Draws the scenario of a seed. Events that are cut keep their numbers.
    pub(crate) fn draw(seed: u64, settings: SimSettings, cut: &ScenarioCut) -> Self {
        let rng = SimRandom::of(seed, "frame", 0);
        let (drawn_length, drawn_nodes) = (rng.secs(240, 2_400), rng.between(1, NODES_MAX));
        let drawn_jobs = if rng.one_in(4) { rng.index(28) + 3 } else { rng.index(8) + 3 };
        let length = settings.length.unwrap_or(if settings.scale { SCALE_LENGTH } else { drawn_length });
        let jobs = settings.jobs.unwrap_or(if settings.scale { SCALE_JOBS } else { drawn_jobs });
        let nodes = match settings.nodes {
            0 if settings.scale => SCALE_NODES,
            0 => usize::try_from(drawn_nodes).expect("small"),
            nodes => nodes,
        };
        let shortest = (length.secs() * jobs as u64 / OCCURRENCES).clamp(3, 300);
        let is_shared = rng.one_in(4) || nodes > 1;
        let is_drawn = seed % ROLLBACKS_EVERY == ROLLBACKS_AT || settings.bug.needs_rollbacks();
        let has_rollbacks = is_shared && is_drawn;
        let is_clock_set = rng.one_in(5) && !has_rollbacks;
        let is_store_clock_set = rng.one_in(20) && is_shared && !has_rollbacks;
        let mut scenario = Self {
            seed,
            length,
            start: *rng.pick(&STARTS),
            until: cut.until.unwrap_or(length).min(length),
            jobs,
            shortest: if settings.scale { SCALE_SHORTEST } else { shortest },
            usual: if settings.scale { 20_000 } else { *rng.pick(&[500, 2_000, 20_000, 80_000]) },
            is_shared,
            has_clock_steps: is_clock_set || is_store_clock_set,
            has_locks: !is_store_clock_set,
            has_rollbacks,
            has_actions: seed % ACTIONS_EVERY == ACTIONS_AT || settings.bug.needs_actions(),
            // What a rolled back store has lost of triggers was acknowledged, and cannot be told from a mistake.
            has_triggers: (seed % TRIGGERS_EVERY == TRIGGERS_AT || settings.bug.needs_triggers()) && !has_rollbacks,
            kept_max: (seed % LIMITS_EVERY == LIMITS_AT).then_some(KEPT_MAX),
            machines: (0..nodes).map(|number| build(seed, number)).collect(),
            events: Vec::new(),
        };
        scenario.draw_machines_and_jobs();
        scenario.draw_losses();
        scenario.draw_failures();
        if is_clock_set {
            scenario.draw_clocks();
        }
        if is_store_clock_set {
            scenario.draw_store_clock();
        }
        scenario.draw_operators();
        scenario.draw_keeper_failures();
        if has_rollbacks {
            scenario.draw_rollbacks();
        }
        if scenario.has_triggers {
            scenario.draw_triggers();
        }
        scenario
    }

    /// The machines and jobs that exist from the start.
    fn draw_machines_and_jobs(&mut self) {
        for machine in 0..self.machines.len() {
            self.add(Span::ZERO, ScenarioAction::Machine(machine));
        }
        for job in 0..self.jobs {
            let at = SimRandom::of(self.seed, "job is put", job as u64).micros(10_000, 3_000_000);
            self.add(at, ScenarioAction::Job(job));
        }
    }

    /// Losses that last for the whole fault phase.
    fn draw_losses(&mut self) {
        let rng = SimRandom::of(self.seed, "losses", 0);
        if rng.one_in(2) {
            self.add(
                Span::ZERO,
                ScenarioAction::Calls { unavailable: rng.between(1, 30), unknown: rng.between(1, 60) },
            );
        }
        let loss = |rng: &SimRandom| HintLoss {
            lost: *rng.pick(&[0, 10, 100, 1_000]),
            late: *rng.pick(&[0, 20, 200]),
            double: *rng.pick(&[0, 20, 200]),
        };
        let hints = loss(&rng);
        if rng.one_in(2) && self.is_shared {
            self.add(Span::ZERO, ScenarioAction::Hints(hints));
        }
        let reports = HintLoss { lost: rng.between(0, 60), ..loss(&rng) };
        if rng.one_in(4) {
            self.add(Span::ZERO, ScenarioAction::Reports(reports));
        }
    }

    /// Crashes and pauses of daemons, losses of keepers, and store faults.
    fn draw_failures(&mut self) {
        let rng = SimRandom::of(self.seed, "crashes", 0);
        for _ in 0..*rng.pick(&[0, 1, 2, 3, 8, 30]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            self.add(at, ScenarioAction::Crash { machine, steps: steps(&rng), down: down(&rng) });
        }
        let rng = SimRandom::of(self.seed, "stops", 0);
        for _ in 0..*rng.pick(&[0, 0, 1, 2]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            self.add(at, ScenarioAction::Stop { machine, gone: rng.secs(1, 5), down: down(&rng) });
        }
        let rng = SimRandom::of(self.seed, "pauses", 0);
        for _ in 0..*rng.pick(&[0, 0, 1, 2, 6]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            let lasts = rng.span(Span::from_millis(10), Span::from_secs(600));
            self.add(at, ScenarioAction::Pause { machine, steps: steps(&rng), lasts });
        }
        let rng = SimRandom::of(self.seed, "keepers", 0);
        for _ in 0..*rng.pick(&[0, 0, 0, 1, 2]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            if self.machines[machine].has_keeper {
                self.add(at, ScenarioAction::KeeperLoss { machine });
            }
        }
        let rng = SimRandom::of(self.seed, "storms", 0);
        for _ in 0..*rng.pick(&[0, 0, 0, 1, 2, 3]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            let kind = *rng.pick(&[FaultKind::Unreachable, FaultKind::ReadOnly, FaultKind::Slow]);
            let period = FaultPeriod { machine: rng.one_in(2).then_some(machine), kind };
            self.add(
                at,
                ScenarioAction::StoreFault { period, lasts: rng.span(Span::from_secs(1), Span::from_secs(200)) },
            );
        }
    }

    /// Clock changes of machines.
    fn draw_clocks(&mut self) {
        let rng = SimRandom::of(self.seed, "clocks", 0);
        for _ in 0..rng.between(1, 2) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            // Nodes that share a store use its time, so that their own clocks may be far off. A node with a local store
            // has only its own clock, and what it did by a wrong clock cannot be undone.
            let most = if self.is_shared && rng.one_in(2) { 5 * 3_600_000_000 } else { 200_000_000 };
            self.add(at, ScenarioAction::SetClock { machine, ahead: either_way(&rng, most) });
        }
    }

    fn draw_store_clock(&mut self) {
        let rng = SimRandom::of(self.seed, "store clock", 0);
        for _ in 0..rng.between(1, 2) {
            let at = self.moment(&rng);
            self.add(at, ScenarioAction::SetStoreClock { ahead: either_way(&rng, 200_000_000) });
        }
    }

    /// Commands of operators.
    fn draw_operators(&mut self) {
        let rng = SimRandom::of(self.seed, "meddling", 0);
        for _ in 0..rng.between(0, 60) {
            let at = self.moment(&rng);
            self.add(at, ScenarioAction::OperatorCommand);
        }
        let rng = SimRandom::of(self.seed, "draining", 0);
        for _ in 0..*rng.pick(&[0, 0, 1, 3]) {
            let (at, machine) = (self.moment(&rng), self.machine(&rng));
            self.add(at, ScenarioAction::Drain { machine, on: true });
            let later = at.plus(rng.span(Span::from_secs(1), Span::from_secs(600)));
            self.add(later, ScenarioAction::Drain { machine, on: false });
        }
    }

    /// Keepers that hang or are missing for a while.
    fn draw_keeper_failures(&mut self) {
        let rng = SimRandom::of(self.seed, "keeper failures", 0);
        for _ in 0..*rng.pick(&[0, 0, 0, 1, 3]) {
            let (at, machine, is_hung) = (self.moment(&rng), self.machine(&rng), rng.one_in(2));
            let lasts = rng.span(Span::from_millis(500), Span::from_secs(400));
            if self.machines[machine].has_keeper {
                self.add(at, ScenarioAction::KeeperFailure { machine, is_hung, lasts });
            }
        }
    }

    /// Bursts of triggers.
    fn draw_triggers(&mut self) {
        let rng = SimRandom::of(self.seed, "triggers", 0);
        for _ in 0..rng.between(1, 15) {
            let begin = self.moment(&rng);
            for _ in 0..rng.between(1, 25) {
                self.add(begin.plus(rng.micros(0, 3_000_000)), ScenarioAction::Trigger);
            }
        }
    }

    /// Rollbacks of the store, without the faults with which they lose something.
    fn draw_rollbacks(&mut self) {
        self.events.retain_mut(|event| match &mut event.what {
            ScenarioAction::Calls { unknown, .. } => {
                *unknown = 0;
                true
            }
            what => matches!(
                what,
                ScenarioAction::Machine(_)
                    | ScenarioAction::Job(_)
                    | ScenarioAction::Hints(_)
                    | ScenarioAction::Reports(_)
                    | ScenarioAction::OperatorCommand
                    | ScenarioAction::KeeperLoss { .. }
                    | ScenarioAction::KeeperFailure { .. }
            ),
        });
        let rng = SimRandom::of(self.seed, "rollbacks", 0);
        for _ in 0..rng.between(1, 8) {
            // By then all nodes have enrolled.
            let at = self.moment(&rng).max(ENROLLED_BY);
            self.add(at, ScenarioAction::Rollback { lost: rng.span(Span::from_millis(10), Span::from_secs(60)) });
        }
    }

    fn add(&mut self, at: Span, what: ScenarioAction) {
        self.events.push(ScenarioEvent { at, what });
    }

    fn moment(&self, rng: &SimRandom) -> Span {
        rng.micros(0, self.length.micros())
    }

    fn machine(&self, rng: &SimRandom) -> usize {
        rng.index(self.machines.len())
    }
}

fn build(seed: u64, number: usize) -> MachineSpec {
    let rng = SimRandom::of(seed, "machine", number as u64);
    let has = |label: &&&str| rng.one_in(2) || (number == 0 && **label == LABELS[0]);
    let labels: BTreeSet<String> = LABELS.iter().filter(has).map(|label| (*label).to_owned()).collect();
    let (has_keeper, ahead) = (rng.one_in(2), either_way(&rng, 200_000));
    let is_mixed = SimRandom::of(seed, "zones", 0).one_in(4);
    let has_newer_zones = is_mixed && SimRandom::of(seed, "zones of a machine", number as u64).one_in(2);
    MachineSpec { labels, has_keeper, has_newer_zones, ahead }
}

/// Draws the number of steps until a fate applies. A daemon is idle most of the time, so that a moment alone would
/// mostly hit it idle.
fn steps(rng: &SimRandom) -> u64 {
    if rng.one_in(4) { 0 } else { rng.between(1, 400) }
}

/// Draws how long a daemon is down.
fn down(rng: &SimRandom) -> Span {
    if rng.one_in(4) { rng.secs(60, 600) } else { rng.micros(1, 10_000_000) }
}

/// Draws an offset between `-most` and `most`.
fn either_way(rng: &SimRandom, most: i64) -> i64 {
    let width = u64::try_from(2 * most).expect("positive");
    rng.between(0, width).cast_signed() - most
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

    use super::*;

    fn scenario(seed: u64) -> Scenario {
        Scenario::draw(seed, SimSettings::default(), &ScenarioCut::default())
    }

    /// Jobs use these zones; a clock change after the end of a simulation would test nothing.
    #[test]
    fn clock_changes_fall_into_some_simulations() {
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
    fn every_kind_of_event_is_drawn() {
        let kinds: BTreeSet<&str> =
            (0..200).flat_map(|seed| scenario(seed).events).map(|event| event.what.kind()).collect();
        assert_eq!(kinds.len(), 16, "{kinds:?}");
        let nodes: BTreeSet<usize> = (0..50).map(|seed| scenario(seed).machines.len()).collect();
        assert_eq!(nodes, (1..=5).collect());
    }

    /// Leaving out events does not change the others.
    #[test]
    fn cut_keeps_event_numbers() {
        let cut = ScenarioCut { without: BTreeSet::from([3]), until: Some(Span::from_secs(100)) };
        let describe = |scenario: &Scenario| scenario.events.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(describe(&scenario(7)), describe(&Scenario::draw(7, SimSettings::default(), &cut)));
    }
}
