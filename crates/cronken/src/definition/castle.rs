//! castle-cron's form of a job as a definition. The form itself is read and written by the job file crate.

use cronhold_core::{Job, JobId};
use cronhold_jobfile::foreign::castle;
use cronhold_jobfile::foreign::{FieldMistake, ForeignForm};
use cronhold_schedule::Instant;

use super::ParsedDefinition;

/// The field that castle-cron computes.
const NEXT: &str = "NextRuntime";

/// Reads a definition from its JSON text.
pub(super) fn read(text: &str) -> ParsedDefinition {
    match ForeignForm::parse(text) {
        Ok(form) => read_form(&form),
        // The hint depends on the text.
        Err(_) => parsed(castle::read(text)),
    }
}

/// Reads a definition from its form. A wrong time is no mistake, because it is computed.
pub(super) fn read_form(form: &ForeignForm) -> ParsedDefinition {
    let time = form.0.get(NEXT).and_then(|value| value.as_str());
    let mut form = form.clone();
    if time.is_none_or(|text| Instant::parse(text).is_err()) {
        form.0.remove(NEXT);
    }
    parsed(castle::read_form(&form))
}

fn parsed(read: castle::CastleRead) -> ParsedDefinition {
    ParsedDefinition {
        job: read.job,
        mistakes: read.mistakes,
        notes: Vec::new(),
        depends_on_dialect: false,
        validation_errors: None,
        form: read.form,
    }
}

/// Writes a job. The next time of the present form stays.
pub(super) fn write(id: &JobId, job: &Job, found: Option<&ForeignForm>) -> ForeignForm {
    let next = found.and_then(|form| castle::read_form(form).next);
    castle::write(id, job, next, found).form
}

/// The mistake in a definition whose znode is that of another job.
pub(super) fn name_mistake(id: &JobId, form: &ForeignForm) -> Option<FieldMistake> {
    let name = form.0.get("Name")?.as_str()?;
    (name != id.as_str()).then(|| FieldMistake {
        path: "Name".to_owned(),
        message: format!("the job is named `{name}`, but its znode is that of `{id}`"),
        hint: Some("write the same name, and use a znode for each job".to_owned()),
    })
}
