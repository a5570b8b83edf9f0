//! The state table is obeyed: every step that a stored run takes is one that the table has, what it did before stays
//! written, and a finished run changes by a mark alone. Beside that a run that is over may be tried again, and get one
//! note of how its program ended when that was heard of too late. A span of skips is only extended.

use cronhold_core::State;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{RecordKey, Run, SkipSpan, Transition};
use cronhold_core::run::{Cause, TransitionEffect, next};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};
use crate::store_model::{name, span_name};

/// Compares every run that is written with what was there.
#[derive(Debug, Default)]
pub(super) struct TransitionChecker;

impl InvariantChecker for TransitionChecker {
    fn name(&self) -> &'static str {
        "the state table is obeyed"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit) {
            moves(run).map_err(|what| format!("{} {what}", name(run)))?;
            if let Some(old) = model.runs.get(&run.id) {
                follows(old, run).map_err(|what| format!("{} {what}", name(run)))?;
            }
        }
        for span in spans(unit) {
            if let Some(old) = model.spans.get(&span.id).filter(|old| !is_extended(old, span)) {
                return Err(format!("{} was changed otherwise than extended", span_name(old)));
            }
        }
        for change in &unit.changes {
            let RecordChange::Delete(RecordKey::Run(id)) = change else { continue };
            if let Some(run) = model.runs.get(id).filter(|run| !run.state.is_finished()) {
                return Err(format!("{} was forgotten while it was {}", name(run), run.state));
            }
        }
        Ok(())
    }
}

/// Whether a span of skips is an earlier form of another: only its end and its count may have grown.
fn is_extended(old: &SkipSpan, new: &SkipSpan) -> bool {
    let (was, is) = (old.range, new.range);
    let is_grown = was.from == is.from && was.to <= is.to && was.count <= is.count;
    is_grown && SkipSpan { range: is, ..old.clone() } == *new
}

/// Whether the log of a run goes along the table, from one of its beginnings to the run's state.
fn moves(run: &Run) -> CheckResult {
    let first = run.log.first().ok_or("has no log")?.state;
    if !matches!(first, State::Scheduled | State::Waiting) {
        return Err(format!("begins as {first}"));
    }
    if run.log.last().map(|entry| entry.state) != Some(run.state) {
        return Err(format!("is {} and its log says something else", run.state));
    }
    for pair in run.log.windows(2) {
        let (from, to) = (pair[0].state, pair[1].state);
        let is_note = from == to && from.is_finished() && pair[1].is_late_result();
        if !is_note && !Cause::all().any(|cause| next(from, cause) == Ok(TransitionEffect::Enter(to))) {
            return Err(format!("went from {from} to {to}"));
        }
    }
    if run.log.iter().filter(|entry| entry.is_late_result()).count() > 1 {
        return Err("has two notes of how its program ended".to_owned());
    }
    Ok(())
}

/// Whether a run can have become another form of itself.
fn follows(old: &Run, new: &Run) -> CheckResult {
    if (&old.job, old.uid, old.number, old.nominal) != (&new.job, new.uid, new.number, new.nominal) {
        return Err("became another run".to_owned());
    }
    if !new.log.starts_with(&old.log) {
        return Err("has another past than before".to_owned());
    }
    if !old.state.is_finished() {
        return Ok(());
    }
    let added = new.log.get(old.log.len()..).unwrap_or_default();
    if added.iter().any(|entry| !entry.actor.is_explicit() && !entry.is_late_result()) {
        return Err(format!("was {} and went on by itself", old.state));
    }
    let is_noted = added.iter().any(Transition::is_late_result);
    if is_noted && (added.len() > 1 || (old.state, &old.reason) != (new.state, &new.reason)) {
        return Err(format!("was {} and a note of its program changed that", old.state));
    }
    let frozen =
        |run: &Run| Run { state: State::Waiting, reason: None, log: Vec::new(), retried_by: None, ..run.clone() };
    if frozen(old) == frozen(new) { Ok(()) } else { Err(format!("was {} and was changed", old.state)) }
}
