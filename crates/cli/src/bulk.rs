//! Operations on all runs that match a filter: the selection, the preview, the confirmation, and the summary. A person
//! confirms on a terminal; everything else has to pass `--yes`.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Args;
use cronhold_api::client::{CallError, DaemonClient, RunFilter};
use cronhold_api::{LIMIT_MAX, ProblemCode, RunSummary};
use cronhold_core::run::State;
use serde::Serialize;

use crate::remote::RemoteDaemon;
use crate::render::bulk::{self, BulkProgress};
use crate::render::{self, LocalTimeFormat, TimeDisplayFlags};
use crate::verbs::pause::{is_pattern, matching};
use crate::{CliError, ExitStatus, counted};

/// Maximum number of runs that one command selects.
const RUNS_MAX: usize = 10_000;

/// Options that select runs by a filter instead of a name.
#[derive(Debug, Args)]
pub(crate) struct BulkFlags {
    /// Job, or pattern of jobs such as 'etl/*', instead of one run
    #[arg(long = "job", value_name = "JOB|PATTERN")]
    pub(crate) pattern: Option<String>,
    /// With a filter: only runs that ran since: 2h, yesterday, 14:30 or 2026-11-01T02:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// With a filter: do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// With a filter: list the runs, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What happened to one of the selected runs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BulkOutcome {
    /// The selected run, such as `backup#42`.
    pub(crate) run: String,
    /// Its id.
    pub(crate) id: String,
    /// The run that was created from it, or itself.
    pub(crate) result: Option<String>,
    /// Why nothing happened to it.
    pub(crate) refused: Option<String>,
}

/// An operation on many runs.
pub(crate) struct BulkOperation<'a> {
    /// The verb, such as `stop`.
    pub(crate) verb: &'a str,
    /// Its past tense.
    pub(crate) done: &'a str,
    /// States of the runs that it applies to.
    pub(crate) states: &'a [State],
    /// Whether runs are left out that were retried, or run again already.
    pub(crate) skips_repeated: bool,
    pub(crate) flags: &'a BulkFlags,
    pub(crate) shown: &'a TimeDisplayFlags,
}

impl BulkOutcome {
    pub(crate) fn of(run: &RunSummary, result: Result<String, String>) -> Self {
        let (result, refused) = match result {
            Ok(result) => (Some(result), None),
            Err(refused) => (None, Some(refused)),
        };
        Self { run: render::run::name(run), id: run.id.clone(), result, refused }
    }
}

impl BulkFlags {
    /// Rejects options about many runs in a command about one run.
    pub(crate) fn reject_for_one(&self, verb: &str) -> Result<(), CliError> {
        if !self.yes && !self.dry_run {
            return Ok(());
        }
        let option = if self.yes { "--yes" } else { "--dry-run" };
        let message = format!("{option} cannot be used with one run");
        Err(CliError::usage(message, format!("`cronhold {verb}` with one run asks nothing; omit {option}")))
    }
}

