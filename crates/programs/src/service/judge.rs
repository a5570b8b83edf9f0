//! What the response to a request means for the run.

use cronhold_core::command::ExitOutcome;
use cronhold_core::job::BodyPattern;
use cronhold_core::record::{ResolvedProgram, ResolvedRequest, ResponseSummary, Run};
use cronhold_core::remote::{self, RemoteVerdict};
use cronhold_core::run::Reason;
use cronhold_core::template::Bindings;
use cronhold_schedule::text::shortened;

use super::table::{RequestKind, RequestTask};
use crate::http::{HttpError, HttpReply};

/// Headers that are not kept, because they hold credentials.
const SECRET_HEADERS: [&str; 2] = ["set-cookie", "authorization"];

/// What the result of a request means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Judgement {
    /// The run ends, with the response as its output.
    Final(ExitOutcome),
    /// The service has started a task, which this JSON text identifies.
    TaskStarted(String),
    /// The task goes on.
    Pending,
    /// The service did not answer a poll. It is tried again.
    Unanswered,
    /// The service refused a poll, or its answer is of no use. If that goes on, the run ends with this outcome.
    Refused(ExitOutcome),
    /// The request to cancel the task has ended.
    Cancelled { is_accepted: bool },
}

/// Decides by the result of a request. `names` are the zones for expressions.
pub(super) fn judge(task: &RequestTask, result: &Result<HttpReply, HttpError>, names: &Bindings) -> Judgement {
    let RequestTask { run, kind, request, .. } = task;
    match (kind, result) {
        (RequestKind::Program, result) => Judgement::Final(outcome_of(request, result)),
        (RequestKind::Start, result) => started(request, result),
        (RequestKind::Cancel, Ok(reply)) => Judgement::Cancelled { is_accepted: request.expects(reply.status) },
        (RequestKind::Cancel, Err(_)) => Judgement::Cancelled { is_accepted: false },
        (RequestKind::Poll, Ok(reply)) => polled(run, request, reply, names),
        // A secret may be written anew, and a server may come back.
        (RequestKind::Poll, Err(_)) => Judgement::Unanswered,
    }
}

/// What the response to `start` means.
fn started(request: &ResolvedRequest, result: &Result<HttpReply, HttpError>) -> Judgement {
    let outcome = outcome_of(request, result);
    let Some(reply) = result.as_ref().ok().filter(|_| outcome.success) else { return Judgement::Final(outcome) };
    let text = String::from_utf8_lossy(&reply.body);
    match remote::check_task(text.trim()) {
        Ok(()) => Judgement::TaskStarted(text.trim().to_owned()),
        Err(error) => Judgement::Final(unexpected(reply, error.to_string())),
    }
}

/// What the response to `poll` means.
fn polled(run: &Run, request: &ResolvedRequest, reply: &HttpReply, names: &Bindings) -> Judgement {
    match refusal(request, reply) {
        // The service is busy or broken.
        Some(Reason::Status(408 | 425 | 429 | 500..)) => return Judgement::Unanswered,
        Some(reason) => return Judgement::Refused(ended(reply, Some(reason))),
        None => {}
    }
    let (Some(ResolvedProgram::Remote(remote)), Some(task)) = (&run.work, run.remote_task()) else {
        return Judgement::Unanswered;
    };
    let answer = String::from_utf8_lossy(&reply.body);
    let names = remote::run_bindings(run, names.clone());
    match remote::judge_answer(remote, task, &answer, names) {
        Ok(RemoteVerdict::Pending) => Judgement::Pending,
        Ok(RemoteVerdict::Succeeded) => Judgement::Final(ended(reply, None)),
        Ok(RemoteVerdict::Failed) => {
            let said = shortened(answer.trim()).replace('\n', " ");
            Judgement::Final(ended(reply, Some(Reason::Said(said))))
        }
        Err(error) => Judgement::Refused(unexpected(reply, error.to_string())),
    }
}

/// The outcome of a run whose program is one request.
///
/// The run fails if the service said no: with another status than expected, or another body. If there was no complete
/// response, or the request could not be built, the run ends in error.
fn outcome_of(request: &ResolvedRequest, result: &Result<HttpReply, HttpError>) -> ExitOutcome {
    match result {
        Ok(reply) => ended(reply, refusal(request, reply)),
        Err(HttpError::Invalid(message)) => broken(Reason::NotLaunched(message.clone())),
        Err(HttpError::NoResponse(message)) => broken(Reason::NoResponse(message.clone())),
        Err(HttpError::Cancelled) => broken(Reason::NoResponse(HttpError::Cancelled.to_string())),
    }
}

