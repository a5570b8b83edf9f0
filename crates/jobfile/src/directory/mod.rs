//! Loads a directory of jobs and calendars, and runs the checks that need more than one file. It is the only part of the
//! crate that reads files; the checks themselves are pure.

mod cache;
mod calendars;
mod check;
mod file;
mod live;
mod load;
mod outline;
mod parallel;
mod root;
mod text;
mod walk;
mod watch;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::{Job, JobId};
use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{Instant, Zone, ZoneRegistry};

pub use cache::JobFileCache;
pub use check::{CheckContext, check_one, named_jobs};
pub use live::{JobFileState, LiveDirectories, ValidJobFile};
pub use load::{load, load_calendars};
pub use root::JobsRoot;
pub use text::{UnreadableFile, read_text};
pub use watch::{DirectoryWatch, WatchCoverage};

use crate::mistake::Mistake;
use crate::read::JobPlaces;

/// What loading depends on besides the files.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Time zones that a schedule can name.
    pub zones: &'a Arc<ZoneRegistry>,
    /// The zone of schedules that do not name one.
    pub zone: &'a Zone,
    /// Start of the search for a sample occurrence of each schedule, which the checks use.
    pub now: Instant,
}

/// The content of a directory.
#[derive(Debug, Default)]
pub struct Directory {
    /// Jobs without a mistake.
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    /// Everything else.
    pub report: DirectoryReport,
}

/// The calendars of a set of directories, and what is wrong with their files.
#[derive(Debug, Default)]
pub struct DirectoryReport {
    /// Ids of jobs that have a mistake. They exist, so a reference to one is not a mistake.
    pub broken: BTreeSet<JobId>,
    /// Calendars without a mistake.
    pub calendars: CalendarSet,
    /// Names of calendars that have a mistake. They exist, so a job that uses one is valid, but cannot be compiled.
    pub broken_calendars: BTreeSet<String>,
    /// All mistakes, by file and place.
    pub mistakes: Vec<Mistake>,
    /// Jobs by the files that have mistakes. Calendars, and files whose path is not a valid id, have no entry.
    pub owners: BTreeMap<String, JobId>,
    /// Texts of files that have mistakes, by the name that the mistakes use. Unreadable files have no entry.
    pub texts: BTreeMap<String, String>,
}

/// A job and where it comes from.
#[derive(Debug, Clone)]
pub struct LoadedJob {
    pub job: Arc<Job>,
    /// Name of the file that mistakes use.
    pub file: Arc<str>,
    /// Places of its parts in the file.
    pub places: Arc<JobPlaces>,
}

impl DirectoryReport {
    /// The text that a mistake points into; empty for a file that could not be read.
    pub fn text_of(&self, mistake: &Mistake) -> &str {
        self.texts.get(&mistake.file).map(String::as_str).unwrap_or_default()
    }
}
