//! What a node will do and when: the next occurrence of every schedule, and every other moment at which something has
//! to be looked at. Ordered by time; a change of one job touches its own entries only.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::record::ScheduleId;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

/// Something that is done at a certain time. Each stands in the plan at most once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Say that the node is alive.
    Beat,
    /// Look for what nobody has done in time.
    Watch,
    /// Look at a run.
    Wake(RunId),
    /// Claim the next occurrence of a schedule.
    Fire(JobId, ScheduleId),
    /// Go on with a backlog.
    CatchUp(JobId, ScheduleId),
    /// Look whether old runs can go.
    Prune(JobId),
}

/// The plan of a node.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of time.
    order: BTreeSet<(Instant, Item)>,
    /// When each is, and for an occurrence also which.
    times: BTreeMap<Item, (Instant, Instant)>,
}

impl Plan {
    /// Puts something at a time, instead of when it was to be before.
    pub fn put(&mut self, item: Item, at: Instant) {
        self.put_for(item, at, at);
    }

    /// Puts the claim of an occurrence at the time when it is due.
    pub fn put_for(&mut self, item: Item, at: Instant, nominal: Instant) {
        if let Some((before, _)) = self.times.insert(item.clone(), (at, nominal)) {
            if before == at {
                return;
            }
            let old = (before, item);
            self.order.remove(&old);
            self.order.insert((at, old.1));
        } else {
            self.order.insert((at, item));
        }
    }

    /// Puts something at a time unless it is to be earlier anyway.
    pub fn put_by(&mut self, item: Item, at: Instant) {
        if self.at(&item).is_none_or(|planned| planned > at) {
            self.put(item, at);
        }
    }

    /// Takes something out.
    pub fn remove(&mut self, item: &Item) {
        if let Some((at, _)) = self.times.remove(item) {
            self.order.remove(&(at, item.clone()));
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
        self.times.get(item).map(|(at, _)| *at)
    }

    /// When the first is to be done.
    pub fn first(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out what is first, if its time has come: what, when it was due, and which occurrence.
    pub fn pop(&mut self, now: Instant) -> Option<(Item, Instant, Instant)> {
        if self.first()? > now {
            return None;
        }
        let (at, item) = self.order.pop_first()?;
        let (_, nominal) = self.times.remove(&item)?;
        Some((item, at, nominal))
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
        assert_eq!(plan.pop(second(9)), None);
        assert_eq!(plan.pop(second(50)), Some((fire("early"), second(10), second(10))));
        assert_eq!(plan.pop(second(50)), Some((fire("moved"), second(20), second(20))));
        assert_eq!(plan.len(), 1);
        assert_eq!(plan.pop(second(50)), Some((fire("late"), second(30), second(29))));
        assert!(plan.is_empty() && plan.pop(second(99)).is_none());
    }

    #[test]
    fn wakes_runs_and_nothing_else() {
        let mut plan = Plan::default();
        let run = RunId::from_random(second(1), [9; 10]);
        plan.put(Item::Wake(run), second(60));
        plan.put(fire("a"), second(60));
        plan.put(Item::Watch, second(60));
        plan.wake_all(second(5));
        assert_eq!(plan.pop(second(59)), Some((Item::Wake(run), second(5), second(5))));
        assert_eq!(plan.pop(second(59)), None);
    }
}
