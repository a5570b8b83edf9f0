//! `cronhold rerun`: creates a new run with the time and args of a finished one, or of every failed one of a period.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use cronhold_api::{ChainLink, RunSummary};
use cronhold_core::run::State;

use crate::bulk::{BulkFlags, BulkOperation, BulkOutcome, refusal};
use crate::chain::ChainRerun;
use crate::remote::RemoteDaemon;
use crate::render::bulk::BulkProgress;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Interval between two polls of the runs that others wait for.
const LOOK: Duration = Duration::from_millis(100);
/// States of runs that did not succeed.
const FAILED: &[State] = &[State::Failure, State::Error];

/// Run a finished run again, with the same args and nominal time, or all failed runs of a period
#[derive(Debug, Args)]
#[command(after_help = "\
With --failed, the command runs every run again that ended in failure or error since --since, the oldest
first, except attempts that were retried and runs that were already run again. If runs of a job must not
overlap, it waits for each before it runs the next one of that job. It lists the runs and asks before it
begins; without a terminal it needs --yes. It exits with 1 if a run is refused.

With --chain, it runs a run again and then the runs that depended on it: those that waited for it by
`after`, and those that its actions created, which the new run creates again. It waits for each, and
leaves out what depends on a run that did not end as needed. It asks before it begins, too.

Examples:
  cronhold rerun backup
  cronhold rerun backup#42 --current --wait
  cronhold rerun fetch#7 --chain --dry-run
  cronhold rerun --failed --since yesterday --dry-run
  cronhold rerun --failed --since 2h --job 'etl/*' --yes")]
pub(crate) struct RerunArgs {
    /// Run: its id, JOB#NUMBER, or a job for its running run, else the last one that started
    #[arg(value_name = "RUN", required_unless_present = "failed", conflicts_with_all = ["failed", "pattern", "since"])]
    run: Option<String>,
    /// All runs since --since that ended in failure or error
    #[arg(long, requires = "since", conflicts_with = "wait")]
    failed: bool,
    /// Also the runs that depended on the run, by `after` or because its actions created them, each after those that it
    /// depends on
    #[arg(long, conflicts_with_all = ["failed", "wait"])]
    chain: bool,
    /// Use the job's current definition instead of the one at the time of the run
    #[arg(long)]
    current: bool,
    /// Wait for the run and its retries and print their output; exit with 0 only if the last one succeeds
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    bulk: BulkFlags,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

/// The runs of one job that are to be run again.
struct JobReruns {
    runs: VecDeque<RunSummary>,
    /// Whether each has to end before the next one is created.
    is_serial: bool,
    /// The run that the next one waits for.
    active: Option<String>,
}

impl RerunArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let Some(name) = &self.run else {
            return self.operation().run(remote, out, err, |runs, progress| self.rerun_all(runs, remote, progress));
        };
        if self.chain {
            return self.operation().run_these(
                |_, _| Ok(self.links(name, remote)?.into_iter().map(|link| link.run).collect()),
                remote,
                out,
                err,
                |runs, progress| self.rerun_chain(name, &runs, remote, progress),
            );
        }
        self.bulk.reject_for_one("rerun")?;
        let clock = self.shown.clock(remote.session)?;
        let made = remote.client.rerun(name, self.current, None);
        let made = made.map_err(|error| follow::refused(remote, name, error))?;
        let run = follow::named(remote, &made.id)?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(follow::exit_of_created(&run))
    }

    fn operation(&self) -> BulkOperation<'_> {
        let (flags, shown) = (&self.bulk, &self.shown);
        BulkOperation { verb: "rerun", done: "reran", states: FAILED, skips_repeated: true, flags, shown }
    }

    /// The run and the runs that depended on it.
    fn links(&self, name: &str, remote: &RemoteDaemon<'_>) -> Result<Vec<ChainLink>, CliError> {
        let found = remote.client.chain(name).map_err(|error| follow::refused(remote, name, error))?;
        match found.runs.iter().find(|link| !link.run.state.is_finished()) {
            Some(link) => {
                let message = format!("{} has not ended", render::run::name(&link.run));
                Err(CliError::refused(message, "wait until it has ended, or stop it with `cronhold stop`"))
            }
            None => Ok(found.runs),
        }
    }

    /// Runs a chain again, as far as it was confirmed.
    fn rerun_chain(
        &self,
        name: &str,
        confirmed: &[RunSummary],
        remote: &RemoteDaemon<'_>,
        progress: &mut BulkProgress<'_>,
    ) -> Result<Vec<BulkOutcome>, CliError> {
        // The first run is named by its id: a job's name may mean another run by now.
        let first = confirmed.first().map_or(name, |run| &run.id);
        let mut links = self.links(first, remote)?;
        links.retain(|link| confirmed.iter().any(|run| run.id == link.run.id));
        ChainRerun::new(remote, self.current).run_all(&links, progress)
    }

    /// Runs the runs again, those of different jobs side by side.
    fn rerun_all(
        &self,
        runs: Vec<RunSummary>,
        remote: &RemoteDaemon<'_>,
        progress: &mut BulkProgress<'_>,
    ) -> Result<Vec<BulkOutcome>, CliError> {
        let mut jobs = by_job(runs, remote)?;
        let mut outcomes = Vec::new();
        while !jobs.is_empty() {
            for job in &mut jobs {
                if let Some(active) = &job.active {
                    job.active = unfinished(active, remote)?;
                }
                while job.active.is_none()
                    && let Some(run) = job.runs.pop_front()
                {
                    let (outcome, created) = self.rerun_one(&run, remote)?;
                    outcomes.push(progress.report(outcome)?);
                    job.active = created.filter(|_| job.is_serial && !job.runs.is_empty());
                }
            }
            jobs.retain(|job| !job.runs.is_empty());
            if !jobs.is_empty() {
                remote.client.rest(LOOK);
            }
        }
        Ok(outcomes)
    }

    /// Runs one run again. Returns the id of the new run too.
    fn rerun_one(
        &self,
        run: &RunSummary,
        remote: &RemoteDaemon<'_>,
    ) -> Result<(BulkOutcome, Option<String>), CliError> {
        // The key makes a command that is interrupted and repeated create no run twice.
        let key = format!("rerun of {}", run.id);
        let made = match remote.client.rerun(&run.id, self.current, Some(&key)) {
            Ok(made) => made,
            Err(error) => return Ok((BulkOutcome::of(run, Err(refusal(error, remote)?)), None)),
        };
        let created = remote.client.run(&made.id).map_err(|error| remote.failure(error))?.run;
        let result = match (created.state, &created.reason) {
            (State::Skipped, Some(reason)) => Err(format!("skipped: {reason}")),
            _ => Ok(render::run::name(&created)),
        };
        Ok((BulkOutcome::of(run, result), Some(made.id)))
    }
}

