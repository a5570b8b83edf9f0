//! `cronhold task list`: a page of tasks, or all of them.

use std::io::Write;

use clap::Args;
use cronhold_api::client::TaskFilter;
use cronhold_api::{LIMIT, LIMIT_MAX, TaskSummary};
use cronhold_core::task::TaskStatus;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Upper bound of `--limit`, because all tasks are held in memory.
const TASKS_MOST: u64 = 1_000_000;

/// List tasks, ordered by id
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold task list
  cronhold task list --status failed
  cronhold task list --queue core -n 500 -o json")]
pub(crate) struct TaskListArgs {
    /// Status of the tasks: queued, running, suspended, completed, failed, terminating or terminated [default: any]
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Queue of the tasks
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only tasks after this id
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
    /// Maximum number of tasks
    #[arg(short = 'n', long, value_name = "N", default_value_t = LIMIT as u64, value_parser = clap::value_parser!(u64).range(1..=TASKS_MOST))]
    limit: u64,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl TaskListArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let status = self.status.as_deref().map(TaskStatus::parse).transpose();
        let status = status.map_err(|error| CliError::flag("--status", error))?;
        let filter = TaskFilter { status, queue: self.queue.clone() };
        let (tasks, next) = self.load(&filter, remote)?;
        let is_filtered = self.status.is_some() || self.queue.is_some() || self.after.is_some();
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&tasks, out)?,
            None if tasks.is_empty() && is_filtered => render::line("no task matches", out)?,
            None => render::tasks::table(&tasks, next, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }

    /// Loads pages until there are enough tasks. Also returns where the list goes on.
    fn load(
        &self,
        filter: &TaskFilter,
        remote: &RemoteDaemon<'_>,
    ) -> Result<(Vec<TaskSummary>, Option<u64>), CliError> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (mut tasks, mut after) = (Vec::new(), self.after);
        loop {
            let room = (limit - tasks.len()).min(LIMIT_MAX);
            let page = remote.client.task_page(filter, after, room).map_err(|error| remote.failure(error))?;
            tasks.extend(page.tasks);
            after = page.next;
            if after.is_none() || tasks.len() >= limit {
                return Ok((tasks, after));
            }
        }
    }
}
