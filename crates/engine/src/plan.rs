//! What a node will do and when: the next occurrence of every schedule, and every check that it has to make. Entries are
//! ordered by time, and a change of one job touches only the entries of that job. Claims of occurrences have an order of
//! their own, so that the late claims after an outage do not delay what is due now.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::policy::catch_up::GRACE;
use cronhold_core::record::{ActionId, PoolName, ScheduleId};
use cronhold_core::{JobId, RunId, When};
use cronhold_schedule::Instant;

use crate::expiry::ExpiryStep;

/// Something that a node does at a certain time. The plan contains each at most once. Claims are searched by time from
/// the first of these, so `Watchdog` has to stay the first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanItem {
    /// Compare what is due in the store with the plan, and repair the differences.
    Watchdog,
    /// Look for runs of nodes that are gone, and declare them lost.
    Reap,
    /// Reload the records that other nodes have changed.
    ReloadChanges,
    /// Check the jobs after one for records that contradict each other.
    CheckJobs(Option<JobId>),
    /// Check the pools after one for runs that are gone.
    CheckPools(Option<PoolName>),
    /// End a pause of a job, or of all jobs, that ends by itself.
    EndPause(Option<JobId>),
    /// Check a run: whether it may start, or has reached a limit.
    Wake(RunId),
    /// Try an action that is not done.
    Deliver(ActionId),
    /// Decide about the pending triggers of a job.
    Batch(JobId),
    /// Claim the next occurrence of a schedule.
    Fire(JobId, ScheduleId),
    /// Take the next step through a backlog.
    CatchUp(JobId, ScheduleId),
    /// Check whether a job has more finished runs than it retains.
    Prune(JobId),
    /// Take a step of the walk that deletes what has expired.
    Expire(ExpiryStep),
    /// Delete the oldest outputs after that of a run, if all outputs together are too large.
    TrimOutputs(Option<RunId>),
}

/// Claims of an instant that are examined for each one that makes it crowded.
const SCANNED_PER_CLAIM: usize = 4;

/// An item that was taken out of the plan because its time had come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueItem {
    pub item: PlanItem,
    /// When it was due, however often it was deferred since.
    pub due: When,
    /// The nominal time of the occurrence, if the item is a claim.
    pub nominal: Option<Instant>,
}

/// The plan of a node.
#[derive(Debug, Default)]
pub struct NodePlan {
    /// Claims of occurrences, ordered by time.
    claims: BTreeSet<(When, PlanItem)>,
    /// All other items, ordered by time.
    checks: BTreeSet<(When, PlanItem)>,
    /// The time of each item.
    times: BTreeMap<PlanItem, PlannedTime>,
}

/// When an item of the plan is to be done.
#[derive(Debug, Clone, Copy)]
struct PlannedTime {
    at: When,
    /// When it was due before it was deferred.
    due: When,
    /// The nominal time of the occurrence, if the item is a claim.
    nominal: Option<Instant>,
}

impl NodePlan {
    /// Plans an item, and replaces its earlier time. `Never` removes it. An occurrence is planned with
    /// [`Self::put_occurrence`].
    pub fn put(&mut self, item: PlanItem, at: impl Into<When>) {
        let at = at.into();
        self.insert(item, PlannedTime { at, due: at, nominal: None });
    }

    /// Plans an item for a time at the latest. A time that is earlier stays.
    pub fn put_by(&mut self, item: PlanItem, at: impl Into<When>) {
        let at = at.into();
        if self.at(&item).is_none_or(|planned| planned > at) {
            self.put(item, at);
        }
    }

    /// Plans the claim of an occurrence.
    pub fn put_occurrence(&mut self, job: JobId, schedule: ScheduleId, at: impl Into<When>, nominal: Instant) {
        let at = at.into();
        self.insert(PlanItem::Fire(job, schedule), PlannedTime { at, due: at, nominal: Some(nominal) });
    }

    /// Plans the claim of an occurrence that is overdue, in the order of `at`. It is made as soon as there is room for
    /// it, and what is due now does not wait for it.
    pub fn put_overdue(&mut self, job: JobId, schedule: ScheduleId, at: Instant, nominal: Instant) {
        let time = PlannedTime { at: When::At(at), due: When::Now, nominal: Some(nominal) };
        self.insert(PlanItem::Fire(job, schedule), time);
    }

    /// Puts back an item that counts as due at a new time.
    pub fn reschedule(&mut self, due: DueItem, at: impl Into<When>) {
        let at = at.into();
        self.insert(due.item, PlannedTime { at, due: at, nominal: due.nominal });
    }

