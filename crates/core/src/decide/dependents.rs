//! Which runs have waited for another run: those whose `after` conditions name its job and its args. A run does not record
//! which outcome let it start, so this is derived from its job's conditions and from times. It serves operations on
//! chains of runs; no decision depends on it.

use std::collections::BTreeMap;

use crate::args::Args;

use crate::ids::JobId;
use crate::job::{Condition, Job, Param, Requirement};
use crate::name_map::NameMap;
use crate::record::Run;
use crate::run::State;
use crate::template::{Bindings, Template};
use crate::world::DecisionContext;

/// An `after` condition that runs of a job with certain args fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// States that fulfil it.
    pub states: Vec<State>,
    /// Whether the run cannot start without it. False inside `any`.
    pub is_required: bool,
}

/// The runs that a dependency may be about: those of a job with these args.
#[derive(Debug, Clone, Copy)]
pub struct DependencyTarget<'a> {
    pub job: &'a JobId,
    /// The params of the job.
    pub params: &'a NameMap<Param>,
    pub args: &'a Args,
}

/// The `after` conditions of a run's job that the target fulfils. Conditions inside `not` are left out.
pub fn dependencies(job: &Job, run: &Run, on: DependencyTarget<'_>, world: &DecisionContext) -> Vec<Dependency> {
    if !may_depend(job, on.job) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let search = DependencySearch { bindings: super::run_bindings(run, world), run, on };
    search.collect(&job.conditions, true, &mut found);
    found
}

/// Whether a condition of a job may name another one. This is faster than looking at its runs.
pub fn may_depend(job: &Job, on: &JobId) -> bool {
    let mut may = false;
    Condition::visit(&job.conditions, &mut |requires| {
        if let Requirement::After { job, .. } = requires {
            may |= !job.is_literal() || job.text() == on.as_str();
        }
    });
    may
}

/// The search through the conditions of one run.
struct DependencySearch<'a> {
    bindings: Bindings,
    run: &'a Run,
    on: DependencyTarget<'a>,
}

impl DependencySearch<'_> {
    /// Recursion is bounded: readers limit the nesting of conditions.
    fn collect(&self, conditions: &[Condition], is_required: bool, found: &mut Vec<Dependency>) {
        for condition in conditions {
            match &condition.requires {
                Requirement::After { job, args, states, .. } if self.is_about_target(job, args) => {
                    found.push(Dependency { states: states.clone(), is_required });
                }
                Requirement::All(inner) => self.collect(inner, is_required, found),
                Requirement::Any(inner) => self.collect(inner, false, found),
                _ => {}
            }
        }
    }

    fn is_about_target(&self, job: &Template, args: &BTreeMap<String, Template>) -> bool {
        if self.bound(job).as_deref() != Some(self.on.job.as_str()) {
            return false;
        }
        let given = args.iter().map(|(name, value)| Some((name.clone(), self.bound(value)?)));
        let Some(given) = given.collect::<Option<BTreeMap<String, String>>>() else { return false };
        let own = self.run.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Args::bind(self.on.params, &given, &own).is_ok_and(|args| args == *self.on.args)
    }

    fn bound(&self, template: &Template) -> Option<String> {
        if template.is_literal() { Some(template.text().to_owned()) } else { template.bind(&self.bindings).ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{DecisionBench, job_id, play};

    /// How often a run of `j` depends on a run of `up` with an arg, and whether it is required.
    fn required(bench: &DecisionBench, number: u64, x: &str) -> Vec<bool> {
        let find = |name: &str| {
            bench.records.values().find_map(|stored| match &stored.record {
                crate::record::Record::Job(job) if job.id.as_str() == name => Some(job.clone()),
                _ => None,
            })
        };
        let (up, j) = (find("up").expect("a job"), find("j").expect("a job"));
        let asked: Args = serde_json::from_value(serde_json::json!({ "x": x })).expect("args");
        let on = DependencyTarget { job: &up.id, params: &up.job.params, args: &asked };
        let run = bench.run(Some(&job_id("j")), number);
        dependencies(&j.job, &run, on, &bench.world).iter().map(|found| found.is_required).collect()
    }

    #[test]
    fn dependencies_are_found_by_job_and_args() {
        let mut bench = play(
            "00:00 put up param x; overlap allow
                job r1
            00:00 put j param x; overlap allow; needs after up
                job r1
            00:01 run j x=1
                j#1 00:01 waiting, → #1",
        );
        assert_eq!(required(&bench, 1, "1"), [true], "args are taken over");
        assert_eq!(required(&bench, 1, "2"), [false; 0]);
        bench.happens("put j param x; overlap allow; needs after other");
        assert_eq!(required(&bench, 1, "1"), [false; 0]);
        bench.happens("put j param x; overlap allow; needs any after up x=7 | after {{x}}; needs not after up");
        assert_eq!(required(&bench, 1, "7"), [false], "one of several");
    }
}
