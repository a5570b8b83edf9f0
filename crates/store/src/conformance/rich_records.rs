//! Records that use every field: all states, actors and reasons, unusual texts, and extreme numbers and times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::args::Args;
use cronhold_core::job::{IoPriority, ResourceLimits, SecretSource};
use cronhold_core::plugin::{PluginKind, PluginProgress};
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    ActivePause, ActiveRun, Actor, Backlog, Blocker, ClaimedRanges, CommandLine, Cursor, EnvText, ExecutionPolicy,
    Identity, JobState, KeptCounts, LatestOutcome, LatestOutcomes, LatestRun, NodeRecord, OutcomeStreak, OutputSummary,
    PauseState, Pool, PoolName, ProbeAnswer, ProbeLease, ProbeState, ProgramExit, QueuedRun, Record, RequestBody,
    ResolvedHeader, ResolvedHttp, ResolvedProbe, ResolvedProcess, ResolvedProgram, ResolvedRemote, ResolvedRequest,
    ResolvedTask, ResponseSummary, Run, RunOwner, RunProgress, ServiceState, SkipSpan, SkipStreak, StderrParts,
    StdinText, Transition, TransitionKind,
};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::task::{ClassName, JsonText, PortName, QueueName, TaskAlias};
use cronhold_core::{JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};

use super::samples::{args, job_id, lock_name, run, run_id, schedule_id};
use super::{rich_actions, rich_triggers};

/// Texts that stores or formats easily corrupt.
pub(super) const TEXTS: [&str; 8] = [
    "",
    " plain, with blanks ",
    "größe 日本 🦀 e\u{301}",
    "'; drop table runs; --",
    "a\nb\tc\r\n\\ \"quoted\" %s {{ x }}",
    "\u{0}\u{1}\u{1b}\u{7f}\u{85}\u{92}\u{9f}\u{2028}\u{202e}\u{feff}\u{fffd}\u{fffe}\u{ffff}",
    "null",
    "0012",
];

/// Counters fit into a signed 64-bit integer.
pub(super) const COUNT_MAX: u64 = i64::MAX.cast_unsigned();

/// Extreme times that have a textual form.
pub(super) fn times() -> [Instant; 5] {
    ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2026-03-29T01:30:00.123456Z", "0001-01-01T00:00:00Z", LAST]
        .map(|text| Instant::parse(text).expect("a time"))
}

/// The last microsecond of the last day that every zone can represent.
const LAST: &str = "9999-12-30T21:59:59.999999Z";

pub(super) fn last() -> Instant {
    Instant::parse(LAST).expect("a time")
}

/// Records of every kind that units write, except jobs, with all fields set.
pub(super) fn records() -> Vec<Record> {
    let mut records = vec![Record::Pause(Arc::new(pauses()))];
    records.extend(job_states().into_iter().map(|state| Record::JobState(Arc::new(state))));
    records.extend(cursors().into_iter().map(|cursor| Record::Cursor(Arc::new(cursor))));
    records.extend(backlogs().into_iter().map(|backlog| Record::Backlog(Arc::new(backlog))));
    records.extend(identities().into_iter().map(|identity| Record::Identity(Arc::new(identity))));
    records.extend(runs().into_iter().map(|run| Record::Run(Arc::new(run))));
    records.extend(skip_spans().into_iter().map(|span| Record::SkipSpan(Arc::new(span))));
    records.extend(rich_actions::actions().into_iter().map(|action| Record::Action(Arc::new(action))));
    records.extend(pools().into_iter().map(|pool| Record::Pool(Arc::new(pool))));
    records.extend(rich_triggers::trigger_sets().into_iter().map(|set| Record::Triggers(Arc::new(set))));
    records
}

/// A pool without a run, which no unit writes, and one with all fields set.
fn pools() -> Vec<Pool> {
    let target = Some(NodeId::from_bits(u128::MAX));
    let active = ActiveRun { run: run_id(8, 8), args: u64::MAX, target };
    let name = |text| PoolName::parse(text).expect("a name");
    vec![
        Pool::new(name("a/b")),
        Pool { name: name("größe/日本 🦀"), active: vec![active, ActiveRun { target: None, ..active }] },
    ]
}

