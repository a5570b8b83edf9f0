//! The chain of a run: the runs that have waited for it by `after`, or that its actions have created, and those that have
//! waited for these, in the order of their dependencies. It is found by the conditions of jobs and by the times of runs: a
//! run has waited for the run that ended last before it started.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{ChainDependency, ChainLink, Problem, ProblemCode, RunChain};
use cronhold_core::decide::dependents::{DependencyTarget, dependencies, may_depend};
use cronhold_core::record::{ActionId, JobRecord, Record, RecordKey, Run};
use cronhold_core::{DecisionContext, JobId, RunId};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Query, RunQuery, load_readable};

use crate::AppState;
use crate::extract::PathSegment;
use crate::find_run::{JobRunChoice, ListedRun, find_run};
use crate::node_names::NodeNames;
use crate::problem::ApiError;

/// Maximum number of runs in a chain.
const CHAIN_MAX: usize = 500;
/// Jobs that are read in one page, and at most.
const PAGE: usize = 1_000;
const JOBS_MAX: usize = 200_000;
/// Runs of one job that are examined for one run of the chain.
const RUNS_MAX: usize = 5_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/runs/{run}/chain", get(chain))
}

/// List the runs that depend on a run
///
/// The first one is the run itself. The others have waited for it by `after`, were created by its actions, or depend on
/// such runs; each comes after those that it depends on.
#[utoipa::path(get, path = "/api/v1/runs/{run}/chain", tag = "runs",
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its running run, else the last one that started")),
    responses((status = 200, body = RunChain), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn chain(
    State(app): State<Arc<AppState>>,
    PathSegment(name): PathSegment,
) -> Result<Json<RunChain>, ApiError> {
    let first = find_run(&*app.store, &name, JobRunChoice::Current).await?;
    let mut search =
        ChainSearch { app: &app, world: (app.world)(), jobs: jobs_with_conditions(&app).await?, runs: BTreeMap::new() };
    let links = search.run(first).await?;
    let listed: Vec<ListedRun> = links.iter().map(|link| ListedRun::Run(Arc::clone(&link.run))).collect();
    let names = NodeNames::of(&*app.store, &listed).await?;
    let runs = links.into_iter().zip(&listed).map(|(link, listed)| ChainLink {
        run: names.summary(listed),
        after: link.after.into_values().collect(),
        by_action_of: link.by_action_of.map(|run| run.to_string()),
    });
    Ok(Json(RunChain { runs: runs.collect() }))
}

/// A run of the chain.
struct FoundRun {
    run: Arc<Run>,
    /// What it has waited for.
    after: BTreeMap<RunId, ChainDependency>,
    /// The run whose action has created it.
    by_action_of: Option<RunId>,
}

/// The search for a chain.
struct ChainSearch<'a> {
    app: &'a AppState,
    world: DecisionContext,
    /// Jobs with conditions.
    jobs: Vec<Arc<JobRecord>>,
    /// Runs of a job that had not ended before a time, by job and time.
    runs: BTreeMap<(JobId, Instant), Vec<Arc<Run>>>,
}

