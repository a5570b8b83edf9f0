//! The client against a stub server with fixed responses. Tests of the daemon cover its real responses.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use cronhold_api::client::{CallError, CallerOptions, DaemonAddress, DaemonClient, JobFilter, PutPrecondition};
use cronhold_api::{PauseBody, ProblemCode, RunBody};

/// A stub server that sends each connection one response, and records the requests.
struct Server {
    address: DaemonAddress,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    fn new(responses: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let responses: Vec<String> = responses.iter().map(|response| (*response).to_owned()).collect();
        let thread = thread::spawn(move || {
            let respond = |response: String| {
                let (mut stream, _) = listener.accept().expect("a connection");
                let received = read_request(&mut stream);
                stream.write_all(response.as_bytes()).expect("sent");
                received
            };
            responses.into_iter().map(respond).collect()
        });
        Self { address: DaemonAddress::parse(&url).expect("an address"), thread }
    }

    fn client(&self) -> DaemonClient {
        let (token, user) = (Some("secret".to_owned()), Some("ada".to_owned()));
        DaemonClient::new(CallerOptions { address: self.address.clone(), local: None, token, user }).expect("a client")
    }

    /// Waits until all responses are sent, and returns the requests.
    fn requests(self) -> Vec<String> {
        self.thread.join().expect("no panic")
    }
}

/// Head and body of a request.
fn read_request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).expect("read");
        assert!(count > 0, "truncated: {text}");
        text += std::str::from_utf8(&bytes[..count]).expect("UTF-8");
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn requests_have_path_credentials_and_user() {
    let created = response("201 Created", "", r#"{"id": "7", "job": "a/b", "number": 1}"#);
    let created_before = response("200 OK", "", r#"{"id": "7", "job": "a/b", "number": 1}"#);
    let server = Server::new(&[&created, &created_before, &response("204 No Content", "", "")]);
    let client = server.client();
    let (first, is_new) = client.make_run_once("a/b", &RunBody::default(), Some("käse")).expect("created");
    assert_eq!((first.number, is_new), (1, true));
    assert!(!client.make_run_once("a/b", &RunBody::default(), None).expect("created").1);
    client.pause(None, &PauseBody { why: "tea".to_owned(), until: None }).expect("paused");
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /api/v1/jobs/a%2Fb/runs HTTP/1.1\r\n"), "{}", requests[0]);
    for line in ["authorization: Bearer secret\r\n", "x-cronhold-user: ada\r\n", "idempotency-key: k%C3%A4se\r\n"] {
        assert!(requests[0].to_lowercase().contains(&line.to_lowercase()), "{line} in {}", requests[0]);
    }
    assert!(requests[2].starts_with("POST /api/v1/pause HTTP/1.1\r\n"), "{}", requests[2]);
    assert!(requests[2].ends_with("\r\n\r\n{\"why\":\"tea\"}"), "{}", requests[2]);
}

#[test]
fn problems_and_unexpected_responses_are_distinguished() {
    let problem = r#"{"title": "t", "status": 409, "code": "conflict", "detail": "it is there", "hint": "upd"}"#;
    let server = Server::new(&[
        &response("409 Conflict", "content-type: application/problem+json\r\n", problem),
        &response("500 Internal Server Error", "", "<html>"),
        &response("200 OK", "", "<html>"),
        "SSH-2.0-OpenSSH\r\n",
    ]);
    let client = server.client();
    let refused = client.put_job("a", "program: echo".to_owned(), &PutPrecondition::New);
    let Err(CallError::Problem(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.code, problem.detail.as_str()), (ProblemCode::Conflict, "it is there"));
    for _ in 0..3 {
        let broken = client.nodes();
        assert!(matches!(broken, Err(CallError::Broken(_))), "{broken:?}");
    }
    let requests = server.requests();
    assert!(requests[0].to_lowercase().contains("if-none-match: *\r\n"), "{}", requests[0]);
}

#[test]
fn closed_connection_is_unreachable() {
    let server = Server::new(&[""]);
    let client = server.client();
    let cut_off = client.nodes();
    assert!(matches!(cut_off, Err(CallError::Unreachable(_))), "{cut_off:?}");
    // The listener ends with its thread.
    server.requests();
    let refused = client.nodes();
    let Err(CallError::Unreachable(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("cannot connect to"), "{message}");
}

#[test]
fn pages_are_joined() {
    let page = |ids: &[&str], next: &str| {
        let jobs: Vec<String> = ids
            .iter()
            .map(|id| {
                format!(
                    r#"{{"id": "{id}", "description": "", "schedule": "", "next": null, "paused": false, "pause": null,
                    "labels": [], "errors": [], "source": "api", "revision": 1, "active": 0, "last": null}}"#
                )
            })
            .collect();
        let body = format!(r#"{{"jobs": [{}], "next": {next}, "pause": null, "errors": []}}"#, jobs.join(", "));
        response("200 OK", "", &body)
    };
    let server = Server::new(&[&page(&["a", "b"], "\"b\""), &page(&["c"], "null")]);
    let filter = JobFilter { pattern: Some("*".to_owned()), label: None };
    let all = server.client().jobs(&filter).expect("jobs");
    assert_eq!(all.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let requests = server.requests();
    assert!(requests[1].starts_with("GET /api/v1/jobs?match=%2A&after=b&limit=1000 "), "{}", requests[1]);
}

#[test]
fn output_is_streamed_unchanged() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n4\r\n\ntwo\r\n0\r\n\r\n";
    let cut_off = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
    let server = Server::new(&[chunked, cut_off]);
    let client = server.client();
    let pieces: Result<Vec<Vec<u8>>, CallError> = client.output("a#1", 5, true).expect("open").collect();
    assert_eq!(pieces.expect("whole").concat(), b"one\ntwo");
    let mut broken = client.output("a#1", 0, false).expect("open");
    assert_eq!(broken.next(), Some(Ok(b"one".to_vec())));
    assert!(matches!(broken.next(), Some(Err(CallError::Unreachable(_)))));
    assert!(server.requests()[0].starts_with("GET /api/v1/runs/a%231/output?from=5&follow=true "));
}

#[test]
fn feed_resumes_after_the_last_event() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let first = format!("{head}id: 7\nevent: run\ndata: {{}}\n\nid: 8\nevent: ru");
    let second = format!("{head}: here\n\nid: 8\nevent: job\ndata: {{}}\n\n");
    let server = Server::new(&[&first, &second]);
    let client = server.client();
    let mut events = client.events(None).expect("open");
    let kinds = [events.next_event().expect("first").kind, events.next_event().expect("second").kind];
    assert_eq!(kinds, ["run", "job"]);
    let requests = server.requests();
    assert!(!requests[0].to_lowercase().contains("last-event-id"), "{}", requests[0]);
    assert!(requests[1].to_lowercase().contains("last-event-id: 7\r\n"), "{}", requests[1]);
}
