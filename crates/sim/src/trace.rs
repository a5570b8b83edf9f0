//! The film: one line for each event, the same byte for byte whenever the seed is the same. Lines are only made when
//! somebody wants to see them, because most seeds are run without.

use cronhold_core::decision::RecordChange;
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{Cursor, Record, RecordKey, Run, SkipSpan};
use cronhold_engine::EngineEvent;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use crate::store_model::{StoreModel, name, span_name};

/// The lines of one simulation.
#[derive(Debug, Default)]
pub(crate) struct EventTrace {
    is_wanted: bool,
    lines: Vec<String>,
}

impl EventTrace {
    /// A film, which stays empty unless it is wanted.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, lines: Vec::new() }
    }

    /// Whether anyone wants to see it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Adds a line.
    pub(crate) fn say(&mut self, at: Span, who: &str, what: impl FnOnce() -> String) {
        if self.is_wanted {
            self.lines.push(format!("{} {who:<5} {}", since_start(at), what()));
        }
    }

    /// All lines.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// A unit in short words: what became of runs, jobs, schedules and pauses. `before` is what was there.
pub(crate) fn of_unit(unit: &Unit, before: &StoreModel) -> String {
    let mut parts: Vec<String> = unit.changes.iter().filter_map(|change| of_change(change, before)).collect();
    parts.extend(unit.take.iter().map(|take| format!("lock {} taken", take.lock)));
    parts.extend(unit.free.iter().map(|free| format!("lock {} freed", free.lock)));
    format!("commit {}: {}", unit.version, parts.join("; "))
}

/// News of a node; nothing, where the store has told the same already.
pub(crate) fn of_news(news: &EngineEvent<'_>) -> Option<String> {
    match news {
        EngineEvent::Committed { .. } | EngineEvent::ReportIgnored(_) => None,
        EngineEvent::Ready { planned, unfinished, .. } => {
            Some(format!("ready: {planned} planned, {unfinished} unfinished"))
        }
        EngineEvent::StoreUnavailable(fault) => Some(fault.to_string()),
        EngineEvent::StoreAvailable => Some("the store is back".to_owned()),
        EngineEvent::ClockStep { forward, by } => {
            Some(format!("saw its clock being set {} by {by}", if *forward { "forward" } else { "back" }))
        }
        EngineEvent::Skew { is_off: true, is_ahead, by } => {
            Some(format!("its clock is {} by {by}", if *is_ahead { "ahead" } else { "behind" }))
        }
        EngineEvent::Skew { is_off: false, .. } => Some("its clock is right".to_owned()),
        EngineEvent::Repaired { key, late } => Some(format!("repairs {} ({late} late)", of_key(key))),
        EngineEvent::OlderZones { ours, theirs, .. } => Some(format!("zone data {ours} is older than {theirs}")),
        EngineEvent::NodeJoined(name) => Some(format!("sees {name}")),
        EngineEvent::NodeGone(name) => Some(format!("does not hear of {name} any more")),
        EngineEvent::Draining(on) => Some(if *on { "drains" } else { "drains no more" }.to_owned()),
        EngineEvent::Replaced => Some("was replaced".to_owned()),
        EngineEvent::RecordUnreadable { key, reason } => Some(format!("cannot read {key:?}: {reason}")),
        EngineEvent::CommandDropped { command, reason } => Some(format!("dropped {command:?}: {reason}")),
    }
}

fn of_change(change: &RecordChange, before: &StoreModel) -> Option<String> {
    match change {
        RecordChange::Put(Record::Run(run)) => Some(of_run(run, before)),
        RecordChange::Put(Record::SkipSpan(span)) => Some(of_span(span, before)),
        RecordChange::Put(Record::Job(job)) => Some(format!("job {} revision {}", job.id, job.revision)),
        RecordChange::Put(Record::Cursor(cursor)) => Some(of_cursor(cursor)),
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
        RecordChange::Delete(RecordKey::Run(run)) => before.runs.get(run).map(|run| format!("{} forgotten", name(run))),
        RecordChange::Delete(RecordKey::SkipSpan(span)) => {
            before.spans.get(span).map(|span| format!("{} forgotten", span_name(span)))
        }
        RecordChange::Delete(key) => Some(format!("no {} any more", of_key(key))),
    }
}

fn of_run(run: &Run, before: &StoreModel) -> String {
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
    if let Some(reason) = run.reason.as_ref().filter(|_| old.is_none_or(|old| old.reason != run.reason)) {
        text += &format!(" ({reason})");
    }
    text
}

fn of_span(span: &SkipSpan, before: &StoreModel) -> String {
    let CountedRange { from, to, count } = span.range;
    let mut text = span_name(span);
    if before.spans.contains_key(&span.id) {
        text += " extended to";
    } else {
        text += &format!(" skipped ({}):", span.reason);
    }
    text + &format!(" {count} from {} to {}", clock(from), clock(to))
}

fn of_cursor(cursor: &Cursor) -> String {
    let next = cursor.next.map_or_else(|| "never".to_owned(), clock);
    format!("{} {} next {next}", cursor.job, short(cursor.schedule.as_str()))
}

fn of_key(key: &RecordKey) -> String {
    match key {
        RecordKey::Cursor(job, schedule) => format!("cursor of {job} {}", short(schedule.as_str())),
        RecordKey::Backlog(job, schedule) => format!("backlog of {job} {}", short(schedule.as_str())),
        other => other.to_string(),
    }
}

/// The first letters of a digest are enough to tell the schedules of a job apart.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// The time of day of an instant.
fn clock(at: Instant) -> String {
    let text = at.to_string();
    text.split_once('T').map_or_else(|| text.clone(), |(_, time)| time.trim_end_matches('Z').to_owned())
}

/// The time of a line.
pub(crate) fn since_start(at: Span) -> String {
    let (secs, micros) = (at.secs(), at.micros() % 1_000_000);
    format!("{:02}:{:02}:{:02}.{micros:06}", secs / 3_600, secs / 60 % 60, secs % 60)
}
