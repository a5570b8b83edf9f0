//! Triggers that use every field: those of runs, and sets with pending ones and all kinds of decisions.

use cronhold_core::RunNumber;
use cronhold_core::record::{
    Actor, PendingTrigger, RunTrigger, TriggerCounts, TriggerDecision, TriggerId, TriggerMessage, TriggerOutcome,
    TriggerSet,
};
use cronhold_core::task::{Channel, JsonText};
use cronhold_schedule::Instant;

use super::rich_records::{COUNT_MAX, TEXTS, last, times};
use super::samples::{args, job_id, run_id};

/// No trigger, one, or two.
pub(super) fn run_triggers(index: usize) -> Vec<RunTrigger> {
    let id = |text| TriggerId::parse(text).expect("an id");
    let trigger = |text| RunTrigger { id: id(text), at: times()[index % 5], by: Actor::ForeignEvent, message: None };
    let mut triggers: Vec<RunTrigger> = ["größe/日本 🦀", "a"][..index % 3].iter().copied().map(trigger).collect();
    if let Some(last) = triggers.last_mut() {
        (last.by, last.message) = (Actor::Channel, message());
    }
    triggers
}

fn message() -> Option<Box<TriggerMessage>> {
    let channel = Channel::parse("/größe/日本").expect("a channel");
    let message = JsonText::parse(r#"{"b":[1,null,"größe 🦀"],"a":12345678901234567890}"#).expect("JSON");
    Some(Box::new(TriggerMessage { channel, message }))
}

/// A set without triggers, and one with all fields set and all outcomes.
pub(super) fn trigger_sets() -> Vec<TriggerSet> {
    let id = TriggerId::parse("größe/日本 🦀").expect("an id");
    let by = Actor::Operator(TEXTS[0].to_owned());
    let pending = |at: &Instant| PendingTrigger {
        id: id.clone(),
        at: *at,
        by: by.clone(),
        args: args(&[("x", TEXTS[1]), ("y", "")]),
        message: message().filter(|_| at.secs() % 2 == 0),
    };
    let outcomes = [
        TriggerOutcome::Run { run: run_id(8, 8), number: RunNumber(COUNT_MAX), triggers: u32::MAX },
        TriggerOutcome::Busy { active: u32::MAX, limit: 1 },
        TriggerOutcome::Paused,
        TriggerOutcome::NoNode,
        TriggerOutcome::Expired { triggers: 1 },
        TriggerOutcome::Removed { triggers: 1, by: by.clone() },
    ];
    let decision = |(index, outcome): (usize, TriggerOutcome)| TriggerDecision {
        since: times()[index % 5],
        at: last(),
        times: u32::MAX,
        outcome,
        pending: 1_000,
    };
    let counts = TriggerCounts { received: COUNT_MAX, consumed: 1, expired: 2, removed: 3 };
    vec![
        TriggerSet::new(job_id("a/b")),
        TriggerSet {
            job: job_id("größe/日本 🦀"),
            pending: times().iter().map(pending).collect(),
            counts,
            decisions: outcomes.into_iter().enumerate().map(decision).collect(),
            due: Some(last()),
        },
    ]
}
