//! What the response to a request means for the run.

use cronhold_core::command::ExitOutcome;
use cronhold_core::job::BodyPattern;
use cronhold_core::record::{ResolvedRequest, ResponseSummary};
use cronhold_core::run::Reason;
use cronhold_schedule::text::shortened;

use crate::http::{HttpError, HttpReply};

/// Headers that are not kept, because they hold credentials.
const SECRET_HEADERS: [&str; 2] = ["set-cookie", "authorization"];

/// The outcome of a run whose program is one request.
///
/// The run fails if the service said no: with another status than expected, or another body. If there was no complete
/// response, or the request could not be built, the run ends in error.
pub(super) fn judge(request: &ResolvedRequest, result: &Result<HttpReply, HttpError>) -> ExitOutcome {
    let reply = match result {
        Ok(reply) => reply,
        Err(HttpError::Invalid(message)) => return broken(Reason::NotLaunched(message.clone())),
        Err(HttpError::NoResponse(message)) => return broken(Reason::NoResponse(message.clone())),
        Err(HttpError::Cancelled) => return broken(Reason::NoResponse(HttpError::Cancelled.to_string())),
    };
    let reason = refusal(request, reply);
    let response = Some(Box::new(summary(reply)));
    ExitOutcome { success: reason.is_none(), reason, response, ..ExitOutcome::SUCCESS }
}

/// Why a response is not the expected one; `None` if it is.
pub(super) fn refusal(request: &ResolvedRequest, reply: &HttpReply) -> Option<Reason> {
    if !request.expects(reply.status) {
        return Some(Reason::Status(reply.status));
    }
    let pattern = request.body_matches.as_ref()?;
    let is_match =
        BodyPattern::parse(pattern).is_ok_and(|pattern| pattern.is_match(&String::from_utf8_lossy(&reply.body)));
    (!is_match).then(|| Reason::UnexpectedResponse(format!("the body does not match `{}`", shortened(pattern))))
}

/// What the run keeps of a response beside its body.
pub(super) fn summary(reply: &HttpReply) -> ResponseSummary {
    let is_kept = |(name, _): &&(String, String)| !SECRET_HEADERS.contains(&name.as_str());
    let cut = |value: &str| match value.char_indices().nth(ResponseSummary::VALUE_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    };
    let headers = reply.headers.iter().filter(is_kept).take(ResponseSummary::HEADERS_MAX);
    ResponseSummary {
        status: reply.status,
        headers: headers.map(|(name, value)| (name.clone(), cut(value))).collect(),
        redirects: reply.redirects,
    }
}

pub(super) fn broken(reason: Reason) -> ExitOutcome {
    ExitOutcome { success: false, reason: Some(reason), ..ExitOutcome::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::super::testing::request;
    use super::*;

    fn reply(status: u16, body: &str) -> HttpReply {
        let header = |name: &str, value: String| (name.to_owned(), value);
        let headers = vec![
            header("content-type", "text/plain".to_owned()),
            header("set-cookie", "session=secret".to_owned()),
            header("x-long", "x".repeat(300)),
        ];
        HttpReply { status, headers, redirects: 2, body: body.into(), length: body.len() as u64 }
    }

    #[test]
    fn response_decides_about_success_failure_and_error() {
        let mut request = request();
        request.expect = vec![(200, 299), (404, 404)];
        request.body_matches = Some("^rea.y".to_owned());
        for (result, expected) in [
            (Ok(reply(200, "ready")), "success"),
            (Ok(reply(404, "really")), "success"),
            (Ok(reply(500, "ready")), "status 500"),
            (Ok(reply(302, "ready")), "status 302"),
            (Ok(reply(200, "not ready")), "unexpected response: the body does not match `^rea.y`"),
            (Err(HttpError::NoResponse("http://a: refused".to_owned())), "no response: http://a: refused"),
            (Err(HttpError::Invalid("no file".to_owned())), "not launched: no file"),
        ] {
            let outcome = judge(&request, &result);
            let shown = outcome.reason.as_ref().map_or_else(|| "success".to_owned(), ToString::to_string);
            assert_eq!((shown.as_str(), outcome.success), (expected, expected == "success"));
            assert_eq!(outcome.response.is_some(), result.is_ok());
        }
    }

    #[test]
    fn summary_of_a_response_is_bounded_and_without_cookies() {
        let mut reply = reply(200, "");
        reply.headers.extend((0..100).map(|number| (format!("x-{number}"), String::new())));
        let summary = summary(&reply);
        assert_eq!((summary.status, summary.redirects, summary.headers.len()), (200, 2, 32));
        let names: Vec<&str> = summary.headers.iter().take(3).map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-long", "x-0"]);
        assert_eq!(summary.headers[1].1.chars().count(), ResponseSummary::VALUE_MAX + 1);
    }
}
