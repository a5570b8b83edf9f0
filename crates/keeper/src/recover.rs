//! A new keeper after one that was lost. Programs of the lost one may still run, and nobody can learn any more how they
//! end; so they are killed first, and seen to be gone, before anybody is told that they are lost.

use crate::cgroups::Cgroups;
use crate::journal::{Found, Left};
use crate::table::{Over, Table};
use crate::tree::{self, Snapshot, Tree};
use crate::{KeeperError, clock, log};

use rustix::process::Signal;

/// How long the dead may take to be gone, in microseconds.
const GONE_WITHIN: u64 = 30_000_000;
/// How long to wait between two looks.
const LOOK: u64 = 5_000;

/// What is known after an earlier keeper, with nothing of it alive.
pub(crate) fn recover(found: &Found, boot: &str, cgroups: &mut Cgroups) -> Result<Table, KeeperError> {
    let mut table = Table::default();
    let mut open: Vec<Tree> = Vec::new();
    for (run, left) in &found.runs {
        match *left {
            Left::Open(root) => {
                open.push(Tree::new(*run, root, cgroups.place(*run)));
                table.finish(*run, Over::Lost);
            }
            Left::Ended(end) => table.finish(*run, Over::Ended(end)),
            Left::Lost => table.finish(*run, Over::Lost),
        }
    }
    // No process survives a start of the machine, and numbers from before it name others now.
    if !open.is_empty() && found.boot.as_deref() == Some(boot) {
        open.iter().for_each(|tree| cgroups.kill(tree.run));
        end_all(&mut open)?;
        open.iter().for_each(|tree| cgroups.remove(tree.run));
        log::line(&format!("an earlier keeper was lost with {} programs", open.len()));
    }
    Ok(table)
}

fn end_all(open: &mut [Tree]) -> Result<(), KeeperError> {
    let give_up = clock::now() + GONE_WITHIN;
    loop {
        let mut find =
            |snapshot: &Snapshot| open.iter_mut().flat_map(|tree| tree.members(snapshot)).collect::<Vec<_>>();
        let snapshot = tree::freeze(&mut find).map_err(KeeperError::io("look what an earlier keeper has left"))?;
        let members = find(&snapshot);
        let Some(first) = members.first() else { return Ok(()) };
        members.iter().for_each(|process| tree::send(process, Signal::KILL));
        if clock::now() > give_up {
            return Err(KeeperError::StillAlive { count: members.len(), pid: first.pid });
        }
        // There is nothing to be told by: they are not our children.
        let _ = rustix::event::poll(&mut [], Some(&clock::timespec(LOOK)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::{End, Exit, RunKey};

    #[test]
    fn what_ended_stays_and_what_was_open_is_lost() {
        let ended = Left::Ended(End { exit: Exit::Code(2), output: 9, by_lease: true });
        let runs = BTreeMap::from([(RunKey(1), Left::Open(None)), (RunKey(2), ended), (RunKey(3), Left::Lost)]);
        let found = Found { boot: Some("earlier".to_owned()), runs, is_whole: true };
        let table = recover(&found, "now", &mut Cgroups::none()).unwrap();
        let stages: Vec<String> = table.list().iter().map(|program| format!("{:?}", program.stage)).collect();
        assert_eq!(stages, ["Lost", "Ended(End { exit: Code(2), output: 9, by_lease: true })", "Lost"]);
    }

    #[test]
    fn after_a_new_start_of_the_machine_numbers_name_others() {
        let own = i32::try_from(std::process::id()).unwrap();
        let start = tree::look(own).unwrap().start;
        let runs = BTreeMap::from([(RunKey(1), Left::Open(Some((own, start))))]);
        let found = Found { boot: Some("earlier".to_owned()), runs, is_whole: true };
        let table = recover(&found, "now", &mut Cgroups::none()).unwrap();
        assert!(table.is_over(RunKey(1)));
    }
}
