//! Pools: limits that several jobs share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{PoolSummary, Problem};
use cronhold_core::JobId;
use cronhold_core::job::{Condition, Requirement};
use cronhold_core::record::{Blocker, Pool, PoolName, Record, RecordKey};
use cronhold_store::{Fault, Query, Store};

use crate::AppState;
use crate::problem::ApiError;

/// Records in a page that is read from the store.
const PAGE: usize = 500;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/pools", get(list))
}

/// List pools, ordered by name
///
/// A pool exists as long as a condition of a job names it, or one of its runs is active.
#[utoipa::path(get, path = "/api/v1/pools", tag = "pools",
    responses((status = 200, body = Vec<PoolSummary>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(State(app): State<Arc<AppState>>) -> Result<Json<Vec<PoolSummary>>, ApiError> {
    let mut pools = PoolTable::default();
    pools.read_jobs(&*app.store).await?;
    pools.read_active(&*app.store).await?;
    pools.read_waiting(&*app.store).await?;
    Ok(Json(pools.0.into_iter().map(|(name, pool)| pool.into_summary(&name)).collect()))
}

/// What is known of each pool.
#[derive(Default)]
struct PoolTable(BTreeMap<PoolName, KnownPool>);

#[derive(Default)]
struct KnownPool {
    sizes: BTreeSet<u32>,
    jobs: BTreeSet<JobId>,
    active: Option<Arc<Pool>>,
    waiting: u64,
}

impl PoolTable {
    async fn read_jobs(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = store.page(&Query::Jobs { after }, PAGE).await?;
            for stored in &page.records {
                let Record::Job(job) = &stored.record else { continue };
                Condition::visit(&job.job.conditions, &mut |requirement| {
                    if let Requirement::MaxRunning { count, pool: Some(pool), .. } = requirement {
                        let known = self.0.entry(pool.clone()).or_default();
                        known.sizes.insert(*count);
                        known.jobs.insert(job.id.clone());
                    }
                });
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Job(last)) => Some(last),
                _ => return Ok(()),
            };
        }
    }

    async fn read_active(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = store.page(&Query::Pools { after }, PAGE).await?;
            for stored in &page.records {
                let Record::Pool(pool) = &stored.record else { continue };
                self.0.entry(pool.name.clone()).or_default().active = Some(Arc::clone(pool));
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Pool(last)) => Some(last),
                _ => return Ok(()),
            };
        }
    }

    async fn read_waiting(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let mut after = None;
        while !self.0.is_empty() {
            let page = store.page(&Query::Unfinished { node: None, after }, PAGE).await?;
            for stored in &page.records {
                let Record::Run(run) = &stored.record else { continue };
                let named = run.blockers.iter().filter_map(|blocker| match blocker {
                    Blocker::Pool { pool, is_negated: false, .. } => Some(pool),
                    _ => None,
                });
                for pool in named.collect::<BTreeSet<_>>() {
                    self.0.entry(pool.clone()).or_default().waiting += 1;
                }
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Run(last)) => Some(last),
                _ => break,
            };
        }
        Ok(())
    }
}

impl KnownPool {
    fn into_summary(self, name: &PoolName) -> PoolSummary {
        let active = self.active.as_ref().map_or(&[][..], |pool| &pool.active);
        let runs: Vec<String> = active.iter().map(|active| active.run.to_string()).collect();
        PoolSummary {
            name: name.to_string(),
            size: self.sizes.first().copied(),
            sizes: if self.sizes.len() > 1 { self.sizes.into_iter().collect() } else { Vec::new() },
            active: runs.len() as u64,
            waiting: self.waiting,
            jobs: self.jobs.iter().map(ToString::to_string).collect(),
            runs,
        }
    }
}
