//! Builds a job definition from the options that `add` and `upd` share. JobFlags without an option need a job file.

use std::path::Path;

use clap::{Args, ValueEnum};
use cronhold_core::job::{Job, Program};
use cronhold_jobfile::directory::{self, UnreadableFile};
use cronhold_jobfile::{Options, escape_unprintable, read_job, read_schedule, write_job};
use cronhold_schedule::Span;
use serde_json::{Map, Value, json};

use crate::{CliError, CliSession};

/// The keys of a job file with their values.
pub(crate) type DefinitionKeys = Map<String, Value>;

/// Policy for a run that is due while another one is active.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OverlapFlag {
    Allow,
    Skip,
    Queue,
    Replace,
}

/// Policy for missed occurrences.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CatchUpFlag {
    None,
    Last,
    All,
}

/// Job settings that have options.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// Description of the job
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Label of the job; repeatable
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Time zone of the schedule, unless the schedule names one
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Policy for a run that is due while another one is active; `skip` unless set
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapFlag>,
    /// Policy for missed occurrences; `last` unless set
    #[arg(long, value_name = "POLICY")]
    catch_up: Option<CatchUpFlag>,
    /// Lock that only one run at a time can hold, shared by all jobs that name it; `true` for the job's own lock
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
    /// Time limit of a run, such as 90m; none unless set
    #[arg(long, value_name = "SPAN")]
    timeout: Option<String>,
    /// Number of attempts, including the first; 1 unless set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    attempts: Option<u16>,
    /// Environment variable of the program; repeatable
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Working directory of the program; `/` unless set
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
}

impl JobFlags {
    /// Writes the given settings into `keys` and leaves the others unchanged.
    pub(crate) fn put(&self, keys: &mut DefinitionKeys) -> Result<(), CliError> {
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                keys.insert(key.to_owned(), value);
            }
        };
        set("description", self.description.as_ref().map(|text| json!(text)));
        set("labels", (!self.labels.is_empty()).then(|| json!(self.labels)));
        set("overlap", self.overlap.map(|overlap| word(&overlap)));
        set("catch_up", self.catch_up.map(|catch_up| word(&catch_up)));
        set("lock", self.lock.as_deref().map(lock));
        set("cwd", self.cwd.as_ref().map(|cwd| json!(cwd)));
        if let Some(text) = &self.timeout {
            Span::parse(text).map_err(|error| CliError::flag("--timeout", error))?;
            set("timeout", Some(json!(text)));
        }
        if let Some(attempts) = self.attempts {
            inner(keys, "retry").insert("attempts".to_owned(), json!(attempts));
        }
        for variable in &self.env {
            let (name, value) = self::variable(variable)?;
            inner(keys, "env").insert(name.to_owned(), json!(value));
        }
        Ok(())
    }

    /// Writes a schedule into `keys`, in the zone of `--timezone`.
    pub(crate) fn put_schedule(
        &self,
        keys: &mut DefinitionKeys,
        text: &str,
        session: &CliSession<'_>,
    ) -> Result<(), CliError> {
        let (mut schedules, _) = read_schedule(text, &Options { zones: session.zones }).map_err(|mistakes| {
            let texts = [("schedule".to_owned(), text.to_owned())].into();
            CliError::Mistakes { mistakes, texts, typed: true }
        })?;
        if let Some(zone) = &self.timezone {
            session.zones.get(zone).map_err(|error| CliError::flag("--timezone", error))?;
            for schedule in &mut schedules {
                schedule.spec.zone.get_or_insert_with(|| zone.clone());
            }
        }
        // The program of this job is not used.
        let mut job = Job::new(Program::Noop { duration: Span::ZERO });
        job.schedules = schedules;
        if let Some(schedule) = write_job(&job).get("schedule") {
            keys.insert("schedule".to_owned(), schedule.clone());
        }
        Ok(())
    }

    /// Whether `--timezone` was given, which has no effect without a schedule.
    pub(crate) fn has_zone(&self) -> bool {
        self.timezone.is_some()
    }
}

/// Parses the value of `--env`.
pub(crate) fn variable(text: &str) -> Result<(&str, &str), CliError> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| CliError::usage(format!("--env: `{text}` is not NAME=VALUE"), "write NAME=VALUE"))
}

/// The value of the key `program`: a list of words, or one string for the shell.
pub(crate) fn program(words: &[String], shell: bool) -> Value {
    if shell { json!(words.join(" ")) } else { json!(words) }
}

/// The definition as JSON, after checking it. Errors have no position, because the user did not write this text.
pub(crate) fn text(name: &str, keys: DefinitionKeys, session: &CliSession<'_>) -> Result<String, CliError> {
    // The daemon reads it with the reader of job files, which rejects some characters that JSON allows.
    let text = escape_unprintable(&Value::Object(keys).to_string()).into_owned();
    let mut mistakes = read_job(name, &text, &Options { zones: session.zones }).mistakes;
    if mistakes.is_empty() {
        return Ok(text);
    }
    let hint = mistakes.iter_mut().find_map(|mistake| mistake.hint.take());
    let messages: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
    Err(CliError::Usage { message: messages.join("; "), hint })
}