    /// Puts back an item for a later time. It still counts as due since it first was.
    pub fn defer(&mut self, due: DueItem, until: impl Into<When>) {
        let DueItem { item, due, nominal } = due;
        self.insert(item, PlannedTime { at: until.into(), due, nominal });
    }

    fn insert(&mut self, item: PlanItem, time: PlannedTime) {
        if time.at == When::Never {
            return self.remove(&item);
        }
        if let Some(before) = self.times.insert(item.clone(), time) {
            if before.at == time.at {
                return;
            }
            let old = (before.at, item);
            let order = self.order(&old.1);
            order.remove(&old);
            order.insert((time.at, old.1));
        } else {
            self.order(&item).insert((time.at, item));
        }
    }

    fn order(&mut self, item: &PlanItem) -> &mut BTreeSet<(When, PlanItem)> {
        if matches!(item, PlanItem::Fire(..)) { &mut self.claims } else { &mut self.checks }
    }

    /// Removes an item.
    pub fn remove(&mut self, item: &PlanItem) {
        if let Some(time) = self.times.remove(item) {
            self.order(item).remove(&(time.at, item.clone()));
        }
    }

    /// Plans the check of every run, and of all pending triggers, that are in the plan for a time at the latest.
    pub fn wake_all(&mut self, at: Instant) {
        let (first, last) = (PlanItem::Wake(RunId::MIN), PlanItem::Wake(RunId::MAX));
        let runs = self.times.range(first..=last).map(|(item, _)| item);
        let is_batch = |item: &&PlanItem| matches!(item, PlanItem::Batch(_));
        // Actions come between runs and triggers.
        let triggers = self.times.range(PlanItem::Wake(RunId::MAX)..).map(|(item, _)| item);
        let triggers = triggers.skip_while(|item| !is_batch(item)).take_while(is_batch);
        let wakes: Vec<PlanItem> = runs.chain(triggers).cloned().collect();
        for item in wakes {
            self.put_by(item, at);
        }
    }

    /// Plans the claims of occurrences whose nominal time has passed, and of backlogs, for a time at the latest.
    pub fn claim_overdue(&mut self, now: Instant) {
        let is_overdue = |item: &PlanItem, time: &PlannedTime| match item {
            PlanItem::Fire(..) => time.nominal.is_some_and(|nominal| nominal <= now) && !time.at.is_due(now),
            PlanItem::CatchUp(..) => !time.at.is_due(now),
            _ => false,
        };
        let overdue = self.times.iter().filter(|(item, time)| is_overdue(item, time));
        let overdue: Vec<_> = overdue.map(|(item, time)| (item.clone(), time.nominal)).collect();
        for (item, nominal) in overdue {
            self.insert(item, PlannedTime { at: now.into(), due: now.into(), nominal });
        }
    }

    /// When an item is planned for; `None` if it is not in the plan.
    pub fn at(&self, item: &PlanItem) -> Option<When> {
        self.times.get(item).map(|time| time.at)
    }

    /// When an item was due before it was deferred, and the nominal time if it is a claim.
    pub fn due(&self, item: &PlanItem) -> Option<(When, Option<Instant>)> {
        self.times.get(item).map(|time| (time.due, time.nominal))
    }

