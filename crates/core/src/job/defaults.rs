//! Actions that many jobs have in common: those of a job directory, which become part of its jobs, and those of a daemon,
//! which apply when an event happens.

use std::collections::BTreeMap;

use super::{Action, ActionRule, Job, RunEvent};
use crate::ids::JobId;

/// What many jobs have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobDefaults {
    /// Actions by their events.
    pub on: BTreeMap<RunEvent, Vec<ActionRule>>,
}

impl JobDefaults {
    /// Adds the actions to a job, without those that no run of the job can have.
    pub fn apply(&self, id: &JobId, job: &mut Job) {
        for event in self.on.keys() {
            let wanted: Vec<ActionRule> = self.additional(id, job, *event).cloned().collect();
            if !wanted.is_empty() {
                job.on.entry(*event).or_default().extend(wanted);
            }
        }
    }

    /// The actions that a job gets for an event in addition to its own. A job that has an empty list for the event gets
    /// none. No job gets an action that it has already, or one that would run the job itself.
    pub fn additional<'a>(
        &'a self,
        id: &'a JobId,
        job: &'a Job,
        event: RunEvent,
    ) -> impl Iterator<Item = &'a ActionRule> + use<'a> {
        let own = job.on.get(&event);
        let is_wanted = own.is_none_or(|own| !own.is_empty()) && (event != RunEvent::Late || job.late.is_some());
        let rules = self.on.get(&event).into_iter().flatten().filter(move |_| is_wanted);
        rules.filter(move |rule| {
            let is_there = own.is_some_and(|own| own.contains(rule));
            !is_there && !runs_job(rule, id) && rule.may_fit(job)
        })
    }
}

impl ActionRule {
    /// Whether a run of a job can have the action: the job has the labels and the params that it asks for.
    fn may_fit(&self, job: &Job) -> bool {
        self.when.as_ref().is_none_or(|when| {
            let has_labels = when.labels.iter().all(|label| job.labels.contains(label));
            has_labels && when.args.keys().all(|name| job.params.contains_key(name))
        })
    }
}

fn runs_job(rule: &ActionRule, id: &JobId) -> bool {
    matches!(&rule.action, Action::Run { job, .. } if job.is_literal() && job.text() == id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ActionFilter, Param, Program};
    use crate::run::State;
    use crate::template::Template;

    fn template(text: &str) -> Template {
        Template::parse(text).expect("a template")
    }

    fn command(text: &str, when: Option<ActionFilter>) -> ActionRule {
        ActionRule { action: Action::Command(template(text)), when: when.map(Box::new) }
    }

    #[test]
    fn job_gets_only_actions_that_it_can_have() {
        let failure = RunEvent::State(State::Failure);
        let prod = ActionFilter { labels: vec!["prod".to_owned()], ..ActionFilter::default() };
        let eu =
            ActionFilter { args: BTreeMap::from([("region".to_owned(), vec!["eu".to_owned()])]), ..Default::default() };
        let run = ActionRule::always(Action::Run { job: template("clean"), args: BTreeMap::new() });
        let all = vec![command("all", None), command("prod", Some(prod)), command("eu", Some(eu)), run];
        let defaults = JobDefaults { on: BTreeMap::from([(failure, all), (RunEvent::Late, vec![command("l", None)])]) };
        let job = || Job::new(Program::Shell(template("true")));
        let kinds = |id: &str, mut job: Job| {
            defaults.apply(&JobId::parse(id).expect("an id"), &mut job);
            let text = |rule: &ActionRule| match &rule.action {
                Action::Command(line) => line.text().to_owned(),
                _ => "run".to_owned(),
            };
            job.on.values().flatten().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kinds("a", job()), "all run");
        assert_eq!(kinds("clean", job()), "all", "it does not run itself");
        assert_eq!(kinds("a", Job { labels: vec!["x".into(), "prod".into()], ..job() }), "all prod run");
        let params = [("region".to_owned(), Param::default())].into_iter().collect();
        assert_eq!(kinds("a", Job { params, ..job() }), "all eu run");
        assert_eq!(kinds("a", Job { late: Some(cronhold_schedule::Span::from_secs(1)), ..job() }), "all run l");
        let own = |rules| Job { on: BTreeMap::from([(failure, rules)]), ..job() };
        assert_eq!(kinds("a", own(Vec::new())), "", "an empty list declines them");
        assert_eq!(kinds("a", own(vec![command("all", None)])), "all run", "an action that is there is not repeated");
    }
}
