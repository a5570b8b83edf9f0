//! Remembers what was reported about definitions, so that each fact is reported once and not with every reconciliation.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cronhold_core::JobId;
use cronhold_engine::RequestError;
use cronhold_jobfile::foreign::{FieldMistake, FormNote};

use crate::plan::JobPlan;
use crate::report::{InvalidDefinition, SharedJobReport};

/// What was reported about definitions.
#[derive(Debug, Default)]
pub(crate) struct ReportHistory {
    /// The present mistakes in definitions.
    mistakes: BTreeMap<JobId, Vec<FieldMistake>>,
    /// Digests of what was reported.
    reported: BTreeMap<ReportKey, u64>,
}

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ReportKey {
    Name(String),
    Mistakes(JobId),
    Notes(JobId),
    Refusal(JobId),
}

impl ReportHistory {
    /// The present mistakes in definitions.
    pub(crate) fn invalid_definitions(&self) -> Vec<InvalidDefinition> {
        let all = self.mistakes.iter().flat_map(|(id, mistakes)| mistakes.iter().map(move |mistake| (id, mistake)));
        all.map(|(id, mistake)| InvalidDefinition { job: id.clone(), mistake: mistake.clone() }).collect()
    }

    /// Forgets the mistakes of definitions that do not exist any more.
    pub(crate) fn retain_mistakes(&mut self, exists: impl Fn(&JobId) -> bool) {
        self.mistakes.retain(|id, _| exists(id));
    }

    /// Reports names that cannot be a job's id, with the reasons.
    pub(crate) fn report_invalid_names(
        &mut self,
        invalid_names: &[(String, String)],
        reports: &mut Vec<SharedJobReport>,
    ) {
        for (name, reason) in invalid_names {
            let report = SharedJobReport::InvalidName { name: name.clone(), reason: reason.clone() };
            self.report_once(ReportKey::Name(name.clone()), digest(reason), report, reports);
        }
    }

    /// Reports mistakes and notes of a definition with this text, and whether its job file overrules it.
    pub(crate) fn report_plan(
        &mut self,
        id: &JobId,
        text: &str,
        has_job: bool,
        plan: &JobPlan,
        reports: &mut Vec<SharedJobReport>,
    ) {
        self.mistakes.remove(id);
        if !plan.mistakes.is_empty() {
            let (job, mistakes) = (id.clone(), plan.mistakes.clone());
            self.mistakes.insert(job.clone(), mistakes.clone());
            let report = SharedJobReport::DefinitionInvalid { job, mistakes, has_job };
            self.report_once(ReportKey::Mistakes(id.clone()), digest(text), report, reports);
        } else if self.reported.remove(&ReportKey::Mistakes(id.clone())).is_some() {
            reports.push(SharedJobReport::DefinitionFixed { job: id.clone() });
        }
        self.report_notes(id, &plan.notes, reports);
        if plan.is_overruled {
            reports.push(SharedJobReport::Overruled { job: id.clone() });
        }
    }

    /// Reports that the node refused the job of a definition with this text.
    pub(crate) fn report_refusal(
        &mut self,
        id: &JobId,
        text: &str,
        refused: &RequestError,
        reports: &mut Vec<SharedJobReport>,
    ) {
        let report = SharedJobReport::JobRefused { job: id.clone(), reason: refused.to_string() };
        self.report_once(ReportKey::Refusal(id.clone()), digest(text), report, reports);
    }

    /// Reports the notes on a definition, unless they are the same as before.
    fn report_notes(&mut self, id: &JobId, notes: &[FormNote], reports: &mut Vec<SharedJobReport>) {
        let texts: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let (key, now) = (ReportKey::Notes(id.clone()), (!texts.is_empty()).then(|| digest(&texts.join("\n"))));
        let before = match now {
            Some(now) => self.reported.insert(key, now),
            None => self.reported.remove(&key),
        };
        if before != now {
            let notes = notes.iter().map(|note| (id.clone(), note.clone()));
            reports.extend(notes.map(|(job, note)| SharedJobReport::DefinitionNote { job, note }));
        }
    }

    /// Reports something, unless it was reported with the same content.
    fn report_once(
        &mut self,
        key: ReportKey,
        content: u64,
        report: SharedJobReport,
        reports: &mut Vec<SharedJobReport>,
    ) {
        if self.reported.insert(key, content) != Some(content) {
            reports.push(report);
        }
    }
}

/// A digest of a text. Two texts with the same digest are taken to be equal.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
