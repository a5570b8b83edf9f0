//! What has to change so that the stored jobs are as the files say, asking the node for it, and telling what came of it.

use std::collections::{BTreeSet, VecDeque};

use cronhold_cli::counted;
use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::decision::CommandReply;
use cronhold_core::record::{Actor, JobSource};
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_schedule::Span;
use tokio::task::JoinSet;

/// Commands that are on their way at once.
const ASKED_MAX: usize = 2_048;
/// When the node has too much to do, it is asked again after this.
const BUSY_WAIT: Span = Span::from_millis(20);
/// More ids than this are not written out.
const SHOWN_MAX: usize = 5;

/// What has to change.
#[derive(Debug, Default, PartialEq)]
pub struct ApplyPlan {
    /// Jobs that go. They go first, because one may come back from another directory.
    pub removals: Vec<Command>,
    /// Jobs that come or change, and those whose next occurrences are computed again.
    pub puts: Vec<Command>,
    /// Jobs that are as their files say.
    pub unchanged: usize,
    /// Jobs whose files have mistakes or cannot be looked at, and which stay as they were.
    pub kept: usize,
}

impl ApplyPlan {
    /// Takes out removals, and with them what is to come in the place of what they remove.
    pub(super) fn take_removals(&mut self, mut wanted: impl FnMut(&Command) -> bool) -> Vec<Command> {
        let (taken, left) = std::mem::take(&mut self.removals).into_iter().partition(|removal| wanted(removal));
        self.removals = left;
        let taken: Vec<Command> = taken;
        let ids: BTreeSet<&JobId> = taken.iter().filter_map(id_of).collect();
        self.puts.retain(|put| id_of(put).is_none_or(|id| !ids.contains(id)));
        taken
    }

    /// Takes out what another node changes: jobs of directories that this one does not apply. What is computed again for
    /// calendars is left to whoever applies any. Answers how many jobs would be new or changed.
    pub(super) fn leave_to_others(&mut self, is_ours: impl Fn(&JobSource) -> bool, has_any: bool) -> usize {
        let is_kept = |command: &Command| match command {
            Command::PutJob { source, .. } | Command::RemoveJob { source, .. } => is_ours(source),
            _ => has_any,
        };
        self.removals.retain(is_kept);
        let left = self.puts.extract_if(.., |put| !is_kept(put));
        left.filter(|put| id_of(put).is_some()).count()
    }
}

/// A command and what came of it.
pub(super) type CommandResult = (Command, Result<CommandReply, RequestError>);

/// What came of a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ApplyResult {
    pub(super) put: Vec<JobId>,
    pub(super) removed: Vec<JobId>,
    pub(super) refused: usize,
    /// Jobs that another node puts or changes, if its files say the same.
    pub(super) left: usize,
}

/// Asks the node for all of it.
pub(super) async fn ask(commands: Vec<Command>, node: &NodeHandle, clock: &dyn MachineClock) -> Vec<CommandResult> {
    let mut answered = Vec::with_capacity(commands.len());
    let mut commands = VecDeque::from(commands);
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < ASKED_MAX
            && let Some(command) = commands.pop_front()
        {
            let node = node.clone();
            asked.spawn(async move {
                let answer = node.request(Actor::JobFiles, command.clone()).await;
                (command, answer)
            });
        }
        match asked.join_next().await {
            Some(Ok((command, Err(refused)))) if is_transient(&refused) => {
                commands.push_front(command);
                clock.sleep(BUSY_WAIT).await;
            }
            Some(Ok((_, Err(RequestError::Stopping)))) | None => return answered,
            Some(Ok(pair)) => answered.push(pair),
            // Nothing aborts these tasks, and a panic in one is a bug that was told already.
            Some(Err(_)) => {}
        }
    }
}

/// The job that a command puts or removes.
pub(super) fn id_of(command: &Command) -> Option<&JobId> {
    match command {
        Command::PutJob { id, .. } | Command::RemoveJob { id, .. } => Some(id),
        _ => None,
    }
}

