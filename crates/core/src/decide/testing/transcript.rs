//! The result of a decision as one line: runs first, then cursors, backlogs and pauses, then effects.

use cronhold_schedule::Instant;

use super::START;
use super::trigger::{reply_text, set_text};
use crate::decision::{CommandReply, DecidedUnit, Effect, RecordChange};
use crate::policy::catch_up::CountedRange;
use crate::record::{ActionRecord, ActionStatus, Backlog, Cursor, PauseState, Pool, Record, RecordKey, Run, SkipSpan};
use crate::when::When;

/// A time since the start of the script, as short as possible.
pub(super) fn time(at: Instant) -> String {
    let micros = at.micros() - START.micros();
    let (sign, micros) = if micros < 0 { ("-", -micros) } else { ("", micros) };
    let secs = micros / 1_000_000;
    let mut text = format!("{sign}{:02}:{:02}", secs / 3600, secs / 60 % 60);
    if micros % 60_000_000 != 0 {
        text += &format!(":{:02}", secs % 60);
    }
    if micros % 1_000_000 != 0 {
        text += &format!(".{:03}", micros / 1_000 % 1_000);
    }
    text
}

/// The changes and effects of a unit. `many` means that there are several jobs, so that each is named.
pub(super) fn line(done: &DecidedUnit, before: impl Fn(&RecordKey) -> Option<Record>, many: bool) -> String {
    let mut parts: Vec<((u8, u64), String)> = Vec::new();
    for change in &done.changes {
        let old = before(&change.key());
        let part = match (change, &old) {
            (RecordChange::Put(Record::Run(run)), old) => {
                ((0, run.number.0), format!("{}{}", run_text(run, many), asked_text(run, old.as_ref())))
            }
            (RecordChange::Put(Record::SkipSpan(span)), _) => ((0, span.number.0), span_text(span, many)),
            (RecordChange::Put(Record::Cursor(cursor)), Some(Record::Cursor(old))) => match cursor_changes(old, cursor)
            {
                text if text.is_empty() => continue,
                text => ((1, 0), named(cursor, &text, many)),
            },
            (RecordChange::Put(Record::Cursor(cursor)), _) => ((1, 0), named(cursor, &cursor_text(cursor), many)),
            (RecordChange::Delete(RecordKey::Cursor(..)), Some(Record::Cursor(old))) => {
                ((1, 0), named(old, "gone", many))
            }
            (RecordChange::Put(Record::Action(action)), _) => ((0, u64::MAX), action_text(action)),
            (RecordChange::Delete(RecordKey::Action(action)), _) => ((5, 1), format!("action {} gone", action.number)),
            (RecordChange::Put(Record::Pool(pool)), _) => ((2, 1), pool_text(pool, done, &before, many)),
            (RecordChange::Delete(RecordKey::Pool(pool)), _) => ((2, 1), format!("pool {pool} gone")),
            (RecordChange::Put(Record::Triggers(set)), _) => ((2, 2), set_text(set)),
            (RecordChange::Delete(RecordKey::Triggers(_)), _) => ((2, 2), "no triggers".to_owned()),
            (RecordChange::Put(Record::Backlog(backlog)), _) => ((2, 0), backlog_text(backlog)),
            (RecordChange::Delete(RecordKey::Backlog(..)), _) => ((2, 0), "backlog gone".to_owned()),
            (RecordChange::Put(Record::JobState(state)), Some(Record::JobState(old))) if state.pauses != old.pauses => {
                ((3, 0), pause_text(&state.pauses, "job"))
            }
            (RecordChange::Put(Record::JobState(state)), None) if state.pauses.is_paused() => {
                ((3, 0), pause_text(&state.pauses, "job"))
            }
            (RecordChange::Put(Record::Pause(pauses)), _) => ((3, 0), pause_text(pauses, "everything")),
            (RecordChange::Put(Record::Node(node)), _) => {
                let does = if node.draining { "drains" } else { "starts things" };
                ((4, 0), format!("node {} {does}", node.id.bits()))
            }
            (RecordChange::Put(Record::Job(job)), _) => ((4, 0), format!("job r{}", job.revision)),
            (RecordChange::Delete(RecordKey::Job(_)), _) => ((4, 0), "job gone".to_owned()),
            (RecordChange::Delete(RecordKey::Run(_)), Some(Record::Run(old))) => {
                ((5, 0), format!("#{} gone", old.number.0))
            }
            (RecordChange::Delete(RecordKey::SkipSpan(_)), Some(Record::SkipSpan(old))) => {
                ((5, 0), format!("#{} gone", old.number.0))
            }
            _ => continue,
        };
        parts.push(part);
    }
    parts.sort_by_key(|(order, _)| *order);
    let mut texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    texts.extend(done.effects.iter().map(|effect| effect_text(effect, &before)));
    match done.answer {
        CommandReply::Unchanged => texts.push("unchanged".to_owned()),
        CommandReply::Run { number, .. } => texts.push(format!("→ #{}", number.0)),
        CommandReply::Done if texts.is_empty() => texts.push("nothing".to_owned()),
        CommandReply::Done => {}
        CommandReply::Trigger { .. } | CommandReply::Removed { .. } => texts.extend(reply_text(&done.answer)),
    }
    texts.join(", ")
}

