//! All checkers together: whoever watches the simulation tells them here, and the first finding is kept.

use std::fmt;

use cronhold_core::record::{Node, Run};
use cronhold_core::{NodeId, RunId};
use cronhold_schedule::Span;
use cronhold_store::{Committed, Unit};

use super::{
    Checker, Opinion, Scene, catch_up, drain, each, early, fence, first_start, launch, lease, lock, numbers,
    obligation, outcome, overlap, pause, place, reason, sets, table,
};

/// What a checker has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which checker.
    pub checker: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}

/// A program that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// Its run, as whoever starts it knows it.
    pub(crate) run: &'a Run,
    /// Where.
    pub(crate) node: NodeId,
    /// The fence of its lock, as it is told.
    pub(crate) fence: Option<u64>,
    /// When it ends by itself unless that is extended, in the time of the simulation.
    pub(crate) kill_at: Option<Span>,
}

/// What becomes of the daemon of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It works from now on.
    Up,
    /// It does nothing from now on: it has crashed, was stopped, or stands still.
    Down,
    /// Something did not work: a call of the store failed or its answer was lost, or the clock was set.
    Disturbed,
    /// The store works badly or not at all for it from now on.
    Storm,
    /// That is over.
    Lull,
}

/// All checkers.
#[derive(Debug)]
pub(crate) struct Court {
    checkers: Vec<Box<dyn Checker>>,
    finding: Option<Finding>,
}

impl Default for Court {
    fn default() -> Self {
        let checkers: Vec<Box<dyn Checker>> = vec![
            Box::<first_start::FirstStart>::default(),
            Box::<table::Table>::default(),
            Box::<reason::Reasons>::default(),
            Box::<pause::Pause>::default(),
            Box::<place::Place>::default(),
            Box::<each::Each>::default(),
            Box::<drain::Drain>::default(),
            Box::<early::Early>::default(),
            Box::<launch::Launched>::default(),
            Box::<lease::Lease>::default(),
            Box::<lock::Lock>::default(),
            Box::<fence::Fence>::default(),
            Box::<overlap::Overlap>::default(),
            Box::<numbers::Numbers>::default(),
            Box::<sets::Sets>::default(),
            Box::<catch_up::CatchUp>::default(),
            Box::<obligation::Obligations>::default(),
            Box::<outcome::Outcome>::default(),
        ];
        Self { checkers, finding: None }
    }
}

impl Court {
    /// One checker alone, by its name.
    #[cfg(test)]
    pub(crate) fn only(name: &str) -> Self {
        let mut court = Self::default();
        court.checkers.retain(|checker| checker.name() == name);
        assert_eq!(court.checkers.len(), 1, "{name}");
        court
    }

    pub(crate) fn before(&mut self, scene: Scene<'_>, unit: &Unit) {
        self.hear(|checker| checker.before(scene, unit));
    }

    pub(crate) fn after(&mut self, scene: Scene<'_>, unit: &Unit, committed: &Committed) {
        self.hear(|checker| checker.after(scene, unit, committed));
    }

    pub(crate) fn beaten(&mut self, scene: Scene<'_>, node: &Node) {
        self.hear(|checker| checker.beaten(scene, node));
    }

    pub(crate) fn saw_nodes(&mut self, scene: Scene<'_>, node: NodeId) {
        self.checkers.iter_mut().for_each(|checker| checker.saw_nodes(scene, node));
    }

    pub(crate) fn launched(&mut self, scene: Scene<'_>, launch: &Launch<'_>) {
        self.hear(|checker| checker.launched(scene, launch));
    }

    pub(crate) fn extended(&mut self, run: RunId, kill_at: Span) {
        self.checkers.iter_mut().for_each(|checker| checker.extended(run, kill_at));
    }

    pub(crate) fn ended(&mut self, scene: Scene<'_>, run: RunId) {
        self.hear(|checker| checker.ended(scene, run));
    }

    /// Nothing is said of a node when it is about all of them.
    pub(crate) fn turned(&mut self, scene: Scene<'_>, node: Option<NodeId>, turn: Turn) {
        self.checkers.iter_mut().for_each(|checker| checker.turned(scene, node, turn));
    }

    pub(crate) fn rested(&mut self, scene: Scene<'_>) {
        self.hear(|checker| checker.rested(scene));
    }

    pub(crate) fn finding(&self) -> Option<Finding> {
        self.finding.clone()
    }

    /// Asks every checker and keeps the first finding.
    fn hear(&mut self, ask: impl Fn(&mut dyn Checker) -> Opinion) {
        for checker in &mut self.checkers {
            if let Err(what) = ask(checker.as_mut()) {
                self.finding.get_or_insert(Finding { checker: checker.name(), what });
            }
        }
    }
}
