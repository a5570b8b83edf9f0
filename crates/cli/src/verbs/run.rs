//! `cronhold run`: creates a run of a job or of a command that is not stored, for now or for a later time.

use std::collections::BTreeMap;
use std::io::Write;

use std::path::PathBuf;

use clap::Args;
use cronhold_api::{AdHocRunBody, CreatedRun, RunBody};
use cronhold_core::run::State;
use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, Span};
use serde_json::{Map, Value, json};

use crate::definition::{self, DefinitionKeys, program};
use crate::remote::RemoteDaemon;
use crate::render::{self, LocalTimeFormat, TimeDisplayFlags};
use crate::time_input::{self, Direction};
use crate::{CliError, CliSession, ExitStatus, follow};

/// Run a job, or a command without a job, now or at a given time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold run backup
  cronhold run reports/prices region=eu date=2026-11-16 --wait
  cronhold run backup --at 18:30 --stop-after 2h
  cronhold run import --key order-4711
  cronhold run --now -e REGION=eu --wait -- ./load --full
  cronhold run --now -f job.yaml region=eu

With --now, the command runs once without a stored job. The run is kept and can be run again like any
other; its job is named adhoc/ and the run id. -f runs the job of a file, with all of its settings.
Words of the command may contain templates such as '{{ date }}', as in job files.

With --wait, the run's output goes to standard output and its result to standard error; the exit code
is 0 if the run succeeded and 1 otherwise. If the job retries the run, the command waits for the last
attempt, and its result decides the exit code. Ctrl-C stops waiting; the run continues.")]
pub(crate) struct RunArgs {
    /// Job id
    #[arg(value_name = "JOB", required_unless_present = "now")]
    job: Option<String>,
    /// Args of the run
    #[arg(value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// Run the command after `--`, or the job of --file, without storing it among the jobs
    #[arg(long)]
    now: bool,
    /// Environment variable of the command; repeatable
    #[arg(short, long, value_name = "NAME=VALUE", requires = "now", conflicts_with = "file")]
    env: Vec<String>,
    /// Run the command in a shell
    #[arg(long, requires = "now", conflicts_with = "file")]
    shell: bool,
    /// Job file with the whole definition, without `schedule`
    #[arg(short, long, value_name = "FILE", requires = "now", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Program and its arguments, after `--`
    #[arg(value_name = "CMD", last = true, requires = "now")]
    command: Vec<String>,
    /// Start time, such as 18:30 or 2026-11-16T18:30:00Z, or a delay such as 2h [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Stop the run at this time, such as 06:00
    #[arg(long, value_name = "TIME", conflicts_with = "stop_after")]
    stop_at: Option<String>,
    /// Stop the run this long after its start time, such as 2h
    #[arg(long, value_name = "SPAN")]
    stop_after: Option<String>,
    /// Wait for the run and print its output
    #[arg(long)]
    wait: bool,
    /// Print the output byte for byte on a terminal too, with its escape sequences
    #[arg(long, requires = "wait")]
    raw: bool,
    /// Idempotency key: within 24 hours, the same key creates one run
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl RunArgs {
    /// Whether the output of the program is printed byte for byte; `None` if it is not printed.
    pub(crate) fn prints_output(&self) -> Option<bool> {
        (self.wait && self.shown.encoding().is_none()).then_some(self.raw)
    }

    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let at = self.at.as_deref().map(|at| time_input::read(at, Direction::Ahead, &clock)).transpose();
        let at = at.map_err(|error| CliError::flag("--at", error))?;
        if let Some(at) = at.filter(|at| *at < clock.now) {
            let message = format!("--at: {} has passed", clock.both(at));
            return Err(CliError::usage(message, "omit --at to run now; `cronhold backfill` runs missed occurrences"));
        }
        let times = self.times(at, &clock)?;
        let made = match &self.job {
            Some(job) if !self.now => self.create(job, &RunBody { args: args(&self.args)?, ..times }, remote)?,
            _ => self.create_ad_hoc(&times, remote)?,
        };
        let run = follow::named(remote, &made.id)?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        if run.state == State::Waiting {
            render::watch::waiting(&run, err)?;
        }
        Ok(follow::exit_of_created(&run))
    }
}

