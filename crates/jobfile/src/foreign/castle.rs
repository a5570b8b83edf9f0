//! castle-cron's form of a job: its Job struct as JSON with the struct's own field names.
//!
//! It has no pause. `HasError` means "do not run", so that a paused job is written with it and read back from it.

use cronhold_core::NameMap;
use cronhold_core::job::{JobSchedule, Program};
use cronhold_core::template::Template;
use cronhold_core::{Job, JobId};
use cronhold_schedule::{Instant, ScheduleSpec, Timing};
use serde_json::{Value, json};

use super::object::{FormMistakes, differences, optional};
use super::{FieldMistake, ForeignForm, WrittenForm};

/// Go's zero time, which stands for no next time.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The command of a job that castle-cron cannot run, because not all of its versions respect `HasError`.
const ELSEWHERE: &str = "false";

/// The fields of the Job struct, in its order.
const FIELDS: [&str; 6] = ["Name", "Cmd", "Args", "HasError", "NextRuntime", "Schedule"];

/// A field of Cronhold that says why `HasError` is set although the job is not paused.
pub const NOTE: &str = "CronholdNote";

/// The hint for data that is not JSON.
const GOB_HINT: &str =
    "a job is one JSON object; `cronhold import castle-cron` reads what castle-cron itself has written";

/// Keys that do not change how a job runs.
const DESCRIPTIVE_KEYS: [&str; 3] = ["description", "labels", "retain"];

/// The result of reading one form.
#[derive(Debug, Clone, PartialEq)]
pub struct CastleRead {
    /// The job's id, if the name is a valid one.
    pub id: Option<JobId>,
    /// The job. Invariant: it is there exactly when there is no mistake.
    pub job: Option<Job>,
    /// The next start that castle-cron has computed.
    pub next: Option<Instant>,
    pub mistakes: Vec<FieldMistake>,
    /// The form that was read; writing keeps its unknown fields.
    pub form: ForeignForm,
}

/// Reads the JSON of one job.
pub fn read(text: &str) -> CastleRead {
    match ForeignForm::parse(text) {
        Ok(form) => read_form(&form),
        Err(mistake) => {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            let hint = if is_json { mistake.hint } else { Some(GOB_HINT.to_owned()) };
            let mistakes = vec![FieldMistake { hint, ..mistake }];
            CastleRead { id: None, job: None, next: None, mistakes, form: ForeignForm::default() }
        }
    }
}

/// Reads a form.
pub fn read_form(form: &ForeignForm) -> CastleRead {
    let mut mistakes = FormMistakes::default();
    let mut text = |key: &'static str, hint: &str| {
        let field = mistakes.required(&form.0, "", key, hint)?;
        mistakes.some_text(field, hint)
    };
    let name = text("Name", "write the name of the job");
    let cmd = text("Cmd", "write the program that the job runs");
    let schedule = text("Schedule", "such as `0 3 * * *`");
    let id = name.and_then(|name| mistakes.parsed("Name".to_owned(), JobId::parse(name)));
    let spec = schedule.and_then(|text| mistakes.parsed("Schedule".to_owned(), ScheduleSpec::parse(text)));
    let args = args(form, &mut mistakes);
    let paused = optional(&form.0, "", "HasError").map_or(Some(false), |field| mistakes.bool(field));
    let next = optional(&form.0, "", "NextRuntime").and_then(|field| {
        let text = mistakes.text(field, ZERO_TIME)?;
        mistakes.parsed(field.path(), Instant::parse(text))
    });
    let next = next.filter(|next| *next != zero_time());
    let job = match (cmd, spec, args, paused) {
        (Some(cmd), Some(spec), Some(args), Some(paused)) if mistakes.0.is_empty() => {
            // castle-cron has neither a shell nor templates, so all words are literal.
            let words = std::iter::once(cmd).chain(args).map(Template::literal).collect();
            let schedule = JobSchedule { name: None, spec, args: NameMap::new(), enabled: true, stop: None };
            Some(Job { schedules: vec![schedule], paused, ..Job::new(Program::Exec(words)) })
        }
        _ => None,
    };
    CastleRead { id, job, next, mistakes: mistakes.0, form: form.clone() }
}

