//! Changes the state of a finished run by hand. Conditions of other runs see it as if the run had just ended in that
//! state.

use super::draft::UnitDraft;
use super::finish_run;
use super::rename;
use super::run_lifecycle;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::RunId;
use crate::record::Run;
use crate::run::{Cause, Operation, Reason, State};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId, to: State, why: &str) -> Result<DecidedUnit, Halt> {
    let run = run_lifecycle::find_run(view, id)?;
    let reason = Reason::ByOperator(why.to_owned());
    let mut marked: Run = (*run).clone();
    let cause = Cause::By(Operation::Mark(to));
    run_lifecycle::enter_state(&mut marked, cause, view.stamp.at, view.stamp.actor.clone(), &reason.to_string())?;
    marked.reason = Some(reason);

    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(&run.job);
    let job = view.job(&run.job);
    rename::check_settled(&state)?;
    if let Some(kept) = state.kept.of(run.state) {
        *kept = kept.saturating_sub(1);
    }
    finish_run::count_finished(&mut draft, &mut state, to, job.as_deref().map(|job| &job.job.retain));
    let mut outcomes = draft.outcomes(&state, &run.args);
    if outcomes.of(run.state).is_some_and(|outcome| outcome.run == id) {
        // The outcome before it is not stored.
        outcomes.set(run.state, None);
        draft.set_outcomes(&mut state, &run.args, outcomes);
    }
    finish_run::record_outcome(&mut draft, &mut state, &marked);
    draft.put_run(marked);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::{DecisionBench, play};
    use crate::run::State;

    #[test]
    fn mark_moves_the_outcome_to_the_new_state() {
        let mut bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 mark #1 success
                ! the run is not finished yet (starting)
            00:02 ended #1 no
                #1 00:01 failure: exit code 1
            00:03 mark #1 failure
                ! the run is already marked failure
            00:03 mark #1 running
                ! a run cannot be marked running",
        );
        assert_eq!(outcomes(&bench), "failure #1 00:02, kept 0 1 0 0");
        assert_eq!(bench.happens("mark #1 success it was fine"), ["#1 00:01 success: by operator: it was fine"]);
        assert_eq!(outcomes(&bench), "success #1 00:03, kept 1 0 0 0");
        assert_eq!(bench.happens("mark #1 skipped"), ["#1 00:01 skipped: by operator"]);
        assert_eq!(outcomes(&bench), "skipped #1 00:03, kept 0 0 0 1");
        let run = bench.run(None, 1);
        let log: Vec<String> = run.log.iter().map(|entry| format!("{} {}", entry.state, entry.message)).collect();
        assert_eq!(log[2..], ["failure exit code 1", "success by operator: it was fine", "skipped by operator"]);
    }

    #[test]
    fn mark_leaves_outcomes_of_other_runs() {
        let mut bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 ended #1 no
                #1 00:01 failure: exit code 1
            00:02 run j
                #2 00:02 starting, → #2
            00:02 ended #2 no
                #2 00:02 failure: exit code 1",
        );
        bench.happens("mark #1 success");
        assert_eq!(outcomes(&bench), "success #1 00:02, failure #2 00:02, kept 1 1 0 0");
    }

    #[test]
    fn mark_satisfies_a_waiting_condition() {
        play(
            "00:00 put up overlap allow
                job r1
            00:00 put down needs after up within=30m
                job r1
            00:01 run up
                up#1 00:01 starting, → #1
            00:02 ended up#1 no
                up#1 00:01 failure: exit code 1
            01:00 run down
                down#1 01:00 waiting, → #1
            01:00:30 wake down#1
                down#1 01:00 waiting
            01:01 mark up#1 success
                up#1 00:01 success: by operator
            01:01 wake down#1
                down#1 01:00 starting",
        );
    }

    fn outcomes(bench: &DecisionBench) -> String {
        let state = bench.job_states().next().expect("a state");
        let outcomes = state.outcomes.expect("its outcomes");
        let mut texts: Vec<String> = Vec::new();
        for finished in State::ALL {
            let Some(outcome) = outcomes.of(finished) else { continue };
            let number = bench.runs().find(|run| run.id == outcome.run).map(|run| run.number.0).expect("the run");
            let minutes = outcome.at.since(crate::decide::testing::START).micros() / 60_000_000;
            texts.push(format!("{finished} #{number} 00:{minutes:02}"));
        }
        let kept = state.kept;
        texts.push(format!("kept {} {} {} {}", kept.success, kept.failure, kept.error, kept.skipped));
        texts.join(", ")
    }
}
