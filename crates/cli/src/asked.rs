//! A schedule that can be asked, with all that an answer about it has to say: what was written, and whose it is.

use cronhold_core::job::Schedule as JobSchedule;
use cronhold_schedule::{Schedule, Timing};

/// The job that schedules are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Its id is certain.
    Known(String),
    /// Its id is what a path suggests.
    Guessed(String),
    /// A text without a job.
    Nobody,
}

impl Owner {
    /// The id that `H` and jitter are derived from; empty for a text without a job.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Known(id) | Self::Guessed(id) => id,
            Self::Nobody => "",
        }
    }
}

/// One schedule, ready to be asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) owner: Owner,
    /// As it stands in the job.
    pub(crate) written: JobSchedule,
    pub(crate) schedule: Schedule,
}

impl Asked {
    /// The schedule in words, with its zone also where it names none.
    pub(crate) fn words(&self) -> String {
        let mut spec = self.written.spec.clone();
        let zone = self.schedule.zone().name();
        spec.zone = Some(zone.to_owned()).filter(|zone| self.written.spec.zone.is_some() || zone != "UTC");
        spec.words(self.owner.id())
    }

    /// Whether the answer may be another one for the job that was meant.
    pub(crate) fn hangs_on_a_guess(&self) -> bool {
        let hashes = matches!(&self.written.spec.timing, Timing::Cron(cron) if cron.depends_on_job());
        !matches!(self.owner, Owner::Known(_)) && (hashes || !self.written.spec.jitter.is_zero())
    }
}
