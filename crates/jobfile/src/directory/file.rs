//! Reads one file of a directory. Of a job file without mistakes, only an outline is kept.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use cronhold_core::job::JobDefaults;
use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};
use cronhold_schedule::TextError;
use cronhold_schedule::calendar::Calendar;

use super::check::{OwnFindings, check_own};
use super::outline::JobOutline;
use super::text::{UnreadableFile, read_text};
use super::walk::{FileKind, FilePath};
use super::{CheckContext, LoadedJob, Options};
use crate::mistake::{Mistake, MistakeKind};
use crate::read::{self, JobPlaces, JobRead, read_defaults, read_job};

/// What is kept of a job file.
#[derive(Debug)]
pub(super) enum JobContent {
    /// It has no mistake of its own.
    Outline(JobOutline),
    /// It has mistakes, or references that are wrong.
    Full(Box<FullJobFile>),
}

/// A job file with all that is needed to report mistakes in it.
#[derive(Debug)]
pub(super) struct FullJobFile {
    pub(super) text: String,
    /// Mistakes of the file alone.
    pub(super) mistakes: Vec<Mistake>,
    /// The outline of its job; `None` if the job is not complete.
    pub(super) outline: Option<JobOutline>,
    /// The valid parts of a job that is not complete.
    pub(super) draft: Option<Job>,
    pub(super) places: Arc<JobPlaces>,
}

impl JobContent {
    /// The outline of its job; `None` if the job is not complete.
    pub(super) fn outline(&self) -> Option<&JobOutline> {
        match self {
            Self::Outline(outline) => Some(outline),
            Self::Full(full) => full.outline.as_ref(),
        }
    }

    /// Mistakes of the file alone.
    pub(super) fn mistakes(&self) -> &[Mistake] {
        match self {
            Self::Outline(_) => &[],
            Self::Full(full) => &full.mistakes,
        }
    }
}

/// The result of reading a job file.
pub(super) struct ReadJobFile {
    /// Digest of its text.
    pub(super) digest: u64,
    pub(super) full: FullJobFile,
    /// The job, if it is complete.
    pub(super) job: Option<Arc<Job>>,
}

impl ReadJobFile {
    /// What is kept if it has no wrong references.
    pub(super) fn into_content(self) -> JobContent {
        match self.full {
            FullJobFile { mistakes, outline: Some(outline), .. } if mistakes.is_empty() => JobContent::Outline(outline),
            full => JobContent::Full(Box::new(full)),
        }
    }
}

/// Reads the job files of one directory.
pub(super) struct JobFileReader<'a> {
    pub(super) root: &'a Path,
    /// Prefix of all ids.
    pub(super) prefix: Option<&'a str>,
    /// What all jobs of the directory have in common.
    pub(super) defaults: &'a JobDefaults,
    pub(super) around: CheckContext<'a>,
    /// Zones and calendars for templates, without any name bound.
    pub(super) world: &'a Bindings,
}

