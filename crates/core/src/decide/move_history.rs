//! Moves finished runs and outcomes of a job that was renamed to its new name, a limited number in one unit. The caller
//! has listed them in a page that may be outdated: what has moved already is left alone. A unit without any ends the
//! rename. Interrupted between two units, the next caller continues.

use std::sync::Arc;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::JobId;
use crate::record::{Identity, JobState, Record, RecordKey, RecordKind, RenameProgress, Run, SkipSpan};
use crate::view::{DecisionView, Halt};

/// The most records that one unit moves.
pub const MOVED_MAX: usize = 200;

pub(super) fn decide(view: &DecisionView<'_>, to: &JobId, keys: &[RecordKey]) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Run]);
    let mut draft = UnitDraft::new(view);
    let state = draft.job_state(to);
    view.require_loaded()?;
    let Some(RenameProgress::From(from)) = state.renaming.clone() else {
        return draft.finish(CommandReply::Unchanged);
    };
    if keys.is_empty() {
        end_rename(&mut draft, &from, state);
        return draft.finish(CommandReply::Done);
    }
    let mut is_changed = false;
    for key in keys.iter().take(MOVED_MAX) {
        is_changed |= match key {
            RecordKey::Run(id) => match view.run(*id).filter(|run| run.job == from) {
                Some(run) => {
                    draft.put_run(Run { job: to.clone(), ..(*run).clone() });
                    true
                }
                None => false,
            },
            RecordKey::SkipSpan(id) => match view.skip_span(*id).filter(|span| span.job == from) {
                Some(span) => {
                    draft.put_skip_span(SkipSpan { job: to.clone(), ..(*span).clone() });
                    true
                }
                None => false,
            },
            RecordKey::Identity(job, args) if *job == from => move_outcomes(&mut draft, to, key, args),
            _ => false,
        };
    }
    draft.finish(if is_changed { CommandReply::Done } else { CommandReply::Unchanged })
}

/// Moves the outcomes of runs with certain args. Outcomes that are recorded under the new name include them.
fn move_outcomes(draft: &mut UnitDraft<'_>, to: &JobId, key: &RecordKey, args: &crate::args::Args) -> bool {
    let view = draft.view;
    let new_key = RecordKey::Identity(to.clone(), args.clone());
    let (old, is_there) = (view.stored(key), view.stored(&new_key).is_some());
    let Some(Record::Identity(old)) = old.map(|stored| &stored.record) else { return false };
    if !is_there {
        draft.put(Record::Identity(Arc::new(Identity { job: to.clone(), ..(**old).clone() })));
    }
    draft.delete(key.clone());
    true
}

/// Ends the rename. The old name keeps a state, as that of a removed job: what could not be read is deleted with it.
fn end_rename(draft: &mut UnitDraft<'_>, from: &JobId, state: JobState) {
    let old = draft.job_state(from);
    if old.renaming.is_some() {
        draft.put_state(JobState { renaming: None, ..old });
    }
    draft.put_state(JobState { renaming: None, ..state });
}
