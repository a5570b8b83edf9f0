//! Writes `/nextjob` in the transactions of a commit: each that changes when jobs are next sets it to the job that is
//! next afterwards, as far as this process knows. The set compares nothing, so it makes no commit fail. If it was wrong,
//! because another process has committed at the same time, `times.rs` corrects it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_jobfile::foreign::castle;
use cronhold_schedule::Instant;

use super::job_texts::JobTexts;
use super::schedule_index::ScheduleOverlay;
use crate::mirror::RecordMirror;
use crate::wire::ZnodeWrite;

/// Writes `/nextjob` together with commits.
#[derive(Debug)]
pub(crate) struct NextJobWriter {
    mirror: Arc<RecordMirror>,
    texts: Arc<JobTexts>,
    path: String,
    /// Whether everything is known that it needs, and the znode exists.
    is_active: AtomicBool,
}

impl NextJobWriter {
    pub(super) fn new(mirror: Arc<RecordMirror>, texts: Arc<JobTexts>, path: String) -> Self {
        Self { mirror, texts, path, is_active: AtomicBool::new(false) }
    }

    /// Begins or stops to write. A znode that does not exist must not make commits fail.
    pub(crate) fn set_active(&self, is_active: bool) {
        self.is_active.store(is_active, Ordering::Relaxed);
    }

    /// Whether it writes together with commits.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The operation that a transaction with these changes needs; `None` if it changes no times. `overlay` has the
    /// changes of the transactions before it.
    pub(crate) fn write_after<'c>(
        &self,
        overlay: &mut ScheduleOverlay,
        changes: impl Iterator<Item = &'c [RecordChange]>,
    ) -> Option<ZnodeWrite> {
        if !self.is_active() {
            return None;
        }
        let next = self.mirror.with_schedule(|schedule| {
            let relevant = changes.map(|changes| overlay.add(schedule, changes)).fold(false, |one, other| one | other);
            relevant.then(|| schedule.next_with(overlay))
        })?;
        let data = match next {
            // The text of a job that is created only now is not known yet.
            Some((job, at)) => self.text_of(&job, at)?,
            None => String::new(),
        };
        Some(ZnodeWrite::Set { path: self.path.clone(), data: data.into_bytes(), version: None })
    }

    /// Changes were committed.
    pub(crate) fn apply<'c>(&self, changes: impl Iterator<Item = &'c [RecordChange]>) {
        if self.is_active() {
            self.mirror.with_schedule(|schedule| changes.for_each(|changes| schedule.apply(changes)));
        }
    }

    /// The data of `/nextjob` by what is known now; `None` if the job that is next is not known well enough.
    pub(super) fn expected(&self) -> Option<String> {
        match self.mirror.with_schedule(|schedule| schedule.next()) {
            Some((job, at)) => self.text_of(&job, at),
            None => Some(String::new()),
        }
    }

    /// The copy of a job's znode with this next time. A job that has no znode yet is shown as it will be written.
    fn text_of(&self, job: &JobId, at: Instant) -> Option<String> {
        if let Some(known) = self.texts.get(job.as_str()) {
            return Some(castle::with_next(&known.text, Some(at)).unwrap_or(known.text));
        }
        let record = self.mirror.job(job)?;
        let shown = cronhold_core::Job { paused: false, ..(*record.job).clone() };
        Some(castle::to_text(&castle::write(job, &shown, Some(at), None).form))
    }
}
