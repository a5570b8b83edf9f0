//! `cronhold runs`: lists runs, or shows one run with every state change.

use std::io::Write;

use clap::Args;
use cronhold_api::client::RunFilter;
use cronhold_api::{LIMIT, LIMIT_MAX, PeerRun, RunSummary};
use cronhold_core::run::State;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Upper bound of `--limit`, because all runs are held in memory.
const RUNS_MOST: u64 = 1_000_000;

/// List runs, including skipped ones, latest first; or show one run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold runs
  cronhold runs backup
  cronhold runs backup#42
  cronhold runs --state failure,error --since yesterday
  cronhold runs --job reports/prices --limit 500 -o json
  cronhold runs --peers

If Cronken nodes share the store, a second table shows up to 1000 of their runs, unless you use --state
or --since, which do not apply to them.")]
pub(crate) struct RunsArgs {
    /// Job whose runs are listed; or run, as its id or such as backup#42, which is shown in detail
    #[arg(value_name = "JOB|RUN", conflicts_with = "job")]
    about: Option<String>,
    /// Job whose runs are listed
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// States of the runs, such as failure,error [default: all]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',')]
    state: Vec<String>,
    /// Only runs that ran since, whatever their nominal time: 2h, yesterday, 14:30 or 2026-11-01T02:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Maximum number of runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = LIMIT as u64, value_parser = clap::value_parser!(u64).range(1..=RUNS_MOST))]
    limit: u64,
    /// Show only runs of Cronken nodes that share the store
    #[arg(long, conflicts_with_all = ["state", "since"])]
    peers: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl RunsArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        if self.peers {
            return self.of_peers(remote, out, err);
        }
        match self.about.as_deref().filter(|about| follow::is_run(about)) {
            Some(run) => self.one(run, remote, out),
            None => self.many(remote, out, err),
        }
    }

    fn one(&self, name: &str, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let detail = remote.client.run(name).map_err(|error| remote.failure_about(name, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&[detail], out)?,
            None => render::run::detail(&detail, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }

    fn many(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let filter = self.filter(&clock)?;
        let FoundRuns { runs, has_more } = self.pages(&filter, remote, err)?;
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&runs, out)?;
            return Ok(ExitStatus::Done);
        }
        render::runs::table(&runs, &clock, remote.session.colours, out)?;
        // Runs of Cronken nodes have other states and no nominal time.
        let can_be_theirs = filter.states.is_empty() && filter.since.is_none();
        let theirs = if can_be_theirs { self.peer_runs(remote)? } else { Vec::new() };
        if !runs.is_empty() && !theirs.is_empty() {
            writeln!(out)?;
        }
        render::peers::below(&theirs, &clock, remote.session.colours, out)?;
        out.flush()?;
        if runs.is_empty() && theirs.is_empty() {
            render::runs::none(filter.job.is_some() || filter.since.is_some() || !filter.states.is_empty(), err)?;
        } else if has_more && !runs.is_empty() && remote.session.progress {
            render::runs::more(runs.len(), err)?;
        }
        Ok(ExitStatus::Done)
    }

    /// Shows only the runs of Cronken nodes.
    fn of_peers(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let runs = self.peer_runs(remote)?;
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&runs, out)?;
            return Ok(ExitStatus::Done);
        }
        render::peers::table(&runs, &clock, remote.session.colours, out)?;
        out.flush()?;
        if runs.is_empty() {
            render::peers::none(err)?;
        }
        Ok(ExitStatus::Done)
    }

    fn peer_runs(&self, remote: &RemoteDaemon<'_>) -> Result<Vec<PeerRun>, CliError> {
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX).min(LIMIT_MAX);
        remote.client.peer_runs(self.job(), most).map_err(|error| remote.failure(error))
    }

    /// The job whose runs are listed, or `None` for all jobs.
    fn job(&self) -> Option<&str> {
        self.about.as_deref().or(self.job.as_deref())
    }

    fn filter(&self, clock: &render::LocalTimeFormat) -> Result<RunFilter, CliError> {
        let states: Result<Vec<State>, _> = self.state.iter().map(|state| State::parse(state.trim())).collect();
        Ok(RunFilter {
            job: self.job().map(str::to_owned),
            states: states.map_err(|error| CliError::flag("--state", error))?,
            since: clock.read_some("--since", self.since.as_deref())?,
        })
    }

    /// Loads runs page by page, up to the limit.
    fn pages(&self, filter: &RunFilter, remote: &RemoteDaemon<'_>, err: &mut dyn Write) -> Result<FoundRuns, CliError> {
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (mut runs, mut before) = (Vec::new(), None);
        loop {
            let page = remote.client.run_page(filter, before.as_deref(), (most - runs.len()).min(LIMIT_MAX));
            let page = page.map_err(|error| match &filter.job {
                Some(job) => remote.failure_about(job, error),
                None => remote.failure(error),
            })?;
            render::jobs::unreadable(&page.unreadable, err)?;
            runs.extend(page.runs);
            // A page that names itself as the next one would loop forever.
            let is_same = page.next == before;
            before = page.next;
            if before.is_none() || is_same || runs.len() >= most {
                runs.truncate(most);
                return Ok(FoundRuns { runs, has_more: before.is_some() });
            }
        }
    }
}

/// Loaded runs, and whether there are older ones.
struct FoundRuns {
    runs: Vec<RunSummary>,
    has_more: bool,
}
