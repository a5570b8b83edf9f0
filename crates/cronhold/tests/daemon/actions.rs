//! Actions of a real daemon: webhooks to a receiver that misbehaves, mails to a real server, commands and runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cronhold_core::hmac::{hex, hmac_sha256};
use cronhold_core::record::{ActionId, ActionRecord, ActionStatus};
use serde_json::Value;

use super::daemon::{Daemon, Sandbox, transcript};
use super::processes::eventually;
use super::receiver::{Reaction, WebhookReceiver, WebhookRequest};

/// How often the daemon is killed, and after how many requests each time.
const ROUNDS: usize = 8;
const REQUESTS_A_ROUND: usize = 6;

/// One key in four is received badly at first, each in another way.
fn misbehave(request: &WebhookRequest, before: usize) -> Reaction {
    let run = request.key().split('-').next().unwrap_or_default();
    let digit = run.chars().last().and_then(|digit| digit.to_digit(16)).unwrap_or(0);
    match (digit, before) {
        (0, 0) => Reaction::Fail,
        (1, 0) => Reaction::Truncate,
        (2 | 3, 0) => Reaction::Hang,
        _ => Reaction::Accept,
    }
}

#[test]
fn daemon_killed_repeatedly_delivers_every_webhook_at_least_once() {
    let sandbox = Sandbox::new("webhooks");
    let receiver = WebhookReceiver::start(misbehave);
    let definition = |schedule: &str| {
        for number in 0..4 {
            let url = format!("http://127.0.0.1:{}/{number}", receiver.port);
            let text = format!("program: {{noop: true}}\n{schedule}on: {{finished: [{{webhook: '{url}'}}]}}\n");
            sandbox.put_job(&format!("job{number}"), &text);
        }
    };
    definition("schedule: {every: 1s}\ncatch_up: all\n");
    for _ in 0..ROUNDS {
        let daemon = sandbox.up();
        let before = receiver.requests().len();
        eventually("some webhooks were sent", || receiver.requests().len() >= before + REQUESTS_A_ROUND);
        daemon.kill();
    }
    definition("");
    let daemon = sandbox.up();
    let runs_over = |sandbox: &Sandbox| sandbox.stored().runs.iter().all(|run| run.state.is_finished());
    eventually("all actions are done", || runs_over(&sandbox) && sandbox.actions().iter().all(|it| !it.is_pending()));
    let stored = sandbox.stored();
    assert!(stored.runs.iter().all(|run| run.actions == 1), "every run has its action");
    let owed: BTreeSet<String> = stored.runs.iter().map(|run| ActionId::new(run.id, 0).to_string()).collect();
    let received: BTreeSet<String> = receiver.accepted().into_keys().collect();
    assert!(owed.is_subset(&received), "no webhook is lost: {:?}", owed.difference(&received).collect::<Vec<_>>());
    // Each key stands for one event, however often it was received.
    let bodies: BTreeSet<(String, String)> =
        receiver.requests().iter().map(|request| (request.key().to_owned(), request.body.clone())).collect();
    let keys: BTreeSet<&String> = bodies.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), bodies.len(), "a repeated request has the same body");
    assert!(receiver.requests().len() > received.len(), "some requests were repeated");
    assert!(sandbox.actions().iter().all(|action| matches!(action.status, ActionStatus::Done { .. })));
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn webhook_has_its_body_headers_and_signature() {
    let sandbox = Sandbox::new("signed");
    let receiver = WebhookReceiver::start(|_, _| Reaction::Accept);
    fs::write(sandbox.path("key"), "s3cret\n").expect("a file");
    let (port, key) = (receiver.port, sandbox.path("key"));
    let job = format!(
        "program: exit 3\nparams: {{day: {{default: mon}}}}\non:\n  failure:\n  - webhook:\n      url: http://127.0.0.1:{port}/x?run={{{{ number }}}}\n      method: PUT\n      headers: {{X-Day: '{{{{ day }}}}'}}\n      body: '{{{{ job }}}} is {{{{ state }}}}: {{{{ reason }}}}'\n      secret: {{file: {}}}\n  finished:\n  - webhook: http://127.0.0.1:{port}/summary\n",
        key.display()
    );
    sandbox.put_job("alarm", &job);
    let _daemon = sandbox.up();
    assert!(transcript(&mut sandbox.verb(&["run", "alarm"])).ends_with("exit 0\n"));
    eventually("both webhooks were sent", || receiver.requests().len() == 2);
    let find = |path: &str| receiver.requests().into_iter().find(|request| request.line.contains(path)).expect(path);
    let own = find("/x");
    assert_eq!((own.line.as_str(), own.body.as_str()), ("PUT /x?run=1 HTTP/1.1", "alarm is failure: exit code 3"));
    let run = &sandbox.stored().run("alarm", 1).clone();
    assert_eq!(own.key(), ActionId::new(run.id, 0).to_string());
    let signature = format!("sha256={}", hex(&hmac_sha256(b"s3cret", own.body.as_bytes())));
    assert_eq!(own.headers.get("x-cronhold-signature"), Some(&signature));
    assert_eq!(own.headers.get("x-day").map(String::as_str), Some("mon"));
    let summary = find("/summary");
    assert_eq!(summary.headers.get("content-type").map(String::as_str), Some("application/json"));
    let body: Value = serde_json::from_str(&summary.body).expect("JSON");
    assert_eq!(
        (&body["job"], &body["state"], &body["exit_code"], &body["args"]["day"]),
        (&"alarm".into(), &"failure".into(), &3.into(), &"mon".into())
    );
    eventually("both are recorded", || sandbox.actions().iter().all(|it| !it.is_pending()));
    let shown = transcript(&mut sandbox.verb(&["show", "alarm#1"]));
    let expected = format!("on failure: webhook http://127.0.0.1:{port}, done");
    assert!(shown.contains(&expected), "{shown}");
    let shown: Value =
        serde_json::from_str(&stdout(&mut sandbox.verb(&["show", "alarm#1", "-o", "json"]))).expect("JSON");
    assert_eq!((&shown["actions"][0]["status"], &shown["actions"][0]["attempts"]), (&"done".into(), &1.into()));
}

