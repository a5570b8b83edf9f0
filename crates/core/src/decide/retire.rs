//! Schedules that do not count any longer, because they or their job were removed or disabled. Their cursors and
//! backlogs go; what was due or was to be caught up is recorded, so that it too has its outcome.

use std::sync::Arc;

use super::catch_up;
use super::draft::Draft;
use super::skips::{self, Part};
use super::timetable::Timetable;
use crate::policy::catch_up::Reach;
use crate::record::{Backlog, Cursor, JobRecord, JobState, Key, Pauses, ScheduleId};
use crate::run::Reason;
use crate::view::Halt;

/// Schedules of a job that retire.
pub(super) struct Retiring<'a> {
    job: &'a JobRecord,
    leaving: Vec<Leaving<'a>>,
    everything: Arc<Pauses>,
}

/// One of them, and what is there of it.
struct Leaving<'a> {
    schedule: &'a ScheduleId,
    cursor: Option<Arc<Cursor>>,
    backlog: Option<Arc<Backlog>>,
}

impl<'a> Retiring<'a> {
    /// Looks at what is there of them.
    pub(super) fn new(draft: &Draft<'_>, job: &'a JobRecord, schedules: impl Iterator<Item = &'a ScheduleId>) -> Self {
        let mut leaving = Vec::new();
        for schedule in schedules {
            let cursor = draft.view.cursor(&job.id, schedule);
            let backlog = draft.view.backlog(&job.id, schedule);
            if cursor.is_some() || backlog.is_some() {
                leaving.push(Leaving { schedule, cursor, backlog });
            }
        }
        Self { job, leaving, everything: draft.view.pauses() }
    }

    /// Deletes their cursors and backlogs, and records what was left of them.
    pub(super) fn retire(self, draft: &mut Draft<'_>, state: &mut JobState, reason: &Reason) -> Result<(), Halt> {
        let pauses = state.pauses.clone();
        for Leaving { schedule, cursor, backlog } in &self.leaving {
            let definition = self.job.schedule(schedule);
            // One that cannot be asked any more, because its zone or calendar went missing, cannot say what was due.
            let table = definition.and_then(|own| Timetable::new(self.job, schedule, own, draft.view.world).ok());
            if let Some(table) = table {
                let parts = self.unclaimed(&table, cursor.as_deref(), &pauses, draft, reason);
                let rest: Vec<Reach> =
                    backlog.iter().flat_map(|backlog| backlog.rest()).map(|stretch| stretch.reach()).collect();
                catch_up::give_up(draft, state, &table, &rest, reason)?;
                skips::record_all(draft, state, &mut None, &table, parts)?;
            }
        }
        for Leaving { schedule, cursor, backlog } in self.leaving {
            if let Some(cursor) = cursor {
                state.floor = state.floor.max(cursor.last);
                draft.delete(Key::Cursor(self.job.id.clone(), schedule.clone()));
            }
            if backlog.is_some() {
                draft.delete(Key::Backlog(self.job.id.clone(), schedule.clone()));
            }
        }
        Ok(())
    }

    /// Those whose time has come and that nobody has claimed yet.
    fn unclaimed(
        &self,
        table: &Timetable<'_>,
        cursor: Option<&Cursor>,
        pauses: &Pauses,
        draft: &Draft<'_>,
        reason: &Reason,
    ) -> Vec<Part> {
        let now = draft.at();
        let first = cursor.and_then(|cursor| cursor.next).filter(|next| *next <= now);
        let reach = first.map(|from| Reach { from, to: table.last_come(from, now) });
        let split = |reach| skips::parts(table, reach, reason, &[pauses, &self.everything], now);
        reach.map(split).unwrap_or_default()
    }
}
