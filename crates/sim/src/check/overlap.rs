//! Programs of one job run beside each other only where the job allows it or somebody asked for it: neither may a run
//! start while the store has another with a program, nor may its program start while another one truly lives.

use std::collections::BTreeMap;

use cronhold_core::job::OverlapPolicy;
use cronhold_core::{JobUid, NodeId, RunId};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, is_asked, runs, starting};
use crate::store_model::name;

/// A program that lives: what its run is called, and which node it is for.
type OverlappingProgram = (String, Option<NodeId>);

/// Remembers which programs live and which runs must be alone.
#[derive(Debug, Default)]
pub(super) struct OverlapChecker {
    /// Commits that gave a run its program so far.
    count: u64,
    /// The place of each run among these, until its program is no more.
    places: BTreeMap<RunId, u64>,
    /// Those that must be alone when they start, and whether their job has a run on each node.
    alone: BTreeMap<RunId, bool>,
    live: BTreeMap<JobUid, BTreeMap<RunId, OverlappingProgram>>,
    of_run: BTreeMap<RunId, JobUid>,
}

impl InvariantChecker for OverlapChecker {
    fn name(&self) -> &'static str {
        "no overlap that nobody allowed"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            self.count += 1;
            self.places.insert(run.id, self.count);
            let Some(job) = model.jobs.get(&run.job).map(|job| &job.job) else { continue };
            if is_asked(run) || job.overlap == OverlapPolicy::Allow {
                continue;
            }
            let is_each = job.nodes.is_each();
            self.alone.insert(run.id, is_each);
            let ends_now = |other| runs(unit).any(|run| run.id == other && run.state.is_finished());
            let beside = model.unfinished(&run.job).find(|other| {
                let is_rival = other.id != run.id && in_the_way(is_each, run.target, other.target);
                is_rival && other.state.has_program() && !ends_now(other.id)
            });
            if let Some(other) = beside {
                return Err(format!("{} starts beside {}, which is {}", name(run), name(other), other.state));
            }
        }
        Ok(())
    }

    fn launched(&mut self, scene: CheckerContext<'_>, ObservedLaunch { run, .. }: &ObservedLaunch<'_>) -> CheckResult {
        let live = self.live.entry(run.uid).or_default();
        let place = |run| self.places.get(run).copied().unwrap_or_default();
        // What came to its program later answers for itself.
        let is_rival = |is_each, target| in_the_way(is_each, run.target, target);
        let beside = self.alone.get(&run.id).and_then(|is_each| {
            live.iter().find(|(other, (_, target))| place(other) < place(&run.id) && is_rival(*is_each, *target))
        });
        let opinion = match beside {
            Some((_, (other, _))) => Err(format!("the program of {} starts beside that of {other}", name(run))),
            None => Ok(()),
        };
        // Where nodes share a store, what has no lease may go on after its run was given up.
        if !scene.is_shared || run.terms.lease.is_some() {
            live.insert(run.id, (name(run), run.target));
            self.of_run.insert(run.id, run.uid);
        }
        opinion
    }

    fn ended(&mut self, _: CheckerContext<'_>, run: RunId) -> CheckResult {
        self.places.remove(&run);
        self.alone.remove(&run);
        if let Some(job) = self.of_run.remove(&run)
            && let Some(live) = self.live.get_mut(&job)
        {
            live.remove(&run);
            if live.is_empty() {
                self.live.remove(&job);
            }
        }
        Ok(())
    }
}

/// Whether two runs of a job are in each other's way. Those for different nodes are not, where a job has a run on each.
fn in_the_way(is_each: bool, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    !is_each || one == other || one.is_none() || other.is_none()
}
