//! `cronhold add`: adds a job from the command line or from a file. The file itself is not watched.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use cronhold_api::ProblemCode;
use cronhold_api::client::PutPrecondition;
use cronhold_core::JobId;
use serde_json::json;

use crate::definition::{self, DefinitionKeys, JobFlags, file, program};
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, CliSession, ExitStatus};

/// Add a job from a schedule and a command, or from a file
#[derive(Debug, Args)]
#[command(after_help = "\
Put options before SCHEDULE. Everything after SCHEDULE is the command, with or without `--`. Without
--shell, Cronhold executes the program directly. Words may contain templates such as '{{ date }}', as
in job files.

This command does not change an existing job; use `cronhold upd` for that.

Examples:
  cronhold add hello '* * * * * * *' -- echo hi
  cronhold add --label nightly --timezone Europe/Berlin backup '30 2 * * *' restic backup /home
  cronhold add --shell tidy @daily 'find /tmp -mtime +7 | xargs rm -f'
  cronhold add reports/prices -f prices.yaml")]
pub(crate) struct AddArgs {
    /// Job id, such as reports/prices
    #[arg(value_name = "NAME")]
    name: String,
    /// Cron expression, phrase such as 'with 10m interval', or YAML map such as '{hour: 14}'; `triggered` for none
    #[arg(value_name = "SCHEDULE", allow_hyphen_values = true, required_unless_present = "file")]
    schedule: Option<String>,
    /// Program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, required_unless_present = "file")]
    command: Vec<String>,
    /// Job file with the whole definition
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["schedule", "command", "shell", "paused"])]
    file: Option<PathBuf>,
    /// Run the command in a shell
    #[arg(long)]
    shell: bool,
    /// Add the job paused
    #[arg(long)]
    paused: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    settings: JobFlags,
}

impl AddArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        JobId::parse(&self.name).map_err(|error| CliError::flag("NAME", error))?;
        let text = match &self.file {
            Some(path) => file(path, remote.session)?,
            None => definition::text(&self.name, self.keys(remote.session)?, remote.session)?,
        };
        let made = remote.client.put_job(&self.name, text, &PutPrecondition::New).map_err(|error| {
            let is_there = error.problem().is_some_and(|problem| problem.code == ProblemCode::Conflict);
            match remote.failure(error) {
                CliError::Refused { message, .. } if is_there => {
                    CliError::refused(message, format!("`cronhold upd {}` changes it", self.name))
                }
                other => other,
            }
        })?;
        match self.output.encoding() {
            None => render::job::put("added", &made, remote.session.now, out)?,
            Some(encoding) => encoding.write(&made, out)?,
        }
        Ok(ExitStatus::Done)
    }

    fn keys(&self, session: &CliSession<'_>) -> Result<DefinitionKeys, CliError> {
        let mut keys = DefinitionKeys::new();
        self.settings.put(&mut keys)?;
        self.settings.put_schedule(&mut keys, self.schedule.as_deref().unwrap_or_default(), session)?;
        // A leading `--` only separates the command from the options.
        let words = self.command.strip_prefix(&["--".to_owned()]).unwrap_or(&self.command);
        if words.is_empty() {
            return Err(CliError::usage("no command after `--`", "write the program and its arguments there"));
        }
        keys.insert("program".to_owned(), program(words, self.shell));
        if self.paused {
            keys.insert("paused".to_owned(), json!(true));
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        add: AddArgs,
    }

    /// Name, schedule and command that a command line is parsed to, or the first line of the error.
    fn read(args: &[&str]) -> String {
        let line = match Line::try_parse_from([&["add"], args].concat()) {
            Ok(line) => line.add,
            Err(error) => return error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        let words = line.command.strip_prefix(&["--".to_owned()]).unwrap_or(&line.command);
        let shell = if line.shell { " by a shell" } else { "" };
        format!("{} | {} | {words:?}{shell}", line.name, line.schedule.unwrap_or_default())
    }

    #[test]
    fn words_after_schedule_become_command() {
        let lines: Vec<String> = [
            ["hello", "* * * * *", "echo", "hi"].as_slice(),
            &["hello", "* * * * *", "--", "echo", "hi"],
            &["hello", "* * * * *", "--", "echo", "--", "hi"],
            &["hello", "* * * * *", "echo", "--", "hi"],
            &["hello", "* * * * *", "ls", "-l", "--label", "x", "-o", "json", "--help"],
            &["hello", "* * * * *", "--", "--odd", "-f"],
            &["--label", "x", "--shell", "hello", "@daily", "a | b"],
            &["hello", "--label", "x", "@daily", "a"],
            &["--", "hello", "@daily", "a", "-b"],
            &["hello", "-f", "job.yaml"],
            &["-f", "job.yaml", "hello"],
            &["hello", "@daily"],
            &["hello"],
            &["-f", "job.yaml", "hello", "@daily"],
        ]
        .map(|args| format!("{} => {}", args.join(" "), read(args)))
        .into();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
