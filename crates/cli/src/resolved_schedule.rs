//! A compiled schedule with its definition and the job it belongs to.

use cronhold_core::job::JobSchedule;
use cronhold_schedule::{Schedule, Timing};

/// The job that a schedule belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScheduleOwner {
    /// The job id is known.
    Known(String),
    /// The job id was guessed from the path of the file.
    Guessed(String),
    /// The schedule was given without a job.
    NoJob,
}

impl ScheduleOwner {
    /// The id that `H` and jitter are derived from; empty without a job.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Known(id) | Self::Guessed(id) => id,
            Self::NoJob => "",
        }
    }
}

/// One compiled schedule.
#[derive(Debug)]
pub(crate) struct ResolvedSchedule {
    pub(crate) owner: ScheduleOwner,
    /// The schedule as the job defines it.
    pub(crate) written: JobSchedule,
    pub(crate) schedule: Schedule,
}

impl ResolvedSchedule {
    /// The schedule in words, with its zone unless that is the default UTC.
    pub(crate) fn words(&self) -> String {
        let mut spec = self.written.spec.clone();
        let zone = self.schedule.zone().name();
        spec.zone = Some(zone.to_owned()).filter(|zone| self.written.spec.zone.is_some() || zone != "UTC");
        spec.words(self.owner.id())
    }

    /// Whether the occurrences depend on a job id that is not known for certain.
    pub(crate) fn depends_on_unknown_job(&self) -> bool {
        let hashes = matches!(&self.written.spec.timing, Timing::Cron(cron) if cron.depends_on_job());
        !matches!(self.owner, ScheduleOwner::Known(_)) && (hashes || !self.written.spec.jitter.is_zero())
    }
}
