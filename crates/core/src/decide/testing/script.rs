//! Scripts: a line with a time is an input, and the indented lines after it are its results. A test contains the whole
//! script; the bench executes the inputs and compares the results.
//!
//! ```text
//! 00:00 put j @every 10m; overlap allow
//!     next 00:10, job r1
//! 00:10 due
//!     #1 00:10 starting, next 00:20
//! ```
//!
//! Jobs are `put NAME item; item; …`: a schedule as one text, `NAME: schedule` for one with a name, `jitter 30s`,
//! `calendar X`, `disabled` and `args k=v` for the schedule before them, and keys of a job (see [`job`]). `add`,
//! `change` and `revise REVISION` put it with a precondition. `due` fires every cursor that is due, `catch up` takes
//! one step in every backlog, `wake` checks every run that is due. `ad-hoc ITEMS with k=v` runs a job that is not stored. Lines about several nodes are
//! in `cluster.rs`, those about triggers in `trigger.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{CalendarExpr, Instant, ScheduleSpec, Span};

use super::{DecisionBench, START, transcript};
use crate::command::{Command, ExitOutcome, Precondition, ProbeResult, ProgramReport, PrunableRecord, StopTime};
use crate::ids::{JobId, JobUid, RunId};
use crate::job::{
    CatchUpPolicy, CatchUpRule, Job, JobSchedule, LockPolicy, NodeSelector, OnLost, OverlapPolicy, Param, Program,
    Retain, RetryOn, RunEvent, StopSchedule,
};
use crate::name_map::NameMap;
use crate::plugin::PluginProgress;
use crate::record::{
    Actor, JobSource, OutputSummary, PoolName, ProgramExit, Record, RecordKey, ScheduleId, SkipSpan, StoredRecord,
};
use crate::run::{Reason, State};
use crate::signal::Signal;

/// The most occurrences that may be due at once; a script with more has an error.
const DUE_MAX: usize = 200;

