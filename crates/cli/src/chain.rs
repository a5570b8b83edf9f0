//! `cronhold rerun --chain`: runs a run again, then the runs that depended on it, each after the ones that it waits for. A
//! run that an action creates is not created twice: the new run of the chain creates it by its own action.

use std::collections::BTreeMap;
use std::time::Duration;

use cronhold_api::{ChainLink, RunSummary};
use cronhold_core::run::State;

use crate::CliError;
use crate::bulk::{BulkOutcome, refusal};
use crate::remote::RemoteDaemon;
use crate::render;
use crate::render::bulk::BulkProgress;

/// Interval between two polls of a run.
const LOOK: Duration = Duration::from_millis(100);

/// A chain that is run again.
pub(crate) struct ChainRerun<'a> {
    pub(crate) remote: &'a RemoteDaemon<'a>,
    /// Whether new runs use the current definition of their job.
    pub(crate) current: bool,
    /// By the id of a run: the last attempt of its new run.
    renewed: BTreeMap<String, RunSummary>,
}

impl<'a> ChainRerun<'a> {
    pub(crate) fn new(remote: &'a RemoteDaemon<'a>, current: bool) -> Self {
        Self { remote, current, renewed: BTreeMap::new() }
    }

    /// Runs the runs of a chain again in their order, and waits for each.
    pub(crate) fn run_all(
        mut self,
        links: &[ChainLink],
        progress: &mut BulkProgress<'_>,
    ) -> Result<Vec<BulkOutcome>, CliError> {
        let mut outcomes = Vec::with_capacity(links.len());
        for link in links {
            let result = self.run_link(link)?;
            outcomes.push(progress.report(BulkOutcome::of(&link.run, result))?);
        }
        Ok(outcomes)
    }

    fn run_link(&mut self, link: &ChainLink) -> Result<Result<String, String>, CliError> {
        if let Some(problem) = self.unmet(link) {
            return Ok(Err(problem));
        }
        let made = match &link.by_action_of {
            Some(origin) => match self.created_by_action(origin, &link.run)? {
                Ok(id) => id,
                Err(problem) => return Ok(Err(problem)),
            },
            None => {
                // The key makes a command that is interrupted and repeated create no run twice.
                let key = format!("rerun of {}", link.run.id);
                match self.remote.client.rerun(&link.run.id, self.current, Some(&key)) {
                    Ok(made) => made.id,
                    Err(error) => return Ok(Err(refusal(error, self.remote)?)),
                }
            }
        };
        let ended = self.last_attempt(made)?;
        let name = render::run::name(&ended);
        let result = match (ended.state, &ended.reason) {
            (State::Success, _) => Ok(name),
            (state, Some(reason)) => Err(format!("{name} ended in {state}: {reason}")),
            (state, None) => Err(format!("{name} ended in {state}")),
        };
        self.renewed.insert(link.run.id.clone(), ended);
        Ok(result)
    }

    /// Why the conditions of a run cannot hold, although its chain was run again; `None` if they can.
    fn unmet(&self, link: &ChainLink) -> Option<String> {
        for needed in link.after.iter().filter(|needed| needed.required) {
            let Some(new) = self.renewed.get(&needed.run) else {
                return Some("a run that it depends on was not run again".to_owned());
            };
            if !needed.states.contains(&new.state) {
                let states: Vec<&str> = needed.states.iter().map(|state| state.name()).collect();
                let name = render::run::name(new);
                return Some(format!("it needs {} of {name}, which ended in {}", states.join(" or "), new.state));
            }
        }
        None
    }

    /// The run that an action of the new run has created for the same job.
    fn created_by_action(&self, origin: &str, old: &RunSummary) -> Result<Result<String, String>, CliError> {
        let Some(new) = self.renewed.get(origin) else {
            return Ok(Err("the run whose action created it was not run again".to_owned()));
        };
        loop {
            let detail = self.remote.client.run(&new.id).map_err(|error| self.remote.failure(error))?;
            let mut actions = detail.actions.iter().filter(|action| action.kind == "run" && action.target == old.job);
            match actions.next() {
                Some(action) if action.created_run.is_some() => {
                    return Ok(Ok(action.created_run.clone().unwrap_or_default()));
                }
                Some(action) if action.status == "pending" => self.remote.client.rest(LOOK),
                _ => {
                    let name = render::run::name(new);
                    return Ok(Err(format!("no action of {name}, which ended in {}, created it", new.state)));
                }
            }
        }
    }

    /// Waits until a run and its retries have ended, and returns the last one.
    fn last_attempt(&self, mut id: String) -> Result<RunSummary, CliError> {
        loop {
            let run = self.remote.client.finished(&id).map_err(|error| self.remote.failure(error))?;
            match run.retried_by.clone() {
                Some(retry) => id = retry,
                None => return Ok(run),
            }
        }
    }
}
