//! `cronhold upd`: changes the given settings of a job, or replaces it with a file. It does not overwrite a concurrent
//! change.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use cronhold_api::client::PutPrecondition;
use cronhold_api::{JobDetail, ProblemCode};
use serde_json::Value;

use crate::definition::{self, DefinitionKeys, JobFlags, file, program};
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Change settings of a job, or replace it with a file
#[derive(Debug, Args)]
#[command(after_help = "\
To change a job that comes from a job file, edit the file.

Examples:
  cronhold upd hello --schedule '*/5 * * * *'
  cronhold upd backup --timeout 2h --unset lock -- restic backup /home
  cronhold upd reports/prices -f prices.yaml")]
pub(crate) struct UpdArgs {
    /// Job id
    #[arg(value_name = "NAME")]
    name: String,
    /// New schedule, replacing all schedules of the job
    #[arg(long, value_name = "SCHEDULE", allow_hyphen_values = true)]
    schedule: Option<String>,
    /// New program, as a shell command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    program: Option<String>,
    /// Key to remove, such as timeout or labels; repeatable
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// New program and its arguments, after `--`
    #[arg(value_name = "CMD", last = true)]
    command: Vec<String>,
    /// Job file that replaces the whole definition
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["schedule", "program", "unset", "command"])]
    file: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    settings: JobFlags,
}

impl UpdArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let (text, only) = match &self.file {
            Some(path) => (file(path, remote.session)?, PutPrecondition::As("*".to_owned())),
            None => self.changed(remote)?,
        };
        let put = remote.client.put_job(&self.name, text, &only);
        let changed = put.map_err(|error| {
            let code = error.problem().map(|problem| problem.code);
            match (remote.failure_about(&self.name, error), code, &only) {
                (CliError::Refused { message, .. }, Some(ProblemCode::Changed), PutPrecondition::As(tag))
                    if tag != "*" =>
                {
                    CliError::refused(message, "the job has changed in the meantime; check it and try again")
                }
                (other, ..) => other,
            }
        })?;
        match self.output.encoding() {
            None => render::job::put("changed", &changed, remote.session.now, out)?,
            Some(encoding) => encoding.write(&changed, out)?,
        }
        Ok(ExitStatus::Done)
    }

    /// The changed definition, and the precondition that the stored one is still the same.
    fn changed(&self, remote: &RemoteDaemon<'_>) -> Result<(String, PutPrecondition), CliError> {
        let asked = remote.client.job(&self.name);
        let (JobDetail { definition: stored, .. }, tag) =
            asked.map_err(|error| remote.failure_about(&self.name, error))?;
        let Value::Object(before) = stored else {
            return Err(CliError::refused(
                format!("the definition of the job `{}` cannot be read", self.name),
                "replace it with -f FILE",
            ));
        };
        let mut keys = before.clone();
        self.change(&mut keys, remote)?;
        if keys == before && self.is_nothing() {
            return Err(CliError::usage("nothing to change", "give an option, `-- CMD…`, or -f FILE"));
        }
        Ok((
            definition::text(&self.name, keys, remote.session)?,
            tag.map_or(PutPrecondition::As("*".to_owned()), PutPrecondition::As),
        ))
    }

    fn change(&self, keys: &mut DefinitionKeys, remote: &RemoteDaemon<'_>) -> Result<(), CliError> {
        for key in &self.unset {
            if keys.remove(key).is_none() {
                let has: Vec<&str> = keys.keys().map(String::as_str).collect();
                let message = format!("--unset: the job has no `{key}`");
                return Err(CliError::usage(message, format!("it has {}", has.join(", "))));
            }
        }
        self.settings.put(keys)?;
        match &self.schedule {
            Some(schedule) => self.settings.put_schedule(keys, schedule, remote.session)?,
            None if self.settings.has_zone() => {
                let hint = "repeat the schedule with --schedule";
                return Err(CliError::usage("--timezone needs --schedule", hint));
            }
            None => {}
        }
        if let Some(text) = &self.program {
            keys.insert("program".to_owned(), Value::from(text.as_str()));
        }
        if !self.command.is_empty() {
            keys.insert("program".to_owned(), program(&self.command, false));
        }
        Ok(())
    }

    /// Whether no change was requested. A requested change may still leave the job as it is.
    fn is_nothing(&self) -> bool {
        let mut keys = DefinitionKeys::new();
        let settings = self.settings.put(&mut keys).is_ok() && keys.is_empty();
        settings
            && self.schedule.is_none()
            && self.program.is_none()
            && self.unset.is_empty()
            && self.command.is_empty()
    }
}
