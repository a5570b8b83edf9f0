//! Schedules that retire because they or their job were removed or disabled. Their cursors and backlogs are deleted.
//! Occurrences that were due or in the backlog are recorded as skipped, so that they have an outcome too.

use std::sync::Arc;

use super::catch_up;
use super::draft::UnitDraft;
use super::skips::{self, SkipPart};
use super::timetable::Timetable;
use crate::policy::catch_up::OccurrenceRange;
use crate::record::{Backlog, Cursor, JobRecord, JobState, PauseState, RecordKey, ScheduleId};
use crate::run::Reason;
use crate::view::Halt;

/// Schedules of a job that retire.
pub(super) struct RetiringSchedules<'a> {
    job: &'a JobRecord,
    leaving: Vec<RetiringSchedule<'a>>,
    everything: Arc<PauseState>,
}

/// A schedule that retires, with its records.
struct RetiringSchedule<'a> {
    schedule: &'a ScheduleId,
    cursor: Option<Arc<Cursor>>,
    backlog: Option<Arc<Backlog>>,
    /// A cursor and a backlog that cannot be read.
    unreadable: Vec<RecordKey>,
}

impl<'a> RetiringSchedules<'a> {
    /// Reads the records of the schedules.
    pub(super) fn new(
        draft: &UnitDraft<'_>,
        job: &'a JobRecord,
        schedules: impl Iterator<Item = &'a ScheduleId>,
    ) -> Self {
        let mut leaving = Vec::new();
        for schedule in schedules {
            let cursor = draft.view.cursor(&job.id, schedule);
            let backlog = draft.view.backlog(&job.id, schedule);
            let mut unreadable = vec![
                RecordKey::Cursor(job.id.clone(), schedule.clone()),
                RecordKey::Backlog(job.id.clone(), schedule.clone()),
            ];
            unreadable.retain(|key| draft.view.is_unreadable(key));
            if cursor.is_some() || backlog.is_some() || !unreadable.is_empty() {
                leaving.push(RetiringSchedule { schedule, cursor, backlog, unreadable });
            }
        }
        Self { job, leaving, everything: draft.view.pauses() }
    }

    /// Deletes the cursors and backlogs, and records the occurrences that were left.
    pub(super) fn retire(self, draft: &mut UnitDraft<'_>, state: &mut JobState, reason: &Reason) -> Result<(), Halt> {
        let pauses = state.pauses.clone();
        for RetiringSchedule { schedule, cursor, backlog, .. } in &self.leaving {
            let definition = self.job.schedule(schedule);
            // If the schedule's zone or calendar is missing, its occurrences cannot be computed and are not recorded.
            let table = definition.and_then(|own| Timetable::new(self.job, schedule, own, draft.view.world).ok());
            if let Some(mut table) = table {
                let parts = self.unclaimed(&table, cursor.as_deref(), &pauses, draft, reason);
                let rest: Vec<OccurrenceRange> =
                    backlog.iter().flat_map(|backlog| backlog.rest()).map(|stretch| stretch.reach()).collect();
                catch_up::record_given_up(draft, state, &table, &rest, reason)?;
                if let Some(cursor) = cursor {
                    table = table.for_cursor(cursor);
                }
                skips::record_all(draft, state, &mut None, &table, parts)?;
            }
        }
        for RetiringSchedule { schedule, cursor, backlog, unreadable } in self.leaving {
            unreadable.into_iter().for_each(|key| draft.delete(key));
            if let Some(cursor) = cursor {
                state.floor = state.floor.max(cursor.last);
                draft.delete(RecordKey::Cursor(self.job.id.clone(), schedule.clone()));
            }
            if backlog.is_some() {
                draft.delete(RecordKey::Backlog(self.job.id.clone(), schedule.clone()));
            }
        }
        Ok(())
    }

    /// The occurrences that are due and not claimed, with the reason for which they are skipped.
    fn unclaimed(
        &self,
        table: &Timetable<'_>,
        cursor: Option<&Cursor>,
        pauses: &PauseState,
        draft: &UnitDraft<'_>,
        reason: &Reason,
    ) -> Vec<SkipPart> {
        let now = draft.at();
        let first = cursor.and_then(|cursor| cursor.next).filter(|next| *next <= now);
        let reach = first.map(|from| OccurrenceRange { from, to: table.last_come(from, now) });
        let split = |reach| skips::split_by_pauses(table, reach, reason, &[pauses, &self.everything], now);
        reach.map(split).unwrap_or_default()
    }
}
