//! The actions that are not done, and the attempts that this node makes. A record may be read again while its attempt
//! goes on, and must not cause a second attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{ActionId, ActionRecord, ActionStatus, Record, RecordKey, RunOwner};

use crate::counters::{ActionCounters, Counters};

#[derive(Debug, Default)]
pub(crate) struct LocalDeliveries {
    /// All pending actions that this node knows.
    pending: BTreeSet<ActionId>,
    /// Attempts that were handed over: the number of the latest attempt of each action.
    begun: BTreeMap<ActionId, u32>,
}

impl LocalDeliveries {
    /// Whether an attempt has to be handed over now. It counts as handed over from then on.
    pub(crate) fn begin(&mut self, action: &ActionRecord) -> bool {
        self.begun.insert(action.id, action.attempts) != Some(action.attempts)
    }

    /// Follows a change of an action.
    pub(crate) fn record_change(&mut self, change: &RecordChange, me: RunOwner, counters: &Counters) {
        match change {
            RecordChange::Put(Record::Action(action)) => {
                if action.is_pending() {
                    self.pending.insert(action.id);
                } else {
                    self.pending.remove(&action.id);
                }
                if action.owner() != Some(me) {
                    self.begun.remove(&action.id);
                }
            }
            RecordChange::Delete(RecordKey::Action(action)) => {
                self.pending.remove(action);
                self.begun.remove(action);
            }
            _ => return,
        }
        counters.actions_pending.store(self.pending.len() as u64, Ordering::Relaxed);
    }

    /// Counts what a commit of this node says about an action: it was delivered or given up, or an attempt has failed.
    pub(crate) fn count(action: &ActionRecord, counters: &ActionCounters) {
        let of_kind = counters.of(action.work.kind());
        match action.status {
            ActionStatus::Done { .. } => Counters::add(&of_kind.delivered, 1),
            ActionStatus::Failed { .. } => Counters::add(&of_kind.given_up, 1),
            ActionStatus::Pending { owner: None, .. } if action.failures > 0 => Counters::add(&of_kind.failed, 1),
            ActionStatus::Pending { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::job::{ActionKind, RunEvent};
    use cronhold_core::record::ResolvedAction;
    use cronhold_core::{JobId, NodeId, RunId};
    use cronhold_schedule::Instant;

    use super::*;

    const ME: RunOwner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };

    fn action(attempts: u32, status: ActionStatus) -> ActionRecord {
        ActionRecord {
            id: ActionId::new(RunId::from_key(Instant::EPOCH, "r"), 0),
            job: JobId::parse("j").expect("an id"),
            event: RunEvent::Finished,
            created: Instant::EPOCH,
            work: ResolvedAction::Invalid(ActionKind::Webhook),
            attempts,
            failures: 0,
            error: None,
            status,
        }
    }

    #[test]
    fn attempt_is_handed_over_once_and_the_next_one_too() {
        let (mut deliveries, counters) = (LocalDeliveries::default(), Counters::default());
        let pending = |owner| ActionStatus::Pending { due: Instant::EPOCH, owner };
        let follow = |deliveries: &mut LocalDeliveries, action: &ActionRecord| {
            deliveries.record_change(&RecordChange::Put(Record::Action(Arc::new(action.clone()))), ME, &counters);
            counters.snapshot().actions_pending
        };
        let first = action(1, pending(Some(ME)));
        assert_eq!(follow(&mut deliveries, &first), 1);
        assert_eq!([deliveries.begin(&first), deliveries.begin(&first)], [true, false]);
        assert_eq!(follow(&mut deliveries, &action(1, pending(None))), 1);
        let second = action(2, pending(Some(ME)));
        assert_eq!([deliveries.begin(&second), deliveries.begin(&second)], [true, false]);
        assert_eq!(follow(&mut deliveries, &action(2, ActionStatus::Done { at: Instant::EPOCH })), 0);
        assert!(deliveries.begun.is_empty() && deliveries.pending.is_empty());
    }
}
