//! Programs of one job overlap only if the job allows it or an operator requests it. A run does not start while the
//! store has another one with a program, and a program is not launched while another one is alive.

use std::collections::BTreeMap;

use cronhold_core::job::OverlapPolicy;
use cronhold_core::{JobUid, NodeId, RunId};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, is_started_explicitly, runs, starting};
use crate::store_model::name;

/// A live program: the name of its run, and its target node.
type OverlappingProgram = (String, Option<NodeId>);

/// Tracks live programs, and runs that must not overlap.
#[derive(Debug, Default)]
pub(super) struct OverlapChecker {
    /// Number of commits that gave a run its program.
    count: u64,
    /// The position of each run among these, until its program ends.
    positions: BTreeMap<RunId, u64>,
    /// Runs that must not overlap, and whether their job has a run on each node.
    alone: BTreeMap<RunId, bool>,
    live: BTreeMap<JobUid, BTreeMap<RunId, OverlappingProgram>>,
    of_run: BTreeMap<RunId, JobUid>,
}

impl InvariantChecker for OverlapChecker {
    fn name(&self) -> &'static str {
        "programs overlap only where allowed"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            self.count += 1;
            self.positions.insert(run.id, self.count);
            let Some(job) = model.jobs.get(&run.job).map(|job| &job.job) else { continue };
            if is_started_explicitly(run) || job.overlap == OverlapPolicy::Allow {
                continue;
            }
            let is_each = job.nodes.is_each();
            self.alone.insert(run.id, is_each);
            let ends_now = |other| runs(unit).any(|run| run.id == other && run.state.is_finished());
            let beside = model.unfinished(&run.job).find(|other| {
                let is_rival = other.id != run.id && conflicts(is_each, run.target, other.target);
                is_rival && other.state.has_program() && !ends_now(other.id)
            });
            if let Some(other) = beside {
                return Err(format!("{} starts beside {}, which is {}", name(run), name(other), other.state));
            }
        }
        Ok(())
    }

    fn launched(
        &mut self,
        context: CheckerContext<'_>,
        ObservedLaunch { run, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let live = self.live.entry(run.uid).or_default();
        let position = |run| self.positions.get(run).copied().unwrap_or_default();
        // A program whose commit came later is checked at its own launch.
        let is_rival = |is_each, target| conflicts(is_each, run.target, target);
        let beside = self.alone.get(&run.id).and_then(|is_each| {
            live.iter().find(|(other, (_, target))| position(other) < position(&run.id) && is_rival(*is_each, *target))
        });
        let result = match beside {
            Some((_, (other, _))) => Err(format!("the program of {} starts beside that of {other}", name(run))),
            None => Ok(()),
        };
        // On a shared store, a program without a lease may continue after its run was given up.
        if !context.is_shared || run.terms.lease.is_some() {
            live.insert(run.id, (name(run), run.target));
            self.of_run.insert(run.id, run.uid);
        }
        result
    }

    fn ended(&mut self, _: CheckerContext<'_>, run: RunId) -> CheckResult {
        self.positions.remove(&run);
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

/// Whether two runs of a job conflict. With a run on each node, runs for different nodes do not.
fn conflicts(is_each: bool, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    !is_each || one == other || one.is_none() || other.is_none()
}