/// A receiver that hangs has its own share of the threads.
#[test]
fn hanging_receiver_does_not_delay_other_actions() {
    let sandbox = Sandbox::new("hanging");
    let hangs = WebhookReceiver::start(|_, _| Reaction::Hang);
    let works = WebhookReceiver::start(|_, _| Reaction::Accept);
    let hook = |port| format!("{{webhook: 'http://127.0.0.1:{port}/'}}");
    let many = vec![hook(hangs.port); 20].join(", ");
    sandbox.put_job("many", &format!("program: {{noop: true}}\non: {{success: [{many}]}}\n"));
    sandbox.put_job("one", &format!("program: {{noop: true}}\non: {{success: [{}]}}\n", hook(works.port)));
    let _daemon = sandbox.up();
    assert!(transcript(&mut sandbox.verb(&["run", "many"])).ends_with("exit 0\n"));
    eventually("the hanging receiver is busy", || !hangs.requests().is_empty());
    assert!(transcript(&mut sandbox.verb(&["run", "one"])).ends_with("exit 0\n"));
    eventually("the other one has its request", || works.requests().len() == 1);
    let is_done = |action: &ActionRecord| action.job.as_str() == "one" && !action.is_pending();
    eventually("it is recorded", || sandbox.actions().iter().any(|action| is_done(action)));
    assert!(hangs.requests().len() <= 4, "the limit of a receiver");
}

#[test]
fn commands_and_runs_follow_a_failure() {
    let sandbox = Sandbox::new("commands");
    let seen = sandbox.path("seen");
    let job = format!(
        "program: exit 3\nparams: {{day: {{default: mon}}}}\nenv: {{FROM_JOB: yes it is}}\non:\n  failure:\n  - command: 'echo \"$CRONHOLD_RUN_ID $CRONHOLD_JOB $CRONHOLD_STATE $CRONHOLD_ARG_DAY $FROM_JOB $CRONHOLD_REASON\" >{}'\n  - command: 'echo went wrong; exit 7'\n  - run: {{job: repair, args: {{what: '{{{{ job }}}}'}}}}\n",
        seen.display()
    );
    sandbox.put_job("broken", &job);
    sandbox.put_job("repair", "program: 'true'\nparams: [what, day]\n");
    let mut daemon = sandbox.up();
    assert!(transcript(&mut sandbox.verb(&["run", "broken"])).ends_with("exit 0\n"));
    daemon.wait_until_run("repair#1", "success");
    eventually("the command has run", || fs::read_to_string(&seen).is_ok_and(|text| text.ends_with('\n')));
    let run = sandbox.stored().run("broken", 1).id;
    let text = fs::read_to_string(&seen).expect("there");
    assert_eq!(text.trim_end(), format!("{run} broken failure mon yes it is exit code 3"));
    let stored = sandbox.stored();
    assert_eq!(stored.run("repair", 1).args.to_string(), "day=mon what=broken");
    assert_eq!(stored.runs.len(), 2, "commands are not runs");
    eventually("the results are recorded", || {
        let actions = sandbox.actions();
        actions.iter().filter(|action| !action.is_pending()).count() == 2
            && actions.iter().any(|action| action.error.as_deref() == Some("exit code 7: went wrong"))
    });
}

/// A server in Python that prints what it receives: mails with STARTTLS and a login, or requests over HTTPS.
struct PythonServer {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    port: String,
    certificates: Certificates,
}

