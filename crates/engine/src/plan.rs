//! What a node will do and when: the next occurrence of every schedule, and every other moment at which something has
//! to be looked at. Ordered by time; a change of one job touches its own entries only. Claims are kept apart, so that
//! those of an outage can stand back behind what is due now.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::policy::catch_up::GRACE;
use cronhold_core::record::ScheduleId;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

/// Something that is done at a certain time. Each stands in the plan at most once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Look for what nobody has done in time.
    Watch,
    /// Look after the runs of nodes that are gone.
    Reap,
    /// Look at what others have changed.
    Hear,
    /// Look at a run.
    Wake(RunId),
    /// Claim the next occurrence of a schedule.
    Fire(JobId, ScheduleId),
    /// Go on with a backlog.
    CatchUp(JobId, ScheduleId),
    /// Look whether old runs can go.
    Prune(JobId),
    /// Look whether old outputs can go, those after a run's.
    Expire(Option<RunId>),
}

/// The plan of a node.
#[derive(Debug, Default)]
pub struct Plan {
    /// Claims of occurrences, in the order of time.
    claims: BTreeSet<(Instant, Item)>,
    /// Everything else, in the order of time.
    looks: BTreeSet<(Instant, Item)>,
    /// When each is.
    times: BTreeMap<Item, Slot>,
}

/// When something is to be done.
#[derive(Debug, Clone, Copy)]
struct Slot {
    at: Instant,
    /// When it was due before it was put off.
    due: Instant,
    /// Which occurrence it is, when it is one.
    nominal: Instant,
}

impl Plan {
    /// Puts something at a time, instead of when it was to be before.
    pub fn put(&mut self, item: Item, at: Instant) {
        self.put_for(item, at, at);
    }

    /// Puts the claim of an occurrence at the time when it is due.
    pub fn put_for(&mut self, item: Item, at: Instant, nominal: Instant) {
        self.put_off(item, at, at, nominal);
    }

    /// Puts something that is due at a later time.
    pub fn put_off(&mut self, item: Item, at: Instant, due: Instant, nominal: Instant) {
        if let Some(before) = self.times.insert(item.clone(), Slot { at, due, nominal }) {
            if before.at == at {
                return;
            }
            let old = (before.at, item);
            let order = self.order(&old.1);
            order.remove(&old);
            order.insert((at, old.1));
        } else {
            self.order(&item).insert((at, item));
        }
    }

    fn order(&mut self, item: &Item) -> &mut BTreeSet<(Instant, Item)> {
        if matches!(item, Item::Fire(..)) { &mut self.claims } else { &mut self.looks }
    }

    /// Puts something at a time unless it is to be earlier anyway.
    pub fn put_by(&mut self, item: Item, at: Instant) {
        if self.at(&item).is_none_or(|planned| planned > at) {
            self.put(item, at);
        }
    }

    /// Takes something out.
    pub fn remove(&mut self, item: &Item) {
        if let Some(slot) = self.times.remove(item) {
            self.order(item).remove(&(slot.at, item.clone()));
        }
    }

    /// Puts every look at a run at a time: something that may have held back any of them has ended.
    pub fn wake_all(&mut self, at: Instant) {
        let (first, last) = (Item::Wake(RunId::MIN), Item::Wake(RunId::MAX));
        let wakes: Vec<Item> = self.times.range(first..=last).map(|(item, _)| item.clone()).collect();
        for item in wakes {
            self.put_by(item, at);
        }
    }

    /// When something is to be done.
    pub fn at(&self, item: &Item) -> Option<Instant> {
        self.times.get(item).map(|slot| slot.at)
    }

    /// When something was due before it was put off, and for which occurrence.
    pub fn due(&self, item: &Item) -> Option<(Instant, Instant)> {
        self.times.get(item).map(|slot| (slot.due, slot.nominal))
    }

