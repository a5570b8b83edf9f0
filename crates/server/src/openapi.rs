//! The document that describes the API to programs (OpenAPI 3.1). Every path is listed here once; what it says of each
//! stands at the handlers.

use cronhold_api::Problem;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Required, Schema};
use utoipa::{Modify, OpenApi};

use crate::routes::{
    backfill, control, entry, feed, health, holes, job_put, job_remove, jobs, metrics, next, nodes, outputs, pauses,
    peers, reload, run_operations, runs, why,
};

/// The description of the API.
#[derive(Debug, OpenApi)]
#[openapi(
    info(title = "Cronhold", description = "Jobs, their runs, and why they did or did not happen", version = "1"),
    security(("token" = [])),
    modifiers(&TokenSecurity, &UniqueOperationIds, &ProblemResponses, &OptionalBodies),
    paths(
        jobs::list, jobs::show, job_put::put, job_remove::remove,
        pauses::pause, pauses::resume, pauses::pause_all, pauses::resume_all,
        next::next, why::ask, backfill::backfill, holes::ask,
        runs::list, runs::show, runs::make, outputs::output,
        run_operations::start, run_operations::skip, run_operations::stop, run_operations::kill,
        run_operations::signal, run_operations::mark, run_operations::rerun,
        feed::feed,
        nodes::list, nodes::drain, nodes::undrain, peers::runs, reload::reload, control::control,
        entry::link, entry::enter, entry::token,
        health::health, health::ready, metrics::metrics,
    )
)]
struct OpenApiDocument;

/// Who may ask.
struct TokenSecurity;

impl Modify for TokenSecurity {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        document.components.get_or_insert_default().add_security_scheme("token", bearer);
    }
}

/// Names of operations that are unique: functions of different nouns may be called the same.
struct UniqueOperationIds;

impl Modify for UniqueOperationIds {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (path, way, operation) in operations(document) {
            let words = path.trim_start_matches(cronhold_api::BASE).split(['/', '{', '}']);
            let words = std::iter::once(way).chain(words.filter(|word| !word.is_empty()));
            operation.operation_id = Some(words.collect::<Vec<_>>().join("_"));
        }
    }
}

/// Problems have a media type of their own, and every answer has a description.
struct ProblemResponses;

impl Modify for ProblemResponses {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for (_, _, operation) in operations(document) {
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else { continue };
                if response.description.is_empty() {
                    response.description =
                        if status.starts_with('2') { "Done" } else { "Not done, and why" }.to_owned();
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

/// An empty body stands for one without keys, and is good where no key is needed.
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

/// Every operation with its path and the way in which it is asked for.
fn operations(document: &mut utoipa::openapi::OpenApi) -> impl Iterator<Item = (&str, &'static str, &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let ways =
            [("get", &mut item.get), ("put", &mut item.put), ("post", &mut item.post), ("delete", &mut item.delete)];
        ways.into_iter().filter_map(|(way, operation)| Some((path.as_str(), way, operation.as_mut()?)))
    })
}

/// The description of the API.
pub fn document() -> utoipa::openapi::OpenApi {
    OpenApiDocument::openapi()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_document_is_current() {
        let committed = include_str!("../../../docs/reference/openapi.json");
        let now = serde_json::to_string_pretty(&super::document()).expect("a document");
        assert!(committed.trim_end() == now, "docs/reference/openapi.json is old; run `./dev docs`");
    }
}
