//! Everything that a node intends to do later: its plan, occurrences of paused jobs, schedules that fire when a node
//! starts, and waiting runs with what they wait for. The agenda follows the stored records; it decides nothing itself.

use std::collections::BTreeSet;

use cronhold_core::command::Command;
use cronhold_core::decision::RecordChange;
use cronhold_core::policy::catch_up::GRACE;
use cronhold_core::record::{Record, RecordKey, ScheduleId};
use cronhold_core::{JobId, RunId, When};
use cronhold_schedule::{Instant, Span};

use crate::paused_occurrences::PausedOccurrences;
use crate::plan::{DueItem, NodePlan, PlanItem};
use crate::waiting_runs::WaitingRuns;

/// Everything that a node intends to do later.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    plan: NodePlan,
    /// Occurrences whose time came while their job was paused.
    paused: PausedOccurrences,
    /// Schedules that have an occurrence at each start of a node.
    start_schedules: BTreeSet<(JobId, ScheduleId)>,
    /// Those of them whose occurrence the node still has to claim. A schedule that is added later has its first one at
    /// the next start.
    due_at_start: BTreeSet<(JobId, ScheduleId)>,
    /// Waiting runs, by the records that block them.
    waiting: WaitingRuns,
    /// Waiting runs that are to be checked at once.
    woken: Vec<RunId>,
    /// Items that the watchdog has planned, so that their runs record it as the actor.
    repairs: BTreeSet<PlanItem>,
    catch_up: CatchUpBudget,
}

/// How many runs of backlogs have started in the current second.
#[derive(Debug, Default)]
struct CatchUpBudget {
    second: u64,
    used: u32,
}

impl Agenda {
    /// Plans an item, and replaces its earlier time. `Never` removes it.
    pub(crate) fn put(&mut self, item: PlanItem, at: impl Into<When>) {
        self.plan.put(item, at);
    }

    /// Plans an item for a time at the latest.
    pub(crate) fn put_by(&mut self, item: PlanItem, at: impl Into<When>) {
        self.plan.put_by(item, at);
    }

    /// Plans the claim of the next occurrence of a schedule, given its nominal time and the time to claim it at.
    pub(crate) fn put_next(&mut self, job: JobId, schedule: ScheduleId, next: Option<(Instant, Instant)>) {
        self.paused.remove(&job, &schedule);
        match next {
            Some((nominal, at)) => self.plan.put_occurrence(job, schedule, at, nominal),
            None => self.plan.remove(&PlanItem::Fire(job, schedule)),
        }
    }

    /// Keeps an occurrence back until the pause of its job ends.
    pub(crate) fn pause(&mut self, job: JobId, schedule: ScheduleId, nominal: Instant) {
        self.plan.remove(&PlanItem::Fire(job.clone(), schedule.clone()));
        self.paused.put(job, schedule, nominal);
    }

    /// Plans the paused occurrences of a job, or of all jobs. They are late, however short the pause was: thousands of
    /// them must not delay what is due now. A claim of a job that is still paused puts its occurrence back.
    pub(crate) fn resume(&mut self, job: Option<&JobId>, now: Instant) {
        let late = now.minus(GRACE).minus(Span::from_micros(1));
        for (job, schedule, nominal) in self.paused.take(job) {
            self.plan.put_overdue(job, schedule, nominal.min(late), nominal);
        }
    }

    /// Jobs that have paused occurrences, ordered by id, at most `limit` of them after one.
    pub(crate) fn paused_jobs(&self, after: Option<&JobId>, limit: usize) -> Vec<JobId> {
        self.paused.jobs(after, limit)
    }

    /// Whether an occurrence of a job is paused.
    pub(crate) fn has_paused(&self, job: &JobId) -> bool {
        self.paused.has(job)
    }

    /// Whether an occurrence of a schedule is paused.
    pub(crate) fn is_paused(&self, job: &JobId, schedule: &ScheduleId) -> bool {
        self.paused.has_schedule(job, schedule)
    }

    /// Plans the check of every planned run, and of all pending triggers, for a time at the latest.
    pub(crate) fn wake_all(&mut self, at: Instant) {
        self.plan.wake_all(at);
    }

    /// Plans the claim of every occurrence and backlog whose time has passed for now.
    pub(crate) fn claim_overdue(&mut self, now: Instant) {
        self.plan.claim_overdue(now);
    }