impl ChainSearch<'_> {
    /// All runs of the chain, ordered by when they ended: a run ends after those that it has waited for.
    async fn run(&mut self, first: Arc<Run>) -> Result<Vec<FoundRun>, ApiError> {
        let mut found: BTreeMap<RunId, FoundRun> = BTreeMap::new();
        let mut coming = VecDeque::from([Arc::clone(&first)]);
        found.insert(first.id, FoundRun { run: first, after: BTreeMap::new(), by_action_of: None });
        while let Some(run) = coming.pop_front() {
            let Some(ended) = run.finished() else { continue };
            for created in self.created_by(&run).await? {
                let new = found.entry(created.id).or_insert_with(|| {
                    coming.push_back(Arc::clone(&created));
                    FoundRun { run: created, after: BTreeMap::new(), by_action_of: None }
                });
                new.by_action_of = Some(run.id);
            }
            for (waited, dependency) in self.waited_for(&run, ended).await? {
                let new = found.entry(waited.id).or_insert_with(|| {
                    coming.push_back(Arc::clone(&waited));
                    FoundRun { run: waited, after: BTreeMap::new(), by_action_of: None }
                });
                new.after.insert(run.id, dependency);
            }
            if found.len() > CHAIN_MAX {
                let message = format!("more than {CHAIN_MAX} runs depend on this run");
                return Err(
                    ApiError::new(ProblemCode::Invalid, message).hint("run the parts of the chain again by themselves")
                );
            }
        }
        let mut found: Vec<FoundRun> = found.into_values().collect();
        // Runs may end at the same instant; one that has waited for another one comes after it.
        found.sort_by_key(|link| (link.run.finished().unwrap_or(link.run.nominal), link.after.len()));
        Ok(found)
    }

    /// The last attempts of the runs that the actions of a run have created.
    async fn created_by(&self, run: &Run) -> Result<Vec<Arc<Run>>, Fault> {
        let keys: Vec<RecordKey> =
            (0..run.actions).map(|number| RecordKey::Action(ActionId::new(run.id, number))).collect();
        let actions = load_readable(&*self.app.store, &keys).await?.records;
        let created = actions.into_iter().filter_map(|(_, stored)| match stored?.record {
            Record::Action(action) => action.created_run(),
            _ => None,
        });
        let mut last = Vec::new();
        for id in created {
            last.extend(self.last_attempt(id).await?);
        }
        Ok(last)
    }

    async fn last_attempt(&self, mut id: RunId) -> Result<Option<Arc<Run>>, Fault> {
        loop {
            let found = load_readable(&*self.app.store, &[RecordKey::Run(id)]).await?.records;
            let run = found.into_iter().find_map(|(_, stored)| match stored?.record {
                Record::Run(run) => Some(run),
                _ => None,
            });
            match run {
                Some(run) if run.retried_by.is_some() => id = run.retried_by.unwrap_or(id),
                run => return Ok(run),
            }
        }
    }

    /// The runs that have waited for a run that ended at a time, and no later run of the same job and args.
    async fn waited_for(&mut self, run: &Run, ended: Instant) -> Result<Vec<(Arc<Run>, ChainDependency)>, Fault> {
        let candidates: Vec<Arc<JobRecord>> =
            self.jobs.iter().filter(|job| may_depend(&job.job, &run.job)).cloned().collect();
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let of_job = self.runs_since(&run.job, ended).await?;
        let is_later = |other: &&Arc<Run>| other.args == run.args && other.id != run.id;
        let next = of_job.iter().filter(is_later).filter_map(|other| other.finished()).filter(|at| *at > ended).min();
        let params = self.params_of(&run.job).await?;
        let on = DependencyTarget { job: &run.job, params: &params, args: &run.args };
        let mut found = Vec::new();
        for job in candidates {
            let runs = self.runs_since(&job.id, ended).await?;
            let repeated: BTreeSet<RunId> = runs.iter().filter_map(|run| run.rerun_of).collect();
            for other in runs.into_iter().filter(|other| other.id != run.id && !repeated.contains(&other.id)) {
                // When its conditions held, or it was given up.
                let Some(at) = other.started().or_else(|| other.finished()) else { continue };
                let is_served = at >= ended && next.is_none_or(|next| at < next);
                if !other.state.is_finished() || other.retried_by.is_some() || !is_served {
                    continue;
                }
                let needs = dependencies(&job.job, &other, on, &self.world);
                if let Some(need) = needs.iter().find(|need| need.is_required).or_else(|| needs.first()) {
                    let dependency = ChainDependency {
                        run: run.id.to_string(),
                        states: need.states.clone(),
                        required: need.is_required,
                    };
                    found.push((other, dependency));
                }
            }
        }
        Ok(found)
    }

    async fn params_of(&self, job: &JobId) -> Result<cronhold_core::NameMap<cronhold_core::job::Param>, Fault> {
        let found = cronhold_store::find_job(&*self.app.store, job).await?;
        Ok(found.map(|job| job.job.params.clone()).unwrap_or_default())
    }

    /// The runs of a job that had not ended before a time.
    async fn runs_since(&mut self, job: &JobId, since: Instant) -> Result<Vec<Arc<Run>>, Fault> {
        let key = (job.clone(), since);
        if let Some(runs) = self.runs.get(&key) {
            return Ok(runs.clone());
        }
        let mut query = RunQuery { job: Some(job.clone()), since: Some(since), ..RunQuery::default() };
        let mut runs = Vec::new();
        while runs.len() < RUNS_MAX {
            let page = self.app.store.page(&Query::Runs(query.clone()), PAGE).await?;
            query.before = page.next(PAGE).and_then(|last| last.run_list_id());
            runs.extend(page.records.into_iter().filter_map(|stored| match stored.record {
                Record::Run(run) => Some(run),
                _ => None,
            }));
            if query.before.is_none() {
                break;
            }
        }
        self.runs.insert(key, runs.clone());
        Ok(runs)
    }
}

/// All jobs with conditions.
async fn jobs_with_conditions(app: &AppState) -> Result<Vec<Arc<JobRecord>>, Fault> {
    let (mut found, mut after, mut seen) = (Vec::new(), None, 0);
    while seen < JOBS_MAX {
        let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
        seen += page.len();
        let next = page.next(PAGE);
        found.extend(page.records.into_iter().filter_map(|stored| match stored.record {
            Record::Job(job) if !job.job.conditions.is_empty() => Some(job),
            _ => None,
        }));
        after = match next {
            Some(RecordKey::Job(last)) => Some(last),
            _ => break,
        };
    }
    Ok(found)
}
