//! The stored jobs: those that come from the directories, and all others.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_cli::counted;
use cronhold_core::record::JobSource;
use cronhold_core::{DecisionContext, Job, JobId};
use cronhold_jobfile::{DefinitionDigest, Options, read_stored_job};
use cronhold_store::{Fault, JobDefinition, Store, StoredDefinition};

/// Jobs that are read with one request.
const PAGE: usize = 1_000;

/// The jobs in the store, grouped by their source.
#[derive(Debug, Default)]
pub(super) struct StoredJobs {
    /// Jobs that come from one of the directories.
    pub(super) own: BTreeMap<JobId, DirectoryJob>,
    /// Jobs that come from elsewhere.
    pub(super) elsewhere: BTreeSet<JobId>,
    /// Jobs from any source that name calendars.
    pub(super) with_calendars: BTreeSet<JobId>,
    /// Jobs that come from directories that were not given, by prefix: their number, and the first of them.
    orphans: BTreeMap<String, (usize, JobId)>,
}

/// A stored job that comes from one of the directories.
#[derive(Debug)]
pub(super) struct DirectoryJob {
    /// The index of the directory.
    pub(super) root: usize,
    pub(super) definition: DefinitionDigest,
    /// Whether it was stored by a node with the same default zone.
    pub(super) is_in_zone: bool,
}

impl DirectoryJob {
    /// Whether a job file has nothing to change.
    pub(super) fn is_same(&self, root: usize, definition: DefinitionDigest) -> bool {
        self.is_in_zone && self.root == root && self.definition == definition
    }
}

impl StoredJobs {
    /// Reads all jobs in the store.
    pub(super) async fn read(store: &dyn Store, sources: &[JobSource], world: &DecisionContext) -> Result<Self, Fault> {
        let mut stored = Self::default();
        let mut own = Vec::new();
        let mut after = None;
        loop {
            let page = store.definitions(after.as_ref(), PAGE).await?;
            for job in page.jobs {
                stored.take(job, sources, world, &mut own);
            }
            after = page.next;
            if after.is_none() {
                // A map that is made of an ordered list takes half the memory of one that grows.
                stored.own = own.into_iter().collect();
                return Ok(stored);
            }
        }
    }

    fn take(
        &mut self,
        job: JobDefinition,
        sources: &[JobSource],
        world: &DecisionContext,
        own: &mut Vec<(JobId, DirectoryJob)>,
    ) {
        let JobDefinition { id, source, zone, definition } = job;
        if may_name_calendars(&id, &definition, world) {
            self.with_calendars.insert(id.clone());
        }
        if let Some(root) = sources.iter().position(|own| *own == source) {
            let definition = match definition {
                StoredDefinition::Job(job) => DefinitionDigest::new(&job),
                StoredDefinition::Json(json) => DefinitionDigest::of_stored(&json),
            };
            own.push((id, DirectoryJob { root, definition, is_in_zone: *zone == *world.zone.name() }));
            return;
        }
        if let JobSource::Directory(prefix) = source {
            self.orphans.entry(prefix).or_insert_with(|| (0, id.clone())).0 += 1;
        }
        self.elsewhere.insert(id);
    }

    /// A message for each prefix that has jobs and whose directory was not given.
    pub(super) fn orphans(&self) -> impl Iterator<Item = String> {
        self.orphans.iter().map(|(prefix, (count, first))| {
            let jobs = counted(*count, "job");
            let option = if prefix.is_empty() { "--jobs DIR".to_owned() } else { format!("--jobs {prefix}=DIR") };
            format!(
                "{jobs} such as {first} came from a directory that is not given now, and stay unchanged; \
                 give the directory with {option}, or remove the jobs with `cronhold del`"
            )
        })
    }
}

pub(super) fn names_calendars(job: &Job) -> bool {
    job.schedules.iter().any(|schedule| schedule.spec.calendar.is_some())
}

/// Whether a stored job names calendars. JSON is decoded only if it may.
fn may_name_calendars(id: &JobId, definition: &StoredDefinition, world: &DecisionContext) -> bool {
    match definition {
        StoredDefinition::Job(job) => names_calendars(job),
        StoredDefinition::Json(json) if !json.contains("calendar") => false,
        StoredDefinition::Json(json) => {
            let read = read_stored_job(id.as_str(), json, &Options { zones: &world.zones });
            read.job.is_some_and(|job| names_calendars(&job))
        }
    }
}
