//! Random steps in random order: every occurrence of an enabled schedule has exactly one outcome, waits in a backlog,
//! or is still to be claimed. With `nodes: each`, it has one outcome for all nodes, or one run per node.

use std::collections::BTreeSet;

use cronhold_schedule::{Instant, Span};
use proptest::prelude::*;

use crate::decide::testing::{DecisionBench, START};
use crate::record::Record;

/// Minutes between occurrences of the schedule in this test.
const EVERY: u64 = 2;

/// One random step: a command, or time that passes.
fn step() -> impl Strategy<Value = String> {
    let overlap = prop::sample::select(vec!["allow", "skip", "queue 2", "replace"]);
    let catch_up = prop::sample::select(vec!["none", "last 10m", "all 10m", "all 3h"]);
    let more = prop::sample::select(vec![
        "",
        "; disabled",
        "; paused",
        "; jitter 1m",
        "; retry 2",
        "; lock",
        "; nodes gpu",
        "; b: with 3m interval",
        "; each",
        "; each gpu; retry 2",
    ]);
    let put = (overlap, catch_up, more).prop_map(|(overlap, catch_up, more)| {
        // Settings of a schedule follow it immediately.
        let (of_schedule, of_job) = match more {
            "; disabled" | "; jitter 1m" => (more, ""),
            _ => ("", more),
        };
        format!("put j a: @every {EVERY}m{of_schedule}; overlap {overlap}; catch_up {catch_up}{of_job}")
    });
    let wait = prop::sample::select(vec![1u64, 20, 60, 61, 125, 400, 1500]).prop_map(|secs| format!("wait {secs}"));
    let others = [
        "remove j",
        "pause j",
        "resume j",
        "pause all",
        "resume all",
        "replan j",
        "run j",
        "label gpu",
        "label cpu",
        "there 1 2:gpu",
        "there 1:gpu 2:gpu,draining 3",
        "node 1.1",
        "node 2.1",
    ];
    prop_oneof![
        2 => put,
        6 => wait,
        6 => Just("due".to_owned()),
        3 => Just("catch up".to_owned()),
        2 => Just("wake".to_owned()),
        4 => Just("end yes".to_owned()),
        1 => Just("end no".to_owned()),
        3 => prop::sample::select(others.to_vec()).prop_map(str::to_owned),
    ]
}

/// A period in which the schedule existed and was enabled.
struct Counting {
    after: Instant,
    until: Option<Instant>,
}

fn play(steps: &[String]) {
    let mut bench = DecisionBench::new();
    let mut counting: Vec<Counting> = Vec::new();
    let mut transcript = Vec::new();
    for step in steps {
        if let Some(secs) = step.strip_prefix("wait ") {
            bench.now = bench.now.plus(Span::from_secs(secs.parse().expect("a number")));
            transcript.push(format!("{} {step}", bench.now));
        } else {
            let said = happens(&mut bench, step);
            transcript.push(format!("{} {step} → {}", bench.now, said.join("; ")));
        }
        let counts = bench.records.values().any(|stored| is_own(&stored.record));
        match counting.last_mut().filter(|last| last.until.is_none()) {
            Some(last) if !counts => last.until = Some(bench.now),
            None if counts => counting.push(Counting { after: bench.now, until: None }),
            _ => {}
        }
        for at in occurrences(&counting, bench.now) {
            let found = outcomes(&bench, at);
            assert!(is_one(&found), "{at} has {found:?} after\n{}", transcript.join("\n"));
        }
    }
}

/// Whether there is one outcome for all nodes, or at most one per node.
fn is_one(found: &[String]) -> bool {
    let nodes: BTreeSet<&str> = found.iter().filter_map(|outcome| outcome.strip_prefix("on ")).collect();
    found.len() == 1 || found.len() == nodes.len() && !nodes.is_empty()
}

fn is_own(record: &Record) -> bool {
    matches!(record, Record::Cursor(cursor) if cursor.schedule.as_str() == "a")
}

fn happens(bench: &mut DecisionBench, step: &str) -> Vec<String> {
    let Some(how) = step.strip_prefix("end ") else { return bench.happens(step) };
    let running = bench.runs().find(|run| run.state.has_program()).cloned();
    let Some((run, owner)) = running.and_then(|run| Some((run.number.0, run.owner?))) else { return Vec::new() };
    let me = std::mem::replace(&mut bench.me, owner);
    let said = bench.happens(&format!("ended #{run} {how}"));
    bench.me = me;
    said
}

/// The occurrences so far that fall into these periods.
fn occurrences(counting: &[Counting], now: Instant) -> Vec<Instant> {
    let every = i64::try_from(EVERY * 60).expect("small");
    let steps = (now.secs() - START.secs()) / every;
    let all = (1..=steps).map(|step| Instant::from_secs(START.secs() + step * every));
    let counts =
        |at: &Instant| counting.iter().any(|own| own.after < *at && own.until.is_none_or(|until| *at <= until));
    all.filter(counts).collect()
}

/// All records that cover an occurrence.
fn outcomes(bench: &DecisionBench, at: Instant) -> Vec<String> {
    let of = |record: &Record| match record {
        Record::Run(run) if run.attempt > 1 || run.schedule.as_ref().is_none_or(|id| id.as_str() != "a") => None,
        Record::Run(run) => (run.nominal == at).then(|| match run.target {
            Some(node) => format!("on {node}"),
            None => format!("run #{}", run.number.0),
        }),
        Record::SkipSpan(span) if span.schedule.as_str() != "a" => None,
        Record::SkipSpan(span) => span.covers(at).then(|| format!("span #{}", span.number.0)),
        Record::Backlog(backlog) => backlog.holds(at).then(|| "backlog".to_owned()),
        Record::Cursor(cursor) if is_own(record) => {
            cursor.next.is_some_and(|next| next <= at).then(|| "to be claimed".to_owned())
        }
        _ => None,
    };
    bench.records.values().filter_map(|stored| of(&stored.record)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_occurrence_has_exactly_one_outcome(steps in prop::collection::vec(step(), 1..60)) {
        play(&steps);
    }
}
