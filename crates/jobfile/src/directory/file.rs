//! One file of a directory as it was read. It is kept while the file stays as it is; most of what only mistakes need is
//! not, because there can be very many files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_schedule::TextError;
use cronhold_schedule::calendar::Calendar;

use super::Options;
use super::text::{Unreadable, read_text};
use super::walk::{Found, Kind};
use crate::mistake::{Mistake, MistakeKind};
use crate::read::{self, JobRead, Places, read_job};

/// What came of one file.
pub(super) struct ReadFile {
    /// Its text; empty when that was not kept.
    pub(super) text: String,
    pub(super) content: Content,
    pub(super) mistakes: Vec<Mistake>,
    /// Tells its text apart from others.
    pub(super) digest: u64,
    /// Whether text and places were not kept.
    pub(super) is_thin: bool,
}

pub(super) enum Content {
    Nothing,
    Job {
        job: Option<Arc<Job>>,
        /// What could be read of a job that has mistakes.
        draft: Option<Arc<Job>>,
        places: Arc<Places>,
    },
    Calendar(Option<Calendar>),
}

impl ReadFile {
    /// Reads a file.
    pub(super) fn new(found: &Found, options: &Options<'_>) -> Self {
        Self::unless(found, options, None).expect("a file that is not compared is read")
    }

    /// Reads a file, unless it holds what it held before.
    pub(super) fn unless(found: &Found, options: &Options<'_>, before: Option<u64>) -> Option<Self> {
        let text = match read_text(&found.file, &found.path) {
            Ok(text) => text,
            Err(unreadable) => {
                let Unreadable { mistake, text } = *unreadable;
                let digest = digest(&(&mistake.message, &text));
                let mistakes = vec![mistake];
                return Some(Self { text, content: Content::Nothing, mistakes, digest, is_thin: false })
                    .filter(|_| before != Some(digest));
            }
        };
        let digest = digest(&text);
        if before == Some(digest) {
            return None;
        }
        let (content, mistakes) = match found.kind {
            Kind::Job => of_job(read_job(&found.file, &text, &read::Options { zones: options.zones })),
            Kind::Dates => of_calendar(found, Calendar::from_dates(&text)),
            Kind::Ics => of_calendar(found, Calendar::from_ics(&text)),
        };
        Some(Self { text, content, mistakes, digest, is_thin: false })
    }

    /// The same without what only mistakes need, if it has none.
    pub(super) fn thinned(mut self) -> Self {
        if self.mistakes.is_empty() {
            self.text = String::new();
            if let Content::Job { places, .. } = &mut self.content {
                *places = Arc::default();
            }
            self.is_thin = true;
        }
        self
    }
}

fn of_job(read: JobRead) -> (Content, Vec<Mistake>) {
    let JobRead { mut job, mut draft, mistakes, places } = read;
    if mistakes.iter().all(|mistake| mistake.kind == MistakeKind::Unsupported) {
        // Nothing is missing from the job, so everything else that is wrong with it can be found as well.
        job = job.or_else(|| draft.take());
    }
    let content = Content::Job { job: job.map(Arc::new), draft: draft.map(Arc::new), places: Arc::new(places) };
    (content, mistakes)
}

fn of_calendar(found: &Found, read: Result<Calendar, Vec<TextError>>) -> (Content, Vec<Mistake>) {
    match read {
        Ok(calendar) => (Content::Calendar(Some(calendar)), Vec::new()),
        Err(errors) => {
            let mistakes = errors.into_iter().map(|error| at_place(&found.file, error)).collect();
            (Content::Calendar(None), mistakes)
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
