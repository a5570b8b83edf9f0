//! The state of the store as the log last reported it, so that each change is logged once. A store that recovers from a
//! rollback, or has just restarted, answers heartbeats and refuses commits, so the node reports it available and unavailable in turns; the log
//! reports when that began and when it ended.

use cronhold_engine::EngineEvent;
use cronhold_store::Fault;
use tracing::warn;

/// The target of events about a store of any kind.
const STORE: &str = "cronhold_store";

/// The state of the store as it was last logged.
#[derive(Debug, Default)]
pub(super) enum StoreState {
    #[default]
    Available,
    /// It does not work, for this reason.
    Unavailable(String),
    /// It has restarted, and waits for nodes to report lost commits.
    Restarted,
    /// It was rolled back, and nodes restore what they know.
    Recovering,
}

/// A change of the store's state that is to be logged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoreNotice {
    /// It does not work, for this reason.
    Unavailable(String),
    /// It works again.
    Available,
    /// It has restarted, and rejects commits for a while; with details.
    Restarted(String),
    /// It was rolled back; with details.
    Recovering(String),
    /// It accepts commits again after a rollback.
    Recovered,
}

impl StoreState {
    /// The notice to log after an event of the node, if the state of the store has changed.
    pub(super) fn on_event(&mut self, news: &EngineEvent<'_>) -> Option<StoreNotice> {
        match (news, &*self) {
            (EngineEvent::StoreUnavailable(Fault::Recovering(_)), Self::Recovering)
            | (EngineEvent::StoreUnavailable(Fault::Restarted(_)), Self::Restarted) => None,
            (EngineEvent::StoreUnavailable(fault @ Fault::Recovering(_)), _) => {
                *self = Self::Recovering;
                Some(StoreNotice::Recovering(fault.to_string()))
            }
            (EngineEvent::StoreUnavailable(fault @ Fault::Restarted(_)), _) => {
                *self = Self::Restarted;
                Some(StoreNotice::Restarted(fault.to_string()))
            }
            (EngineEvent::StoreUnavailable(fault), before) => {
                let why = fault.to_string();
                let is_logged = matches!(before, Self::Unavailable(logged) if *logged == why);
                let notice = (!is_logged).then(|| StoreNotice::Unavailable(why.clone()));
                *self = Self::Unavailable(why);
                notice
            }
            (EngineEvent::StoreAvailable, Self::Unavailable(_)) => {
                *self = Self::Available;
                Some(StoreNotice::Available)
            }
            (EngineEvent::Committed { .. } | EngineEvent::Ready { .. }, _) => self.on_commit(),
            _ => None,
        }
    }

    /// The notice to log after a commit. A store accepts commits only when it has recovered.
    pub(super) fn on_commit(&mut self) -> Option<StoreNotice> {
        let notice = match self {
            Self::Recovering => StoreNotice::Recovered,
            Self::Restarted => StoreNotice::Available,
            Self::Available | Self::Unavailable(_) => return None,
        };
        *self = Self::Available;
        Some(notice)
    }
}

impl StoreNotice {
    /// Logs the notice. The end of a failure has the level of its beginning, so that a filter shows both or neither.
    pub(super) fn log(&self) {
        match self {
            Self::Unavailable(why) => {
                warn!(target: STORE, event = "store_unavailable", "{why}; nothing starts until it is available again");
            }
            Self::Available => warn!(target: STORE, event = "store_available", "the store is available again"),
            Self::Restarted(why) => warn!(target: STORE, event = "store_restarted", "{why}"),
            Self::Recovering(why) => warn!(target: STORE, event = "store_rolled_back", "{why}"),
            Self::Recovered => {
                warn!(target: STORE, event = "store_recovered", "the store has recovered and accepts commits again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::NodeId;
    use cronhold_core::command::CommandStamp;
    use cronhold_core::decision::DecidedUnit;
    use cronhold_core::record::{Actor, RunOwner};
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn each_change_of_the_store_is_logged_once() {
        let owner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };
        let stamp = CommandStamp { at: Instant::EPOCH, actor: Actor::Schedule, owner };
        let done = DecidedUnit::default();
        let committed = || EngineEvent::Committed { stamp: &stamp, done: &done };
        let [one, two] = ["46s", "45s"].map(|rest| Fault::Recovering(format!("h:1: {rest}")));
        let [gone, full] = [Fault::Unavailable("h:1".to_owned()), Fault::ReadOnly("no room".to_owned())];
        let unavailable = |fault: &Fault| Some(StoreNotice::Unavailable(fault.to_string()));
        let recovering = || Some(StoreNotice::Recovering(one.to_string()));
        let restarted = Fault::Restarted("h:1".to_owned());
        let mut state = StoreState::default();
        for (news, expected) in [
            (committed(), None),
            (EngineEvent::StoreUnavailable(&gone), unavailable(&gone)),
            (EngineEvent::StoreUnavailable(&gone), None),
            (EngineEvent::StoreUnavailable(&full), unavailable(&full)),
            (EngineEvent::StoreAvailable, Some(StoreNotice::Available)),
            (EngineEvent::StoreUnavailable(&one), recovering()),
            (EngineEvent::StoreAvailable, None),
            (EngineEvent::StoreUnavailable(&two), None),
            (EngineEvent::StoreAvailable, None),
            (committed(), Some(StoreNotice::Recovered)),
            (committed(), None),
            (EngineEvent::StoreUnavailable(&restarted), Some(StoreNotice::Restarted(restarted.to_string()))),
            (EngineEvent::StoreAvailable, None),
            (EngineEvent::StoreUnavailable(&restarted), None),
            (committed(), Some(StoreNotice::Available)),
            (EngineEvent::StoreUnavailable(&one), recovering()),
            (EngineEvent::StoreUnavailable(&gone), unavailable(&gone)),
        ] {
            assert_eq!(state.on_event(&news), expected, "{news:?}");
        }
    }
}
