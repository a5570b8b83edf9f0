//! Checks the jobs that `after` conditions and `run` actions refer to, and the args that they and triggers give.

use std::collections::BTreeMap;

use cronhold_core::JobId;
use cronhold_core::job::{Action, Condition, Job, Requirement, RunEvent};
use cronhold_core::template::Template;
use cronhold_schedule::text::{did_you_mean, shortened};

use super::JobCheck;
use crate::read::form_error;

/// An id with expressions is checked for every choice of its params, if there are no more than this.
const COMBINATIONS_MAX: usize = 64;

/// A reference to a job.
struct JobReference<'j> {
    /// Path of the condition or action, up to `after` or `run`.
    path: String,
    job: &'j Template,
    args: &'j BTreeMap<String, Template>,
    /// Whether this job's run waits for a run of the other one.
    waits: bool,
}

/// An id that a template can bind to.
struct ReferenceTarget {
    id: String,
    /// The args that lead to this id, if the template contains expressions: `region = eu`.
    when: Option<String>,
}

impl JobCheck<'_> {
    pub(super) fn references(&mut self) {
        for reference in references(self.job()) {
            for target in self.targets(reference.job) {
                self.target(&reference, &target);
            }
        }
    }

    /// Checks only whether the jobs exist.
    pub(super) fn unknown_jobs(&mut self) {
        for reference in references(self.job()).iter().filter(|reference| reference.job.is_literal()) {
            let Ok(id) = JobId::parse(reference.job.text()) else { continue };
            if !self.set.jobs.contains_key(&id) && !self.set.broken.contains(&id) {
                self.report_unknown(self.loaded.places.get(&format!("{}.job", reference.path)), &id);
            }
        }
    }

    /// The ids that a template can bind to; empty if they are known only for a run.
    fn targets(&mut self, template: &Template) -> Vec<ReferenceTarget> {
        if template.is_literal() {
            return vec![ReferenceTarget { id: template.text().to_owned(), when: None }];
        }
        let own = [self.id.to_string()];
        let mut combinations = vec![(self.set.world.clone(), Vec::new())];
        for name in template.names() {
            let values = match self.job().params.get(name) {
                Some(param) => param.choices.as_slice(),
                None if name == "job" => own.as_slice(),
                None => &[],
            };
            if values.is_empty() || values.len() * combinations.len() > COMBINATIONS_MAX {
                return Vec::new();
            }
            let before = std::mem::take(&mut combinations);
            for ((bindings, when), value) in
                before.iter().flat_map(|before| values.iter().map(move |value| (before, value)))
            {
                let mut when: Vec<String> = when.clone();
                when.push(format!("{name} = {value}"));
                combinations.push((bindings.clone().with(name, value.as_str()), when));
            }
        }
        let mut targets = Vec::new();
        for (bindings, when) in combinations {
            if self.may_bind()
                && let Ok(id) = template.bind(&bindings)
            {
                targets.push(ReferenceTarget { id, when: Some(when.join(", ")) });
            }
        }
        targets
    }

    fn target(&mut self, reference: &JobReference<'_>, target: &ReferenceTarget) {
        let at = self.loaded.places.get(&format!("{}.job", reference.path));
        let id = match JobId::parse(&target.id) {
            Ok(id) => id,
            Err(error) => return self.report(at, error.message, error.hint),
        };
        if reference.waits {
            self.findings.waits.push((id.clone(), reference.path.clone()));
        }
        match (self.set.jobs.get(&id), &target.when) {
            (Some(target), _) => self.args(reference, &id, &target.job),
            (None, _) if self.set.broken.contains(&id) => {}
            (None, Some(when)) => {
                let hint = format!("this is its id when {when}; add the job, or remove the choice");
                self.report(at, format!("there is no job `{id}`"), Some(hint));
            }
            (None, None) => self.report_unknown(at, &id),
        }
    }

    /// Checks the args of a reference: each is a param with an allowed value, and no required param is missing.
    fn args(&mut self, reference: &JobReference<'_>, id: &JobId, target: &Job) {
        let mistyped = self.given(&reference.path, reference.args, id, target);
        for (name, param) in &target.params {
            let given = reference.args.contains_key(name) || self.job().params.contains_key(name);
            if !given && param.default.is_none() && mistyped != Some(name) {
                let message = format!("the job `{id}` needs a value for its param `{name}`");
                let hint = format!("write `args: {{{name}: …}}`; only params that this job has too are taken over");
                self.report(self.loaded.places.get(&reference.path), message, Some(hint));
            }
        }
    }

    /// Checks the args of triggers. There is no run from which missing args could be copied.
    pub(super) fn triggers(&mut self) {
        let job = self.job();
        for (index, trigger) in job.triggers.iter().enumerate() {
            let path = format!("triggers[{index}]");
            let mistyped = self.given(&path, &trigger.args, self.id, job);
            for (name, param) in &job.params {
                if !trigger.args.contains_key(name) && param.default.is_none() && mistyped != Some(name) {
                    let message = format!("runs of this trigger have no value for the param `{name}`");
                    let hint = format!("write `args: {{{name}: …}}` here, or give the param a default");
                    self.report(self.loaded.places.get(&path), message, Some(hint));
                }
            }
        }
    }

    /// Checks the given args. Returns a mistyped param, so that it is not reported as missing as well.
    fn given<'t>(
        &mut self,
        path: &str,
        args: &BTreeMap<String, Template>,
        id: &JobId,
        target: &'t Job,
    ) -> Option<&'t str> {
        let mut mistyped = None;
        for (name, value) in args {
            let path = format!("{path}.args.{name}");
            let Some(param) = target.params.get(name) else {
                let places = &self.loaded.places;
                let at = places.key(&path).unwrap_or_else(|| places.get(&path));
                let meant = did_you_mean(name, target.params.keys().map(String::as_str));
                mistyped = meant.or(mistyped);
                let hint = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None if target.params.is_empty() => "it has no params".to_owned(),
                    None => format!("its params are {}", target.params.keys().cloned().collect::<Vec<_>>().join(", ")),
                };
                self.report(at, format!("the job `{id}` has no param `{}`", shortened(name)), Some(hint));
                continue;
            };
            let text = value.text();
            if value.is_literal() && !param.choices.is_empty() && !param.choices.iter().any(|choice| choice == text) {
                let message = format!("`{}` is not one of the choices of `{name}` in `{id}`", shortened(text));
                let hint = format!("choices are {}", param.choices.join(", "));
                self.report(self.loaded.places.get(&path), message, Some(hint));
            } else if value.is_literal()
                && let Some(message) = form_error(name, param, text)
            {
                self.report(self.loaded.places.get(&path), format!("{message} of `{id}`"), None);
            }
        }
        mistyped
    }
}