/// Writes a job that runs next at `next`. `found` is the current form, whose unknown fields are kept.
pub fn write(id: &JobId, job: &Job, next: Option<Instant>, found: Option<&ForeignForm>) -> WrittenForm {
    let mut form = found.cloned().unwrap_or_default();
    let before = found.and_then(|form| read_form(form).job);
    let same_schedule = before.is_some_and(|before| before.schedules == job.schedules);
    let mut put = |key: &str, value: Value| drop(form.0.insert(key.to_owned(), value));
    put("Name", json!(id.as_str()));
    let words = words(&job.program);
    put("Cmd", json!(words.first().copied().unwrap_or(ELSEWHERE)));
    put("Args", json!(words.get(1..).unwrap_or_default()));
    if !same_schedule {
        let text = job.schedules.first().map_or_else(|| "@never".to_owned(), |schedule| schedule.spec.to_string());
        put("Schedule", json!(text));
    }
    put("NextRuntime", json!(next_text(next)));
    put("HasError", json!(job.paused));
    let mut unexpressed = match read_form(&form).job {
        Some(read) => differences(job, &read),
        None => vec!["program".to_owned()],
    };
    if !unexpressed.iter().any(|key| key == "schedule") && !job.schedules.iter().all(|schedule| runs(&schedule.spec)) {
        unexpressed.push("schedule".to_owned());
        unexpressed.sort();
    }
    form.0.remove(NOTE);
    let essential: Vec<&str> =
        unexpressed.iter().map(String::as_str).filter(|key| !DESCRIPTIVE_KEYS.contains(key)).collect();
    if !essential.is_empty() {
        let note = format!("Cronhold runs this job, and castle-cron cannot express its {}", essential.join(", "));
        form.0.insert("HasError".to_owned(), json!(true));
        form.0.insert(NOTE.to_owned(), json!(note));
    }
    WrittenForm { form, unexpressed }
}

/// The JSON of a form: the fields of the struct in its order, then Cronhold's own, then all others.
pub fn to_text(form: &ForeignForm) -> String {
    let first = FIELDS.iter().chain([&NOTE]).filter_map(|key| Some((*key, form.0.get(*key)?)));
    let is_other = |key: &str| key != NOTE && !FIELDS.contains(&key);
    let others = form.0.iter().filter(|(key, _)| is_other(key)).map(|(key, value)| (key.as_str(), value));
    let pairs: Vec<String> = first.chain(others).map(|(key, value)| format!("{}:{value}", json!(key))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// Marks a form that has mistakes, so that no server runs the job, and says why.
pub fn with_error(form: &ForeignForm, why: &str) -> ForeignForm {
    let mut form = form.clone();
    form.0.insert("HasError".to_owned(), json!(true));
    form.0.insert(NOTE.to_owned(), json!(why));
    form
}

/// The text with this time of the next start. `None` if the text has that time already, or is not a form.
pub fn with_next(text: &str, next: Option<Instant>) -> Option<String> {
    let mut form = ForeignForm::parse(text).ok()?;
    let is_same = form.0.get("NextRuntime").and_then(Value::as_str).and_then(|text| Instant::parse(text).ok())
        == Some(next.unwrap_or_else(zero_time));
    if is_same {
        return None;
    }
    form.0.insert("NextRuntime".to_owned(), json!(next_text(next)));
    Some(to_text(&form))
}

/// The text as clients can change it: the next time is computed, and does not count.
pub fn without_next(text: &str) -> String {
    let Ok(mut form) = ForeignForm::parse(text) else { return text.to_owned() };
    form.0.remove("NextRuntime");
    to_text(&form)
}

fn next_text(next: Option<Instant>) -> String {
    next.map_or_else(|| ZERO_TIME.to_owned(), |next| next.to_string())
}

fn zero_time() -> Instant {
    Instant::parse(ZERO_TIME).expect("it is a valid instant")
}

/// `Args`, which Go writes as `null` when there are none.
fn args<'f>(form: &'f ForeignForm, mistakes: &mut FormMistakes) -> Option<Vec<&'f str>> {
    let Some(field) = optional(&form.0, "", "Args") else { return Some(Vec::new()) };
    let Value::Array(items) = field.value else {
        return mistakes.wrong(field, "a list of texts", "such as [\"--keep\", \"14\"]");
    };
    let before = mistakes.0.len();
    let mut args = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::String(text) => args.push(text.as_str()),
            other => {
                let message = format!("an arg must be a text, but is {}", super::object::found(other));
                mistakes.report::<()>(format!("Args[{index}]"), message, "write it in quotes");
            }
        }
    }
    (mistakes.0.len() == before).then_some(args)
}

