//! `cronhold logs`: prints the output of a run byte for byte to standard output. Messages go to standard error.

use std::io::Write;

use clap::Args;
use cronhold_api::{ProblemCode, RunSummary};
use cronhold_core::run::State;

use crate::remote::RemoteDaemon;
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

With -f, the command waits for a run that has not started and follows an active one to its end.")]
pub(crate) struct LogsArgs {
    /// Run: its id, JOB#NUMBER, or a job for its latest run
    #[arg(value_name = "RUN")]
    run: String,
    /// Follow the output until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Number of last lines to start with [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=LINES_MOST))]
    tail: Option<u64>,
}

impl LogsArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let run = self.find(remote, err)?;
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
        match self.tail {
            Some(lines) => {
                let from = last_lines(remote, &run.id, lines, out)?;
                if follows {
                    follow::output(remote, &run.id, from, out, err)?;
                } else if from == 0 {
                    render::watch::gone(run, err)?;
                }
            }
            None if follows => follow::output(remote, &run.id, 0, out, err)?,
            None if whole(remote, &run.id, out)? == 0 => render::watch::gone(run, err)?,
            None => {}
        }
        Ok(ExitStatus::Done)
    }

    /// Finds the run. With `-f`, waits for the first run of a job that has none yet.
    fn find(&self, remote: &RemoteDaemon<'_>, err: &mut dyn Write) -> Result<RunSummary, CliError> {
        let name = &self.run;
        let error = match remote.client.run(name) {
            Ok(detail) => return Ok(detail.run),
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
fn whole(remote: &RemoteDaemon<'_>, id: &str, out: &mut dyn Write) -> Result<u64, CliError> {
    let mut end = 0;
    for piece in remote.client.output(id, 0, false).map_err(|error| remote.failure(error))? {
        let piece = piece.map_err(|error| remote.failure(error))?;
        end += piece.len() as u64;
        out.write_all(&piece)?;
    }
    Ok(end)
}

/// Writes the last lines of the output and returns the offset of its end.
fn last_lines(remote: &RemoteDaemon<'_>, id: &str, lines: u64, out: &mut dyn Write) -> Result<u64, CliError> {
    let mut tail = TailBuffer::new(usize::try_from(lines).unwrap_or(usize::MAX));
    let mut end = 0;
    for piece in remote.client.output(id, 0, false).map_err(|error| remote.failure(error))? {
        let piece = piece.map_err(|error| remote.failure(error))?;
        end += piece.len() as u64;
        tail.take(&piece);
    }
    out.write_all(tail.bytes())?;
    out.flush()?;
    Ok(end)
}
