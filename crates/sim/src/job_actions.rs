//! Draws the actions of jobs. They have a random stream of their own, so that a simulation without them stays the same.

use std::collections::BTreeMap;

use cronhold_core::job::{Action, ActionFilter, ActionRule, HttpTarget, OutcomeChange, RunEvent};
use cronhold_core::{Job, JobId, State, Template};

use crate::random::SimRandom;

/// Events that a job may have actions for.
const EVENTS: [RunEvent; 8] = [
    RunEvent::Finished,
    RunEvent::State(State::Success),
    RunEvent::State(State::Failure),
    RunEvent::State(State::Error),
    RunEvent::State(State::Running),
    RunEvent::State(State::Waiting),
    RunEvent::Late,
    RunEvent::Missed,
];

/// Gives a job actions, or takes them away. Runs are created only of jobs after it, so that no chain is endless.
pub(crate) fn draw_actions(job: &mut Job, id: &JobId, names: &[JobId], rng: &SimRandom) {
    job.on.clear();
    job.late = rng.one_in(2).then(|| rng.secs(1, 120));
    let later = names.iter().position(|name| name == id).map_or(&[][..], |place| &names[place + 1..]);
    for _ in 0..rng.between(0, 3) {
        let event = *rng.pick(&EVENTS);
        let action = match later {
            [] => webhook(),
            _ if rng.one_in(2) => webhook(),
            _ => Action::Run { job: template(rng.pick(later).as_str()), args: BTreeMap::new() },
        };
        let when = rng.one_in(2).then(|| filter(event, rng)).flatten().map(Box::new);
        job.on.entry(event).or_default().push(ActionRule { action, when });
    }
}

/// A filter that fits an event; `None` if filters by outcomes do not.
fn filter(event: RunEvent, rng: &SimRandom) -> Option<ActionFilter> {
    let is_success = matches!(event, RunEvent::Finished | RunEvent::State(State::Success));
    let is_outcome = is_success || matches!(event, RunEvent::State(State::Failure | State::Error));
    let count = u32::try_from(rng.between(1, 3)).expect("small");
    let (outcome, in_a_row) = match rng.between(0, 2) {
        0 => (Some(OutcomeChange::Changed), None),
        1 if is_success => (Some(OutcomeChange::Recovered), rng.one_in(2).then_some(count)),
        _ => (None, Some(count)),
    };
    is_outcome.then(|| ActionFilter { outcome, in_a_row, ..ActionFilter::default() })
}

fn webhook() -> Action {
    Action::Webhook(HttpTarget::new(template("https://example.org")))
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("a plain text")
}
