//! `cronhold import`: jobs of another scheduler, as they stand in its own store. That store is only read.

use std::io::Write;

use clap::{Args, Subcommand};
use cronhold_api::Code;
use cronhold_api::client::Only;
use cronhold_core::{Job, JobId};
use cronhold_jobfile::foreign::cronken::{self, Dialect};
use cronhold_jobfile::write_job;
use serde::Serialize;

use crate::remote::Remote;
use crate::render::{self, Format};
use crate::{Exit, Failure, NamedStore};

/// Take over the jobs of another scheduler
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Which scheduler
    #[command(subcommand)]
    origin: Origin,
}

/// Which scheduler.
#[derive(Debug, Subcommand)]
enum Origin {
    /// Take over the jobs that stand in Cronken's Redis
    Cronken(Cronken),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The Redis of Cronken is only read. A job that is there already under its name is left as it is. Jobs
that are paused there are paused here.

Weekday numbers mean something else to Cronken: `0 0 * * 0` fires on Monday there, and on Sunday here.
Jobs that this concerns are pointed out; with --as-cronken they fire as they did.

Stop Cronken before the jobs are let go here, or both run them: import with --pause, stop Cronken, and
`cronhold resume` the jobs. Cronhold can also run beside Cronken on its Redis, with `peers=cronken`.

Examples:
  cronhold import cronken --from redis://10.0.0.5 --dry-run
  cronhold import cronken --from 'redis://10.0.0.5/2?namespace={jobs}' --prefix old/ --pause")]
struct Cronken {
    /// Cronken's Redis, such as redis://10.0.0.5?namespace={cronken}
    #[arg(long, value_name = "URL")]
    from: String,
    /// Show what would come, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// What to put before the names of the jobs, such as old/
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Let none of the jobs start anything by itself yet
    #[arg(long)]
    pause: bool,
    /// Read weekday numbers and restricted days as Cronken's nodes do
    #[arg(long)]
    as_cronken: bool,
    /// How to show what came
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// What became of a definition.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Imported {
    /// The job here.
    pub(crate) job: String,
    /// What became of it.
    pub(crate) outcome: Outcome,
    /// Why it did not come, or what may surprise.
    pub(crate) notes: Vec<String>,
}

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It came.
    Imported,
    /// It would come.
    WouldCome,
    /// It was there already, and is the same.
    Same,
    /// It did not come.
    Left,
}

impl Import {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let Origin::Cronken(cronken) = &self.origin;
        let named = NamedStore { origin: "--from", url: &cronken.from };
        let mut definitions = remote.session.stores.definitions(&named)?;
        definitions.sort();
        let mut imported = Vec::with_capacity(definitions.len());
        for (name, text) in &definitions {
            imported.push(cronken.import(name, text, remote)?);
        }
        match cronken.output.encoding() {
            Some(encoding) => encoding.write(&imported, out)?,
            None => render::import::table(&imported, remote.session.colours, out, err)?,
        }
        let is_left = imported.iter().any(|one| one.outcome == Outcome::Left);
        Ok(if is_left { Exit::Refused } else { Exit::Done })
    }
}

impl Cronken {
    fn import(&self, name: &str, text: &str, remote: &Remote<'_>) -> Result<Imported, Failure> {
        let job = format!("{}{name}", self.prefix);
        let left = |why: String| Imported { job: job.clone(), outcome: Outcome::Left, notes: vec![why] };
        if let Err(error) = JobId::parse(&job) {
            return Ok(left(format!("{error}")));
        }
        let dialect = if self.as_cronken { Dialect::Cronken } else { Dialect::Cron };
        let read = cronken::read(text, &cronken::Options { zones: remote.session.zones, dialect });
        let Some(found) = read.job else {
            let notes = read.mistakes.iter().map(ToString::to_string).collect();
            return Ok(Imported { job, outcome: Outcome::Left, notes });
        };
        let found = Job { paused: found.paused || self.pause, ..found };
        let mut notes: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
        if found.paused {
            notes.push("paused".to_owned());
        }
        let outcome = self.put(&job, &found, remote)?;
        Ok(outcome.map_or_else(left, |outcome| Imported { job: job.clone(), outcome, notes }))
    }

    /// Puts a job that is new. What keeps it from coming is answered; that the daemon cannot be asked is a failure.
    fn put(&self, id: &str, job: &Job, remote: &Remote<'_>) -> Result<Result<Outcome, String>, Failure> {
        let definition = write_job(job);
        match remote.client.job(id) {
            Ok((there, _)) if there.definition == definition => return Ok(Ok(Outcome::Same)),
            Ok(_) => return Ok(Err("another job of that name is there already".to_owned())),
            Err(error) if error.problem().is_some_and(|problem| problem.code == Code::NotFound) => {}
            Err(error) => return Err(remote.failure(error)),
        }
        if self.dry_run {
            return Ok(Ok(Outcome::WouldCome));
        }
        match remote.client.put_job(id, definition.to_string(), &Only::New) {
            Ok(_) => Ok(Ok(Outcome::Imported)),
            Err(error) => match remote.failure(error) {
                Failure::Refused { message, hint } => {
                    Ok(Err(hint.map_or(message.clone(), |hint| format!("{message} ({hint})"))))
                }
                failure => Err(failure),
            },
        }
    }
}
