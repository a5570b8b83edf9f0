//! `cronhold backfill`: runs the occurrences of a stretch that did not end well, in order. It can be interrupted and
//! repeated at any time, because each occurrence has a key by which the daemon knows that it was asked for already.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use cronhold_api::client::CallError;
use cronhold_api::{BackfillItem, Code, Run, RunBody};
use cronhold_core::run::State;

use crate::remote::Remote;
use crate::render::backfill::{Outcome, Progress};
use crate::render::{self, Shown};
use crate::{Exit, Failure};

/// How long to wait before runs are looked at again.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait when the daemon has too much to do.
const BUSY: Duration = Duration::from_secs(1);
/// How often it may have too much to do before an occurrence is given up.
const BUSY_MAX: u32 = 60;
/// How often another run may be in the way before it stays so.
const OVERLAPS_MAX: u32 = 10;

/// Run the occurrences of a stretch of time that did not run, or did not end well
#[derive(Debug, Args)]
#[command(after_help = "\
Occurrences that ended with success are left alone, unless --all is given, and so are those that run
now. It can be interrupted and repeated: what ended with success is not run twice. Exits with 1 when a
run did not end with success.

Examples:
  cronhold backfill reports/prices --from 2026-11-01 --to 2026-11-08 --dry-run
  cronhold backfill reports/prices --from 3d --parallel 4")]
pub(crate) struct Backfill {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job: String,
    /// From this time on: an instant, a date, or how long ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: String,
    /// Up to this time; now, if not given
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Run those again that ended with success, too
    #[arg(long)]
    all: bool,
    /// Show what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// How many to run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    parallel: u8,
    #[command(flatten)]
    shown: Shown,
}

impl Backfill {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let from = wall.read("--from", &self.from)?;
        let to = wall.read_some("--to", self.to.as_deref())?.unwrap_or(wall.now);
        if from >= to {
            return Err(Failure::usage("--from is not before --to", "give a stretch of time that has a length"));
        }
        let asked = remote.client.backfill(&self.job, from, to);
        let plan = asked.map_err(|error| remote.failure_about(&self.job, error))?;
        let (wanted, left): (Vec<_>, Vec<_>) = plan.items.into_iter().partition(|item| self.is_wanted(item));
        if self.dry_run {
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&wanted, out)?,
                None => render::backfill::plan(&wanted, left.len(), plan.cut, &wall, out)?,
            }
            return Ok(Exit::Done);
        }
        self.check_overlap(remote)?;
        let lines = self.shown.encoding().is_none();
        let mut progress = Progress::new(wanted.len(), remote.session, wall, lines, out, err);
        let outcomes = self.run_all(wanted, remote, &mut progress)?;
        progress.end(left.len(), plan.cut)?;
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&outcomes, out)?;
        }
        let all_well = outcomes.iter().all(|outcome| outcome.state == Some(State::Success));
        Ok(if all_well { Exit::Done } else { Exit::Refused })
    }

    /// Whether an occurrence is to be run. One that is under way will have an outcome of its own.
    fn is_wanted(&self, item: &BackfillItem) -> bool {
        match item.state.as_deref().map(State::parse) {
            None | Some(Err(_)) => true,
            Some(Ok(State::Success)) => self.all,
            Some(Ok(state)) => state.is_finished(),
        }
    }

    /// Runs of a job that must not overlap would skip or end each other.
    fn check_overlap(&self, remote: &Remote<'_>) -> Result<(), Failure> {
        if self.parallel == 1 {
            return Ok(());
        }
        let asked = remote.client.job(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        if asked.0.definition["overlap"] == "allow" {
            return Ok(());
        }
        let message = format!("runs of `{}` do not overlap, so that they cannot run at once", self.job);
        Err(Failure::refused(message, "leave out --parallel, or let the job have `overlap: allow`"))
    }

    /// Runs them in order, so many at once, and waits for all.
    fn run_all(
        &self,
        wanted: Vec<BackfillItem>,
        remote: &Remote<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Outcome>, Failure> {
        let mut coming: VecDeque<BackfillItem> = wanted.into();
        let mut active: Vec<(BackfillItem, String)> = Vec::new();
        let mut outcomes = Vec::new();
        let mut overlaps = 0;
        while !coming.is_empty() || !active.is_empty() {
            while active.len() < usize::from(self.parallel)
                && let Some(item) = coming.pop_front()
            {
                match self.make(&item, remote) {
                    Ok(id) => active.push((item, id)),
                    Err(CallError::Problem(problem)) if problem.code != Code::Unavailable => {
                        outcomes.push(progress.tell(Outcome::refused(item, problem.detail))?);
                    }
                    Err(error) => return Err(again(remote.failure(error))),
                }
            }
            let mut has_ended = false;
            for (item, id) in std::mem::take(&mut active) {
                let run = remote.client.run(&id).map_err(|error| again(remote.failure(error)))?.run;
                if !run.state.is_finished() {
                    active.push((item, id));
                } else if is_overlap(&run) && overlaps < OVERLAPS_MAX {
                    // A run of the schedule itself was in the way.
                    overlaps += 1;
                    coming.push_front(item);
                    remote.client.rest(BUSY);
                } else {
                    (has_ended, overlaps) = (true, 0);
                    outcomes.push(progress.tell(Outcome::of(item, &run))?);
                }
            }
            if !has_ended && !active.is_empty() {
                remote.client.rest(LOOK);
            }
        }
        Ok(outcomes)
    }

    /// The id of the run of an occurrence. A run that was made under its key before and is to be run again is history:
    /// then the key goes on from that run, so that the next is made once, too.
    fn make(&self, item: &BackfillItem, remote: &Remote<'_>) -> Result<String, CallError> {
        let body = RunBody { args: item.args.clone(), at: Some(item.at) };
        let mut key = item.key.clone();
        let mut busy = 0;
        loop {
            let (made, is_new) = match remote.client.make_run_once(&self.job, &body, Some(&key)) {
                Err(CallError::Problem(problem)) if problem.code == Code::Busy && busy < BUSY_MAX => {
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

/// Whether a run was not started because another one of its job was there.
fn is_overlap(run: &Run) -> bool {
    run.state == State::Skipped && run.reason.as_deref() == Some("overlap")
}

/// A failure in the middle, with what to do about the rest.
fn again(failure: Failure) -> Failure {
    match failure {
        Failure::Unreachable { message, hint } => {
            let rest = "give the same command again later: it goes on with what is not done";
            let hint = hint.map_or_else(|| rest.to_owned(), |hint| format!("{hint}; then {rest}"));
            Failure::Unreachable { message, hint: Some(hint) }
        }
        other => other,
    }
}
