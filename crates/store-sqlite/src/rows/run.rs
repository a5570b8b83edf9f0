//! Runs: a column for everything that users query, and JSON for the rest. A row with a range is a span of skips.

use std::sync::Arc;

use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    Blocker, ExecutionPolicy, LockName, OutputSummary, PoolName, ProbeState, ProgramExit, Record, Run, RunOwner,
    RunTrigger, ScheduleId, SkipSpan, StderrParts,
};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::Instant;

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "runs",
    key: &["id"],
    rest: &[
        "job",
        "number",
        "state",
        "open",
        "reason",
        "nominal",
        "due",
        "blockers",
        "ended",
        "attempt",
        "schedule",
        "args",
        "uid",
        "retry_of",
        "retried_by",
        "rerun_of",
        "node",
        "incarnation",
        "target",
        "work",
        "lock",
        "timeout",
        "stop_at",
        "stop_signal",
        "stop_grace",
        "lease",
        "ending",
        "exit_code",
        "exit_signal",
        "output_bytes",
        "tail",
        "span_from",
        "span_to",
        "span_count",
        "actions",
        "pools",
        "probes",
        "service",
        "stderr",
        "triggers",
        "late_at",
        "check_at",
        "log",
    ],
    fixed: &["job", "number"],
};

pub(super) fn write(cells: &mut RowCells, run: &Run) {
    write_row(cells, run, run.active_until(), None);
}

pub(super) fn write_span(cells: &mut RowCells, span: &SkipSpan) {
    write_row(cells, &span.to_listed_run(), Some(span.active_until()), Some(span.range));
}

fn write_row(cells: &mut RowCells, run: &Run, ended: Option<Instant>, range: Option<CountedRange>) {
    let id = |cells: &mut RowCells, run: RunId| cells.display(&run);
    cells.text(run.job.as_str());
    cells.count(run.number.0);
    cells.text(run.state.name());
    cells.integer(!run.state.is_finished());
    cells.option(run.reason.as_ref(), RowCells::display);
    cells.instant(run.nominal);
    cells.option(run.next_check(), RowCells::instant);
    cells.option(Some(&run.blockers).filter(|blockers| !blockers.is_empty()), RowCells::json);
    cells.option(ended, RowCells::instant);
    cells.integer(run.attempt);
    cells.option(run.schedule.as_ref(), |cells, schedule| cells.text(schedule.as_str()));
    cells.json(&run.args);
    cells.display(&run.uid);
    cells.option(run.retry_of, id);
    cells.option(run.retried_by, id);
    cells.option(run.rerun_of, id);
    cells.option(run.owner, |cells, owner| cells.display(&owner.node));
    cells.option(run.owner, |cells, owner| cells.integer(owner.incarnation));
    cells.option(run.target, |cells, target| cells.display(&target));
    cells.option(run.work.as_ref(), RowCells::json);
    cells.option(run.lock.as_ref(), |cells, lock| cells.text(lock.as_str()));
    write_terms(cells, &run.terms);
    cells.option(run.ending.as_ref(), RowCells::display);
    write_exit(cells, run.exit);
    cells.option(run.written.as_ref(), |cells, written| cells.count(written.bytes));
    cells.option(run.written.as_ref(), |cells, written| cells.json(&written.tail));
    cells.option(range, |cells, range| cells.instant(range.from));
    cells.option(range, |cells, range| cells.instant(range.to));
    cells.option(range, |cells, range| cells.integer(range.count));
    cells.integer(run.actions);
    cells.option(Some(&run.pools).filter(|pools| !pools.is_empty()), RowCells::json);
    cells.option(Some(&run.probes).filter(|probes| !probes.is_empty()), RowCells::json);
    cells.option(run.service.as_ref(), RowCells::json);
    cells.option(run.written.as_ref().and_then(|written| written.stderr.as_ref()), RowCells::json);
    cells.option(Some(&run.triggers[..]).filter(|triggers| !triggers.is_empty()), RowCells::json);
    cells.option(run.late_at, RowCells::instant);
    cells.option(run.due.filter(|_| run.late_at.is_some()), RowCells::instant);
    cells.json(&run.log);
}