impl RunArgs {
    /// When the run is stopped, beside its start.
    fn times(&self, at: Option<Instant>, clock: &LocalTimeFormat) -> Result<RunBody, CliError> {
        let stop_at = self.stop_at.as_deref().map(|at| time_input::read(at, Direction::Ahead, clock)).transpose();
        let stop_at = stop_at.map_err(|error| CliError::flag("--stop-at", error))?;
        let stop_after = self.stop_after.as_deref().map(Span::parse).transpose();
        let stop_after = stop_after.map_err(|error| CliError::flag("--stop-after", error))?;
        Ok(RunBody { args: BTreeMap::new(), at, stop_at, stop_after })
    }

    fn create(&self, job: &str, body: &RunBody, remote: &RemoteDaemon<'_>) -> Result<CreatedRun, CliError> {
        let made = remote.client.make_run(job, body, self.key.as_deref());
        made.map_err(|error| remote.failure_about(job, error))
    }

    fn create_ad_hoc(&self, times: &RunBody, remote: &RemoteDaemon<'_>) -> Result<CreatedRun, CliError> {
        let typed: Vec<String> = self.job.iter().chain(&self.args).cloned().collect();
        if let Some(job) = self.job.as_ref().filter(|job| !job.contains('=')) {
            let hint = format!("write `cronhold run {job}` for the job, or put the command after `--`");
            return Err(CliError::usage("--now runs a command that is not stored as a job", hint));
        }
        let (job, args) = (self.definition(remote.session)?, args(&typed)?);
        let RunBody { at, stop_at, stop_after, .. } = *times;
        let body = AdHocRunBody { job, args, at, stop_at, stop_after };
        let made = remote.client.make_ad_hoc_run(&body, self.key.as_deref());
        made.map_err(|error| remote.failure(error))
    }

    /// The job of `--now`.
    fn definition(&self, session: &CliSession<'_>) -> Result<Map<String, Value>, CliError> {
        if let Some(path) = &self.file {
            return definition::file_keys(path, session);
        }
        if self.command.is_empty() {
            let hint = "write it after `--`, such as `cronhold run --now -- ./load --full`, or give a job file with -f";
            return Err(CliError::usage("--now needs a command", hint));
        }
        let mut keys = DefinitionKeys::new();
        keys.insert("program".to_owned(), program(&self.command, self.shell));
        let mut env = DefinitionKeys::new();
        for variable in &self.env {
            let (name, value) = definition::variable(variable)?;
            env.insert(name.to_owned(), json!(value));
        }
        if !env.is_empty() {
            keys.insert("env".to_owned(), Value::Object(env));
        }
        // The daemon checks it too; here an error has the exit code of a wrong command line.
        definition::text("the command", keys.clone(), session)?;
        Ok(keys)
    }
}

/// Parses `NAME=VALUE` arguments.
pub(super) fn args(typed: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let mut args = BTreeMap::new();
    for text in typed {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let message = format!("`{}` is not a run arg", shortened(text));
            return Err(CliError::usage(message, "write NAME=VALUE, such as region=eu"));
        };
        if args.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(CliError::usage(format!("duplicate arg `{name}`"), "give it once"));
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &[&str]) -> Result<String, String> {
        let typed: Vec<String> = typed.iter().map(|text| (*text).to_owned()).collect();
        match args(&typed) {
            Ok(args) => Ok(format!("{args:?}")),
            Err(CliError::Usage { message, .. }) => Err(message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn args_are_parsed_as_name_value() {
        for (typed, expected) in [
            (&["b=2", "a=1"][..], Ok(r#"{"a": "1", "b": "2"}"#)),
            (&["q=a=b", "none="], Ok(r#"{"none": "", "q": "a=b"}"#)),
            (&["a"], Err("`a` is not a run arg")),
            (&["=1"], Err("`=1` is not a run arg")),
            (&["a=1", "a=2"], Err("duplicate arg `a`")),
        ] {
            assert_eq!(read(typed), expected.map(str::to_owned).map_err(str::to_owned), "{typed:?}");
        }
    }
}
