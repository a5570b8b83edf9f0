//! Reads Cronken's form of a job. `timing` reads `cron_args`.

use cronhold_core::Job;
use cronhold_core::NameMap;
use cronhold_core::job::{JobSchedule, LockPolicy, Program};
use cronhold_core::template::Template;
use cronhold_jobfile::foreign::ForeignForm;
use cronhold_jobfile::foreign::object::{FormField, FormMistakes, found, optional, path};
use cronhold_schedule::Span;
use serde_json::Value;

use super::timing::TimingReader;
use super::{CRON_ARGS, Dialect, JOB_ARGS, JOB_STATE, ParsedDefinition, ReadOptions, castle};

/// The longest `ttl`, one day. A lock that outlives its holder for longer is a mistake.
pub(super) const TTL_MAX_SECS: u64 = 86_400;

/// Reads a definition from its JSON text.
pub fn read(text: &str, options: &ReadOptions<'_>) -> ParsedDefinition {
    if options.dialect == Dialect::Castle {
        return castle::read(text);
    }
    match ForeignForm::parse(text) {
        Ok(form) => read_form(&form, options),
        Err(mistake) => ParsedDefinition {
            job: None,
            mistakes: vec![mistake],
            notes: Vec::new(),
            depends_on_dialect: false,
            validation_errors: None,
            form: ForeignForm::default(),
        },
    }
}

/// Reads a definition from its form.
pub fn read_form(form: &ForeignForm, options: &ReadOptions<'_>) -> ParsedDefinition {
    if options.dialect == Dialect::Castle {
        return castle::read_form(form);
    }
    let mut mistakes = FormMistakes::default();
    let mut notes = Vec::new();
    let cron_args = mistakes.required(&form.0, "", CRON_ARGS, "write {\"cronstring\": \"0 3 * * *\"}");
    let cron_args = cron_args.and_then(|field| mistakes.object(field));
    let mut depends_on_dialect = false;
    let spec = cron_args.and_then(|map| {
        let (mistakes, notes, depends_on_dialect) = (&mut mistakes, &mut notes, &mut depends_on_dialect);
        TimingReader { map, options, mistakes, notes, depends_on_dialect }.read()
    });
    let job_args = mistakes.required(&form.0, "", JOB_ARGS, "write {\"cmd\": \"…\", \"lock\": true, \"ttl\": 10}");
    let job_args = job_args.and_then(|field| mistakes.object(field));
    let program = job_args.and_then(|map| {
        let field = mistakes.required(map, JOB_ARGS, "cmd", "write the command that the job runs")?;
        let cmd = mistakes.some_text(field, "write the command that the job runs")?;
        // Cronken has no templates, so braces belong to the command.
        Some(Program::Shell(Template::literal(cmd)))
    });
    let lock = job_args.and_then(|map| {
        let field = mistakes.required(map, JOB_ARGS, "lock", "write true, false or the name of a lock")?;
        lock(field, &mut mistakes)
    });
    let ttl = job_args.and_then(|map| {
        let field = mistakes.required(map, JOB_ARGS, "ttl", "write seconds such as 10")?;
        mistakes.seconds(field, 1, TTL_MAX_SECS).map(Span::from_secs)
    });
    let state = optional(&form.0, "", JOB_STATE).and_then(|field| mistakes.object(field));
    let paused = state.and_then(|map| optional(map, JOB_STATE, "paused")).and_then(|field| mistakes.bool(field));
    let validation_errors = state.and_then(|map| map.get("validation_errors")).and_then(errors_text);
    let job = match (program, spec, lock, ttl) {
        (Some(program), Some(spec), Some(lock), Some(ttl)) if mistakes.0.is_empty() => {
            let schedule = JobSchedule { name: None, spec, args: NameMap::new(), enabled: true, stop: None };
            Some(Job { schedules: vec![schedule], lock, ttl, paused: paused.unwrap_or(false), ..Job::new(program) })
        }
        _ => None,
    };
    ParsedDefinition { job, mistakes: mistakes.0, notes, depends_on_dialect, validation_errors, form: form.clone() }
}

fn lock(field: FormField<'_>, mistakes: &mut FormMistakes) -> Option<LockPolicy> {
    match field.value {
        Value::Bool(true) => Some(LockPolicy::Job),
        // Cronken reads an empty name as no lock.
        Value::Bool(false) => Some(LockPolicy::None),
        Value::String(name) if name.is_empty() => Some(LockPolicy::None),
        Value::String(name) => Some(LockPolicy::Named(name.clone())),
        other => {
            let message = format!("`lock` must be true, false or a name, but is {}", found(other));
            mistakes.report(path(JOB_ARGS, "lock"), message, "write true for a lock named like the job")
        }
    }
}

/// The errors of a validation: a text, or any other value that its writer left there.
fn errors_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
