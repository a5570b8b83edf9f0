//! One file of a directory after reading. It is kept until the file changes. Text and places, which only mistakes need,
//! are dropped if the file has none, because there can be very many files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::job::JobDefaults;
use cronhold_schedule::TextError;
use cronhold_schedule::calendar::Calendar;

use super::Options;
use super::text::{UnreadableFile, read_text};
use super::walk::{FileKind, FoundFile};
use crate::mistake::{Mistake, MistakeKind};
use crate::read::{self, JobPlaces, JobRead, read_defaults, read_job};

/// The result of reading one file.
pub(super) struct ReadFile {
    /// Its text; empty if it was dropped.
    pub(super) text: String,
    pub(super) content: FileContent,
    pub(super) mistakes: Vec<Mistake>,
    /// Digest of its text.
    pub(super) digest: u64,
    /// Whether text and places were dropped.
    pub(super) is_thin: bool,
}

pub(super) enum FileContent {
    Nothing,
    Job {
        job: Option<Arc<Job>>,
        /// The valid parts of a job that has mistakes.
        draft: Option<Arc<Job>>,
        places: Arc<JobPlaces>,
    },
    Calendar(Option<Calendar>),
    /// The defaults; `None` if they are invalid.
    Defaults(Option<JobDefaults>),
}

impl ReadFile {
    pub(super) fn new(found: &FoundFile, options: &Options<'_>) -> Self {
        Self::unless(found, options, None).expect("a file that is not compared is read")
    }

    /// Reads a file; `None` if its digest is `before`.
    pub(super) fn unless(found: &FoundFile, options: &Options<'_>, before: Option<u64>) -> Option<Self> {
        let text = match read_text(&found.file, &found.path) {
            Ok(text) => text,
            Err(unreadable) => {
                let UnreadableFile { mistake, text } = *unreadable;
                let digest = digest(&(&mistake.message, &text));
                let mistakes = vec![mistake];
                return Some(Self { text, content: FileContent::Nothing, mistakes, digest, is_thin: false })
                    .filter(|_| before != Some(digest));
            }
        };
        let digest = digest(&text);
        if before == Some(digest) {
            return None;
        }
        let (content, mistakes) = match found.kind {
            FileKind::Job => of_job(read_job(&found.file, &text, &read::Options { zones: options.zones })),
            FileKind::Defaults => {
                let (defaults, mistakes) = read_defaults(&found.file, &text, &read::Options { zones: options.zones });
                (FileContent::Defaults(defaults), mistakes)
            }
            FileKind::Dates => of_calendar(found, Calendar::from_dates(&text)),
            FileKind::Ics => of_calendar(found, Calendar::from_ics(&text)),
        };
        Some(Self { text, content, mistakes, digest, is_thin: false })
    }

    /// Copies the job. Reading leaves its parts between memory that is free again; copies of many jobs, made one after the
    /// other, are dense.
    pub(super) fn compacted(mut self) -> Self {
        if let FileContent::Job { job: Some(job), .. } = &mut self.content {
            *job = Arc::new((**job).clone());
        }
        self
    }

    /// Drops text and places if there is no mistake.
    pub(super) fn thinned(mut self) -> Self {
        if self.mistakes.is_empty() {
            self.text = String::new();
            if let FileContent::Job { places, .. } = &mut self.content {
                *places = JobPlaces::none();
            }
            self.is_thin = true;
        }
        self
    }
}

fn of_job(read: JobRead) -> (FileContent, Vec<Mistake>) {
    let JobRead { mut job, mut draft, mistakes, places } = read;
    if mistakes.iter().all(|mistake| mistake.kind == MistakeKind::Unsupported) {
        // The job is complete, so the other checks can report their mistakes as well.
        job = job.or_else(|| draft.take());
    }
    let content = FileContent::Job { job: job.map(Arc::new), draft: draft.map(Arc::new), places: Arc::new(places) };
    (content, mistakes)
}

fn of_calendar(found: &FoundFile, read: Result<Calendar, Vec<TextError>>) -> (FileContent, Vec<Mistake>) {
    match read {
        Ok(calendar) => (FileContent::Calendar(Some(calendar)), Vec::new()),
        Err(errors) => {
            let mistakes = errors.into_iter().map(|error| at_place(&found.file, error)).collect();
            (FileContent::Calendar(None), mistakes)
        }
    }
}

pub(super) fn at_place(file: &str, error: TextError) -> Mistake {
    Mistake { hint: error.hint, ..Mistake::new(file, error.at, error.message) }
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
