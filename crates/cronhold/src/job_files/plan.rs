//! The changes that make the stored jobs equal to the files, the requests to the node that apply them, and a summary of
//! the results.

use std::collections::{BTreeSet, VecDeque};

use cronhold_cli::counted;
use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::decision::CommandReply;
use cronhold_core::record::Actor;
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_schedule::Span;
use tokio::task::JoinSet;

/// Commands that are sent to the node at once.
const IN_FLIGHT_MAX: usize = 2_048;
/// The wait before a command is retried.
const BUSY_WAIT: Span = Span::from_millis(20);
/// Ids that a message lists. It counts the others.
const SHOWN_MAX: usize = 5;

/// The changes to apply.
#[derive(Debug, Default, PartialEq)]
pub struct ApplyPlan {
    /// Removed jobs. They are applied first, because another directory may define the same job.
    pub removals: Vec<PlannedJob>,
    /// New and changed jobs.
    pub puts: Vec<PlannedJob>,
    /// Jobs whose next occurrences are computed again.
    pub replans: Vec<JobId>,
    /// Number of stored jobs that equal their files.
    pub unchanged: usize,
    /// Number of stored jobs that stay unchanged because their files are invalid or cannot be read.
    pub kept: usize,
}

/// A job to put or to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    pub id: JobId,
    /// Index of its directory.
    pub root: usize,
}

impl ApplyPlan {
    /// Takes the wanted removals out of the plan, together with the jobs that would replace the removed ones.
    pub(super) fn take_removals(&mut self, mut wanted: impl FnMut(&PlannedJob) -> bool) -> Vec<PlannedJob> {
        let (taken, left) = std::mem::take(&mut self.removals).into_iter().partition(|removal| wanted(removal));
        self.removals = left;
        let taken: Vec<PlannedJob> = taken;
        let ids: BTreeSet<&JobId> = taken.iter().map(|removal| &removal.id).collect();
        self.puts.retain(|put| !ids.contains(&put.id));
        taken
    }

    /// Removes what other nodes apply from the plan: jobs of directories whose lock this node does not hold. A node
    /// that holds any lock computes occurrences again after a change of calendars. Returns how many new or changed jobs
    /// were left to other nodes.
    pub(super) fn leave_to_others(&mut self, holds: impl Fn(usize) -> bool, has_any: bool) -> usize {
        if !has_any {
            self.replans.clear();
        }
        self.removals.retain(|removal| holds(removal.root));
        let before = self.puts.len();
        self.puts.retain(|put| holds(put.root));
        before - self.puts.len()
    }
}

/// A command and its result.
pub(super) type CommandResult = (Command, Result<CommandReply, RequestError>);

/// The result of applying a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ApplyResult {
    pub(super) put: Vec<JobId>,
    pub(super) removed: Vec<JobId>,
    pub(super) refused: usize,
    /// Number of new or changed jobs that were left to the node that applies their directory.
    pub(super) left: usize,
}

/// Sends commands to the node, and retries those that fail for a transient reason. Commands that the node drops because
/// it is stopping are not in the result.
pub(super) async fn send_commands(
    commands: Vec<Command>,
    node: &NodeHandle,
    clock: &dyn MachineClock,
) -> Vec<CommandResult> {
    let mut results = Vec::with_capacity(commands.len());
    let mut commands = VecDeque::from(commands);
    let mut in_flight = JoinSet::new();
    loop {
        while in_flight.len() < IN_FLIGHT_MAX
            && let Some(command) = commands.pop_front()
        {
            let node = node.clone();
            in_flight.spawn(async move {
                let reply = node.request(Actor::JobFiles, command.clone()).await;
                (command, reply)
            });
        }
        match in_flight.join_next().await {
            Some(Ok((command, Err(refused)))) if is_transient(&refused) => {
                commands.push_front(command);
                clock.sleep(BUSY_WAIT).await;
            }
            Some(Ok((_, Err(RequestError::Stopping)))) | None => return results,
            Some(Ok(result)) => results.push(result),
            // Nothing aborts these tasks. A panic is a bug and was printed.
            Some(Err(_)) => {}
        }
    }
}

/// Whether a retry may succeed.
fn is_transient(refused: &RequestError) -> bool {
    match refused {
        RequestError::Contended | RequestError::Busy | RequestError::Late => true,
        RequestError::Failed(fault) => fault.is_transient(),
        RequestError::Rejected(_) | RequestError::Stopping => false,
    }
}

impl ApplyResult {
    /// Whether any file defines a job. `unchanged` is the number of the plan.
    pub fn has_jobs(&self, unchanged: usize) -> bool {
        unchanged + self.put.len() + self.left > 0
    }

    /// A summary in one sentence. `unchanged` and `kept` are the numbers of the plan.
    pub fn summary(&self, unchanged: usize, kept: usize) -> String {
        // An empty directory is more likely one that is not mounted.
        if !self.has_jobs(unchanged) {
            let kept = if kept == 0 { String::new() } else { format!("; {} left as stored", counted(kept, "job")) };
            return format!("there is no valid job file{kept}");
        }
        let notes = [
            (self.put.len(), "new or changed"),
            (self.removed.len(), "removed"),
            (self.refused, "refused"),
            (self.left, "left to another node"),
            (kept, "left as stored: their files are invalid or cannot be read"),
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

    /// The changed jobs with their ids; `None` if there are none.
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
    fn summary_counts_jobs_by_result() {
        for (put, removed, refused, left, unchanged, kept, expected) in [
            (0, 0, 0, 0, 0, 0, "there is no valid job file"),
            (0, 0, 0, 0, 0, 3, "there is no valid job file; 3 jobs left as stored"),
            (0, 0, 0, 0, 7, 0, "7 jobs, all as stored"),
            (1, 0, 0, 0, 0, 0, "1 job, 1 new or changed"),
            (2, 1, 1, 0, 3, 0, "5 jobs, 2 new or changed, 1 removed, 1 refused"),
            (1, 0, 0, 2, 0, 0, "3 jobs, 1 new or changed, 2 left to another node"),
            (0, 0, 0, 0, 1, 2, "1 job, 2 left as stored: their files are invalid or cannot be read"),
        ] {
            let applied = ApplyResult { put: ids(put), removed: ids(removed), refused, left };
            assert_eq!(applied.summary(unchanged, kept), expected);
        }
    }

    #[test]
    fn changes_list_the_first_ids() {
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
