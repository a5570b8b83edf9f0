//! The default zone of schedules. A daemon takes it from its command line. A command that works on a store without a
//! daemon takes it from the stored jobs, so that a job that it changes keeps its times.

use std::collections::BTreeMap;

use cronhold_core::record::Record;
use cronhold_schedule::{Zone, ZoneRegistry};
use cronhold_store::{Fault, Query, Store};

/// Jobs that are examined.
const SAMPLE_SIZE: usize = 20;

/// The zone that most of the examined jobs have; UTC if there are no jobs.
pub(super) async fn of_jobs(store: &dyn Store, zones: &ZoneRegistry) -> Result<Zone, Fault> {
    let page = store.page(&Query::Jobs { after: None }, SAMPLE_SIZE).await?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stored in &page.records {
        if let Record::Job(job) = &stored.record {
            *counts.entry(&job.zone).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(zone, _)| zone);
    Ok(most.and_then(|zone| zones.get(zone).ok()).unwrap_or_else(Zone::utc))
}
