//! The record of a span of skipped occurrences.

use cronhold_schedule::Instant;

use super::{Run, ScheduleId, Transition};
use crate::args::Args;
use crate::ids::{JobId, JobUid, RunId, RunNumber};
use crate::policy::catch_up::CountedRange;
use crate::run::{Reason, State};

/// Occurrences of one schedule in a row that were skipped for one reason. A span is not a run: it is only extended and
/// pruned, and no command addresses it. It is listed among the runs of its job, where it counts as one skipped run.
#[derive(Debug, Clone, PartialEq)]
pub struct SkipSpan {
    /// Unique among all runs and spans, and derived from the first occurrence, so that a repeated claim creates the
    /// same span.
    pub id: RunId,
    /// Its number within its job, from the same counter as the numbers of runs.
    pub number: RunNumber,
    /// The name of its job.
    pub job: JobId,
    /// The uid of its job, which tells jobs of the same name apart.
    pub uid: JobUid,
    /// The values of the job's params.
    pub args: Args,
    /// The schedule whose occurrences were skipped.
    pub schedule: ScheduleId,
    /// The skipped occurrences. Only its end and its count change.
    pub range: CountedRange,
    /// Why they were skipped.
    pub reason: Reason,
    /// How many actions its creation has caused.
    pub actions: u32,
    /// When the span was created and by whom: one entry with the state `skipped`.
    pub log: Vec<Transition>,
}

impl SkipSpan {
    /// Its place in lists of runs: the nominal time of its first occurrence.
    pub fn nominal(&self) -> Instant {
        self.range.from
    }

    /// Until when occurrences were skipped. A span that made up for an outage ended when it was created.
    pub fn active_until(&self) -> Instant {
        self.log.last().map_or(self.range.to, |entry| entry.at.max(self.range.to))
    }

    /// Whether an occurrence at `nominal` of the span's schedule is part of the span.
    pub fn covers(&self, nominal: Instant) -> bool {
        self.range.from <= nominal && nominal <= self.range.to
    }

    /// The skipped run that the span looks like in lists of runs. Stores keep a span in this form with its range.
    pub fn to_listed_run(&self) -> Run {
        let Self { id, number, job, uid, args, schedule, range, reason, actions, log } = self;
        Run {
            args: args.clone(),
            schedule: Some(schedule.clone()),
            state: State::Skipped,
            reason: Some(reason.clone()),
            actions: *actions,
            log: log.clone(),
            ..Run::blank(*id, *number, job.clone(), *uid, range.from)
        }
    }

    /// The span that a store keeps as a run with a range; `None` if the run has no schedule or no reason.
    pub fn from_listed_run(run: Run, range: CountedRange) -> Option<Self> {
        let Run { id, number, job, uid, args, schedule, reason, actions, log, .. } = run;
        Some(Self { id, number, job, uid, args, schedule: schedule?, range, reason: reason?, actions, log })
    }
}