/// Reads a job file and returns its text if it is valid.
pub(crate) fn file(path: &Path, session: &CliSession<'_>) -> Result<String, CliError> {
    read_file(path, session).map(|(text, _)| text)
}

/// Reads a job file and returns its keys if it is valid.
pub(crate) fn file_keys(path: &Path, session: &CliSession<'_>) -> Result<DefinitionKeys, CliError> {
    let (_, job) = read_file(path, session)?;
    match write_job(&job) {
        Value::Object(keys) => Ok(keys),
        _ => unreachable!("a job is written as a map"),
    }
}

fn read_file(path: &Path, session: &CliSession<'_>) -> Result<(String, Job), CliError> {
    let shown = path.display().to_string();
    let wrong = |mistakes, text: String| {
        let texts = [(shown.clone(), text)].into();
        CliError::Mistakes { mistakes, texts, typed: false }
    };
    let text = directory::read_text(&shown, path).map_err(|unreadable| {
        let UnreadableFile { mistake, text } = *unreadable;
        wrong(vec![mistake], text)
    })?;
    let read = read_job(&shown, &text, &Options { zones: session.zones });
    match read.job {
        Some(job) => Ok((text, job)),
        None => Err(wrong(read.mistakes, text)),
    }
}

/// The map at a key, created if there is none.
fn inner<'a>(keys: &'a mut DefinitionKeys, key: &str) -> &'a mut DefinitionKeys {
    let value = keys.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("made just now")
}

fn word(value: &impl ValueEnum) -> Value {
    json!(value.to_possible_value().map(|value| value.get_name().to_owned()))
}

/// The value of the key `lock`: a name, or `true` for the job's own lock.
fn lock(text: &str) -> Value {
    text.parse::<bool>().map_or_else(|_| json!(text), |has_own| json!(has_own))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Parser;
    use cronhold_schedule::{Instant, ZoneRegistry};

    use super::*;
    use crate::{CliEnv, DaemonFlags};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: JobFlags,
        schedule: String,
    }

    fn keys(args: &[&str], mut keys: DefinitionKeys) -> Result<String, CliError> {
        let zones = Arc::new(ZoneRegistry::bundled());
        let (place, surroundings) = (DaemonFlags::default(), CliEnv::default());
        let now = Instant::EPOCH;
        let session = CliSession {
            now,
            zones: &zones,
            colours: false,
            is_terminal: false,
            progress: false,
            place: &place,
            surroundings: &surroundings,
            stores: &crate::NoStoreServer,
            prompt: None,
            end_with_reader: || (),
        };
        let line = Line::try_parse_from([&["add"], args].concat()).expect("a command line");
        line.settings.put(&mut keys)?;
        line.settings.put_schedule(&mut keys, &line.schedule, &session)?;
        Ok(Value::Object(keys).to_string())
    }

    #[test]
    fn flags_become_keys() {
        let old = json!({"lock": "old", "env": {"A": "1", "B": {"file": "x"}}, "retry": {"backoff": "5s"}});
        let Value::Object(old) = old else { unreachable!("a map") };
        let args = [
            ["--timezone", "Europe/Berlin", "--label", "a", "--label", "b,c", "--env", "A=2", "--env", "C=x=y"]
                .as_slice(),
            &["--attempts", "3", "--timeout", "90m", "--overlap", "queue", "--catch-up", "none", "0 6 * * *"],
        ];
        insta::assert_snapshot!(keys(&args.concat(), old).expect("good flags"));
    }

    #[test]
    fn lock_flag_accepts_name_or_bool() {
        for (flag, expected) in [("true", "true"), ("false", "false"), ("database", "\"database\"")] {
            let keys = keys(&["--lock", flag, "@daily"], DefinitionKeys::new()).expect("good flags");
            assert!(keys.contains(&format!("\"lock\":{expected}")), "{keys}");
        }
    }

    #[test]
    fn invalid_flag_values_name_the_flag() {
        for (args, expected) in [
            (["--timeout", "soon", "@daily"], "--timeout: "),
            (["--env", "A", "@daily"], "--env: `A` is not NAME=VALUE"),
            (["--env", "=A", "@daily"], "--env: `=A` is not NAME=VALUE"),
            (["--timezone", "Berlin", "@daily"], "--timezone: "),
        ] {
            let Err(CliError::Usage { message, .. }) = keys(&args, DefinitionKeys::new()) else {
                panic!("{args:?} is taken")
            };
            assert!(message.starts_with(expected), "{message}");
        }
        let wrong = keys(&["0 25 * * *"], DefinitionKeys::new());
        assert!(matches!(wrong, Err(CliError::Mistakes { typed: true, .. })), "{wrong:?}");
    }
}