fn run_text(run: &Run, many: bool) -> String {
    let job = if many { run.job.as_str() } else { "" };
    let nominal = time(run.nominal);
    let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let ending = run.ending.as_ref().filter(|_| !run.state.is_finished());
    let ending = ending.map(|ending| format!(" ({ending})")).unwrap_or_default();
    let attempt = if run.attempt > 1 { format!(" attempt {}", run.attempt) } else { String::new() };
    let on = run.target.map(|node| format!("@{}", node.bits())).unwrap_or_default();
    format!("{job}#{}{on} {nominal}{attempt} {}{reason}{ending}", run.number.0, run.state)
}

/// The checks that a run asks for now: `, asks 1 the file …`.
fn asked_text(run: &Run, old: Option<&Record>) -> String {
    let before = match old {
        // A new run is its own old one.
        Some(Record::Run(old)) if **old != *run => old.probes.iter().map(|probe| probe.attempt).max().unwrap_or(0),
        _ => 0,
    };
    let asked = run.probes.iter().filter(|probe| probe.attempt > before && probe.asked.is_some());
    asked.map(|probe| format!(", asks {} {}", probe.attempt, probe.probe)).collect()
}

fn span_text(span: &SkipSpan, many: bool) -> String {
    let job = if many { span.job.as_str() } else { "" };
    let CountedRange { from, to, count } = span.range;
    format!("{job}#{} {}–{} ×{count} skipped: {}", span.number.0, time(from), time(to), span.reason)
}

/// `pool db: #1 #2`.
fn pool_text(pool: &Pool, done: &DecidedUnit, before: impl Fn(&RecordKey) -> Option<Record>, many: bool) -> String {
    let written = |key: &RecordKey| {
        done.changes.iter().find_map(|change| match change {
            RecordChange::Put(record) if record.key() == *key => Some(record.clone()),
            _ => None,
        })
    };
    let mut text = format!("pool {}:", pool.name);
    for active in &pool.active {
        let key = RecordKey::Run(active.run);
        text += &match written(&key).or_else(|| before(&key)) {
            Some(Record::Run(run)) if many => format!(" {}#{}", run.job, run.number.0),
            Some(Record::Run(run)) => format!(" #{}", run.number.0),
            _ => " ?".to_owned(),
        };
    }
    text
}

