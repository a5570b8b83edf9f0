//! A pool contains exactly the runs that have a program and have joined it.

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Pool, Record, Run};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker};
use crate::store_model::{StoreModel, name};

/// Compares pools with runs.
#[derive(Debug, Default)]
pub(super) struct PoolChecker;

impl InvariantChecker for PoolChecker {
    fn name(&self) -> &'static str {
        "a pool contains exactly its active runs"
    }

    fn after(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Pool(pool)) => check_entries(model, pool)?,
                RecordChange::Put(Record::Run(run)) => check_membership(model, run)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn at_rest(&mut self, CheckerContext { model, .. }: CheckerContext<'_>) -> CheckResult {
        model.pools.values().try_for_each(|pool| check_entries(model, pool))
    }
}

fn check_entries(model: &StoreModel, pool: &Pool) -> CheckResult {
    if pool.active.is_empty() {
        return Err(format!("the pool {} is stored without runs", pool.name));
    }
    for active in &pool.active {
        let holds = |run: &Run| run.state.has_program() && run.pools.contains(&pool.name);
        if !model.runs.get(&active.run).is_some_and(|run| holds(run)) {
            return Err(format!("the pool {} names {}, which is not active in it", pool.name, active.run));
        }
    }
    Ok(())
}

fn check_membership(model: &StoreModel, run: &Run) -> CheckResult {
    let is_in = |pool| model.pools.get(pool).is_some_and(|pool| pool.contains(run.id));
    match run.pools.iter().find(|pool| is_in(pool) != run.state.has_program()) {
        Some(pool) => Err(format!("{} is {}, which the pool {pool} contradicts", name(run), run.state)),
        None => Ok(()),
    }
}