/// Executes a script and compares the results with those in the script.
#[track_caller]
pub(in crate::decide) fn play(script: &str) -> DecisionBench {
    let mut bench = DecisionBench::new();
    let mut actual = String::new();
    let lines = || script.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let (at, what) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` has no command"));
        bench.now = instant(at);
        actual += &format!("{line}\n");
        for result in bench.happens(what) {
            actual += &format!("    {result}\n");
        }
    }
    let expected: String =
        lines()
            .map(|line| {
                if line.starts_with(|c: char| c.is_ascii_digit()) {
                    format!("{line}\n")
                } else {
                    format!("    {line}\n")
                }
            })
            .collect();
    assert!(actual == expected, "expected:\n{expected}\nactual:\n{actual}");
    bench
}

/// `1 yes`, or `1 no does not exist`: the answer to an attempt of a check.
fn answer(run: RunId, text: &str) -> Command {
    let (attempt, said) = text.split_once(' ').expect("an attempt and an answer");
    let (holds, message) = said.split_once(' ').unwrap_or((said, ""));
    let result = ProbeResult { holds: holds == "yes", message: message.to_owned() };
    Command::ReportProbe { run, attempt: attempt.parse().expect("a number"), result }
}

fn repair_pool(name: &str) -> Command {
    Command::RepairPool { pool: PoolName::parse(name).expect("a name") }
}

impl DecisionBench {
    /// Executes the input of a line; returns one result for each command that it contains.
    pub(in crate::decide) fn happens(&mut self, what: &str) -> Vec<String> {
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        match verb {
            "due" => self.all_due(),
            "catch" => self.all_backlogs(),
            "wake" if rest.is_empty() => self.all_woken(),
            "zones" => {
                self.set_zones(rest);
                Vec::new()
            }
            // Defines a calendar; without days, removes it.
            "calendar" => {
                let (name, days) = rest.split_once(' ').unwrap_or((rest, ""));
                let mut calendars = CalendarSet::new();
                if !days.is_empty() {
                    let days = CalendarExpr::parse(days).expect("a calendar");
                    calendars.insert(name, calendars.compile(&days).expect("known days"));
                }
                self.world.calendars = Arc::new(calendars);
                Vec::new()
            }
            "label" => {
                self.world.labels = Arc::new(words(rest).collect());
                Vec::new()
            }
            "lose" | "revert" => {
                self.lose(verb, rest);
                Vec::new()
            }
            "node" | "there" | "shared" | "drained" | "beat" | "expired" | "foreign-run" => {
                self.change_cluster(verb, rest);
                Vec::new()
            }
            _ => {
                let (actor, command) = self.command(verb, rest);
                vec![self.line(actor, &command)]
            }
        }
    }

    /// The store loses a write: `lose #1` a run, `lose cursor j a` a cursor, `lose job j` a job, and
    /// `revert cursor j a 1` the revision that a cursor belongs to.
    fn lose(&mut self, verb: &str, what: &str) {
        self.has_lost_records = true;
        let words: Vec<&str> = what.split_whitespace().collect();
        let key = match words[..] {
            ["job", job] => RecordKey::Job(job_id(job)),
            ["cursor", job, schedule, ..] => RecordKey::Cursor(job_id(job), self.schedule(job, schedule)),
            _ => RecordKey::Run(self.run_id(what)),
        };
        let mut stored = self.records.remove(&key).unwrap_or_else(|| panic!("there is no {key}"));
        if let (Record::Cursor(cursor), "revert") = (&stored.record, verb) {
            let revision = words[3].parse().expect("a number");
            stored.record = Record::Cursor(Arc::new(crate::record::Cursor { revision, ..(**cursor).clone() }));
            self.units += 1;
            stored.version = crate::record::RecordVersion::new(1, self.units);
            self.records.insert(key, stored);
        }
    }

    /// Decides a command and returns its result as text.
    pub(in crate::decide) fn line(&mut self, actor: Actor, command: &Command) -> String {
        let before = self.records.clone();
        let many = before.keys().filter(|key| matches!(key, RecordKey::Job(_))).count() > 1;
        match self.execute(actor, command) {
            Ok(done) => {
                let look = |key: &RecordKey| {
                    before.get(key).or_else(|| self.records.get(key)).map(|stored| stored.record.clone())
                };
                let old = |key: &RecordKey| match key {
                    RecordKey::Run(_) | RecordKey::SkipSpan(_) => look(key),
                    _ => before.get(key).map(|stored| stored.record.clone()),
                };
                transcript::line(&done, old, many)
            }
            Err(rejection) => format!("! {rejection}"),
        }
    }

    fn put(&self, name: &str, items: &str, source: JobSource, provided: Precondition) -> Command {
        let uid = JobUid::from_bits(self.units.into());
        Command::PutJob { id: job_id(name), job: Arc::new(job(items)), source, uid, provided }
    }

    /// `rename OLD NEW`, with the scheduled runs that a store lists.
    fn rename(&self, from: &str, to: &str) -> Command {
        let (from, to) = (job_id(from), job_id(to));
        let scheduled = self.runs().filter(|run| run.job == from && run.state == State::Scheduled);
        let next_number = self.job_states().find(|state| state.job == from).map_or(1, |state| state.next_number);
        Command::RenameJob { scheduled: scheduled.map(|run| run.id).collect(), from, to, next_number }
    }

    /// `move NEW RUN…`, and with the word `identity` all outcomes of other jobs.
    fn move_history(&self, to: &str, what: &str) -> Command {
        let to = job_id(to);
        let keys = words(what).flat_map(|word| match &word[..] {
            "identity" => {
                let others = self.records.keys().filter(|key| matches!(key, RecordKey::Identity(job, _) if *job != to));
                others.cloned().collect()
            }
            run => vec![RecordKey::Run(self.run_id(run))],
        });
        Command::MoveHistory { keys: keys.collect(), to }
    }

    fn remove(&self, name: &str, source: JobSource, provided: Precondition) -> Command {
        Command::RemoveJob { id: job_id(name), source, provided }
    }

    /// Puts a job under the precondition that it has the revision `seen`; with `another`, that it has another uid.
    fn revise(&self, seen: &str, rest: &str) -> Command {
        let (name, items) = rest.split_once(' ').unwrap_or((rest, ""));
        self.put(name, items, JobSource::Api, self.seen(seen, name))
    }

    fn seen(&self, seen: &str, name: &str) -> Precondition {
        let stored = match self.records.get(&RecordKey::Job(job_id(name))).map(|stored| &stored.record) {
            Some(Record::Job(stored)) => Some(stored),
            _ => None,
        };
        let uid = stored.map(|stored| stored.uid).filter(|_| seen != "another");
        let revision = seen.parse().ok().or(stored.map(|stored| stored.revision));
        let (uid, revision) = (uid.unwrap_or_else(|| JobUid::from_bits(u128::MAX)), revision.unwrap_or(0));
        Precondition::As { uid, revision }
    }

    pub(super) fn command(&self, verb: &str, rest: &str) -> (Actor, Command) {
        let anna = Actor::Operator("anna".to_owned());
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let run = || self.run_id(first);
        let what = || (first != "all").then(|| job_id(first));
        match verb {
            "put" => (anna, self.put(first, more, JobSource::Api, Precondition::Any)),
            "add" => (anna, self.put(first, more, JobSource::Api, Precondition::New)),
            "change" => (anna, self.put(first, more, JobSource::Api, Precondition::There)),
            "revise" => (anna, self.revise(first, more)),
            "load" => (Actor::JobFiles, self.put(first, more, JobSource::Directory(String::new()), Precondition::Any)),
            "foreign" => (anna, self.put(first, more, JobSource::Foreign, Precondition::Any)),
            "remove" => (anna, self.remove(first, JobSource::Api, Precondition::Any)),
            "rename" => (anna, self.rename(first, more)),
            "move" => (Actor::Retention, self.move_history(first, more)),
            "discard" => (anna, self.remove(more, JobSource::Api, self.seen(first, more))),
            "withdraw" => (anna, self.remove(first, JobSource::Foreign, Precondition::Any)),
            "answer" => (Actor::Queue, answer(run(), more)),
            "repair" if first == "pool" => (Actor::Watchdog, repair_pool(more)),
            "repair" => (Actor::Watchdog, Command::RepairJob { job: job_id(first) }),
            "replan" => (Actor::Watchdog, Command::Replan { job: job_id(first) }),
            "pause" | "end-pause" | "resume" => pause_command(verb, what(), more),
            "fire" => {
                let (schedule, nominal) = more.split_once(' ').expect("a schedule and a time");
                let (job, schedule) = (job_id(first), self.schedule(first, schedule));
                let at_start = self.is_at_start(&job, &schedule);
                (Actor::Schedule, Command::Fire { job, schedule, nominal: instant(nominal), at_start })
            }
            "run" => {
                let id = RunId::from_key(START, &format!("{} {more}", self.now));
                (anna, run_command(first, more, id))
            }
            "ad-hoc" => (anna, self.ad_hoc_command(rest)),
            "trigger" | "emit" | "batch" | "untrigger" => super::trigger::command(verb, rest),
            "wake" => (Actor::Queue, Command::Wake { run: run() }),
            "task" | "progress" | "launched" | "lost" | "keeper-lost" | "unlaunched" | "ended" => {
                report(verb, run(), more)
            }
            "start" => (anna, Command::Start { run: run() }),
            "skip" => (anna, Command::Skip { run: run(), why: more.to_owned() }),
            "stop" => (anna, Command::Stop { run: run() }),
            "signal" => (anna, Command::Signal { run: run(), signal: Signal::parse(more).expect("a signal") }),
            "mark" => {
                let (state, why) = more.split_once(' ').unwrap_or((more, ""));
                let state = State::parse(state).expect("a state");
                (anna, Command::Mark { run: run(), state, why: why.to_owned() })
            }
            "rerun" => {
                let id = RunId::from_key(START, &format!("rerun {} {rest}", self.now));
                (anna, Command::Rerun { run: run(), id, current: more == "current" })
            }
            "prune" => {
                let key = |name: String| match self.span_id(&name) {
                    Some(span) => RecordKey::SkipSpan(span),
                    None => RecordKey::Run(self.run_id(&name)),
                };
                // A store lists the finished runs of one job.
                let job = job_id(first);
                let is_of_job = |stored: &&StoredRecord| match &stored.record {
                    Record::Run(run) => run.job == job && run.state.is_finished(),
                    Record::SkipSpan(span) => span.job == job,
                    _ => false,
                };
                let listed = words(more).filter_map(|name| self.records.get(&key(name)).filter(is_of_job));
                let records = listed.filter_map(PrunableRecord::new).collect();
                (Actor::Retention, Command::Prune { job, records })
            }
            _ => self.cluster_command(verb, rest),
        }
    }

    /// `ad-hoc ITEMS with ARGS`
    fn ad_hoc_command(&self, rest: &str) -> Command {
        let (items, more) = rest.split_once(" with ").unwrap_or((rest, ""));
        let id = RunId::from_key(START, &format!("ad hoc {}", self.now));
        let at = words(more).find_map(|word| word.strip_prefix("at=").map(instant));
        Command::RunAdHoc { job: Arc::new(job(items)), args: pairs(more, "at"), id, at, stop: None }
    }

    /// Fires cursors until none is due. A cursor that a decision postpones is not fired again at the same time.
    fn all_due(&mut self) -> Vec<String> {
        let mut results = Vec::new();
        let mut fired = BTreeSet::new();
        for _ in 0..DUE_MAX {
            let due = self.records.values().find_map(|stored| match &stored.record {
                Record::Cursor(cursor) if cursor.wake.is_some_and(|wake| wake <= self.now) => {
                    let fire = (cursor.job.clone(), cursor.schedule.clone(), cursor.next?);
                    (!fired.contains(&fire)).then_some(fire)
                }
                _ => None,
            });
            let Some(fire) = due else { return results };
            fired.insert(fire.clone());
            let (job, schedule, nominal) = fire;
            results.push(self.line(Actor::Schedule, &Command::Fire { job, schedule, nominal, at_start: false }));
        }
        panic!("more than {DUE_MAX} occurrences are due");
    }

    fn all_backlogs(&mut self) -> Vec<String> {
        let keys: Vec<RecordKey> = self.records.keys().cloned().collect();
        let backlogs = keys.into_iter().filter_map(|key| match key {
            RecordKey::Backlog(job, schedule) => Some(Command::CatchUp { job, schedule }),
            _ => None,
        });
        backlogs.map(|command| self.line(Actor::CatchUp, &command)).collect()
    }

    fn all_woken(&mut self) -> Vec<String> {
        let due: Vec<RunId> =
            self.runs().filter(|run| run.next_check().is_some_and(|due| due <= self.now)).map(|run| run.id).collect();
        due.into_iter().map(|run| self.line(Actor::Queue, &Command::Wake { run })).collect()
    }

    fn is_at_start(&self, job: &JobId, schedule: &ScheduleId) -> bool {
        let cursor = self.records.get(&RecordKey::Cursor(job.clone(), schedule.clone())).map(|stored| &stored.record);
        matches!(cursor, Some(Record::Cursor(cursor)) if cursor.at_start)
    }

    fn schedule(&self, job: &str, name: &str) -> ScheduleId {
        match self.records.get(&RecordKey::Job(job_id(job))).map(|stored| &stored.record) {
            // A dash means the job's first schedule, which has no name.
            Some(Record::Job(job)) if name == "-" => job.schedules().next().expect("a schedule").0.clone(),
            _ => ScheduleId::parse(name).expect("an id"),
        }
    }

    /// The id of a span of skips; `None` if the name is not that of a span.
    fn span_id(&self, name: &str) -> Option<RunId> {
        let (job, number) = name.split_once('#')?;
        let is_named =
            |span: &&Arc<SkipSpan>| (job.is_empty() || span.job.as_str() == job) && span.number.0.to_string() == number;
        self.skip_spans().find(is_named).map(|span| span.id)
    }

    pub(super) fn run_id(&self, name: &str) -> RunId {
        let (job, number) = name.split_once('#').unwrap_or_else(|| panic!("`{name}` is not a run"));
        let number = number.parse().expect("a number");
        if number == 0 {
            return RunId::from_key(START, "a run that is not there");
        }
        self.run((!job.is_empty()).then(|| job_id(job)).as_ref(), number).id
    }
}

