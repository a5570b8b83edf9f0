//! Mistakes that were told: each is told once, and again only after it was gone. Somebody may be in the middle of writing
//! a file, so a mistake is told when it has stood for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cronhold_api::FileMistake;
use cronhold_core::JobId;
use cronhold_jobfile::{Mistake, line_column, render_line};
use cronhold_server::MistakeAt;

use super::JobDirectories;

/// Mistakes that were told: their lines, with the files that they are in.
#[derive(Debug, Default)]
pub(super) struct ReportedMistakes(BTreeMap<String, String>);

impl JobDirectories {
    /// Every mistake that there is now, as a line, with what others are shown of it.
    fn all_mistakes(&self) -> Vec<(String, MistakeAt)> {
        let directory = &self.directory;
        let of_files = directory
            .mistakes
            .iter()
            .map(|mistake| (directory.owners.get(&mistake.file).cloned(), mistake, directory.text_of(mistake)));
        let refused = self.refused.iter().filter(|(id, _)| directory.jobs.contains_key(*id));
        let refused = refused.map(|(id, (_, mistake))| (Some(id.clone()), mistake, ""));
        of_files
            .chain(refused)
            .map(|(job, mistake, text)| (render_line(mistake, text), at(job, mistake, text)))
            .collect()
    }

    /// Lines of mistakes that were not told yet.
    pub(super) fn untold(&self) -> BTreeSet<String> {
        let lines = self.all_mistakes().into_iter().map(|(line, _)| line);
        lines.filter(|line| !self.told.0.contains_key(line)).collect()
    }

    /// Tells of mistakes that are new and of those that are gone. Of the new ones only these, if any are given.
    pub(super) fn tell(&mut self, only: Option<&BTreeSet<String>>) {
        let mut mistakes = self.all_mistakes();
        mistakes.retain(|(line, _)| self.told.0.contains_key(line) || only.is_none_or(|only| only.contains(line)));
        let is_new = |(line, _): &&(String, MistakeAt)| !self.told.0.contains_key(line);
        let new: BTreeMap<String, FileMistake> =
            mistakes.iter().filter(is_new).map(|(line, at)| (line.clone(), at.mistake.clone())).collect();
        let lines: BTreeMap<String, String> =
            mistakes.iter().map(|(line, at)| (line.clone(), at.mistake.file.clone())).collect();
        // Whoever reads the line may ask for it at once.
        self.shelf.set_mistakes(mistakes.into_iter().map(|(_, at)| at).collect());
        for (shown, FileMistake { file, line, column, .. }) in &new {
            self.log.scope(|| tracing::warn!(event = "job_file_invalid", file, line, column, "{shown}"));
        }
        let wrong: BTreeSet<&String> = lines.values().collect();
        let mended: BTreeSet<&String> = self.told.0.values().filter(|file| !wrong.contains(file)).collect();
        for file in mended.into_iter().filter(|file| Path::new(file).exists()) {
            self.log.scope(|| tracing::info!(event = "job_file_valid", file, "{file} is valid again"));
        }
        self.told.0 = lines;
    }

    /// How many mistakes there are.
    pub(super) fn mistakes(&self) -> usize {
        self.told.0.len()
    }
}

fn at(job: Option<JobId>, mistake: &Mistake, text: &str) -> MistakeAt {
    let (line, column) = line_column(text, mistake.at.start);
    let mistake = FileMistake {
        file: mistake.file.clone(),
        line: line as u64,
        column: column as u64,
        message: mistake.message.clone(),
        hint: mistake.hint.clone(),
    };
    MistakeAt { job, mistake }
}
