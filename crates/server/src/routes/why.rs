//! Explains why a job runs or does not run, now or at a given time. The core explains; this module loads the records.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{AnswerLine, FileMistake, Problem, WhyReport};
use cronhold_core::decision::Rejection;
use cronhold_core::record::NodeRecord;
use cronhold_core::why::{self, Tone};
use cronhold_core::{DecisionContext, JobId};
use cronhold_schedule::Instant;
use cronhold_store::has_foreign_nodes;
use serde::Deserialize;

use super::runs::read;
use crate::AppState;
use crate::describe::JobFileMistakes;
use crate::extract::{JobIdPath, QueryParams};
use crate::job_history::{self, RunSelection};
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/jobs/{id}/why", get(explain))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhyQuery {
    at: Option<String>,
}

/// Explain why a job runs or does not run
#[utoipa::path(get, path = "/api/v1/jobs/{id}/why", tag = "jobs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("at" = Option<String>, Query, description = "Time to explain; default: now"),
    ),
    responses((status = 200, body = WhyReport), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn explain(
    State(app): State<Arc<AppState>>,
    JobIdPath(job): JobIdPath,
    QueryParams(when): QueryParams<WhyQuery>,
) -> Result<Json<WhyReport>, ApiError> {
    let at = read("at", when.at.as_deref(), Instant::parse)?;
    let runs = if at.is_some() { RunSelection::All } else { RunSelection::Present };
    let mut loaded = job_history::load(&*app.store, &job, runs).await?;
    // A node that is alone does not store the state of its keeper.
    for node in loaded.known.nodes.iter_mut().filter(|node| node.id == app.this) {
        let keeper_problem = app.feed.keeper_problem();
        *node = Arc::new(NodeRecord { keeper_problem, ..(**node).clone() });
    }
    // A removed job can still have runs to explain.
    let has_runs = loaded.known.runs.iter().any(|run| run.job == job) || !loaded.known.spans.is_empty();
    let mistakes = mistake_lines(&app, &job);
    if loaded.known.job.is_none() && !has_runs && mistakes.is_empty() {
        return Err(Rejection::NoJob(job).into());
    }
    // Nodes that share a store use its time, also in the records they write.
    let now = if app.store.is_shared() { app.store.time().await? } else { app.clock.now() };
    let has_foreign = has_foreign_nodes(&*app.store);
    let world = DecisionContext { has_foreign, ..(app.world)() };
    let answer = why::why(&job, &loaded.known, &world, now, at);
    let mut lines: Vec<AnswerLine> = answer.words(&loaded.known, &world).into_iter().map(line).collect();
    if loaded.known.job.is_none() && !has_runs {
        // Only its file knows the job.
        lines.clear();
    }
    lines.splice(0..0, mistakes);
    if let Some(cut) = loaded.cut.filter(|cut| at.is_some_and(|at| at <= *cut)) {
        let text = format!("only the latest {} runs were checked, which begin at {cut}", job_history::RUNS_MAX);
        lines.insert(0, AnswerLine { tone: tone(Tone::Advice).to_owned(), text });
    }
    Ok(Json(WhyReport { job: job.to_string(), now, at, lines }))
}

/// The mistakes in the file of a job. The job keeps its last valid definition, if it has one.
fn mistake_lines(app: &AppState, job: &JobId) -> Vec<AnswerLine> {
    let found = JobFileMistakes::now(app).of_jobs.remove(job).unwrap_or_default();
    if found.is_empty() {
        return Vec::new();
    }
    let answer = |text: String| AnswerLine { tone: tone(Tone::Answer).to_owned(), text };
    let mut lines = vec![answer(format!("The file of `{job}` is invalid: its current content does not apply."))];
    for FileMistake { file, line, column, message, hint } in found {
        let (detail, advice) = (tone(Tone::Detail).to_owned(), tone(Tone::Advice).to_owned());
        lines.push(AnswerLine { tone: detail, text: format!("{file}:{line}:{column}: {message}") });
        lines.extend(hint.map(|text| AnswerLine { tone: advice, text }));
    }
    lines
}

/// A line of an explanation for the response.
pub(super) fn line(line: why::ExplanationLine) -> AnswerLine {
    AnswerLine { tone: tone(line.tone).to_owned(), text: line.text }
}

/// The name of a tone.
pub(super) const fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Answer => "answer",
        Tone::Detail => "detail",
        Tone::Advice => "advice",
    }
}

#[cfg(test)]
mod tests;
