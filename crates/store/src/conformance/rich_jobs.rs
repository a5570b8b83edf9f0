//! Jobs that use every field, because a store with its own layout must not lose any of them. They are in the normal
//! form that reading a job file produces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::NameMap;
use cronhold_core::job::{
    Action, ActionFilter, ActionRule, ArgPattern, Batching, BodyPattern, CatchUpPolicy, CatchUpRule, Condition,
    EnvValue, HeaderValue, HttpProgram, HttpTarget, IoPriority, Job, JobSchedule, LockPolicy, NodeSelector, OnLost,
    OutcomeChange, OverlapPolicy, Param, ParamType, PluginCall, Probe, Program, RemoteProgram, Requirement,
    ResourceLimits, Retain, Retry, RetryOn, RunEvent, SecretSource, StderrPolicy, StdinSource, StopPolicy,
    StopSchedule, TaskProgram, TimeoutOutcome, Trigger,
};
use cronhold_core::record::{JobRecord, JobSource, PoolName};
use cronhold_core::signal::Signal;
use cronhold_core::template::Expression;
use cronhold_core::{JobUid, State, Template};
use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{
    CalendarExpr, DailyInterval, DayShift, FoldPolicy, GapPolicy, ScheduleSpec, Span, TimeBound, TimeOfDay, Timing,
    WindowEdge,
};

use super::samples::job_id;

/// Jobs that use every field, each with a different program.
pub(super) fn jobs() -> Vec<JobRecord> {
    let programs = programs();
    let mut jobs: Vec<Job> = programs.into_iter().map(Job::new).collect();
    jobs[0] = full(jobs[0].program.clone());
    jobs[1].lock = LockPolicy::Job;
    jobs[1].overlap = OverlapPolicy::Queue { limit: u32::MAX };
    jobs[1].nodes = NodeSelector::Each(BTreeSet::from(["größe".to_owned(), "ssd".to_owned()]));
    jobs[2].overlap = OverlapPolicy::Replace;
    jobs[2].limits = Some(Box::new(ResourceLimits { cpu: Some(1_999), ..ResourceLimits::default() }));
    jobs[3].overlap = OverlapPolicy::Allow;
    let sources = [JobSource::Directory("prod/größe".to_owned()), JobSource::Api, JobSource::Foreign];
    let record = |(index, job): (usize, Job)| {
        let id = job_id(&format!("reports/日本 {index}"));
        let uid = JobUid::from_bits(if index == 0 { u128::MAX } else { index as u128 });
        let zone = if index == 0 { "America/New_York" } else { "UTC" };
        let mut record = JobRecord::new(id, uid, Arc::new(job), zone.into(), sources[index % sources.len()].clone());
        record.revision = [u32::MAX, 1, 2][index % 3];
        record
    };
    jobs.into_iter().enumerate().map(record).collect()
}

/// A job with this many bytes of text.
pub(super) fn long_job(bytes: usize) -> JobRecord {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.description = "Every good boy does fine. ".chars().cycle().take(bytes - 1).chain(['.']).collect();
    JobRecord::new(job_id("long"), JobUid::from_bits(1), Arc::new(job), "UTC".into(), JobSource::Api)
}

