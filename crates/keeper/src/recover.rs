//! Recovery after an earlier keeper was lost. Its programs may still run, but their exit status can no longer be
//! obtained. They are killed, and verified to be gone, before they are reported as lost.

use crate::cgroups::Cgroups;
use crate::journal::{JournalContents, JournaledRun};
use crate::table::{FinishedProgram, ProgramTable};
use crate::tree::{self, ProcessSnapshot, ProcessTree};
use crate::{KeeperError, clock, log};

use rustix::process::Signal;

/// How long killed processes may take to be gone, in microseconds.
const GONE_WITHIN: u64 = 30_000_000;
/// Time between two scans.
const SCAN_EVERY: u64 = 5_000;

/// Kills what an earlier keeper left, and returns the table to begin with.
pub(crate) fn recover(found: &JournalContents, boot: &str, cgroups: &mut Cgroups) -> Result<ProgramTable, KeeperError> {
    let mut table = ProgramTable::default();
    let mut open: Vec<ProcessTree> = Vec::new();
    for (run, left) in &found.runs {
        match *left {
            JournaledRun::Open(root) => {
                open.push(ProcessTree::new(*run, root, cgroups.group_of(*run)));
                table.finish(*run, FinishedProgram::Lost);
            }
            JournaledRun::Ended(end) => table.finish(*run, FinishedProgram::Ended(end)),
            JournaledRun::Lost => table.finish(*run, FinishedProgram::Lost),
        }
    }
    // No process survives a reboot, and process ids from before it are reused.
    if !open.is_empty() && found.boot.as_deref() == Some(boot) {
        open.iter().for_each(|tree| cgroups.kill(tree.run));
        end_all(&mut open)?;
        open.iter().for_each(|tree| cgroups.remove(tree.run));
        log::line(&format!("killed {} programs of an earlier keeper", open.len()));
    }
    Ok(table)
}

fn end_all(open: &mut [ProcessTree]) -> Result<(), KeeperError> {
    let give_up = clock::now() + GONE_WITHIN;
    loop {
        let mut find =
            |snapshot: &ProcessSnapshot| open.iter_mut().flat_map(|tree| tree.members(snapshot)).collect::<Vec<_>>();
        let snapshot = tree::freeze(&mut find).map_err(KeeperError::io("find processes of an earlier keeper"))?;
        let members = find(&snapshot);
        let Some(first) = members.first() else { return Ok(()) };
        members.iter().for_each(|process| tree::send(process, Signal::KILL));
        if clock::now() > give_up {
            return Err(KeeperError::StillAlive { count: members.len(), pid: first.pid });
        }
        // They are not children of this keeper, so there is no event to wait for.
        let _ = rustix::event::poll(&mut [], Some(&clock::timespec(SCAN_EVERY)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::{ProcessExit, ProgramEnd, RunKey};

    #[test]
    fn ended_runs_are_kept_and_open_runs_are_lost() {
        let ended = JournaledRun::Ended(ProgramEnd { exit: ProcessExit::Code(2), output: 9, by_lease: true });
        let runs = BTreeMap::from([
            (RunKey(1), JournaledRun::Open(None)),
            (RunKey(2), ended),
            (RunKey(3), JournaledRun::Lost),
        ]);
        let found = JournalContents { boot: Some("earlier".to_owned()), runs, is_whole: true };
        let table = recover(&found, "now", &mut Cgroups::none()).unwrap();
        let stages: Vec<String> = table.list().iter().map(|program| format!("{:?}", program.stage)).collect();
        assert_eq!(stages, ["Lost", "Ended(ProgramEnd { exit: Code(2), output: 9, by_lease: true })", "Lost"]);
    }

    #[test]
    fn processes_from_before_a_reboot_are_not_killed() {
        let own = i32::try_from(std::process::id()).unwrap();
        let start = tree::read_process(own).unwrap().start;
        let runs = BTreeMap::from([(RunKey(1), JournaledRun::Open(Some((own, start))))]);
        let found = JournalContents { boot: Some("earlier".to_owned()), runs, is_whole: true };
        let table = recover(&found, "now", &mut Cgroups::none()).unwrap();
        assert!(table.is_finished(RunKey(1)));
    }
}
