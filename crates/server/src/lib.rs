//! The face of a node for programs and browsers: HTTP on a thread of its own, so that nobody who asks can hold up the
//! node. Reads go straight to the store; everything that changes something goes through the node's handle.
//!
//! In reading order: [`AppState`] is what every route knows; `guard` and `door` decide who may ask; `routes` has one file
//! per noun; `problem` is every answer that is not what was asked for; `serve` listens.

mod address;
mod app;
mod caller;
mod describe;
mod door;
mod extract;
mod feed;
mod find_node;
mod find_run;
mod glob;
mod guard;
mod keys;
mod known;
mod listen;
mod load_readable;
mod node_names;
mod openapi;
mod page;
mod private_file;
mod problem;
mod routes;
mod serve;
mod stream;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;

pub use address::AddressFile;
pub use app::{AppState, JobFilesPort, MistakeAt, WorldNow};
pub use door::Authenticator;
pub use feed::FeedBuffer;
pub use guard::AllowedHosts;
pub use listen::{BoundListener, ListenError, ListenOptions};
pub use openapi::document;
pub use serve::HttpServer;

/// Everything that can be asked, behind the guard.
pub(crate) fn router(app: Arc<AppState>, hosts: AllowedHosts) -> Router {
    let guard = Arc::new(guard::RequestGuard { app: Arc::clone(&app), hosts });
    routes::router()
        .layer(DefaultBodyLimit::max(guard::BODY_MAX))
        .layer(from_fn_with_state(guard, guard::guard))
        .with_state(app)
}
