//! Tasks of remote services: what the responses of a service mean. A run starts a task and polls it; the JSON response to
//! the start identifies the task, and is stored with the run before the first poll.

use std::collections::BTreeMap;

use cronhold_schedule::TextError;
use serde_json::Value;

use crate::record::{RequestBody, ResolvedHeader, ResolvedRemote, ResolvedRequest, Run, ServiceState};
use crate::template::{Bindings, BoundValue, Expression, Template};

/// The largest response that identifies a task, in bytes. It is stored with the run.
pub const TASK_MAX: usize = 16 * 1024;

/// What the response to a poll means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteVerdict {
    /// The task goes on.
    Pending,
    Succeeded,
    Failed,
}

/// The names of a run in templates, beside the zones and calendars of `world`.
pub fn run_bindings(run: &Run, world: Bindings) -> Bindings {
    let own = world
        .with("run_id", run.id.to_string())
        .with("job", run.job.as_str())
        .with("nominal_time", run.nominal.to_string())
        .with("attempt", run.attempt);
    run.args.iter().fold(own, |bindings, (name, value)| bindings.with(name, value))
}

/// Resolves the requests about a task once it has started. `names` are those of the run.
pub fn bind_task(remote: &ResolvedRemote, task: &str, names: Bindings) -> Result<ServiceState, TextError> {
    let names = names.with("task", parse_response("start", task)?);
    Ok(ServiceState {
        task: Some(task.to_owned()),
        poll: Some(bind_texts(&remote.poll, &names)?),
        cancel: remote.cancel.as_ref().map(|cancel| bind_texts(cancel, &names)).transpose()?,
        response: None,
        progress: None,
    })
}

/// Decides about a task by the response to a poll. `names` are those of the run.
pub fn judge_answer(
    remote: &ResolvedRemote,
    task: &str,
    answer: &str,
    names: Bindings,
) -> Result<RemoteVerdict, TextError> {
    let names = names.with("task", parse_response("start", task)?).with("answer", parse_response("poll", answer)?);
    // A task that has failed has not succeeded, whatever else its service says.
    if Expression::parse(&remote.failure)?.eval(&names)? {
        return Ok(RemoteVerdict::Failed);
    }
    let is_over = Expression::parse(&remote.success)?.eval(&names)?;
    Ok(if is_over { RemoteVerdict::Succeeded } else { RemoteVerdict::Pending })
}

/// Checks the response to `start`: it is JSON, and short enough to be stored.
pub fn check_task(task: &str) -> Result<(), TextError> {
    if task.len() > TASK_MAX {
        let message = format!("the response to `start` has {} bytes; at most {TASK_MAX} can be kept", task.len());
        return Err(TextError::new(0..0, message));
    }
    parse_response("start", task).map(drop)
}

fn parse_response(request: &str, text: &str) -> Result<BoundValue, TextError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| TextError::new(0..0, format!("the response to `{request}` is not JSON: {error}")))?;
    Ok(BoundValue::of_json(value))
}

/// Resolves a request whose texts are templates.
fn bind_texts(request: &ResolvedRequest, names: &Bindings) -> Result<ResolvedRequest, TextError> {
    let bind = |text: &str| Template::parse(text)?.bind(names);
    let header = |(name, value): (&String, &ResolvedHeader)| {
        let value = match value {
            ResolvedHeader::Text(text) => ResolvedHeader::Text(bind(text)?),
            secret @ ResolvedHeader::Secret { .. } => secret.clone(),
        };
        Ok((name.clone(), value))
    };
    let body = match &request.body {
        Some(RequestBody::Text(text)) => Some(RequestBody::Text(bind(text)?)),
        Some(RequestBody::File(path)) => Some(RequestBody::File(bind(path)?)),
        None => None,
    };
    let headers = request.headers.iter().map(header).collect::<Result<BTreeMap<_, _>, TextError>>()?;
    let bound = ResolvedRequest { url: bind(&request.url)?, headers, body, ..request.clone() };
    bound.check().map(|()| bound)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_schedule::calendar::CalendarSet;
    use cronhold_schedule::{Span, ZoneRegistry};

    use super::*;

    fn request(url: &str) -> ResolvedRequest {
        ResolvedRequest {
            url: url.to_owned(),
            method: "GET".to_owned(),
            headers: BTreeMap::from([("X-Task".to_owned(), ResolvedHeader::Text("{{ task.id }}".to_owned()))]),
            body: Some(RequestBody::Text("{{ task.tags | join('+') }}, {{ region }}".to_owned())),
            expect: vec![(200, 299)],
            body_matches: None,
            redirects: 10,
            timeout: Span::from_secs(60),
            ca_file: None,
            insecure: false,
        }
    }

    fn remote() -> ResolvedRemote {
        ResolvedRemote {
            start: request("http://a.example/tasks"),
            poll: request("http://a.example/tasks/{{ task.id }}?region={{ region }}"),
            cancel: None,
            every: Span::from_secs(10),
            success: "answer.state == 'DONE'".to_owned(),
            failure: "answer.state in ['FAILED', 'LOST'] or answer.for == task.id".to_owned(),
            is_repeatable: false,
        }
    }

    fn names() -> Bindings {
        Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(CalendarSet::new())).with("region", "eu")
    }

    #[test]
    fn requests_about_a_task_use_the_response_to_its_start() {
        let state = bind_task(&remote(), r#"{"id": 7, "tags": ["a", "b"]}"#, names()).expect("it is JSON");
        let poll = state.poll.expect("it is bound");
        assert_eq!(poll.url, "http://a.example/tasks/7?region=eu");
        assert_eq!(poll.headers["X-Task"], ResolvedHeader::Text("7".to_owned()));
        assert_eq!(poll.body, Some(RequestBody::Text("a+b, eu".to_owned())));
        for (task, expected) in [
            ("no JSON", "the response to `start` is not JSON"),
            (r#"{"tags": []}"#, "`task.id` is not defined"),
            (r#"{"id": "a b", "tags": []}"#, "contains"),
        ] {
            let error = bind_task(&remote(), task, names()).expect_err(task).to_string();
            assert!(error.contains(expected), "{task}: {error}");
        }
    }

    #[test]
    fn answer_decides_about_the_task() {
        let task = r#"{"id": "t1"}"#;
        for (answer, expected) in [
            (r#"{"state": "DONE", "for": ""}"#, Ok(RemoteVerdict::Succeeded)),
            (r#"{"state": "RUNNING", "for": ""}"#, Ok(RemoteVerdict::Pending)),
            (r#"{"state": "LOST", "for": ""}"#, Ok(RemoteVerdict::Failed)),
            // Both hold.
            (r#"{"state": "DONE", "for": "t1"}"#, Ok(RemoteVerdict::Failed)),
            ("", Err("the response to `poll` is not JSON")),
            (r#"{"status": "DONE"}"#, Err("is not defined")),
        ] {
            let found = judge_answer(&remote(), task, answer, names()).map_err(|error| error.to_string());
            match (found, expected) {
                (Err(error), Err(part)) => assert!(error.contains(part), "{answer}: {error}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{answer}"),
            }
        }
    }

    #[test]
    fn response_that_is_stored_is_bounded() {
        assert_eq!(check_task("\"t1\""), Ok(()));
        assert!(check_task("t1").is_err());
        let long = format!("\"{}\"", "x".repeat(TASK_MAX));
        assert!(check_task(&long).is_err_and(|error| error.to_string().contains("16386 bytes")));
    }
}