/// Groups runs by job. The order within a job stays.
fn by_job(runs: Vec<RunSummary>, remote: &RemoteDaemon<'_>) -> Result<Vec<JobReruns>, CliError> {
    let mut jobs: Vec<(String, JobReruns)> = Vec::new();
    for run in runs {
        match jobs.iter_mut().find(|(job, _)| *job == run.job) {
            Some((_, of_job)) => of_job.runs.push_back(run),
            None => {
                let is_serial = is_serial(&run.job, remote)?;
                jobs.push((run.job.clone(), JobReruns { runs: [run].into(), is_serial, active: None }));
            }
        }
    }
    Ok(jobs.into_iter().map(|(_, of_job)| of_job).collect())
}

/// Whether runs of a job must not overlap, and do not wait for each other either.
fn is_serial(job: &str, remote: &RemoteDaemon<'_>) -> Result<bool, CliError> {
    match remote.client.job(job) {
        Ok((detail, _)) => {
            let overlap = &detail.definition["overlap"];
            Ok(overlap != "allow" && overlap != "queue" && overlap.get("queue").is_none())
        }
        // A job that was removed has no overlap policy.
        Err(error) if error.problem().is_some() => Ok(false),
        Err(error) => Err(remote.failure(error)),
    }
}

/// The run to go on waiting for: the run itself or its retry; `None` if the last attempt has ended.
fn unfinished(id: &str, remote: &RemoteDaemon<'_>) -> Result<Option<String>, CliError> {
    match remote.client.run(id) {
        Ok(detail) if !detail.run.state.is_finished() => Ok(Some(id.to_owned())),
        Ok(detail) => Ok(detail.run.retried_by),
        // It is no longer kept.
        Err(error) if error.problem().is_some() => Ok(None),
        Err(error) => Err(remote.failure(error)),
    }
}
