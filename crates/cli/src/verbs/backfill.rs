//! `cronhold backfill`: runs the occurrences of a period that did not succeed, in order. It can be interrupted and
//! repeated at any time, because each occurrence has an idempotency key.

use std::collections::VecDeque;
use std::io::Write;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cronhold_api::client::{CallError, RunFilter};
use cronhold_api::{BackfillItem, ProblemCode, RunBody, RunSummary};
use cronhold_core::run::State;

use crate::remote::RemoteDaemon;
use crate::render::backfill::{BackfillOutcome, BackfillProgress};
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, counted};

/// Interval between two polls of the active runs.
const LOOK: Duration = Duration::from_millis(100);
/// Delay before a retry when the daemon is busy, or when another run was active.
const BUSY: Duration = Duration::from_secs(1);
/// Number of retries for one occurrence while the daemon is busy.
const BUSY_MAX: u32 = 60;
/// Number of retries in a row after a run was skipped because of an overlap.
const OVERLAPS_MAX: u32 = 10;

/// Run the occurrences of a period that did not run or did not succeed
#[derive(Debug, Args)]
#[command(after_help = "\
Occurrences that succeeded are not run again unless you pass --all, and active ones are left alone.
You can interrupt and repeat the command: it does not run a successful occurrence twice. It exits with
1 if a run does not succeed.

Examples:
  cronhold backfill reports/prices --from 2026-11-01 --to 2026-11-08 --dry-run
  cronhold backfill reports/prices --from 3d --parallel 4
  cronhold backfill import --from 2026-01-01 --rate 30/m --overlap skip --yes")]
pub(crate) struct BackfillArgs {
    /// Job id
    #[arg(value_name = "JOB")]
    job: String,
    /// Start of the period: an instant, a date, or an age such as 3d
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: String,
    /// End of the period [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Include occurrences that succeeded
    #[arg(long)]
    all: bool,
    /// Show what would run, without running it
    #[arg(long)]
    dry_run: bool,
    /// Number of runs at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    parallel: u8,
    /// Most runs to start in a second, a minute or an hour: 5/s, 30/m or 100/h [default: no limit]
    #[arg(long, value_name = "N/UNIT")]
    rate: Option<StartRate>,
    /// What to do while another run of the job is active, if its runs must not overlap
    #[arg(long, value_name = "POLICY", default_value = "wait")]
    overlap: BackfillOverlap,
    /// Do not ask for confirmation on a terminal
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

/// What a backfill does while a run of the job is active that it has not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackfillOverlap {
    /// Wait until it has ended
    Wait,
    /// Leave the occurrence out; it is recorded as skipped
    Skip,
}

/// How many runs a backfill starts in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StartRate {
    /// The time between two starts.
    interval: Duration,
}

impl FromStr for StartRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "expected a whole number from 1 to 1000 and a unit, such as 5/s, 30/m or 100/h";
        let (count, unit) = text.split_once('/').ok_or(WRONG)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(WRONG),
        };
        match count.parse::<u32>() {
            Ok(count @ 1..=1_000) => Ok(Self { interval: Duration::from_secs(unit) / count }),
            _ => Err(WRONG),
        }
    }
}

