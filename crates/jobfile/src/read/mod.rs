//! From the text of a job file to the job. One reader per part of a job; each reports what is
//! wrong with its part and goes on, so that one reading shows all mistakes of a file.

mod action;
mod apsis;
mod condition;
mod fields;
mod job;
mod limits;
mod names;
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

use cronhold_core::job::{Job, Schedule};
use cronhold_schedule::Zones;
use cronhold_schedule::text::shortened;

pub use places::Places;
pub(crate) use reader::{Item, Reader};

use crate::mistake::Mistake;
use crate::yaml::{self, Node, Value};

/// What a reading depends on besides the text.
#[derive(Debug, Clone, Copy)]
pub struct Options<'z> {
    /// Zones that can be named.
    pub zones: &'z Zones,
}

impl Default for Options<'static> {
    /// The zones that are compiled into the program.
    fn default() -> Self {
        static BUNDLED: LazyLock<Zones> = LazyLock::new(Zones::bundled);
        Self { zones: &BUNDLED }
    }
}

/// What came of reading one file.
#[derive(Debug)]
pub struct JobRead {
    /// The job. Invariant: it is there exactly when there is no mistake.
    pub job: Option<Job>,
    /// What could be read of a job that has mistakes: enough to see which other jobs it names, and not to be run.
    pub draft: Option<Job>,
    /// All mistakes in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// Where its parts stand.
    pub places: Places,
}

/// What a file that says nothing should say.
const EMPTY_HINT: &str = "a job needs at least a program, such as `program: echo hello`";

/// Reads a job file. `file` is the name that mistakes use. A key that this version does not carry out is a mistake.
pub fn read_job(file: &str, text: &str, options: &Options<'_>) -> JobRead {
    let (root, mistakes) = yaml::parse(file, text);
    read_tree(root, text, Reader::new(file, text, options.zones, mistakes))
}

/// Reads the definition of a stored job. It was accepted once, perhaps by another version, so neither its size nor a
/// feature that this version does not carry out makes it unreadable: the job keeps its schedule, and
/// [`Job::unsupported`] says what has to be reported about it.
pub fn read_stored_job(id: &str, text: &str, options: &Options<'_>) -> JobRead {
    let (root, mistakes) = yaml::parse_any_size(id, text);
    read_tree(root, text, Reader::new(id, text, options.zones, mistakes).accepting_unsupported())
}

fn read_tree(root: Option<Node>, text: &str, mut reader: Reader<'_>) -> JobRead {
    let job = root.as_ref().and_then(|root| match root.value {
        Value::Null => {
            let mistake = reader.mistake(&(0..0), "the file holds no job").hint(EMPTY_HINT);
            reader.report(mistake);
            None
        }
        Value::Map(_) => reader.job(root),
        _ => {
            let message = format!("a job file must be a map of keys, but is {}", root.found());
            let mistake = reader.mistake(&root.span, message).hint(EMPTY_HINT);
            reader.report(mistake);
            None
        }
    });
    let mistakes = reader.into_mistakes();
    let (job, draft) = if mistakes.is_empty() { (job, None) } else { (None, job) };
    JobRead { job, draft, mistakes, places: Places::new(root, text) }
}

/// Reads a schedule as people give it on a command line: a cron text, a phrase such as
/// `with 10m interval`, or a YAML map or list such as `{hour: 14, day: last}`. The places have the paths that they would
/// have in a job file, such as `schedule[0].timezone`.
pub fn read_schedule(text: &str, options: &Options<'_>) -> Result<(Vec<Schedule>, Places), Vec<Mistake>> {
    const FILE: &str = "schedule";
    let trimmed = text.trim_start();
    // A cron text may begin with `*` or `@`, which YAML has other plans for, and may hold `: ` or ` #`.
    let is_yaml = trimmed.starts_with(['{', '[', '-', '"', '\'']) || trimmed.lines().any(has_key);
    let (root, mistakes) = if is_yaml { yaml::parse(FILE, text) } else { (Some(plain(text)), Vec::new()) };
    let mut reader = Reader::new(FILE, text, options.zones, mistakes);
    let schedules = root.as_ref().map(|root| reader.schedules(Item { name: "schedule", node: root }));
    let mistakes = reader.into_mistakes();
    match (schedules, root) {
        (Some(schedules), Some(root)) if mistakes.is_empty() => Ok((schedules, Places::of_schedules(root, text))),
        _ => Err(mistakes),
    }
}

/// Whether a line begins with a key, as in `every: 15m`.
fn has_key(line: &str) -> bool {
    let key_len = line.trim_start().find(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'));
    key_len.is_some_and(|len| len > 0 && line.trim_start()[len..].starts_with(':'))
}

/// The whole text as one scalar.
fn plain(text: &str) -> Node {
    let scalar = yaml::Scalar { text: text.to_owned(), style: yaml::Style::Plain };
    Node { value: Value::Scalar(scalar), span: 0..text.len() }
}

/// A word of a message in backticks, shortened.
fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}
