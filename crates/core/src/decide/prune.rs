//! Deletes finished runs and spans of skips that are not kept any longer. The command lists them from a page that
//! may be outdated, so each is checked again: a run that has not ended, or whose retry has not, stays, and so does a
//! span that may still be extended.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::{JobId, RunId};
use crate::policy::retention::TRIM_MAX;
use crate::record::{JobState, RecordKey, RecordKind, Run, SkipSpan};
use crate::run::State;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(
    view: &DecisionView<'_>,
    job: &JobId,
    runs: &[RunId],
    spans: &[RunId],
    unreadable: &[(RunId, State)],
) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Run]);
    let unique = |ids: &[RunId]| -> BTreeSet<RunId> { ids.iter().take(TRIM_MAX).copied().collect() };
    let of_job = |run: &Arc<Run>| run.job == *job && run.state.is_finished();
    let finished: Vec<Arc<Run>> = unique(runs).into_iter().filter_map(|id| view.run(id)).filter(of_job).collect();
    let spans = unique(spans).into_iter().filter_map(|id| view.skip_span(id));
    let spans: Vec<Arc<SkipSpan>> = spans.filter(|span| span.job == *job).collect();
    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(job);
    let before = state.clone();
    let nominals = finished.iter().map(|run| run.nominal).chain(spans.iter().map(|span| span.nominal()));
    let newest = nominals.max();
    for run in finished {
        if is_tried_again(view, &run) {
            continue;
        }
        decrement_kept(&mut state, run.state);
        draft.delete(RecordKey::Run(run.id));
    }
    // A span is as recent as its last occurrence. One that may still be extended must stay; those of a removed job are
    // not extended.
    let is_removed = !spans.is_empty() && view.job(job).is_none();
    for span in spans.into_iter().filter(|span| is_removed || Some(span.range.to) < newest) {
        decrement_kept(&mut state, State::Skipped);
        draft.delete(RecordKey::SkipSpan(span.id));
    }
    let mut has_unreadable = false;
    for (id, listed_as) in unreadable.iter().take(TRIM_MAX) {
        let key = RecordKey::Run(*id);
        if view.stored(&key).is_none() && view.is_unreadable(&key) {
            decrement_kept(&mut state, *listed_as);
            draft.delete(key);
            has_unreadable = true;
        }
    }
    if state != before {
        draft.put_state(state);
    } else if !has_unreadable {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.finish(CommandReply::Done)
}

/// Decrements the number of kept runs in a state.
fn decrement_kept(state: &mut JobState, finished: State) {
    if let Some(kept) = state.kept.of(finished) {
        *kept = kept.saturating_sub(1);
    }
}

/// Whether a run has a retry that has not ended.
fn is_tried_again(view: &DecisionView<'_>, run: &Run) -> bool {
    let Some(retry) = run.retried_by else { return false };
    // A retry that cannot be read may not have ended.
    view.run(retry).map_or_else(|| view.is_unreadable(&RecordKey::Run(retry)), |retry| !retry.state.is_finished())
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn prune_deletes_finished_runs_without_pending_retry() {
        let bench = play(
            "00:00 put j overlap allow; retry 2
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
            "00:00 put j @every 10m; catch_up none
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
