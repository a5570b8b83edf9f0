//! Records and units for tests of files.

use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{
    Actor, CommandLine, Record, RecordKey, RecordVersion, ResolvedProcess, ResolvedProgram, Run, Transition,
};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::Unit;
use cronhold_store_sqlite::Options;

/// Options without a size limit and with a clock that stands still.
pub(crate) fn options() -> Options {
    let clock = Arc::new(|| Instant::from_secs(1_800_000_000));
    Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None }
}

/// The id of the run with a number; larger numbers are later.
pub(crate) fn run_id(number: u64) -> RunId {
    RunId::from_random(nominal(number), [0; 10])
}

/// A run with a number, whose row is about a kilobyte long.
pub(crate) fn run(number: u64) -> Record {
    let at = nominal(number);
    let entered = |state| Transition::entered(at, state, Actor::Schedule);
    let job = JobId::parse("reports/a").expect("an id");
    let command = CommandLine::Shell { text: "echo ".repeat(200), shell: None };
    Record::Run(Arc::new(Run {
        state: State::Running,
        work: Some(ResolvedProgram::Process(Box::new(ResolvedProcess::plain(command)))),
        log: vec![entered(State::Waiting), entered(State::Starting), entered(State::Running)],
        ..Run::blank(run_id(number), RunNumber(number), job, JobUid::from_bits(7), at)
    }))
}

/// A unit that creates a record.
pub(crate) fn unit(number: u64, record: Record) -> Unit {
    put(number, vec![record])
}

/// A unit that creates two records.
pub(crate) fn pair(number: u64, one: Record, other: Record) -> Unit {
    put(number, vec![one, other])
}

/// A unit that deletes a record that another unit has created.
pub(crate) fn delete(number: u64, made_by: u64, key: RecordKey) -> Unit {
    Unit {
        version: RecordVersion::new(1, number),
        compare: vec![(key.clone(), Some(RecordVersion::new(1, made_by)))],
        changes: vec![RecordChange::Delete(key)],
        take: Vec::new(),
        free: Vec::new(),
    }
}

fn put(number: u64, records: Vec<Record>) -> Unit {
    Unit {
        version: RecordVersion::new(1, number),
        compare: records.iter().map(|record| (record.key(), None)).collect(),
        changes: records.into_iter().map(RecordChange::Put).collect(),
        take: Vec::new(),
        free: Vec::new(),
    }
}

fn nominal(number: u64) -> Instant {
    Instant::from_secs(1_800_000_000).plus(Span::from_secs(number))
}