fn ended(reply: &HttpReply, reason: Option<Reason>) -> ExitOutcome {
    let response = Some(Box::new(summary(reply)));
    ExitOutcome { success: reason.is_none(), reason, response, ..ExitOutcome::SUCCESS }
}

fn unexpected(reply: &HttpReply, what: String) -> ExitOutcome {
    ended(reply, Some(Reason::UnexpectedResponse(what)))
}

/// Why a response is not the expected one; `None` if it is.
pub(crate) fn refusal(request: &ResolvedRequest, reply: &HttpReply) -> Option<Reason> {
    if !request.expects(reply.status) {
        return Some(Reason::Status(reply.status));
    }
    let pattern = request.body_matches.as_ref()?;
    let is_match =
        BodyPattern::parse(pattern).is_ok_and(|pattern| pattern.is_match(&String::from_utf8_lossy(&reply.body)));
    (!is_match).then(|| Reason::UnexpectedResponse(format!("the body does not match `{}`", shortened(pattern))))
}

/// What the run keeps of a response beside its body.
fn summary(reply: &HttpReply) -> ResponseSummary {
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
    use std::sync::Arc;

    use cronhold_core::State;
    use cronhold_schedule::ZoneRegistry;
    use cronhold_schedule::calendar::CalendarSet;

    use super::super::testing::{remote_run, request};
    use super::*;
    use crate::http::CancelToken;

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
            (Ok(reply(404, "ready")), "success"),
            (Ok(reply(500, "ready")), "status 500"),
            (Ok(reply(302, "ready")), "status 302"),
            (Ok(reply(200, "not ready")), "unexpected response: the body does not match `^rea.y`"),
            (Err(HttpError::NoResponse("http://a: refused".to_owned())), "no response: http://a: refused"),
            (Err(HttpError::Invalid("no file".to_owned())), "not launched: no file"),
        ] {
            let outcome = outcome_of(&request, &result);
            let shown = outcome.reason.as_ref().map_or_else(|| "success".to_owned(), ToString::to_string);
            assert_eq!((shown.as_str(), outcome.success), (expected, expected == "success"));
            assert_eq!(outcome.response.is_some(), result.is_ok());
        }
    }

    /// A request about the task of a run, and what a reply to it means.
    fn remote_judgement(kind: RequestKind, status: u16, body: &str) -> String {
        let run = Arc::new(remote_run(false, State::Running, Some(r#"{"id": 7}"#)));
        let task = RequestTask { run, kind, request: request(), token: CancelToken::default() };
        let zones = Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(CalendarSet::new()));
        match judge(&task, &Ok(reply(status, body)), &zones) {
            Judgement::Final(outcome) => {
                format!("final: {}", outcome.reason.map_or_else(|| "success".to_owned(), |reason| reason.to_string()))
            }
            Judgement::Refused(outcome) => format!("refused: {}", outcome.reason.expect("a reason")),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn responses_about_a_task_decide_how_it_goes_on() {
        use RequestKind::{Cancel, Poll, Start};
        for (kind, status, body, expected) in [
            (Start, 200, " {\"id\": 7}\n", "TaskStarted(\"{\\\"id\\\": 7}\")"),
            (Start, 503, "", "final: status 503"),
            (Start, 200, "seven", "final: unexpected response: the response to `start` is not JSON"),
            (Poll, 200, r#"{"state": "RUNNING"}"#, "Pending"),
            (Poll, 200, r#"{"state": "DONE"}"#, "final: success"),
            (Poll, 200, r#"{"state": "FAILED"}"#, r#"final: said: {"state": "FAILED"}"#),
            (Poll, 200, "{}", "refused: unexpected response: "),
            (Poll, 404, "", "refused: status 404"),
            (Poll, 429, "", "Unanswered"),
            (Poll, 502, "", "Unanswered"),
            (Cancel, 200, "", "Cancelled { is_accepted: true }"),
            (Cancel, 500, "", "Cancelled { is_accepted: false }"),
        ] {
            let found = remote_judgement(kind, status, body);
            assert!(found.starts_with(expected), "{kind:?} {status} {body}: {found}");
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