impl BulkOperation<'_> {
    /// Applies a request to each selected run, the oldest first.
    pub(crate) fn run_each(
        &self,
        ask: impl Fn(&DaemonClient, &str) -> Result<RunSummary, CallError>,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        self.run(remote, out, err, |runs, progress| {
            let mut outcomes = Vec::with_capacity(runs.len());
            for run in runs {
                let result = match ask(&remote.client, &run.id) {
                    Ok(run) => Ok(render::run::name(&run)),
                    Err(error) => Err(refusal(error, remote)?),
                };
                outcomes.push(progress.report(BulkOutcome::of(&run, result))?);
            }
            Ok(outcomes)
        })
    }

    /// Selects runs, shows them, asks for confirmation, carries out `work`, and prints a summary.
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
        work: impl FnOnce(Vec<RunSummary>, &mut BulkProgress<'_>) -> Result<Vec<BulkOutcome>, CliError>,
    ) -> Result<ExitStatus, CliError> {
        let select = |clock: &LocalTimeFormat, err: &mut dyn Write| {
            let mut runs = self.select(clock, remote, err)?;
            // The oldest first, in the order in which they were due.
            runs.reverse();
            Ok(runs)
        };
        self.run_these(select, remote, out, err, work)
    }

    /// Like [`Self::run`], with another selection.
    pub(crate) fn run_these(
        &self,
        select: impl FnOnce(&LocalTimeFormat, &mut dyn Write) -> Result<Vec<RunSummary>, CliError>,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
        work: impl FnOnce(Vec<RunSummary>, &mut BulkProgress<'_>) -> Result<Vec<BulkOutcome>, CliError>,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let runs = select(&clock, err)?;
        if self.flags.dry_run {
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&runs, out)?,
                None => bulk::plan(self.verb, &runs, &clock, remote.session.colours, out)?,
            }
            return Ok(ExitStatus::Done);
        }
        if runs.is_empty() {
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&Vec::<BulkOutcome>::new(), out)?,
                None => bulk::nothing(self.verb, out)?,
            }
            return Ok(ExitStatus::Done);
        }
        if !self.confirm(&runs, &clock, remote, err)? {
            bulk::declined(err)?;
            return Ok(ExitStatus::Refused);
        }
        let lines = self.shown.encoding().is_none();
        let mut progress = BulkProgress::new(runs.len(), remote.session, lines, out, err);
        let outcomes = work(runs, &mut progress)?;
        progress.end(self.done)?;
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&outcomes, out)?;
        }
        let is_done = outcomes.iter().all(|outcome| outcome.refused.is_none());
        Ok(if is_done { ExitStatus::Done } else { ExitStatus::Refused })
    }

    /// Shows the runs and asks whether to go on, unless `--yes` was passed.
    fn confirm(
        &self,
        runs: &[RunSummary],
        clock: &LocalTimeFormat,
        remote: &RemoteDaemon<'_>,
        err: &mut dyn Write,
    ) -> Result<bool, CliError> {
        if self.flags.yes {
            return Ok(true);
        }
        let count = counted(runs.len(), "run");
        let Some(prompt) = remote.session.prompt else {
            let message = format!("this would {} {count}, and there is no terminal to confirm it", self.verb);
            return Err(CliError::usage(message, "add --yes to go on, or --dry-run to list the runs"));
        };
        bulk::preview(runs, clock, remote.session.colours, err)?;
        err.flush()?;
        Ok(prompt(&format!("{} {count}?", self.verb)))
    }

    /// The runs that match the filter, the latest first.
    fn select(
        &self,
        clock: &LocalTimeFormat,
        remote: &RemoteDaemon<'_>,
        err: &mut dyn Write,
    ) -> Result<Vec<RunSummary>, CliError> {
        let pattern = self.flags.pattern.as_deref();
        let jobs: Option<BTreeSet<String>> = match pattern.filter(|pattern| is_pattern(pattern)) {
            Some(pattern) => Some(matching(pattern, remote)?.into_iter().collect()),
            None => None,
        };
        let filter = RunFilter {
            job: pattern.filter(|_| jobs.is_none()).map(str::to_owned),
            // A run that repeats another one can be in any state.
            states: if self.skips_repeated { Vec::new() } else { self.states.to_vec() },
            since: clock.read_some("--since", self.flags.since.as_deref())?,
        };
        let (mut runs, mut before): (Vec<RunSummary>, Option<String>) = (Vec::new(), None);
        let mut repeated = BTreeSet::new();
        loop {
            let page = remote.client.run_page(&filter, before.as_deref(), LIMIT_MAX);
            let page = page.map_err(|error| match &filter.job {
                Some(job) => remote.failure_about(job, error),
                None => remote.failure(error),
            })?;
            render::jobs::unreadable(&page.unreadable, err)?;
            if self.skips_repeated {
                repeated.extend(page.runs.iter().filter_map(|run| run.rerun_of.clone()));
            }
            let is_wanted = |run: &RunSummary| {
                // A span of skipped occurrences is not a run. What repeats a run is listed before it.
                let is_repeated = self.skips_repeated && (run.retried_by.is_some() || repeated.contains(&run.id));
                let is_of_job = jobs.as_ref().is_none_or(|jobs| jobs.contains(&run.job));
                run.count.is_none() && self.states.contains(&run.state) && is_of_job && !is_repeated
            };
            runs.extend(page.runs.into_iter().filter(is_wanted));
            if runs.len() > RUNS_MAX {
                let message = format!("more than {RUNS_MAX} runs match");
                return Err(CliError::refused(message, "select fewer with --since or --job"));
            }
            // A page that names itself as the next one would loop forever.
            let is_same = page.next == before;
            before = page.next;
            if before.is_none() || is_same {
                return Ok(runs);
            }
        }
    }
}

/// The reason why the daemon refused a request about one run. A daemon that does not answer ends the command.
pub(crate) fn refusal(error: CallError, remote: &RemoteDaemon<'_>) -> Result<String, CliError> {
    match error {
        CallError::Problem(problem) if problem.code != ProblemCode::Unavailable => Ok(problem.detail),
        error => Err(match remote.failure(error) {
            CliError::Unreachable { message, hint } => {
                let rest = "repeat the command for the remaining runs";
                let hint = hint.map_or_else(|| rest.to_owned(), |hint| format!("{hint}; then {rest}"));
                CliError::Unreachable { message, hint: Some(hint) }
            }
            other => other,
        }),
    }
}
