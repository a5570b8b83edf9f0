//! Runs, and spans of skips in the form of a run with a `span`. State, owner, number and job are in the first line, where
//! stores read them for indexes. So is the time of the end, which follows as the first value of the JSON.

use std::borrow::Cow;
use std::sync::Arc;

use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    Actor, Blocker, ExecutionPolicy, LockName, OutputSummary, PoolName, ProbeState, ProgramExit, Record,
    ResolvedProgram, Run, RunOwner, RunTrigger, ScheduleId, ServiceState, SkipSpan, StderrParts, Transition,
    TransitionKind,
};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{Args, JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::head::{RecordBody, TextReader};
use crate::{UnreadableText, moment_text};

/// Hex digits of a run's number.
const NUMBER: usize = 16;

/// A transition: the time, the state, the actor and the message.
type LogEntryJson<'a> = (i64, State, Cow<'a, Actor>, Cow<'a, str>);

#[derive(Serialize, Deserialize)]
struct RunJson<'a> {
    /// When it ended. Stores read it at the start of the JSON; `None` for an unfinished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<Cow<'a, str>>,
    uid: JobUid,
    nominal: i64,
    attempt: u32,
    #[serde(default, skip_serializing_if = "no_args")]
    args: Cow<'a, Args>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<Cow<'a, ScheduleId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, Reason>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_of: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retried_by: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rerun_of: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<Cow<'a, ResolvedProgram>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<Cow<'a, LockName>>,
    #[serde(default, skip_serializing_if = "no_pools")]
    pools: Cow<'a, [PoolName]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_at: Option<i64>,
    signal: Signal,
    grace: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<Cow<'a, Reason>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<ProgramExit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "no_lines")]
    tail: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<Cow<'a, StderrParts>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span: Option<(i64, i64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<Cow<'a, ServiceState>>,
    /// When the run is late. Then the due time in the first line may be that, and the run's own one is the next value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<i64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    actions: u32,
    #[serde(default, skip_serializing_if = "no_triggers")]
    triggers: Cow<'a, [RunTrigger]>,
    #[serde(default, skip_serializing_if = "no_blockers")]
    blockers: Cow<'a, [Blocker]>,
    #[serde(default, skip_serializing_if = "no_probes")]
    probes: Cow<'a, [ProbeState]>,
    log: Vec<LogEntryJson<'a>>,
    /// Kinds of log entries by their index; entries that are not listed are of the default kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<(usize, TransitionKind)>,
}

pub(super) fn write(body: &mut RecordBody, run: &Run) {
    write_run(body, run, run.active_until(), None);
}

pub(super) fn write_span(body: &mut RecordBody, span: &SkipSpan) {
    write_run(body, &span.to_listed_run(), Some(span.active_until()), Some(span.range));
}

fn write_run(body: &mut RecordBody, run: &Run, end: Option<Instant>, range: Option<CountedRange>) {
    let state = State::ALL.iter().position(|state| *state == run.state).expect("all states are there");
    body.number(state as u64, 1);
    body.node(run.owner.map(|owner| owner.node));
    body.number(run.number.0, NUMBER);
    body.text(run.job.as_str());
    let ExecutionPolicy { timeout, stop_at, signal, grace, lease } = &run.terms;
    body.json(&RunJson {
        end: end.map(|end| Cow::Owned(moment_text(end))),
        uid: run.uid,
        nominal: run.nominal.micros(),
        attempt: run.attempt,
        args: Cow::Borrowed(&run.args),
        schedule: run.schedule.as_ref().map(Cow::Borrowed),
        reason: run.reason.as_ref().map(Cow::Borrowed),
        retry_of: run.retry_of,
        retried_by: run.retried_by,
        rerun_of: run.rerun_of,
        incarnation: run.owner.map(|owner| owner.incarnation),
        target: run.target,
        work: run.work.as_ref().map(Cow::Borrowed),
        lock: run.lock.as_ref().map(Cow::Borrowed),
        pools: Cow::Borrowed(&run.pools),
        timeout: timeout.map(Span::micros),
        stop_at: stop_at.map(Instant::micros),
        signal: *signal,
        grace: grace.micros(),
        lease: lease.map(Span::micros),
        ending: run.ending.as_ref().map(Cow::Borrowed),
        exit: run.exit,
        bytes: run.written.as_ref().map(|written| written.bytes),
        tail: run.written.as_ref().map_or(Cow::Borrowed(&[]), |written| Cow::Borrowed(&written.tail)),
        stderr: run.written.as_ref().and_then(|written| written.stderr.as_ref()).map(Cow::Borrowed),
        span: range.map(|range| (range.from.micros(), range.to.micros(), range.count)),
        service: run.service.as_deref().map(Cow::Borrowed),
        late: run.late_at.map(Instant::micros),
        check: run.due.filter(|_| run.late_at.is_some()).map(Instant::micros),
        actions: run.actions,
        triggers: Cow::Borrowed(&run.triggers),
        blockers: Cow::Borrowed(&run.blockers),
        probes: Cow::Borrowed(&run.probes),
        log: run.log.iter().map(entry).collect(),
        kinds: kinds(&run.log),
    });
}

