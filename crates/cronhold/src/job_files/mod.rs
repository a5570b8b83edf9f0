//! Keeps the stored jobs equal to the job files. If a file is invalid, its stored job stays unchanged. A job is removed
//! only when its file is certainly gone.
//!
//! In reading order: `roots` parses the `--jobs` options; `stored` reads the jobs in the store; `plan` holds the
//! changes to apply; `loader` holds the locks that decide which node applies them; `status` is what the rest of the
//! daemon sees; `mistakes` reports invalid files; `follow` is the thread that watches the directories.

mod follow;
mod loader;
mod mistakes;
mod plan;
mod roots;
mod status;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::JobSource;
use cronhold_core::{DecisionContext, Job, JobId, JobUid, NodeId};
use cronhold_engine::{EntropySource, MachineClock, NodeHandle, RequestError};
use cronhold_jobfile::Mistake;
use cronhold_jobfile::directory::{self, Directory, JobsRoot, LiveDirectories, LoadedJob};
use cronhold_schedule::Instant;
use cronhold_schedule::calendar::CalendarSet;
use cronhold_store::{Fault, Store};

pub use loader::LoaderLocks;
pub use plan::{ApplyPlan, ApplyResult};
pub use roots::roots;
pub use status::JobFileStatus;

use crate::chance::SystemEntropy;
use crate::log::{Log, Weight};
use loader::LoaderLockState;
use mistakes::ReportedMistakes;
use plan::CommandResult;
use stored::{DirectoryJob, StoredJobs, names_calendars};

/// The directories of job files, as they were last read.
#[derive(Debug)]
pub struct JobDirectories {
    live: LiveDirectories,
    sources: Vec<JobSource>,
    directory: Directory,
    /// Zones, and the calendars that the node uses.
    world: DecisionContext,
    stored: StoredJobs,
    /// Jobs that the node rejected, with the definition that it rejected and the mistake to show.
    refused: BTreeMap<JobId, (Arc<Job>, Mistake)>,
    reported: ReportedMistakes,
    /// The locks of the directories, and which of them this node holds.
    loaders: Arc<LoaderLocks>,
    lock_states: Vec<LoaderLockState>,
    status: Arc<JobFileStatus>,
    log: Log,
}

impl JobDirectories {
    /// Reads the directories of a node for the first time. Reports mistakes; a mistake in one file does not affect
    /// other files.
    pub async fn load(
        node: NodeId,
        roots: Vec<JobsRoot>,
        world: DecisionContext,
        store: &dyn Store,
        now: Instant,
        log: &Log,
    ) -> Result<Self, Fault> {
        let sources: Vec<JobSource> = roots.iter().map(roots::source).collect();
        let mut files = Self {
            loaders: Arc::new(LoaderLocks::new(node, &roots)),
            lock_states: vec![LoaderLockState::default(); roots.len()],
            status: Arc::new(JobFileStatus::new(roots.clone(), world.clone())),
            live: LiveDirectories::new(roots),
            sources,
            directory: Directory::default(),
            world,
            stored: StoredJobs::default(),
            refused: BTreeMap::new(),
            reported: ReportedMistakes::default(),
            log: log.clone(),
        };
        if files.sources.is_empty() {
            return Ok(files);
        }
        // The store is read in parallel with the files, because both are slow when there are many jobs.
        let (mut live, zones, zone) = (files.live, Arc::clone(&files.world.zones), files.world.zone.clone());
        let reading = thread::spawn(move || {
            live.refresh(&directory::Options { zones: &zones, zone: &zone, now });
            live
        });
        files.live = LiveDirectories::new([]);
        files.load_stored(store).await?;
        files.live = reading.join().expect("reading files does not panic");
        files.stored.orphans().for_each(|line| log.emit(Weight::Trouble, "job_files_orphaned", line));
        files.check(now);
        files.share();
        files.world.calendars = Arc::new(files.directory.calendars.clone());
        files.status.set_world(files.world.clone());
        files.report_mistakes(None);
        Ok(files)
    }

    /// The status that other parts of the daemon see.
    pub fn status(&self) -> Arc<JobFileStatus> {
        Arc::clone(&self.status)
    }

    /// Zones, and the calendars that jobs can name.
    pub fn world(&self) -> &DecisionContext {
        &self.world
    }

    /// Whether any directory was given.
    pub fn has_any(&self) -> bool {
        !self.sources.is_empty()
    }

    /// The directories as text for logs and reports.
    pub fn shown(&self) -> String {
        roots::shown(self.live.roots())
    }

    /// The changes to apply at the start. Calendars may have changed since the daemon last ran.
    pub fn first_plan(&self) -> ApplyPlan {
        let mut plan = self.plan(true);
        self.replan(&mut plan);
        plan
    }

    /// Reports all mistakes, including jobs that the node rejected.
    pub fn report_all_mistakes(&mut self) {
        self.report_mistakes(None);
    }

    /// Reads all jobs in the store, and replaces what is remembered of them.
    async fn load_stored(&mut self, store: &dyn Store) -> Result<(), Fault> {
        self.stored = StoredJobs::read(store, &self.sources).await?;
        self.status.set_elsewhere(std::mem::take(&mut self.stored.elsewhere));
        Ok(())
    }

    /// Reads files that have changed. Returns whether any has.
    fn refresh(&mut self, now: Instant) -> bool {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        self.live.refresh(&options)
    }

    /// Checks all files together.
    fn check(&mut self, now: Instant) {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        self.directory = self.live.directory(&options, &self.status.elsewhere());
    }