/// Reads a run or a span of skips.
pub(super) fn read(id: RunId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let job = reading.parsed(JobId::parse)?;
    let number = RunNumber(reading.integer()?);
    let state = reading.parsed(State::parse)?;
    // The column `open` follows from the state.
    reading.flag()?;
    let mut run = Run {
        id,
        number,
        job,
        state,
        reason: reading.option_parsed(Reason::parse)?,
        nominal: reading.instant()?,
        due: reading.option_instant()?,
        late_at: None,
        blockers: read_blockers(reading)?,
        attempt: reading.integer()?,
        schedule: reading.option_parsed(ScheduleId::parse)?,
        args: reading.json()?,
        uid: reading.parsed(JobUid::parse)?,
        retry_of: reading.option_parsed(RunId::parse)?,
        retried_by: reading.option_parsed(RunId::parse)?,
        rerun_of: reading.option_parsed(RunId::parse)?,
        owner: read_owner(reading)?,
        target: reading.option_parsed(NodeId::parse)?,
        work: reading.option_json()?,
        lock: reading.option_parsed(LockName::parse)?,
        pools: Vec::new(),
        probes: Vec::new(),
        terms: read_terms(reading)?,
        ending: reading.option_parsed(Reason::parse)?,
        exit: read_exit(reading)?,
        written: read_written(reading)?,
        service: None,
        actions: 0,
        triggers: Arc::default(),
        log: Vec::new(),
    };
    let range = read_range(reading)?;
    run.actions = reading.integer()?;
    run.pools = reading.option_json::<Vec<PoolName>>()?.unwrap_or_default();
    run.probes = reading.option_json::<Vec<ProbeState>>()?.unwrap_or_default();
    run.service = reading.option_json()?;
    let stderr: Option<StderrParts> = reading.option_json()?;
    if let Some(written) = &mut run.written {
        written.stderr = stderr;
    }
    run.triggers = reading.option_json::<Vec<RunTrigger>>()?.unwrap_or_default().into();
    run.late_at = reading.option_instant()?;
    let check_at = reading.option_instant()?;
    if run.late_at.is_some() {
        run.due = check_at;
    }
    run.log = reading.json()?;
    let Some(range) = range else { return Ok(Record::Run(Arc::new(run))) };
    let span = SkipSpan::from_listed_run(run, range).ok_or_else(|| UnreadableRow {
        column: "span_from".to_owned(),
        message: "a span of skips has a schedule and a reason".to_owned(),
    })?;
    Ok(Record::SkipSpan(Arc::new(span)))
}

/// What the run waits for, and the column `ended` after it, which follows from the log.
fn read_blockers(reading: &CellReader<'_>) -> Result<Vec<Blocker>, UnreadableRow> {
    let blockers: Option<Vec<Blocker>> = reading.option_json()?;
    reading.option_instant()?;
    Ok(blockers.unwrap_or_default())
}

fn write_terms(cells: &mut RowCells, terms: &ExecutionPolicy) {
    cells.option(terms.timeout, RowCells::span);
    cells.option(terms.stop_at, RowCells::instant);
    cells.display(&terms.signal);
    cells.span(terms.grace);
    cells.option(terms.lease, RowCells::span);
}

fn read_terms(reading: &CellReader<'_>) -> Result<ExecutionPolicy, UnreadableRow> {
    Ok(ExecutionPolicy {
        timeout: reading.option_span()?,
        stop_at: reading.option_instant()?,
        signal: reading.parsed(Signal::parse)?,
        grace: reading.span()?,
        lease: reading.option_span()?,
    })
}

fn write_exit(cells: &mut RowCells, exit: Option<ProgramExit>) {
    let (code, signal) = match exit {
        Some(ProgramExit::Code(code)) => (Some(code), None),
        Some(ProgramExit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    cells.option(code, RowCells::integer);
    cells.option(signal, |cells, signal| cells.display(&signal));
}

fn read_exit(reading: &CellReader<'_>) -> Result<Option<ProgramExit>, UnreadableRow> {
    let code = reading.option_integer()?.map(ProgramExit::Code);
    let signal = reading.option_parsed(Signal::parse)?.map(ProgramExit::Signal);
    Ok(code.or(signal))
}

fn read_written(reading: &CellReader<'_>) -> Result<Option<OutputSummary>, UnreadableRow> {
    let (bytes, tail) = (reading.option_integer()?, reading.option_json()?);
    Ok(bytes.zip(tail).map(|(bytes, tail)| OutputSummary { bytes, tail, stderr: None }))
}

fn read_owner(reading: &CellReader<'_>) -> Result<Option<RunOwner>, UnreadableRow> {
    let (node, incarnation) = (reading.option_parsed(NodeId::parse)?, reading.option_integer()?);
    Ok(node.zip(incarnation).map(|(node, incarnation)| RunOwner { node, incarnation }))
}

fn read_range(reading: &CellReader<'_>) -> Result<Option<CountedRange>, UnreadableRow> {
    let (from, to, count) = (reading.option_instant()?, reading.option_instant()?, reading.option_integer()?);
    Ok(from.zip(to).zip(count).map(|((from, to), count)| CountedRange { from, to, count }))
}
