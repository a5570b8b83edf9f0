//! The directory of job files and the stored jobs: what has to change so that the stored ones are as the files say.
//! Whatever a file with a mistake says is left as it was, and only what is certainly gone is removed.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_cli::counted;
use cronhold_core::command::Command;
use cronhold_core::decision::Answer;
use cronhold_core::record::{Actor, JobRecord, Key, Record, Source};
use cronhold_core::{Job, JobId, JobUid, World};
use cronhold_engine::{Clock, Entropy, Handle, Refused};
use cronhold_jobfile::directory::{self, Directory};
use cronhold_jobfile::render_line;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, Store};
use tokio::task::JoinSet;

use crate::log::{Log, Weight};

/// Stored jobs that are looked at in one page.
const PAGE: usize = 1_000;
/// Commands that are on their way at once.
const ASKED_MAX: usize = 2_048;
/// When the node has too much to do, it is asked again after this.
const BUSY_WAIT: Span = Span::from_millis(20);
/// Suffixes of job files.
const SUFFIXES: [&str; 2] = ["yaml", "yml"];

/// A directory of job files that was read.
#[derive(Debug)]
pub struct JobFiles {
    root: PathBuf,
    directory: Directory,
}

/// What has to change, in the order in which it is asked for.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// What is asked of the node.
    pub commands: Vec<Command>,
    /// Jobs that are as their files say.
    pub unchanged: usize,
    /// Jobs whose files have mistakes, and which stay as they were.
    pub kept: usize,
}

/// What came of a plan.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    put: usize,
    removed: usize,
    refused: usize,
}

impl JobFiles {
    /// Reads a directory. Mistakes are told and harm no other file.
    pub fn load(root: &Path, world: &World, now: Instant, log: &Log) -> Self {
        let options = directory::Options { zones: &world.zones, zone: &world.zone, now };
        let directory = directory::load(root, &options);
        for mistake in &directory.mistakes {
            log.say(Weight::Trouble, format!("mistake: {}", render_line(mistake, directory.text_of(mistake))));
        }
        Self { root: root.to_owned(), directory }
    }

    /// The calendars that the jobs can name.
    pub fn calendars(&self) -> cronhold_schedule::calendar::Calendars {
        self.directory.calendars.clone()
    }

    /// What has to change so that the stored jobs are as the files say.
    pub async fn plan(self, store: &dyn Store, world: &World, entropy: &dyn Entropy) -> Result<Plan, Fault> {
        let mut plan = Plan::default();
        let mut settled = BTreeSet::new();
        let mut after = None;
        loop {
            let page = store.page(&Query::Jobs { after }, PAGE).await?;
            for stored in &page.records {
                let Record::Job(record) = &stored.record else { continue };
                if self.settle(record, world, &mut plan) {
                    settled.insert(record.id.clone());
                }
            }
            after = match page.next(PAGE) {
                Some(Key::Job(last)) => Some(last),
                _ => break,
            };
        }
        let open = self.directory.jobs.into_iter().filter(|(id, _)| !settled.contains(id));
        plan.commands.extend(open.map(|(id, loaded)| Command::PutJob {
            id,
            job: Arc::new(loaded.job),
            source: source(),
            uid: JobUid::from_bits(entropy.bits()),
        }));
        Ok(plan)
    }

    /// Notes what has to happen to a stored job. Answers whether its file, if there is one, needs no more looking at.
    fn settle(&self, record: &JobRecord, world: &World, plan: &mut Plan) -> bool {
        if record.source != source() {
            return false;
        }
        match self.directory.jobs.get(&record.id) {
            Some(loaded) if loaded.job == *record.job && *record.zone == *world.zone.name() => {
                plan.unchanged += 1;
                if names_calendars(&record.job) {
                    plan.commands.push(Command::Replan { job: record.id.clone(), even_older: false });
                }
                true
            }
            Some(_) => false,
            None if self.is_gone(&record.id) => {
                plan.commands.push(Command::RemoveJob { id: record.id.clone(), source: source() });
                true
            }
            None => {
                plan.kept += 1;
                true
            }
        }
    }

    /// Whether the file of a stored job is certainly gone. A directory without a single job is more likely one that
    /// was not mounted than one that was emptied, and where one may not look nothing is known.
    fn is_gone(&self, id: &JobId) -> bool {
        if self.directory.jobs.is_empty() || self.directory.broken.contains(id) {
            return false;
        }
        SUFFIXES.iter().all(|suffix| {
            let file = self.root.join(format!("{id}.{suffix}"));
            fs::symlink_metadata(file).is_err_and(|error| is_nothing_there(&error))
        })
    }
}

