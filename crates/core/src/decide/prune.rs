//! Deletes finished runs and spans of skips that are not kept any longer. The command lists them from a page that
//! may be outdated, so the commit compares the version of each. A run whose retry has not ended stays, and so do a
//! run with an action that is not done and a span that may still be extended.

use std::collections::BTreeSet;

use super::draft::UnitDraft;
use crate::command::PrunableRecord;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::{JobId, RunId};
use crate::policy::retention::TRIM_MAX;
use crate::record::{ActionId, JobState, RecordKey, RecordKind};
use crate::run::State;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, job: &JobId, records: &[PrunableRecord]) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Run, RecordKind::Action]);
    let records = &records[..records.len().min(TRIM_MAX)];
    let definition = view.job(job);
    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(job);
    let newest = records.iter().map(|record| record.nominal).max();
    let mut deleted = BTreeSet::new();
    for record in records {
        // A job that was removed retains nothing, and its spans are not extended.
        let is_retained = definition.as_ref().is_some_and(|definition| {
            let limit = view.kept_limit(&definition.job.retain, record.state);
            state.kept.of(record.state).is_none_or(|kept| *kept <= limit)
        });
        let may_change = match record.key {
            // A span is as recent as its last occurrence.
            RecordKey::SkipSpan(_) => definition.is_some() && Some(record.until) >= newest,
            _ => record.retried_by.is_some_and(|retry| is_unfinished(view, retry)),
        };
        let is_kept = is_retained || may_change || deleted.contains(&record.key);
        if is_kept || has_pending_action(view, record) || !view.assume_version(&record.key, record.version) {
            continue;
        }
        decrement_kept(&mut state, record.state);
        draft.delete(record.key.clone());
        action_ids(record).for_each(|action| {
            let key = RecordKey::Action(action);
            if view.action(action).is_some() || view.is_unreadable(&key) {
                draft.delete(key);
            }
        });
        deleted.insert(&record.key);
    }
    if deleted.is_empty() {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

/// The actions of a run. New ones would change the version of the run.
fn action_ids(record: &PrunableRecord) -> impl Iterator<Item = ActionId> + use<> {
    let (run, actions) = (record.key.run_list_id(), record.actions);
    run.into_iter().flat_map(move |run| (0..actions).map(move |number| ActionId::new(run, number)))
}

/// Whether an action of a run is neither done nor given up. One that cannot be read cannot be delivered either.
fn has_pending_action(view: &DecisionView<'_>, record: &PrunableRecord) -> bool {
    // All of them are read, so that they are loaded together.
    let pending = action_ids(record).filter(|action| view.action(*action).is_some_and(|action| action.is_pending()));
    pending.count() > 0
}

/// Decrements the number of kept runs in a state.
fn decrement_kept(state: &mut JobState, finished: State) {
    if let Some(kept) = state.kept.of(finished) {
        *kept = kept.saturating_sub(1);
    }
}

/// Whether the retry of a run has not ended. One that cannot be read may not have ended.
fn is_unfinished(view: &DecisionView<'_>, retry: RunId) -> bool {
    view.run(retry).map_or_else(|| view.is_unreadable(&RecordKey::Run(retry)), |retry| !retry.state.is_finished())
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn prune_deletes_finished_runs_without_pending_retry() {
        let bench = play(
            "00:00 put j overlap allow; retry 2; kept 0
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 ended #1 yes
                #1 00:01 success
            00:02 run j
                #2 00:02 starting, → #2
            00:02 ended #2 no
                #2 00:02 failure: exit code 1, #3 00:02 attempt 2 scheduled
            00:03 run j
                #4 00:03 starting, → #4
            00:04 prune j #1 #1 #2 #3 #4 #0
                #1 gone
            00:04 prune j #2 #3 #4
                unchanged
            00:04 skip #3
                #3 00:02 attempt 2 skipped: by operator
            00:05 prune k #2
                unchanged
            00:05 prune j #2
                #2 gone
            00:06 prune j #3
                #3 gone",
        );
        let state = bench.job_states().next().expect("a state");
        assert_eq!((state.kept, state.next_number), (crate::record::KeptCounts::default(), 5));
    }

    #[test]
    fn prune_keeps_a_span_that_may_be_extended_and_deletes_an_older_one() {
        let bench = play(
            "00:00 put j @every 10m; catch_up none; kept 0
                next 00:10, job r1
            00:35 due
                #1 00:10–00:30 ×3 skipped: missed, next 00:40
            00:36 prune j #1
                unchanged
            00:55 due
                #1 00:10–00:50 ×5 skipped: missed, next 01:00
            01:00 due
                #2 01:00 starting, next 01:10
            01:01 ended #2 yes
                #2 01:00 success
            01:02 prune k #1
                unchanged
            01:02 prune j #1 #2
                #2 gone, #1 gone",
        );
        let state = bench.job_states().next().expect("a state");
        assert_eq!((state.kept, state.next_number), (crate::record::KeptCounts::default(), 3));
    }

    /// The list may be older than the last pruning.
    #[test]
    fn prune_never_deletes_what_the_job_retains() {
        play(
            "00:00 put j overlap allow; kept 2
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 run j
                #2 00:02 starting, → #2
            00:03 run j
                #3 00:03 starting, → #3
            00:04 ended #1 yes
                #1 00:01 success
            00:04 ended #2 yes
                #2 00:02 success
            00:04 ended #3 yes
                #3 00:03 success
            00:05 prune j #1 #2 #3
                #1 gone
            00:05 prune j #2 #3
                unchanged",
        );
    }

    #[test]
    fn prune_is_requested_above_the_retention_margin() {
        let mut bench = play(
            "00:00 put j overlap allow; kept 8
                job r1",
        );
        let mut ask = |number: u32| {
            bench.now = bench.now.plus(cronhold_schedule::Span::from_secs(1));
            bench.happens("run j");
            bench.happens(&format!("ended #{number}")).remove(0)
        };
        let said: Vec<String> = (1..=18).map(&mut ask).collect();
        assert!(said[..17].iter().all(|line| !line.contains("prune")), "{said:?}");
        assert!(said[17].contains("(prune j)"), "{said:?}");
    }
}