/// `run JOB [at=TIME] [stop_at=TIME] [stop_after=SPAN] [NAME=VALUE…]`
fn run_command(job: &str, more: &str, id: RunId) -> Command {
    let mut args = pairs(more, "at");
    let at = words(more).find_map(|word| word.strip_prefix("at=").map(instant));
    let after = args.remove("stop_after").map(|span| StopTime::After(Span::parse(&span).expect("a span")));
    let stop = args.remove("stop_at").map(|at| StopTime::At(instant(&at))).or(after);
    Command::Run { job: job_id(job), args, id, at, stop }
}

/// A report about the program of a run, with who sends it.
fn report(verb: &str, run: RunId, more: &str) -> (Actor, Command) {
    let (actor, report) = match verb {
        "task" => (Actor::Program, ProgramReport::TaskStarted(more.to_owned())),
        "progress" => {
            let (percent, text) = more.split_once(' ').expect("percent and text");
            let progress = PluginProgress { percent: percent.parse().ok(), text: text.to_owned() };
            (Actor::Program, ProgramReport::Progress(progress))
        }
        "launched" => (Actor::Program, ProgramReport::Launched),
        "lost" => (Actor::Recovery, ProgramReport::Lost),
        "keeper-lost" => (Actor::Recovery, ProgramReport::KeeperLost),
        "unlaunched" => (Actor::Program, ProgramReport::NotLaunched(more.to_owned())),
        _ => (Actor::Program, ProgramReport::Ended(verdict(more))),
    };
    (actor, Command::Report { run, report })
}