fn named(cursor: &Cursor, text: &str, many: bool) -> String {
    // A digest means nothing to the reader; names in scripts are short.
    let schedule = Some(cursor.schedule.as_str()).filter(|id| id.len() <= 8).unwrap_or("");
    let job = if many { cursor.job.as_str() } else { "" };
    format!("{job} {schedule} {text}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cursor_text(cursor: &Cursor) -> String {
    let wake = cursor.wake.filter(|wake| Some(*wake) != cursor.next).map(|wake| format!(" ({})", time(wake)));
    match cursor.next {
        Some(next) => format!("next {}{}", time(next), wake.unwrap_or_default()),
        None if cursor.follows.is_some() => "follows its run".to_owned(),
        None if cursor.at_start => "at start".to_owned(),
        None => "no next".to_owned(),
    }
}

fn cursor_changes(old: &Cursor, new: &Cursor) -> String {
    let is_same = (old.next, old.wake, old.follows) == (new.next, new.wake, new.follows);
    if is_same { String::new() } else { cursor_text(new) }
}

/// `action 0 failure run other (tried 1) pending 00:10`.
fn action_text(action: &ActionRecord) -> String {
    let ActionRecord { id, event, work, attempts, failures, error, status, .. } = action;
    let tried = if *attempts > 0 { format!(" tried {attempts}") } else { String::new() };
    let failed = if *failures > 0 { format!(" failed {failures}") } else { String::new() };
    let status = match status {
        ActionStatus::Pending { owner: Some(owner), .. } => {
            format!("at node {}.{}", owner.node.bits(), owner.incarnation)
        }
        ActionStatus::Pending { due, owner: None } => format!("due {}", time(*due)),
        other => other.name().to_owned(),
    };
    let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
    let target = Some(work.target()).filter(|target| !target.is_empty()).map(|target| format!(" {target}"));
    format!(
        "action {} {event} {}{}{tried}{failed} {status}{error}",
        id.number,
        work.kind().name(),
        target.unwrap_or_default()
    )
}

fn backlog_text(backlog: &Backlog) -> String {
    let stretch = |rest: CountedRange| format!("{}–{} of {}", time(rest.from), time(rest.to), rest.count);
    format!("backlog {}", backlog.rest().map(stretch).collect::<Vec<_>>().join(" and "))
}

fn pause_text(pauses: &PauseState, what: &str) -> String {
    match &pauses.current {
        Some(pause) => {
            let until = pause.until.map(|until| format!(" until {}", time(until))).unwrap_or_default();
            let why = if pause.why.is_empty() { String::new() } else { format!(": {}", pause.why) };
            format!("{what} paused{until}{why}")
        }
        None => format!("{what} resumed"),
    }
}

fn effect_text(effect: &Effect, before: impl Fn(&RecordKey) -> Option<Record>) -> String {
    let number = |run: &crate::ids::RunId| match before(&RecordKey::Run(*run)) {
        Some(Record::Run(run)) => format!("#{}", run.number.0),
        _ => run.to_string(),
    };
    let then = |at: &When| match at {
        When::Now => "now".to_owned(),
        When::At(at) => time(*at),
        When::Never => "never".to_owned(),
    };
    match effect {
        Effect::Plan { next: Some((next, due)), .. } if next == due => format!("(plan {})", time(*next)),
        Effect::Plan { next: Some((next, due)), .. } => format!("(plan {} at {})", time(*next), time(*due)),
        Effect::Plan { next: None, .. } => "(plan nothing)".to_owned(),
        Effect::Rest { nominal, .. } => format!("(rest {})", time(*nominal)),
        Effect::EndPause { job: Some(job), at } => format!("(end pause of {job} {})", time(*at)),
        Effect::EndPause { job: None, at } => format!("(end pause of all {})", time(*at)),
        Effect::CatchUp { at, .. } => format!("(catch up {})", then(at)),
        Effect::Wake { run, at } => format!("(wake {} {})", number(run), then(at)),
        Effect::Launch { run } => format!("(launch #{})", run.number.0),
        Effect::Adopt { run } => format!("(adopt #{})", run.number.0),
        Effect::Stop { run } => format!("(stop #{})", run.number.0),
        Effect::Signal { run, signal } => format!("(signal {} {signal})", number(run)),
        Effect::PlanDelivery { action, at } => format!("(plan action {} {})", action.number, then(at)),
        Effect::Deliver { action } => format!("(deliver action {})", action.id.number),
        Effect::Probe { run, attempt } => format!("(probe {attempt} of #{})", run.number.0),
        Effect::PlanBatch { at, .. } => format!("(batch {})", then(at)),
        Effect::Prune { job } => format!("(prune {job})"),
    }
}