    /// When the first is to be done.
    pub fn first(&self) -> Option<Instant> {
        let firsts = [self.claims.first(), self.looks.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Takes out what is due: each with the time when it was due, and which occurrence it is. What is on time comes
    /// first, up to `most`. Claims that are late have a share of their own after that, up to `most_late`, so that neither
    /// holds up the other.
    pub fn take_due(&mut self, now: Instant, most: usize, most_late: usize) -> Vec<(Item, Instant, Instant)> {
        let since = now.minus(GRACE);
        let mut due: Vec<(Instant, Item)> = Vec::new();
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
        let times = &mut self.times;
        due.into_iter().filter_map(|(_, item)| times.remove(&item).map(|slot| (item, slot.due, slot.nominal))).collect()
    }

    /// The instant of the first claims, when there are so many of them at least.
    pub fn crowd(&self, least: usize) -> Option<Instant> {
        let (at, _) = self.claims.first()?;
        let together = self.claims.iter().take(least.max(1)).take_while(|(other, _)| other == at).count();
        (together >= least.max(1)).then_some(*at)
    }

    /// Takes out claims of an instant at which the first ones are.
    pub fn take_claims(&mut self, at: Instant, most: usize) -> Vec<(Item, Instant, Instant)> {
        let mut taken = Vec::new();
        while taken.len() < most && self.claims.first().is_some_and(|(first, _)| *first == at) {
            let (_, item) = self.claims.pop_first().expect("it was just seen");
            taken.extend(self.times.remove(&item).map(|slot| (item, slot.due, slot.nominal)));
        }
        taken
    }

    /// Takes out the first thing that is due and is not a claim from before an instant.
    fn take_on_time(&mut self, since: Instant, now: Instant) -> Option<(Instant, Item)> {
        let has_late = self.claims.first().is_some_and(|(at, _)| *at < since);
        // Nothing at that instant comes before a look of the watchdog.
        let claim = if has_late { self.claims.range((since, Item::Watch)..).next() } else { self.claims.first() };
        let first = [claim, self.looks.first()].into_iter().flatten().min().filter(|(at, _)| *at <= now)?;
        if has_late {
            let first = first.clone();
            self.order(&first.1).remove(&first);
            return Some(first);
        }
        // Most of the time nothing is late, and nothing has to be looked for.
        let is_claim = matches!(first.1, Item::Fire(..));
        if is_claim { self.claims.pop_first() } else { self.looks.pop_first() }
    }

    /// How many things are planned.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(job: &str) -> Item {
        Item::Fire(JobId::parse(job).expect(job), ScheduleId::parse("s").expect("an id"))
    }

    fn second(secs: i64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn pops_in_the_order_of_time() {
        let mut plan = Plan::default();
        plan.put_for(fire("late"), second(30), second(29));
        plan.put(fire("early"), second(10));
        plan.put(fire("moved"), second(5));
        plan.put(fire("moved"), second(20));
        plan.put(fire("gone"), second(1));
        plan.remove(&fire("gone"));
        plan.put_by(fire("early"), second(40));
        assert_eq!(plan.first(), Some(second(10)));
        assert_eq!(plan.take_due(second(9), 9, 9), []);
        let early = (fire("early"), second(10), second(10));
        let moved = (fire("moved"), second(20), second(20));
        assert_eq!(plan.take_due(second(50), 2, 9), [early, moved]);
        assert_eq!((plan.len(), plan.first()), (1, Some(second(30))));
        assert_eq!(plan.take_due(second(50), 2, 9), [(fire("late"), second(30), second(29))]);
        assert!(plan.is_empty() && plan.first().is_none());
    }

    #[test]
    fn what_was_put_off_keeps_its_time() {
        let mut plan = Plan::default();
        plan.put_for(fire("a"), second(10), second(9));
        plan.put_off(fire("a"), second(12), second(10), second(9));
        assert_eq!((plan.at(&fire("a")), plan.due(&fire("a"))), (Some(second(12)), Some((second(10), second(9)))));
        assert_eq!((plan.take_due(second(11), 9, 9), plan.first()), (vec![], Some(second(12))));
        assert_eq!(plan.take_due(second(12), 9, 9), [(fire("a"), second(10), second(9))]);
    }

    fn taken(plan: &mut Plan, now: i64, most: usize, most_late: usize) -> Vec<Item> {
        plan.take_due(second(now), most, most_late).into_iter().map(|(item, ..)| item).collect()
    }

    /// Only claims can be late: a look that was to happen long ago happens at once.
    #[test]
    fn late_claims_come_after_what_is_on_time() {
        let mut plan = Plan::default();
        plan.put_for(fire("older"), second(5), second(4));
        plan.put(fire("old"), second(39));
        plan.put(fire("edge"), second(40));
        plan.put(fire("now"), second(100));
        plan.put(fire("later"), second(101));
        plan.put(Item::Watch, Instant::EPOCH);
        plan.put(Item::Expire(None), second(41));
        assert_eq!(plan.first(), Some(Instant::EPOCH));
        let all = [Item::Watch, fire("edge"), Item::Expire(None), fire("now"), fire("older"), fire("old")];
        assert_eq!(taken(&mut plan, 100, 9, 9), all);
        assert_eq!((plan.first(), plan.len()), (Some(second(101)), 1));
    }

    #[test]
    fn late_claims_and_others_have_their_shares() {
        let mut plan = Plan::default();
        for number in 0..4 {
            plan.put(fire(&format!("late{number}")), second(number));
            plan.put(fire(&format!("live{number}")), second(100 + number));
        }
        assert_eq!(taken(&mut plan, 110, 2, 1), [fire("live0"), fire("live1"), fire("late0")]);
        assert_eq!(taken(&mut plan, 110, 3, 2), [fire("live2"), fire("live3"), fire("late1"), fire("late2")]);
        assert_eq!(taken(&mut plan, 110, 3, 2), [fire("late3")]);
        assert!(plan.is_empty());
    }

    #[test]
    fn claims_of_one_instant_are_a_crowd() {
        let mut plan = Plan::default();
        for job in ["a", "b", "c"] {
            plan.put(fire(job), second(10));
        }
        plan.put(fire("d"), second(11));
        plan.put(Item::Watch, second(5));
        assert_eq!((plan.crowd(3), plan.crowd(4), plan.crowd(0)), (Some(second(10)), None, Some(second(10))));
        assert_eq!(plan.take_claims(second(11), 9), []);
        let claims: Vec<Item> = plan.take_claims(second(10), 2).into_iter().map(|(item, ..)| item).collect();
        assert_eq!(claims, [fire("a"), fire("b")]);
        assert_eq!(plan.take_claims(second(10), 2), [(fire("c"), second(10), second(10))]);
        assert_eq!((plan.len(), plan.at(&fire("a")), plan.crowd(1)), (2, None, Some(second(11))));
    }

    #[test]
    fn wakes_runs_and_nothing_else() {
        let mut plan = Plan::default();
        let run = RunId::from_random(second(1), [9; 10]);
        plan.put(Item::Wake(run), second(60));
        plan.put(fire("a"), second(60));
        plan.put(Item::Watch, second(60));
        plan.wake_all(second(5));
        assert_eq!(plan.take_due(second(59), 9, 9), [(Item::Wake(run), second(5), second(5))]);
        assert_eq!(plan.take_due(second(59), 9, 9), []);
    }
}
