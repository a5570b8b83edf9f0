//! Checks a sample run of each schedule: its calendar exists, every param has a value, and every template can be bound.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::args::{ArgError, Args};
use cronhold_core::job::TemplateScope;
use cronhold_core::template::Bindings;
use cronhold_schedule::{CompileContext, Instant, Schedule, ScheduleSpec, Timing};

use super::JobCheck;

/// Most schedules of a job for which templates are bound; further schedules usually differ only in their args.
const SAMPLES_MAX: usize = 16;

/// A run id for samples.
const SAMPLE_RUN: &str = "00000000000070008000000000000000";

impl JobCheck<'_> {
    pub(super) fn samples(&mut self) {
        let mut samples = 0;
        let mut failed = BTreeSet::new();
        for (index, schedule) in self.job.schedules.iter().enumerate() {
            let around = self.around;
            let compiled = match Schedule::compile(&schedule.spec, surroundings(self)) {
                Ok(compiled) => compiled,
                Err(error) => {
                    let at = self.mistakes.places.of_schedule(index, error.key);
                    self.mistakes.report(at, error.error.message, error.error.hint);
                    continue;
                }
            };
            let Some(occurrence) = sample(&schedule.spec, &compiled, around.now) else { continue };
            let automatic = compiled.automatic_args(occurrence).into_iter();
            let automatic: BTreeMap<String, String> = automatic.map(|(name, value)| (name.to_owned(), value)).collect();
            match Args::bind(&self.job.params, &schedule.args, &automatic) {
                Ok(args) if samples < SAMPLES_MAX => {
                    samples += 1;
                    self.bind(&args, Some(occurrence), &mut failed);
                }
                Ok(_) => {}
                Err(errors) => errors.0.into_iter().for_each(|error| self.wrong_arg(index, error)),
            }
        }
        if self.job.schedules.is_empty() {
            self.bind(&self.own_values(), None, &mut failed);
        }
    }

    /// Bindings of a run that is not started by a schedule: params that have a default.
    fn own_values(&self) -> Args {
        let params = self.job.params.iter();
        let value = params.filter_map(|(name, param)| {
            let value = param.default.as_ref().or(param.choices.first())?;
            Some((name.clone(), value.clone()))
        });
        value.collect()
    }

    fn wrong_arg(&mut self, index: usize, error: ArgError) {
        let at = self.mistakes.places.get(&format!("schedule[{index}].args"));
        match error {
            ArgError::Missing { name, choices } => {
                let message = format!("runs of this schedule have no value for the param `{name}`");
                let value = choices.first().map_or("…", String::as_str);
                let hint = format!("write `args: {{{name}: {value}}}` here, or give the param a default");
                self.mistakes.report(at, message, Some(hint));
            }
            other => self.mistakes.report(at, other.to_string(), None),
        }
    }

    /// Binds every template that depends only on the run. Responses and messages are not known yet, and neither are
    /// params without a value.
    fn bind(&mut self, args: &Args, occurrence: Option<Instant>, failed: &mut BTreeSet<String>) {
        let run = self.run_bindings(args, occurrence.unwrap_or(self.around.now));
        let params = &self.job.params;
        let mut found = Vec::new();
        self.job.each_template(&mut |path, template, scope| {
            if template.is_literal() || failed.contains(path) || !self.may_bind() {
                return;
            }
            if template.names().into_iter().any(|name| params.contains_key(name) && args.get(name).is_none()) {
                return;
            }
            let bound = match scope {
                TemplateScope::Run => template.bind(&run),
                TemplateScope::Action => template.bind(&action_bindings(&run, path)),
                TemplateScope::Remote | TemplateScope::Answer | TemplateScope::Trigger => return,
            };
            found.extend(bound.err().map(|error| (path.to_owned(), error)));
        });
        for (path, error) in found {
            let message = match occurrence {
                Some(occurrence) => format!("for the run of {occurrence}: {}", error.message),
                None => error.message,
            };
            self.mistakes.report(self.mistakes.places.get(&path), message, error.hint);
            failed.insert(path);
        }
    }

    fn run_bindings(&self, args: &Args, occurrence: Instant) -> Bindings {
        let run = self.world.clone();
        let run = run.with("run_id", SAMPLE_RUN).with("job", self.id.as_str());
        let run = run.with("nominal_time", occurrence.to_string()).with("attempt", 1u32);
        args.iter().fold(run, |run, (name, value)| run.with(name, value))
    }
}

/// The additional bindings of an action's templates. The state is the one that triggers the action.
fn action_bindings(run: &Bindings, path: &str) -> Bindings {
    let event = path.strip_prefix("on.").and_then(|path| path.split('[').next()).unwrap_or_default();
    let state = match event {
        "finished" => "success",
        "late" => "running",
        "missed" => "skipped",
        state => state,
    };
    let run = run.clone().with("number", 1u32).with("state", state).with("reason", "");
    run.with("missed_count", 1u32).with("missed_until", "")
}

fn surroundings<'a>(checking: &JobCheck<'a>) -> CompileContext<'a> {
    let around = checking.around;
    CompileContext { zones: around.zones, zone: around.zone, calendars: around.calendars, job: checking.id.as_str() }
}

/// A sample occurrence: the next one, or the last one if there is no next.
fn sample(spec: &ScheduleSpec, schedule: &Schedule, now: Instant) -> Option<Instant> {
    match spec.timing {
        Timing::Reboot => Some(now),
        _ => schedule.coming(now).next().or_else(|| schedule.prev(now)),
    }
}
