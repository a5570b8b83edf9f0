//! What programs wrote, as bytes: all of it, a range, or on and on until the run has ended.

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
use crate::find_run::{find_listed_run, load_run};
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Bytes that are read and sent at once.
const PIECE_MAX: usize = 256 * 1024;
/// Someone who follows an output is sent what is new after this at the latest.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// When the store fails, whoever follows waits for so long.
const AWAY_WAIT: Duration = Duration::from_secs(1);
/// Which run it is: a job's name stands for another one tomorrow.
const RUN: HeaderName = HeaderName::from_static("x-cronhold-run");
/// `whole`, `live` while more may come, `cut` when the middle was left out, `gone` when it is not kept any longer.
const OUTPUT: HeaderName = HeaderName::from_static("x-cronhold-output");

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/runs/{run}/output", get(output))
}

/// Which part is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    from: Option<u64>,
    #[serde(default)]
    follow: bool,
}

/// What a run's program wrote.
#[utoipa::path(get, path = "/api/v1/runs/{run}/output", tag = "runs",
    params(
        ("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned"),
        ("from" = Option<u64>, Query, format = "uint64", description = "From this byte on; an output that is not so long is empty"),
        ("follow" = Option<bool>, Query, description = "Goes on until the run has ended and everything is sent"),
        ("Range" = Option<String>, Header, description = "One range of bytes; not together with `from` or `follow`"),
    ),
    responses(
        (status = 200, content_type = "application/octet-stream", body = String, headers(
            ("X-Cronhold-Run" = String, description = "The run's id"),
            ("X-Cronhold-Output" = String, description = "`whole`, `live` while more may come, `cut` when the middle was left out, `gone` when it is not kept any longer"))),
        (status = 206, description = "The range", content_type = "application/octet-stream", body = String),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn output(
    State(app): State<Arc<AppState>>,
    PathSegment(name): PathSegment,
    QueryParams(which): QueryParams<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run = find_listed_run(&*app.store, &name).await?.to_run();
    if which.follow {
        return Ok(follow(&app, &run, which.from.unwrap_or(0)));
    }
    let length = app.store.read(run.id, 0, 0).await?.length;
    let asked = headers.get(header::RANGE).filter(|_| which.from.is_none());
    let asked = asked.and_then(|range| range.to_str().ok());
    let part = match asked.map_or(RangeRequest::All, RangeRequest::parse) {
        RangeRequest::All => ByteRange { from: which.from.unwrap_or(0).min(length), until: length, is_range: false },
        asks => match asks.within(length) {
            Some((from, until)) => ByteRange { from, until, is_range: true },
            None => return Ok(not_satisfiable(length)),
        },
    };
    Ok(part.answer(&app, &run, length))
}

/// A part of an output; the end is the byte after the last.
#[derive(Debug, Clone, Copy)]
struct ByteRange {
    from: u64,
    until: u64,
    is_range: bool,
}

impl ByteRange {
    fn answer(self, app: &AppState, run: &Run, length: u64) -> Response {
        let Self { from, until, is_range } = self;
        let (store, id) = (Arc::clone(&app.store), run.id);
        let body = stream::body(move |writer| async move { send(&*store, id, from, until, &writer).await.map(drop) });
        let mut response = described(run, Some(length), body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, (until - from).into());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if is_range {
            let range = format!("bytes {from}-{}/{length}", until - 1);
            headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).expect("it is made of digits"));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        response
    }
}

/// What a `Range` header asks for. What is not one range of bytes asks for all, as the header's rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeRequest {
    All,
    /// From a byte to another or to the end, both included.
    From(u64, Option<u64>),
    /// So many at the end.
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

    /// The bytes that are there, up to the one after the last; none, when there are none.
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
    let mut problem =
        Problem::new(ProblemCode::BadRequest, format!("the output has {length} bytes and none in that range"));
    problem.status = StatusCode::RANGE_NOT_SATISFIABLE.as_u16();
    let mut response = ApiError::from(problem).into_response();
    let range = HeaderValue::try_from(format!("bytes */{length}")).expect("it is made of digits");
    response.headers_mut().insert(header::CONTENT_RANGE, range);
    response
}

/// An answer with what is known of the output. Bytes are bytes: no browser may take them for a page.
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
        (RUN, HeaderValue::try_from(run.id.to_string()).expect("it is made of hexadecimal digits")),
        (OUTPUT, HeaderValue::from_static(kept)),
    ];
    (headers, body).into_response()
}

/// Sends a part of an output as far as it is there. Answers with where it ended.
async fn send(store: &dyn Store, run: RunId, from: u64, until: u64, writer: &StreamWriter) -> Result<u64, ReaderGone> {
    let mut at = from;
    while at < until {
        let most = usize::try_from(until - at).unwrap_or(PIECE_MAX).min(PIECE_MAX);
        // An answer that has begun can only break off; its length says that something is missing.
        let Ok(chunk) = store.read(run, at, most).await else { break };
        if chunk.bytes.is_empty() {
            break;
        }
        at += chunk.bytes.len() as u64;
        writer.write(chunk.bytes).await?;
    }
    Ok(at)
}

/// Sends an output on and on until the run has ended.
fn follow(app: &Arc<AppState>, run: &Run, from: u64) -> Response {
    let (store, id) = (Arc::clone(&app.store), run.id);
    // From before the run is looked at, so that its end cannot fall in between.
    let news = app.feed.reader(None);
    let body = stream::body(move |writer| async move { pursue(&*store, id, from, news, &writer).await });
    described(run, None, body)
}

async fn pursue(
    store: &dyn Store,
    id: RunId,
    from: u64,
    mut news: FeedReader,
    writer: &StreamWriter,
) -> Result<(), ReaderGone> {
    let mut at = from;
    loop {
        // Everything is stored before a run ends; so what is read after that is all there is.
        let is_over = match load_run(store, id).await {
            Ok(run) => run.is_none_or(|run| run.state.is_finished()),
            Err(_) => {
                tokio::select! {
                    () = sleep(AWAY_WAIT) => continue,
                    () = writer.gone() => return Err(ReaderGone),
                }
            }
        };
        at = send(store, id, at, u64::MAX, writer).await?;
        if is_over {
            return Ok(());
        }
        tokio::select! {
            () = news.hears_of(id) => {}
            () = sleep(LOOK_EVERY) => {}
            () = writer.gone() => return Err(ReaderGone),
        }
    }
}

#[cfg(test)]
mod tests;
