//! Creates the actions that transitions of runs cause. Every decision that writes a run passes here, so no transition can
//! miss its actions: the entries that a decision adds to the log of a run are the events.

use std::sync::Arc;

use super::bind_action;
use super::draft::UnitDraft;
use crate::job::{Action, ActionKind, RunEvent};
use crate::policy::delivery;
use crate::record::{
    ActionId, ActionRecord, ActionStatus, JobRecord, Record, RecordKey, ResolvedAction, Run, Transition, TransitionKind,
};
use crate::view::DecisionView;

/// Adds the actions that the runs of a draft cause. The definition of a job may be older than the stored one: a change of
/// `on` and a transition have no order unless the decision reads the job anyway.
pub(super) fn add_actions(draft: &mut UnitDraft<'_>) {
    for run in draft.written_runs() {
        let before = draft.view.loaded_run(run.id).map_or(0, |before| before.log.len());
        let entered = |entry: &&Transition| entry.kind == TransitionKind::Entered;
        let events: Vec<&Transition> = run.log.iter().skip(before).filter(entered).collect();
        if events.is_empty() {
            continue;
        }
        let job = draft.known_job(&run.job).filter(|job| job.uid == run.uid && !job.job.on.is_empty());
        let Some(job) = job else { continue };
        let mut after = (*run).clone();
        for (event, entry, action) in events.into_iter().flat_map(|entry| actions_of(&run, &job, entry)) {
            let id = next_id(draft.view, &mut after);
            let record = create(draft.view, id, event, &job, (&run, entry), action);
            draft.put(Record::Action(Arc::new(record)));
        }
        if after.actions != run.actions {
            draft.put_run(after);
        }
    }
}

/// The actions of a job for a state that a run has entered. The end of an attempt that is retried is not an end.
fn actions_of<'j>(
    run: &Run,
    job: &'j JobRecord,
    entry: &'j Transition,
) -> impl Iterator<Item = (RunEvent, &'j Transition, &'j Action)> {
    let is_retried = entry.state.is_finished() && run.retried_by.is_some();
    let state = Some(RunEvent::State(entry.state)).filter(|_| !is_retried);
    let finished = Some(RunEvent::Finished).filter(|_| !is_retried && entry.state.is_finished());
    state
        .into_iter()
        .chain(finished)
        .flat_map(move |event| job.job.on.get(&event).into_iter().flatten().map(move |action| (event, entry, action)))
}

/// The id of the next action of a run. A run whose record could not be read may have more actions than its new record
/// says.
fn next_id(view: &DecisionView<'_>, run: &mut Run) -> ActionId {
    loop {
        let id = ActionId::new(run.id, run.actions);
        run.actions += 1;
        if view.assume_absent_unless_loaded(&RecordKey::Action(id)).is_none() {
            return id;
        }
    }
}

fn create(
    view: &DecisionView<'_>,
    id: ActionId,
    event: RunEvent,
    job: &JobRecord,
    (run, entry): (&Run, &Transition),
    action: &Action,
) -> ActionRecord {
    let now = view.stamp.at;
    let (work, error) = match bind_action::work(view.world, id, event, job, (run, entry), action) {
        Ok(work) => (work, None),
        Err(error) => (ResolvedAction::Invalid(action.kind()), Some(error)),
    };
    let kind = work.kind();
    let is_valid = error.is_none();
    // The node that decides begins the first attempt with this commit. Without a node, any of them does.
    let owner = Some(view.stamp.owner).filter(|_| view.world.is_node);
    let due = if owner.is_some() { now.plus(delivery::lease(kind)) } else { now };
    let status = if is_valid { ActionStatus::Pending { due, owner } } else { ActionStatus::Failed { at: now } };
    let is_begun = is_valid && owner.is_some() && kind != ActionKind::Run;
    let mut record = ActionRecord {
        id,
        job: run.job.clone(),
        event,
        created: now,
        work,
        attempts: u32::from(is_begun),
        failures: 0,
        error: None,
        status,
    };
    if let Some(error) = error {
        record.set_error(&error);
    }
    record
}
