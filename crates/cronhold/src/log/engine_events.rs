//! Maps the events of the node to `tracing`. `core` and `engine` do not log, so this is the one place where their
//! events get a level, a stable name, fields and a message.

use std::fmt::{self, Display};
use std::sync::Arc;

use cronhold_cli::counted;
use cronhold_core::State;
use cronhold_core::command::CommandStamp;
use cronhold_core::decision::{DecidedUnit, RecordChange};
use cronhold_core::record::{ActionRecord, ActionStatus, Record, RecordKey, Run, SkipSpan, Transition};
use cronhold_engine::EngineEvent;
use cronhold_schedule::{Instant, Span};
use tracing::{Level, debug, error, info, warn};

/// The target of the node's own events.
const ENGINE: &str = "cronhold_engine";
/// The target of changes of runs, so that a filter can leave them out.
const RUNS: &str = "cronhold_engine::runs";
/// The target of changes of jobs.
const JOBS: &str = "cronhold_engine::jobs";
/// The target of actions.
const ACTIONS: &str = "cronhold_engine::actions";
/// A run that starts at least this long after its nominal time is logged with its delay.
const LATE: Span = Span::from_secs(1);

/// Logs an event about the clock of this machine; others are ignored.
fn log_clock(news: &EngineEvent<'_>) {
    match news {
        EngineEvent::ClockStep { forward, by } => warn!(
            target: ENGINE, event = "clock_stepped", forward, by_ms = by.millis(),
            "the system clock was set {} by {}; nothing starts for some seconds",
            if *forward { "forward" } else { "back" }, in_millis(*by)
        ),
        EngineEvent::Skew { is_off: true, is_ahead, by } => warn!(
            target: ENGINE, event = "clock_skewed", ahead = is_ahead, by_ms = by.millis(),
            "the clock of this machine is {} {} the store's time; jobs start by the store's time",
            in_millis(*by), if *is_ahead { "ahead of" } else { "behind" }
        ),
        EngineEvent::Skew { is_off: false, .. } => warn!(
            target: ENGINE, event = "clock_agrees", "the clock of this machine agrees with the store's time again"
        ),
        _ => {}
    }
}

/// Logs an event of the node. `store_state.rs` logs events about the store.
pub(super) fn log(news: &EngineEvent<'_>) {
    match news {
        EngineEvent::StoreUnavailable(_) | EngineEvent::StoreAvailable | EngineEvent::TriggersChecked(_) => {}
        EngineEvent::Committed { stamp, done } => log_commit(stamp, done),
        EngineEvent::Ready { planned, unfinished, took } => info!(
            target: ENGINE, event = "recovered", planned, unfinished, took_ms = took.millis(),
            "recovered in {}: {}, {}",
            in_millis(*took), counted(*planned, "scheduled item"), counted(*unfinished, "unfinished run")
        ),
        EngineEvent::ClockStep { .. } | EngineEvent::Skew { .. } => log_clock(news),
        EngineEvent::Repaired { key, late } => warn!(
            target: ENGINE, event = "watchdog_repaired", key = %key, late_ms = late.millis(),
            "the watchdog found {key}, {} late, and repaired it", in_millis(*late)
        ),
        EngineEvent::WatchdogDelayed { took, checked } => warn!(
            target: ENGINE, event = "watchdog_delayed", took_ms = took.millis(), checked,
            "the watchdog has checked {checked} records in {} and is not done; it repairs the others later",
            in_millis(*took)
        ),
        EngineEvent::OlderZones { ours, theirs } => warn!(
            target: ENGINE, event = "zone_data_older", ours, theirs,
            "schedules were computed with zone data {theirs}, which is newer than {ours}: next runs that differ are \
             left to nodes that have it, and start as planned if there are none"
        ),
        EngineEvent::ZonesDiffer { ours, others: [] } => info!(
            target: ENGINE, event = "zone_data_agrees", ours, "all nodes have zone data {ours}"
        ),
        EngineEvent::ZonesDiffer { ours, others } => {
            let others: Vec<String> = others.iter().map(|(node, zones)| format!("{node} has {zones}")).collect();
            let others = others.join(", ");
            warn!(
                target: ENGINE, event = "zone_data_differs", ours, others,
                "this node has zone data {ours}, and {others}; update it so that all nodes have the same"
            );
        }
        EngineEvent::NodeJoined(name) => {
            info!(target: ENGINE, event = "node_joined", node = name, "node {name} joined");
        }
        EngineEvent::NodeGone(name) => warn!(
            target: ENGINE, event = "node_lost", node = name, "node {name} has sent no heartbeat for some seconds"
        ),
        EngineEvent::Draining(true) => {
            warn!(target: ENGINE, event = "drain_started", "this node is draining: it starts no runs");
        }
        EngineEvent::Draining(false) => warn!(target: ENGINE, event = "drain_ended", "this node starts runs again"),
        EngineEvent::Keeper { problem: Some(problem) } => warn!(
            target: ENGINE, event = "keeper_failed", "this node cannot start programs and claims nothing: {problem}"
        ),
        EngineEvent::Keeper { problem: None } => {
            info!(target: ENGINE, event = "keeper_ready", "this node can start programs again");
        }
        EngineEvent::Replaced => warn!(
            target: ENGINE, event = "node_replaced",
            "another daemon has started with the identity of this node; this one stops"
        ),
        EngineEvent::ReportIgnored(run) => debug!(
            target: RUNS, event = "report_ignored", run = %run, "the end of run {run} is recorded already"
        ),
        EngineEvent::RecordUnreadable(record) => {
            let key = record.key.as_ref().map(ToString::to_string);
            warn!(target: ENGINE, event = "record_unreadable", key = key.as_deref(), "{record}");
        }
        EngineEvent::StoreDamaged(fault) => error!(target: ENGINE, event = "store_damaged", "{fault}"),
        EngineEvent::CommandDropped { command, reason } => {
            debug!(target: ENGINE, event = "command_ignored", "{command:?} was not carried out: {reason}");
        }
    }
}