    /// Wakes the runs that wait for a record which this node has changed.
    pub(crate) fn wake_waiting(&mut self, record: &RecordKey) {
        let woken = self.waiting.waiting_for(record);
        self.woken.extend(woken);
    }

    /// The runs that wait for a record which another node has changed.
    pub(crate) fn record_foreign_change(&mut self, record: &RecordKey, now: Instant) -> Vec<RunId> {
        self.waiting.record_foreign_change(record, now)
    }

    /// Takes out the woken runs, for a caller that plans their checks. This comes after the effects of their records,
    /// which would replace the time.
    pub(crate) fn take_woken(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.woken)
    }

    /// Requests that schedules which fire at the start of a node fire now.
    pub(crate) fn request_start(&mut self) {
        self.due_at_start = self.start_schedules.clone();
    }

    /// The claims of schedules that fire at the start of a node, once after each request.
    pub(crate) fn take_start_claims(&mut self, now: Instant) -> Vec<Command> {
        let schedules = std::mem::take(&mut self.due_at_start).into_iter();
        schedules.map(|(job, schedule)| Command::Fire { job, schedule, nominal: now, at_start: true }).collect()
    }

    /// Follows the change of a record.
    pub(crate) fn record_change(&mut self, change: &RecordChange, now: Instant) {
        match change {
            RecordChange::Put(Record::Run(run)) => {
                let woken = self.waiting.record_run(run, now);
                self.woken.extend(woken);
            }
            RecordChange::Delete(RecordKey::Run(run)) => self.forget_waiting(*run),
            RecordChange::Put(Record::Cursor(cursor)) if cursor.at_start => {
                self.start_schedules.insert((cursor.job.clone(), cursor.schedule.clone()));
            }
            RecordChange::Delete(RecordKey::Cursor(job, schedule)) if !self.start_schedules.is_empty() => {
                self.start_schedules.remove(&(job.clone(), schedule.clone()));
            }
            RecordChange::Put(Record::Pause(pauses)) if !pauses.is_paused() => {
                self.resume(None, now);
                self.plan.wake_all(now);
            }
            RecordChange::Put(Record::JobState(state)) if !state.pauses.is_paused() => {
                self.resume(Some(&state.job), now);
            }
            _ => {}
        }
    }

    /// Whether a run waits for a record, as far as this node knows.
    pub(crate) fn is_waiting(&self, run: RunId) -> bool {
        self.waiting.contains(run)
    }

    /// Forgets a run that does not wait any more. The next run that waits for the same thing is woken in its place.
    pub(crate) fn forget_waiting(&mut self, run: RunId) {
        let woken = self.waiting.remove(run);
        self.woken.extend(woken);
    }

    /// Takes out what is due; see [`NodePlan::take_due`].
    pub(crate) fn take_due(&mut self, now: Instant, most: usize, most_late: usize) -> Vec<DueItem> {
        self.plan.take_due(now, most, most_late)
    }

    /// Takes out claims of an instant; see [`NodePlan::take_claims`].
    pub(crate) fn take_claims(&mut self, at: Instant, most: usize) -> Vec<DueItem> {
        self.plan.take_claims(at, most)
    }

    /// Puts back an item for a later time. It still counts as due since it first was.
    pub(crate) fn defer(&mut self, due: DueItem, until: Instant) {
        self.plan.defer(due, until);
    }

    /// Puts back an item that counts as due at a new time.
    pub(crate) fn reschedule(&mut self, due: DueItem, at: impl Into<When>) {
        self.plan.reschedule(due, at);
    }

    /// Counts a run of a backlog, if fewer than `rate` have started in this second. Otherwise returns the time until
    /// the next second.
    pub(crate) fn take_catch_up(&mut self, uptime: Span, rate: u32) -> Result<(), Span> {
        if self.catch_up.take(uptime, rate) {
            return Ok(());
        }
        Err(Span::from_micros(1_000_000 - uptime.micros() % 1_000_000))
    }

    /// Plans what the watchdog found missing and that was due at `due`. The watchdog is recorded as the actor.
    pub(crate) fn put_missed(&mut self, item: PlanItem, now: Instant, due: Instant) {
        self.repairs.insert(item.clone());
        match item {
            PlanItem::Fire(job, schedule) => self.plan.put_overdue(job, schedule, due, due),
            item => self.plan.put(item, now),
        }
    }

    /// Whether the watchdog has planned an item, which is then taken as done.
    pub(crate) fn take_repair(&mut self, item: &PlanItem) -> bool {
        self.repairs.remove(item)
    }

    /// Forgets which items the watchdog has planned.
    pub(crate) fn clear_repairs(&mut self) {
        self.repairs.clear();
    }

    /// Whether an item is planned.
    pub(crate) fn has(&self, item: &PlanItem) -> bool {
        self.plan.at(item).is_some()
    }

    /// Whether an item is planned and its time has come.
    pub(crate) fn is_due(&self, item: &PlanItem, now: Instant) -> bool {
        self.plan.at(item).is_some_and(|at| at.is_due(now))
    }

    /// When a planned item was due, and its nominal time if it is a claim.
    pub(crate) fn due(&self, item: &PlanItem) -> Option<(When, Option<Instant>)> {
        self.plan.due(item)
    }

    /// How long it is until the first item is due.
    pub(crate) fn next_in(&self, now: Instant) -> Option<Span> {
        match self.plan.first()? {
            When::Now => Some(Span::ZERO),
            When::At(at) => Some(at.since(now)),
            When::Never => None,
        }
    }

    /// The time of the first claims, if at least `least` of them were not deferred to it.
    pub(crate) fn crowded_instant(&self, least: usize) -> Option<Instant> {
        self.plan.crowded_instant(least)
    }

    /// The number of planned items.
    pub(crate) fn len(&self) -> usize {
        self.plan.len()
    }
}