fn references(job: &Job) -> Vec<JobReference<'_>> {
    let mut found = Vec::new();
    for (index, condition) in job.conditions.iter().enumerate() {
        of_condition(condition, &format!("conditions[{index}]"), true, &mut found);
    }
    for (event, actions) in &job.on {
        let event = match event {
            RunEvent::Finished => "finished",
            RunEvent::State(state) => state.name(),
        };
        for (index, action) in actions.iter().enumerate() {
            if let Action::Run { job, args } = action {
                found.push(JobReference { path: format!("on.{event}[{index}].run"), job, args, waits: false });
            }
        }
    }
    found
}

/// Recursion is bounded: readers limit the nesting of conditions.
fn of_condition<'j>(condition: &'j Condition, path: &str, waits: bool, found: &mut Vec<JobReference<'j>>) {
    match &condition.requires {
        Requirement::After { job, args, .. } => {
            let waits = waits && args.iter().all(|(name, value)| takes_over(name, value));
            found.push(JobReference { path: format!("{path}.after"), job, args, waits });
        }
        Requirement::All(inner) => {
            for (index, condition) in inner.iter().enumerate() {
                of_condition(condition, &format!("{path}.all[{index}]"), waits, found);
            }
        }
        Requirement::Any(inner) => {
            for (index, condition) in inner.iter().enumerate() {
                of_condition(condition, &format!("{path}.any[{index}]"), waits, found);
            }
        }
        // A `not` does not wait for the job.
        Requirement::Not(inner) => of_condition(inner, &format!("{path}.not"), false, found),
        Requirement::MaxRunning { .. }
        | Requirement::SkipDuplicate { .. }
        | Requirement::Probe(_)
        | Requirement::Window { .. } => {}
    }
}

/// Whether an arg can have the value that this run has. A computed arg, such as the day before, refers to another run, so
/// that a job may wait for its own run of yesterday.
fn takes_over(name: &str, value: &Template) -> bool {
    let inner = value.text().trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    value.is_literal() || inner.is_some_and(|inner| inner.trim() == name)
}