/// `pause JOB [until=TIME] [WHY]`, `resume JOB`, and `end-pause JOB` for the end of its time.
fn pause_command(verb: &str, job: Option<JobId>, more: &str) -> (Actor, Command) {
    let anna = Actor::Operator("anna".to_owned());
    match verb {
        "pause" => {
            let timed = more.strip_prefix("until=").map(|more| more.split_once(' ').unwrap_or((more, "")));
            let (until, why) = timed.map_or((None, more), |(until, why)| (Some(instant(until)), why));
            (anna, Command::Pause { job, why: why.to_owned(), until })
        }
        "end-pause" => (Actor::Limit, Command::EndPause { job }),
        _ => (anna, Command::Resume { job }),
    }
}

/// Parses a job from the items of a script.
pub(in crate::decide) fn job(items: &str) -> Job {
    let mut job = Job::new(Program::Noop { duration: Span::from_secs(60) });
    for item in items.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once(' ').unwrap_or((item, ""));
        let span = || Span::parse(value).expect("a span");
        match key {
            "jitter" => last(&mut job).spec.jitter = span(),
            "calendar" => last(&mut job).spec.calendar = Some(CalendarExpr::parse(value).expect("a calendar")),
            "disabled" => last(&mut job).enabled = false,
            "args" => last(&mut job).args = pairs(value, "").into_iter().collect(),
            "overlap" => job.overlap = overlap(value),
            "catch_up" => job.catch_up = catch_up(value),
            "lock" if value.is_empty() => job.lock = LockPolicy::Job,
            "lock" => job.lock = LockPolicy::Named(value.to_owned()),
            "retry" => {
                job.retry.attempts = value.parse().expect("a number");
                // With its spread it is at most ten seconds.
                job.retry.backoff = Span::from_secs(8);
            }
            "retry_on_error" => drop(job.retry.on.insert(RetryOn::Error)),
            "timeout" => job.timeout = Some(span()),
            "late" => job.late = Some(span()),
            "label" => job.labels.push(value.to_owned()),
            "grace" => job.stop.grace = span(),
            "needs" => job.conditions.push(super::condition::condition(value)),
            "on_lost_retry" => job.on_lost = OnLost::Retry,
            "stop_after" => last(&mut job).stop = Some(StopSchedule::After(span())),
            "kept" => {
                let kept = value.parse().expect("a number");
                job.retain = Retain { success: kept, failure: kept, error: kept, skipped: kept, ..job.retain };
            }
            "each" => job.nodes = NodeSelector::Each(words(value).collect()),
            "ttl" => job.ttl = span(),
            "lease" => job.lease = Some(span()),
            "nodes" => job.nodes = NodeSelector::Labels(words(value).collect()),
            "param" => job.params.extend([(value.to_owned(), Param::default())]),
            "batching" => job.batching = Some(super::trigger::batching(value)),
            "remote" => job.program = super::remote::program(),
            "shell" => job.program = Program::Shell(crate::Template::parse(value).expect("a template")),
            "description" => job.description = value.to_owned(),
            // See `action.rs`.
            "on" => {
                let (event, action) = value.split_once(' ').expect("an event and an action");
                let event = RunEvent::parse(event).expect("an event");
                job.on.entry(event).or_default().push(super::action::rule(action));
            }
            "skipped" => job.retain.skipped = value.parse().expect("a number"),
            "off" => job.enabled = false,
            "paused" => job.paused = true,
            _ => job.schedules.push(schedule(item)),
        }
    }
    job
}

