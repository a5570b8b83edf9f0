//! Actions in scripts: `on failure run other x=1`, `on finished webhook https://example.org`, `on success command text` as
//! items of a job. A filter stands before the kind: `on failure 3-in-a-row run other`, `on success recovered run other`,
//! `on finished x=1 label:prod run other`. The action with number 0 of run 1 is `#1.0`: `deliver #1.0` tries it, and `delivered #1.0 ATTEMPT` and
//! `undelivered #1.0 ATTEMPT why` report the result.

use super::DecisionBench;
use super::script::pairs;
use crate::command::{Command, DeliveryResult};
use crate::job::{Action, ActionFilter, ActionRule, HttpTarget, OutcomeChange};
use crate::record::{ActionId, Actor};

impl DecisionBench {
    pub(super) fn action_command(&self, verb: &str, rest: &str) -> (Actor, Command) {
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let action = self.action_id(name);
        let (attempt, why) = rest.split_once(' ').unwrap_or((rest, ""));
        let result = match verb {
            "deliver" => return (Actor::Action, Command::Deliver { action }),
            "delivered" => DeliveryResult::Delivered,
            _ => DeliveryResult::Failed(why.to_owned()),
        };
        let attempt = attempt.parse().expect("a number");
        (Actor::Action, Command::ReportDelivery { action, attempt, result })
    }

    fn action_id(&self, name: &str) -> ActionId {
        let (run, number) = name.rsplit_once('.').unwrap_or_else(|| panic!("`{name}` is not an action"));
        ActionId::new(self.run_id(run), number.parse().expect("a number"))
    }
}

/// Parses an action of a job with its filter.
pub(super) fn rule(text: &str) -> ActionRule {
    let mut filter = ActionFilter::default();
    let mut rest = text;
    while let Some((word, more)) = rest.split_once(' ') {
        if let Some(change) = OutcomeChange::ALL.into_iter().find(|change| change.name() == word) {
            filter.outcome = Some(change);
        } else if let Some(count) = word.strip_suffix("-in-a-row") {
            filter.in_a_row = Some(count.parse().expect("a number"));
        } else if let Some(label) = word.strip_prefix("label:") {
            filter.labels.push(label.to_owned());
        } else if let Some((name, value)) = word.split_once('=') {
            filter.args.entry(name.to_owned()).or_default().push(value.to_owned());
        } else {
            break;
        }
        rest = more;
    }
    let when = Some(filter).filter(|filter| *filter != ActionFilter::default());
    ActionRule { action: action(rest), when: when.map(Box::new) }
}

fn action(text: &str) -> Action {
    let template = |text: &str| crate::Template::parse(text).expect("a template");
    let (kind, rest) = text.split_once(' ').expect("a kind and a target");
    let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
    match kind {
        "run" => {
            let args = pairs(more, "").into_iter().map(|(name, value)| (name, template(&value))).collect();
            Action::Run { job: template(first), args }
        }
        "webhook" => {
            let body = Some(more).filter(|body| !body.is_empty()).map(template);
            Action::Webhook(HttpTarget { body, ..HttpTarget::new(template(first)) })
        }
        "email" => Action::Email { to: vec![first.to_owned()], subject: None, body: None },
        "command" => Action::Command(template(rest)),
        "publish" => Action::Publish { channel: template(first), message: None },
        _ => panic!("`{kind}` is not an action"),
    }
}
