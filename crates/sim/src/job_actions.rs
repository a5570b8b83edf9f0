//! Draws the actions of jobs. They have a random stream of their own, so that a simulation without them stays the same.

use std::collections::BTreeMap;

use cronhold_core::job::{Action, HttpTarget, RunEvent};
use cronhold_core::{Job, JobId, State, Template};

use crate::random::SimRandom;

/// Events that a job may have actions for.
const EVENTS: [RunEvent; 6] = [
    RunEvent::Finished,
    RunEvent::State(State::Success),
    RunEvent::State(State::Failure),
    RunEvent::State(State::Error),
    RunEvent::State(State::Running),
    RunEvent::State(State::Waiting),
];

/// Gives a job actions, or takes them away. Runs are created only of jobs after it, so that no chain is endless.
pub(crate) fn draw_actions(job: &mut Job, id: &JobId, names: &[JobId], rng: &SimRandom) {
    job.on.clear();
    let later = names.iter().position(|name| name == id).map_or(&[][..], |place| &names[place + 1..]);
    for _ in 0..rng.between(0, 3) {
        let event = *rng.pick(&EVENTS);
        let action = match later {
            [] => webhook(),
            _ if rng.one_in(2) => webhook(),
            _ => Action::Run { job: template(rng.pick(later).as_str()), args: BTreeMap::new() },
        };
        job.on.entry(event).or_default().push(action);
    }
}

fn webhook() -> Action {
    Action::Webhook(HttpTarget::new(template("https://example.org")))
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("a plain text")
}
