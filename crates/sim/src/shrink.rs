//! Making a simulation that fails smaller: it is played again and again with less in it, and whatever still fails in the
//! same way is kept. What is left is what somebody has to look at.

use std::collections::BTreeSet;

use cronhold_core::DecisionContext;
use cronhold_schedule::Span;

use crate::check::Violation;
use crate::scenario::{Scenario, ScenarioCut};
use crate::simulation::{SimResult, SimSettings, simulate_cut};

/// So often a simulation is played at most to make it smaller.
const PLAYS_MAX: usize = 400;
/// No simulation is made shorter than this.
const LENGTH_MIN: Span = Span::from_secs(10);

/// A simulation that fails with as little in it as could be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShrunkFailure {
    /// What does not happen in it.
    pub cut: ScenarioCut,
    /// What comes of it, with its film and the acts that are left.
    pub showing: SimResult,
    /// How many acts there were.
    pub acts: usize,
    /// How often it was played.
    pub plays: usize,
}

/// Makes the simulation of a seed smaller, in which something was found.
pub fn shrink(seed: u64, settings: SimSettings, found: &Violation, world: &DecisionContext) -> ShrunkFailure {
    let settings = SimSettings { trace: false, ..settings };
    let scenario = Scenario::draw(seed, settings, &ScenarioCut::default());
    let mut search = ShrinkSearch { seed, settings, found, world, scenario, cut: ScenarioCut::default(), plays: 0 };
    search.shorten();
    search.drop_kinds();
    loop {
        let before = search.cut.clone();
        search.drop_parts();
        search.shorten();
        if search.cut == before || search.is_tired() {
            break;
        }
    }
    let ShrinkSearch { cut, plays, scenario, .. } = search;
    let showing = simulate_cut(seed, SimSettings { trace: true, ..settings }, &cut, world);
    ShrunkFailure { cut, showing, acts: scenario.acts.len(), plays }
}

struct ShrinkSearch<'a> {
    seed: u64,
    settings: SimSettings,
    found: &'a Violation,
    world: &'a DecisionContext,
    scenario: Scenario,
    cut: ScenarioCut,
    plays: usize,
}

impl ShrinkSearch<'_> {
    /// Takes a smaller cut if it still fails. Answers with when it did.
    fn try_cut(&mut self, cut: ScenarioCut) -> Option<Span> {
        if self.is_tired() || cut == self.cut {
            return None;
        }
        self.plays += 1;
        let showing = simulate_cut(self.seed, self.settings, &cut, self.world);
        let is_same = showing.finding.is_some_and(|finding| finding.checker == self.found.checker);
        is_same.then(|| {
            self.cut = cut;
            showing.lasted
        })
    }

    fn without(&mut self, numbers: &[usize]) -> bool {
        let mut cut = self.cut.clone();
        cut.without.extend(numbers);
        self.try_cut(cut).is_some()
    }

    /// Ends the trouble sooner: right after the finding, or after half of the time.
    fn shorten(&mut self) {
        let showing = simulate_cut(self.seed, self.settings, &self.cut, self.world);
        let mut until = self.cut.until.unwrap_or(self.scenario.length);
        let mut next = showing.lasted.plus(Span::from_secs(1)).min(until);
        while next >= LENGTH_MIN {
            if next < until {
                let Some(lasted) = self.try_cut(ScenarioCut { until: Some(next), ..self.cut.clone() }) else { break };
                until = next.min(lasted.plus(Span::from_secs(1)));
            }
            next = Span::from_micros(until.micros() / 2);
        }
        let late: Vec<usize> =
            self.left().into_iter().filter(|number| self.scenario.acts[*number].at > until).collect();
        self.without(&late);
    }

    /// Leaves out all acts of a kind. Without jobs and machines there would be nothing.
    fn drop_kinds(&mut self) {
        let kinds: BTreeSet<&str> = self.scenario.acts.iter().map(|act| act.what.kind()).collect();
        for kind in kinds.into_iter().filter(|kind| !matches!(*kind, "jobs" | "machines")) {
            let numbers = self.of_kind(kind);
            self.without(&numbers);
        }
    }

    /// Leaves out parts of what is left of each kind: halves, then halves of these, and at last single ones.
    fn drop_parts(&mut self) {
        let kinds: BTreeSet<&str> = self.left().iter().map(|number| self.scenario.acts[*number].what.kind()).collect();
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
        (0..self.scenario.acts.len()).filter(|number| !self.cut.without.contains(number)).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<usize> {
        self.left().into_iter().filter(|number| self.scenario.acts[*number].what.kind() == kind).collect()
    }

    fn is_tired(&self) -> bool {
        self.plays >= PLAYS_MAX
    }
}
