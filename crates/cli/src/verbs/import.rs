//! `cronhold import`: imports the jobs of another scheduler from its store, which is only read.

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

/// Import jobs from another scheduler
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Scheduler to import from
    #[command(subcommand)]
    origin: ImportSource,
}

/// Schedulers that jobs can be imported from.
#[derive(Debug, Subcommand)]
enum ImportSource {
    /// Import jobs from Cronken's Redis
    Cronken(ImportCronkenArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The import only reads Cronken's Redis and does not change existing jobs. Jobs that are paused in
Cronken are paused here.

Weekday numbers differ: `0 0 * * 0` fires on Monday in Cronken and on Sunday here. The import notes the
affected jobs; with --as-cronken they fire as before.

To avoid running jobs twice, import with --pause, stop Cronken, and `cronhold resume` the jobs. Cronhold
can also run beside Cronken on its Redis, with `peers=cronken`.

Examples:
  cronhold import cronken --from redis://10.0.0.5 --dry-run
  cronhold import cronken --from 'redis://10.0.0.5/2?namespace={jobs}' --prefix old/ --pause")]
struct ImportCronkenArgs {
    /// URL of Cronken's Redis, such as redis://10.0.0.5?namespace={cronken}
    #[arg(long, value_name = "URL")]
    from: String,
    /// Show what would be imported, without changing anything
    #[arg(long)]
    dry_run: bool,
    /// Prefix of the imported jobs' names, such as old/
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Import all jobs paused
    #[arg(long)]
    pause: bool,
    /// Interpret weekday numbers and restricted days as Cronken does
    #[arg(long)]
    as_cronken: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// The result of importing one definition.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ImportedJob {
    /// Id of the job in Cronhold.
    pub(crate) job: String,
    /// Whether it was imported.
    pub(crate) outcome: ImportOutcome,
    /// Why it was not imported, or what may be surprising about it.
    pub(crate) notes: Vec<String>,
}

/// Whether a definition was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImportOutcome {
    /// The job was added.
    Imported,
    /// The job would be added without `--dry-run`.
    WouldCome,
    /// An equal job exists already.
    Same,
    /// The definition was not imported; `notes` says why.
    Left,
}

impl ImportArgs {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let ImportSource::Cronken(cronken) = &self.origin;
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
        let is_left = imported.iter().any(|one| one.outcome == ImportOutcome::Left);
        Ok(if is_left { Exit::Refused } else { Exit::Done })
    }
}

impl ImportCronkenArgs {
    fn import(&self, name: &str, text: &str, remote: &Remote<'_>) -> Result<ImportedJob, Failure> {
        let job = format!("{}{name}", self.prefix);
        let left = |why: String| ImportedJob { job: job.clone(), outcome: ImportOutcome::Left, notes: vec![why] };
        if let Err(error) = JobId::parse(&job) {
            return Ok(left(format!("{error}")));
        }
        let dialect = if self.as_cronken { Dialect::Cronken } else { Dialect::Cron };
        let read = cronken::read(text, &cronken::Options { zones: remote.session.zones, dialect });
        let Some(found) = read.job else {
            let notes = read.mistakes.iter().map(ToString::to_string).collect();
            return Ok(ImportedJob { job, outcome: ImportOutcome::Left, notes });
        };
        let found = Job { paused: found.paused || self.pause, ..found };
        let mut notes: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
        if found.paused {
            notes.push("paused".to_owned());
        }
        let outcome = self.put(&job, &found, remote)?;
        Ok(outcome.map_or_else(left, |outcome| ImportedJob { job: job.clone(), outcome, notes }))
    }

    /// Adds a job. The inner error says why it was not added; the outer one means that the daemon is unreachable.
    fn put(&self, id: &str, job: &Job, remote: &Remote<'_>) -> Result<Result<ImportOutcome, String>, Failure> {
        let definition = write_job(job);
        match remote.client.job(id) {
            Ok((there, _)) if there.definition == definition => return Ok(Ok(ImportOutcome::Same)),
            Ok(_) => return Ok(Err("a different job with this name exists".to_owned())),
            Err(error) if error.problem().is_some_and(|problem| problem.code == Code::NotFound) => {}
            Err(error) => return Err(remote.failure(error)),
        }
        if self.dry_run {
            return Ok(Ok(ImportOutcome::WouldCome));
        }
        match remote.client.put_job(id, definition.to_string(), &Only::New) {
            Ok(_) => Ok(Ok(ImportOutcome::Imported)),
            Err(error) => match remote.failure(error) {
                Failure::Refused { message, hint } => {
                    Ok(Err(hint.map_or(message.clone(), |hint| format!("{message} ({hint})"))))
                }
                failure => Err(failure),
            },
        }
    }
}
