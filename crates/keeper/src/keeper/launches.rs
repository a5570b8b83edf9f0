//! From a launch that was asked for to a program that runs. Each is written down first; what is written down is either
//! started in the same turn, or refused and written down as such.

use super::Keeper;
use crate::ending::Ending;
use crate::events::Source;
use crate::journal::Entry;
use crate::outputs::Growth;
use crate::protocol::{FromKeeper, Launch, RunKey};
use crate::spawn::{Spawned, beginning, needs_stage};
use crate::table::Living;
use crate::tree::Tree;
use crate::{clock, fail, log};

/// Programs that are started in one turn, so that exits and stops do not wait for all that are due at once.
pub(super) const BATCH: usize = 64;

/// The longest reason for a refusal.
const WHY_MAX: usize = 1_024;

impl Keeper {
    /// Takes a launch, unless it is clear already that it will not be done.
    pub(super) fn enqueue(&mut self, launch: Launch) {
        let run = launch.run;
        let known = self.table.why_known(run);
        let twice = self.queued.contains(&run).then(|| "the run is known already: it is about to start".to_owned());
        let retiring = self.is_retiring.then(|| "this keeper is about to end and starts nothing more".to_owned());
        let empty = launch.argv.is_empty().then(|| "there is no program".to_owned());
        match known.or(twice).or(retiring).or(empty) {
            // It stays what it is: a run that is known is not changed by being asked for once more.
            Some(why) => self.news.push(FromKeeper::Refused { run, why }),
            None => {
                self.queued.insert(run);
                self.queue.push_back(launch);
            }
        }
    }

    /// Takes a launch back that was not yet written down.
    pub(super) fn take_back(&mut self, run: RunKey, why: &str) {
        if self.queued.remove(&run) {
            self.queue.retain(|launch| launch.run != run);
            self.refuse(run, why);
        }
    }

    /// Extends the lease of a launch that was not yet written down. Whether it has ended is looked at when it is.
    pub(super) fn extend_queued(&mut self, run: RunKey, kill_at: u64) {
        if self.queued.contains(&run)
            && let Some(launch) = self.queue.iter_mut().find(|launch| launch.run == run)
        {
            launch.kill_at = launch.kill_at.max(Some(kill_at));
        }
    }

    /// Chooses what is started in this turn, and writes it down.
    pub(super) fn take_launches(&mut self) -> Vec<Launch> {
        let count = self.queue.len().min(BATCH);
        let batch: Vec<Launch> = self.queue.drain(..count).collect();
        let mut launches = Vec::with_capacity(count);
        let now = clock::now();
        for launch in batch {
            let run = launch.run;
            self.queued.remove(&run);
            if launch.launch_by < now {
                let late = now.saturating_sub(launch.launch_by) / 1_000;
                self.refuse(run, &format!("it came too late to be started (by {late} ms)"));
            } else if launch.kill_at.is_some_and(|kill_at| kill_at.saturating_sub(launch.stop_grace) <= now) {
                self.refuse(run, "it came too late to be started: its lease is about to end");
            } else if self.journal.room() == 0 {
                self.refuse(run, "the journal of the keeper has no room for it");
            } else {
                fail::point("keeper-before-intent");
                self.journal.add(&Entry::Intent(run));
                launches.push(launch);
            }
        }
        launches
    }

    /// Brings the journal to disk. Programs that are not on disk are not started.
    pub(super) fn commit(&mut self, launches: Vec<Launch>) -> Vec<Launch> {
        let Err(error) = self.journal.commit() else { return launches };
        // Ends that could not be written are told all the same: the daemon keeps them better than we do.
        log::line(&format!("the journal cannot be written: {error}"));
        for launch in launches {
            self.journal.add(&Entry::Refused(launch.run));
            self.refuse(launch.run, &format!("the journal of the keeper cannot be written: {error}"));
        }
        Vec::new()
    }

    /// Starts a program that is written down.
    pub(super) fn launch(&mut self, launch: &Launch) {
        fail::point("keeper-after-intent");
        let run = launch.run;
        match self.try_launch(launch) {
            Ok(spawned) => self.began(launch, spawned),
            Err(why) => {
                self.journal.add(&Entry::Refused(run));
                self.outputs.remove(run);
                self.cgroups.remove(run);
                self.refuse(run, &why);
            }
        }
    }

    fn try_launch(&mut self, launch: &Launch) -> Result<Spawned, String> {
        let run = launch.run;
        let output = self.outputs.create(run).map_err(|error| format!("cannot create its output: {error}"))?;
        let cgroup = if needs_stage(launch) { self.cgroups.create(run, &launch.limits)? } else { None };
        self.spawner.spawn(launch, &output, cgroup)
    }

    fn began(&mut self, launch: &Launch, spawned: Spawned) {
        let run = launch.run;
        let Spawned { pid, start, .. } = spawned;
        tracing::debug!(event = "program_started", run = %run, pid, "started process {pid} for run {run}");
        fail::point("keeper-after-spawn");
        self.journal.add(&Entry::Spawned { run, pid, start });
        match &spawned.report {
            Some(report) => {
                if let Err(error) = self.events.watch(report, Source::Report(pid)) {
                    log::line(&format!("the start of process {pid} cannot be watched: {error}"));
                }
            }
            None => self.tell_started(run, pid),
        }
        let ending = Ending::new(launch.stop_signal, launch.stop_grace, launch.kill_at);
        let cgroup = if needs_stage(launch) { self.cgroups.place(run) } else { None };
        let tree = Tree::new(run, Some((pid, start)), cgroup);
        self.table.begin(run, Living::new(spawned, tree, Growth::new(launch.output), ending));
    }

    pub(super) fn tell_started(&mut self, run: RunKey, pid: i32) {
        let pid = u32::try_from(pid).expect("a process is positive");
        self.news.push(FromKeeper::Started { run, pid });
    }

    /// Says that a run was not started, and remembers it.
    pub(super) fn refuse(&mut self, run: RunKey, why: &str) {
        // A name may be as long as a message; its beginning says enough.
        let why = beginning(why, WHY_MAX).to_owned();
        self.table.refuse(run, &why);
        self.news.push(FromKeeper::Refused { run, why });
    }
}
