//! Checks that all conditions which name a pool have the same `count`, which is the size of the pool. Nobody can say
//! which of different sizes is meant.

use std::collections::BTreeMap;

use cronhold_core::JobId;
use cronhold_core::job::{Condition, Requirement};
use cronhold_core::record::PoolName;

use super::super::LoadedJob;
use crate::mistake::Mistake;

/// One mistake for each condition whose `count` is not that of the first job, by id, that names the pool.
pub(super) fn check(jobs: &BTreeMap<JobId, LoadedJob>) -> Vec<Mistake> {
    let mut sizes: BTreeMap<&PoolName, (&JobId, u32)> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (id, loaded) in jobs {
        for (index, condition) in loaded.job.conditions.iter().enumerate() {
            let mut named = Vec::new();
            limits(condition, &format!("conditions[{index}]"), &mut named);
            for (path, pool, count) in named {
                let (first, size) = *sizes.entry(pool).or_insert((id, count));
                if size != count {
                    let at = loaded.places.get(&format!("{path}.max_running.count"));
                    let message = format!("the pool `{pool}` has {size} places in the job `{first}`, and {count} here");
                    let hint = "give all conditions that name a pool the same `count`";
                    mistakes.push(Mistake::new(&*loaded.file, at, message).hint(hint));
                }
            }
        }
    }
    mistakes
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
