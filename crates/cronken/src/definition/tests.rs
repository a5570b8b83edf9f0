//! Tables of definitions: what they are read as, their mistakes and notes, and that writing loses nothing.

use cronhold_core::job::{NodeSelector, Program};
use cronhold_core::template::Template;
use cronhold_jobfile::foreign::WrittenForm;
use cronhold_jobfile::write_job;
use cronhold_schedule::{ScheduleSpec, ZoneRegistry};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn with<T>(dialect: Dialect, f: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
    f(&ReadOptions { zones: &ZoneRegistry::bundled(), dialect })
}

fn form(cron_args: &Value) -> ForeignForm {
    let value = json!({"cron_args": cron_args, "job_args": {"cmd": "echo {{ x }}", "lock": true, "ttl": 10}});
    ForeignForm::parse(&value.to_string()).expect("an object")
}

/// The schedule that `cron_args` are read as, or the mistakes.
fn schedule(cron_args: &Value, dialect: Dialect) -> String {
    let read = with(dialect, |options| read_form(&form(cron_args), options));
    assert_eq!(read.job.is_some(), read.mistakes.is_empty());
    match read.job {
        Some(job) => job.schedules[0].spec.to_string(),
        None => read.mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
    }
}

fn written(job: &Job, found: Option<&ForeignForm>) -> WrittenForm {
    with(Dialect::Cron, |options| write(job, found, options))
}

fn job_of(text: &str) -> Job {
    cronhold_jobfile::read_job("job.yaml", text, &cronhold_jobfile::Options::default()).job.expect(text)
}

#[test]
fn examples_of_cronkens_documentation_are_read() {
    let text = r#"{"cron_args": {"second": "*/2"}, "job_args": {"cmd": "echo every_two_seconds", "lock": true, "ttl": 10},
        "job_state": {"paused": true, "validation_errors": "old"}}"#;
    let read = with(Dialect::Cron, |options| read(text, options));
    assert_eq!(read.mistakes, []);
    assert_eq!(read.validation_errors.as_deref(), Some("old"));
    let expected = json!({
        "schedule": [{"second": "*/2"}], "program": "echo every_two_seconds", "lock": true, "paused": true,
    });
    assert_eq!(write_job(&read.job.expect("a job")), expected);
    assert_eq!(schedule(&json!({"cronstring": "* * * * *"}), Dialect::Cron), "* * * * *");
}

#[test]
fn braces_in_commands_are_not_templates() {
    let value = json!({"cron_args": {"hour": 3}, "job_args": {"cmd": "echo {{ x }} {%", "lock": "db", "ttl": "7"}});
    let read = with(Dialect::Cron, |options| read(&value.to_string(), options));
    let job = read.job.expect("a job");
    assert_eq!(job.program, Program::Shell(Template::literal("echo {{ x }} {%")));
    assert_eq!(job.lock, cronhold_core::job::LockPolicy::Named("db".to_owned()));
    assert_eq!(job.ttl.secs(), 7);
}

