//! What became of a trigger; the pending triggers of a job with the decisions about them.

use std::io::{self, Write};

use cronhold_api::{TriggerDecisionSummary, TriggerList, TriggerReceipt};

use super::{LocalTimeFormat, TextTable, counted, visible};

/// Pending triggers that are printed; JSON has all of them.
const PENDING_SHOWN: usize = 50;

/// Prints what became of a trigger.
pub(crate) fn receipt(receipt: &TriggerReceipt, out: &mut dyn Write) -> io::Result<()> {
    let TriggerReceipt { id, job, status, number, .. } = receipt;
    let (id, job) = (visible(id), visible(job));
    let run = number.map(|number| format!("{job}#{number}"));
    match (status.as_str(), run) {
        (TriggerReceipt::RUN, Some(run)) => writeln!(out, "{run} stands for the trigger `{id}`"),
        (TriggerReceipt::RUN, None) => writeln!(out, "a run of `{job}` stands for the trigger `{id}`"),
        (TriggerReceipt::PENDING, _) => {
            writeln!(out, "the trigger `{id}` of `{job}` is pending; `cronhold triggers {job}` shows why")
        }
        (_, Some(run)) => writeln!(out, "`{job}` has already received the trigger `{id}`, for {run}; nothing to do"),
        (_, None) => writeln!(out, "`{job}` has already received the trigger `{id}`; nothing to do"),
    }
}

/// Prints the pending triggers, and below them the decisions.
pub(crate) fn list(list: &TriggerList, clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let job = visible(&list.job);
    let pending = counted(list.pending.len(), "pending trigger");
    match &list.policy {
        Some(policy) => writeln!(out, "{pending} of `{job}`, batched by the policy `{}`", visible(policy))?,
        None => writeln!(out, "{pending} of `{job}`: without `batching`, each trigger creates a run at once")?,
    }
    if !list.pending.is_empty() {
        let mut table = TextTable::new(&["TRIGGER", "RECEIVED", "BY", "ARGS"]);
        for trigger in list.pending.iter().take(PENDING_SHOWN) {
            let args: Vec<String> = trigger.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let at = clock.both(trigger.at);
            table.row([trigger.id.clone().into(), at.into(), trigger.by.clone().into(), args.join(" ").into()]);
        }
        table.write(colours, out)?;
    }
    if list.pending.len() > PENDING_SHOWN {
        writeln!(out, "and {} more", list.pending.len() - PENDING_SHOWN)?;
    }
    if !list.decisions.is_empty() {
        writeln!(out, "decisions, the latest first")?;
    }
    for decision in &list.decisions {
        writeln!(out, "  {}", visible(&decision_line(decision, clock)))?;
    }
    let counts = list.counts;
    if counts.received > 0 {
        let (received, consumed) = (counts.received, counts.consumed);
        let (expired, removed) = (counts.expired, counts.removed);
        writeln!(out, "received {received}: {consumed} in runs, {expired} too old, {removed} removed")?;
    }
    out.flush()
}

/// A decision on one line.
fn decision_line(decision: &TriggerDecisionSummary, clock: &LocalTimeFormat) -> String {
    let TriggerDecisionSummary { at, since, times, message, pending, .. } = decision;
    let repeated = match times {
        0 | 1 => String::new(),
        _ => format!(", {times} times since {}", clock.at(*since)),
    };
    format!("{} {message}; {pending} pending{repeated}", clock.at(*at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::jobs::tests::clock;
    use super::*;

    fn decision(kind: &str, message: &str, times: u32, pending: u32) -> serde_json::Value {
        json!({"at": "2026-11-16T11:59:00Z", "since": "2026-11-16T11:30:00Z", "times": times, "kind": kind,
            "message": message, "run": null, "triggers": null, "pending": pending})
    }

    #[test]
    fn pending_triggers_are_listed_with_the_decisions_about_them() {
        let triggers = json!({"job": "etl/build", "policy": "greedy",
            "pending": [
                {"id": "repo@4711", "at": "2026-11-16T11:59:00Z", "by": "operator anna", "args": {"ref": "main"}},
                {"id": "a\u{1b}[31m", "at": "2026-11-16T11:59:30Z", "by": "action", "args": {}},
            ],
            "counts": {"received": 12, "consumed": 7, "expired": 2, "removed": 1},
            "decisions": [
                decision("busy", "wait: 1 run has not ended, at most 1 at the same time", 4, 2),
                decision("run", "created run #7 for 3 triggers", 1, 0),
            ],
        });
        let triggers: TriggerList = serde_json::from_value(triggers).expect("a list");
        let none = TriggerList { policy: None, pending: Vec::new(), decisions: Vec::new(), ..triggers.clone() };
        let none = TriggerList { counts: Default::default(), ..none };
        let mut out = Vec::new();
        list(&triggers, &clock(), false, &mut out).expect("written");
        list(&none, &clock(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }

    #[test]
    fn receipt_says_what_became_of_a_trigger() {
        let mut out = Vec::new();
        for (status, number) in
            [("run", Some(7)), ("run", None), ("pending", None), ("duplicate", Some(7)), ("duplicate", None)]
        {
            let (id, job, status) = ("repo@4711".to_owned(), "etl/build".to_owned(), status.to_owned());
            let run = number.map(|_| "0199".to_owned());
            receipt(&TriggerReceipt { id, job, status, run, number }, &mut out).expect("written");
        }
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }
}