/// Whether the same command may be taken a little later.
fn is_transient(refused: &RequestError) -> bool {
    match refused {
        RequestError::Busy | RequestError::Late => true,
        RequestError::Failed(fault) => fault.is_transient(),
        RequestError::Rejected(_) | RequestError::Stopping => false,
    }
}

impl ApplyResult {
    /// Whether there is any job now; `unchanged` is that of the plan.
    pub fn has_jobs(&self, unchanged: usize) -> bool {
        unchanged + self.put.len() + self.left > 0
    }

    /// All of it in words; `unchanged` and `kept` are those of the plan.
    pub fn words(&self, unchanged: usize, kept: usize) -> String {
        // A directory that is empty is more likely one that is not mounted.
        if !self.has_jobs(unchanged) {
            let kept = if kept == 0 { String::new() } else { format!("; {} left as stored", counted(kept, "job")) };
            return format!("there is no good job file{kept}");
        }
        let notes = [
            (self.put.len(), "new or changed"),
            (self.removed.len(), "removed"),
            (self.refused, "refused"),
            (self.left, "left to another node"),
            (kept, "left as stored: their files have mistakes or cannot be looked at"),
        ];
        let notes = notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let notes = notes.collect::<Vec<_>>().join(", ");
        let jobs = counted(unchanged + self.put.len() + self.left, "job");
        if notes.is_empty() { format!("{jobs}, all as stored") } else { format!("{jobs}, {notes}") }
    }

    /// How many jobs were put, and how many removed.
    pub fn counts(&self) -> (usize, usize) {
        (self.put.len(), self.removed.len())
    }

    /// What has changed, with names; nothing, when nothing has.
    pub fn changes(&self) -> Option<String> {
        let parts = [("new or changed", &self.put), ("removed", &self.removed)];
        let parts = parts.iter().filter(|(_, ids)| !ids.is_empty());
        let parts: Vec<String> = parts.map(|(what, ids)| format!("{} {what} ({})", ids.len(), shown(ids))).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

pub(super) fn shown(ids: &[JobId]) -> String {
    let mut parts: Vec<String> = ids.iter().take(SHOWN_MAX).map(JobId::to_string).collect();
    if ids.len() > SHOWN_MAX {
        parts.push(format!("{} more", ids.len() - SHOWN_MAX));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: usize) -> Vec<JobId> {
        (0..count).map(|number| JobId::parse(&format!("j{number}")).expect("an id")).collect()
    }

    #[test]
    fn tells_what_came_of_it() {
        for (put, removed, refused, left, unchanged, kept, expected) in [
            (0, 0, 0, 0, 0, 0, "there is no good job file"),
            (0, 0, 0, 0, 0, 3, "there is no good job file; 3 jobs left as stored"),
            (0, 0, 0, 0, 7, 0, "7 jobs, all as stored"),
            (1, 0, 0, 0, 0, 0, "1 job, 1 new or changed"),
            (2, 1, 1, 0, 3, 0, "5 jobs, 2 new or changed, 1 removed, 1 refused"),
            (1, 0, 0, 2, 0, 0, "3 jobs, 1 new or changed, 2 left to another node"),
            (0, 0, 0, 0, 1, 2, "1 job, 2 left as stored: their files have mistakes or cannot be looked at"),
        ] {
            let applied = ApplyResult { put: ids(put), removed: ids(removed), refused, left };
            assert_eq!(applied.words(unchanged, kept), expected);
        }
    }

    #[test]
    fn tells_what_has_changed() {
        for (put, removed, expected) in [
            (0, 0, None),
            (1, 0, Some("1 new or changed (j0)")),
            (0, 2, Some("2 removed (j0, j1)")),
            (7, 1, Some("7 new or changed (j0, j1, j2, j3, j4, 2 more), 1 removed (j0)")),
        ] {
            let applied = ApplyResult { put: ids(put), removed: ids(removed), refused: 3, left: 0 };
            assert_eq!(applied.changes().as_deref(), expected);
        }
    }
}
