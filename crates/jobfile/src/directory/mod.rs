//! A whole directory of jobs and calendars: every file read, every mistake found, and the checks that no file shows
//! alone. The only part of the crate that touches a disk, apart from the checks themselves, which are pure.

mod check;
mod file;
mod live;
mod load;
mod parallel;
mod text;
mod walk;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::{Job, JobId};
use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::{Instant, Zone, Zones};

use check::check_drafts;
pub use check::{Around, check};
pub use live::{Live, Root};
pub use load::{load, load_calendars};
pub use text::{Unreadable, read_text};
pub use watch::{Covered, Watch};

use crate::mistake::Mistake;
use crate::read::Places;

/// What loading depends on besides the files.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Zones that can be named.
    pub zones: &'a Arc<Zones>,
    /// The zone of schedules that name none.
    pub zone: &'a Zone,
    /// From when on a sample occurrence of each schedule is taken, to see whether its run would get all it needs.
    pub now: Instant,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Directory {
    /// Jobs without a mistake.
    pub jobs: BTreeMap<JobId, LoadedJob>,
    /// Ids of jobs that have a mistake. They exist, so that naming them elsewhere is no mistake.
    pub broken: BTreeSet<JobId>,
    /// Calendars without a mistake.
    pub calendars: Calendars,
    /// Names of calendars that have a mistake. They exist too: a job that names one is no mistake, but cannot be asked.
    pub broken_calendars: BTreeSet<String>,
    /// All mistakes, by file and place.
    pub mistakes: Vec<Mistake>,
    /// Jobs that files with mistakes are for, by file. One that is no job, or whose path cannot be an id, has none.
    pub owners: BTreeMap<String, JobId>,
    /// Texts of files that have mistakes, by the name that the mistakes use. One that could not be read has none.
    pub texts: BTreeMap<String, String>,
}

/// A job and where it comes from.
#[derive(Debug, Clone)]
pub struct LoadedJob {
    /// The job.
    pub job: Arc<Job>,
    /// The file as mistakes call it.
    pub file: String,
    /// Where its parts stand in the file.
    pub places: Arc<Places>,
    /// Which of several directories it is in.
    pub root: usize,
}

impl Directory {
    /// The text that a mistake points into; empty for a file that could not be read.
    pub fn text_of(&self, mistake: &Mistake) -> &str {
        self.texts.get(&mistake.file).map(String::as_str).unwrap_or_default()
    }
}
