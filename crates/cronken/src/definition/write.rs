//! Writes a job in Cronken's form. A field that already means the same keeps its spelling.

use cronhold_core::Job;
use cronhold_core::job::{JobSchedule, LockPolicy, Program};
use cronhold_jobfile::foreign::object::differences;
use cronhold_jobfile::foreign::{ForeignForm, WrittenForm};
use cronhold_schedule::civil::WEEKDAYS;
use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{ScheduleSpec, Span, Timing};
use serde_json::{Map, Value, json};

use super::read::TTL_MAX_SECS;
use super::timing::surprises;
use super::{CRON_ARGS, JOB_ARGS, JOB_STATE, MORE_CRON_ARGS, NEVER, ReadOptions, read_form};

/// The command of a job that Cronken cannot run. An event can trigger it there regardless of its schedule.
const NOT_FOR_CRONKEN: &str = "echo 'only Cronhold can run this job' >&2; exit 1";

/// The key in `job_state` under which a validation notes errors.
const ERRORS: &str = "validation_errors";

/// Keys that do not change how a job runs. Cronken has no field for them, and runs the job correctly without.
const DESCRIPTIVE_KEYS: [&str; 3] = ["description", "labels", "retain"];

/// Writes a job. `found` is the present form; its unknown fields stay.
///
/// A cron expression is written with weekdays by name, because both dialects read these as the same days.
pub fn write(job: &Job, found: Option<&ForeignForm>, options: &ReadOptions<'_>) -> WrittenForm {
    let mut form = found.cloned().unwrap_or_default();
    let before = found.and_then(|form| read_form(form, options).job);
    let before = before.as_ref();
    let same_schedule =
        before.is_some_and(|before| before.schedules == job.schedules || says_the_same(&form, job, options));
    let mut schedule = same_schedule.then(|| form.object(CRON_ARGS).clone());
    schedule = schedule.or_else(|| only_spec(job).and_then(cron_args));
    if before.is_none_or(|before| before.program != job.program) {
        let cmd = literal(&job.program).unwrap_or(NOT_FOR_CRONKEN);
        form.object(JOB_ARGS).insert("cmd".to_owned(), json!(cmd));
    }
    if before.is_none_or(|before| before.lock != job.lock) {
        form.object(JOB_ARGS).insert("lock".to_owned(), lock(&job.lock));
    }
    if before.is_none_or(|before| before.ttl != job.ttl) {
        form.object(JOB_ARGS).insert("ttl".to_owned(), json!(job.ttl.secs().clamp(1, TTL_MAX_SECS)));
    }
    if before.map_or(job.paused, |before| before.paused != job.paused) {
        form.object(JOB_STATE).insert("paused".to_owned(), json!(job.paused));
    }
    // The errors that a validation has noted were those of the previous definition.
    if before != Some(job)
        && let Some(Value::Object(state)) = form.0.get_mut(JOB_STATE)
    {
        state.remove(ERRORS);
    }
    let mut unexpressed = other_differences(job, &form, options);
    if schedule.is_none() {
        unexpressed.push("schedule".to_owned());
        unexpressed.sort();
    }
    let says_how_to_run = unexpressed.iter().all(|key| DESCRIPTIVE_KEYS.contains(&key.as_str()));
    match schedule.filter(|_| says_how_to_run) {
        Some(_) if same_schedule => {}
        schedule => replace_cron_args(&mut form, schedule.unwrap_or_else(never)),
    }
    WrittenForm { form, unexpressed }
}

/// Removes the errors that a validation has noted, for a form that is valid now.
pub fn without_errors(mut form: ForeignForm) -> ForeignForm {
    if let Some(Value::Object(state)) = form.0.get_mut(JOB_STATE)
        && state.remove(ERRORS).is_some()
        && state.is_empty()
    {
        form.0.remove(JOB_STATE);
    }
    form
}

/// Adds the errors of a validation. Returns `None` if another validation has noted errors already.
pub fn with_errors(form: &ForeignForm, errors: &str) -> Option<ForeignForm> {
    let mut form = form.clone();
    let state = form.object(JOB_STATE);
    if state.contains_key(ERRORS) {
        return None;
    }
    state.insert(ERRORS.to_owned(), json!(errors));
    Some(form)
}

/// Whether the job has its schedule from this form, read in the other dialect, and both dialects read the same times.
fn says_the_same(form: &ForeignForm, job: &Job, options: &ReadOptions<'_>) -> bool {
    let read = read_form(form, &options.with_other_dialect());
    !read.depends_on_dialect && read.job.is_some_and(|read| read.schedules == job.schedules)
}

