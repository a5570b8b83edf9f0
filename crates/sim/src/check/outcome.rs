//! Every occurrence has exactly one outcome at rest: a run whose last attempt has finished, or a place in one span of
//! skips. Occurrences of a schedule before its job was changed or removed are checked at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::holes::{UncheckedPart, UncheckedReason, holes};
use cronhold_core::record::{JobRecord, Record, RecordKey, Run, ScheduleId};
use cronhold_core::why::KnownRecords;
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker};
use crate::CHANGED_ZONE;
use crate::store_model::{StoreModel, name, span_name};

/// Finds occurrences without an outcome, and occurrences with two.
#[derive(Debug, Default)]
pub(super) struct OutcomeChecker {
    /// Schedules whose spans may overlap with runs: those whose cursors moved back after a clock was wrong, because
    /// what was recorded by the wrong time stays recorded; those that count from their previous run, which come to the
    /// same time again then; and those that count node starts, which are not ordered by one clock. Another checker
    /// ensures that these start nothing twice either.
    loose: BTreeSet<(JobId, ScheduleId)>,
    /// Schedules that were computed with the time zone data of another release. Which occurrences they have depends on
    /// the node, if the rules of their zone differ.
    mixed: BTreeSet<(JobId, ScheduleId)>,
}

impl InvariantChecker for OutcomeChecker {
    fn name(&self) -> &'static str {
        "one outcome per occurrence"
    }

    fn before(&mut self, CheckerContext { model, world, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Job(job)) => is_whole(model, &job.id, world, FAR, &self.mixed)?,
                RecordChange::Delete(RecordKey::Job(job)) => is_whole(model, job, world, FAR, &self.mixed)?,
                RecordChange::Put(Record::Cursor(cursor)) => {
                    let key = (cursor.job.clone(), cursor.schedule.clone());
                    if !cursor.zones.is_empty() && cursor.zones != world.zones_version {
                        self.mixed.insert(key.clone());
                    }
                    let has_moved_back = model.cursors.get(&key).is_some_and(|old| old.last > cursor.last);
                    let repeats = cursor.next.is_some_and(|next| Some(next) <= cursor.last);
                    if cursor.at_start || has_moved_back || repeats {
                        self.loose.insert(key);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn at_rest(&mut self, CheckerContext { model, world, now, .. }: CheckerContext<'_>) -> CheckResult {
        if !model.is_quiet() {
            return Err(format!("does not come to rest: {}", model.pending()));
        }
        model.jobs.keys().try_for_each(|job| is_whole(model, job, world, now, &self.mixed))?;
        model.runs.values().try_for_each(|run| has_last_attempt(model, run))?;
        none_is_double(model, &self.loose)
    }
}

/// Later than any simulation, so that everything a cursor has passed is checked.
const FAR: Instant = Instant::from_secs(4_000_000_000);

/// Checks that everything the cursors of a job have passed has an outcome. Runs that retention has deleted count, so
/// that nothing goes unchecked.
fn is_whole(
    model: &StoreModel,
    job: &JobId,
    world: &DecisionContext,
    to: Instant,
    mixed: &BTreeSet<(JobId, ScheduleId)>,
) -> CheckResult {
    let Some(record) = model.jobs.get(job) else { return Ok(()) };
    let known = KnownRecords {
        job: Some(Arc::clone(record)),
        state: model.states.get(job).cloned(),
        pauses: Arc::clone(&model.pauses),
        cursors: of_schedules(record, &model.cursors),
        backlogs: of_schedules(record, &model.backlogs),
        runs: model.runs_of(job).cloned().collect(),
        spans: model.spans_of(job).cloned().collect(),
        ..KnownRecords::default()
    };
    let found = holes(&known, world, Instant::EPOCH, to);
    let has_changed_zone = |id: &ScheduleId| {
        record.schedule(id).is_some_and(|schedule| schedule.spec.zone.as_deref() == Some(CHANGED_ZONE))
            && mixed.contains(&(job.clone(), id.clone()))
    };
    if let Some(hole) = found.found.iter().find(|hole| !has_changed_zone(&hole.schedule)) {
        let stretch = hole.stretch;
        let (id, from, until) = (&hole.schedule, stretch.from, stretch.to);
        return Err(format!("{job} {id} has no outcome for {} occurrences from {from} to {until}", stretch.count));
    }
    let is_expected = |unchecked: &UncheckedPart| match unchecked.because {
        UncheckedReason::NotKept(_) => true,
        UncheckedReason::OtherZoneData(_) => has_changed_zone(&unchecked.schedule),
        _ => false,
    };
    match found.unchecked.iter().find(|unchecked| !is_expected(unchecked)) {
        Some(unchecked) => Err(format!("{job} {} cannot be checked: {:?}", unchecked.schedule, unchecked.because)),
        None => Ok(()),
    }
}

/// The entries of a map for the schedules of a job.
fn of_schedules<T>(job: &JobRecord, all: &BTreeMap<(JobId, ScheduleId), Arc<T>>) -> Vec<Arc<T>> {
    job.schedules().filter_map(|(schedule, _)| all.get(&(job.id.clone(), schedule.clone())).cloned()).collect()
}

/// Checks that the next attempt of a run exists, refers back to it, and is listed after it.
fn has_last_attempt(model: &StoreModel, run: &Run) -> CheckResult {
    let Some(next) = run.retried_by else { return Ok(()) };
    match model.runs.get(&next) {
        Some(retry) if retry.id <= run.id => Err(format!("{} is listed before {}", name(retry), name(run))),
        Some(retry) if retry.retry_of == Some(run.id) && retry.attempt == run.attempt + 1 => Ok(()),
        Some(retry) => Err(format!("{} is not the next attempt of {}", name(retry), name(run))),
        None => Err(format!("{} is retried by a run that does not exist", name(run))),
    }
}

/// Checks that no occurrence has both a run and a place in a span, or places in two spans.
fn none_is_double(model: &StoreModel, loose: &BTreeSet<(JobId, ScheduleId)>) -> CheckResult {
    /// First and last occurrence that a run or a span stands for, its id and its name.
    type Part = (Instant, Instant, RunId, String);
    let mut of_schedule: BTreeMap<(JobUid, &ScheduleId, Option<NodeId>), Vec<Part>> = BTreeMap::new();
    for run in model.runs.values().filter(|run| run.attempt == 1 && run.rerun_of.is_none()) {
        let Some(schedule) = &run.schedule else { continue };
        if loose.contains(&(run.job.clone(), schedule.clone())) {
            continue;
        }
        let part = (run.nominal, run.nominal, run.id, name(run));
        of_schedule.entry((run.uid, schedule, run.target)).or_default().push(part);
    }
    for span in model.spans.values() {
        if !loose.contains(&(span.job.clone(), span.schedule.clone())) {
            let part = (span.range.from, span.range.to, span.id, span_name(span));
            of_schedule.entry((span.uid, &span.schedule, None)).or_default().push(part);
        }
    }
    for parts in of_schedule.values_mut() {
        parts.sort();
        for pair in parts.windows(2) {
            let ((_, to, _, one), (from, _, _, other)) = (&pair[0], &pair[1]);
            if from <= to {
                return Err(format!("{one} and {other} both stand for {from}"));
            }
        }
    }
    Ok(())
}
