//! The OpenAPI 3.1 document. This module lists every path once; the attributes and doc comments of the handlers
//! describe them.

use cronhold_api::Problem;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Required, Schema};
use utoipa::{Modify, OpenApi};

use crate::routes::{
    ad_hoc_runs, backfill, chain, channels, coming, control, entry, feed, health, holes, job_put, job_remove,
    job_rename, jobs, metrics, next, nodes, outputs, pauses, peers, pools, queues, reload, run_operations, runs,
    sidejob, task_store, tasks, triggers, why,
};

/// The OpenAPI document.
#[derive(Debug, OpenApi)]
#[openapi(
    info(title = "Cronhold", description = "HTTP API of the job scheduler Cronhold", version = "1"),
    security(("token" = [])),
    modifiers(&TokenSecurity, &UniqueOperationIds, &ProblemResponses, &OptionalBodies),
    paths(
        jobs::list, jobs::show, job_put::put, job_remove::remove, job_rename::rename,
        pauses::pause, pauses::resume, pauses::pause_all, pauses::resume_all,
        next::next, coming::coming, why::explain, backfill::backfill, holes::find_holes,
        runs::list, runs::show, runs::create, ad_hoc_runs::create, outputs::output,
        run_operations::start, run_operations::skip, run_operations::stop, run_operations::kill,
        run_operations::signal, run_operations::mark, run_operations::rerun, chain::chain,
        triggers::create, triggers::list, triggers::clear, triggers::remove,
        task_store::call,
        tasks::show::list, tasks::create::create, tasks::show::show, tasks::change::delete,
        tasks::family::children, tasks::family::tree, tasks::change::run, tasks::change::terminate,
        tasks::family::adopt, tasks::family::disown, tasks::change::aliases, tasks::change::state,
        tasks::ports::replace, tasks::ports::connect,
        tasks::ports::show_in, tasks::ports::change_in, tasks::ports::read_in,
        tasks::ports::show_out, tasks::ports::change_out, tasks::ports::read_out,
        channels::list, channels::publish, channels::tail,
        sidejob::version, sidejob::publish, sidejob::log, sidejob::jobs::create, sidejob::jobs::show,
        sidejob::jobs::delete, sidejob::jobs::state, sidejob::jobs::ports, sidejob::jobs::run, sidejob::jobs::terminate,
        sidejob::jobs::adopt, sidejob::jobs::disown, sidejob::ports::read, sidejob::ports::entries, sidejob::ports::write,
        queues::queues, queues::register, queues::workers, queues::quiet, queues::stop,
        feed::feed,
        nodes::list, nodes::drain, nodes::undrain, peers::runs, pools::list, reload::reload, control::control,
        entry::link, entry::session, entry::token,
        health::health, health::ready, metrics::metrics,
    )
)]
struct OpenApiDocument;

/// Adds the security scheme: a bearer token.
struct TokenSecurity;

impl Modify for TokenSecurity {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        document.components.get_or_insert_default().add_security_scheme("token", bearer);
    }
}

/// Derives unique operation ids from methods and paths, because handlers in different modules can have the same name.
struct UniqueOperationIds;

impl Modify for UniqueOperationIds {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (path, method, operation) in operations(document) {
            let parts = path.trim_start_matches(cronhold_api::BASE).split(['/', '{', '}']);
            let parts = std::iter::once(method).chain(parts.filter(|part| !part.is_empty()));
            operation.operation_id = Some(parts.collect::<Vec<_>>().join("_"));
        }
    }
}

/// Sets the media type of problems, and a description for every response that has none.
struct ProblemResponses;

impl Modify for ProblemResponses {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (_, _, operation) in operations(document) {
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else { continue };
                if response.description.is_empty() {
                    response.description = if status.starts_with('2') { "Success" } else { "Error" }.to_owned();
                }
                let is_problem = matches!(response.content.get("application/json"),
                    Some(RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }))
                        if schema.ref_location.ends_with("/Problem"));
                if is_problem && let Some(content) = response.content.shift_remove("application/json") {
                    response.content.insert(Problem::MEDIA_TYPE.to_owned(), content);
                }
            }
        }
    }
}

/// Marks a request body as optional if all of its keys are: an empty body is read as `{}`.
struct OptionalBodies;

impl Modify for OptionalBodies {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.iter().flat_map(|components| &components.schemas);
        let all_optional = schemas.filter_map(|(name, schema)| match schema {
            RefOr::T(Schema::Object(object)) if object.required.is_empty() => Some(format!("/{name}")),
            _ => None,
        });
        let all_optional: Vec<String> = all_optional.collect();
        for (_, _, operation) in operations(document) {
            let Some(RefOr::T(body)) = &mut operation.request_body else { continue };
            let is_optional = matches!(body.content.get("application/json"),
                Some(RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }))
                    if all_optional.iter().any(|name| schema.ref_location.ends_with(name)));
            if is_optional {
                body.required = Some(Required::False);
            }
        }
    }
}

/// All operations with their path and method.
fn operations(document: &mut utoipa::openapi::OpenApi) -> impl Iterator<Item = (&str, &'static str, &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let methods =
            [("get", &mut item.get), ("put", &mut item.put), ("post", &mut item.post), ("delete", &mut item.delete)];
        methods.into_iter().filter_map(|(method, operation)| Some((path.as_str(), method, operation.as_mut()?)))
    })
}

/// The OpenAPI document of the API.
pub fn document() -> utoipa::openapi::OpenApi {
    OpenApiDocument::openapi()
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_document_is_up_to_date() {
        let committed = include_str!("../../../docs/reference/openapi.json");
        let now = serde_json::to_string_pretty(&super::document()).expect("a JSON document");
        assert!(committed.trim_end() == now, "docs/reference/openapi.json is outdated; run `./dev docs`");
    }
}
