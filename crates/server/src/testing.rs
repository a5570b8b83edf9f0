//! Shared test fixtures: a real node with an in-memory store, and requests to its router without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use cronhold_api::{CallerRole, FileMistake, ReloadReport};
use cronhold_core::record::{ActionRecord, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{DecisionContext, JobId, NodeId, RunId};
use cronhold_engine::{
    Engine, EngineEvent, EngineObserver, EntropySource, LaunchRequest, MachineClock, NodePorts, Options, ProbeRequest,
    ProgramRunner,
};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::lock_mutex;
use cronhold_store::{MemoryStore, Pending, Store};
use serde_json::Value;
use tower::ServiceExt;

use crate::auth::Authenticator;
use crate::connections::ClientConnection;
use crate::guard::AllowedHosts;
use crate::{AppState, FeedBuffer, JobFilesPort, MistakeAt, ProgramAccess};

/// Maximum length of a response that a test reads, in bytes.
const RESPONSE_MAX: usize = 16 * 1024 * 1024;
/// Start time of the test clock.
pub(crate) const START: Instant = Instant::from_secs(1_800_000_000);
/// The address of the test router.
pub(crate) const HOST: &str = "127.0.0.1:2766";

/// A temporary directory. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct ServerScratchDir(PathBuf);

impl ServerScratchDir {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cronhold-server-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ServerScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Predictable random numbers.
#[derive(Debug, Default)]
pub(crate) struct FixedEntropy(AtomicU64);

impl EntropySource for FixedEntropy {
    fn bits(&self) -> u128 {
        let count = u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1;
        count.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// A clock that follows the time of the executor since the start of the test.
#[derive(Debug)]
pub(crate) struct TestClock(tokio::time::Instant);

impl MachineClock for TestClock {
    fn now(&self) -> Instant {
        START.plus(self.uptime())
    }

    fn uptime(&self) -> Span {
        Span::from_micros(u64::try_from(self.0.elapsed().as_micros()).expect("tests are short"))
    }

    fn sleep(&self, span: Span) -> Pending<'_, ()> {
        Box::pin(tokio::time::sleep(std::time::Duration::from_micros(span.micros())))
    }
}

/// Runs no programs, and records all requests.
#[derive(Debug, Default)]
pub(crate) struct RecordingRunner(Mutex<Vec<String>>);

impl RecordingRunner {
    /// The requests so far: `launch`, `adopt`, `stop`, `deliver KIND`, or the name of a signal.
    pub(crate) fn requests(&self) -> Vec<String> {
        lock_mutex(&self.0).clone()
    }

    fn record(&self, request: &str) {
        lock_mutex(&self.0).push(request.to_owned());
    }
}

impl ProgramRunner for RecordingRunner {
    fn launch(&self, _: LaunchRequest) {
        self.record("launch");
    }

    fn adopt(&self, _: Arc<Run>) {
        self.record("adopt");
    }

    fn extend(&self, _: &[(RunId, Span)]) {}

    fn stop(&self, _: &Run) {
        self.record("stop");
    }

    fn release(&self, _: RunId) {
        self.record("release");
    }

    fn signal(&self, _: RunId, signal: Signal) {
        self.record(&signal.to_string());
    }

    fn deliver(&self, action: Arc<ActionRecord>) {
        self.record(&format!("deliver {}", action.work.kind().name()));
    }

    fn probe(&self, request: ProbeRequest) {
        self.record(&format!("probe {}", request.attempt));
    }
}

/// Records that the node is ready, and forwards events to the feed of the routes.
#[derive(Debug)]
struct ReadyObserver {
    is_ready: Arc<AtomicBool>,
    feed: Arc<FeedBuffer>,
}

impl EngineObserver for ReadyObserver {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if matches!(event, EngineEvent::Ready { .. }) {
            self.is_ready.store(true, Ordering::Release);
        }
        self.feed.on_event(event);
    }
}

/// Job files with one mistake in the file of `broken`, and one that belongs to no job.
#[derive(Debug)]
pub(crate) struct BrokenFiles;

impl JobFilesPort for BrokenFiles {
    fn mistakes(&self) -> Vec<MistakeAt> {
        let mistake = |file: &str| FileMistake {
            file: file.to_owned(),
            line: 3,
            column: 1,
            message: "unknown key `progam`".to_owned(),
            hint: Some("did you mean `program`?".to_owned()),
        };
        let job = Some(JobId::parse("broken").expect("an id"));
        vec![
            MistakeAt { job, mistake: mistake("broken.yaml") },
            MistakeAt { job: None, mistake: mistake("calendars/days.txt") },
        ]
    }

    fn may_have_file(&self, job: &JobId) -> bool {
        job.as_str() == "broken"
    }

    fn reload(&self) -> Pending<'_, ReloadReport> {
        Box::pin(async { ReloadReport { summary: "no job, 1 mistake".to_owned(), mistakes: 1 } })
    }
}

/// A node, its routes and their dependencies.
pub(crate) struct ServerFixture {
    pub(crate) app: Arc<AppState>,
    pub(crate) hands: Arc<RecordingRunner>,
    pub(crate) token: String,
    router: Router,
    _scratch: ServerScratchDir,
}

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), RESPONSE_MAX).await.expect("a body");
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{body:?}");
        Self { status: status.as_u16(), headers, text: String::from_utf8_lossy(&body).into_owned() }
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Status and code of a problem. Panics if the response is not a problem.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String) {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        assert_eq!(kind, Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        (self.status, problem["code"].as_str().expect("a code").to_owned())
    }
}

