//! When the keeper checks output files: their length, while their programs run, and which can be removed.

use crate::outputs::OutputFiles;
use crate::table::ProgramTable;

/// Interval between two checks of outputs while one of them grows, in microseconds.
const POLL_GROWING: u64 = 200_000;
/// Interval between two checks while none of them grows.
const POLL_QUIET: u64 = 1_000_000;
/// Outputs are removed when no program was started for this long.
const QUIET: u64 = 50_000;

/// When output files are checked next.
#[derive(Debug, Default)]
pub(super) struct OutputSchedule {
    poll_due: u64,
    /// When outputs that are not needed are removed, if there are any.
    clear_due: Option<u64>,
}

impl OutputSchedule {
    /// When the next action is due; `None` if there is none.
    pub(super) fn due(&self, has_running: bool) -> Option<u64> {
        has_running.then_some(self.poll_due).into_iter().chain(self.clear_due).min()
    }

    /// Updates the lengths of outputs of running programs, if a check is due.
    pub(super) fn poll(&mut self, outputs: &OutputFiles, table: &mut ProgramTable, now: u64) {
        if now < self.poll_due || table.running_count() == 0 {
            return;
        }
        let mut has_grown = false;
        for (run, program) in table.all_running() {
            has_grown |= outputs.update(run, &mut program.output);
        }
        self.poll_due = now + if has_grown { POLL_GROWING } else { POLL_QUIET };
    }

    /// Removes outputs that are not needed, if no program was started recently.
    pub(super) fn clear(&mut self, outputs: &mut OutputFiles, is_busy: bool, now: u64) {
        let quiet_at = if is_busy { now + QUIET } else { self.clear_due.unwrap_or(now + QUIET) };
        let has_more = outputs.clear(quiet_at <= now);
        self.clear_due = has_more.then_some(quiet_at);
    }
}
