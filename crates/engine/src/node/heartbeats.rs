//! Applies the results of heartbeats: the store's time, the nodes that are alive, and locks that are lost.

use cronhold_core::When;
use cronhold_core::command::{Command, ProgramReport};
use cronhold_core::record::Actor;
use cronhold_store::has_foreign_nodes;

use super::NodeLoop;
use crate::heartbeater::HeartbeatResult;
use crate::membership::OwnRecord;
use crate::plan::PlanItem;
use crate::ports::EngineEvent;

impl NodeLoop {
    /// Applies the results of heartbeats that have come since the last call.
    pub(super) fn apply_heartbeats(&mut self) {
        let Some(HeartbeatResult { time, nodes, skew, lost, fault }) = self.membership.take_results() else { return };
        if let Some((requested, received, time)) = time {
            self.clock.record_store_time(requested, received, time);
        }
        // A heartbeat lets the store notice foreign nodes, which may come and go.
        self.world.has_foreign = has_foreign_nodes(&*self.context.ports.store);
        if let Some(skew) = skew
            && let Some(is_off) = self.membership.record_skew(skew)
        {
            self.context.emit(&EngineEvent::Skew { is_off, is_ahead: skew.ahead > 0, by: skew.size() });
        }
        for run in lost {
            self.commands.push_own(Actor::Watchdog, Command::Report { run, report: ProgramReport::LockLost });
        }
        if let Some((requested, received, nodes)) = nodes {
            let now = self.read_clock();
            match self.membership.read_own_record(&nodes, requested) {
                OwnRecord::Draining(draining) => self.record_draining(draining, now),
                OwnRecord::Replaced => self.stop_replaced(),
                OwnRecord::Unchanged => {}
            }
            self.membership.record_nodes(nodes, requested, received, now);
            self.membership.update_live_nodes(&mut self.world, &self.context.ports);
        }
        match fault {
            // During an outage, heartbeats are tried more often than commands. They must not put off the next command.
            Some(fault) if self.store_health.is_available() => self.record_store_result(Some(&fault)),
            Some(_) => {}
            None => {
                self.record_store_result(None);
                if self.world.is_shared {
                    self.agenda.put_by(PlanItem::Reap, When::Now);
                }
            }
        }
    }

    /// Stops, because a later process has the identity of this node.
    fn stop_replaced(&mut self) {
        if !self.is_stopping {
            self.context.emit(&EngineEvent::Replaced);
            self.membership.heartbeater().silence();
            self.is_stopping = true;
        }
    }
}
