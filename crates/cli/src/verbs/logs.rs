//! `cronhold logs`: prints the output of a run to standard output, byte for byte unless that is a terminal. Messages go to standard error.

use std::io::Write;

use clap::Args;
use cronhold_api::client::RunFilter;
use cronhold_api::{LIMIT, ProblemCode, RunSummary};
use cronhold_core::run::State;

use crate::remote::RemoteDaemon;
use crate::stream_filter::StreamFilter;
use crate::tail::TailBuffer;
use crate::{CliError, ExitStatus, follow, render};

/// Upper bound of `--tail`.
const LINES_MOST: u64 = 10_000_000;

/// Print the output of a run, standard output and standard error in order
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold logs backup#42
  cronhold logs -f backup
  cronhold logs backup --tail 20
  cronhold logs backup#42 > backup.log
  cronhold logs backup#42 --stderr

Output that goes to a file or a pipe is printed byte for byte. On a terminal, escape sequences other
than colours are shown as text, because they could control the terminal; --raw prints them too.
With -f, the command waits for a run that has not started and follows an active one to its end. A job
that is not running then means its run that waits to start, if it has one.
--stderr and --stdout need a finished run of a job with `stderr: separate`.")]
pub(crate) struct LogsArgs {
    /// Run: its id, JOB#NUMBER, or a job for its running run, else the last one that started
    #[arg(value_name = "RUN")]
    run: String,
    /// Follow the output until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Number of last lines to start with [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=LINES_MOST))]
    tail: Option<u64>,
    /// Print only standard error
    #[arg(long, conflicts_with_all = ["stdout", "follow"])]
    stderr: bool,
    /// Print only standard output
    #[arg(long, conflicts_with = "follow")]
    stdout: bool,
    /// Print the output byte for byte on a terminal too, with its escape sequences
    #[arg(long)]
    pub(crate) raw: bool,
}

impl LogsArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let run = self.find(remote, err)?;
        follow::name_taken(remote, &self.run, &run, err)?;
        follow::ignore_broken_pipe(self.show(&run, remote, out, err))
    }

    fn show(
        &self,
        run: &RunSummary,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        if run.state == State::Skipped {
            render::watch::never_ran(run, err)?;
            return Ok(ExitStatus::Done);
        }
        let follows = self.follow && !run.state.is_finished();
        if follows {
            (remote.session.end_with_reader)();
        } else if follow::WAITING.contains(&run.state) {
            render::watch::not_begun(run, err)?;
            return Ok(ExitStatus::Done);
        }
        let mut filter = self.stream_filter(run, remote, err)?;
        match self.tail {
            Some(lines) => {
                let from = last_lines(remote, &run.id, &mut filter, lines, out)?;
                if follows {
                    follow::output(remote, &run.id, from, out, err)?;
                } else if from == 0 {
                    render::watch::gone(run, err)?;
                }
            }
            None if follows => follow::output(remote, &run.id, 0, out, err)?,
            None if whole(remote, &run.id, &mut filter, out)? == 0 => render::watch::gone(run, err)?,
            None => {}
        }
        Ok(ExitStatus::Done)
    }

    /// Selects the requested stream; `None` if both are printed.
    fn stream_filter(
        &self,
        run: &RunSummary,
        remote: &RemoteDaemon<'_>,
        err: &mut dyn Write,
    ) -> Result<Option<StreamFilter>, CliError> {
        if !self.stderr && !self.stdout {
            return Ok(None);
        }
        let name = render::run::name(run);
        if !run.state.is_finished() {
            let message = format!("the streams of {name} cannot be told apart before it has ended");
            return Err(CliError::refused(message, format!("`cronhold logs -f {name}` follows both")));
        }
        let detail = remote.client.run(&run.id).map_err(|error| remote.failure(error))?;
        let Some(stderr) = detail.stderr else {
            let message = format!("the streams of {name} were not told apart");
            let hint = format!("`stderr: separate` in the job `{}` separates them in its later runs", run.job);
            return Err(CliError::refused(message, hint));
        };
        if stderr.partial {
            render::watch::streams_are_partial(stderr.ranges.len(), err)?;
        }
        Ok(Some(StreamFilter::new(stderr, self.stderr)))
    }

    /// Finds the run. With `-f`, waits for the first run of a job that has none yet.
    fn find(&self, remote: &RemoteDaemon<'_>, err: &mut dyn Write) -> Result<RunSummary, CliError> {
        let name = &self.run;
        let error = match remote.client.run(name) {
            Ok(detail) => return self.following(remote, detail.run),
            Err(error) => error,
        };
        let is_unknown = error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound);
        let waits = self.follow && is_unknown && remote.client.job(name).is_ok();
        if !waits {
            return Err(remote.failure_about(name, error));
        }
        render::watch::waits(name, err)?;
        follow::with_reconnect(remote, err, |remote| first_run(remote, name))
    }
}

