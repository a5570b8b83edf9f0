//! Deletes records that nothing needs any longer: outcomes that no condition looks back to, nodes that are gone, the jobs of
//! ad hoc runs, and the states of removed jobs. The caller has found them in pages that may be outdated, so each is checked again here, and
//! the commit compares it.

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::JobId;
use crate::policy::retention::EXPIRE_MAX;
use crate::record::RecordKey;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, keys: &[RecordKey], before: Instant) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let mut is_changed = false;
    for key in keys.iter().take(EXPIRE_MAX) {
        let is_expired = match key {
            _ if view.stored(key).is_none() => false,
            RecordKey::Identity(job, args) => view.identity(job, args).outcomes.touched().is_none_or(|at| at < before),
            RecordKey::Node(id) => {
                *id != view.stamp.owner.node && view.node(*id).is_some_and(|node| node.gone < before)
            }
            RecordKey::Job(job) => {
                is_changed |= remove_ad_hoc_job(&mut draft, job);
                false
            }
            RecordKey::JobState(job) => {
                is_changed |= note_removal(&mut draft, job);
                is_state_expired(view, job, before)
            }
            _ => false,
        };
        if is_expired {
            draft.delete(key.clone());
            is_changed = true;
        }
    }
    draft.finish(if is_changed { CommandReply::Done } else { CommandReply::Unchanged })
}

/// Whether a job was removed before a time and nothing of it is left. The caller has seen that it has no runs; without
/// a job and without runs no new ones come, unless the job is created again, and that changes the state.
fn is_state_expired(view: &DecisionView<'_>, job: &JobId, before: Instant) -> bool {
    let state = view.job_state(job);
    let is_idle = state.active.is_empty() && state.queue.is_empty();
    is_idle && view.job(job).is_none() && state.removed.is_some_and(|at| at < before)
}

/// Removes the job of an ad hoc run unless a run of it is active or waits. The caller has seen that none is scheduled
/// either. Returns whether it did.
fn remove_ad_hoc_job(draft: &mut UnitDraft<'_>, job: &JobId) -> bool {
    let mut state = draft.job_state(job);
    let is_idle = state.active.is_empty() && state.queue.is_empty();
    if !job.is_ad_hoc() || !is_idle || draft.view.job(job).is_none() {
        return false;
    }
    state.removed = Some(draft.at());
    draft.put_state(state);
    draft.delete(RecordKey::Job(job.clone()));
    true
}

/// Starts the time of a state whose job was removed by a version that did not record when. Returns whether it did.
fn note_removal(draft: &mut UnitDraft<'_>, job: &JobId) -> bool {
    let mut state = draft.job_state(job);
    if state.removed.is_some() || draft.view.job(job).is_some() {
        return false;
    }
    state.removed = Some(draft.at());
    draft.put_state(state);
    true
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::*;
    use crate::args::Args;
    use crate::command::Command;
    use crate::decide::testing::{DecisionBench, START, job_id, play};
    use crate::ids::NodeId;
    use crate::record::{Actor, Record};

    /// Expires a record that was not used for `age`, `later` after the start. Returns whether it is gone.
    fn is_gone(bench: &mut DecisionBench, key: &RecordKey, later: Span, age: Span) -> bool {
        bench.now = START.plus(later);
        let command = Command::Expire { keys: vec![key.clone()], before: bench.now.minus(age) };
        bench.line(Actor::Retention, &command);
        !bench.records.contains_key(key)
    }

    const DAY: Span = Span::from_secs(86_400);
    const HOUR: Span = Span::from_secs(3_600);

    #[test]
    fn outcome_expires_when_no_run_has_ended_since() {
        let mut bench = play(
            "00:00 put j param x; overlap allow
                job r1
            00:01 run j x=1
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success",
        );
        let args: Args = [("x".to_owned(), "1".to_owned())].into_iter().collect();
        let key = RecordKey::Identity(job_id("j"), args);
        assert!(bench.records.contains_key(&key));
        assert!(!is_gone(&mut bench, &key, DAY, DAY), "it was used a minute less than a day ago");
        assert!(is_gone(&mut bench, &key, DAY.plus(HOUR), DAY));
        assert!(is_gone(&mut bench, &key, DAY.plus(HOUR), DAY), "again");
    }

    #[test]
    fn state_of_a_removed_job_expires_unless_the_job_comes_back() {
        let key = RecordKey::JobState(job_id("j"));
        let story = "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 ended #1 yes
                #1 00:01 success";
        let mut bench = play(story);
        assert!(!is_gone(&mut bench, &key, DAY, HOUR), "the job is there");
        bench.happens("remove j");
        assert!(!is_gone(&mut bench, &key, DAY.plus(HOUR), HOUR));
        bench.happens("put j overlap allow");
        assert!(!is_gone(&mut bench, &key, DAY.plus(DAY), HOUR), "the job is there again");
        bench.happens("remove j");
        assert!(is_gone(&mut bench, &key, DAY.plus(DAY).plus(DAY), HOUR));

        // A version that did not record the removal has removed the job.
        let mut bench = play(story);
        bench.records.remove(&RecordKey::Job(job_id("j")));
        assert!(!is_gone(&mut bench, &key, DAY, HOUR), "its time begins now");
        assert!(!is_gone(&mut bench, &key, DAY.plus(HOUR), HOUR));
        assert!(is_gone(&mut bench, &key, DAY.plus(HOUR).plus(HOUR), HOUR));
    }

    #[test]
    fn state_with_runs_that_have_not_ended_is_kept() {
        let mut bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1",
        );
        bench.happens("remove j");
        assert!(!is_gone(&mut bench, &RecordKey::JobState(job_id("j")), DAY, HOUR));
    }

    #[test]
    fn job_of_an_ad_hoc_run_expires_when_no_run_is_left_that_could_start() {
        let mut bench = play(
            "00:00 ad-hoc overlap allow
                #1 00:00 starting, job r1, → #1",
        );
        let job = bench.run(None, 1).job.clone();
        let key = RecordKey::Job(job.clone());
        assert!(!is_gone(&mut bench, &key, HOUR, HOUR), "its run is active");
        bench.happens("ended #1 yes");
        assert!(is_gone(&mut bench, &key, HOUR, HOUR));
        assert!(is_gone(&mut bench, &RecordKey::JobState(job), DAY, HOUR), "like the state of any removed job");
        bench.happens("put j overlap allow");
        assert!(!is_gone(&mut bench, &RecordKey::Job(job_id("j")), DAY, HOUR), "it is a stored job");
    }

    #[test]
    fn node_expires_when_it_has_been_gone_for_long() {
        let mut bench = play("00:00 there 1 2");
        let [own, other] = [1, 2].map(|bits| RecordKey::Node(NodeId::from_bits(bits)));
        assert!(!is_gone(&mut bench, &other, HOUR, HOUR), "it is gone for less than an hour");
        assert!(is_gone(&mut bench, &other, DAY, HOUR));
        assert!(!is_gone(&mut bench, &own, DAY, HOUR), "the node that decides is alive");
        assert!(bench.records.values().all(|stored| matches!(&stored.record, Record::Node(_))));
    }
}