impl BackfillArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let from = clock.read("--from", &self.from)?;
        let to = clock.read_some("--to", self.to.as_deref())?.unwrap_or(clock.now);
        if from >= to {
            return Err(CliError::usage("--from is not before --to", "use a start that is earlier than the end"));
        }
        let asked = remote.client.backfill(&self.job, from, to);
        let plan = asked.map_err(|error| remote.failure_about(&self.job, error))?;
        let (wanted, left): (Vec<_>, Vec<_>) = plan.items.into_iter().partition(|item| self.is_wanted(item));
        if self.dry_run {
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&wanted, out)?,
                None => render::backfill::plan(&wanted, left.len(), plan.cut, &clock, out)?,
            }
            return Ok(ExitStatus::Done);
        }
        let is_exclusive = self.check_overlap(remote)?;
        if let Some(prompt) = remote.session.prompt.filter(|_| !self.yes && !wanted.is_empty()) {
            render::backfill::plan(&wanted, left.len(), plan.cut, &clock, err)?;
            err.flush()?;
            if !prompt(&format!("run {}?", counted(wanted.len(), "occurrence"))) {
                render::bulk::declined(err)?;
                return Ok(ExitStatus::Refused);
            }
        }
        let lines = self.shown.encoding().is_none();
        let mut progress = BackfillProgress::new(wanted.len(), remote.session, clock, lines, out, err);
        let outcomes = self.run_all(wanted, is_exclusive, remote, &mut progress)?;
        progress.end(left.len(), plan.cut)?;
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&outcomes, out)?;
        }
        let all_well = outcomes.iter().all(|outcome| outcome.state == Some(State::Success));
        Ok(if all_well { ExitStatus::Done } else { ExitStatus::Refused })
    }

    /// Whether to run an occurrence. An active one is left alone, because it will have its own outcome.
    fn is_wanted(&self, item: &BackfillItem) -> bool {
        match item.state.as_deref().map(State::parse) {
            None | Some(Err(_)) => true,
            Some(Ok(State::Success)) => self.all,
            Some(Ok(state)) => state.is_finished(),
        }
    }

    /// Whether runs of the job skip or stop each other. Refuses `--parallel` if they must not overlap.
    fn check_overlap(&self, remote: &RemoteDaemon<'_>) -> Result<bool, CliError> {
        let asked = remote.client.job(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        let overlap = &asked.0.definition["overlap"];
        if self.parallel > 1 && overlap != "allow" {
            let message =
                format!("cannot run several occurrences of `{}` at once, because its runs must not overlap", self.job);
            return Err(CliError::refused(message, "omit --parallel, or set `overlap: allow` in the job"));
        }
        Ok(overlap != "allow" && overlap != "queue" && overlap.get("queue").is_none())
    }

    /// Waits until no run of the job has a program.
    fn await_others(&self, remote: &RemoteDaemon<'_>) -> Result<(), CliError> {
        let states = vec![State::Starting, State::Running, State::Stopping];
        let filter = RunFilter { job: Some(self.job.clone()), states, since: None };
        loop {
            let page = remote.client.run_page(&filter, None, 1).map_err(|error| again(remote.failure(error)))?;
            if page.runs.is_empty() {
                return Ok(());
            }
            remote.client.rest(BUSY);
        }
    }

    /// Runs the occurrences in order, up to `parallel` at the same time, and waits for all of them.
    fn run_all(
        &self,
        wanted: Vec<BackfillItem>,
        is_exclusive: bool,
        remote: &RemoteDaemon<'_>,
        progress: &mut BackfillProgress<'_>,
    ) -> Result<Vec<BackfillOutcome>, CliError> {
        let mut coming: VecDeque<BackfillItem> = wanted.into();
        let mut active: Vec<(BackfillItem, String)> = Vec::new();
        let mut outcomes = Vec::new();
        let mut overlaps = 0;
        let interval = self.rate.map_or(Duration::ZERO, |rate| rate.interval);
        // How long the next start has to wait.
        let mut wait = Duration::ZERO;
        let waits = is_exclusive && self.overlap == BackfillOverlap::Wait;
        while !coming.is_empty() || !active.is_empty() {
            if waits && active.is_empty() {
                self.await_others(remote)?;
            }
            while active.len() < usize::from(self.parallel)
                && wait.is_zero()
                && let Some(item) = coming.pop_front()
            {
                match self.make(&item, remote) {
                    Ok(id) => {
                        active.push((item, id));
                        wait = interval;
                    }
                    Err(CallError::Problem(problem)) if problem.code != ProblemCode::Unavailable => {
                        outcomes.push(progress.report(BackfillOutcome::refused(item, problem.detail))?);
                    }
                    Err(error) => return Err(again(remote.failure(error))),
                }
            }
            let mut has_ended = false;
            for (item, id) in std::mem::take(&mut active) {
                let run = remote.client.run(&id).map_err(|error| again(remote.failure(error)))?.run;
                if !run.state.is_finished() {
                    active.push((item, id));
                } else if let Some(retry) = run.retried_by {
                    // The last attempt is the outcome, and the next occurrence would overlap with a pending one.
                    active.push((item, retry));
                } else if waits && is_overlap(&run) && overlaps < OVERLAPS_MAX {
                    // A run of the schedule has started in the meantime.
                    overlaps += 1;
                    coming.push_front(item);
                    remote.client.rest(BUSY);
                } else {
                    (has_ended, overlaps) = (true, 0);
                    outcomes.push(progress.report(BackfillOutcome::of(item, &run))?);
                }
            }
            let can_start = wait.is_zero() && !coming.is_empty() && active.len() < usize::from(self.parallel);
            let is_over = coming.is_empty() && active.is_empty();
            if !has_ended && !can_start && !is_over {
                let rest = if wait.is_zero() { LOOK } else { wait.min(LOOK) };
                remote.client.rest(rest);
                wait = wait.saturating_sub(rest);
            }
        }
        Ok(outcomes)
    }

    /// Creates the run of an occurrence and returns its id. If a finished run with this key exists and must be run
    /// again, the next key is derived from that run, so that the new run is created only once too.
    fn make(&self, item: &BackfillItem, remote: &RemoteDaemon<'_>) -> Result<String, CallError> {
        let body = RunBody { args: item.args.clone(), at: Some(item.at), ..RunBody::default() };
        let mut key = item.key.clone();
        let mut busy = 0;
        loop {
            let (made, is_new) = match remote.client.make_run_once(&self.job, &body, Some(&key)) {
                Err(CallError::Problem(problem)) if problem.code == ProblemCode::Busy && busy < BUSY_MAX => {
                    busy += 1;
                    remote.client.rest(BUSY);
                    continue;
                }
                other => other?,
            };
            if is_new {
                return Ok(made.id);
            }
            let state = remote.client.run(&made.id)?.run.state;
            let is_done = state == State::Success && !self.all;
            if !state.is_finished() || is_done {
                return Ok(made.id);
            }
            key = format!("{} after {}", item.key, made.number);
        }
    }
}

/// Whether a run was skipped because another run of its job was active.
fn is_overlap(run: &RunSummary) -> bool {
    run.state == State::Skipped && run.reason.as_deref() == Some("overlap")
}

/// A failure during a backfill, with a hint to repeat the command.
fn again(failure: CliError) -> CliError {
    match failure {
        CliError::Unreachable { message, hint } => {
            let rest = "repeat the command: it continues with the remaining occurrences";
            let hint = hint.map_or_else(|| rest.to_owned(), |hint| format!("{hint}; then {rest}"));
            CliError::Unreachable { message, hint: Some(hint) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_a_number_of_starts_in_a_unit() {
        let millis = |text: &str| text.parse::<StartRate>().map(|rate| rate.interval.as_millis()).ok();
        for (text, expected) in [
            ("5/s", Some(200)),
            ("30/m", Some(2_000)),
            ("100/h", Some(36_000)),
            ("1000/s", Some(1)),
            ("0/s", None),
            ("1001/s", None),
            ("5", None),
            ("5/d", None),
            ("-1/s", None),
            ("1.5/s", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }
}
