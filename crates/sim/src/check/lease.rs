//! Programs fence themselves. On a shared store, a program that must run alone has a lease: it is launched with an end
//! time, never lives longer, and other nodes give up its run only when it is dead. With a local store no other node
//! gives up a run, so that no run ends while its program lives.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_schedule::Span;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, ending};
use crate::store_model::{name, name_of};

/// Tracks live programs and the ends of their leases.
#[derive(Debug, Default)]
pub(super) struct LeaseChecker {
    live: BTreeMap<RunId, LeasedProgram>,
}

#[derive(Debug, Clone, Copy)]
struct LeasedProgram {
    /// Whether its run must not end before the program does.
    is_bound: bool,
    kill_at: Option<Span>,
}

impl LeasedProgram {
    fn outlived(&self, at: Span) -> Option<Span> {
        self.kill_at.filter(|kill_at| *kill_at < at)
    }
}

impl InvariantChecker for LeaseChecker {
    fn name(&self) -> &'static str {
        "programs end before their runs are given up"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in ending(model, unit) {
            if self.live.get(&run.id).is_some_and(|live| live.is_bound) {
                return Err(format!("{} is {} while its program lives", name(run), run.state));
            }
        }
        Ok(())
    }

    fn launched(
        &mut self,
        context: CheckerContext<'_>,
        ObservedLaunch { run, kill_at, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let has_lease = context.is_shared && run.terms.lease.is_some();
        let live = LeasedProgram { is_bound: has_lease || !context.is_shared, kill_at: *kill_at };
        self.live.insert(run.id, live);
        if has_lease && kill_at.is_none() {
            return Err(format!("{} has a lease, and its program starts without an end", name(run)));
        }
        if live.outlived(context.at).is_some() {
            return Err(format!("{} starts after its lease is over", name(run)));
        }
        let is_over = context.model.runs.get(&run.id).is_some_and(|run| run.state.is_finished());
        if is_over && live.is_bound {
            return Err(format!("{} starts after its run was over", name(run)));
        }
        Ok(())
    }

    fn extended(&mut self, run: RunId, kill_at: Span) {
        if let Some(before) = self.live.get_mut(&run).and_then(|live| live.kill_at.as_mut()) {
            *before = kill_at.max(*before);
        }
    }

    fn ended(&mut self, context: CheckerContext<'_>, run: RunId) -> CheckResult {
        let outlived = self.live.remove(&run).and_then(|live| live.outlived(context.at));
        match outlived {
            Some(kill_at) => {
                let late = context.at.minus(kill_at);
                Err(format!("the program of {} lived {late} longer than its lease", name_of(context.model, run)))
            }
            None => Ok(()),
        }
    }

    fn at_rest(&mut self, context: CheckerContext<'_>) -> CheckResult {
        match self.live.iter().find(|(_, live)| live.outlived(context.at).is_some()) {
            Some((run, _)) => Err(format!("the program of {} outlives its lease", name_of(context.model, *run))),
            None => Ok(()),
        }
    }
}
