//! Scenes: records of one job, written as a few lines of text.
//!
//! A line begins with the kind of record, followed by `key=value` pairs and flags. The value of a key with a colon is
//! the rest of the line. Times are in January 2026: `05T03:00` or `05T03:00:09`, in UTC.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_schedule::{Instant, ScheduleSpec, Span, Zone, ZoneRegistry};

use super::super::KnownRecords;
use crate::Template;
use crate::args::Args;
use crate::ids::{JobId, JobUid, NodeId, RunId, RunNumber};
use crate::job::{Job, JobSchedule, NodeSelector, OverlapPolicy, Program};
use crate::name_map::NameMap;
use crate::policy::catch_up::CountedRange;
use crate::record::{
    ActivePause, ActiveRun, Actor, Backlog, Blocker, Cursor, ExecutionPolicy, ForeignRun, JobRecord, JobSource,
    JobState, LockName, LockState, NodeRecord, PauseState, QueuedRun, Run, RunOwner, SkipSpan, Transition,
    TransitionKind,
};
use crate::run::{Reason, State};
use crate::world::DecisionContext;

/// The job of every scene.
pub(crate) const JOB: &str = "backup";

/// One line of a scene.
struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    fn read(mut line: &'a str) -> Self {
        let mut words = BTreeMap::new();
        while !line.is_empty() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if let Some(key) = word.strip_suffix(':') {
                words.insert(key, rest);
                break;
            }
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            words.insert(key, value);
            line = rest.trim_start();
        }
        Self(words)
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    fn time(&self, key: &str) -> Option<Instant> {
        self.text(key).map(time)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.text(key).map(|text| text.parse().expect(text))
    }
}

/// A time of a scene.
pub(crate) fn time(text: &str) -> Instant {
    let seconds = if text.matches(':').count() == 1 { ":00" } else { "" };
    Instant::parse(&format!("2026-01-{text}{seconds}Z")).expect(text)
}

/// The decision context of every scene.
pub(crate) fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc())
}