impl JobFileReader<'_> {
    pub(super) fn read(&self, path: &FilePath) -> ReadJobFile {
        self.read_unless(path, None).expect("a file that is not compared is read")
    }

    /// Reads a file; `None` if the digest of its text is `before`.
    pub(super) fn read_unless(&self, path: &FilePath, before: Option<u64>) -> Option<ReadJobFile> {
        let shown = path.shown(self.root);
        let text = match read_text(&shown, &path.below(self.root)) {
            Ok(text) => text,
            Err(unreadable) => {
                let UnreadableFile { mistake, text } = *unreadable;
                let digest = digest(&(&mistake.message, &text));
                let mistakes = vec![mistake];
                let full = FullJobFile { text, mistakes, outline: None, draft: None, places: Arc::default() };
                return Some(ReadJobFile { digest, full, job: None }).filter(|_| before != Some(digest));
            }
        };
        let digest = digest(&text);
        if before == Some(digest) {
            return None;
        }
        let (full, job) = self.checked(&shown, path.name(), text);
        Some(ReadJobFile { digest, full, job })
    }

    fn checked(&self, shown: &str, name: &str, text: String) -> (FullJobFile, Option<Arc<Job>>) {
        let read = read_job(shown, &text, &read::Options { zones: self.around.zones });
        let JobRead { mut job, mut draft, mut mistakes, places } = read;
        if mistakes.iter().all(|mistake| mistake.kind == MistakeKind::Unsupported) {
            // The job is complete, so the other checks can report their mistakes as well.
            job = job.or_else(|| draft.take());
        }
        let places = Arc::new(places);
        let id = match job_id(self.prefix, name) {
            Ok(id) => id,
            Err(error) => {
                let message = format!("the path of the file cannot be a job's id: {}", error.message);
                let hint = error.hint.unwrap_or_else(|| "rename the file".to_owned());
                mistakes.push(Mistake::new(shown, 0..0, message).hint(hint));
                return (FullJobFile { text, mistakes, outline: None, draft: None, places }, None);
            }
        };
        let Some(mut job) = job else {
            return (FullJobFile { text, mistakes, outline: None, draft, places }, None);
        };
        self.defaults.apply(&id, &mut job);
        let job = Arc::new(job);
        let loaded = LoadedJob { job: Arc::clone(&job), file: shown.into(), places: Arc::clone(&places) };
        let OwnFindings { mistakes: own, params, links, pools } = check_own(&id, &loaded, &self.around, self.world);
        mistakes.extend(own);
        let outline = Some(JobOutline::new(&job, params, links, pools));
        (FullJobFile { text, mistakes, outline, draft: None, places }, Some(job))
    }
}

/// The id of the job in a file.
pub(super) fn job_id(prefix: Option<&str>, name: &str) -> Result<JobId, TextError> {
    match prefix {
        Some(prefix) => JobId::parse(&format!("{prefix}/{name}")),
        None => JobId::parse(name),
    }
}

/// A calendar or the defaults of a directory.
pub(super) struct SharedFile {
    pub(super) text: String,
    pub(super) content: SharedContent,
    pub(super) mistakes: Vec<Mistake>,
    /// Digest of its text.
    pub(super) digest: u64,
}

pub(super) enum SharedContent {
    /// A calendar; `None` if it is invalid.
    Calendar(Option<Calendar>),
    /// The defaults; `None` if they are invalid.
    Defaults(Option<JobDefaults>),
}

impl SharedFile {
    /// Reads a file; `None` if the digest of its text is `before`.
    pub(super) fn read_unless(
        root: &Path,
        path: &FilePath,
        kind: FileKind,
        options: &Options<'_>,
        before: Option<u64>,
    ) -> Option<Self> {
        let shown = path.shown(root);
        let is_defaults = kind == FileKind::Defaults;
        let text = match read_text(&shown, &path.below(root)) {
            Ok(text) => text,
            Err(unreadable) => {
                let UnreadableFile { mistake, text } = *unreadable;
                let digest = digest(&(&mistake.message, &text));
                let content = if is_defaults { SharedContent::Defaults(None) } else { SharedContent::Calendar(None) };
                return Some(Self { text, content, mistakes: vec![mistake], digest })
                    .filter(|_| before != Some(digest));
            }
        };
        let digest = digest(&text);
        if before == Some(digest) {
            return None;
        }
        let (content, mistakes) = match kind {
            FileKind::Dates => calendar(&shown, Calendar::from_dates(&text)),
            FileKind::Ics => calendar(&shown, Calendar::from_ics(&text)),
            FileKind::Defaults | FileKind::Job => {
                let (defaults, mistakes) = read_defaults(&shown, &text, &read::Options { zones: options.zones });
                (SharedContent::Defaults(defaults), mistakes)
            }
        };
        Some(Self { text, content, mistakes, digest })
    }
}

fn calendar(shown: &str, read: Result<Calendar, Vec<TextError>>) -> (SharedContent, Vec<Mistake>) {
    match read {
        Ok(calendar) => (SharedContent::Calendar(Some(calendar)), Vec::new()),
        Err(errors) => {
            let mistakes = errors.into_iter().map(|error| at_place(shown, error)).collect();
            (SharedContent::Calendar(None), mistakes)
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
