//! `cronhold import`: imports jobs from the store of another scheduler. That store is only read.

use std::io::Write;

use clap::{Args, Subcommand};
use cronhold_api::ProblemCode;
use cronhold_api::client::PutPrecondition;
use cronhold_core::{Job, JobId};
use cronhold_jobfile::write_job;
use serde::Serialize;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus, ForeignJob, NamedStore};

/// Import the jobs of another scheduler
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Scheduler to import from
    #[command(subcommand)]
    origin: ImportSource,
}

/// The scheduler whose jobs are imported.
#[derive(Debug, Subcommand)]
enum ImportSource {
    /// Import jobs from Cronken's Redis
    Cronken(ImportCronkenArgs),
    /// Import jobs from castle-cron's ZooKeeper
    CastleCron(ImportCastleArgs),
}

/// Options of all imports.
#[derive(Debug, Args)]
struct ImportOptions {
    /// Show what would be imported, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Prefix for the names of the imported jobs, such as old/
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Pause the imported jobs
    #[arg(long)]
    pause: bool,
    /// Format of the result
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Cronken's Redis is only read. A job is not imported if a job of its name exists already. A job that
is paused there is paused here.

Cronken counts weekdays from Monday: `0 0 * * 0` fires on Monday there, and on Sunday here. A note
points out such a job; with --as-cronken it fires as before.

Stop Cronken before the jobs start here, or both will run them: import with --pause, stop Cronken,
and `cronhold resume` the jobs. Cronhold can also run beside Cronken on its Redis, with
`peers=cronken`.

Examples:
  cronhold import cronken --from redis://10.0.0.5 --dry-run
  cronhold import cronken --from 'redis://10.0.0.5/2?namespace={jobs}' --prefix old/ --pause")]
struct ImportCronkenArgs {
    /// URL of Cronken's Redis, such as redis://10.0.0.5?namespace={cronken}
    #[arg(long, value_name = "URL")]
    from: String,
    /// Read weekday numbers and restricted days as Cronken's nodes do
    #[arg(long)]
    as_cronken: bool,
    #[command(flatten)]
    options: ImportOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
castle-cron's ZooKeeper is only read: its jobs as castle-cron itself stores them, or as JSON. A job is
not imported if a job of its name exists already. A job with an error there is paused here.

castle-cron starts jobs by the local time of its servers, and Cronhold by UTC: run the daemon with
--timezone if they differ. A schedule with more than seven fields is not imported.

Stop castle-cron before the jobs start here, or both will run them: import with --pause, stop
castle-cron, and `cronhold resume` the jobs. Its znodes cannot be used as a store; give Cronhold
another root, such as zk://zk1/cronhold.

Examples:
  cronhold import castle-cron --from zk://zk1,zk2,zk3/castle-cron --dry-run
  cronhold import castle-cron --from zk://zk1,zk2,zk3/castle-cron --prefix old/ --pause")]
struct ImportCastleArgs {
    /// URL of castle-cron's root znode, such as zk://zk1,zk2,zk3/castle-cron
    #[arg(long, value_name = "URL")]
    from: String,
    #[command(flatten)]
    options: ImportOptions,
}

/// The result for one job.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ImportedJob {
    /// Id of the job in Cronhold.
    pub(crate) job: String,
    /// Whether it was imported.
    pub(crate) outcome: ImportOutcome,
    /// Why it was not imported, or what may be surprising about it.
    pub(crate) notes: Vec<String>,
}

/// Whether a job was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImportOutcome {
    /// The job was imported.
    Imported,
    /// The job would be imported without --dry-run.
    WouldImport,
    /// The same job exists already.
    Same,
    /// The job was not imported.
    NotImported,
}

impl ImportArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let stores = &remote.session.stores;
        let named = |url| NamedStore { origin: "--from", url };
        let (mut jobs, options) = match &self.origin {
            ImportSource::Cronken(from) => (stores.cronken_jobs(&named(&from.from), from.as_cronken)?, &from.options),
            ImportSource::CastleCron(from) => (stores.castle_jobs(&named(&from.from))?, &from.options),
        };
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        let mut imported = Vec::with_capacity(jobs.len());
        for job in jobs {
            imported.push(options.import(job, remote)?);
        }
        match options.output.encoding() {
            Some(encoding) => encoding.write(&imported, out)?,
            None => render::import::table(&imported, remote.session.colours, out, err)?,
        }
        let is_incomplete = imported.iter().any(|one| one.outcome == ImportOutcome::NotImported);
        Ok(if is_incomplete { ExitStatus::Refused } else { ExitStatus::Done })
    }
}

impl ImportOptions {
    fn import(&self, foreign: ForeignJob, remote: &RemoteDaemon<'_>) -> Result<ImportedJob, CliError> {
        let job = format!("{}{}", self.prefix, foreign.name);
        let refuse =
            |why: String| ImportedJob { job: job.clone(), outcome: ImportOutcome::NotImported, notes: vec![why] };
        if let Err(error) = JobId::parse(&job) {
            return Ok(refuse(format!("{error}")));
        }
        let found = match foreign.job {
            Ok(found) => Job { paused: found.paused || self.pause, ..found },
            Err(mistakes) => return Ok(ImportedJob { job, outcome: ImportOutcome::NotImported, notes: mistakes }),
        };
        let mut notes = foreign.notes;
        if found.paused {
            notes.push("paused".to_owned());
        }
        let outcome = self.put(&job, &found, remote)?;
        Ok(outcome.map_or_else(refuse, |outcome| ImportedJob { job: job.clone(), outcome, notes }))
    }

    /// Creates the job if it does not exist. Returns why the daemon refuses it; fails if the daemon cannot be reached.
    fn put(&self, id: &str, job: &Job, remote: &RemoteDaemon<'_>) -> Result<Result<ImportOutcome, String>, CliError> {
        let definition = write_job(job);
        match remote.client.job(id) {
            Ok((there, _)) if there.definition == definition => return Ok(Ok(ImportOutcome::Same)),
            Ok(_) => return Ok(Err("another job with this name exists already".to_owned())),
            Err(error) if error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound) => {}
            Err(error) => return Err(remote.failure(error)),
        }
        if self.dry_run {
            return Ok(Ok(ImportOutcome::WouldImport));
        }
        match remote.client.put_job(id, definition.to_string(), &PutPrecondition::New) {
            Ok(_) => Ok(Ok(ImportOutcome::Imported)),
            Err(error) => match remote.failure(error) {
                CliError::Refused { message, hint } => {
                    Ok(Err(hint.map_or(message.clone(), |hint| format!("{message} ({hint})"))))
                }
                failure => Err(failure),
            },
        }
    }
}