fn full(program: Program) -> Job {
    let mut job = Job::new(program);
    job.description = "Loads *prices*.\n\nAsk \"Zoë\" \\ 日本 🦀 first: it's `50%`.\n".to_owned();
    job.labels = vec!["eod".to_owned(), "größe".to_owned()];
    let choices = ["us", "eu", ""].map(str::to_owned).to_vec();
    let region =
        Param { default: Some("eu".to_owned()), choices, description: "Which market?".to_owned(), ..Param::default() };
    job.params = NameMap::from([
        ("region".to_owned(), region),
        ("date".to_owned(), Param::default()),
        ("day".to_owned(), Param { kind: ParamType::Date, ..Param::default() }),
        ("symbol".to_owned(), Param { pattern: ArgPattern::parse("[A-Z]{1,5}").ok(), ..Param::default() }),
        ("note".to_owned(), Param { default: Some(String::new()), ..Param::default() }),
    ]);
    job.schedules = schedules();
    job.enabled = false;
    job.conditions = conditions();
    job.lock = LockPolicy::Named("prices & größe".to_owned());
    job.ttl = Span::from_secs(31);
    job.lease = Some(Span::from_secs(3_601));
    job.overlap = OverlapPolicy::Queue { limit: 1 };
    job.catch_up = CatchUpRule { policy: CatchUpPolicy::All, within: Span::from_secs(86_400 * 365) };
    job.retry = Retry {
        attempts: u32::MAX,
        backoff: Span::from_millis(1),
        factor: 1.1,
        most: Span::from_secs(7_200),
        on: BTreeSet::from([RetryOn::Failure, RetryOn::Error]),
    };
    job.timeout = Some(Span::from_micros(1));
    job.late = Some(Span::from_secs(86_400 * 40));
    job.stop = StopPolicy { signal: Signal::parse("64").expect("a signal"), grace: Span::ZERO };
    job.env = NameMap::from([
        ("TEXT".to_owned(), EnvValue::Text(template("{{ region }}: größe"))),
        ("TOKEN".to_owned(), EnvValue::File("/etc/token".to_owned())),
        ("PROXY".to_owned(), EnvValue::Env("HTTPS_PROXY".to_owned())),
    ]);
    job.cwd = Some(template("/srv/{{ region }}"));
    job.shell = Some("/bin/zsh".to_owned());
    job.user = Some("prices".to_owned());
    job.umask = Some(0o027);
    job.stdin = Some(Box::new(StdinSource::File(template("/srv/{{ region }}/größe"))));
    job.stderr = StderrPolicy::Separate;
    (job.nice, job.ionice) = (Some(-20), Some(IoPriority::BestEffort(7)));
    job.limits = Some(Box::new(ResourceLimits {
        memory: Some(i64::MAX.cast_unsigned()),
        cpu: Some(10),
        pids: Some(u32::MAX.into()),
        files: Some(1),
        cpu_time: Some(Span::from_millis(1001)),
        core: Some(0),
    }));
    job.nodes = NodeSelector::Labels(BTreeSet::from(["market data".to_owned()]));
    job.success_codes = vec![0, 3, 255];
    job.on = actions();
    job.triggers = triggers();
    job.batching = Some(Batching::Logarithmic { concurrent: 1, most: 7, base: 1.5 });
    job.retain = Retain { success: 0, failure: u32::MAX, error: 3, skipped: 4, output: Span::from_secs(172_800) };
    job.on_lost = OnLost::Retry;
    job.paused = true;
    job
}

fn programs() -> Vec<Program> {
    let mut request = HttpProgram::new(template("https://example.org/größe/{{ run_id }}"));
    request.method = "PUT".to_owned();
    let secret = |source, prefix: &str| HeaderValue::Secret { source, prefix: prefix.to_owned() };
    request.headers = BTreeMap::from([
        ("X-Size".to_owned(), HeaderValue::Text(template("{{ job }}"))),
        ("Authorization".to_owned(), secret(SecretSource::File("/größe".to_owned()), "Bearer ")),
        ("X-Key".to_owned(), secret(SecretSource::Env("KEY".to_owned()), "")),
    ]);
    request.body = Some(template("{\"a\": \"日本\"}"));
    request.expect = vec![(200, 204), (404, 404)];
    request.body_matches = Some(BodyPattern::parse("größe: \\d+").expect("a pattern"));
    request.redirects = 0;
    request.timeout = Span::from_secs(5);
    request.insecure = true;
    let mut upload = HttpProgram::new(template("https://example.org/upload"));
    upload.body_file = Some(template("/srv/{{ job }}"));
    upload.ca_file = Some("/etc/größe.pem".to_owned());
    let remote = RemoteProgram {
        start: request.clone(),
        poll: HttpProgram::new(template("https://example.org/{{ task.id }}")),
        every: Span::from_secs(3),
        success: Expression::parse("answer.state == 'done'").expect("an expression"),
        failure: Expression::parse("answer.failed").expect("an expression"),
        cancel: Some(HttpProgram::new(template("https://example.org/{{ task.id }}/cancel"))),
    };
    let queue = TaskProgram::Queue {
        queue: "q".to_owned(),
        class: "Load::Größe".to_owned(),
        args: vec![template("7"), template("{{ job }}")],
        inports: map("in", "{{ job }}"),
        alias: Some(template("load/{{ job }}")),
        wait: true,
    };
    let write = TaskProgram::Write { to: template("7"), port: "in".to_owned(), data: template("[1, 2]") };
    let settings = map("level", "{{ job }}");
    vec![
        Program::Shell(template("load --region {{ region }} | tee 'größe.log' # \"x\"\nexit 3")),
        Program::Exec(vec![template("/bin/echo"), template(""), template("a b"), template("{{ run_id }}")]),
        Program::Http(Box::new(request)),
        Program::Http(Box::new(upload)),
        Program::Remote(Box::new(remote)),
        Program::Task(Box::new(queue)),
        Program::Task(Box::new(write)),
        Program::Noop { duration: Span::from_millis(1_500) },
        Program::Plugin(Box::new(PluginCall { command: "my-plugin".to_owned(), settings })),
    ]
}

