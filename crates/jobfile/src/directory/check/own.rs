//! The checks of one job for which no other job is needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::job::{Action, Batching, Condition, Job, Requirement};
use cronhold_core::task::{Channel, RunChannels};
use cronhold_core::template::{Bindings, Template};
use cronhold_schedule::CalendarExpr;

use super::super::LoadedJob;
use super::super::outline::{JobLink, LinkArg, ParamOutline, PoolUse};
use super::links::{GivenArgs, check_args};
use super::pools::pools;
use super::{CheckContext, JobCheck, MistakeList};
use crate::mistake::Mistake;

/// Most templates of one job that are bound by the checks; a job with more is loaded without checking the rest.
const BINDS_MAX: usize = 5_000;

/// An id with expressions is checked for every choice of its params, if there are no more than this.
const COMBINATIONS_MAX: usize = 64;

/// What the check of a job alone found.
pub(in crate::directory) struct OwnFindings {
    pub(in crate::directory) mistakes: Vec<Mistake>,
    pub(in crate::directory) params: Arc<[ParamOutline]>,
    /// Its references to other jobs, which are to be checked against these.
    pub(in crate::directory) links: Vec<JobLink>,
    /// The pools that it names.
    pub(in crate::directory) pools: Vec<PoolUse>,
}

/// Checks a job alone. `world` has zones and calendars, and no name.
pub(in crate::directory) fn check_own(
    id: &JobId,
    loaded: &LoadedJob,
    around: &CheckContext<'_>,
    world: &Bindings,
) -> OwnFindings {
    let mistakes = MistakeList::new(&loaded.file, &loaded.places);
    let mut check = JobCheck { id, job: &loaded.job, around, world, mistakes, bound: 0 };
    let params = ParamOutline::all(&loaded.job.params);
    let links = check.links();
    check.windows();
    check.triggers(&params);
    check.samples();
    OwnFindings { mistakes: check.mistakes.found, params, links, pools: pools(&loaded.job) }
}

/// A reference to a job, as it is written.
pub(super) struct JobReference<'j> {
    pub(super) path: String,
    pub(super) job: &'j Template,
    args: &'j BTreeMap<String, Template>,
    waits: bool,
}

/// An id that a template can bind to.
struct ReferenceTarget {
    id: String,
    when: Option<String>,
}

impl<'a> JobCheck<'a> {
    /// Takes one template out of the budget. Returns false if the budget is used up.
    pub(super) fn may_bind(&mut self) -> bool {
        self.bound += 1;
        self.bound <= BINDS_MAX
    }

    /// The references of the job with the ids that they can lead to.
    fn links(&mut self) -> Vec<JobLink> {
        let mut links = Vec::new();
        for reference in references(self.job) {
            let path: Arc<str> = reference.path.as_str().into();
            let args = link_args(reference.args);
            for ReferenceTarget { id, when } in self.targets(reference.job) {
                match JobId::parse(&id) {
                    Ok(job) => links.push(JobLink {
                        path: Arc::clone(&path),
                        job,
                        when: when.map(Into::into),
                        args: Arc::clone(&args),
                        waits: reference.waits,
                    }),
                    Err(error) => {
                        let at = self.mistakes.places.get(&format!("{path}.job"));
                        self.mistakes.report(at, error.message, error.hint);
                    }
                }
            }
        }
        links
    }

