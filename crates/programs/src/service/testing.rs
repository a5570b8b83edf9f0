//! Requests and runs for tests.

use std::collections::BTreeMap;

use cronhold_core::State;
use cronhold_core::record::{ResolvedHttp, ResolvedProgram, ResolvedRemote, ResolvedRequest, Run, ServiceState};
use cronhold_schedule::Span;

use crate::testing::run_of;

/// A `GET` with all defaults.
pub(super) fn request() -> ResolvedRequest {
    ResolvedRequest {
        url: "http://a.example/".to_owned(),
        method: "GET".to_owned(),
        headers: BTreeMap::new(),
        body: None,
        expect: vec![(200, 299)],
        body_matches: None,
        redirects: 10,
        timeout: Span::from_secs(60),
        ca_file: None,
        insecure: false,
    }
}

/// A run with the program `http`, in a state.
pub(super) fn http_run(is_repeatable: bool, state: State) -> Run {
    let http = ResolvedHttp { request: request(), is_repeatable };
    run_of(ResolvedProgram::Http(Box::new(http)), &[(state, 100)])
}

/// A run with the program `remote`, polled every 10 seconds, in a state; with a task if it has started.
pub(super) fn remote_run(is_repeatable: bool, state: State, task: Option<&str>) -> Run {
    let with_url = |path: &str| ResolvedRequest { url: format!("http://a.example/{path}"), ..request() };
    let remote = ResolvedRemote {
        start: with_url("start"),
        poll: with_url("poll"),
        cancel: Some(with_url("cancel")),
        every: Span::from_secs(10),
        success: "answer.state == 'DONE'".to_owned(),
        failure: "answer.state == 'FAILED'".to_owned(),
        is_repeatable,
    };
    let mut run = run_of(ResolvedProgram::Remote(Box::new(remote)), &[(state, 100)]);
    run.service = task.map(|task| {
        let (poll, cancel) = (Some(with_url("poll")), Some(with_url("cancel")));
        Box::new(ServiceState { task: Some(task.to_owned()), poll, cancel, response: None, progress: None })
    });
    run
}