    /// When the first item is planned for.
    pub fn first(&self) -> Option<When> {
        let firsts = [self.claims.first(), self.checks.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Takes out what is due. Items that are on time come first, up to `most`. Late claims follow, up to `most_late`, so
    /// that neither delays the other.
    pub fn take_due(&mut self, now: Instant, most: usize, most_late: usize) -> Vec<DueItem> {
        let since = When::At(now.minus(GRACE));
        let mut due: Vec<(When, PlanItem)> = Vec::new();
        while due.len() < most
            && let Some(first) = self.take_on_time(since, now)
        {
            due.push(first);
        }
        for _ in 0..most_late {
            if self.claims.first().is_none_or(|(at, _)| *at >= since) {
                break;
            }
            due.extend(self.claims.pop_first());
        }
        due.into_iter().filter_map(|(_, item)| self.take_time(item)).collect()
    }

    /// The time of the first claims, if there are at least `least` of them that were not deferred to that time.
    pub fn crowded_instant(&self, least: usize) -> Option<Instant> {
        let (first, _) = self.claims.first()?;
        let When::At(at) = first else { return None };
        let least = least.max(1);
        let together = self.claims.iter().take(SCANNED_PER_CLAIM * least).take_while(|(other, _)| other == first);
        let count = together.filter(|(_, item)| !self.is_deferred(item)).take(least).count();
        (count >= least).then_some(*at)
    }

    /// Takes out up to `most` claims of an instant, except those that were deferred to it. It has to be the instant of
    /// the first claims.
    pub fn take_claims(&mut self, at: Instant, most: usize) -> Vec<DueItem> {
        let (mut taken, mut deferred) = (Vec::new(), Vec::new());
        while taken.len() < most && self.claims.first().is_some_and(|(first, _)| *first == When::At(at)) {
            let claim = self.claims.pop_first().expect("the loop has just seen a first claim");
            match self.is_deferred(&claim.1) {
                true => deferred.push(claim),
                false => taken.extend(self.take_time(claim.1)),
            }
        }
        self.claims.extend(deferred);
        taken
    }

    /// Whether an item was due before the time that it is planned for. Another node may do it in the meantime.
    fn is_deferred(&self, item: &PlanItem) -> bool {
        self.times.get(item).is_some_and(|time| time.due != time.at)
    }

    /// Completes an item that was taken out of its order.
    fn take_time(&mut self, item: PlanItem) -> Option<DueItem> {
        self.times.remove(&item).map(|time| DueItem { item, due: time.due, nominal: time.nominal })
    }

    /// Takes the first item that is due out of its order, except claims from before `since`.
    fn take_on_time(&mut self, since: When, now: Instant) -> Option<(When, PlanItem)> {
        let has_late = self.claims.first().is_some_and(|(at, _)| *at < since);
        let claim =
            if has_late { self.claims.range((since, PlanItem::Watchdog)..).next() } else { self.claims.first() };
        let first = [claim, self.checks.first()].into_iter().flatten().min().filter(|(at, _)| at.is_due(now))?;
        if has_late {
            let first = first.clone();
            self.order(&first.1).remove(&first);
            return Some(first);
        }
        // In the common case no claim is late, and the first entry needs no search.
        let is_claim = matches!(first.1, PlanItem::Fire(..));
        if is_claim { self.claims.pop_first() } else { self.checks.pop_first() }
    }

    /// The number of items in the plan.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether the plan is empty.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(job: &str) -> (JobId, ScheduleId) {
        (JobId::parse(job).expect(job), ScheduleId::parse("s").expect("an id"))
    }

    fn fire(job: &str) -> PlanItem {
        let (job, schedule) = ids(job);
        PlanItem::Fire(job, schedule)
    }

    fn second(secs: i64) -> Instant {
        Instant::from_secs(secs)
    }

    fn put(plan: &mut NodePlan, job: &str, at: i64, nominal: i64) {
        let (job, schedule) = ids(job);
        plan.put_occurrence(job, schedule, second(at), second(nominal));
    }

    fn due_claim(job: &str, due: i64, nominal: i64) -> DueItem {
        DueItem { item: fire(job), due: When::At(second(due)), nominal: Some(second(nominal)) }
    }

    fn taken(plan: &mut NodePlan, now: i64, most: usize, most_late: usize) -> Vec<PlanItem> {
        plan.take_due(second(now), most, most_late).into_iter().map(|due| due.item).collect()
    }

    #[test]
    fn items_are_taken_in_order_of_time() {
        let mut plan = NodePlan::default();
        put(&mut plan, "late", 30, 29);
        put(&mut plan, "early", 10, 10);
        put(&mut plan, "moved", 5, 5);
        put(&mut plan, "moved", 20, 20);
        put(&mut plan, "gone", 1, 1);
        plan.remove(&fire("gone"));
        plan.put_by(fire("early"), second(40));
        assert_eq!(plan.first(), Some(When::At(second(10))));
        assert_eq!(plan.take_due(second(9), 9, 9), []);
        assert_eq!(plan.take_due(second(50), 2, 9), [due_claim("early", 10, 10), due_claim("moved", 20, 20)]);
        assert_eq!((plan.len(), plan.first()), (1, Some(When::At(second(30)))));
        assert_eq!(plan.take_due(second(50), 2, 9), [due_claim("late", 30, 29)]);
        assert!(plan.is_empty() && plan.first().is_none());
    }

    #[test]
    fn deferred_item_keeps_its_due_time_and_a_rescheduled_one_does_not() {
        let mut plan = NodePlan::default();
        let at = |secs| Some(When::At(second(secs)));
        plan.defer(due_claim("a", 10, 9), second(12));
        assert_eq!((plan.at(&fire("a")), plan.due(&fire("a"))), (at(12), at(10).map(|due| (due, Some(second(9))))));
        assert_eq!((plan.take_due(second(11), 9, 9), plan.first()), (vec![], at(12)));
        assert_eq!(plan.take_due(second(12), 9, 9), [due_claim("a", 10, 9)]);
        plan.reschedule(due_claim("a", 10, 9), second(12));
        assert_eq!(plan.take_due(second(12), 9, 9), [due_claim("a", 12, 9)]);
    }

    #[test]
    fn item_that_is_never_due_is_removed() {
        let mut plan = NodePlan::default();
        plan.put(PlanItem::Reap, When::Now);
        plan.put(PlanItem::Reap, When::Never);
        assert!(plan.is_empty() && plan.first().is_none());
    }

    /// Only claims can be late: a check that was due long ago is made at once.
    #[test]
    fn late_claims_come_after_what_is_on_time() {
        let mut plan = NodePlan::default();
        put(&mut plan, "older", 5, 4);
        put(&mut plan, "old", 39, 39);
        put(&mut plan, "edge", 40, 40);
        put(&mut plan, "now", 100, 100);
        put(&mut plan, "later", 101, 101);
        plan.put(PlanItem::Watchdog, When::Now);
        plan.put(PlanItem::Expire(ExpiryStep::FIRST), second(41));
        assert_eq!(plan.first(), Some(When::Now));
        let all = [
            PlanItem::Watchdog,
            fire("edge"),
            PlanItem::Expire(ExpiryStep::FIRST),
            fire("now"),
            fire("older"),
            fire("old"),
        ];
        assert_eq!(taken(&mut plan, 100, 9, 9), all);
        assert_eq!((plan.first(), plan.len()), (Some(When::At(second(101))), 1));
    }

    #[test]
    fn late_claims_and_current_items_each_have_a_share_of_a_batch() {
        let mut plan = NodePlan::default();
        for number in 0..4 {
            put(&mut plan, &format!("late{number}"), number, number);
            put(&mut plan, &format!("live{number}"), 100 + number, 100 + number);
        }
        assert_eq!(taken(&mut plan, 110, 2, 1), [fire("live0"), fire("live1"), fire("late0")]);
        assert_eq!(taken(&mut plan, 110, 3, 2), [fire("live2"), fire("live3"), fire("late1"), fire("late2")]);
        assert_eq!(taken(&mut plan, 110, 3, 2), [fire("late3")]);
        assert!(plan.is_empty());
    }

    #[test]
    fn claims_of_one_instant_make_it_crowded() {
        let mut plan = NodePlan::default();
        for job in ["a", "b", "c"] {
            put(&mut plan, job, 10, 10);
        }
        put(&mut plan, "d", 11, 11);
        plan.put(PlanItem::Watchdog, second(5));
        let crowded = |least| plan.crowded_instant(least);
        assert_eq!((crowded(3), crowded(4), crowded(0)), (Some(second(10)), None, Some(second(10))));
        assert_eq!(plan.take_claims(second(11), 9), []);
        let claims: Vec<PlanItem> = plan.take_claims(second(10), 2).into_iter().map(|due| due.item).collect();
        assert_eq!(claims, [fire("a"), fire("b")]);
        assert_eq!(plan.take_claims(second(10), 2), [due_claim("c", 10, 10)]);
        assert_eq!((plan.len(), plan.at(&fire("a")), plan.crowded_instant(1)), (2, None, Some(second(11))));
    }

    /// Another node claims them first, so a decision in advance would be made in vain.
    #[test]
    fn deferred_claims_are_not_taken_in_advance() {
        let mut plan = NodePlan::default();
        plan.defer(due_claim("a", 10, 10), second(11));
        assert_eq!(plan.crowded_instant(1), None);
        put(&mut plan, "b", 11, 11);
        assert_eq!((plan.crowded_instant(1), plan.crowded_instant(2)), (Some(second(11)), None));
        assert_eq!(plan.take_claims(second(11), 9), [due_claim("b", 11, 11)]);
        assert_eq!(taken(&mut plan, 11, 9, 9), [fire("a")]);
    }

    #[test]
    fn wake_all_moves_checks_of_runs_and_nothing_else() {
        let mut plan = NodePlan::default();
        let run = RunId::from_random(second(1), [9; 10]);
        plan.put(PlanItem::Wake(run), second(60));
        put(&mut plan, "a", 60, 60);
        plan.put(PlanItem::Watchdog, second(60));
        plan.wake_all(second(5));
        let woken = DueItem { item: PlanItem::Wake(run), due: When::At(second(5)), nominal: None };
        assert_eq!(plan.take_due(second(59), 9, 9), [woken]);
        assert_eq!(plan.take_due(second(59), 9, 9), []);
    }
}
