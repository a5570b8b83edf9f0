//! Shrinks a failing simulation: runs it repeatedly with fewer events and keeps every reduction that still fails in the
//! same checker.

use std::collections::BTreeSet;

use cronhold_core::DecisionContext;
use cronhold_schedule::Span;

use crate::check::Violation;
use crate::scenario::{Scenario, ScenarioCut};
use crate::simulation::{SimResult, SimSettings, simulate_cut};

/// Maximum number of runs for shrinking.
const RUNS_MAX: usize = 400;
/// Minimum duration of the fault phase.
const LENGTH_MIN: Span = Span::from_secs(10);

/// A failing simulation with as few events as the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShrunkFailure {
    /// What was removed.
    pub cut: ScenarioCut,
    /// The result of the reduced simulation, with its trace and the remaining events.
    pub result: SimResult,
    /// Number of events before shrinking.
    pub events: usize,
    /// Number of runs that the search took.
    pub attempts: usize,
}

/// Shrinks the simulation of a seed, in which a checker found `found`.
pub fn shrink(seed: u64, settings: SimSettings, found: &Violation, world: &DecisionContext) -> ShrunkFailure {
    let settings = SimSettings { trace: false, ..settings };
    let scenario = Scenario::draw(seed, settings, &ScenarioCut::default());
    let mut search = ShrinkSearch { seed, settings, found, world, scenario, cut: ScenarioCut::default(), attempts: 0 };
    search.shorten();
    search.drop_kinds();
    loop {
        let before = search.cut.clone();
        search.drop_parts();
        search.shorten();
        if search.cut == before || search.is_exhausted() {
            break;
        }
    }
    let ShrinkSearch { cut, attempts, scenario, .. } = search;
    let result = simulate_cut(seed, SimSettings { trace: true, ..settings }, &cut, world);
    ShrunkFailure { cut, result, events: scenario.events.len(), attempts }
}

struct ShrinkSearch<'a> {
    seed: u64,
    settings: SimSettings,
    found: &'a Violation,
    world: &'a DecisionContext,
    scenario: Scenario,
    cut: ScenarioCut,
    attempts: usize,
}

impl ShrinkSearch<'_> {
    /// Keeps a smaller cut if it still fails. Returns when it failed.
    fn try_cut(&mut self, cut: ScenarioCut) -> Option<Span> {
        if self.is_exhausted() || cut == self.cut {
            return None;
        }
        self.attempts += 1;
        let result = simulate_cut(self.seed, self.settings, &cut, self.world);
        let is_same = result.finding.is_some_and(|finding| finding.checker == self.found.checker);
        is_same.then(|| {
            self.cut = cut;
            result.lasted
        })
    }

    fn without(&mut self, numbers: &[usize]) -> bool {
        let mut cut = self.cut.clone();
        cut.without.extend(numbers);
        self.try_cut(cut).is_some()
    }

    /// Shortens the fault phase: to the moment of the finding, then by halves.
    fn shorten(&mut self) {
        let result = simulate_cut(self.seed, self.settings, &self.cut, self.world);
        let mut until = self.cut.until.unwrap_or(self.scenario.length);
        let mut next = result.lasted.plus(Span::from_secs(1)).min(until);
        while next >= LENGTH_MIN {
            if next < until {
                let Some(lasted) = self.try_cut(ScenarioCut { until: Some(next), ..self.cut.clone() }) else { break };
                until = next.min(lasted.plus(Span::from_secs(1)));
            }
            next = Span::from_micros(until.micros() / 2);
        }
        let late: Vec<usize> =
            self.left().into_iter().filter(|number| self.scenario.events[*number].at > until).collect();
        self.without(&late);
    }

    /// Removes all events of each kind. Jobs and machines stay, because nothing fails without them.
    fn drop_kinds(&mut self) {
        let kinds: BTreeSet<&str> = self.scenario.events.iter().map(|event| event.what.kind()).collect();
        for kind in kinds.into_iter().filter(|kind| !matches!(*kind, "jobs" | "machines")) {
            let numbers = self.of_kind(kind);
            self.without(&numbers);
        }
    }

    /// Removes parts of each kind: halves, then halves of those, and finally single events.
    fn drop_parts(&mut self) {
        let kinds: BTreeSet<&str> =
            self.left().iter().map(|number| self.scenario.events[*number].what.kind()).collect();
        for kind in kinds {
            let mut size = self.of_kind(kind).len().div_ceil(2).max(1);
            loop {
                for part in self.of_kind(kind).rchunks(size) {
                    self.without(part);
                }
                if size == 1 {
                    break;
                }
                size = size.div_ceil(2);
            }
        }
    }

    fn left(&self) -> Vec<usize> {
        (0..self.scenario.events.len()).filter(|number| !self.cut.without.contains(number)).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<usize> {
        self.left().into_iter().filter(|number| self.scenario.events[*number].what.kind() == kind).collect()
    }

    fn is_exhausted(&self) -> bool {
        self.attempts >= RUNS_MAX
    }
}
