//! Programs that are one HTTP request, against a real server that fails, hangs, redirects and truncates.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::daemon::{Sandbox, transcript};
use super::processes::eventually;
use super::service::{ServiceReply, ServiceRequest, TestService};

/// The paths of the service and what they do.
fn react(request: &ServiceRequest) -> ServiceReply {
    let to = |status, location: &str| ServiceReply::Status(status, format!("Location: {location}\r\n"), Vec::new());
    match request.path.as_str() {
        "/ready" => ServiceReply::Status(200, "Content-Type: text/plain\r\n".to_owned(), b"ready\n".to_vec()),
        "/fails" => ServiceReply::Status(503, String::new(), b"too busy\n".to_vec()),
        "/hangs" => ServiceReply::Hang,
        "/closes" => ServiceReply::Close,
        "/truncates" => ServiceReply::Truncate,
        "/moved" => to(302, "/ready"),
        "/moved-post" => to(308, "/ready"),
        "/circle" => to(301, "circle"),
        "/large" => ServiceReply::ok(vec![b'x'; 3 << 20]),
        _ => ServiceReply::status(404),
    }
}

#[test]
fn response_decides_about_the_state_of_the_run() {
    let sandbox = Sandbox::new("http-outcomes");
    let service = TestService::start(react);
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let server = service.url("");
    let cases = [
        ("/ready", "", "success"),
        ("/ready", "method: POST, body: x", "success"),
        ("/ready", "method: HEAD", "success"),
        ("/ready", "body_matches: '^rea.y'", "success"),
        ("/ready", "body_matches: steady", "failure: unexpected response: the body does not match `steady`"),
        ("/fails", "", "failure: status 503"),
        ("/fails", "expect: [2xx, 503]", "success"),
        ("/absent", "expect: 404", "success"),
        ("/moved", "", "success"),
        ("/moved", "redirects: 0", "failure: status 302"),
        ("/moved", "redirects: 0, expect: 3xx", "success"),
        ("/moved-post", "method: POST, body: x", "success"),
        ("/circle", "redirects: 3", "failure: status 301"),
        ("/closes", "", "error: no response: "),
        ("/truncates", "", "error: no response: "),
        ("/hangs", "timeout: 1s", "error: no response: "),
        ("nobody", "", "error: no response: "),
        ("/ready", "body_file: /no/such/file", "error: not launched: cannot read the body from /no/such/file: "),
        ("/ready", "headers: {X-Key: {env: ABSENT}}", "error: not launched: "),
    ];
    for (number, (path, settings, _)) in cases.iter().enumerate() {
        let url = if *path == "nobody" { format!("http://127.0.0.1:{nobody}/") } else { service.url(path) };
        let job =
            format!("program: {{http: {{url: '{url}', {settings}}}}}\nschedule: {{at: \"2001-01-01T00:00:00Z\"}}\n");
        sandbox.put_job(&format!("case{number}"), &job);
    }
    let mut daemon = sandbox.up();
    for (number, (path, settings, expected)) in cases.iter().enumerate() {
        let job = format!("case{number}");
        assert!(transcript(&mut sandbox.verb(&["run", &job])).ends_with("exit 0\n"), "{job}");
        let state = expected.split(':').next().expect("a state");
        daemon.wait_until_run(&format!("{job}#1"), state);
        let run = sandbox.stored().run(&job, 1).clone();
        let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let shown = format!("{}{reason}", run.state);
        assert!(shown.starts_with(expected), "{path} {settings}: {shown}");
        let has_response = !expected.starts_with("error");
        assert_eq!(run.service.is_some_and(|service| service.response.is_some()), has_response, "{path} {settings}");
    }
    let posted = service.requests("/ready").into_iter().filter(|request| request.method == "POST").count();
    assert_eq!(posted, 2, "a POST is repeated after 308");
    assert_eq!(service.requests("/circle").len(), 4);
    let failed = sandbox.stored().run("case5", 1).clone();
    assert_eq!(sandbox.output(&failed), b"too busy\n");
    let truncated = transcript(&mut sandbox.verb(&["show", "case14#1"]));
    assert!(truncated.contains(&server), "the message names the server: {truncated}");
}