/// Program and args, if they are the same for all runs.
fn words(program: &Program) -> Vec<&str> {
    match program {
        Program::Exec(words) if words.iter().all(Template::is_literal) => words.iter().map(Template::text).collect(),
        _ => Vec::new(),
    }
}

/// Whether castle-cron itself understands a schedule: a cron expression without our own additions.
fn runs(spec: &ScheduleSpec) -> bool {
    let Timing::Cron(expr) = &spec.timing else { return false };
    let additions = expr.depends_on_job() || expr.to_string().contains("L-");
    *spec == ScheduleSpec::new(spec.timing.clone()) && !additions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> JobId {
        JobId::parse(text).expect(text)
    }

    fn job_of(text: &str) -> Job {
        crate::read_job("job.yaml", text, &crate::Options::default()).job.expect(text)
    }

    fn value(schedule: &str) -> Value {
        json!({
            "Name": "rotate", "Cmd": "echo", "Args": ["{{ x }}", "$HOME"], "HasError": false,
            "NextRuntime": "2026-03-29T03:00:00+02:00", "Schedule": schedule,
        })
    }

    #[test]
    fn castle_cron_job_is_read() {
        let read = read(&value("0 0 3 * * * 2026-2030").to_string());
        assert_eq!(read.mistakes, []);
        assert_eq!(read.id, Some(id("rotate")));
        assert_eq!(read.next, Instant::parse("2026-03-29T01:00:00Z").ok());
        let job = read.job.expect("a job");
        assert_eq!(job.program, Program::Exec(["echo", "{{ x }}", "$HOME"].map(Template::literal).to_vec()));
        assert_eq!(job.schedules[0].spec.to_string(), "0 3 * * * 2026-2030");
        let bare = json!({"Name": "a", "Cmd": "b", "Args": null, "NextRuntime": ZERO_TIME, "Schedule": "@daily"});
        let read = super::read(&bare.to_string());
        assert_eq!((read.mistakes, read.next), (Vec::new(), None));
    }

    #[test]
    fn all_mistakes_of_a_form_are_reported() {
        let eight = read(&value("0 0 3 * * * 2026 7").to_string());
        assert!(eight.job.is_none());
        assert!(
            eight.mistakes[0].to_string().starts_with("Schedule: a cron expression has 5, 6 or 7 fields, this has 8")
        );
        let wrong = json!({"Name": "a//b", "Cmd": "", "Args": ["x", 1], "HasError": "no", "NextRuntime": "soon"});
        let read = read(&wrong.to_string());
        let found: Vec<String> = read.mistakes.iter().map(ToString::to_string).collect();
        let expected = [
            "Cmd: `Cmd` is empty (write the program that the job runs)",
            "Schedule: `Schedule` is missing (such as `0 3 * * *`)",
            "Name: a job's id has an empty part (parts are separated by one `/`, with none at the beginning or end)",
            "Args[1]: an arg must be a text, but is the number 1 (write it in quotes)",
            "HasError: `HasError` must be true or false, but is the text `no`",
            "NextRuntime: `soon` is not an instant (write date, time and offset, such as 2026-03-29T01:30:00Z)",
        ];
        assert_eq!(found, expected);
        assert_eq!(super::read("7").mistakes[0].to_string(), "a job must be a JSON object, but is the number 7");
    }

    #[test]
    fn job_is_written_as_far_as_castle_cron_can_express_it() {
        for (yaml, schedule, unexpressed) in [
            ("{program: [x, y], schedule: '0 3 * * *'}", "0 3 * * *", ""),
            ("{program: [x, y], schedule: '0 0 3 * * 5#2 2030'}", "0 3 * * 5#2 2030", ""),
            ("{program: [x, y], schedule: '*/5 0 3 LW * * *'}", "*/5 0 3 LW * * *", ""),
            ("{program: [x, y], schedule: '@every 90s'}", "@every 1m30s", "schedule"),
            ("{program: [x, y], schedule: '0 3 L-2 * *'}", "0 3 L-2 * *", "schedule"),
            ("{program: [x, y], schedule: 'H 3 * * *'}", "H 3 * * *", "schedule"),
            ("{program: [x, y], schedule: {cron: '0 3 * * *', timezone: UTC}}", "CRON_TZ=UTC 0 3 * * *", "schedule"),
            ("{program: [x, y], lock: true}", "@never", "lock schedule"),
            ("{program: x y, schedule: '0 3 * * *'}", "0 3 * * *", "program"),
            ("{program: [x, '{{ job }}'], schedule: '0 3 * * *'}", "0 3 * * *", "program"),
        ] {
            let job = job_of(yaml);
            let next = Instant::parse("2026-03-29T01:00:00Z").ok();
            let written = write(&id("a"), &job, next, None);
            assert_eq!(written.unexpressed.join(" "), unexpressed, "{yaml}");
            let value = written.form.to_value();
            let stopped = !unexpressed.is_empty();
            let (cmd, args) = if unexpressed == "program" { ("false", json!([])) } else { ("x", json!(["y"])) };
            let mut expected = json!({
                "Name": "a", "Cmd": cmd, "Args": args, "HasError": stopped,
                "NextRuntime": "2026-03-29T01:00:00Z", "Schedule": schedule,
            });
            if stopped {
                expected[NOTE] = value[NOTE].clone();
                assert!(value[NOTE].is_string(), "{yaml}");
            }
            assert_eq!(value, expected, "{yaml}");
        }
    }

    #[test]
    fn unknown_fields_are_kept() {
        let mut found = value("@daily");
        found["Owner"] = json!("ops");
        found["NextRuntime"] = json!("2026-03-29T01:00:00Z");
        let form = ForeignForm::parse(&found.to_string()).expect("an object");
        let CastleRead { id, job, next, .. } = read_form(&form);
        let (id, job) = (id.expect("a name"), job.expect("a job"));
        assert_eq!(write(&id, &job, next, Some(&form)), WrittenForm { form: form.clone(), unexpressed: Vec::new() });
        let paused = Job { paused: true, ..job };
        let written = write(&id, &paused, None, Some(&form)).form.to_value();
        assert_eq!((&written["HasError"], &written["NextRuntime"]), (&json!(true), &json!(ZERO_TIME)));
        assert_eq!((&written["Schedule"], &written["Owner"]), (&json!("@daily"), &json!("ops")));
    }

    #[test]
    fn texts_have_the_fields_of_the_struct_first() {
        let text = r#"{"Alpha":[1],"Schedule":"@daily","Cmd":"x","Name":"a","CronholdNote":"n"}"#;
        let next = Instant::parse("2026-03-29T01:00:00Z").ok();
        let written = with_next(text, next).expect("it has no time yet");
        let expected = r#"{"Name":"a","Cmd":"x","NextRuntime":"2026-03-29T01:00:00Z","Schedule":"@daily","CronholdNote":"n","Alpha":[1]}"#;
        assert_eq!(written, expected);
        assert_eq!(with_next(&written, next), None);
        let other_offset = written.replace("01:00:00Z", "03:00:00+02:00");
        assert_eq!(with_next(&other_offset, next), None, "the same time has other spellings");
        assert!(with_next(&written, None).expect("it has a time").contains(ZERO_TIME));
        assert_eq!(without_next(&written), without_next(text));
        assert_eq!(with_next("garbage", next), None);
    }

    proptest! {
        #[test]
        fn written_forms_read_back(
            words in proptest::collection::vec("\\PC{1,8}", 1..4),
            cron in "([0-9] |\\*/[1-9] )[1-9] (\\*|L|[1-9]W|L-2) (\\*|[1-9]) (\\*|[0-6]L|[1-5])( 20[3-9]0)?",
            secs in 0..4_000_000_000i64,
            paused: bool,
        ) {
            let schedule = job_of("{program: x, schedule: '@daily'}").schedules.remove(0);
            let spec = ScheduleSpec::parse(&cron).expect("a cron text");
            let program = Program::Exec(words.iter().map(Template::literal).collect());
            let job = Job { schedules: vec![JobSchedule { spec, ..schedule }], paused, ..Job::new(program) };
            let next = Some(Instant::from_secs(secs));
            let written = write(&id("a/b"), &job, next, None);
            let read = read(&written.form.to_string());
            prop_assert_eq!(read.next, next);
            if written.unexpressed.is_empty() {
                prop_assert_eq!(read.job, Some(job));
            } else {
                prop_assert_eq!(&written.form.to_value()["HasError"], true);
            }
        }
    }
}