fn last(job: &mut Job) -> &mut JobSchedule {
    job.schedules.last_mut().expect("a schedule before it")
}

fn schedule(item: &str) -> JobSchedule {
    let (name, text) = match item.split_once(": ") {
        Some((name, text)) => (Some(name.to_owned()), text),
        None => (None, item),
    };
    let spec = ScheduleSpec::parse(text).unwrap_or_else(|error| panic!("{item}: {error}"));
    JobSchedule { name, spec, args: NameMap::new(), enabled: true, stop: None }
}

fn overlap(text: &str) -> OverlapPolicy {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("allow", _) => OverlapPolicy::Allow,
        ("skip", _) => OverlapPolicy::Skip,
        ("replace", _) => OverlapPolicy::Replace,
        ("queue", limit) => OverlapPolicy::Queue { limit: limit.parse().unwrap_or(crate::job::QUEUE_LIMIT_DEFAULT) },
        _ => panic!("`{text}` is not an overlap"),
    }
}

fn catch_up(text: &str) -> CatchUpRule {
    let (policy, within) = text.split_once(' ').unwrap_or((text, "1h"));
    let policy = match policy {
        "none" => CatchUpPolicy::None,
        "last" => CatchUpPolicy::Last,
        "all" => CatchUpPolicy::All,
        _ => panic!("`{policy}` is not a policy"),
    };
    CatchUpRule { policy, within: Span::parse(within).expect("a span") }
}

