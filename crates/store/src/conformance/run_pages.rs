//! Cases about lists of runs with filters. Each result is compared with the same filter over a plain list.

use std::sync::Arc;

use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{Actor, Record, RecordKey, Run, SkipSpan, Transition};
use cronhold_core::{NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};

use super::Subject;
use super::pages::walk;
use super::samples::{at, job_id, run, run_id, run_in, skip_span};
use super::test_writer::TestWriter;
use crate::{Query, RunQuery};

/// Builds the query of the page that begins at an id.
type RunPageCase<'a> = &'a dyn Fn(Option<RunId>) -> Query;

const JOBS: [&str; 3] = ["a", "a/b", "größe"];

/// Runs are listed with the latest id first, and filters apply.
pub fn runs_are_listed_latest_first(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = sample();
    writer.put_all(&records(&runs));
    let states: [&[State]; 5] = [
        &[],
        &[State::Success],
        &[State::Failure, State::Error],
        &[State::Running, State::Skipped, State::Waiting],
        &State::ALL,
    ];
    let since = [None, Some(end(3)), Some(end(3).plus(Span::from_micros(1))), Some(at(-9)), Some(at(999))];
    for job in [None, Some("a"), Some("a/b"), Some("größe"), Some("A")] {
        for states in states {
            for since in since {
                let job = job.map(job_id);
                let query = RunQuery { job, states: states.to_vec(), since, ..RunQuery::default() };
                let mut expected: Vec<RunId> = runs.iter().filter(|run| wants(&query, run)).map(|run| run.id).collect();
                expected.sort();
                expected.reverse();
                for limit in [4, 1_000] {
                    assert_eq!(ids(&mut writer, |before| runs_before(&query, before), limit), expected, "{query:?}");
                }
            }
        }
    }
}

/// Runs are found by when they ran: an occurrence of last year that ran just now is recent, and one of tomorrow that
/// ended an hour ago is not. A change of a finished run's state does not make it recent.
pub fn runs_are_found_by_when_they_ran(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (year, hour) = (365 * 86_400, 3_600);
    let run = |secs: i64, number: u16, state: State, log: &[(i64, State)]| {
        let entry = |(at_secs, state): &(i64, State)| Transition::entered(at(*at_secs), *state, Actor::Program);
        let log = log.iter().map(entry).collect();
        let of_state = run_of(run_in(run_id(secs, number), "a", state, None));
        Record::Run(Arc::new(Run { nominal: at(secs), log, ..of_state }))
    };
    let span = |secs: i64, number: u16, to: i64| {
        let range = CountedRange { from: at(secs), to: at(to), count: 9 };
        Record::SkipSpan(Arc::new(SkipSpan { range, ..skip_span(run_id(secs, number), "a", 9) }))
    };
    let records = [
        run(0, 1, State::Success, &[(2 * year, State::Running), (2 * year, State::Success)]),
        run(1, 2, State::Failure, &[(5, State::Running), (9, State::Failure)]),
        run(2, 3, State::Running, &[(2, State::Running)]),
        run(3, 4, State::Success, &[(9, State::Failure), (2 * year, State::Success)]),
        run(3 * year, 5, State::Success, &[(7, State::Running), (9, State::Success)]),
        run(4 * year, 6, State::Scheduled, &[(7, State::Scheduled)]),
        span(4, 7, 2 * year),
        span(5, 8, 20),
    ];
    writer.put_all(&records);
    let found = |writer: &mut TestWriter, since: i64, states: &[State], limit: usize| -> Vec<u16> {
        ["", "a"]
            .map(|job| {
                let job = Some(job).filter(|job| !job.is_empty()).map(job_id);
                let query = RunQuery { job, since: Some(at(since)), states: states.to_vec(), ..RunQuery::default() };
                let ids = ids(writer, |before| runs_before(&query, before), limit);
                let place = |id: &RunId| records.iter().position(|record| record.key().run_list_id() == Some(*id));
                ids.iter().map(|id| u16::try_from(place(id).expect("one of them")).expect("few") + 1).collect()
            })
            .into_iter()
            .reduce(|one: Vec<u16>, other| {
                assert_eq!(one, other, "all jobs, and the only one");
                one
            })
            .unwrap_or_default()
    };
    for limit in [1, 2, 3, 100] {
        assert_eq!(found(&mut writer, hour, &[], limit), [6, 7, 3, 1]);
        assert_eq!(found(&mut writer, 9, &[], limit), [6, 5, 8, 7, 4, 3, 2, 1]);
        assert_eq!(found(&mut writer, 10, &[], limit), [6, 8, 7, 3, 1]);
        assert_eq!(found(&mut writer, 9, &[State::Success, State::Scheduled], limit), [6, 5, 4, 1]);
        assert_eq!(found(&mut writer, hour, &[State::Success, State::Failure], limit), [1]);
        assert_eq!(found(&mut writer, hour, &[State::Skipped], limit), [7]);
        assert_eq!(found(&mut writer, 2 * year, &[State::Running], limit), [3]);
        assert_eq!(found(&mut writer, 2 * year + 1, &[], limit), [6, 3]);
    }
    // Deleted runs, and runs whose state changes, are not left behind.
    writer.delete(&records[0].key());
    writer.put(&run(1, 2, State::Success, &[(5, State::Running), (9, State::Failure), (3 * year, State::Success)]));
    writer.put(&run(2, 3, State::Error, &[(2, State::Running), (3 * year, State::Error)]));
    assert_eq!(found(&mut writer, hour, &[], 100), [6, 7, 3]);
    assert_eq!(found(&mut writer, 9, &[State::Failure], 100), [0_u16; 0]);
    assert_eq!(found(&mut writer, 3 * year, &[State::Error], 100), [3]);
}

