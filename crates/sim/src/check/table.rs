//! Runs follow the state table: every transition of a stored run is in the table, its log is append-only, and a
//! finished run changes only by a mark. In addition, a finished run may be retried, and may get one note of how its
//! program ended if that was reported too late. A span of skips changes only by being extended.

use cronhold_core::State;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{RecordKey, Run, SkipSpan, Transition, TransitionKind};
use cronhold_core::run::{Cause, TransitionEffect, next};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};
use crate::store_model::{name, span_name};

/// Compares every written run with its previous state.
#[derive(Debug, Default)]
pub(super) struct TransitionChecker;

impl InvariantChecker for TransitionChecker {
    fn name(&self) -> &'static str {
        "runs follow the state table"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit) {
            moves(run).map_err(|what| format!("{} {what}", name(run)))?;
            if let Some(old) = model.runs.get(&run.id) {
                follows(old, run).map_err(|what| format!("{} {what}", name(run)))?;
            }
        }
        for span in spans(unit) {
            // After the clock was set back, a span may begin where one began that retention has deleted.
            if let Some(old) =
                model.spans.get(&span.id).filter(|old| !model.gone.contains(&old.id) && !is_extended(old, span))
            {
                return Err(format!("the span {} changed without being extended", span_name(old)));
            }
        }
        for change in &unit.changes {
            let RecordChange::Delete(RecordKey::Run(id)) = change else { continue };
            if let Some(run) = model.runs.get(id).filter(|run| !run.state.is_finished()) {
                return Err(format!("{} was deleted while it was {}", name(run), run.state));
            }
        }
        Ok(())
    }
}

/// Whether `new` extends the span `old`: only its end and its count may have grown.
fn is_extended(old: &SkipSpan, new: &SkipSpan) -> bool {
    let (was, is) = (old.range, new.range);
    let is_grown = was.from == is.from && was.to <= is.to && was.count <= is.count;
    is_grown && SkipSpan { range: is, ..old.clone() } == *new
}

/// Checks that the log of a run follows the table from an initial state to the run's current state.
fn moves(run: &Run) -> CheckResult {
    let first = run.log.first().ok_or("has no log")?.state;
    if !matches!(first, State::Scheduled | State::Waiting) {
        return Err(format!("begins as {first}"));
    }
    if run.log.last().map(|entry| entry.state) != Some(run.state) {
        return Err(format!("is {} and its log ends in another state", run.state));
    }
    for pair in run.log.windows(2) {
        let (from, to) = (pair[0].state, pair[1].state);
        let is_note = from == to && from.is_finished() && pair[1].is_late_result();
        let is_late = from == to && !from.is_finished() && pair[1].kind == TransitionKind::Late;
        if !is_note && !is_late && !Cause::all().any(|cause| next(from, cause) == Ok(TransitionEffect::Enter(to))) {
            return Err(format!("went from {from} to {to}"));
        }
    }
    if run.log.iter().filter(|entry| entry.is_late_result()).count() > 1 {
        return Err("has two notes of how its program ended".to_owned());
    }
    Ok(())
}

/// Checks that a run may change from `old` to `new`.
fn follows(old: &Run, new: &Run) -> CheckResult {
    if (&old.job, old.uid, old.number, old.nominal) != (&new.job, new.uid, new.number, new.nominal) {
        return Err("changed its identity".to_owned());
    }
    if !new.log.starts_with(&old.log) {
        return Err("has a changed log".to_owned());
    }
    if !old.state.is_finished() {
        return Ok(());
    }
    let added = new.log.get(old.log.len()..).unwrap_or_default();
    if added.iter().any(|entry| !entry.actor.is_explicit() && !entry.is_late_result()) {
        return Err(format!("was {} and continued automatically", old.state));
    }
    let is_noted = added.iter().any(Transition::is_late_result);
    if is_noted && (added.len() > 1 || (old.state, &old.reason) != (new.state, &new.reason)) {
        return Err(format!("was {} and a note of its program changed that", old.state));
    }
    let frozen = |run: &Run| Run {
        state: State::Waiting,
        reason: None,
        log: Vec::new(),
        retried_by: None,
        actions: 0,
        ..run.clone()
    };
    if frozen(old) == frozen(new) { Ok(()) } else { Err(format!("was {} and was changed", old.state)) }
}
