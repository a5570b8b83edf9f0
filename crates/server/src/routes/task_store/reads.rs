//! Methods of the task store that change nothing.

use axum::response::Response;
use cronhold_api::{
    ChannelPageBody, FindTaskBody, PortItemsBody, TaskChildBody, TaskChildrenBody, TaskPageBody, TaskQueueBody,
    TaskWindowBody,
};
use cronhold_core::task::JsonText;
use cronhold_store::tasks::TaskStore;

use super::reply;

pub(super) async fn find(store: &dyn TaskStore, body: FindTaskBody) -> Response {
    reply(store.find(&body.key).await)
}

pub(super) async fn window(store: &dyn TaskStore, body: TaskWindowBody) -> Response {
    reply(store.window(body.task, &body.limits).await)
}

pub(super) async fn items(store: &dyn TaskStore, body: PortItemsBody) -> Response {
    reply(store.items(&body.port, body.from, &body.limits).await)
}

pub(super) async fn child(store: &dyn TaskStore, body: TaskChildBody) -> Response {
    reply(store.child(body.task, &body.name).await)
}

pub(super) async fn children(store: &dyn TaskStore, body: TaskChildrenBody) -> Response {
    reply(store.children(body.task, body.after.as_ref(), body.limit).await)
}

pub(super) async fn page(store: &dyn TaskStore, body: TaskPageBody) -> Response {
    reply(store.page(&body.query, body.limit).await)
}

/// Each class with the text of its configuration.
pub(super) async fn classes(store: &dyn TaskStore, body: TaskQueueBody) -> Response {
    let classes = store.classes(&body.queue).await;
    reply(classes.map(|classes| -> Vec<(_, JsonText)> {
        classes.into_iter().map(|(class, config)| (class, config.text)).collect()
    }))
}

pub(super) async fn channels(store: &dyn TaskStore, body: ChannelPageBody) -> Response {
    reply(store.channels(body.after.as_ref(), body.limit).await)
}
