//! A store that is rolled back: at a drawn moment it forgets a suffix of its commits, as Redis does when it restarts with
//! an older file. `server` compares positions and merges restored records as the scripts of the Redis store do; `client`
//! is the part in the daemon and uses the same code as the Redis store (`cronhold_store::rollback`) to remember and to
//! restore.
//!
//! While all nodes are alive and reach the store, a rollback loses nothing. So the model of the store is not rolled back:
//! to the checkers, a rollback is a period in which commits are rejected, and every commit that it would repeat or lose
//! is a violation. The scenario of a seed with rollbacks therefore leaves out what makes documented losses possible:
//! nodes that crash, stop, are suspended or cannot reach the store, and draining. It also leaves out lost replies: the
//! model has a commit whose writer never learned of it, and the store has not.

mod client;
mod server;

pub(crate) use client::RollbackClient;
pub(crate) use server::RollbackServer;

use cronhold_schedule::Span;

use crate::events::TimedEvent;
use crate::scenario::{FaultKind, FaultPeriod};
use crate::simulation::Simulation;

/// How often the simulation checks whether a recovery is over.
const RECOVERY_CHECK_EVERY: Span = Span::from_millis(500);

/// To the checkers, a recovery is a period in which the store rejects writes.
const RECOVERY: FaultPeriod = FaultPeriod { machine: None, kind: FaultKind::ReadOnly };

impl Simulation {
    /// Writes the file that the store restarts with after `lost`.
    pub(crate) fn write_snapshot(&mut self, number: usize, lost: Span) {
        let Some(server) = &self.rollback_server else { return };
        server.take_snapshot(number);
        self.put(self.context.time.now().plus(lost), TimedEvent::RollBack(number));
    }

    /// Restarts the store with the file of a scenario event.
    pub(crate) fn roll_back_store(&mut self, number: usize) {
        let Some(server) = &self.rollback_server else { return };
        // The store may be rolled back again while it recovers.
        let is_recovering = server.is_recovering();
        server.restart_with_snapshot(number);
        self.context.log("store", || "is rolled back".to_owned());
        if !is_recovering {
            self.context.begin_fault(RECOVERY);
            self.put(self.context.time.now().plus(RECOVERY_CHECK_EVERY), TimedEvent::CheckRecovery);
        }
    }

    /// Ends the period of a recovery as soon as the store accepts commits.
    pub(crate) fn check_recovery(&mut self) {
        let Some(server) = &self.rollback_server else { return };
        if !server.is_recovering() {
            return;
        }
        let now = self.context.time.now();
        if server.end_recovery() {
            self.context.end_fault(RECOVERY);
        } else {
            self.put(now.plus(RECOVERY_CHECK_EVERY), TimedEvent::CheckRecovery);
        }
    }
}