impl LogsArgs {
    /// With `-f` and a job that is not running, the run of the job that waits to start, if there is one.
    fn following(&self, remote: &RemoteDaemon<'_>, found: RunSummary) -> Result<RunSummary, CliError> {
        if !self.follow || follow::is_run(&self.run) || !found.state.is_finished() {
            return Ok(found);
        }
        let filter = RunFilter { job: Some(found.job.clone()), states: vec![State::Waiting], since: None };
        let waiting = remote.client.run_page(&filter, None, LIMIT).map_err(|error| remote.failure(error))?;
        // The one that waits longest starts first.
        Ok(waiting.runs.into_iter().next_back().unwrap_or(found))
    }
}

/// Waits for the first run of a job.
fn first_run(remote: &RemoteDaemon<'_>, job: &str) -> Result<RunSummary, CliError> {
    let failed = |error| remote.failure(error);
    // Subscribe before the query, so that no run is missed in between.
    let mut events = remote.client.events(None).map_err(failed)?;
    loop {
        match remote.client.run(job) {
            Ok(detail) => return Ok(detail.run),
            Err(error) if error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound) => {}
            Err(error) => return Err(failed(error)),
        }
        while events.next_event().map_err(failed)?.kind != "run" {}
    }
}

/// Writes the whole output and returns its length in bytes.
fn whole(
    remote: &RemoteDaemon<'_>,
    id: &str,
    filter: &mut Option<StreamFilter>,
    out: &mut dyn Write,
) -> Result<u64, CliError> {
    let mut end = 0;
    for piece in remote.client.output(id, 0, false).map_err(|error| remote.failure(error))? {
        let piece = piece.map_err(|error| remote.failure(error))?;
        end += piece.len() as u64;
        selected(filter, &piece).into_iter().try_for_each(|part| out.write_all(part))?;
    }
    Ok(end)
}

/// Writes the last lines of the output and returns the offset of its end.
fn last_lines(
    remote: &RemoteDaemon<'_>,
    id: &str,
    filter: &mut Option<StreamFilter>,
    lines: u64,
    out: &mut dyn Write,
) -> Result<u64, CliError> {
    let mut tail = TailBuffer::new(usize::try_from(lines).unwrap_or(usize::MAX));
    let mut end = 0;
    for piece in remote.client.output(id, 0, false).map_err(|error| remote.failure(error))? {
        let piece = piece.map_err(|error| remote.failure(error))?;
        end += piece.len() as u64;
        selected(filter, &piece).into_iter().for_each(|part| tail.take(part));
    }
    out.write_all(tail.bytes())?;
    out.flush()?;
    Ok(end)
}

/// The parts of a piece of output that are printed.
fn selected<'a>(filter: &mut Option<StreamFilter>, piece: &'a [u8]) -> Vec<&'a [u8]> {
    filter.as_mut().map_or_else(|| vec![piece], |filter| filter.take(piece))
}
