//! The trace: one line per event, identical byte for byte for the same seed. Lines are formatted only if a trace was
//! requested, because most seeds run without one.

use cronhold_core::decision::RecordChange;
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{Cursor, Record, RecordKey, Run, SkipSpan};
use cronhold_engine::EngineEvent;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use crate::store_model::{StoreModel, name, span_name};

#[derive(Debug, Default)]
pub(crate) struct EventTrace {
    is_wanted: bool,
    lines: Vec<String>,
}

impl EventTrace {
    /// A trace, which stays empty unless it is wanted.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, lines: Vec::new() }
    }

    /// Whether lines are recorded.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub(crate) fn log(&mut self, at: Span, source: &str, what: impl FnOnce() -> String) {
        if self.is_wanted {
            self.lines.push(format!("{} {source:<5} {}", since_start(at), what()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// Describes a unit: its changes to runs, jobs, schedules and pauses. `before` is the store before the unit.
pub(crate) fn describe_unit(unit: &Unit, before: &StoreModel) -> String {
    let mut parts: Vec<String> = unit.changes.iter().filter_map(|change| describe_change(change, before)).collect();
    parts.extend(unit.take.iter().map(|take| format!("lock {} taken", take.lock)));
    parts.extend(unit.free.iter().map(|free| format!("lock {} freed", free.lock)));
    format!("commit {}: {}", unit.version, parts.join("; "))
}

/// Describes an event of a node; `None` if the store reports the same event.
pub(crate) fn describe_event(event: &EngineEvent<'_>) -> Option<String> {
    match event {
        EngineEvent::Committed { .. } | EngineEvent::ReportIgnored(_) | EngineEvent::TriggersChecked(_) => None,
        EngineEvent::Ready { planned, unfinished, .. } => {
            Some(format!("ready: {planned} planned, {unfinished} unfinished"))
        }
        EngineEvent::StoreUnavailable(fault) => Some(fault.to_string()),
        EngineEvent::StoreAvailable => Some("the store is available".to_owned()),
        EngineEvent::ClockStep { forward, by } => {
            Some(format!("detected a clock step {} by {by}", if *forward { "forward" } else { "back" }))
        }
        EngineEvent::Skew { is_off: true, is_ahead, by } => {
            Some(format!("its clock is {} by {by}", if *is_ahead { "ahead" } else { "behind" }))
        }
        EngineEvent::Skew { is_off: false, .. } => Some("its clock is correct".to_owned()),
        EngineEvent::Repaired { key, late } => Some(format!("repairs {} ({late} late)", describe_key(key))),
        EngineEvent::WatchdogDelayed { took, checked } => Some(format!("checked {checked} records in {took}")),
        EngineEvent::OlderZones { ours, theirs, .. } => Some(format!("zone data {ours} is older than {theirs}")),
        EngineEvent::ZonesDiffer { others, .. } => Some(format!("{} nodes have other zone data", others.len())),
        EngineEvent::NodeJoined(name) => Some(format!("sees {name}")),
        EngineEvent::NodeGone(name) => Some(format!("lost {name}")),
        EngineEvent::Draining(on) => Some(if *on { "drains" } else { "stops draining" }.to_owned()),
        EngineEvent::Keeper { problem } => {
            Some(problem.map_or_else(|| "has a keeper".to_owned(), |problem| format!("claims nothing: {problem}")))
        }
        EngineEvent::Replaced => Some("was replaced".to_owned()),
        EngineEvent::RecordUnreadable(record) => Some(record.to_string()),
        EngineEvent::StoreDamaged(fault) => Some(fault.to_string()),
        EngineEvent::CommandDropped { command, reason } => Some(format!("dropped {command:?}: {reason}")),
    }
}

fn describe_change(change: &RecordChange, before: &StoreModel) -> Option<String> {
    match change {
        RecordChange::Put(Record::Run(run)) => Some(describe_run(run, before)),
        RecordChange::Put(Record::SkipSpan(span)) => Some(describe_span(span, before)),
        RecordChange::Put(Record::Job(job)) => Some(format!("job {} revision {}", job.id, job.revision)),
        RecordChange::Put(Record::Cursor(cursor)) => Some(describe_cursor(cursor)),
        RecordChange::Put(Record::Backlog(backlog)) => {
            let later = backlog.later.len();
            Some(format!("backlog {} {}..{} +{later}", backlog.job, clock(backlog.position), clock(backlog.to)))
        }
        RecordChange::Put(Record::Pause(pauses)) => {
            Some(if pauses.is_paused() { "all paused" } else { "all resumed" }.to_owned())
        }
        RecordChange::Put(Record::JobState(state)) => {
            let was = before.states.get(&state.job).is_some_and(|state| state.pauses.is_paused());
            match (was, state.pauses.is_paused()) {
                (false, true) => Some(format!("{} paused", state.job)),
                (true, false) => Some(format!("{} resumed", state.job)),
                _ => None,
            }
        }
        RecordChange::Put(_) => None,
        RecordChange::Delete(RecordKey::Run(run)) => before.runs.get(run).map(|run| format!("{} deleted", name(run))),
        RecordChange::Delete(RecordKey::SkipSpan(span)) => {
            before.spans.get(span).map(|span| format!("{} deleted", span_name(span)))
        }
        RecordChange::Delete(key) => Some(format!("{} deleted", describe_key(key))),
    }
}

fn describe_run(run: &Run, before: &StoreModel) -> String {
    let old = before.runs.get(&run.id);
    let known = old.map_or(0, |old| old.log.len());
    let mut text = name(run);
    if old.is_none() && run.attempt > 1 {
        text += &format!(" (attempt {})", run.attempt);
    }
    if let Some(old) = old {
        text += &format!(" {}", old.state);
    } else if run.schedule.is_some() {
        text += &format!(" for {}", clock(run.nominal));
    }
    for entry in run.log.iter().skip(known) {
        text += &format!(" → {} by {}", entry.state, entry.actor);
        if !entry.message.is_empty() {
            text += &format!(" ({})", entry.message);
        }
    }
    if !run.blockers.is_empty() {
        let blockers: Vec<String> = run.blockers.iter().map(ToString::to_string).collect();
        text += &format!(" for {}", blockers.join(" and "));
    }
    if let Some(reason) = run.reason.as_ref().filter(|_| old.is_none_or(|old| old.reason != run.reason)) {
        text += &format!(" ({reason})");
    }
    text
}

fn describe_span(span: &SkipSpan, before: &StoreModel) -> String {
    let CountedRange { from, to, count } = span.range;
    let mut text = span_name(span);
    if before.spans.contains_key(&span.id) {
        text += " extended to";
    } else {
        text += &format!(" skipped ({}):", span.reason);
    }
    text + &format!(" {count} from {} to {}", clock(from), clock(to))
}

fn describe_cursor(cursor: &Cursor) -> String {
    let next = cursor.next.map_or_else(|| "never".to_owned(), clock);
    format!("{} {} next {next}", cursor.job, short(cursor.schedule.as_str()))
}

fn describe_key(key: &RecordKey) -> String {
    match key {
        RecordKey::Cursor(job, schedule) => format!("cursor of {job} {}", short(schedule.as_str())),
        RecordKey::Backlog(job, schedule) => format!("backlog of {job} {}", short(schedule.as_str())),
        other => other.to_string(),
    }
}

/// Shortens a digest; eight characters distinguish the schedules of a job.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// The time of day of an instant.
fn clock(at: Instant) -> String {
    let text = at.to_string();
    text.split_once('T').map_or_else(|| text.clone(), |(_, time)| time.trim_end_matches('Z').to_owned())
}

/// Formats the time of a line.
pub(crate) fn since_start(at: Span) -> String {
    let (secs, micros) = (at.secs(), at.micros() % 1_000_000);
    format!("{:02}:{:02}:{:02}.{micros:06}", secs / 3_600, secs / 60 % 60, secs % 60)
}
