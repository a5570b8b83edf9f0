//! The calendars of all directories, by name.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_schedule::TextError;
use cronhold_schedule::calendar::{Calendar, CalendarSet, check_name};

use super::file::{SharedContent, at_place};
use super::root::RootFiles;
use super::walk::FileKind;
use crate::mistake::Mistake;

/// Calendars and what is wrong with their files.
#[derive(Debug, Default)]
pub(super) struct CalendarFiles {
    /// Calendars without a mistake.
    pub(super) set: CalendarSet,
    /// Names of calendars that have mistakes. Naming one is not a mistake of a job.
    pub(super) broken: BTreeSet<String>,
    /// Mistakes about the names of calendars.
    pub(super) mistakes: Vec<Mistake>,
}

impl CalendarFiles {
    /// The calendars of some directories. If two have the same name, the first counts.
    pub(super) fn new(roots: &[RootFiles]) -> Self {
        let mut calendars = Self::default();
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        for files in roots {
            for (path, kept) in files.shared.iter().filter(|(_, kept)| kept.kind != FileKind::Defaults) {
                let name = calendar_name(path.name());
                let name = files.root.id_text(name).into_owned();
                let shown = path.shown(&files.root.path);
                if let Some(first) = taken.get(&name) {
                    let message = format!("the calendar `{name}` is in {first} already");
                    let mistake = Mistake::new(shown, 0..0, message).hint("rename or remove one of the files");
                    calendars.mistakes.push(mistake);
                    continue;
                }
                calendars.put(&name, &shown, &kept.file.content);
                taken.insert(name, shown);
            }
        }
        calendars
    }

    fn put(&mut self, name: &str, shown: &str, content: &SharedContent) {
        if let Err(error) = check_name(name) {
            return self.mistakes.push(at_place(shown, TextError { at: 0..0, ..error }));
        }
        match content {
            SharedContent::Calendar(Some(calendar)) => self.set.insert(name, calendar.clone()),
            _ => drop(self.broken.insert(name.to_owned())),
        }
    }

    /// All calendars that a job can name.
    pub(super) fn named(&self) -> CalendarSet {
        let mut named = self.set.clone();
        for name in &self.broken {
            named.insert(name.clone(), Calendar::all());
        }
        named
    }
}

/// The name of a calendar: its path below the root without a leading `calendars/`.
fn calendar_name(path: &str) -> &str {
    path.strip_prefix("calendars/").unwrap_or(path)
}