#[test]
fn request_has_its_headers_body_and_key_and_its_response_is_kept() {
    let sandbox = Sandbox::new("http-request");
    let service = TestService::start(react);
    fs::write(sandbox.path("token"), "s3cret\n").expect("a file");
    fs::write(sandbox.path("body"), "from a file").expect("a file");
    let (token, file) = (sandbox.path("token").display().to_string(), sandbox.path("body").display().to_string());
    let url = service.url("/ready");
    sandbox.put_job(
        "full",
        &format!(
            "params: {{day: {{default: mon}}}}\nprogram:\n  http:\n    url: {url}\n    method: PUT\n    headers: {{X-Day: '{{{{ day }}}}', Authorization: {{file: '{token}', prefix: 'Bearer '}}}}\n    body: '{{\"run\": \"{{{{ run_id }}}}\"}}'\n"
        ),
    );
    sandbox.put_job("file", &format!("program: {{http: {{url: '{url}', method: POST, body_file: '{file}'}}}}\n"));
    sandbox.put_job("large", &format!("program: {{http: '{}'}}\n", service.url("/large")));
    sandbox.put_job("moved", &format!("program: {{http: '{}'}}\n", service.url("/moved")));
    let mut daemon = sandbox.up();
    for job in ["full", "file", "large", "moved"] {
        assert!(transcript(&mut sandbox.verb(&["run", job])).ends_with("exit 0\n"), "{job}");
        daemon.wait_until_run(&format!("{job}#1"), "success");
    }
    let run = sandbox.stored().run("full", 1).clone();
    let key = run.id.to_string();
    let requests = service.requests("/ready");
    let full = requests.iter().find(|request| request.key() == key).expect("it has the run's id");
    assert_eq!((full.method.as_str(), full.header("x-day")), ("PUT", "mon"));
    assert_eq!((full.header("authorization"), full.header("content-type")), ("Bearer s3cret", "application/json"));
    assert_eq!(full.text(), format!("{{\"run\": \"{key}\"}}"));
    assert!(requests.iter().any(|request| request.text() == "from a file"));
    assert_eq!(sandbox.output(&run), b"ready\n");
    assert_eq!(run.written.map(|written| written.tail), Some(vec!["ready".to_owned()]));

    let shown = transcript(&mut sandbox.verb(&["show", "full#1", "-o", "json"]));
    let shown = shown.rsplit_once("exit 0").map_or(shown.as_str(), |(text, _)| text);
    let json: Value = serde_json::from_str(shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    assert_eq!(json["response"]["status"], 200);
    assert_eq!(json["response"]["headers"][2]["value"], "text/plain", "{json}");
    assert!(!shown.contains("s3cret"), "secrets are not shown: {shown}");
    let moved = transcript(&mut sandbox.verb(&["show", "moved#1"]));
    assert!(moved.contains("status 200, text/plain, after 1 redirect"), "{moved}");

    let large = sandbox.stored().run("large", 1).clone();
    let output = String::from_utf8(sandbox.output(&large)).expect("text");
    assert!(output.ends_with("x\n[… 2,097,152 bytes left out …]\n"), "{}", &output[output.len() - 80..]);
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn stop_and_timeout_close_the_connection() {
    let sandbox = Sandbox::new("http-stop");
    let service = TestService::start(react);
    sandbox.put_job("stopped", &format!("program: {{http: '{}'}}\n", service.url("/hangs")));
    sandbox.put_job("killed", &format!("program: {{http: '{}'}}\n", service.url("/hangs")));
    sandbox.put_job("limited", &format!("program: {{http: '{}'}}\ntimeout: 1s\n", service.url("/hangs")));
    let mut daemon = sandbox.up();
    for (number, (job, verb, reason)) in
        [("stopped", Some("stop"), "stopped"), ("killed", Some("kill"), "killed"), ("limited", None, "timeout")]
            .into_iter()
            .enumerate()
    {
        assert!(transcript(&mut sandbox.verb(&["run", job])).ends_with("exit 0\n"), "{job}");
        eventually("the request has arrived", || service.requests("/hangs").len() == number + 1);
        if let Some(verb) = verb {
            assert!(transcript(&mut sandbox.verb(&[verb, job])).ends_with("exit 0\n"), "{job}");
        }
        daemon.wait_until_run(&format!("{job}#1"), "failure");
        let run = sandbox.stored().run(job, 1).clone();
        assert_eq!(run.reason.map(|reason| reason.to_string()).as_deref(), Some(reason));
        eventually("the connection is closed", || service.abandoned() == number + 1);
    }
}

/// What happens to a request that the daemon was sending when it was killed.
#[test]
fn daemon_killed_during_a_request_ends_the_run_or_sends_it_again() {
    let sandbox = Sandbox::new("http-killed");
    let hangs = Arc::new(AtomicBool::new(true));
    let does_hang = Arc::clone(&hangs);
    let service = TestService::start(move |_| match does_hang.load(Ordering::SeqCst) {
        true => ServiceReply::Hang,
        false => ServiceReply::ok("done\n"),
    });
    sandbox.put_job("once", &format!("program: {{http: '{}'}}\n", service.url("/once")));
    sandbox.put_job("again", &format!("program: {{http: '{}'}}\non_lost: retry\n", service.url("/again")));
    let mut daemon = sandbox.up();
    for job in ["once", "again"] {
        assert!(transcript(&mut sandbox.verb(&["run", job])).ends_with("exit 0\n"), "{job}");
        daemon.wait_until_run(&format!("{job}#1"), "running");
        eventually("the request has arrived", || service.requests(&format!("/{job}")).len() == 1);
    }
    daemon.kill();
    hangs.store(false, Ordering::SeqCst);
    let mut daemon = sandbox.up();
    daemon.wait_until_run("once#1", "error");
    daemon.wait_until_run("again#1", "success");
    let stored = sandbox.stored();
    let reason = stored.run("once", 1).reason.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(reason.starts_with("no response: the daemon restarted"), "{reason}");
    assert_eq!(service.requests("/once").len(), 1, "it is not sent again");
    let keys: Vec<String> = service.requests("/again").iter().map(|request| request.key().to_owned()).collect();
    let run = stored.run("again", 1);
    assert_eq!(keys, [run.id.to_string(), run.id.to_string()]);
    assert_eq!(sandbox.output(run), b"done\n");
}
