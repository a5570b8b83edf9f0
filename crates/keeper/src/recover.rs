//! Recovery after an earlier keeper was lost. Its programs may still run, but their exit status can no longer be
//! obtained. They are killed, and verified to be gone, before they are reported as lost.

use std::os::fd::OwnedFd;

use rustix::process::Signal;

use crate::cgroups::Cgroups;
use crate::journal::{JournalContents, JournaledRun};
use crate::output_pipe::OutputStream;
use crate::table::{FinishedProgram, ProgramTable};
use crate::tree::{self, ProcessSnapshot, ProcessStat, ProcessTree};
use crate::{KeeperError, clock, log, output_pipe, stderr_index};

/// How long killed processes may take to be gone, in microseconds.
const GONE_WITHIN: u64 = 30_000_000;
/// Time between two scans.
const SCAN_EVERY: u64 = 5_000;

/// Kills what an earlier keeper left, and returns the table to begin with. `folder` has the outputs.
pub(crate) fn recover(
    found: &JournalContents,
    boot: &str,
    cgroups: &mut Cgroups,
    folder: &OwnedFd,
) -> Result<ProgramTable, KeeperError> {
    let mut table = ProgramTable::default();
    let mut open: Vec<ProcessTree> = Vec::new();
    // If the boot is unknown because its lines are damaged, processes are searched only by what cannot be reused.
    let is_same_boot = found.boot.as_deref() == Some(boot);
    let may_be_same_boot = is_same_boot || (found.boot.is_none() && found.damaged > 0);
    for (run, left) in &found.runs {
        match *left {
            JournaledRun::Open { root, output } => {
                let (root, output) = if is_same_boot { (root, output) } else { (None, None) };
                open.push(ProcessTree::new(*run, root, output, cgroups.group_of(*run)));
                table.finish(*run, FinishedProgram::Lost);
            }
            JournaledRun::Ended(end) => table.finish(*run, FinishedProgram::Ended(end)),
            JournaledRun::Lost => table.finish(*run, FinishedProgram::Lost),
        }
    }
    // No process survives a reboot, and process ids from before it are reused.
    if !open.is_empty() && may_be_same_boot {
        end_all(&mut open, cgroups, folder)?;
        open.iter().for_each(|tree| cgroups.remove(tree.run));
        log::line(&format!("killed {} programs of an earlier keeper", open.len()));
    }
    Ok(table)
}

fn end_all(open: &mut [ProcessTree], cgroups: &Cgroups, folder: &OwnedFd) -> Result<(), KeeperError> {
    let give_up = clock::now() + GONE_WITHIN;
    loop {
        let mut find =
            |snapshot: &ProcessSnapshot| open.iter_mut().flat_map(|tree| tree.members(snapshot)).collect::<Vec<_>>();
        let snapshot = tree::freeze(&mut find).map_err(KeeperError::io("find processes of an earlier keeper"))?;
        let mut count = 0;
        let mut first = None;
        for tree in open.iter_mut() {
            let members = tree.members(&snapshot);
            save_output(tree, &members, folder);
            cgroups.kill(tree.run);
            members.iter().for_each(|process| tree::send(process, Signal::KILL));
            count += members.len();
            first = first.or(members.first().map(|process| process.pid));
        }
        let Some(pid) = first else { return Ok(()) };
        if clock::now() > give_up {
            return Err(KeeperError::StillAlive { count, pid });
        }
        // They are not children of this keeper, so there is no event to wait for.
        let _ = rustix::event::poll(&mut [], Some(&clock::timespec(SCAN_EVERY)));
    }
}

/// Stores what processes that stand still have written, in case the collector of outputs has died with its keeper.
fn save_output(tree: &ProcessTree, members: &[ProcessStat], folder: &OwnedFd) {
    let streams =
        [(OutputStream::Output, tree.output()), (OutputStream::Stderr, stderr_index::pipe_of(folder, tree.run))];
    for (stream, pipe) in streams {
        let open = |pipe| members.iter().find_map(|process| tree::open_output(process, pipe));
        let Some(pipe) = pipe.and_then(open) else { continue };
        if let Err(lost) = output_pipe::drain(&pipe, stream, folder, tree.run) {
            log::line(&format!("cannot write {} bytes of the output of run {}: {}", lost.bytes, tree.run, lost.reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::{ProcessExit, ProgramEnd, RunKey};
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn ended_runs_are_kept_and_open_runs_are_lost() {
        let ended = JournaledRun::Ended(ProgramEnd { exit: ProcessExit::Code(2), output: 9, by_lease: true });
        let runs = BTreeMap::from([
            (RunKey(1), JournaledRun::Open { root: None, output: None }),
            (RunKey(2), ended),
            (RunKey(3), JournaledRun::Lost),
        ]);
        let found = JournalContents { boot: Some("earlier".to_owned()), runs, ..JournalContents::default() };
        let table = recover(&found, "now", &mut Cgroups::none(), &ScratchDir::new().open()).unwrap();
        let stages: Vec<String> = table.list().iter().map(|program| format!("{:?}", program.stage)).collect();
        assert_eq!(stages, ["Lost", "Ended(ProgramEnd { exit: Code(2), output: 9, by_lease: true })", "Lost"]);
    }

    #[test]
    fn processes_from_before_a_reboot_are_not_killed() {
        let own = i32::try_from(std::process::id()).unwrap();
        let start = tree::read_process(own).unwrap().start;
        let runs = BTreeMap::from([(RunKey(1), JournaledRun::Open { root: Some((own, start)), output: None })]);
        let found = JournalContents { boot: Some("earlier".to_owned()), runs, ..JournalContents::default() };
        let table = recover(&found, "now", &mut Cgroups::none(), &ScratchDir::new().open()).unwrap();
        assert!(table.is_finished(RunKey(1)));
    }
}
