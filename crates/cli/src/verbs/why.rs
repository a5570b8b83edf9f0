//! `cronhold why`: explains why a job runs or does not run, now or at a given time.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, LocalTimeFormat, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Explain why a job runs or does not run, now or at a given time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold why backup
  cronhold why backup 2026-11-01T02:30:00Z
  cronhold why backup 2h
  cronhold why backup#42")]
pub(crate) struct WhyArgs {
    /// Job id, or a run such as backup#42
    #[arg(value_name = "JOB|RUN")]
    job: String,
    /// Time to ask about: an instant, a date, a time of day, or an age such as 2h [default: now]
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl WhyArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let at = clock.read_some("TIME", self.time.as_deref())?;
        if follow::is_run(&self.job) {
            return self.of_run(remote, &clock, out);
        }
        let why = remote.client.why(&self.job, at).map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&why, out)?,
            None => render::explanation::lines(&why.lines, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }

    /// Explains a run: its steps, and for an unfinished one also what its job waits for.
    fn of_run(
        &self,
        remote: &RemoteDaemon<'_>,
        clock: &LocalTimeFormat,
        out: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        if self.time.is_some() {
            let message = format!("`{}` is a run, which has a time of its own", self.job);
            return Err(CliError::usage(message, "omit TIME, or name the job"));
        }
        let detail = remote.client.run(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        let run = &detail.run;
        let at = Some(run.nominal_time).filter(|_| run.state.is_finished());
        let why = || remote.client.why(&run.job, at).map_err(|error| remote.failure_about(&run.job, error));
        if let Some(encoding) = self.shown.encoding() {
            encoding.write(&why()?, out)?;
            return Ok(ExitStatus::Done);
        }
        render::run::detail(&detail, clock, remote.session.colours, out)?;
        if !run.state.is_finished() {
            render::explanation::lines(&why()?.lines, remote.session.colours, out)?;
        }
        Ok(ExitStatus::Done)
    }
}