/// Nodes with all fields set.
pub(super) fn nodes() -> Vec<NodeRecord> {
    let node = |(index, name): (usize, &&str)| NodeRecord {
        id: NodeId::from_bits(if index == 0 { u128::MAX } else { index as u128 }),
        name: (*name).to_owned(),
        incarnation: if index == 0 { u32::MAX } else { 0 },
        since: times()[index % 5],
        beat: times()[(index + 1) % 5],
        gone: times()[(index + 2) % 5],
        labels: TEXTS[..index].iter().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>(),
        draining: index % 2 == 0,
        // A store that is not shared need not keep these.
        skew: None,
        zones: String::new(),
        keeper_problem: None,
    };
    TEXTS.iter().enumerate().map(node).collect()
}

fn pauses() -> PauseState {
    let current = ActivePause {
        since: last(),
        by: Actor::Operator(TEXTS[2].to_owned()),
        why: TEXTS[4].to_owned(),
        until: Some(last()),
    };
    PauseState { current: Some(current), last: Some((times()[0], times()[2])) }
}

fn job_states() -> Vec<JobState> {
    let mut full = JobState::new(job_id("größe/日本 '\"%_\\"));
    full.next_number = COUNT_MAX;
    full.active = vec![
        ActiveRun { run: run_id(1, 1), args: u64::MAX, target: None },
        ActiveRun { run: run_id(0, 2), args: 0, target: Some(NodeId::from_bits(3)) },
    ];
    let target = |number: u16| number.is_multiple_of(3).then(|| NodeId::from_bits(number.into()));
    let queued = |number| QueuedRun { run: run_id(5, number), target: target(number) };
    full.queue = (0..300).rev().map(queued).collect();
    full.pauses = pauses();
    full.latest = Some(LatestRun { run: run_id(4, 9), at: last() });
    full.kept = KeptCounts { success: u32::MAX, failure: 1, error: 2, skipped: 3 };
    full.floor = Some(times()[2]);
    full.removed = Some(times()[1]);
    full.outcomes = Some(outcomes());
    full.has_triggers = true;
    let earlier = JobState { outcomes: None, ..JobState::new(job_id("of an earlier version")) };
    vec![full, earlier, JobState::new(job_id("never ran"))]
}

/// A range for each time.
fn claimed(times: impl IntoIterator<Item = Instant>) -> ClaimedRanges {
    let mut ranges = ClaimedRanges::default();
    times.into_iter().for_each(|at| ranges.insert(at, at));
    ranges
}

fn cursors() -> Vec<Cursor> {
    let full = Cursor {
        job: job_id("a/b"),
        schedule: schedule_id(TEXTS[4]),
        since: times()[3],
        last: Some(times()[0]),
        next: Some(times()[2]),
        wake: Some(last()),
        revision: u32::MAX,
        zones: "2026größe".into(),
        generation: u32::MAX,
        follows: Some(run_id(1, 1)),
        at_start: true,
        claimed: claimed([times()[0], times()[1], times()[2], times()[3], last()]),
        streak: Some(SkipStreak {
            reason: Reason::Said(TEXTS[4].to_owned()),
            count: u32::MAX,
            span: Some(run_id(1, 2)),
        }),
    };
    let streak = Some(SkipStreak { reason: Reason::Overlap, count: 0, span: None });
    let other = Cursor { schedule: schedule_id("half"), next: None, wake: Some(times()[1]), streak, ..full.clone() };
    let plain = Cursor {
        schedule: schedule_id("plain"),
        since: times()[1],
        last: None,
        next: None,
        wake: None,
        revision: 0,
        zones: "".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
        claimed: ClaimedRanges::default(),
        ..full.clone()
    };
    vec![full, other, plain]
}

fn backlogs() -> Vec<Backlog> {
    let [early, epoch, middle, ..] = times();
    let (job, schedule) = (job_id("a/b"), schedule_id(TEXTS[2]));
    let stretch = |count| CountedRange { from: early, to: last(), count };
    let later = vec![stretch(u32::MAX), stretch(0), stretch(7)];
    let full = Backlog { job, schedule, from: early, position: epoch, to: middle, count: u32::MAX, due: last(), later };
    vec![Backlog { schedule: schedule_id("plain"), later: Vec::new(), ..full.clone() }, full]
}

