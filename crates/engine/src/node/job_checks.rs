//! Checks all jobs for records that contradict each other, a few at a time. Only a store that has lost writes has such
//! records; without a repair, their jobs would not start again. Cursors from older time zone data are computed again.
//!
//! The cost of a walk is linear in the number of jobs. So it takes a small part of the time, however long it lasts then,
//! unless there is a reason to expect that it finds something.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::JobId;
use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::decide::decide;
use cronhold_core::decision::Decision;
use cronhold_core::record::{Actor, Record, RecordKey, StoredRecord};
use cronhold_core::view::{DecisionView, RecordSource};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query};

use super::NodeLoop;
use crate::plan::PlanItem;
use crate::ports::EngineEvent;

/// Jobs that are checked at once: few enough that they do not delay what is due.
const PAGE: usize = 200;
/// Rounds in which the records of these jobs are loaded.
const ROUNDS_MAX: usize = 4;
/// The shortest and the longest wait between two short steps.
const WAIT_MIN: Span = Span::from_millis(10);
const WAIT_MAX: Span = Span::from_secs(1);
/// A walk that is not urgent waits this many times as long as its step took.
const IDLE_PER_STEP: u64 = 200;

/// The records of a page of jobs or pools.
#[derive(Default)]
pub(super) struct CheckedRecords(pub(super) BTreeMap<RecordKey, Option<StoredRecord>>);

impl RecordSource for CheckedRecords {
    fn get(&self, key: &RecordKey) -> Option<Option<&StoredRecord>> {
        self.0.get(key).map(Option::as_ref)
    }
}

impl NodeLoop {
    /// The time between the start and the first check, which also finds jobs that cannot be read.
    pub(super) const CHECK_JOBS_AFTER: Span = Span::from_secs(1);

    /// Checks the jobs after one, and plans the next step.
    pub(super) async fn check_jobs(&mut self, after: Option<JobId>, now: Instant) -> Result<(), Fault> {
        let began = self.context.uptime();
        let page = self.context.ports.store.page(&Query::Jobs { after }, PAGE).await?;
        let next = page.next(PAGE);
        page.unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        for stored in &page.records {
            if let Record::Job(job) = &stored.record
                && !job.job.triggers.is_empty()
            {
                self.context.emit(&EngineEvent::TriggersChecked(&job.id));
            }
        }
        let loaded = page.records.into_iter().map(|stored| (stored.record.key(), Some(stored)));
        let loaded = CheckedRecords(loaded.collect());
        self.watchdog.jobs.record(loaded.0.len(), self.context.uptime());
        for job in self.damaged_jobs(loaded, now).await? {
            // The walk does not read everything at one moment. The command decides by what is stored then.
            self.commands.push_own(Actor::Watchdog, Command::RepairJob { job });
        }
        let (next, wait) = match next {
            Some(RecordKey::Job(last)) => (Some(last), self.wait_between_steps(began)),
            _ => {
                self.watchdog.is_urgent = false;
                let took = self.watchdog.jobs.end(self.context.uptime());
                (None, Self::WATCHDOG_EVERY.minus(took).max(WAIT_MAX))
            }
        };
        self.agenda.put(PlanItem::CheckJobs(next), now.plus(wait));
        self.report_delay();
        Ok(())
    }

    /// The jobs that a repair would change. Those whose records cannot be read are left out.
    async fn damaged_jobs(&mut self, mut loaded: CheckedRecords, now: Instant) -> Result<Vec<JobId>, Fault> {
        let stamp = CommandStamp { at: now, actor: Actor::Watchdog, owner: self.context.me };
        let id = |key: &RecordKey| if let RecordKey::Job(job) = key { Some(job.clone()) } else { None };
        let mut open: Vec<JobId> = loaded.0.keys().filter_map(id).collect();
        let mut damaged = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let mut missing = BTreeSet::new();
            open.retain(|job| {
                let view = DecisionView::new(&loaded, &self.world, &stamp);
                match decide(&view, &Command::RepairJob { job: job.clone() }) {
                    Decision::Need(keys) => {
                        missing.extend(keys);
                        return true;
                    }
                    Decision::Done(done) if !done.changes.is_empty() => damaged.push(job.clone()),
                    Decision::Done(_) | Decision::Reject(_) => {}
                }
                false
            });
            if missing.is_empty() {
                break;
            }
            loaded.0.extend(self.load_readable(missing.into_iter().collect()).await?);
        }
        Ok(damaged)
    }

    /// The wait until the next page, such that all jobs are checked within half a period, unless that takes too much of
    /// the time. The plan has about as many items as there are schedules.
    fn wait_between_steps(&self, began: Span) -> Span {
        if self.watchdog.is_urgent {
            return WAIT_MIN;
        }
        let steps = u64::try_from(self.agenda.len() / PAGE).unwrap_or(u64::MAX).saturating_add(1);
        let wait = Span::from_micros(Self::WATCHDOG_EVERY.micros() / 2 / steps).max(WAIT_MIN).min(WAIT_MAX);
        let took = self.context.uptime().minus(began);
        wait.max(Span::from_micros(took.micros().saturating_mul(IDLE_PER_STEP)))
    }
}