/// Parses a scene.
pub(crate) fn scene(text: &str) -> KnownRecords {
    let lines: Vec<(&str, Words<'_>)> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(' ').map_or((line, Words::read("")), |(kind, rest)| (kind, Words::read(rest))))
        .collect();
    let job = Arc::new(job(&lines));
    let mut known = KnownRecords::default();
    let mut state = JobState::new(id());
    for (kind, words) in &lines {
        match *kind {
            "job" | "schedule" => {}
            "gone" => known.job = None,
            "cursor" => known.cursors.push(Arc::new(cursor(&job, words))),
            "backlog" => known.backlogs.push(Arc::new(backlog(&job, words))),
            "run" if words.text("to").is_some() => known.spans.push(Arc::new(skip_span(&job, words))),
            "run" => known.runs.push(Arc::new(run(&job, words))),
            "paused" => state.pauses = pauses(words),
            "all-paused" => known.pauses = Arc::new(pauses(words)),
            "state" => {
                let numbers = |key| {
                    words
                        .text(key)
                        .unwrap_or("")
                        .split(',')
                        .filter(|one| !one.is_empty())
                        .map(|one: &str| run_id(one.parse().expect(one)))
                };
                let target = |run| known.runs.iter().find(|known| known.id == run).and_then(|run| run.target);
                state.active = numbers("active").map(|run| ActiveRun { run, args: 0, target: target(run) }).collect();
                state.queue = numbers("queue").map(|run| QueuedRun { run, target: target(run) }).collect();
                state.next_number += words.number("gone").unwrap_or(0);
                state.kept.success = u32::try_from(words.number("success").unwrap_or(0)).expect("small");
            }
            "lock" => known.locks.push(Arc::new(LockState {
                name: LockName::parse(words.text("name").expect("a name")).expect("a name"),
                holder: run_id(words.number("holder").expect("a holder")),
                fence: 1,
                until: None,
            })),
            "foreign" => {
                known.foreign = Some(Arc::new(ForeignRun {
                    job: id(),
                    system: "Elsewhere",
                    run: "5f0c".to_owned(),
                    host: words.text("host").expect("a host").to_owned(),
                    started: words.time("at").expect("a time"),
                    is_running: words.has("running"),
                }));
            }
            "node" => known.nodes.push(Arc::new(node(words))),
            other => panic!("`{other}` is not a kind of line"),
        }
    }
    // All runs are stored except those that `gone` counts.
    state.next_number += known.runs.iter().filter(|run| run.job == id()).count() as u64;
    state.next_number += known.spans.len() as u64;
    known.state = Some(Arc::new(state));
    if !lines.iter().any(|(kind, _)| *kind == "gone") {
        known.job = Some(job);
    }
    known
}

/// The id of every scene's job.
pub(crate) fn id() -> JobId {
    JobId::parse(JOB).expect("an id")
}

fn job(lines: &[(&str, Words<'_>)]) -> JobRecord {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    let mut zone = "UTC";
    for (kind, words) in lines {
        match *kind {
            "job" => {
                zone = words.text("zone").unwrap_or(zone);
                job.overlap = match words.text("overlap") {
                    Some("allow") => OverlapPolicy::Allow,
                    Some("queue") => OverlapPolicy::Queue { limit: 10 },
                    _ => OverlapPolicy::Skip,
                };
                if let Some(labels) = words.text("each") {
                    job.nodes = NodeSelector::Each(
                        labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect(),
                    );
                }
                if let Some(labels) = words.text("nodes") {
                    job.nodes = NodeSelector::Labels(labels.split(',').map(str::to_owned).collect());
                }
                if let Some(path) = words.text("needs") {
                    let requires = crate::job::Requirement::Probe(crate::job::Probe::File(Template::literal(path)));
                    job.conditions.push(crate::job::Condition::new(requires));
                }
                job.retain.success = words.number("keep").map_or(1000, |keep| u32::try_from(keep).expect("small"));
            }
            "schedule" => job.schedules.push(schedule(words)),
            _ => {}
        }
    }
    JobRecord::new(id(), JobUid::from_bits(7), Arc::new(job), zone.into(), JobSource::Api)
}

fn schedule(words: &Words<'_>) -> JobSchedule {
    let mut spec = ScheduleSpec::parse(words.text("spec").expect("a spec")).expect("a schedule");
    spec.zone = words.text("zone").map(str::to_owned).or(spec.zone);
    let name = words.text("name").map(str::to_owned);
    JobSchedule { name, spec, args: NameMap::new(), enabled: !words.has("disabled"), stop: None }
}

/// The id of the schedule with a number, counted from 0.
fn schedule_id(job: &JobRecord, words: &Words<'_>) -> crate::record::ScheduleId {
    let index = usize::try_from(words.number("of").unwrap_or(0)).expect("small");
    let own = job.schedules().nth(index).map(|(id, _)| id.clone());
    own.unwrap_or_else(|| crate::record::ScheduleId::parse("former").expect("an id"))
}

fn cursor(job: &JobRecord, words: &Words<'_>) -> Cursor {
    Cursor {
        job: id(),
        schedule: schedule_id(job, words),
        since: words.time("since").unwrap_or(time("01T00:00")),
        last: words.time("last"),
        next: words.time("next"),
        wake: words.time("wake").or(words.time("next")),
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: words.number("follows").map(run_id),
        at_start: words.has("at_start"),
        streak: None,
        claimed: crate::record::ClaimedRanges::default(),
    }
}

fn backlog(job: &JobRecord, words: &Words<'_>) -> Backlog {
    Backlog {
        job: id(),
        schedule: schedule_id(job, words),
        from: words.time("from").expect("a beginning"),
        position: words.time("position").expect("a position"),
        to: words.time("to").expect("an end"),
        count: u32::try_from(words.number("count").expect("a count")).expect("small"),
        due: Instant::EPOCH,
        later: Vec::new(),
    }
}

fn run_id(number: u64) -> RunId {
    RunId::from_key(Instant::EPOCH, &number.to_string())
}

fn skip_span(job: &JobRecord, words: &Words<'_>) -> SkipSpan {
    let number = words.number("n").expect("a number");
    let reason = words.text("reason").expect("a reason");
    SkipSpan {
        id: run_id(number),
        number: RunNumber(number),
        job: id(),
        uid: job.uid,
        args: Args::new(),
        schedule: schedule_id(job, words),
        range: CountedRange {
            from: words.time("at").expect("a time"),
            to: words.time("to").expect("a time"),
            count: u32::try_from(words.number("count").expect("a count")).expect("small"),
        },
        reason: Reason::parse(reason).expect(reason),
        actions: 0,
        log: words.text("log").expect("a log").split(',').map(transition).collect(),
    }
}

/// What a run waits for after a file was looked for and not found.
fn absent_file(path: &str, at: Instant) -> Blocker {
    let (check, answer) = (format!("the file `{path}`"), Some((at, "does not exist".to_owned())));
    Blocker::Probe { check, answer, is_negated: false }
}

fn run(job: &JobRecord, words: &Words<'_>) -> Run {
    let number = words.number("n").expect("a number");
    let log: Vec<Transition> = words.text("log").expect("a log").split(',').map(transition).collect();
    let of = words.text("job").map_or_else(id, |job| JobId::parse(job).expect(job));
    let nominal = words.time("at").expect("a time");
    Run {
        schedule: (!words.has("asked")).then(|| schedule_id(job, words)),
        state: log.last().expect("an entry").state,
        reason: words.text("reason").map(|reason| Reason::parse(reason).expect(reason)),
        attempt: words.number("attempt").map_or(1, |attempt| u32::try_from(attempt).expect("small")),
        retry_of: words.number("retry_of").map(run_id),
        retried_by: words.number("retried_by").map(run_id),
        rerun_of: words.number("rerun_of").map(run_id),
        owner: words.has("owned").then(|| RunOwner { node: NodeId::from_bits(1), incarnation: 1 }),
        target: words.number("target").map(|node| NodeId::from_bits(node.into())),
        lock: words.text("lock").map(|lock| LockName::parse(lock).expect(lock)),
        ending: words.text("ending").map(|reason| Reason::parse(reason).expect(reason)),
        due: words.time("due"),
        blockers: words.text("absent").map(|path| absent_file(path, log[0].at)).into_iter().collect(),
        terms: ExecutionPolicy { lease: words.number("lease").map(Span::from_secs), ..ExecutionPolicy::default() },
        log,
        ..Run::blank(run_id(number), RunNumber(number), of, job.uid, nominal)
    }
}

/// `running@05T03:00/anna`; without an actor, the usual one. `error@05T03:00/program/it_said_so` has a message, and
/// `error@05T03:00/program/late/it_said_so` is the late result of a program.
fn transition(text: &str) -> Transition {
    let (state, rest) = text.split_once('@').expect(text);
    let mut parts = rest.splitn(3, '/');
    let (at, actor) = (parts.next().expect(text), parts.next());
    let message = parts.next().unwrap_or("");
    let (message, kind) = match message.strip_prefix("late/") {
        Some(message) => (message, TransitionKind::LateResult),
        None => (message, TransitionKind::Entered),
    };
    let state = State::parse(state).expect(state);
    let actor = match (actor, state) {
        (Some(name), _) => Actor::parse(name).unwrap_or_else(|_| Actor::Operator(name.to_owned())),
        (None, State::Success | State::Failure) => Actor::Program,
        (None, State::Scheduled) => Actor::Retry,
        (None, _) => Actor::Schedule,
    };
    Transition { kind, ..Transition::entered(time(at), state, actor).with_message(message.replace('_', " ")) }
}

fn pauses(words: &Words<'_>) -> PauseState {
    let current = words.time("since").map(|since| ActivePause {
        since,
        by: Actor::Operator(words.text("by").unwrap_or("anna").to_owned()),
        why: words.text("why").unwrap_or("").to_owned(),
        until: words.time("until"),
    });
    PauseState { current, last: words.time("from").zip(words.time("to")) }
}

fn node(words: &Words<'_>) -> NodeRecord {
    let beat = words.time("beat").expect("a beat");
    NodeRecord {
        id: NodeId::from_bits(words.number("id").unwrap_or(1).into()),
        name: format!("web-{}", words.number("id").unwrap_or(1)),
        incarnation: 1,
        since: Instant::EPOCH,
        beat,
        gone: beat.plus(Span::from_secs(6)),
        labels: words
            .text("labels")
            .map_or_else(BTreeSet::new, |labels| labels.split(',').map(str::to_owned).collect()),
        draining: words.has("draining"),
        skew: None,
        zones: String::new(),
        keeper_problem: words.text("keeper").map(str::to_owned),
    }
}
