//! Checks all pools for runs that are gone or have ended, a page at a time. Only a store that has lost writes has such
//! pools, and a run whose record cannot be read; without a repair, the places of these runs would stay taken.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::decide::decide;
use cronhold_core::decision::Decision;
use cronhold_core::record::{Actor, PoolName, Record, RecordKey, StoredRecord};
use cronhold_core::view::DecisionView;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query};

use super::NodeLoop;
use super::job_checks::CheckedRecords;
use crate::plan::PlanItem;

/// Pools that are checked at once.
const PAGE: usize = 20;
/// The wait between two pages.
const WAIT: Span = Span::from_millis(100);

impl NodeLoop {
    /// Checks the pools after one, and plans the next step.
    pub(super) async fn check_pools(&mut self, after: Option<PoolName>, now: Instant) -> Result<(), Fault> {
        let page = self.context.ports.store.page(&Query::Pools { after }, PAGE).await?;
        page.unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        let (next, wait) = match page.next(PAGE) {
            Some(RecordKey::Pool(last)) => (Some(last), WAIT),
            _ => (None, Self::WATCHDOG_EVERY),
        };
        for pool in self.damaged_pools(page.records, now).await? {
            // The command decides by what is stored then.
            self.commands.push_own(Actor::Watchdog, Command::RepairPool { pool });
        }
        self.agenda.put(PlanItem::CheckPools(next), now.plus(wait));
        Ok(())
    }

    /// The pools that a repair would change. Those with runs that cannot be read are left out.
    async fn damaged_pools(&mut self, pools: Vec<StoredRecord>, now: Instant) -> Result<Vec<PoolName>, Fault> {
        let stamp = CommandStamp { at: now, actor: Actor::Watchdog, owner: self.context.me };
        let mut runs = BTreeSet::new();
        let mut names = Vec::new();
        for stored in &pools {
            let Record::Pool(pool) = &stored.record else { continue };
            names.push(pool.name.clone());
            runs.extend(pool.active.iter().map(|active| RecordKey::Run(active.run)));
        }
        let runs = if runs.is_empty() { Vec::new() } else { self.load_readable(runs.into_iter().collect()).await? };
        let pools = pools.into_iter().map(|stored| (stored.record.key(), Some(stored)));
        let loaded = CheckedRecords(pools.chain(runs).collect::<BTreeMap<_, _>>());
        names.retain(|pool| {
            let view = DecisionView::new(&loaded, &self.world, &stamp);
            let repair = Command::RepairPool { pool: pool.clone() };
            matches!(decide(&view, &repair), Decision::Done(done) if !done.changes.is_empty())
        });
        Ok(names)
    }
}