/// The keys of a job file, without the schedule, that the form cannot express.
fn other_differences(job: &Job, form: &ForeignForm, options: &ReadOptions<'_>) -> Vec<String> {
    let mut probe = form.clone();
    replace_cron_args(&mut probe, never());
    let Some(read) = read_form(&probe, options).job else {
        return vec!["program".to_owned()];
    };
    differences(&Job { schedules: Vec::new(), ..job.clone() }, &Job { schedules: Vec::new(), ..read })
}

/// The timing of a job with exactly one schedule that has nothing but a timing.
fn only_spec(job: &Job) -> Option<&ScheduleSpec> {
    match job.schedules.as_slice() {
        [JobSchedule { name: None, spec, args, enabled: true, stop: None }] if args.is_empty() => Some(spec),
        _ => None,
    }
}

fn cron_args(spec: &ScheduleSpec) -> Option<Map<String, Value>> {
    if spec.calendar.is_some() || spec.gap.is_some() || spec.fold.is_some() {
        return None;
    }
    let plain = *spec == ScheduleSpec::new(spec.timing.clone());
    match &spec.timing {
        Timing::Never if plain => Some(never()),
        Timing::Cron(expr) if plain => {
            let text = named_weekdays(&expr.to_string())?;
            surprises(&text).is_empty().then(|| cronstring(&text))
        }
        Timing::Fields(fields) => with_bounds(spec, fields),
        _ => None,
    }
}

/// Cron fields with zone, bounds and jitter; `None` if the form cannot express them.
fn with_bounds(spec: &ScheduleSpec, fields: &FieldsExpr) -> Option<Map<String, Value>> {
    let entries = fields.entries().into_iter();
    let mut map: Map<String, Value> = entries.map(|(name, text)| (name.to_owned(), json!(text))).collect();
    let mut put = |key: &str, value: Option<Value>| map.extend(value.map(|value| (key.to_owned(), value)));
    put("timezone", spec.zone.as_ref().map(|zone| json!(zone)));
    put("start_date", spec.start.map(|bound| json!(bound.to_string())));
    put("end_date", spec.end.map(|bound| json!(bound.to_string())));
    put("jitter", (spec.jitter != Span::ZERO).then(|| json!(spec.jitter.secs())));
    // A date as an end means its last moment to Cronhold and its first to Cronken. Cronken's jitter has whole seconds.
    let says_it = !matches!(spec.end, Some(cronhold_schedule::TimeBound::Day(_))) && spec.jitter.is_whole_secs();
    says_it.then_some(map)
}

/// Rewrites an expression of five fields with weekdays by name, which cron and Cronken read alike.
fn named_weekdays(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else { return None };
    if weekday == "*" {
        return Some(text.to_owned());
    }
    let mut names: Vec<&str> = Vec::new();
    for entry in weekday.split(',') {
        let (range, step) = entry.split_once('/').unwrap_or((entry, "1"));
        let (first, last) = if range == "*" { ("0", "6") } else { range.split_once('-').unwrap_or((range, range)) };
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        let days = (first..=last.min(6)).step_by(step.parse().ok().filter(|step| *step > 0)?);
        names.extend(days.map(|day| &WEEKDAYS[day][..3]));
    }
    let weekday = names.join(",").to_lowercase();
    Some(format!("{minute} {hour} {day} {month} {weekday}"))
}

/// Replaces the fields that define the time, and keeps unknown ones.
fn replace_cron_args(form: &mut ForeignForm, new: Map<String, Value>) {
    let map = form.object(CRON_ARGS);
    map.retain(|key, _| !FieldsExpr::NAMES.into_iter().chain(MORE_CRON_ARGS).any(|known| known == key));
    map.extend(new);
}

fn cronstring(text: &str) -> Map<String, Value> {
    Map::from_iter([("cronstring".to_owned(), json!(text))])
}

fn never() -> Map<String, Value> {
    cronstring(NEVER)
}

fn literal(program: &Program) -> Option<&str> {
    match program {
        Program::Shell(line) if line.is_literal() && !line.text().trim().is_empty() => Some(line.text()),
        _ => None,
    }
}

fn lock(lock: &LockPolicy) -> Value {
    match lock {
        LockPolicy::None => json!(false),
        LockPolicy::Job => json!(true),
        LockPolicy::Named(name) => json!(name),
    }
}