/// Logs the result of an attempt to deliver an action.
fn log_action(action: &ActionRecord) {
    let (id, job, kind, target) = (action.id, &action.job, action.work.kind().name(), action.work.target());
    let (event, error) = (action.event, action.error.as_deref().unwrap_or_default());
    let what = format!("{kind} {target}").trim_end().to_owned();
    match action.status {
        ActionStatus::Done { .. } => debug!(
            target: ACTIONS, event = "action_done", action = %id, job = %job, kind, attempts = action.attempts,
            "delivered the action of {job} on {event}: {what}"
        ),
        ActionStatus::Failed { .. } => error!(
            target: ACTIONS, event = "action_given_up", action = %id, job = %job, kind, attempts = action.attempts, error,
            "gave up the action of {job} on {event}: {what}: {error}"
        ),
        ActionStatus::Pending { owner: None, due } if action.failures > 0 => warn!(
            target: ACTIONS, event = "action_failed", action = %id, job = %job, kind, attempts = action.attempts, error,
            "the action of {job} on {event} failed and is tried again at {due}: {what}: {error}"
        ),
        ActionStatus::Pending { .. } => {}
    }
}

fn log_commit(stamp: &CommandStamp, done: &DecidedUnit) {
    for change in &done.changes {
        match change {
            RecordChange::Put(Record::Run(run)) => log_run(run, stamp.at),
            RecordChange::Put(Record::SkipSpan(span)) => log_span(span, stamp.at),
            RecordChange::Put(Record::Action(action)) => log_action(action),
            RecordChange::Put(Record::Job(job)) => debug!(
                target: JOBS, event = "job_put", job = %job.id, revision = job.revision, actor = %stamp.actor,
                "job {} has revision {} ({})", job.id, job.revision, stamp.actor
            ),
            RecordChange::Delete(RecordKey::Job(job)) => debug!(
                target: JOBS, event = "job_removed", job = %job, actor = %stamp.actor,
                "job {job} is removed ({})", stamp.actor
            ),
            _ => {}
        }
    }
}