impl Plan {
    /// Asks the node for all of it.
    pub async fn apply(self, node: &Handle, clock: &dyn Clock, log: &Log) -> Applied {
        let mut applied = Applied::default();
        let mut commands = VecDeque::from(self.commands);
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < ASKED_MAX
                && let Some(command) = commands.pop_front()
            {
                let node = node.clone();
                asked.spawn(async move {
                    let answer = node.ask(Actor::JobFiles, command.clone()).await;
                    (command, answer)
                });
            }
            match asked.join_next().await {
                Some(Ok((command, Err(refused)))) if is_passing(&refused) => {
                    commands.push_front(command);
                    clock.sleep(BUSY_WAIT).await;
                }
                Some(Ok((_, Err(Refused::Stopping)))) | None => return applied,
                Some(Ok((command, answer))) => applied.count(&command, answer, log),
                // Nothing aborts these tasks, and a panic in one is a bug that was told already.
                Some(Err(_)) => {}
            }
        }
    }
}

impl Applied {
    fn count(&mut self, command: &Command, answer: Result<Answer, Refused>, log: &Log) {
        match (command, answer) {
            (_, Err(refused)) => {
                self.refused += 1;
                let hint = match &refused {
                    Refused::Rejected(rejection) => rejection.hint(),
                    _ => None,
                };
                let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                log.say(Weight::Trouble, format!("{}: {refused}{hint}", subject(command)));
            }
            (Command::PutJob { .. }, Ok(Answer::Done)) => self.put += 1,
            (Command::RemoveJob { .. }, Ok(_)) => self.removed += 1,
            (_, Ok(_)) => {}
        }
    }

    /// Whether there is any job now; `unchanged` is that of the plan.
    pub fn has_jobs(&self, unchanged: usize) -> bool {
        unchanged + self.put > 0
    }

    /// In words; `unchanged` and `kept` are those of the plan.
    pub fn words(self, unchanged: usize, kept: usize) -> String {
        // A directory that is empty is more likely one that is not mounted.
        if !self.has_jobs(unchanged) {
            let kept = if kept == 0 { String::new() } else { format!("; {} left as stored", counted(kept, "job")) };
            return format!("there is no good job file{kept}");
        }
        let notes = [
            (self.put, "new or changed"),
            (self.removed, "removed"),
            (self.refused, "refused"),
            (kept, "left as stored: their files have mistakes or cannot be looked at"),
        ];
        let notes = notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let notes = notes.collect::<Vec<_>>().join(", ");
        let jobs = counted(unchanged + self.put, "job");
        if notes.is_empty() { format!("{jobs}, all as stored") } else { format!("{jobs}, {notes}") }
    }
}

/// What stands behind all jobs that come from files.
fn source() -> Source {
    Source::Directory(String::new())
}

fn names_calendars(job: &Job) -> bool {
    job.schedules.iter().any(|schedule| schedule.spec.calendar.is_some())
}

fn is_nothing_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether the same command may be taken a little later.
fn is_passing(refused: &Refused) -> bool {
    match refused {
        Refused::Busy => true,
        Refused::Failed(fault) => fault.is_passing(),
        Refused::Rejected(_) | Refused::Stopping => false,
    }
}

fn subject(command: &Command) -> String {
    match command {
        Command::PutJob { id, .. } | Command::RemoveJob { id, .. } | Command::Replan { job: id, .. } => {
            format!("job {id}")
        }
        _ => "job files".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_came_of_it() {
        for (put, removed, refused, unchanged, kept, expected) in [
            (0, 0, 0, 0, 0, "there is no good job file"),
            (0, 0, 0, 0, 3, "there is no good job file; 3 jobs left as stored"),
            (0, 0, 0, 7, 0, "7 jobs, all as stored"),
            (1, 0, 0, 0, 0, "1 job, 1 new or changed"),
            (2, 1, 1, 3, 0, "5 jobs, 2 new or changed, 1 removed, 1 refused"),
            (0, 0, 0, 1, 2, "1 job, 2 left as stored: their files have mistakes or cannot be looked at"),
        ] {
            assert_eq!(Applied { put, removed, refused }.words(unchanged, kept), expected);
        }
    }
}
