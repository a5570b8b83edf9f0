//! The output of a run as bytes: all of it, a range, or as a stream until the run ends.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cronhold_api::{Problem, ProblemCode};
use cronhold_core::RunId;
use cronhold_core::record::Run;
use cronhold_store::Store;
use serde::Deserialize;
use tokio::time::sleep;

use crate::AppState;
use crate::extract::{PathSegment, QueryParams};
use crate::feed::FeedReader;
use crate::find_run::{JobRunChoice, find_listed_run, load_run};
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Number of bytes that are read and sent at once.
const PIECE_MAX: usize = 256 * 1024;
/// Maximum delay between two reads of an output that a client follows.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Delay before the next read after the store failed.
const FAULT_WAIT: Duration = Duration::from_secs(1);
/// Header with the run id. A job id in the path can refer to another run later.
const RUN: HeaderName = HeaderName::from_static("x-cronhold-run");
/// Header with the state of the output: `whole`, `live` while the run can write more, `cut` if the middle was dropped,
/// or `gone` if the output is no longer kept.
const OUTPUT: HeaderName = HeaderName::from_static("x-cronhold-output");

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/runs/{run}/output", get(output))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    from: Option<u64>,
    #[serde(default)]
    follow: bool,
}

/// Get the output of a run
#[utoipa::path(get, path = "/api/v1/runs/{run}/output", tag = "runs",
    params(
        ("run" = String, Path,
            description = "Run id, `job#number`, or a job id for its running run, else the last one that started"),
        ("from" = Option<u64>, Query, format = "uint64",
            description = "Offset of the first byte; default: 0; the response is empty if the output is shorter"),
        ("follow" = Option<bool>, Query,
            description = "Whether to stream new output until the run has ended; default: false"),
        ("Range" = Option<String>, Header,
            description = "One range of bytes; ignored together with `from` or `follow`"),
    ),
    responses(
        (status = 200, content_type = "application/octet-stream", body = String, headers(
            ("X-Cronhold-Run" = String, description = "Run id"),
            ("X-Cronhold-Output" = String,
                description = "`whole`, `live` while the run can write more, `cut` if the middle was dropped, or \
                    `gone` if the output is no longer kept"))),
        (status = 206, description = "The requested range", content_type = "application/octet-stream", body = String),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn output(
    State(app): State<Arc<AppState>>,
    PathSegment(name): PathSegment,
    QueryParams(which): QueryParams<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run = find_listed_run(&*app.store, &name, JobRunChoice::Current).await?.to_run();
    if which.follow {
        return Ok(follow(&app, &run, which.from.unwrap_or(0)));
    }
    let length = app.store.read(run.id, 0, 0).await?.length;
    let range = headers.get(header::RANGE).filter(|_| which.from.is_none());
    let range = range.and_then(|range| range.to_str().ok());
    let part = match range.map_or(RangeRequest::All, RangeRequest::parse) {
        RangeRequest::All => ByteRange { from: which.from.unwrap_or(0).min(length), until: length, is_range: false },
        requested => match requested.within(length) {
            Some((from, until)) => ByteRange { from, until, is_range: true },
            None => return Ok(not_satisfiable(length)),
        },
    };
    Ok(part.response(&app, &run, length))
}

/// A part of an output; `until` is the offset after the last byte.
#[derive(Debug, Clone, Copy)]
struct ByteRange {
    from: u64,
    until: u64,
    is_range: bool,
}

impl ByteRange {
    fn response(self, app: &AppState, run: &Run, length: u64) -> Response {
        let Self { from, until, is_range } = self;
        let (store, id) = (Arc::clone(&app.store), run.id);
        let body = stream::body(move |writer| async move { send(&*store, id, from, until, &writer).await.map(drop) });
        let mut response = described(run, Some(length), body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, (until - from).into());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if is_range {
            let range = format!("bytes {from}-{}/{length}", until - 1);
            headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).expect("digits are valid in a header"));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        response
    }
}

/// A `Range` header. As HTTP requires, a header that is not a single range of bytes is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeRequest {
    All,
    /// From a byte to another, both included, or to the end.
    From(u64, Option<u64>),
    /// The last bytes.
    Last(u64),
}

