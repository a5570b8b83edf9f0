//! Reports mistakes in job files. Each is reported once, and again only after it was fixed. A mistake must persist for
//! a moment before it is reported, because an editor may be in the middle of writing the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cronhold_api::FileMistake;
use cronhold_core::JobId;
use cronhold_jobfile::directory::JobFileState;
use cronhold_jobfile::{Mistake, line_column, render_line};
use cronhold_server::MistakeAt;

use super::JobDirectories;

/// Mistakes that were reported: their log messages, with the files that they are in.
#[derive(Debug, Default)]
pub(super) struct ReportedMistakes(BTreeMap<String, String>);

impl JobDirectories {
    /// All current mistakes: the log message, and the form that the API shows.
    fn all_mistakes(&self) -> Vec<(String, MistakeAt)> {
        let report = self.live.report();
        let of_files = report
            .mistakes
            .iter()
            .map(|mistake| (report.owners.get(&mistake.file).cloned(), mistake, report.text_of(mistake)));
        let is_valid = |id: &JobId| matches!(self.live.find(id), JobFileState::Valid { .. });
        let refused = self.refused.iter().filter(|(id, _)| is_valid(id));
        let refused = refused.map(|(id, (_, mistake))| (Some(id.clone()), mistake, ""));
        of_files
            .chain(refused)
            .map(|(job, mistake, text)| (render_line(mistake, text), at(job, mistake, text)))
            .collect()
    }

    /// Log messages of mistakes that were not reported yet.
    pub(super) fn unreported(&self) -> BTreeSet<String> {
        let lines = self.all_mistakes().into_iter().map(|(line, _)| line);
        lines.filter(|line| !self.reported.0.contains_key(line)).collect()
    }

    /// Reports new mistakes and fixed files. With `only`, new mistakes are reported only if they are listed there.
    pub(super) fn report_mistakes(&mut self, only: Option<&BTreeSet<String>>) {
        let mut mistakes = self.all_mistakes();
        mistakes.retain(|(line, _)| self.reported.0.contains_key(line) || only.is_none_or(|only| only.contains(line)));
        let is_new = |(line, _): &&(String, MistakeAt)| !self.reported.0.contains_key(line);
        let new: BTreeMap<String, FileMistake> =
            mistakes.iter().filter(is_new).map(|(line, at)| (line.clone(), at.mistake.clone())).collect();
        let lines: BTreeMap<String, String> =
            mistakes.iter().map(|(line, at)| (line.clone(), at.mistake.file.clone())).collect();
        // Before the log, because a reader of the log may request the mistakes at once.
        self.status.set_mistakes(mistakes.into_iter().map(|(_, at)| at).collect());
        for (shown, FileMistake { file, line, column, .. }) in &new {
            self.log.scope(|| tracing::warn!(event = "job_file_invalid", file, line, column, "{shown}"));
        }
        let wrong: BTreeSet<&String> = lines.values().collect();
        let fixed: BTreeSet<&String> = self.reported.0.values().filter(|file| !wrong.contains(file)).collect();
        for file in fixed.into_iter().filter(|file| Path::new(file).exists()) {
            self.log.scope(|| tracing::info!(event = "job_file_valid", file, "{file} is valid again"));
        }
        self.reported.0 = lines;
    }

    /// The number of mistakes that were reported and are not fixed.
    pub(super) fn mistakes(&self) -> usize {
        self.reported.0.len()
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