impl CatchUpBudget {
    fn take(&mut self, uptime: Span, rate: u32) -> bool {
        if self.second != uptime.secs() {
            *self = Self { second: uptime.secs(), used: 0 };
        }
        self.used += 1;
        self.used <= rate.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1_000);

    fn job() -> JobId {
        JobId::parse("j").expect("an id")
    }

    fn schedule() -> ScheduleId {
        ScheduleId::parse("s").expect("an id")
    }

    #[test]
    fn paused_occurrence_leaves_the_plan_until_its_job_is_resumed() {
        let mut agenda = Agenda::default();
        agenda.put_next(job(), schedule(), Some((NOW, NOW)));
        agenda.pause(job(), schedule(), NOW);
        assert!(agenda.len() == 0 && agenda.has_paused(&job()) && agenda.is_paused(&job(), &schedule()));
        let later = NOW.plus(Span::from_secs(30));
        agenda.resume(Some(&job()), later);
        let item = PlanItem::Fire(job(), schedule());
        assert_eq!(agenda.due(&item), Some((When::Now, Some(NOW))));
        agenda.put_next(JobId::parse("live").expect("an id"), schedule(), Some((later, later)));
        let first: Vec<PlanItem> = agenda.take_due(later, 9, 9).into_iter().map(|due| due.item).collect();
        let live = PlanItem::Fire(JobId::parse("live").expect("an id"), schedule());
        assert_eq!(first, [live, item.clone()], "what is due now comes first");
        agenda.put_next(job(), schedule(), None);
        assert!(!agenda.has(&item) && !agenda.has_paused(&job()));
    }

    /// The keeper may work only after job files were loaded, and the claims of a start wait for it.
    #[test]
    fn schedule_that_is_added_after_a_start_waits_for_the_next_one() {
        let mut agenda = Agenda::default();
        let add = |agenda: &mut Agenda, name: &str| {
            agenda.start_schedules.insert((JobId::parse(name).expect("an id"), schedule()));
        };
        let claimed = |agenda: &mut Agenda| -> Vec<String> {
            let claims = agenda.take_start_claims(NOW).into_iter();
            claims
                .filter_map(|claim| if let Command::Fire { job, .. } = claim { Some(job.to_string()) } else { None })
                .collect()
        };
        add(&mut agenda, "old");
        agenda.request_start();
        add(&mut agenda, "new");
        assert_eq!((claimed(&mut agenda), claimed(&mut agenda)), (vec!["old".to_owned()], vec![]));
        agenda.request_start();
        assert_eq!(claimed(&mut agenda), ["new", "old"]);
    }

    #[test]
    fn catch_up_beyond_the_rate_waits_for_the_next_second() {
        let mut agenda = Agenda::default();
        let mut take = |millis| agenda.take_catch_up(Span::from_millis(millis), 2);
        assert_eq!((take(100), take(200), take(300)), (Ok(()), Ok(()), Err(Span::from_millis(700))));
        assert_eq!(take(1_000), Ok(()));
    }
}
