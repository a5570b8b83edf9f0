//! Reads the jobs of another scheduler from its store, for `cronhold import`. Writes nothing to that store.

use std::sync::Arc;

use cronhold_cli::{CliError, ForeignJob, NamedStore};
use cronhold_cronken::definition::{self, Dialect, ReadOptions};
use cronhold_jobfile::foreign::{castle, gob};
use cronhold_schedule::ZoneRegistry;
use cronhold_wiring::{StoreContext, StoreUrl};
use tokio::runtime::Builder;

use crate::clock;

/// Reads the jobs in Cronken's Redis. With `as_cronken`, cron expressions have the meaning that Cronken's nodes give
/// them.
pub(crate) fn cronken_jobs(
    named: &NamedStore<'_>,
    as_cronken: bool,
    zones: &Arc<ZoneRegistry>,
) -> Result<Vec<ForeignJob>, CliError> {
    let url = StoreUrl::parse(named.url).map_err(|error| CliError::flag(named.origin, error))?;
    if !url.is_shared() {
        let message = format!("{}: {url} is not the store of another scheduler", named.origin);
        return Err(CliError::usage(message, "give the URL of its Redis, such as redis://10.0.0.5"));
    }
    if url.is_zookeeper() {
        let message = format!("{}: {url} is not the store of Cronken", named.origin);
        return Err(CliError::usage(message, "`cronhold import castle-cron` reads jobs from ZooKeeper"));
    }
    let around = StoreContext::new(Arc::new(clock::now), Arc::clone(zones));
    let executor = Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| CliError::refused(error.to_string(), "check the limit of open files"))?;
    let found = executor.block_on(cronhold_wiring::read_shared(&url, around));
    let hint = Some(format!("check that it is running: {url}"));
    let found = found.map_err(|error| CliError::Unreachable { message: error.to_string(), hint })?;
    let dialect = if as_cronken { Dialect::Cronken } else { Dialect::Cron };
    let options = ReadOptions { zones, dialect };
    let jobs = found.into_iter().filter_map(|found| Some(read(found.name, &found.text?, &options)));
    Ok(jobs.collect())
}

/// Reads the jobs in castle-cron's ZooKeeper.
pub(crate) fn castle_jobs(
    named: &NamedStore<'_>,
    zookeeper_servers: Option<&str>,
) -> Result<Vec<ForeignJob>, CliError> {
    let url =
        StoreUrl::parse_with(named.url, zookeeper_servers).map_err(|error| CliError::flag(named.origin, error))?;
    if !url.is_zookeeper() {
        let message = format!("{}: {url} is not a ZooKeeper", named.origin);
        return Err(CliError::usage(message, "give the URL of castle-cron's root znode, such as zk://zk1/castle-cron"));
    }
    let hint = Some(format!("check that it is running, and that the root is right: {url}"));
    let found = cronhold_wiring::read_castle_jobs(&url);
    let found = found.map_err(|error| CliError::Unreachable { message: error.to_string(), hint })?;
    Ok(found.into_iter().map(|(znode, data)| read_castle(znode, &data)).collect())
}

/// Reads the data of one znode: castle-cron's own form, or JSON.
fn read_castle(znode: String, data: &[u8]) -> ForeignJob {
    let read = match std::str::from_utf8(data).ok().filter(|text| text.trim_start().starts_with('{')) {
        Some(text) => castle::read(text),
        None => match gob::decode(data) {
            Ok(form) => castle::read_form(&form),
            Err(why) => return unreadable(znode, &why),
        },
    };
    let mistakes = read.mistakes.iter().map(ToString::to_string).collect();
    let name = read.id.map_or(znode, |id| id.to_string());
    ForeignJob { name, job: read.job.ok_or(mistakes), notes: Vec::new() }
}

fn unreadable(name: String, why: &str) -> ForeignJob {
    ForeignJob {
        name,
        job: Err(vec![format!("the data of its znode is neither Go's gob nor JSON: {why}")]),
        notes: Vec::new(),
    }
}

fn read(name: String, text: &str, options: &ReadOptions<'_>) -> ForeignJob {
    let read = definition::read(text, options);
    let mistakes = read.mistakes.iter().map(ToString::to_string).collect();
    let notes = read.notes.iter().map(ToString::to_string).collect();
    ForeignJob { name, job: read.job.ok_or(mistakes), notes }
}
