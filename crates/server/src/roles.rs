//! What a role may request. Programs of runs have one; the token, sessions and people on the daemon's machine may
//! request everything that is not refused to them elsewhere.

use axum::http::Method;
use cronhold_api::{BASE, CallerRole, ProblemCode};

use crate::problem::ApiError;

/// Path prefix of SideJob's own interface.
pub(crate) const SIDEJOB: &str = "/sidejob/";

/// Refuses a request that needs another role than its caller has.
pub(crate) fn check(role: CallerRole, caller: &str, method: &Method, path: &str) -> Result<(), ApiError> {
    let needed = needed_role(method, path);
    if role >= needed {
        return Ok(());
    }
    let message = format!("the request needs the role `{needed}`; programs such as {caller} have `{role}`");
    let hint = format!("`cronhold up --programs {needed}` gives programs that role");
    Err(ApiError::new(ProblemCode::Forbidden, message).hint(hint))
}

/// The role that a request needs. A change that is not listed needs `admin`.
fn needed_role(method: &Method, path: &str) -> CallerRole {
    if matches!(*method, Method::GET | Method::HEAD) {
        return CallerRole::Viewer;
    }
    if path.starts_with(SIDEJOB) {
        return CallerRole::Operator;
    }
    let segments: Vec<&str> = path.strip_prefix(BASE).unwrap_or_default().split('/').skip(1).collect();
    match (method, segments.as_slice()) {
        (&Method::POST, ["jobs", _, "runs" | "triggers" | "pause" | "resume"])
        | (&Method::DELETE, ["jobs", _, "triggers", ..])
        | (&Method::POST, ["runs", _, "start" | "skip" | "stop" | "kill" | "signal" | "mark" | "rerun"])
        | (&Method::POST, ["nodes", _, "drain" | "undrain"])
        | (&Method::POST, ["task-store", _])
        | (&Method::POST, ["tasks" | "channels", ..])
        | (&Method::DELETE, ["tasks", _])
        | (&Method::POST, ["workers", _, "quiet" | "stop"])
        | (&Method::POST, ["pause" | "resume" | "reload"]) => CallerRole::Operator,
        _ => CallerRole::Admin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of the API that is not a plain read.
    #[test]
    fn every_change_needs_a_role() {
        let document = serde_json::to_value(crate::document()).expect("JSON");
        let mut shown = Vec::new();
        for (path, operations) in document["paths"].as_object().expect("paths") {
            for name in operations.as_object().expect("operations").keys() {
                let method = Method::from_bytes(name.to_uppercase().as_bytes()).expect("a method");
                let needed = needed_role(&method, path);
                assert_eq!(needed == CallerRole::Viewer, method == Method::GET, "{method} {path}");
                if needed == CallerRole::Admin {
                    shown.push(format!("{method} {path}"));
                }
            }
        }
        shown.sort();
        let admin = [
            "DELETE /api/v1/jobs/{id}",
            "POST /api/v1/control",
            "POST /api/v1/jobs/{id}/rename",
            "POST /api/v1/link",
            "POST /api/v1/queues/{queue}/classes",
            "POST /api/v1/runs",
            "POST /api/v1/session",
            "POST /api/v1/token",
            "PUT /api/v1/jobs/{id}",
        ];
        assert_eq!(shown, admin);
    }

    #[test]
    fn role_includes_those_before_it() {
        let may = |role, method, path| check(role, "run a#1", &method, path).is_ok();
        for (method, path, roles) in [
            (Method::GET, "/api/v1/jobs", [false, true, true, true]),
            (Method::HEAD, "/metrics", [false, true, true, true]),
            (Method::POST, "/api/v1/jobs/a/runs", [false, false, true, true]),
            (Method::POST, "/api/v1/runs/a%231/stop", [false, false, true, true]),
            (Method::POST, "/api/v1/runs", [false, false, false, true]),
            (Method::POST, "/api/v1/tasks", [false, false, true, true]),
            (Method::POST, "/api/v1/tasks/7/inports/in/read", [false, false, true, true]),
            (Method::POST, "/api/v1/channels/shop/orders", [false, false, true, true]),
            (Method::POST, "/api/v1/queues/core/classes", [false, false, false, true]),
            (Method::GET, "/sidejob/jobs/7", [false, true, true, true]),
            (Method::DELETE, "/sidejob/jobs/7", [false, false, true, true]),
            (Method::PUT, "/api/v1/jobs/a", [false, false, false, true]),
            (Method::POST, "/api/v1/token", [false, false, false, true]),
            (Method::DELETE, "/api/v1/runs/a/stop", [false, false, false, true]),
            (Method::POST, "/other/jobs/a/runs", [false, false, false, true]),
        ] {
            assert_eq!(CallerRole::ALL.map(|role| may(role, method.clone(), path)), roles, "{method} {path}");
        }
    }
}