fn schedules() -> Vec<JobSchedule> {
    let spec = |text: &str| ScheduleSpec::parse(text).expect("a schedule");
    let time = |text: &str| TimeOfDay::parse(text).expect("a time of day");
    let bound = |text: &str| TimeBound::parse(text).expect("a bound");
    let mut zoned = spec("CRON_TZ=Europe/Berlin 30 2 * * Mon-Fri");
    zoned.start = Some(bound("2027-01-01"));
    zoned.end = Some(bound("2027-06-30T12:00"));
    zoned.jitter = Span::from_secs(5);
    zoned.calendar = Some(CalendarExpr::parse("Mon-Fri - freeze").expect("a calendar"));
    (zoned.gap, zoned.fold) = (Some(GapPolicy::Skip), Some(FoldPolicy::Both));
    let fields = FieldsExpr::parse(&[("day", "last"), ("hour", "14"), ("minute", "*/20")]).expect("fields");
    let window = DailyInterval {
        from: WindowEdge { time: time("22:00"), shift: DayShift { calendar_days: -1, days: 0 } },
        until: WindowEdge { time: time("02:00:01"), shift: DayShift { calendar_days: -1, days: 1 } },
        interval: Span::from_secs(1_800),
    };
    let daily = Timing::daily(vec![time("07:00"), time("18:30:15")], DayShift { calendar_days: 1, days: -1 });
    let specs = [
        zoned,
        spec("0 0 L * ? 2027"),
        spec("H H * * *"),
        ScheduleSpec::new(Timing::Fields(fields)),
        ScheduleSpec::new(Timing::Every { interval: Span::from_secs(900), phase: Span::from_secs(90) }),
        spec("with 10m interval"),
        spec("continuously"),
        ScheduleSpec::new(daily),
        ScheduleSpec::new(Timing::DailyInterval(window)),
        ScheduleSpec::new(Timing::at(vec![bound("2027-01-01T00:00:00Z"), bound("2027-02-01")])),
        spec("triggered"),
        spec("@never"),
        spec("@reboot"),
    ];
    let mut schedules: Vec<JobSchedule> = specs
        .into_iter()
        .map(|spec| JobSchedule { name: None, spec, args: NameMap::new(), enabled: true, stop: None })
        .collect();
    schedules[0].name = Some("new-york".to_owned());
    schedules[0].stop = Some(StopSchedule::After(Span::from_secs(7_200)));
    schedules[1].args = NameMap::from([("note".to_owned(), "größe \"x\"".to_owned())]);
    schedules[1].stop = Some(StopSchedule::At(time("20:00:30")));
    schedules[2].enabled = false;
    schedules
}