impl RangeRequest {
    fn parse(text: &str) -> Self {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let Some((first, last)) = text.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
            return Self::All;
        };
        match (first.trim(), last.trim()) {
            ("", last) => number(last).map_or(Self::All, Self::Last),
            (first, "") => number(first).map_or(Self::All, |first| Self::From(first, None)),
            (first, last) => match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Self::From(first, Some(last)),
                _ => Self::All,
            },
        }
    }

    /// The existing bytes of the range, up to the offset after the last; `None` if there are none.
    fn within(self, length: u64) -> Option<(u64, u64)> {
        let (from, until) = match self {
            Self::All => (0, length),
            Self::From(first, last) => (first, last.map_or(length, |last| last.saturating_add(1).min(length))),
            Self::Last(count) => (length.saturating_sub(count), length),
        };
        (from < until).then_some((from, until))
    }
}

fn not_satisfiable(length: u64) -> Response {
    let mut problem = Problem::new(
        ProblemCode::BadRequest,
        format!("the output has {length} bytes, and none of them is in the requested range"),
    );
    problem.status = StatusCode::RANGE_NOT_SATISFIABLE.as_u16();
    let mut response = ApiError::from(problem).into_response();
    let range = HeaderValue::try_from(format!("bytes */{length}")).expect("digits are valid in a header");
    response.headers_mut().insert(header::CONTENT_RANGE, range);
    response
}

/// A response with headers that describe the output. Browsers must not interpret the bytes as a page.
fn described(run: &Run, length: Option<u64>, body: axum::body::Body) -> Response {
    let kept = match (&run.written, length) {
        (Some(written), Some(length)) if run.state.is_finished() => match written.bytes {
            bytes if bytes == length => "whole",
            _ if length == 0 => "gone",
            _ => "cut",
        },
        _ if run.state.is_finished() => "whole",
        _ => "live",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (RUN, HeaderValue::try_from(run.id.to_string()).expect("hexadecimal digits are valid in a header")),
        (OUTPUT, HeaderValue::from_static(kept)),
    ];
    (headers, body).into_response()
}

/// Sends a part of an output as far as it exists. Returns the offset after the last byte sent.
async fn send(store: &dyn Store, run: RunId, from: u64, until: u64, writer: &StreamWriter) -> Result<u64, ReaderGone> {
    let mut at = from;
    while at < until {
        let most = usize::try_from(until - at).unwrap_or(PIECE_MAX).min(PIECE_MAX);
        // After the response head was sent, only ending the body early can report an error: the client compares the
        // length.
        let Ok(chunk) = store.read(run, at, most).await else { break };
        if chunk.bytes.is_empty() {
            break;
        }
        at += chunk.bytes.len() as u64;
        writer.write(chunk.bytes).await?;
    }
    Ok(at)
}

/// Streams an output until the run has ended.
fn follow(app: &Arc<AppState>, run: &Run, from: u64) -> Response {
    let (store, id) = (Arc::clone(&app.store), run.id);
    // Subscribe before the run is loaded, so that its end cannot be missed.
    let events = app.feed.reader(None);
    let body = stream::body(move |writer| async move { send_until_end(&*store, id, from, events, &writer).await });
    described(run, None, body)
}

async fn send_until_end(
    store: &dyn Store,
    id: RunId,
    from: u64,
    mut events: FeedReader,
    writer: &StreamWriter,
) -> Result<(), ReaderGone> {
    let mut at = from;
    loop {
        // The output is stored before the run ends, so a read after the end returns everything.
        let has_ended = match load_run(store, id).await {
            Ok(run) => run.is_none_or(|run| run.state.is_finished()),
            Err(_) => {
                tokio::select! {
                    () = sleep(FAULT_WAIT) => continue,
                    () = writer.gone() => return Err(ReaderGone),
                }
            }
        };
        at = send(store, id, at, u64::MAX, writer).await?;
        if has_ended {
            return Ok(());
        }
        tokio::select! {
            () = events.wait_for_run(id) => {}
            () = sleep(POLL_INTERVAL) => {}
            () = writer.gone() => return Err(ReaderGone),
        }
    }
}

#[cfg(test)]
mod tests;