fn outcomes() -> LatestOutcomes {
    let outcome = |index: usize| Some(LatestOutcome { run: run_id(2, 7), at: times()[index] });
    let streak = OutcomeStreak { last: State::Error, successes: u32::MAX, failures: 7, errors: 1 };
    LatestOutcomes {
        success: outcome(0),
        failure: outcome(1),
        error: outcome(3),
        skipped: outcome(4),
        streak: Some(streak),
    }
}

fn identities() -> Vec<Identity> {
    let pairs: Vec<(String, &str)> =
        TEXTS.iter().enumerate().map(|(index, text)| (format!("name{index}"), *text)).collect();
    let all: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut full = Identity::new(job_id("a/b"), args(&all));
    full.outcomes = outcomes();
    let mut one = Identity::new(job_id("a/b"), Args::new());
    one.outcomes.error = outcomes().error;
    vec![full, one, Identity::new(job_id("a/c"), args(&[("", "")]))]
}

/// One run for each reason, state, actor and kind of work, and one without optional fields.
fn runs() -> Vec<Run> {
    let (reasons, actors, works) = (reasons(), actors(), works());
    let mut runs = Vec::new();
    for (index, reason) in reasons.iter().enumerate() {
        let number = u16::try_from(index).expect("there are few reasons");
        let id = RunId::from_random(times()[index % 5], [0xff, 0, 0xff, 0, 0, 0, 0, 0, 0, index.to_be_bytes()[7]]);
        let log = State::ALL.into_iter().enumerate().map(|(step, state)| Transition {
            at: times()[(index + step) % 5],
            state,
            actor: actors[(index + step) % actors.len()].clone(),
            message: TEXTS[(index + step) % TEXTS.len()].to_owned(),
            kind: match (index + step) % 7 {
                0 => TransitionKind::LateResult,
                1 => TransitionKind::Late,
                _ => TransitionKind::Entered,
            },
        });
        let code = [0, i32::MIN, i32::MAX, -1][index % 4];
        let exit = if index % 3 == 0 { ProgramExit::Signal(Signal::KILL) } else { ProgramExit::Code(code) };
        runs.push(Run {
            number: RunNumber(COUNT_MAX - u64::from(number)),
            job: job_id(["größe/日本 🦀", "a/b"][index % 2]),
            uid: JobUid::from_bits(u128::MAX - index as u128),
            args: args(&[("x", TEXTS[index % TEXTS.len()]), ("größe", "")]),
            schedule: Some(schedule_id(TEXTS[1 + index % (TEXTS.len() - 1)])),
            nominal: times()[index % 5],
            state: State::ALL[index % State::ALL.len()],
            reason: Some(reason.clone()),
            attempt: u32::MAX,
            retry_of: Some(run_id(3, number)),
            retried_by: Some(run_id(4, number)),
            rerun_of: Some(run_id(5, number)),
            owner: Some(RunOwner { node: NodeId::from_bits(u128::MAX), incarnation: u32::MAX }),
            target: Some(NodeId::from_bits(7)),
            work: Some(works[index % works.len()].clone()),
            lock: Some(lock_name(TEXTS[1 + index % (TEXTS.len() - 1)])),
            pools: ["db", "größe/日本 🦀"][..index % 3]
                .iter()
                .map(|name| PoolName::parse(name).expect("a name"))
                .collect(),
            terms: terms(index),
            ending: Some(reasons[(index + 1) % reasons.len()].clone()),
            due: (index % 4 > 0).then(|| times()[(index + 3) % 5]),
            late_at: (index % 3 > 0).then(|| times()[(index + 2) % 5]),
            blockers: blockers(index),
            probes: probes(index),
            exit: Some(exit),
            written: Some(written(index)),
            service: service(index),
            actions: [0, 1, u32::MAX][index % 3],
            triggers: rich_triggers::run_triggers(index).into(),
            log: log.collect(),
            id,
        });
    }
    runs.push(Run { log: Vec::new(), ..run(run_id(9, 9), "nothing") });
    runs
}