fn conditions() -> Vec<Condition> {
    let plain = Condition::new;
    let after = Requirement::After {
        job: template("feeds/{{ region }}"),
        args: map("date", "{{ date }}"),
        states: vec![State::Success, State::Skipped],
        within: Some(Span::from_secs(86_400)),
        must_exist: true,
    };
    let time = |text: &str| TimeOfDay::parse(text).expect("a time of day");
    let zone = Some("Europe/Berlin".to_owned());
    let calendar = CalendarExpr::parse("Mon-Fri").ok();
    let window = Requirement::Window { from: time("22:00"), until: time("06:00"), zone, calendar };
    let file = || plain(Requirement::Probe(Probe::File(template("/data/{{ date }}"))));
    let http = Requirement::Probe(Probe::Http(Box::new(HttpProgram::new(template("https://example.org/up")))));
    let command = Requirement::Probe(Probe::Command(template("test -w /data")));
    let plugin = PluginCall { command: "/opt/größe".to_owned(), settings: map("path", "/data/{{ date }}") };
    let plugin = Requirement::Probe(Probe::Plugin(Box::new(plugin)));
    vec![
        Condition {
            requires: after,
            timeout: Some(Span::from_secs(3_600)),
            poll: Span::from_secs(7),
            on_timeout: TimeoutOutcome::Skip,
        },
        plain(Requirement::MaxRunning { count: 2, same_args: true, pool: None }),
        plain(Requirement::MaxRunning { count: u32::MAX, same_args: false, pool: PoolName::parse("database").ok() }),
        plain(Requirement::SkipDuplicate { states: vec![State::Running] }),
        plain(window),
        plain(Requirement::All(vec![
            plain(Requirement::Any(vec![file(), plain(http), plain(plugin)])),
            plain(Requirement::Not(Box::new(plain(command)))),
        ])),
    ]
}

fn actions() -> BTreeMap<RunEvent, Vec<ActionRule>> {
    let mut webhook = HttpTarget::new(template("https://hooks.example.org"));
    webhook.method = "PUT".to_owned();
    webhook.headers = map("X-Run", "{{ run_id }}");
    webhook.body = Some(template("{{ reason }}"));
    webhook.secret = Some(SecretSource::Env("HOOK_KEY".to_owned()));
    let to = vec!["ops@example.org".to_owned(), "zoë@example.org".to_owned()];
    let email = Action::Email { to, subject: Some(template("{{ job }}")), body: Some(template("größe")) };
    let publish = Action::Publish { channel: template("/alerts/prices"), message: Some(template("{{ state }}")) };
    let run = Action::Run { job: template("reports/prices"), args: map("date", "{{ date }}") };
    let rule = ActionRule::always;
    let when = |action, filter| ActionRule { action, when: Some(Box::new(filter)) };
    let logger = || Action::Command(template("logger {{ number }}"));
    let recovered =
        ActionFilter { outcome: Some(OutcomeChange::Recovered), in_a_row: Some(u32::MAX), ..ActionFilter::default() };
    let args = [("region", &["eu"][..]), ("date", &["2026-01-01", "größe"])]
        .map(|(name, values)| (name.to_owned(), values.iter().map(ToString::to_string).collect()));
    let labels = vec!["eod".to_owned(), "日本".to_owned()];
    let some = ActionFilter { args: args.into(), labels, ..ActionFilter::default() };
    BTreeMap::from([
        (RunEvent::Finished, vec![rule(logger()), rule(publish)]),
        (RunEvent::State(State::Success), vec![rule(run), when(logger(), recovered)]),
        (RunEvent::State(State::Failure), vec![rule(Action::Webhook(webhook)), when(email, some)]),
        (RunEvent::Late, vec![rule(logger())]),
        (RunEvent::Missed, Vec::new()),
    ])
}

fn triggers() -> Vec<Trigger> {
    let trigger = |channel: &str, batching| Trigger { channel: channel.to_owned(), args: BTreeMap::new(), batching };
    let mut first = trigger("/a", Batching::Newest { concurrent: 2, timeout: Span::from_secs(3_600) });
    first.args = map("date", "{{ message }}");
    let logarithmic = Batching::Logarithmic { concurrent: 3, most: 10, base: 2.5 };
    vec![first, trigger("/b/größe", logarithmic), trigger("/c", Batching::Greedy { concurrent: 1, most: 5 })]
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("a template")
}

fn map(name: &str, text: &str) -> BTreeMap<String, Template> {
    BTreeMap::from([(name.to_owned(), template(text))])
}
