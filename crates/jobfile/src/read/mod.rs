//! Reads the text of a job file into a job. There is one file for each part of a job. A function reports what is wrong
//! with its part and continues, so that one reading shows all mistakes of a file.

mod action;
mod apsis;
mod condition;
mod fields;
mod job;
mod limits;
pub(crate) mod names;
mod params;
mod places;
mod policies;
mod program;
mod reader;
mod schedule;
mod templates;
mod texts;
mod timing;

use std::sync::LazyLock;

use cronhold_core::job::{Job, JobDefaults, JobSchedule};
use cronhold_schedule::ZoneRegistry;
use cronhold_schedule::text::shortened;

pub(crate) use fields::Fields;
pub(crate) use params::form_error;
pub use places::JobPlaces;
pub(crate) use reader::{JobReader, NamedNode};

use crate::mistake::Mistake;
use crate::yaml::{self, YamlNode, YamlValue};

/// What the reader depends on besides the text.
#[derive(Debug, Clone, Copy)]
pub struct Options<'z> {
    pub zones: &'z ZoneRegistry,
}

impl Default for Options<'static> {
    /// The zones that are compiled into the program.
    fn default() -> Self {
        static BUNDLED: LazyLock<ZoneRegistry> = LazyLock::new(ZoneRegistry::bundled);
        Self { zones: &BUNDLED }
    }
}

/// The result of reading one file.
#[derive(Debug)]
pub struct JobRead {
    /// The job. Invariant: it is there exactly when there is no mistake.
    pub job: Option<Job>,
    /// The valid parts of a job that has mistakes, to check which other jobs it refers to. It must not be run.
    pub draft: Option<Job>,
    /// All mistakes in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// Places of its parts in the file.
    pub places: JobPlaces,
}

/// Hint for a file without a job.
const EMPTY_HINT: &str = "a job needs at least a program, such as `program: echo hello`";

/// Reads a job file. `file` is the name that mistakes use. A key that this version does not support is a mistake.
pub fn read_job(file: &str, text: &str, options: &Options<'_>) -> JobRead {
    let (root, mistakes) = yaml::parse(file, text);
    read_tree(root, text, JobReader::new(file, text, options.zones, mistakes))
}

/// Reads the defaults of a directory or of a daemon. They are there exactly when there is no mistake.
pub fn read_defaults(file: &str, text: &str, options: &Options<'_>) -> (Option<JobDefaults>, Vec<Mistake>) {
    let (root, mistakes) = yaml::parse(file, text);
    let mut reader = JobReader::new(file, text, options.zones, mistakes);
    let mut defaults = JobDefaults::default();
    if let Some(root) = root.filter(|root| !matches!(root.value, YamlValue::Null)) {
        reader.record_into(NamedNode { name: "defaults", node: &root }, &mut defaults);
    }
    let mistakes = reader.into_mistakes();
    (Some(defaults).filter(|_| mistakes.is_empty()), mistakes)
}

/// Reads the JSON of a stored job, which [`write_job`](crate::write_job) wrote. It was accepted once, perhaps by another
/// version, so neither its size nor an unsupported feature makes it unreadable: the job keeps its schedule, and
/// [`Job::unsupported`] lists what has to be reported about it.
pub fn read_stored_job(id: &str, text: &str, options: &Options<'_>) -> JobRead {
    let (root, mistakes) = yaml::parse_json(id, text);
    read_tree(root, text, JobReader::new(id, text, options.zones, mistakes).accepting_unsupported())
}

/// Reads a job file like [`read_job`], but accepts keys that this version does not support, like [`read_stored_job`].
pub fn read_job_of_any_version(file: &str, text: &str, options: &Options<'_>) -> JobRead {
    let (root, mistakes) = yaml::parse(file, text);
    read_tree(root, text, JobReader::new(file, text, options.zones, mistakes).accepting_unsupported())
}

fn read_tree(root: Option<YamlNode>, text: &str, mut reader: JobReader<'_>) -> JobRead {
    let job = root.as_ref().and_then(|root| match root.value {
        YamlValue::Null => {
            let mistake = reader.mistake(&(0..0), "the file does not contain a job").hint(EMPTY_HINT);
            reader.report(mistake);
            None
        }
        YamlValue::Map(_) => reader.job(root),
        _ => {
            let message = format!("a job file must be a map of keys, but is {}", root.found());
            let mistake = reader.mistake(&root.span, message).hint(EMPTY_HINT);
            reader.report(mistake);
            None
        }
    });
    let mistakes = reader.into_mistakes();
    let (job, draft) = if mistakes.is_empty() { (job, None) } else { (None, job) };
    JobRead { job, draft, mistakes, places: JobPlaces::new(root, text) }
}

/// Reads a schedule from a command line: a cron text, a phrase such as
/// `with 10m interval`, or a YAML map or list such as `{hour: 14, day: last}`. The places have the paths that they would
/// have in a job file, such as `schedule[0].timezone`.
pub fn read_schedule(text: &str, options: &Options<'_>) -> Result<(Vec<JobSchedule>, JobPlaces), Vec<Mistake>> {
    const FILE: &str = "schedule";
    let trimmed = text.trim_start();
    // A cron text may begin with `*` or `@` and may contain `: ` or ` #`, which have a meaning in YAML.
    let is_yaml = trimmed.starts_with(['{', '[', '-', '"', '\'']) || trimmed.lines().any(has_key);
    let (root, mistakes) = if is_yaml { yaml::parse(FILE, text) } else { (Some(plain(text)), Vec::new()) };
    let mut reader = JobReader::new(FILE, text, options.zones, mistakes);
    let schedules = root.as_ref().map(|root| reader.schedules(NamedNode { name: "schedule", node: root }));
    let mistakes = reader.into_mistakes();
    match (schedules, root) {
        (Some(schedules), Some(root)) if mistakes.is_empty() => Ok((schedules, JobPlaces::of_schedules(root, text))),
        _ => Err(mistakes),
    }
}

/// Whether a line begins with a key, as in `every: 15m`.
fn has_key(line: &str) -> bool {
    let key_len = line.trim_start().find(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'));
    key_len.is_some_and(|len| len > 0 && line.trim_start()[len..].starts_with(':'))
}

/// The whole text as one scalar.
fn plain(text: &str) -> YamlNode {
    let scalar = yaml::YamlScalar { text: text.to_owned(), style: yaml::TextStyle::Plain };
    YamlNode { value: YamlValue::Scalar(scalar), span: 0..text.len() }
}

/// A text in backticks, shortened, for messages.
fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}