/// A span of skips for each reason.
fn skip_spans() -> Vec<SkipSpan> {
    let reasons = reasons();
    let span = |(index, reason): (usize, &Reason)| SkipSpan {
        id: RunId::from_random(times()[index % 5], [0, 0xff, 0, 0, 0, 0, 0, 0, 0, index.to_be_bytes()[7]]),
        number: RunNumber(COUNT_MAX - index as u64),
        job: job_id(["größe/日本 🦀", "a/b"][index % 2]),
        uid: JobUid::from_bits(u128::MAX - index as u128),
        args: args(&[("x", TEXTS[index % TEXTS.len()]), ("größe", "")]),
        schedule: schedule_id(TEXTS[1 + index % (TEXTS.len() - 1)]),
        range: CountedRange { from: times()[index % 5], to: last(), count: u32::MAX },
        reason: reason.clone(),
        actions: [0, u32::MAX][index % 2],
        log: vec![Transition {
            message: TEXTS[index % TEXTS.len()].to_owned(),
            ..Transition::entered(times()[index % 5], State::Skipped, actors()[index % actors().len()].clone())
        }],
    };
    reasons.iter().enumerate().map(span).collect()
}

/// Checks of every kind, with and without an answer.
fn probes(index: usize) -> Vec<ProbeState> {
    let text = TEXTS[index % TEXTS.len()].to_owned();
    let shell = CommandLine::Shell { text: text.clone(), shell: None };
    let owner = RunOwner { node: NodeId::from_bits(u128::MAX), incarnation: u32::MAX };
    let file = ProbeState {
        attempt: u32::MAX,
        asked: Some(ProbeLease { owner, until: times()[index % 5] }),
        answer: Some(ProbeAnswer {
            at: last(),
            node: owner.node,
            holds: index.is_multiple_of(2),
            message: text.clone(),
        }),
        ..ProbeState::new(ResolvedProbe::File(text))
    };
    let command = ProbeState::new(ResolvedProbe::Command(Box::new(ResolvedProcess::plain(shell))));
    let mut requests = requests();
    let request = ProbeState::new(ResolvedProbe::Http(Box::new(requests.swap_remove(index % requests.len()))));
    [file, command, request].into_iter().take(index % 4).collect()
}

/// Two kinds of blockers, and none.
fn blockers(index: usize) -> Vec<Blocker> {
    let text = TEXTS[1 + index % (TEXTS.len() - 1)];
    let all = [
        Blocker::JobPause,
        Blocker::GlobalPause,
        Blocker::Node,
        Blocker::Lock(lock_name(text)),
        Blocker::OtherRuns,
        Blocker::MaxRunning { count: u32::MAX, same_args: index.is_multiple_of(2) },
        Blocker::Pool {
            pool: PoolName::parse("größe/日本 🦀").expect("a name"),
            count: u32::MAX,
            same_args: index.is_multiple_of(2),
            labels: u64::MAX,
            is_negated: index.is_multiple_of(2),
        },
        Blocker::After {
            job: job_id("größe/日本 🦀"),
            args: args(&[("x", text)]),
            states: State::ALL.to_vec(),
            runs: vec![run_id(6, 1)],
            last: Some((State::Failure, times()[index % 5])),
            is_negated: index.is_multiple_of(2),
        },
        Blocker::MissingJob(job_id("a/b")),
        Blocker::Probe {
            check: text.to_owned(),
            answer: Some((times()[index % 5], text.to_owned())),
            is_negated: index.is_multiple_of(2),
        },
        Blocker::Time(times()[index % 5]),
    ];
    all.into_iter().cycle().skip(2 * index).take(index % 4).collect()
}

fn terms(index: usize) -> ExecutionPolicy {
    let hundred_years = Span::from_secs(100 * 365 * 86_400);
    let signal = Signal::from_number(64).expect("the last signal");
    match index % 3 {
        0 => ExecutionPolicy {
            timeout: Some(hundred_years),
            stop_at: Some(last()),
            signal,
            grace: Span::from_micros(1),
            lease: Some(Span::from_secs(10)),
        },
        1 => ExecutionPolicy { timeout: Some(Span::ZERO), ..ExecutionPolicy::default() },
        _ => ExecutionPolicy::default(),
    }
}

