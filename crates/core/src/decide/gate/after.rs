//! The condition `after`: a run of some job with some args has ended, or is, in one of these states. Outcomes are read
//! from the identity, which outlives runs that were trimmed.

use std::collections::BTreeMap;

use cronhold_schedule::{Instant, Span};

use super::{Asking, Gate, broken, each, peers};
use crate::args::Args;
use crate::decide::bind;
use crate::ids::JobId;
use crate::job::Requirement;
use crate::record::{JobState, Key};
use crate::run::{Reason, State};
use crate::template::Template;
use crate::view::Halt;

/// What is asked.
pub(super) struct After<'a> {
    pub(super) job: &'a Template,
    pub(super) args: &'a BTreeMap<String, Template>,
    pub(super) states: &'a [State],
    pub(super) within: Option<Span>,
    pub(super) must_exist: bool,
}

/// Whose outcomes are asked about.
struct Target {
    job: JobId,
    args: Args,
}

/// Whether outcomes are not enough to answer, and runs that have not ended are looked at too.
pub(super) fn asks_for_peers(states: &[State], must_exist: bool) -> bool {
    must_exist || states.iter().any(|state| !state.is_finished())
}

impl Asking<'_> {
    /// What can be told once the jobs that conditions name are loaded.
    pub(super) fn needs_of_targets(&self) -> Result<Vec<Key>, Halt> {
        let mut keys = Vec::new();
        let mut halt = Ok(());
        each(&self.job.job.conditions, 0, &mut |requirement| {
            if let Requirement::After { job, args, states, must_exist, .. } = requirement {
                let needs = self.needs_of_target(job, args, asks_for_peers(states, *must_exist));
                match needs {
                    Ok(needs) => keys.extend(needs),
                    Err(other) => halt = Err(other),
                }
            }
        });
        halt.map(|()| keys)
    }

    pub(super) fn after(&self, asked: &After<'_>, again: Instant) -> Result<Gate, Halt> {
        let target = match self.target(asked.job, asked.args)? {
            Ok(Some(target)) => target,
            Ok(None) if asked.must_exist => return Ok(broken("the job that `after` names does not exist".to_owned())),
            Ok(None) => return Ok(Gate::Wait(again)),
            Err(reason) => return Ok(Gate::Break(reason)),
        };
        let Target { job, args } = &target;
        let identity = self.draft.identity(job, args)?;
        let oldest = asked.within.map(|within| self.now().minus(within));
        let mut outcomes = asked.states.iter().filter_map(|state| identity.outcome(*state));
        if outcomes.any(|outcome| oldest.is_none_or(|oldest| outcome.at >= oldest)) {
            return Ok(Gate::Open);
        }
        if !asks_for_peers(asked.states, asked.must_exist) {
            return Ok(Gate::Wait(again));
        }
        let peers = peers::of(self.draft, &self.state_of(job)?, args, self.run.id)?;
        if peers.iter().any(|peer| asked.states.contains(&peer.state)) {
            return Ok(Gate::Open);
        }
        if asked.must_exist && peers.is_empty() && identity.touched().is_none() {
            let blank = if args.is_empty() { "" } else { " " };
            return Ok(broken(format!("there is no run of {job}{blank}{args}, and none is on its way")));
        }
        Ok(Gate::Wait(again))
    }

    /// The job that a template names for this run.
    pub(super) fn named_job(&self, job: &Template) -> Result<JobId, Reason> {
        let unbound = |error: String| Reason::Unbound(format!("`after.job`: {error}"));
        let name = self.bound(job).map_err(unbound)?;
        JobId::parse(&name).map_err(|error| unbound(error.to_string()))
    }

    fn needs_of_target(
        &self,
        job: &Template,
        args: &BTreeMap<String, Template>,
        with_peers: bool,
    ) -> Result<Vec<Key>, Halt> {
        let Ok(Some(Target { job, args })) = self.target(job, args)? else { return Ok(Vec::new()) };
        let mut keys = if with_peers { peers::keys(&self.state_of(&job)?, &args, self.run.id) } else { Vec::new() };
        keys.push(Key::Identity(job, args));
        Ok(keys)
    }

    /// Whose outcomes are meant: args that are not named are taken over from this run as far as that job has them.
    /// Nobody's, when there is no such job.
    fn target(
        &self,
        job: &Template,
        args: &BTreeMap<String, Template>,
    ) -> Result<Result<Option<Target>, Reason>, Halt> {
        let job = match self.named_job(job) {
            Ok(job) => job,
            Err(reason) => return Ok(Err(reason)),
        };
        let Some(record) = self.draft.view.job(&job)? else { return Ok(Ok(None)) };
        let mut given = BTreeMap::new();
        for (name, template) in args {
            match self.bound(template) {
                Ok(value) => drop(given.insert(name.clone(), value)),
                Err(error) => return Ok(Err(Reason::Unbound(format!("`after.args.{name}`: {error}")))),
            }
        }
        let own = self.run.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let args = Args::bind(&record.job.params, &given, &own);
        let args = args.map_err(|errors| Reason::Unbound(format!("`after.args`: {errors}")));
        Ok(args.map(|args| Some(Target { job, args })))
    }

    fn state_of(&self, job: &JobId) -> Result<JobState, Halt> {
        if *job == self.run.job { Ok(self.state.clone()) } else { self.draft.job_state(job) }
    }

    fn bound(&self, template: &Template) -> Result<String, String> {
        if template.is_literal() {
            return Ok(template.text().to_owned());
        }
        template.bind(&bind::bindings(self.run, self.draft.view.world)).map_err(|error| error.to_string())
    }
}
