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
use cronhold_jobfile::directory::{self, JobFileCache, JobFileState, JobsRoot, LiveDirectories};
use cronhold_jobfile::{DefinitionDigest, Mistake};
use cronhold_schedule::Instant;
use cronhold_schedule::calendar::CalendarSet;
use cronhold_store::{Fault, Store};

pub use loader::LoaderLocks;
pub use plan::{ApplyPlan, ApplyResult};
pub use roots::roots;
pub use status::JobFileStatus;

use crate::chance::SystemEntropy;
use crate::clock;
use crate::log::{Log, Weight};
use loader::LoaderLockState;
use mistakes::ReportedMistakes;
use plan::{CommandResult, PlannedJob};
use stored::{DirectoryJob, StoredJobs, names_calendars};

/// Jobs that are read from their files and sent to the node together. The others are not in memory meanwhile.
const PUTS_AT_ONCE: usize = 1_024;

/// The directories of job files, as they were last read.
#[derive(Debug)]
pub struct JobDirectories {
    live: LiveDirectories,
    sources: Vec<JobSource>,
    /// Jobs that come from elsewhere, as they were when the files were checked last.
    checked_elsewhere: BTreeSet<JobId>,
    /// Zones, and the calendars that the node uses.
    world: DecisionContext,
    stored: StoredJobs,
    /// Jobs that the node rejected, with the definition that it rejected and the mistake to show.
    refused: BTreeMap<JobId, (DefinitionDigest, Mistake)>,
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
        (roots, cache): (Vec<JobsRoot>, JobFileCache),
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
            live: LiveDirectories::new(roots).with_cache(cache),
            sources,
            checked_elsewhere: BTreeSet::new(),
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
        files.world.calendars = Arc::new(files.live.report().calendars.clone());
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
        self.stored = StoredJobs::read(store, &self.sources, &self.world).await?;
        self.status.set_elsewhere(std::mem::take(&mut self.stored.elsewhere));
        Ok(())
    }

    /// Reads files that have changed. Returns whether any has.
    fn refresh(&mut self, now: Instant) -> bool {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        self.live.refresh(&options)
    }

    /// Reads all files.
    fn refresh_all(&mut self, now: Instant) {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        self.live.refresh_all(&options);
    }

    /// Saves what was learned from the files, so that the next start need not read them.
    fn save_cache(&mut self, now: Instant) {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        if let Err(error) = self.live.save_cache(&options) {
            let message = format!("cannot save what was learned from job files, so the next start reads all: {error}");
            self.log.emit(Weight::Trouble, "job_files_uncached", message);
        }
    }

    /// Checks all files together.
    fn check(&mut self, now: Instant) {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now };
        self.checked_elsewhere = self.status.elsewhere();
        self.live.check(&options, &self.checked_elsewhere);
    }

    /// Checks all files together, if a change since the last check can matter to other files.
    fn check_changes(&mut self, now: Instant) {
        if self.live.is_unchecked() || self.status.elsewhere() != self.checked_elsewhere {
            self.check(now);
        }
    }

    /// The changes that make the stored jobs equal to the files. A rejected job is included again only if it has
    /// changed, or if `again` is set.
    fn plan(&self, again: bool) -> ApplyPlan {
        let mut plan = ApplyPlan::default();
        for (id, own) in &self.stored.own {
            let removal = || PlannedJob { id: id.clone(), root: own.root };
            match self.live.find(id) {
                JobFileState::Valid { root, definition } if own.is_same(root, definition) => plan.unchanged += 1,
                JobFileState::Valid { root, .. } if root == own.root => {}
                // If two directories define a job, the one that is given first wins.
                JobFileState::Valid { .. } => plan.removals.push(removal()),
                JobFileState::Absent if self.live.is_gone(own.root, id) => plan.removals.push(removal()),
                JobFileState::Absent | JobFileState::Invalid => plan.kept += 1,
            }
        }
        for job in self.live.jobs() {
            let is_stored = self.stored.own.get(&*job.id).is_some_and(|own| own.is_same(job.root, job.definition));
            let was_refused = self.refused.get(&*job.id).is_some_and(|(refused, _)| *refused == job.definition);
            if !is_stored && (again || !was_refused) {
                let id = JobId::parse(&job.id).expect("the id of a valid job is valid");
                plan.puts.push(PlannedJob { id, root: job.root });
            }
        }
        plan
    }

    /// Adds jobs whose next occurrences must be computed again because calendars have changed.
    fn replan(&self, plan: &mut ApplyPlan) {
        let put: BTreeSet<&JobId> = plan.puts.iter().map(|put| &put.id).collect();
        let users = self.stored.with_calendars.iter().filter(|id| !put.contains(id)).cloned();
        plan.replans = users.collect();
    }

    /// Sends the changes of the directories that this node applies to the node, and records the results.
    pub async fn apply(&mut self, mut plan: ApplyPlan, node: &NodeHandle, clock: &dyn MachineClock) -> ApplyResult {
        let left = plan.leave_to_others(|root| self.holds(root), self.holds_any());
        let mut applied = ApplyResult { left, ..ApplyResult::default() };
        let removals = plan.removals.into_iter().map(|PlannedJob { id, root }| Command::RemoveJob {
            id,
            source: self.sources[root].clone(),
            provided: Precondition::Any,
        });
        self.send(removals.collect(), node, clock, &mut applied).await;
        let ids: Vec<JobId> = plan.puts.into_iter().map(|put| put.id).collect();
        for ids in ids.chunks(PUTS_AT_ONCE) {
            self.send(self.puts(ids), node, clock, &mut applied).await;
        }
        let replans = plan.replans.into_iter().map(|job| Command::Replan { job });
        self.send(replans.collect(), node, clock, &mut applied).await;
        self.live.drop_recent();
        applied
    }

    async fn send(
        &mut self,
        commands: Vec<Command>,
        node: &NodeHandle,
        clock: &dyn MachineClock,
        applied: &mut ApplyResult,
    ) {
        for answered in plan::send_commands(commands, node, clock).await {
            self.note(answered, applied);
        }
    }

    /// Commands that put jobs. A job whose file has changed since it was checked is left out, and the next scan finds it.
    fn puts(&self, ids: &[JobId]) -> Vec<Command> {
        let options = directory::Options { zones: &self.world.zones, zone: &self.world.zone, now: clock::now() };
        let jobs = self.live.read_jobs(ids, &options).into_iter().zip(ids);
        let put = |(read, id): (Option<(usize, Arc<Job>)>, &JobId)| {
            let (root, job) = read?;
            let uid = JobUid::from_bits(SystemEntropy.bits());
            let source = self.sources[root].clone();
            Some(Command::PutJob { id: id.clone(), job, source, uid, provided: Precondition::Any })
        };
        jobs.filter_map(put).collect()
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
                let definition = DefinitionDigest::new(&job);
                self.stored.own.insert(id.clone(), DirectoryJob { root, definition, is_in_zone: true });
                if answer == CommandReply::Done {
                    applied.put.push(id);
                }
            }
            (Command::PutJob { id, job, .. }, Err(refused)) => {
                applied.refused += 1;
                let file = self.live.file_of(&id).unwrap_or_default();
                self.refused.insert(id, (DefinitionDigest::new(&job), refusal(&file, &refused)));
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
        let valid = &self.live.report().calendars;
        let mut calendars = valid.clone();
        let before = &self.world.calendars;
        for name in before.names().filter(|name| valid.get(name).is_none()) {
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