/// The part of a run that is in the first line.
struct RunHead {
    state: State,
    node: Option<NodeId>,
    number: RunNumber,
    job: JobId,
}

fn read_head(reading: &TextReader<'_>) -> Result<RunHead, UnreadableText> {
    let state = reading.number(1)?;
    let state = usize::try_from(state).ok().and_then(|place| State::ALL.get(place).copied());
    let state = state.ok_or_else(|| UnreadableText::new("its state is unknown"))?;
    let node = reading.node()?;
    let number = RunNumber(reading.number(NUMBER)?);
    let job = JobId::parse(reading.last()?).map_err(|error| UnreadableText::new(&error))?;
    Ok(RunHead { state, node, number, job })
}

/// A run of which only the first line can be read, with what lists need: the job, the number, the state and the owner's
/// node.
pub(super) fn read_listed(id: RunId, reading: &TextReader<'_>) -> Result<Run, UnreadableText> {
    let RunHead { state, node, number, job } = read_head(reading)?;
    let owner = node.map(|node| RunOwner { node, incarnation: 0 });
    Ok(Run { state, owner, ..Run::blank(id, number, job, JobUid::from_bits(0), Instant::EPOCH) })
}

/// Reads a run or a span of skips.
pub(super) fn read(id: RunId, reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    let RunHead { state, node, number, job } = read_head(reading)?;
    let form: RunJson<'static> = reading.json()?;
    let tail = form.tail.into_owned();
    let run = Run {
        id,
        number,
        job,
        uid: form.uid,
        args: form.args.into_owned(),
        schedule: form.schedule.map(Cow::into_owned),
        nominal: Instant::from_micros(form.nominal),
        state,
        reason: form.reason.map(Cow::into_owned),
        attempt: form.attempt,
        retry_of: form.retry_of,
        retried_by: form.retried_by,
        rerun_of: form.rerun_of,
        owner: node.zip(form.incarnation).map(|(node, incarnation)| RunOwner { node, incarnation }),
        target: form.target,
        work: form.work.map(Cow::into_owned),
        lock: form.lock.map(Cow::into_owned),
        pools: form.pools.into_owned(),
        terms: ExecutionPolicy {
            timeout: form.timeout.map(Span::from_micros),
            stop_at: form.stop_at.map(Instant::from_micros),
            signal: form.signal,
            grace: Span::from_micros(form.grace),
            lease: form.lease.map(Span::from_micros),
        },
        ending: form.ending.map(Cow::into_owned),
        due: if form.late.is_some() { form.check.map(Instant::from_micros) } else { reading.due()? },
        late_at: form.late.map(Instant::from_micros),
        blockers: form.blockers.into_owned(),
        probes: form.probes.into_owned(),
        exit: form.exit,
        written: form.bytes.map(|bytes| OutputSummary { bytes, tail, stderr: form.stderr.map(Cow::into_owned) }),
        service: form.service.map(|service| Box::new(service.into_owned())),
        actions: form.actions,
        triggers: form.triggers.into_owned().into(),
        log: log(form.log, &form.kinds),
    };
    let Some((from, to, count)) = form.span else { return Ok(Record::Run(Arc::new(run))) };
    let range = CountedRange { from: Instant::from_micros(from), to: Instant::from_micros(to), count };
    let span = SkipSpan::from_listed_run(run, range);
    let span = span.ok_or_else(|| UnreadableText::new("a span of skips has a schedule and a reason"))?;
    Ok(Record::SkipSpan(Arc::new(span)))
}

fn entry(transition: &Transition) -> LogEntryJson<'_> {
    let Transition { at, state, actor, message, kind: _ } = transition;
    (at.micros(), *state, Cow::Borrowed(actor), Cow::Borrowed(message))
}

fn kinds(log: &[Transition]) -> Vec<(usize, TransitionKind)> {
    let kinds = log.iter().map(|entry| entry.kind).enumerate();
    kinds.filter(|(_, kind)| *kind != TransitionKind::default()).collect()
}

fn log(entries: Vec<LogEntryJson<'static>>, kinds: &[(usize, TransitionKind)]) -> Vec<Transition> {
    let entry = |(at, state, actor, message): LogEntryJson<'static>| {
        Transition::entered(Instant::from_micros(at), state, actor.into_owned()).with_message(message)
    };
    let mut log: Vec<Transition> = entries.into_iter().map(entry).collect();
    for (index, kind) in kinds {
        if let Some(entry) = log.get_mut(*index) {
            entry.kind = *kind;
        }
    }
    log
}

fn no_args(args: &Args) -> bool {
    args.is_empty()
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn no_blockers(blockers: &[Blocker]) -> bool {
    blockers.is_empty()
}

fn no_triggers(triggers: &[RunTrigger]) -> bool {
    triggers.is_empty()
}

fn no_probes(probes: &[ProbeState]) -> bool {
    probes.is_empty()
}

fn no_pools(pools: &[PoolName]) -> bool {
    pools.is_empty()
}

fn no_lines(lines: &[String]) -> bool {
    lines.is_empty()
}
