//! Checks that all conditions which name a pool have the same `count`, which is the size of the pool. Nobody can say
//! which of different sizes is meant.

use std::collections::BTreeMap;

use cronhold_core::job::{Condition, Job, Requirement};
use cronhold_core::record::PoolName;

use super::super::outline::PoolUse;
use super::{JobConflict, JobIndex};

/// One conflict for each condition whose `count` is not that of the first job, by id, that names the pool.
pub(in crate::directory) fn check_pools(jobs: &JobIndex<'_>) -> Vec<JobConflict> {
    let mut sizes: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
    let mut conflicts = Vec::new();
    for (number, (id, outline)) in jobs.jobs.iter().enumerate() {
        for PoolUse { path, pool, count } in &outline.pools {
            let (first, size) = *sizes.entry(pool).or_insert((id, *count));
            if size != *count {
                let path = format!("{path}.max_running.count");
                let message = format!("the pool `{pool}` has {size} places in the job `{first}`, and {count} here");
                let hint = "give all conditions that name a pool the same `count`";
                conflicts.push(JobConflict { number, path, message, hint });
            }
        }
    }
    conflicts
}

/// The pools that the conditions of a job name.
pub(super) fn pools(job: &Job) -> Vec<PoolUse> {
    let mut named = Vec::new();
    for (index, condition) in job.conditions.iter().enumerate() {
        limits(condition, &format!("conditions[{index}]"), &mut named);
    }
    let pool = |(path, pool, count): (String, &PoolName, u32)| PoolUse {
        path: path.into(),
        pool: pool.to_string().into(),
        count,
    };
    named.into_iter().map(pool).collect()
}

/// The pools that a condition names, with its path. Recursion is bounded: readers limit the nesting of conditions.
fn limits<'c>(condition: &'c Condition, path: &str, found: &mut Vec<(String, &'c PoolName, u32)>) {
    match &condition.requires {
        Requirement::MaxRunning { count, pool: Some(pool), .. } => found.push((path.to_owned(), pool, *count)),
        Requirement::All(inner) => {
            inner.iter().enumerate().for_each(|(index, one)| limits(one, &format!("{path}.all[{index}]"), found));
        }
        Requirement::Any(inner) => {
            inner.iter().enumerate().for_each(|(index, one)| limits(one, &format!("{path}.any[{index}]"), found));
        }
        Requirement::Not(inner) => limits(inner, &format!("{path}.not"), found),
        _ => {}
    }
}