/// Runs a test with a new node.
pub(crate) fn with_rig(name: &str, test: impl AsyncFnOnce(&ServerFixture)) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor");
    executor.block_on(async {
        let rig = ServerFixture::start(name).await;
        test(&rig).await;
        rig.app.node.stop().await;
    });
}

impl ServerFixture {
    async fn start(name: &str) -> Self {
        let scratch = ServerScratchDir::new(name);
        let clock: Arc<dyn MachineClock> = Arc::new(TestClock(tokio::time::Instant::now()));
        let store_clock = Arc::clone(&clock);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(move || store_clock.now())));
        let (hands, feed, is_ready) =
            (Arc::new(RecordingRunner::default()), Arc::new(FeedBuffer::default()), Arc::default());
        let observer = ReadyObserver { is_ready: Arc::clone(&is_ready), feed: Arc::clone(&feed) };
        let entropy = Arc::new(FixedEntropy::default());
        let ports = NodePorts {
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy) as _,
            store: Arc::clone(&store),
            programs: Arc::clone(&hands) as _,
            feed: Arc::new(observer),
        };
        let this = NodeId::from_bits(7);
        let (engine, node) = Engine::new(ports, Options::new(this, "test"), world());
        tokio::spawn(async move { engine.run().await.expect("the store works") });
        node.begin().await;
        while !is_ready.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        let auth = Authenticator::open(scratch.path(), entropy).expect("an authenticator");
        let token = fs::read_to_string(scratch.path().join("token")).expect("a token").trim().to_owned();
        let files = Arc::new(BrokenFiles);
        let world = Arc::new(world);
        let programs = ProgramAccess { role: CallerRole::Operator, ..ProgramAccess::without_socket() };
        let version = "1.2.3";
        let app =
            Arc::new(AppState { node, store, clock, world, files, feed, auth, programs, this, is_ready, version });
        let hosts = AllowedHosts::new(HOST.parse().expect("an address"), &["cron.example".to_owned()]);
        let router = crate::router(Arc::clone(&app), hosts);
        Self { app, hands, token, router, _scratch: scratch }
    }

    /// Sends a request with the token. `more` has one header per line, and the body after an empty line.
    pub(crate) async fn request(&self, line: &str, more: &str) -> TestResponse {
        self.raw(line, &format!("Authorization: Bearer {}\n{more}", self.token)).await
    }

    /// Sends a request with a JSON body and the token.
    pub(crate) async fn send(&self, line: &str, body: &str) -> TestResponse {
        self.request(line, &format!("Content-Type: application/json\n\n{body}")).await
    }

    /// Posts JSON without credentials.
    pub(crate) async fn post_openly(&self, path: &str, body: &str) -> TestResponse {
        self.raw(&format!("POST {path}"), &format!("Content-Type: application/json\n\n{body}")).await
    }

    /// The body of a response, which may have no end. With `from`, the request comes by that connection.
    pub(crate) async fn open(&self, line: &str, more: &str, from: Option<Arc<ClientConnection>>) -> Body {
        let response = self.respond(line, more, from).await;
        assert_eq!(response.status(), StatusCode::OK, "{line}");
        response.into_body()
    }

    async fn respond(&self, line: &str, more: &str, from: Option<Arc<ClientConnection>>) -> Response {
        let (method, uri) = line.split_once(' ').expect("a method and a path");
        let (headers, body) = more.split_once("\n\n").unwrap_or((more, ""));
        let mut request = Request::builder().method(method).uri(uri);
        let headers = headers.lines().filter_map(|line| line.split_once(": "));
        let headers: Vec<(&str, &str)> = headers.collect();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request = request.header(header::HOST, HOST);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let mut request = request.body(Body::from(body.to_owned())).expect("a request");
        if let Some(from) = from {
            request.extensions_mut().insert(from);
        }
        self.router.clone().oneshot(request).await.expect("the router does not fail")
    }

    /// Sends a request without the token.
    pub(crate) async fn raw(&self, line: &str, more: &str) -> TestResponse {
        TestResponse::read(self.respond(line, more, None).await).await
    }

    /// Sends a request by a connection.
    pub(crate) async fn by(&self, line: &str, more: &str, from: Arc<ClientConnection>) -> TestResponse {
        TestResponse::read(self.respond(line, more, Some(from)).await).await
    }
}

pub(crate) fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc())
}