/// Logs each state that a run entered with the commit.
fn log_run(run: &Arc<Run>, at: Instant) {
    let first = run.log.iter().rposition(|transition| transition.at != at).map_or(0, |before| before + 1);
    for transition in run.log.iter().skip(first) {
        // The level of a call site is fixed, so there is one for each.
        macro_rules! log_at {
            ($level:expr) => {{
                if tracing::enabled!(target: RUNS, $level) {
                    let line = RunLine::new(run, transition);
                    tracing::event!(
                        target: RUNS, $level, event = "run_state", job = %run.job, number = run.number.0,
                        run = %run.id, state = %transition.state, reason = line.reason(),
                        attempt = (run.attempt > 1).then_some(run.attempt), took_ms = line.took.map(Span::millis),
                        late_ms = line.late.map(Span::millis), "{line}"
                    );
                }
            }};
        }
        match transition.state {
            State::Error => log_at!(Level::ERROR),
            State::Failure => log_at!(Level::WARN),
            State::Running | State::Success | State::Skipped => log_at!(Level::INFO),
            State::Scheduled | State::Waiting | State::Starting | State::Stopping => log_at!(Level::DEBUG),
        }
    }
}

/// Logs a span of skips when it is created. Extending it is not logged.
fn log_span(span: &SkipSpan, at: Instant) {
    if span.log.iter().all(|transition| transition.at != at) {
        return;
    }
    let count = counted(usize::try_from(span.range.count).unwrap_or(usize::MAX), "occurrence");
    tracing::event!(
        target: RUNS, Level::INFO, event = "run_state", job = %span.job, number = span.number.0, run = %span.id,
        state = %State::Skipped, reason = span.reason.to_string(),
        "{}#{} {} {count}: {}", span.job, span.number.0, State::Skipped, span.reason
    );
}

/// The message for a change of a run: `backup#42 failure: exit code 3 (took 6ms)`.
struct RunLine<'a> {
    run: &'a Run,
    transition: &'a Transition,
    /// How long its program ran; `None` if it is not finished.
    took: Option<Span>,
    /// Time between its nominal time and its creation; `None` if that is short.
    late: Option<Span>,
}

impl<'a> RunLine<'a> {
    fn new(run: &'a Run, transition: &'a Transition) -> Self {
        // The same span as in lists of runs: how long the program ran.
        let started = run.entered(State::Running).or_else(|| run.entered(State::Starting));
        let started = started.filter(|_| transition.state.is_finished());
        let took = started.map(|started| in_millis(transition.at.since(started))).filter(|took| !took.is_zero());
        let late = run.log.first().map(|first| in_millis(first.at.since(run.nominal)));
        let late = late.filter(|late| run.schedule.is_some() && *late >= LATE);
        Self { run, transition, took, late }
    }

    fn reason(&self) -> Option<&str> {
        Some(self.transition.message.as_str()).filter(|reason| !reason.is_empty())
    }
}

impl Display for RunLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, transition, .. } = self;
        write!(f, "{}#{} {}", run.job, run.number.0, transition.state)?;
        if let Some(reason) = self.reason() {
            write!(f, ": {reason}")?;
        }
        let took = self.took.map(|took| format!("took {took}"));
        let late = self.late.map(|late| format!("{late} late"));
        let attempt = (run.attempt > 1).then(|| format!("attempt {}", run.attempt));
        let notes: Vec<String> = [took, late, attempt].into_iter().flatten().collect();
        if notes.is_empty() { Ok(()) } else { write!(f, " ({})", notes.join(", ")) }
    }
}

