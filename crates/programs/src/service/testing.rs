//! Requests and runs for tests.

use std::collections::BTreeMap;

use cronhold_core::State;
use cronhold_core::record::{ResolvedHttp, ResolvedProgram, ResolvedRequest, Run};
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
