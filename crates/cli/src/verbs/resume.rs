//! `cronhold resume`: ends a pause.

use std::io::Write;

use clap::Args;

use super::pause::{is_pattern, matching, one, state};
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus, counted};

/// Resume a job, the jobs of a pattern, or all jobs
#[derive(Debug, Args)]
#[command(after_help = "\
`resume all` does not resume a job that was paused individually, and `resume JOB` does not end a pause of
everything.

Examples:
  cronhold resume backup
  cronhold resume 'etl/*'
  cronhold resume all")]
pub(crate) struct ResumeArgs {
    /// Job id, pattern such as 'etl/*', or `all`
    #[arg(value_name = "JOB|PATTERN|all")]
    job: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl ResumeArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        if is_pattern(&self.job) {
            return self.resume_matching(remote, out);
        }
        let resumed = remote.client.resume(one(&self.job));
        let is_new = resumed.map_err(|error| remote.failure_about(&self.job, error))?;
        let text = match (self.output.encoding(), one(&self.job)) {
            (Some(encoding), job) => {
                encoding.write(&state(job, remote).map_err(|error| remote.failure(error))?, out)?;
                return Ok(ExitStatus::Done);
            }
            (None, Some(job)) if !is_new => format!("`{job}` is not paused; nothing to do"),
            (None, None) if !is_new => "there is no pause of everything; nothing to do".to_owned(),
            (None, Some(job)) => format!("resumed `{job}`"),
            (None, None) => "resumed everything".to_owned(),
        };
        render::line(&text, out)?;
        Ok(ExitStatus::Done)
    }

    fn resume_matching(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let jobs = matching(&self.job, remote)?;
        let (mut changed, mut changes) = (0, Vec::new());
        for job in &jobs {
            let resumed = remote.client.resume(Some(job));
            changed += usize::from(resumed.map_err(|error| remote.failure_about(job, error))?);
            if self.output.encoding().is_some() {
                changes.push(state(Some(job), remote).map_err(|error| remote.failure(error))?);
            }
        }
        match self.output.encoding() {
            Some(encoding) => encoding.write(&changes, out)?,
            None => {
                let rest = jobs.len() - changed;
                let rest = if rest == 0 {
                    String::new()
                } else {
                    format!("; nothing to do for {}", counted(rest, "other job"))
                };
                render::line(&format!("resumed {}{rest}", counted(changed, "job")), out)?;
            }
        }
        Ok(ExitStatus::Done)
    }
}
