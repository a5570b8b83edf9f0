//! Which runs have an action: decides about the filter `when` of an action.

use crate::args::Args;
use crate::job::{ActionFilter, OutcomeChange, RunEvent};
use crate::record::OutcomeStreak;
use crate::run::State;

/// How an outcome of a run follows the outcomes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeStep {
    /// The outcomes before it; `None` if it is the first.
    pub before: Option<OutcomeStreak>,
    /// The outcomes up to it.
    pub after: OutcomeStreak,
}

impl OutcomeStep {
    /// The step from the outcomes so far to the next one; `None` for a state that is not an outcome.
    pub fn new(before: Option<OutcomeStreak>, outcome: State) -> Option<Self> {
        Some(Self { before, after: OutcomeStreak::next(before, outcome)? })
    }

    /// How many failures and errors in a row a success has ended.
    fn ended(&self) -> u32 {
        self.before.map_or(0, |before| before.failures.saturating_add(before.errors))
    }

    fn has_changed(&self) -> bool {
        self.before.map_or(State::Success, |before| before.last) != self.after.last
    }

    /// How many outcomes in a row an event counts.
    fn in_a_row(&self, event: RunEvent) -> u32 {
        let OutcomeStreak { successes, failures, errors, .. } = self.after;
        match event {
            RunEvent::State(State::Success) => successes,
            RunEvent::State(State::Failure) => failures,
            RunEvent::State(State::Error) => errors,
            _ => successes.saturating_add(failures).saturating_add(errors),
        }
    }
}

/// Whether a run with these args, of a job with these labels, has an action for an event. `step` is `None` if the event is
/// not an outcome; then a filter by outcomes selects nothing.
pub fn selects(
    filter: &ActionFilter,
    event: RunEvent,
    labels: &[String],
    args: &Args,
    step: Option<&OutcomeStep>,
) -> bool {
    let has_value = |(name, values): (&String, &Vec<String>)| {
        args.get(name).is_some_and(|value| values.iter().any(|wanted| wanted == value))
    };
    let fits_run = filter.labels.iter().all(|label| labels.contains(label)) && filter.args.iter().all(has_value);
    let fits_outcome = match (filter.outcome, filter.in_a_row) {
        (None, None) => true,
        (Some(OutcomeChange::Changed), _) => step.is_some_and(OutcomeStep::has_changed),
        (Some(OutcomeChange::Recovered), least) => {
            step.is_some_and(|step| step.after.last == State::Success && step.ended() >= least.unwrap_or(1))
        }
        (None, Some(count)) => step.is_some_and(|step| step.in_a_row(event) == count),
    };
    fits_run && fits_outcome
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The outcomes, by their first letters, and for each filter at which of them it selects.
    #[test]
    fn filters_select_outcomes_by_those_before() {
        let changed = ActionFilter { outcome: Some(OutcomeChange::Changed), ..ActionFilter::default() };
        let recovered = ActionFilter { outcome: Some(OutcomeChange::Recovered), ..ActionFilter::default() };
        let after_three = ActionFilter { in_a_row: Some(3), ..recovered.clone() };
        let row = |count| ActionFilter { in_a_row: Some(count), ..ActionFilter::default() };
        let all = ActionFilter::default();
        for (filter, event, outcomes, expected) in [
            // A skipped run is not an outcome: it neither ends a row nor counts as a change.
            (&all, "finished", "sfes-", &[1, 2, 3, 4, 5][..]),
            (&changed, "finished", "ssffesf-fs", &[3, 5, 6, 7, 10]),
            (&changed, "finished", "fs", &[1, 2]),
            (&recovered, "success", "ssfsfesff-s", &[4, 7, 11]),
            (&recovered, "success", "s-s", &[]),
            (&after_three, "success", "ffsfefsffffs", &[7, 12]),
            (&row(1), "failure", "sffsf", &[2, 5]),
            (&row(3), "failure", "fffffsfff", &[3, 9]),
            (&row(3), "failure", "ff-f", &[4]),
            // Errors in between do not end a row of failures. Each event counts its own.
            (&row(3), "failure", "fefef", &[5]),
            (&row(2), "error", "fefes", &[4]),
            (&row(3), "finished", "fefsss", &[3, 6]),
            (&row(2), "success", "ssfss", &[2, 5]),
        ] {
            let event = RunEvent::parse(event).expect("an event");
            let mut streak = None;
            let mut found = Vec::new();
            for (number, letter) in (1..).zip(outcomes.chars()) {
                let state = match letter {
                    's' => State::Success,
                    'f' => State::Failure,
                    'e' => State::Error,
                    _ => State::Skipped,
                };
                let step = OutcomeStep::new(streak, state);
                streak = step.map_or(streak, |step| Some(step.after));
                let happens = event == RunEvent::Finished || event == RunEvent::State(state);
                if happens && selects(filter, event, &[], &Args::new(), step.as_ref()) {
                    found.push(number);
                }
            }
            assert_eq!(found, expected, "{filter:?} {outcomes}");
        }
    }

    #[test]
    fn filters_select_by_labels_and_args() {
        let args: Args = [("region".to_owned(), "eu".to_owned())].into_iter().collect();
        let labels = ["prod".to_owned(), "eod".to_owned()];
        let filter = |wanted: &[&str], region: &[&str]| ActionFilter {
            labels: wanted.iter().map(ToString::to_string).collect(),
            args: BTreeMap::from([("region".to_owned(), region.iter().map(ToString::to_string).collect())]),
            ..ActionFilter::default()
        };
        for (filter, expected) in [
            (filter(&[], &["eu"]), true),
            (filter(&[], &["us", "eu"]), true),
            (filter(&[], &["us"]), false),
            (filter(&["prod", "eod"], &["eu"]), true),
            (filter(&["prod", "test"], &["eu"]), false),
            (
                ActionFilter { args: BTreeMap::from([("day".to_owned(), vec![String::new()])]), ..Default::default() },
                false,
            ),
        ] {
            assert_eq!(selects(&filter, RunEvent::Late, &labels, &args, None), expected, "{filter:?}");
        }
    }
}