struct Certificates {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    /// Creates an authority and a certificate for `localhost`.
    fn make(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        let (ca, ca_key, request, names) = (file("ca.pem"), file("ca.key"), file("server.csr"), file("names"));
        let (certificate, key) = (file("server.pem"), file("server.key"));
        fs::write(&names, "subjectAltName=DNS:localhost\n").expect("a file");
        let openssl = |args: &[&str], files: &[(&str, &Path)]| {
            let mut command = Command::new("openssl");
            command.args(args).stdin(Stdio::null());
            for (flag, path) in files {
                command.arg(flag).arg(path);
            }
            let output = command.output().expect("openssl starts; on Debian: apt-get install openssl");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let own = [&["req", "-x509", "-days", "2", "-subj", "/CN=A test authority"][..], &curve].concat();
        openssl(&own, &[("-keyout", &ca_key), ("-out", &ca)]);
        openssl(&[&["req", "-subj", "/CN=localhost"][..], &curve].concat(), &[("-keyout", &key), ("-out", &request)]);
        openssl(
            &["x509", "-req", "-days", "2", "-CAcreateserial"],
            &[("-in", &request), ("-CA", &ca), ("-CAkey", &ca_key), ("-extfile", &names), ("-out", &certificate)],
        );
        Self { ca, certificate, key }
    }
}

impl PythonServer {
    fn start(sandbox: &Sandbox, script: &str, args: &[&str]) -> Self {
        let certificates = Certificates::make(&sandbox.path(""));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let python = target.join("smtp/bin/python");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/smtp").join(script);
        let mut command = Command::new(&python);
        command.arg(script).arg(&certificates.certificate).arg(&certificates.key).args(args);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{}: {error}; ./dev test installs it", python.display()));
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut port = String::new();
        lines.read_line(&mut port).expect("a port");
        Self { child, lines, port: port.trim().to_owned(), certificates }
    }

    /// Waits for the next message.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for PythonServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn mail_is_sent_with_starttls_and_login() {
    let sandbox = Sandbox::new("mail");
    let mut server = PythonServer::start(&sandbox, "server.py", &["anna", "s3cret"]);
    sandbox.put_job(
        "alarm",
        "program: echo no space left; exit 3\non: {failure: [{email: {to: [ops@example.org, anna@example.org]}}]}\n",
    );
    fs::write(sandbox.path("password"), "s3cret\n").expect("a file");
    let url = format!("smtp://anna@localhost:{}?password_file={}", server.port, sandbox.path("password").display());
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    command.env("CRONHOLD_SMTP", url).env("CRONHOLD_MAIL_FROM", "Cronhold <cron@example.org>");
    command.env("SSL_CERT_FILE", &server.certificates.ca);
    let mut daemon = Daemon::start(&mut command);
    daemon.wait_for("ready");
    assert!(transcript(&mut sandbox.verb(&["run", "alarm"])).ends_with("exit 0\n"));
    let message = server.receive();
    assert_eq!((&message["encrypted"], &message["login"]), (&true.into(), &"anna".into()));
    assert_eq!(message["from"], "cron@example.org");
    assert_eq!(message["to"], serde_json::json!(["ops@example.org", "anna@example.org"]));
    let content = message["content"].as_str().expect("a text");
    let id = ActionId::new(sandbox.stored().run("alarm", 1).id, 0);
    for part in ["Subject: alarm#1 failure", &format!("Message-ID: <{id}@example.org>"), "exit code 3", "no space left"]
    {
        assert!(content.contains(part), "{part} is missing:\n{content}");
    }
    eventually("it is recorded", || sandbox.actions().iter().all(|it| matches!(it.status, ActionStatus::Done { .. })));
}

/// Certificates are compared: without the authority of the server nothing is sent.
#[test]
fn webhook_is_sent_over_tls_to_a_trusted_server_only() {
    let sandbox = Sandbox::new("tls");
    let mut server = PythonServer::start(&sandbox, "https_server.py", &[]);
    let url = format!("https://localhost:{}/hook", server.port);
    sandbox.put_job("alarm", &format!("program: {{noop: true}}\non: {{success: [{{webhook: '{url}'}}]}}\n"));
    let daemon = sandbox.up();
    assert!(transcript(&mut sandbox.verb(&["run", "alarm"])).ends_with("exit 0\n"));
    eventually("the certificate is refused", || sandbox.actions().iter().any(|action| action.failures == 1));
    daemon.stop();
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    let mut daemon = Daemon::start(command.env("SSL_CERT_FILE", &server.certificates.ca));
    daemon.wait_for("ready");
    let request = server.receive();
    let id = ActionId::new(sandbox.stored().run("alarm", 1).id, 0);
    assert_eq!((&request["path"], &request["key"]), (&"/hook".into(), &id.to_string().into()));
    eventually("it is recorded", || sandbox.actions().iter().all(|it| matches!(it.status, ActionStatus::Done { .. })));
}

#[test]
fn invalid_mail_settings_are_reported_at_the_start() {
    let sandbox = Sandbox::new("mail-settings");
    let up = |name: &str, value: &str| transcript(sandbox.command(&[]).env(name, value));
    let printed = up("CRONHOLD_SMTP", "mail.example.org");
    assert!(printed.contains("CRONHOLD_SMTP: the URL does not begin with smtp:// or smtps://"), "{printed}");
    let printed = up("CRONHOLD_MAIL_FROM", "nobody");
    assert!(printed.contains("CRONHOLD_MAIL_FROM: `nobody` is not an address"), "{printed}");
}

/// The standard output of a command.
fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.stdin(Stdio::null()).output().expect("it starts").stdout).expect("UTF-8")
}