fn in_millis(span: Span) -> Span {
    Span::from_millis(span.millis())
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::{Actor, RunOwner, ScheduleId};
    use cronhold_core::run::Reason;
    use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber};

    use cronhold_store::UnreadableRecord;

    use super::super::tests::logged;
    use super::*;

    fn at(millis: i64) -> Instant {
        Instant::from_millis(1_767_225_600_000 + millis)
    }

    fn run(log: &[(State, i64, &str)]) -> Arc<Run> {
        let transition = |(state, millis, message): &(State, i64, &str)| {
            Transition::entered(at(*millis), *state, Actor::Schedule).with_message(*message)
        };
        let (id, job) = (RunId::from_random(at(0), [7; 10]), JobId::parse("backup").expect("an id"));
        Arc::new(Run {
            schedule: Some(ScheduleId::parse("nightly").expect("an id")),
            state: log.last().expect("a state").0,
            log: log.iter().map(transition).collect(),
            ..Run::blank(id, RunNumber(42), job, JobUid::from_bits(1), at(0))
        })
    }

    /// Levels and messages of what is logged for a commit of this run.
    fn lines(log: &[(State, i64, &str)], level: Level) -> String {
        let now = at(log.last().expect("a state").1);
        let owner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };
        let stamp = CommandStamp { at: now, actor: Actor::Schedule, owner };
        let done = DecidedUnit { changes: vec![RecordChange::Put(Record::Run(run(log)))], ..DecidedUnit::default() };
        let lines = logged(level, || super::log(&EngineEvent::Committed { stamp: &stamp, done: &done }));
        let line = |line: &serde_json::Value| {
            assert_eq!(
                (&line["event"], &line["job"], &line["number"]),
                (&"run_state".into(), &"backup".into(), &42.into())
            );
            format!("{} {}\n", line["level"].as_str().expect("text"), line["message"].as_str().expect("text"))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn run_states_have_levels_and_messages() {
        use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};
        let code = Reason::ExitCode(3).to_string();
        for (log, level, expected) in [
            (&[(Starting, 3, ""), (Running, 4, "")][..], Level::INFO, "info backup#42 running\n"),
            (&[(Starting, 3, ""), (Success, 5_010, "")], Level::INFO, "info backup#42 success (took 5s7ms)\n"),
            (
                &[(Starting, 3, ""), (Failure, 9, &code)],
                Level::WARN,
                "warn backup#42 failure: exit code 3 (took 6ms)\n",
            ),
            (&[(Starting, 3, ""), (Success, 9, "")], Level::WARN, ""),
            (&[(Waiting, 3, "")], Level::INFO, ""),
            (
                &[(Waiting, 3, ""), (Starting, 3, "")],
                Level::DEBUG,
                "debug backup#42 waiting\ndebug backup#42 starting\n",
            ),
            (&[(Skipped, 2, "overlap")], Level::INFO, "info backup#42 skipped: overlap\n"),
            (
                &[(Waiting, 12_000, ""), (Skipped, 12_000, "lock")],
                Level::INFO,
                "info backup#42 skipped: lock (12s late)\n",
            ),
            (&[(Error, 1, "not bound: a")], Level::INFO, "error backup#42 error: not bound: a\n"),
        ] {
            assert_eq!(lines(log, level), expected, "{log:?}");
        }
    }

    #[test]
    fn node_events_have_names_fields_and_messages() {
        let unreadable = UnreadableRecord { key: Some(RecordKey::Pause), version: None, reason: "not JSON".to_owned() };
        for (news, expected) in [
            (
                EngineEvent::Ready { planned: 1, unfinished: 2, took: Span::from_micros(12_345) },
                "info recovered: recovered in 12ms: 1 scheduled item, 2 unfinished runs",
            ),
            (
                EngineEvent::ClockStep { forward: false, by: Span::from_secs(61) },
                "warn clock_stepped: the system clock was set back by 1m1s; nothing starts for some seconds",
            ),
            (
                EngineEvent::Skew { is_off: true, is_ahead: false, by: Span::from_millis(1_250) },
                "warn clock_skewed: the clock of this machine is 1s250ms behind the store's time; \
                 jobs start by the store's time",
            ),
            (EngineEvent::NodeGone("b"), "warn node_lost: node b has sent no heartbeat for some seconds"),
            (EngineEvent::RecordUnreadable(&unreadable), "warn record_unreadable: cannot read pause: not JSON"),
        ] {
            let lines = logged(Level::DEBUG, || log(&news));
            let [line] = &lines[..] else { panic!("one line: {lines:?}") };
            let text = |name: &str| line[name].as_str().expect("text").to_owned();
            assert_eq!(format!("{} {}: {}", text("level"), text("event"), text("message")), expected);
            assert_eq!(text("target"), ENGINE);
        }
    }
}
