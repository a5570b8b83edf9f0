//! The HTTP server of a node, for programs and browsers. It has its own thread, so that requests cannot delay the node.
//! Queries read from the store; every change is a command to the node.
//!
//! In reading order: [`AppState`] is the state that all routes share; `guard` and `auth` authenticate requests;
//! `routes` has one file per resource; `problem` maps errors to responses; `serve` accepts connections.

mod address;
mod app;
mod auth;
mod caller;
mod connections;
mod describe;
mod extract;
mod feed;
mod find_node;
mod find_run;
mod glob;
mod guard;
mod job_history;
mod keys;
mod listen;
mod local;
mod node_names;
mod openapi;
mod page;
mod private_file;
mod problem;
mod roles;
mod routes;
mod serve;
mod stream;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response_with_state};

pub use address::AddressFile;
pub use app::{AppState, JobFilesPort, MistakeAt, ProgramAccess, WorldNow};
pub use auth::Authenticator;
pub use feed::FeedBuffer;
pub use guard::AllowedHosts;
pub use listen::{BoundListener, ListenError, ListenOptions};
pub use local::LocalListener;
pub use openapi::document;
pub use serve::HttpServer;

/// All routes, behind the guard.
pub(crate) fn router(app: Arc<AppState>, hosts: AllowedHosts) -> Router {
    let guard = Arc::new(guard::RequestGuard { app: Arc::clone(&app), hosts });
    routes::router()
        .layer(DefaultBodyLimit::max(guard::BODY_MAX))
        .layer(map_response_with_state(Arc::clone(&app), problem::report_damage))
        .layer(from_fn_with_state(guard, guard::guard))
        .with_state(app)
}