fn written(index: usize) -> OutputSummary {
    let tail = TEXTS.iter().cycle().skip(index).take(index % 11).map(|text| (*text).to_owned());
    OutputSummary { bytes: [0, 1, COUNT_MAX][index % 3], tail: tail.collect(), stderr: stderr(index) }
}

fn stderr(index: usize) -> Option<StderrParts> {
    match index % 3 {
        0 => None,
        1 => Some(StderrParts::default()),
        _ => Some(StderrParts { parts: vec![(0, 1), (COUNT_MAX - 1, COUNT_MAX)], is_partial: true }),
    }
}

fn service(index: usize) -> Option<Box<ServiceState>> {
    let header = |text: &&str| ((*text).to_owned(), (*text).to_owned());
    let response = || ResponseSummary { status: 599, headers: TEXTS.iter().map(header).collect(), redirects: u32::MAX };
    match index % 3 {
        0 => None,
        1 => Some(Box::default()),
        _ => Some(Box::new(ServiceState {
            task: Some(TEXTS[index % TEXTS.len()].to_owned()),
            poll: requests().pop(),
            cancel: requests().into_iter().next(),
            response: Some(response()),
            progress: progress(index),
        })),
    }
}

fn progress(index: usize) -> Option<RunProgress> {
    let text = TEXTS[index % TEXTS.len()].to_owned();
    let percent = [None, Some(0), Some(100)][index / 3 % 3];
    Some(RunProgress { at: Instant::from_micros(1), reported: PluginProgress { percent, text } })
}

/// A request with all settings, and one with few.
fn requests() -> Vec<ResolvedRequest> {
    let secret =
        ResolvedHeader::Secret { source: SecretSource::File("/größe".to_owned()), prefix: "Bearer ".to_owned() };
    let full = ResolvedRequest {
        url: "https://example.org/größe".to_owned(),
        method: "PUT".to_owned(),
        headers: BTreeMap::from([
            ("Authorization".to_owned(), secret),
            ("X-Text".to_owned(), ResolvedHeader::Text("日本".to_owned())),
        ]),
        body: Some(RequestBody::Text(TEXTS[1].to_owned())),
        expect: vec![(200, 299), (404, 404)],
        body_matches: Some("größe".to_owned()),
        redirects: u32::MAX,
        timeout: Span::from_micros(1),
        ca_file: Some("/größe".to_owned()),
        insecure: true,
    };
    let file = Some(RequestBody::File("/größe".to_owned()));
    let (headers, body_matches, ca_file) = (BTreeMap::new(), None, None);
    let few =
        ResolvedRequest { headers, body: file, body_matches, ca_file, insecure: false, redirects: 0, ..full.clone() };
    vec![few, full]
}

fn works() -> Vec<ResolvedProgram> {
    let texts = || TEXTS.iter().map(|text| (*text).to_owned());
    let mut works = vec![ResolvedProgram::Noop(Span::ZERO), ResolvedProgram::Noop(Span::from_micros(1))];
    works.extend(processes().into_iter().map(|process| ResolvedProgram::Process(Box::new(process))));
    let http = |request| ResolvedProgram::Http(Box::new(ResolvedHttp { request, is_repeatable: true }));
    works.extend(requests().into_iter().map(http));
    works.extend(requests().into_iter().map(|request| {
        let cancel = (!request.insecure).then(|| request.clone());
        ResolvedProgram::Remote(Box::new(ResolvedRemote {
            start: request.clone(),
            poll: request,
            cancel,
            every: Span::from_micros(1),
            success: "answer.größe == '日本'".to_owned(),
            failure: "answer.failed".to_owned(),
            is_repeatable: true,
        }))
    }));
    works.push(ResolvedProgram::Task(Box::new(ResolvedTask::Queue {
        queue: QueueName::parse("größe").expect("a name"),
        class: ClassName::parse("Load::日本").expect("a name"),
        args: vec![JsonText::of_number(u64::MAX), JsonText::null()],
        inports: BTreeMap::from([(PortName::parse("in").expect("a name"), JsonText::of_text("größe 🦀"))]),
        alias: TaskAlias::parse("größe").ok(),
        wait: true,
    })));
    let port = PortName::parse("in").expect("a name");
    works.push(ResolvedProgram::Task(Box::new(ResolvedTask::Write {
        to: "7".to_owned(),
        port,
        data: JsonText::null(),
    })));
    works.extend(texts().map(ResolvedProgram::Unsupported));
    works
}