    /// The ids that a template can bind to; empty if they are known only for a run.
    fn targets(&mut self, template: &Template) -> Vec<ReferenceTarget> {
        if template.is_literal() {
            return vec![ReferenceTarget { id: template.text().to_owned(), when: None }];
        }
        let own = [self.id.to_string()];
        let mut combinations = vec![(self.world.clone(), Vec::new())];
        for name in template.names() {
            let values = match self.job.params.get(name) {
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

    /// Checks the calendars of windows.
    fn windows(&mut self) {
        for (index, condition) in self.job.conditions.iter().enumerate() {
            let mut found = Vec::new();
            calendars(condition, &format!("conditions[{index}]"), &mut found);
            for (path, days) in found {
                if let Err(error) = self.around.calendars.compile(days) {
                    self.mistakes.report(self.mistakes.places.get(&path), error.message, error.hint);
                }
            }
        }
    }

    /// Checks the channels, the policies and the args of triggers. There is no run from which missing args could be copied.
    fn triggers(&mut self, params: &[ParamOutline]) {
        for (index, trigger) in self.job.triggers.iter().enumerate() {
            let path = format!("triggers[{index}]");
            let args = link_args(&trigger.args);
            let given = GivenArgs { path: &path, args: &args, job: self.id, params };
            let mistyped = check_args(&given, &mut self.mistakes);
            if Channel::parse(&trigger.channel).is_ok_and(|channel| RunChannels::is_about(&channel, self.id)) {
                let message = format!(
                    "the runs of `{}` are published on `{}`, so it would start itself",
                    self.id, trigger.channel
                );
                let hint = "name a channel of another job, such as /cronhold/run/JOB/success".to_owned();
                self.mistakes.report(self.mistakes.places.get(&path), message, Some(hint));
            }
            let policy = self.job.batching_policy();
            let is_default = self.job.batching.is_some() && trigger.batching == Batching::default();
            if !is_default && policy != Some(trigger.batching) {
                let message = "a job has one batching policy, and this one differs from it".to_owned();
                let hint = "write `batching` once, as a key of the job".to_owned();
                self.mistakes.report(self.mistakes.places.get(&path), message, Some(hint));
            }
            for ParamOutline { name, .. } in params.iter().filter(|param| param.is_required) {
                if !trigger.args.contains_key(&**name) && mistyped != Some(&**name) {
                    let message = format!("runs of this trigger have no value for the param `{name}`");
                    let hint = format!("write `args: {{{name}: …}}` here, or give the param a default");
                    self.mistakes.report(self.mistakes.places.get(&path), message, Some(hint));
                }
            }
        }
    }
}

fn link_args(args: &BTreeMap<String, Template>) -> Arc<[LinkArg]> {
    let arg = |(name, value): (&String, &Template)| LinkArg {
        name: name.as_str().into(),
        literal: value.is_literal().then(|| value.text().into()),
    };
    args.iter().map(arg).collect()
}

/// The jobs that a job names in its conditions and actions, with the key of each. Names that are templates are left out.
pub fn named_jobs(job: &Job) -> Vec<(String, JobId)> {
    let literal = references(job).into_iter().filter(|reference| reference.job.is_literal());
    literal.filter_map(|reference| Some((reference.path, JobId::parse(reference.job.text()).ok()?))).collect()
}

pub(super) fn references(job: &Job) -> Vec<JobReference<'_>> {
    let mut found = Vec::new();
    for (index, condition) in job.conditions.iter().enumerate() {
        of_condition(condition, &format!("conditions[{index}]"), true, &mut found);
    }
    for (event, rules) in &job.on {
        for (index, rule) in rules.iter().enumerate() {
            if let Action::Run { job, args } = &rule.action {
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

/// The calendars of a condition, with their paths. Recursion is bounded: readers limit the nesting of conditions.
fn calendars<'j>(condition: &'j Condition, path: &str, found: &mut Vec<(String, &'j CalendarExpr)>) {
    match &condition.requires {
        Requirement::Window { calendar: Some(days), .. } => found.push((format!("{path}.window.calendar"), days)),
        Requirement::All(inner) => {
            inner.iter().enumerate().for_each(|(index, one)| calendars(one, &format!("{path}.all[{index}]"), found));
        }
        Requirement::Any(inner) => {
            inner.iter().enumerate().for_each(|(index, one)| calendars(one, &format!("{path}.any[{index}]"), found));
        }
        Requirement::Not(inner) => calendars(inner, &format!("{path}.not"), found),
        _ => {}
    }
}

/// Whether an arg can have the value that this run has. A computed arg, such as the day before, refers to another run, so
/// that a job may wait for its own run of yesterday.
fn takes_over(name: &str, value: &Template) -> bool {
    let inner = value.text().trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    value.is_literal() || inner.is_some_and(|inner| inner.trim() == name)
}
