//! The zone of schedules that name none. A daemon is told; whoever works on a store without one takes that of the jobs
//! which are there, so that a job that is changed keeps its times.

use std::collections::BTreeMap;

use cronhold_core::record::Record;
use cronhold_schedule::{Zone, ZoneRegistry};
use cronhold_store::{Fault, Query, Store};

/// Jobs that are looked at.
const LOOKED_AT: usize = 20;

/// The zone of most jobs, or UTC when there are none.
pub(super) async fn of_jobs(store: &dyn Store, zones: &ZoneRegistry) -> Result<Zone, Fault> {
    let page = store.page(&Query::Jobs { after: None }, LOOKED_AT).await?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stored in &page.records {
        if let Record::Job(job) = &stored.record {
            *counts.entry(&job.zone).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(zone, _)| zone);
    Ok(most.and_then(|zone| zones.get(zone).ok()).unwrap_or_else(Zone::utc))
}