    /// The changes that make the stored jobs equal to the files. A rejected job is included again only if it has
    /// changed, or if `again` is set.
    fn plan(&self, again: bool) -> ApplyPlan {
        let mut plan = ApplyPlan::default();
        for (id, own) in &self.stored.own {
            match self.directory.jobs.get(id) {
                Some(loaded) if self.is_same(loaded, own) => plan.unchanged += 1,
                Some(loaded) if loaded.root == own.root => {}
                // If two directories define a job, the one that is given first wins.
                Some(_) => plan.removals.push(self.removal(id, own)),
                None if !self.directory.broken.contains(id) && self.live.is_gone(own.root, id) => {
                    plan.removals.push(self.removal(id, own));
                }
                None => plan.kept += 1,
            }
        }
        for (id, loaded) in &self.directory.jobs {
            let is_stored = self.stored.own.get(id).is_some_and(|own| self.is_same(loaded, own));
            let was_refused = self.refused.get(id).is_some_and(|(job, _)| Arc::ptr_eq(job, &loaded.job));
            if !is_stored && (again || !was_refused) {
                plan.puts.push(self.put(id, loaded));
            }
        }
        plan
    }

    /// Adds jobs whose next occurrences must be computed again because calendars have changed.
    fn replan(&self, plan: &mut ApplyPlan) {
        let put: BTreeSet<&JobId> = plan.puts.iter().filter_map(plan::id_of).collect();
        let users = self.stored.with_calendars.iter().filter(|id| !put.contains(id)).cloned();
        let again: Vec<Command> = users.map(|job| Command::Replan { job }).collect();
        plan.puts.extend(again);
    }

    /// Saves memory: a loaded job that equals the stored one shares its copy.
    fn share(&mut self) {
        for (id, own) in &mut self.stored.own {
            if let Some(loaded) = self.directory.jobs.get(id).filter(|loaded| loaded.job == own.job) {
                own.job = Arc::clone(&loaded.job);
            }
        }
    }

    fn is_same(&self, loaded: &LoadedJob, own: &DirectoryJob) -> bool {
        loaded.root == own.root
            && *own.zone == *self.world.zone.name()
            && (Arc::ptr_eq(&loaded.job, &own.job) || loaded.job == own.job)
    }

    fn removal(&self, id: &JobId, own: &DirectoryJob) -> Command {
        Command::RemoveJob { id: id.clone(), source: self.sources[own.root].clone(), provided: Precondition::Any }
    }

    fn put(&self, id: &JobId, loaded: &LoadedJob) -> Command {
        let uid = JobUid::from_bits(SystemEntropy.bits());
        let (job, source) = (Arc::clone(&loaded.job), self.sources[loaded.root].clone());
        Command::PutJob { id: id.clone(), job, source, uid, provided: Precondition::Any }
    }

    /// Sends the changes of the directories that this node applies to the node, and records the results.
    pub async fn apply(&mut self, mut plan: ApplyPlan, node: &NodeHandle, clock: &dyn MachineClock) -> ApplyResult {
        let is_ours = |source: &JobSource| self.root_of(source).is_some_and(|root| self.holds(root));
        let left = plan.leave_to_others(is_ours, self.holds_any());
        let mut applied = ApplyResult { left, ..ApplyResult::default() };
        for commands in [plan.removals, plan.puts] {
            for answered in plan::send_commands(commands, node, clock).await {
                self.note(answered, &mut applied);
            }
        }
        applied
    }

    fn root_of(&self, source: &JobSource) -> Option<usize> {
        self.sources.iter().position(|own| own == source)
    }

    fn note(&mut self, (command, answer): CommandResult, applied: &mut ApplyResult) {
        match (command, answer) {
            (Command::PutJob { id, job, source, .. }, Ok(answer)) => {
                let root = self.root_of(&source).expect("only jobs of these directories are put");
                if names_calendars(&job) {
                    self.stored.with_calendars.insert(id.clone());
                }
                self.refused.remove(&id);
                self.stored.own.insert(id.clone(), DirectoryJob { root, job, zone: self.world.zone.name().into() });
                if answer == CommandReply::Done {
                    applied.put.push(id);
                }
            }
            (Command::PutJob { id, job, .. }, Err(refused)) => {
                applied.refused += 1;
                let file = self.directory.jobs.get(&id).map_or_else(String::new, |loaded| loaded.file.to_string());
                self.refused.insert(id, (job, refusal(&file, &refused)));
            }
            (Command::RemoveJob { id, .. }, Ok(_) | Err(RequestError::Rejected(Rejection::NoJob(_)))) => {
                self.stored.own.remove(&id);
                self.stored.with_calendars.remove(&id);
                applied.removed.push(id);
            }
            (Command::RemoveJob { id, .. }, Err(refused)) => {
                applied.refused += 1;
                self.log.scope(|| tracing::warn!(event = "job_refused", job = %id, "job {id}: {refused}"));
            }
            // A job whose next occurrences were to be computed again may have been removed in the meantime.
            (_, _) => {}
        }
    }

    /// The calendars to use from now on; `None` if they have not changed. An invalid or removed calendar keeps its last
    /// valid content, because jobs that name it could not run without it.
    fn new_calendars(&self) -> Option<CalendarSet> {
        let mut calendars = self.directory.calendars.clone();
        let before = &self.world.calendars;
        for name in before.names().filter(|name| self.directory.calendars.get(name).is_none()) {
            if let Some(calendar) = before.get(name) {
                calendars.insert(name, calendar.clone());
            }
        }
        (calendars != **before).then_some(calendars)
    }
}

/// A rejection by the node, as a mistake of the file that defines the job.
fn refusal(file: &str, refused: &RequestError) -> Mistake {
    let hint = match refused {
        RequestError::Rejected(rejection) => rejection.hint(),
        _ => None,
    };
    let mistake = Mistake::new(file, 0..0, refused.to_string());
    match hint {
        Some(hint) => mistake.hint(hint),
        None => mistake,
    }
}
