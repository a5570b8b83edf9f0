//! Maps what the programs and their keeper report to `tracing`, with a stable name and fields for each event.

use cronhold_programs::{EventObserver, ProgramEvent};
use tracing::{info, warn};

use super::Log;

/// The target of events about programs and the keeper.
const PROGRAMS: &str = "cronhold::programs";

/// An observer that logs every event to `log`.
pub(crate) fn program_event_observer(log: Log) -> EventObserver {
    Box::new(move |event| log.scope(|| log_event(event)))
}

fn log_event(event: &ProgramEvent) {
    match event {
        ProgramEvent::KeeperConnected { version, pid } | ProgramEvent::OtherKeeperConnected { version, pid, .. } => {
            info!(target: PROGRAMS, event = "keeper_connected", version, pid, "{event}");
        }
        ProgramEvent::KeeperWarning(_) => info!(target: PROGRAMS, event = "keeper_warning", "{event}"),
        ProgramEvent::KeeperUnreachable(_) => warn!(target: PROGRAMS, event = "keeper_unavailable", "{event}"),
        ProgramEvent::ProgramsFound { running, ended } => {
            info!(target: PROGRAMS, event = "programs_found", running, ended, "{event}");
        }
        ProgramEvent::UnclaimedProgram { run, pid } => {
            warn!(target: PROGRAMS, event = "program_unclaimed", run = %run, pid, "{event}");
        }
        ProgramEvent::OutputUnreadable { run, .. } | ProgramEvent::OutputNotStored { run, .. } => {
            warn!(target: PROGRAMS, event = "output_incomplete", run = %run, "{event}");
        }
        ProgramEvent::RestartUnrecorded { run, .. } => {
            warn!(target: PROGRAMS, event = "output_restart_unrecorded", run = %run, "{event}");
        }
    }
}
