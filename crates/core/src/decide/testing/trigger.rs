//! Script lines about triggers.
//!
//! - `trigger j ID [k=v…]`: anna sends a trigger; `emit j ID [k=v…]`: an action does.
//! - `batch j`: the pending triggers of `j` are decided about. `untrigger j ID` and `untrigger j all` remove some.
//! - Items of a job: `batching greedy [CONCURRENT [MOST]]`, `batching log BASE [CONCURRENT [MOST]]` and `batching newest
//!   TIMEOUT [CONCURRENT]`.
//!
//! The result of a set that is written is `pending ID…` and what it decided last.

use std::collections::BTreeMap;

use cronhold_schedule::Span;

use super::START;
use super::script::{job_id, pairs};
use super::transcript::time;
use crate::command::Command;
use crate::decision::{CommandReply, TriggerStatus};
use crate::ids::RunId;
use crate::job::Batching;
use crate::record::{Actor, JobState, Record, RecordKey, StoredRecord, TriggerId, TriggerSet};

pub(super) fn batching(text: &str) -> Batching {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize, default: u32| words.get(at).map_or(default, |word| word.parse().expect("a number"));
    match words[0] {
        "greedy" => Batching::Greedy { concurrent: number(1, 1), most: number(2, Batching::MOST_DEFAULT) },
        "log" => {
            let base = words[1].parse().expect("a number");
            Batching::Logarithmic { base, concurrent: number(2, 1), most: number(3, Batching::MOST_DEFAULT) }
        }
        _ => Batching::Newest { timeout: Span::parse(words[1]).expect("a span"), concurrent: number(2, 1) },
    }
}

pub(super) fn command(verb: &str, rest: &str) -> (Actor, Command) {
    let (job, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let (job, (id, more)) = (job_id(job), more.split_once(' ').unwrap_or((more, "")));
    let trigger = || TriggerId::parse(id).expect("an id");
    let anna = Actor::Operator("anna".to_owned());
    match verb {
        "batch" => (Actor::Queue, Command::Batch { job }),
        "untrigger" => (anna, Command::RemoveTriggers { job, trigger: (id != "all").then(trigger) }),
        _ => {
            // Two triggers with the same id and different args are different requests.
            let run = RunId::from_key(START, &format!("trigger {rest}"));
            let command = Command::Trigger { job, args: pairs(more, ""), trigger: trigger(), message: None, id: run };
            (if verb == "emit" { Actor::Action } else { anna }, command)
        }
    }
}

/// `pending a b, run #1 for 2 triggers`.
pub(super) fn set_text(set: &TriggerSet) -> String {
    let ids: Vec<&str> = set.pending.iter().map(|trigger| trigger.id.as_str()).collect();
    let ids = if ids.is_empty() { "nothing".to_owned() } else { ids.join(" ") };
    let decision = set.last_decision().map(|last| {
        let times = if last.times > 1 { format!(" ×{}", last.times) } else { String::new() };
        format!(" ({}{times})", last.outcome)
    });
    let due = set.due.map(|due| format!(" until {}", time(due)));
    format!("pending {ids}{}{}", due.unwrap_or_default(), decision.unwrap_or_default())
}

pub(super) fn reply_text(reply: &CommandReply) -> Option<String> {
    match reply {
        CommandReply::Trigger { status, run } => {
            let status = match status {
                TriggerStatus::Run => "run",
                TriggerStatus::Pending => "pending",
                TriggerStatus::Duplicate => "duplicate",
            };
            let run = run.map(|(_, number)| format!(" #{}", number.0)).unwrap_or_default();
            Some(format!("→ {status}{run}"))
        }
        CommandReply::Removed { triggers } => Some(format!("→ {triggers} removed")),
        CommandReply::Done | CommandReply::Unchanged | CommandReply::Run { .. } => None,
    }
}

/// Checks that every trigger is in one place, and that nothing contradicts the set.
pub(super) fn check(records: &BTreeMap<RecordKey, StoredRecord>) {
    let mut consumed: BTreeMap<_, u64> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for stored in records.values() {
        if let Record::Run(run) = &stored.record
            && run.retry_of.is_none()
            && run.rerun_of.is_none()
        {
            for trigger in run.triggers.iter() {
                assert!(seen.insert((&run.job, &trigger.id)), "two runs stand for the trigger {}", trigger.id);
            }
            *consumed.entry(&run.job).or_default() += run.triggers.len() as u64;
        }
    }
    for stored in records.values() {
        let Record::Triggers(set) = &stored.record else { continue };
        let counts = set.counts;
        let gone = counts.consumed + counts.expired + counts.removed;
        assert_eq!(counts.received, gone + set.pending.len() as u64, "triggers of {} are lost", set.job);
        assert!(set.pending.is_sorted_by_key(|trigger| trigger.at), "{:?}", set.pending);
        assert_eq!(set.due.is_some(), !set.pending.is_empty(), "when the triggers of {} are due", set.job);
        for trigger in &set.pending {
            assert!(seen.insert((&set.job, &trigger.id)), "{} is pending and consumed", trigger.id);
        }
        let state = records.get(&RecordKey::JobState(set.job.clone())).map(|stored| &stored.record);
        let has_triggers = matches!(state, Some(Record::JobState(state)) if JobState::clone(state).has_triggers);
        assert_eq!(has_triggers, !set.pending.is_empty(), "the state of {} and its triggers", set.job);
    }
}