/// A list of runs can begin at any id, whether there is such a run or not.
pub fn runs_are_listed_from_any_id(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = sample();
    writer.put_all(&records(&runs));
    for before in [run_id(0, 0), run_id(0, 9_999), run_id(3, 17), run_id(3, 18), run_id(500, 0)] {
        for job in [None, Some(job_id("a/b"))] {
            let query = RunQuery { job, before: Some(before), ..RunQuery::default() };
            let mut expected: Vec<RunId> = runs.iter().filter(|run| wants(&query, run)).map(|run| run.id).collect();
            expected.sort();
            expected.reverse();
            let found = writer.page(&Query::Runs(query.clone()), 1_000).records;
            let found: Vec<RunId> = found.into_iter().map(|stored| run_of(stored.record).id).collect();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

/// A run is found by its number within its job. If several have the number, the latest comes first.
pub fn runs_are_found_by_number(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = sample();
    writer.put_all(&records(&runs));
    for job in [Some("a"), Some("größe"), Some("A"), None] {
        for number in [0, 1, 7, 99] {
            for states in [&[] as &[State], &[State::Success, State::Running]] {
                let (job, number) = (job.map(job_id), Some(RunNumber(number)));
                let query = RunQuery { job, number, states: states.to_vec(), ..RunQuery::default() };
                let mut expected: Vec<RunId> = runs.iter().filter(|run| wants(&query, run)).map(|run| run.id).collect();
                expected.sort();
                expected.reverse();
                for limit in [1, 1_000] {
                    assert_eq!(ids(&mut writer, |before| runs_before(&query, before), limit), expected, "{query:?}");
                }
            }
        }
    }
}

/// Unfinished runs are listed with the earliest first, for all nodes or one.
pub fn unfinished_runs_are_listed_earliest_first(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = sample();
    writer.put_all(&records(&runs));
    for node in [None, Some(1), Some(2), Some(3)].map(|node| node.map(NodeId::from_bits)) {
        let is_wanted = |run: &&Run| {
            !run.state.is_finished() && node.is_none_or(|node| run.owner.is_some_and(|owner| owner.node == node))
        };
        let mut expected: Vec<RunId> = runs.iter().filter(is_wanted).map(|run| run.id).collect();
        expected.sort();
        for limit in [1, 3, 1_000] {
            assert_eq!(ids(&mut writer, |after| Query::Unfinished { node, after }, limit), expected, "{node:?}");
        }
    }
}

/// Finished runs of a job in one state are listed with the earliest first.
pub fn finished_runs_of_a_state_are_listed_earliest_first(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let runs = sample();
    writer.put_all(&records(&runs));
    for name in ["a", "a/b", "A"] {
        for state in State::ALL {
            let job = job_id(name);
            let is_wanted = |run: &&Run| run.job == job && run.state == state && state.is_finished();
            let mut expected: Vec<RunId> = runs.iter().filter(is_wanted).map(|run| run.id).collect();
            expected.sort();
            for limit in [1, 1_000] {
                let query = |after| Query::Oldest { job: job.clone(), state, after };
                assert_eq!(ids(&mut writer, query, limit), expected, "{name} {state}");
            }
        }
    }
}

/// A run is listed under its current state and nowhere else.
pub fn runs_move_between_lists(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let id = run_id(1, 1);
    let steps = [
        (run_in(id, "a", State::Waiting, None), "all a unfinished"),
        (run_in(id, "a", State::Starting, Some(1)), "all a unfinished node1"),
        (run_in(id, "a", State::Running, Some(2)), "all a unfinished node2"),
        (run_in(id, "a", State::Success, Some(2)), "all a success"),
        (run_in(id, "a", State::Failure, Some(2)), "all a failure"),
        (run_in(id, "a", State::Running, Some(1)), "all a unfinished node1"),
        (run_in(id, "a", State::Skipped, None), "all a"),
    ];
    for (record, expected) in steps {
        writer.put(&record);
        assert_eq!(lists_with(&mut writer, id), expected);
    }
    writer.delete(&RecordKey::Run(id));
    assert_eq!(lists_with(&mut writer, id), "");
    writer.put(&run_in(id, "b", State::Success, None));
    assert_eq!(lists_with(&mut writer, id), "all");
}

/// Runs that exist all the time are listed once, whatever changes between two pages.
pub fn pages_of_runs_are_stable_under_writes(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let record = |number: i64, state| run_in(run_id(number, 1), "a", state, Some(1));
    let latest = RunQuery { job: Some(job_id("a")), ..RunQuery::default() };
    let (all, unfinished) = (RunQuery::default(), |after| Query::Unfinished { node: None, after });
    let lists: [(&str, RunPageCase<'_>); 3] = [
        ("of the job", &|before| runs_before(&latest, before)),
        ("of all", &|before| runs_before(&all, before)),
        ("unfinished", &unfinished),
    ];
    for (name, query) in lists {
        let runs: Vec<Record> = (0..100).map(|number| record(number, State::Running)).collect();
        writer.put_all(&runs);
        let mut round = 0;
        let found = ids_with(&mut writer, query, 9, |writer| {
            // Odd runs are deleted and added again, even ones only change; new ones are added at both ends.
            let odd = 2 * round + 1;
            writer.delete(&record(odd, State::Running).key());
            writer.put_all(&[record(odd + 1, State::Stopping), record(-1 - round, State::Running)]);
            writer.put(&record(200 + round, State::Running));
            round += 1;
        });
        let mut once = found.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), found.len(), "{name}: each once");
        for number in (0..100).filter(|number| number % 2 == 0 || *number > 2 * round) {
            assert!(found.contains(&run_id(number, 1)), "{name}: {number} was there all the time");
        }
        assert!(round >= 9, "{name}: there were pages in between");
    }
}

/// Runs of several jobs in all states, on two nodes or none, some in the same second. [`record`] stores some of the
/// skipped ones as spans.
fn sample() -> Vec<Run> {
    let mut runs = Vec::new();
    for number in 0..90_u16 {
        let index = usize::from(number);
        let id = run_id(i64::from(number / 6), number);
        let state = State::ALL[index * 5 % State::ALL.len()];
        let record = run_in(id, JOBS[index % JOBS.len()], state, [None, Some(1), Some(2)][index / 3 % 3]);
        // Numbers restart in the middle, like those of a job that was removed and added again.
        let own_number = RunNumber(u64::from(number / 3 % 15));
        // Some have ended long after their nominal time, and some before it.
        let ended = end(i64::from(number / 6) + [0, 0, 500, -5][index % 4]);
        let log = match state.is_finished() {
            true => vec![Transition::entered(ended, state, Actor::Program)],
            false => Vec::new(),
        };
        runs.push(Run { number: own_number, nominal: nominal(i64::from(number / 6)), log, ..run_of(record) });
    }
    runs
}

/// Nominal times have microseconds, which ids do not contain.
fn nominal(secs: i64) -> Instant {
    at(secs).plus(Span::from_micros(400))
}

/// The end of a run that did not take long.
fn end(secs: i64) -> Instant {
    nominal(secs).plus(Span::from_millis(100))
}

fn records(runs: &[Run]) -> Vec<Record> {
    runs.iter().map(record).collect()
}

/// The record of a run of the sample. Every other skipped one is a span of skips.
fn record(run: &Run) -> Record {
    if run.state != State::Skipped || run.number.0 % 2 == 1 {
        return Record::Run(Arc::new(run.clone()));
    }
    Record::SkipSpan(Arc::new(SkipSpan {
        number: run.number,
        range: CountedRange { from: run.nominal, to: run.nominal.max(run.log[0].at), count: 9 },
        log: run.log.clone(),
        ..skip_span(run.id, run.job.as_str(), 9)
    }))
}

fn run_of(record: Record) -> Run {
    match record {
        Record::Run(run) => (*run).clone(),
        Record::SkipSpan(span) => span.to_listed_run(),
        other => panic!("a list of runs has runs, and not {other:?}"),
    }
}

fn wants(query: &RunQuery, run: &Run) -> bool {
    let RunQuery { job, number, states, before, .. } = query;
    // A span of skips lasts at least until its last occurrence.
    let until = match record(run) {
        Record::SkipSpan(span) => Some(span.active_until()),
        _ => run.active_until(),
    };
    query.includes_end(until)
        && job.as_ref().is_none_or(|job| *job == run.job)
        && (states.is_empty() || states.contains(&run.state))
        && before.is_none_or(|before| run.id < before)
        && number.is_none_or(|number| run.number == number)
}

fn runs_before(query: &RunQuery, before: Option<RunId>) -> Query {
    Query::Runs(RunQuery { before, ..query.clone() })
}

fn ids(writer: &mut TestWriter, query: impl Fn(Option<RunId>) -> Query, limit: usize) -> Vec<RunId> {
    ids_with(writer, query, limit, |_| {})
}

fn ids_with(
    writer: &mut TestWriter,
    query: impl Fn(Option<RunId>) -> Query,
    limit: usize,
    between: impl FnMut(&mut TestWriter),
) -> Vec<RunId> {
    let after = |key: Option<RecordKey>| {
        key.map(|key| key.run_list_id().unwrap_or_else(|| panic!("a page of runs ends with {key}")))
    };
    walk(writer, |key| query(after(key)), limit, between).into_iter().map(|stored| run_of(stored.record).id).collect()
}

/// The lists that a run is in.
fn lists_with(writer: &mut TestWriter, id: RunId) -> String {
    let of_node = |bits| Query::Unfinished { node: Some(NodeId::from_bits(bits)), after: None };
    let oldest = |state| Query::Oldest { job: job_id("a"), state, after: None };
    let lists = [
        ("all", Query::Runs(RunQuery::default())),
        ("a", Query::Runs(RunQuery { job: Some(job_id("a")), ..RunQuery::default() })),
        ("unfinished", Query::Unfinished { node: None, after: None }),
        ("node1", of_node(1)),
        ("node2", of_node(2)),
        ("success", oldest(State::Success)),
        ("failure", oldest(State::Failure)),
    ];
    let mut names = Vec::new();
    for (name, query) in lists {
        let found = writer.page(&query, 10).records;
        assert!(found.len() <= 1, "there is one run");
        if found.into_iter().any(|stored| run_of(stored.record) == run_of_key(writer, id)) {
            names.push(name);
        }
    }
    names.join(" ")
}

fn run_of_key(writer: &TestWriter, id: RunId) -> Run {
    writer.record(&RecordKey::Run(id)).map_or_else(|| run(id, "gone"), run_of)
}