#[test]
fn cron_args_are_read_as_schedules() {
    for (cron_args, expected) in [
        (json!({"cronstring": "@daily"}), "0 0 * * *"),
        (json!({"cronstring": "@minutely"}), "* * * * *"),
        (json!({"cronstring": "@never"}), "@never"),
        (json!({"cronstring": "0 0 * * 0", "hour": null}), "0 0 * * 0"),
        (json!({"cronstring": "0 0 * * 0", "hour": 4}), "0 0 * * 0"),
        (json!({"hour": 14, "day": "last"}), r#"{day: "last", hour: "14"}"#),
        (
            json!({"hour": "3", "timezone": "europe/berlin", "jitter": 30, "start_date": "2026-03-29",
                   "end_date": "2026-05-01"}),
            r#"{hour: "3", timezone: "Europe/Berlin", start: "2026-03-29", end: "2026-05-01T00:00", jitter: "30s"}"#,
        ),
        (json!({"hour": "3", "end_date": "2026-05-01 10:00:00+02:00"}), r#"{hour: "3", end: "2026-05-01T08:00:00Z"}"#),
    ] {
        assert_eq!(schedule(&cron_args, Dialect::Cron), expected, "{cron_args}");
    }
}

#[test]
fn cronken_dialect_counts_weekdays_from_monday() {
    for (cronstring, expected) in [
        ("0 0 * * 0", r#"{month: "*", day: "*", day_of_week: "0", hour: "0", minute: "0"}"#),
        ("@weekly", r#"{month: "*", day: "*", day_of_week: "0", hour: "0", minute: "0"}"#),
        ("0 0 13 * fri", r#"{month: "*", day: "13", day_of_week: "4", hour: "0", minute: "0"}"#),
        ("0 0 L * *", "cron_args.cronstring: `L` is not a value for day"),
    ] {
        let found = schedule(&json!({"cronstring": cronstring}), Dialect::Cronken);
        assert!(found.starts_with(expected), "{cronstring}: {found}");
    }
}

#[test]
fn text_that_both_dialects_read_alike_keeps_its_spelling() {
    for (cron_args, depends) in [
        (json!({"cronstring": "@daily"}), false),
        (json!({"cronstring": "0 3 * * MON-fri"}), false),
        (json!({"cronstring": "@never"}), false),
        (json!({"day_of_week": 0}), false),
        (json!({"cronstring": "@weekly"}), true),
        (json!({"cronstring": "0 3 * * 1"}), true),
        (json!({"cronstring": "0 0 13 * fri"}), true),
    ] {
        let form = form(&cron_args);
        for dialect in [Dialect::Cron, Dialect::Cronken] {
            let read = with(dialect, |options| read_form(&form, options));
            assert_eq!(read.depends_on_dialect, depends, "{cron_args}");
            let job = read.job.expect("a job");
            let again = with(dialect.other(), |options| write(&job, Some(&form), options));
            assert_eq!(again.form == form, !depends, "{cron_args}: {}", again.form);
        }
    }
}

#[test]
fn differences_between_dialects_are_noted() {
    for (cron_args, expected) in [
        (json!({"cronstring": "0 0 * * sun"}), ""),
        (json!({"cronstring": "0 0 * * mon-fri/2"}), ""),
        (json!({"cronstring": "0 0 * * 0"}), "weekday 0 is Sunday here"),
        (json!({"cronstring": "0 0 * * */2"}), "weekday 0 is Sunday here"),
        (json!({"cronstring": "@weekly"}), "weekday 0 is Sunday here"),
        (json!({"cronstring": "0 0 13 * fri"}), "Cronken itself wants both"),
        (json!({"cronstring": "0 0 L * *"}), "Cronken itself cannot read it"),
        (json!({"cronstring": "0 0 * * *", "timezone": "UTC"}), "cron_args.timezone: it has no effect beside"),
        (
            json!({"minute": 0, "hours": 3}),
            "cron_args.hours: there is no such field and it has no effect; did you mean",
        ),
    ] {
        let read = with(Dialect::Cron, |options| read_form(&form(&cron_args), options));
        assert_eq!(read.mistakes, [], "{cron_args}");
        let notes: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), usize::from(!expected.is_empty()), "{cron_args}: {notes:?}");
        assert!(notes.concat().contains(expected), "{cron_args}: {notes:?}");
    }
}

#[test]
fn all_mistakes_of_a_definition_are_reported() {
    for (text, expected) in [
        ("{", "it is not JSON: EOF while parsing an object at line 1 column 1 (a job is one JSON object such as {…})"),
        ("[]", "a job must be a JSON object, but is a list"),
        (
            "{}",
            "cron_args: `cron_args` is missing (write {\"cronstring\": \"0 3 * * *\"}) | \
             job_args: `job_args` is missing (write {\"cmd\": \"…\", \"lock\": true, \"ttl\": 10})",
        ),
        (
            r#"{"cron_args": {}, "job_args": {"cmd": " "}, "job_state": {"paused": "yes"}}"#,
            "cron_args: no time is given (write `cronstring`, or one of year, month, day, week, day_of_week, hour, \
             minute, second) | \
             job_args.cmd: `cmd` is empty (write the command that the job runs) | \
             job_args.lock: `lock` is missing (write true, false or the name of a lock) | \
             job_args.ttl: `ttl` is missing (write seconds such as 10) | \
             job_state.paused: `paused` must be true or false, but is the text `yes`",
        ),
        (
            r#"{"cron_args": {"hours": "3"}, "job_args": {"cmd": "x", "lock": true, "ttl": 1}}"#,
            "cron_args: no time is given (write `hour` for `hours`)",
        ),
        (
            r#"{"cron_args": {"cronstring": "@dayly"}, "job_args": {"cmd": "x", "lock": 1, "ttl": 0}}"#,
            "cron_args.cronstring: `@dayly` is not a macro of Cronken (did you mean `@daily`?) | \
             job_args.lock: `lock` must be true, false or a name, but is the number 1 \
             (write true for a lock named like the job) | \
             job_args.ttl: `ttl` must be 1 to 86400 seconds",
        ),
        (
            r#"{"cron_args": {"cronstring": "0 0 * * * *"}, "job_args": {"cmd": "x", "lock": false, "ttl": 1.5}}"#,
            "cron_args.cronstring: a cronstring has 5 fields, this has 6 (minute hour day-of-month month day-of-week; \
             `second` and `year` are fields beside it) | \
             job_args.ttl: `ttl` must be a whole number of seconds, but is the number 1.5 (such as 10)",
        ),
    ] {
        let read = with(Dialect::Cron, |options| read(text, options));
        assert!(read.job.is_none());
        let found: Vec<String> = read.mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" | "), expected, "{text}");
    }
    let fields = schedule(
        &json!({"hour": 24, "minute": [1], "timezone": "Berlin", "jitter": -1, "end_date": "soon"}),
        Dialect::Cron,
    );
    for path in ["cron_args.hour", "cron_args.minute", "cron_args.timezone", "cron_args.jitter", "cron_args.end_date"] {
        assert!(fields.contains(path), "{path}: {fields}");
    }
}

#[test]
fn job_that_cronken_can_express_reads_back() {
    for (yaml, cron_args) in [
        ("{program: x, schedule: '0 18 * * 1-5'}", json!({"cronstring": "0 18 * * mon,tue,wed,thu,fri"})),
        ("{program: x, schedule: '0 18 * * */2'}", json!({"cronstring": "0 18 * * sun,tue,thu,sat"})),
        ("{program: x, schedule: '@daily'}", json!({"cronstring": "0 0 * * *"})),
        ("{program: x, schedule: '@never'}", json!({"cronstring": "@never"})),
        (
            "{program: x, schedule: {hour: 3, timezone: Europe/Berlin, jitter: 1m, start: 2026-01-01}}",
            json!({"hour": "3", "timezone": "Europe/Berlin", "jitter": 60, "start_date": "2026-01-01"}),
        ),
    ] {
        let job = job_of(yaml);
        let WrittenForm { form, unexpressed } = written(&job, None);
        assert_eq!(unexpressed, [] as [&str; 0], "{yaml}");
        let value = form.to_value();
        assert_eq!(
            value,
            json!({"cron_args": cron_args, "job_args": {"cmd": "x", "lock": false, "ttl": 10}}),
            "{yaml}"
        );
        assert_eq!(with(Dialect::Cron, |options| read_form(&form, options)).job, Some(job), "{yaml}");
    }
}

#[test]
fn job_that_cronken_cannot_express_is_written_as_never_due() {
    for (yaml, expected) in [
        ("{program: x, description: y, nodes: [z], schedule: '@daily'}", "description nodes"),
        ("{program: x, schedule: {every: 90s}}", "schedule"),
        ("{program: x, schedule: '0 0 * * * 2027'}", "schedule"),
        ("{program: x, schedule: '0 0 L * *'}", "schedule"),
        ("{program: x, schedule: '0 0 13 * 5'}", "schedule"),
        ("{program: x, schedule: '0 0 * * 5#2'}", "schedule"),
        ("{program: x, schedule: 'H 3 * * *'}", "schedule"),
        ("{program: x, schedule: {cron: '0 3 * * *', timezone: UTC}}", "schedule"),
        ("{program: x, schedule: {hour: 3, end: 2026-01-01}}", "schedule"),
        ("{program: x, schedule: {hour: 3, calendar: Mon-Fri}}", "schedule"),
        ("{program: x, schedule: {hour: 3, enabled: false}}", "schedule"),
        ("{program: x, schedule: [{hour: 3}, {hour: 4}]}", "schedule"),
        ("{program: x}", "schedule"),
        ("{program: 'x {{ job }}', schedule: '@daily'}", "program"),
        ("{program: [x], schedule: '@daily', ttl: 1500ms}", "program ttl"),
        ("{program: x, schedule: '@daily', nodes: [a], retry: 3}", "nodes retry"),
    ] {
        let WrittenForm { form, unexpressed } = written(&job_of(yaml), None);
        assert_eq!(unexpressed.join(" "), expected, "{yaml}");
        let value = form.to_value();
        assert_eq!(value["cron_args"], json!({"cronstring": "@never"}), "{yaml}");
        let is_shell = !expected.contains("program");
        assert_eq!(value["job_args"]["cmd"] == json!("x"), is_shell, "{yaml}");
    }
}

#[test]
fn descriptive_keys_do_not_keep_cronken_from_running_a_job() {
    let job = job_of("{program: x, description: y, labels: [z], retain: {success: 5}, schedule: '0 3 * * *'}");
    let WrittenForm { form, unexpressed } = written(&job, None);
    assert_eq!(unexpressed, ["description", "labels", "retain"]);
    assert_eq!(form.to_value()["cron_args"], json!({"cronstring": "0 3 * * *"}));
}

#[test]
fn unknown_fields_and_spellings_are_kept() {
    let found = json!({
        "cron_args": {"cronstring": "0 0 * * 0", "x": 1},
        "job_args": {"cmd": "a", "lock": "", "ttl": "10", "owner": "ops"},
        "job_state": {"paused": false, "validation_errors": "bad"},
        "comment": ["kept"],
    });
    let found = ForeignForm::parse(&found.to_string()).expect("an object");
    let job = with(Dialect::Cron, |options| read_form(&found, options)).job.expect("a job");
    assert_eq!(written(&job, Some(&found)), WrittenForm { form: found.clone(), unexpressed: Vec::new() });

    let changed = Job { program: Program::Shell(Template::literal("b")), paused: true, ..job.clone() };
    let expected = json!({
        "cron_args": {"cronstring": "0 0 * * 0", "x": 1},
        "job_args": {"cmd": "b", "lock": "", "ttl": "10", "owner": "ops"},
        "job_state": {"paused": true},
        "comment": ["kept"],
    });
    assert_eq!(written(&changed, Some(&found)).form.to_value(), expected);

    let beyond = Job { nodes: NodeSelector::Labels(["x".to_owned()].into()), ..job };
    let WrittenForm { form, unexpressed } = written(&beyond, Some(&found));
    assert_eq!(unexpressed, ["nodes"]);
    assert_eq!(form.to_value()["cron_args"], json!({"cronstring": "@never", "x": 1}));
}

/// Cron texts of five fields, some of which Cronken cannot express.
fn cronstrings() -> impl Strategy<Value = String> {
    let minute = prop_oneof![Just("*".to_owned()), (0..60u32).prop_map(|n| n.to_string()), Just("*/7".to_owned())];
    let hour = prop_oneof![Just("*".to_owned()), (0..24u32).prop_map(|n| format!("{n}-23")), Just("1,5,9".to_owned())];
    let day = prop_oneof![Just("*".to_owned()), (1..32u32).prop_map(|n| n.to_string()), Just("LW".to_owned())];
    let month = prop_oneof![Just("*".to_owned()), Just("jan-mar".to_owned()), Just("*/5".to_owned())];
    let weekday =
        prop_oneof![Just("*".to_owned()), "[0-7]", "[0-3]-[4-6]", Just("5#3".to_owned()), Just("*/3".to_owned())];
    (minute, hour, day, month, weekday).prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
}

proptest! {
    #[test]
    fn any_expressible_job_reads_back(
        cron in cronstrings(), cmd in "\\PC{1,20}", lock in "[a-z]{0,3}", ttl in 1..100_000u64, paused: bool,
    ) {
        let spec = ScheduleSpec::parse(&cron).expect("a cron text");
        let mut job = Job::new(Program::Shell(Template::literal(cmd)));
        let schedule = job_of("{program: x, schedule: '@daily'}").schedules.remove(0);
        job.schedules = vec![cronhold_core::job::JobSchedule { spec, ..schedule }];
        job.lock = if lock.is_empty() { Default::default() } else { cronhold_core::job::LockPolicy::Named(lock) };
        job.ttl = cronhold_schedule::Span::from_secs(ttl);
        job.paused = paused;
        let WrittenForm { form, unexpressed } = written(&job, None);
        let text = form.to_string();
        let read = with(Dialect::Cron, |options| read(&text, options));
        if unexpressed.is_empty() {
            prop_assert_eq!(read.notes, []);
            prop_assert_eq!(read.job, Some(job));
        } else {
            prop_assert_eq!(&form.to_value()["cron_args"]["cronstring"], "@never");
        }
    }

    #[test]
    fn any_definition_is_invalid_or_writes_back_unchanged(
        cron_args in prop_oneof![
            proptest::collection::btree_map("(hour|minute|day|second|timezone|end_date|jitter)", "[0-9*/a-z,-]{1,4}", 0..3),
            cronstrings().prop_map(|text| [("cronstring".to_owned(), text)].into()),
        ],
        extra in "[a-z]{1,8}",
    ) {
        let value = json!({
            "cron_args": cron_args, "job_args": {"cmd": "x", "lock": true, "ttl": 5, &extra: extra}, "more": {&extra: [1]},
        });
        let found = ForeignForm::parse(&value.to_string()).expect("an object");
        for dialect in [Dialect::Cron, Dialect::Cronken] {
            with(dialect, |options| {
                let read = read_form(&found, options);
                assert_eq!(read.job.is_some(), read.mistakes.is_empty());
                if let Some(job) = read.job {
                    let expected = WrittenForm { form: found.clone(), unexpressed: Vec::new() };
                    assert_eq!(write(&job, Some(&found), options), expected);
                }
            });
        }
    }
}
