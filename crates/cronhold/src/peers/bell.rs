//! What the follower is wanted for: jobs and pauses that this node has changed, and what events ask for. Whoever rings
//! does not wait.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cronhold_core::JobId;
use cronhold_core::decision::Change;
use cronhold_core::record::{Actor, Key, Record};
use cronhold_engine::{Feed, News};
use tokio::sync::Notify;

/// When more jobs than this have changed, all are looked at.
const JOBS_MAX: usize = 1_000;
/// Names of jobs to validate that are remembered; more are all.
const NAMES_MAX: usize = 1_000;

/// Rings for the follower.
#[derive(Debug, Default)]
pub struct Bell {
    wanted: Mutex<Wanted>,
    notify: Notify,
}

/// What the follower is wanted for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Jobs that were changed here; whether nodes of another kind have heard of it themselves.
    pub(super) jobs: BTreeMap<JobId, bool>,
    /// All jobs are looked at.
    pub(super) all: bool,
    /// Also those come back that somebody had removed for a while.
    pub(super) anew: bool,
    /// All jobs are looked at a little later, when somebody else should have done it.
    pub(super) soon: bool,
    /// Everything was paused here, or goes on.
    pub(super) everything: Option<bool>,
    /// Nodes of another kind have heard themselves that everything is paused, or goes on.
    pub(super) pauses_heard: bool,
    /// Jobs whose definitions are to be validated; all, when the list is empty.
    pub(super) validation: Option<Vec<String>>,
}

impl Bell {
    /// All jobs are to be read again, also those that somebody had removed for a while.
    pub(super) fn want_all_anew(&self) {
        self.ring(|wanted| (wanted.all, wanted.anew) = (true, true));
    }

    /// Somebody else reads all jobs; what they leave is found a little later.
    pub(super) fn want_all_soon(&self) {
        self.ring(|wanted| wanted.soon = true);
    }

    /// Definitions are to be validated.
    pub(super) fn want_validation(&self, names: Vec<String>) {
        self.ring(|wanted| match &mut wanted.validation {
            Some(known) if known.is_empty() => {}
            Some(known) if names.is_empty() || known.len() + names.len() > NAMES_MAX => known.clear(),
            Some(known) => known.extend(names),
            none => *none = Some(names),
        });
    }

    /// Waits until there is something, and takes it.
    pub(super) async fn rung(&self) -> Wanted {
        loop {
            let wanted = std::mem::take(&mut *self.wanted());
            if wanted != Wanted::default() {
                return wanted;
            }
            self.notify.notified().await;
        }
    }

    fn ring(&self, note: impl FnOnce(&mut Wanted)) {
        note(&mut self.wanted());
        self.notify.notify_one();
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // Nothing in here can panic half way.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: &Change, is_heard: bool) {
        let job = match change {
            Change::Put(Record::Job(job)) => &job.id,
            Change::Put(Record::JobState(state)) => &state.job,
            Change::Delete(Key::Job(job)) => job,
            // Every definition says it.
            Change::Put(Record::Pause(pauses)) => {
                return self.ring(|wanted| {
                    wanted.all = true;
                    wanted.pauses_heard |= is_heard;
                    wanted.everything = if is_heard { None } else { Some(pauses.is_paused()) };
                });
            }
            _ => return,
        };
        self.ring(|wanted| {
            let heard = wanted.jobs.entry(job.clone()).or_insert(true);
            *heard &= is_heard;
            if wanted.jobs.len() > JOBS_MAX {
                wanted.jobs.clear();
                wanted.all = true;
            }
        });
    }
}

impl Feed for Bell {
    /// Only people, job files and events change jobs and pauses; what comes from shared definitions is written there.
    fn tell(&self, news: &News<'_>) {
        let News::Committed { stamp, done } = news else { return };
        let is_heard = match &stamp.actor {
            Actor::ForeignEvent => true,
            Actor::Operator(_) | Actor::JobFiles => false,
            _ => return,
        };
        done.changes.iter().for_each(|change| self.note(change, is_heard));
    }
}