/// Processes with all fields and with none.
fn processes() -> Vec<ResolvedProcess> {
    let texts = || TEXTS.iter().map(|text| (*text).to_owned());
    let mut processes = vec![ResolvedProcess::plain(CommandLine::Exec(texts().collect()))];
    processes.extend(texts().map(|text| ResolvedProcess::plain(CommandLine::Shell { text, shell: None })));
    let shell = |text: String| CommandLine::Shell { shell: Some(text.clone()), text };
    let env = |from: fn(String) -> EnvText| texts().map(move |text| (format!("NAME{text}"), from(text))).collect();
    let full = ResolvedProcess {
        command: shell(TEXTS[2].to_owned()),
        env: env(EnvText::Text),
        cwd: Some(TEXTS[4].to_owned()),
        user: Some(TEXTS[2].to_owned()),
        umask: Some(0o777),
        stdin: Some(StdinText::Text(TEXTS[2].to_owned())),
        plugin: Some(PluginKind::Program),
        separate_stderr: true,
        nice: Some(-20),
        ionice: Some(IoPriority::BestEffort(7)),
        success_codes: vec![0, 3, 255],
        limits: ResourceLimits {
            memory: Some(COUNT_MAX),
            cpu: Some(1),
            pids: Some(2),
            files: Some(3),
            cpu_time: Some(Span::from_micros(1)),
            core: Some(0),
        },
    };
    let memory = ResourceLimits { memory: Some(1), ..ResourceLimits::default() };
    processes.push(ResolvedProcess {
        env: env(EnvText::File),
        stdin: Some(StdinText::File(TEXTS[4].to_owned())),
        nice: Some(19),
        ionice: Some(IoPriority::Idle),
        success_codes: Vec::new(),
        limits: memory,
        ..full.clone()
    });
    let plugin = Some(PluginKind::Condition);
    processes.push(ResolvedProcess { env: env(EnvText::Env), success_codes: vec![7], plugin, ..full.clone() });
    processes.push(full);
    processes
}

fn actors() -> Vec<Actor> {
    let mut actors = vec![
        Actor::Schedule,
        Actor::CatchUp,
        Actor::Retry,
        Actor::Queue,
        Actor::Limit,
        Actor::Action,
        Actor::Program,
        Actor::Recovery,
        Actor::Watchdog,
        Actor::Retention,
        Actor::JobFiles,
        Actor::ForeignEvent,
        Actor::ForeignDefinition,
        Actor::Channel,
    ];
    actors.extend(TEXTS.iter().map(|text| Actor::Operator((*text).to_owned())));
    actors
}

fn reasons() -> Vec<Reason> {
    let mut reasons = vec![
        Reason::Overlap,
        Reason::QueueFull,
        Reason::Replaced,
        Reason::Paused,
        Reason::Missed,
        Reason::ClaimedBefore,
        Reason::Calendar,
        Reason::Duplicate,
        Reason::Lock,
        Reason::NoEligibleNode,
        Reason::JobRemoved,
        Reason::ExitCode(i32::MIN),
        Reason::ExitCode(i32::MAX),
        Reason::Signal(Signal::KILL),
        Reason::Status(u16::MAX),
        Reason::Stopped,
        Reason::Killed,
        Reason::Timeout,
        Reason::StartUnknown,
        Reason::NodeLost,
        Reason::KeeperLost,
        Reason::LockLost,
    ];
    for text in TEXTS.map(str::to_owned) {
        reasons.extend([
            Reason::RanElsewhere { system: "Cronken".to_owned(), host: text.clone() },
            Reason::ByOperator(text.clone()),
            Reason::Said(text.clone()),
            Reason::Plugin(text.clone()),
            Reason::Condition(text.clone()),
            Reason::Unbound(text.clone()),
            Reason::NotLaunched(text),
        ]);
    }
    reasons
}