/// `yes`, `no` or `code 3`, and then perhaps `wrote 70000 last line but one/last line`.
fn verdict(text: &str) -> ExitOutcome {
    let (text, wrote) = text.split_once(" wrote ").map_or((text, None), |(text, wrote)| (text, Some(wrote)));
    let written = wrote.map(|wrote| {
        let (bytes, tail) = wrote.split_once(' ').expect("bytes and lines");
        OutputSummary {
            bytes: bytes.parse().expect("a number"),
            tail: tail.split('/').map(str::to_owned).collect(),
            stderr: None,
        }
    });
    let code = match text.strip_prefix("code ") {
        Some(code) => code.parse().expect("a number"),
        None if text.is_empty() || text == "yes" => return ExitOutcome { written, ..ExitOutcome::SUCCESS },
        None => 1,
    };
    let reason = (code != 0).then_some(Reason::ExitCode(code));
    ExitOutcome { success: code == 0, reason, exit: Some(ProgramExit::Code(code)), written, response: None }
}

/// `01:30`, `01:30:05` or `01:30:05.250` after the start of the script; hours may exceed 24.
pub(in crate::decide) fn instant(text: &str) -> Instant {
    let seconds = text.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().expect("a time"));
    let seconds = if text.matches(':').count() == 1 { seconds * 60.0 } else { seconds };
    START.plus(Span::from_micros((seconds * 1_000_000.0).round() as u64))
}

pub(in crate::decide) fn job_id(text: &str) -> JobId {
    JobId::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn pairs(text: &str, without: &str) -> BTreeMap<String, String> {
    let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.filter(|(name, _)| *name != without).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(str::to_owned)
}
