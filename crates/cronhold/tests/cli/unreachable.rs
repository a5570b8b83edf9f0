//! A daemon that cannot be used: there is none, it was killed, it is not ready, or it does not accept the token.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use rustix::process::Signal;

use super::sandbox::{Sandbox, transcript_of};

/// The address of the daemon in a sandbox.
fn url(sandbox: &Sandbox) -> String {
    let text = fs::read_to_string(sandbox.path("home/address")).expect("it listens");
    let address: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    address["url"].as_str().expect("a URL").to_owned()
}

/// The transcript of a command with these environment variables.
fn with(sandbox: &Sandbox, variables: &[(&str, &str)], args: &[&str]) -> String {
    let mut command = sandbox.command(args);
    let output = command.envs(variables.iter().copied()).output().expect("the binary starts");
    let names: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    super::redact::redacted(&transcript_of(args, &output).replace("$ ", &format!("$ {names}")))
}

#[test]
fn no_daemon() {
    let sandbox = Sandbox::empty("none");
    let nowhere = {
        let mut command = sandbox.command(&["list"]);
        transcript_of(&["list"], &command.env_remove("CRONHOLD_DATA").output().expect("the binary starts"))
    };
    let text = sandbox.transcript(&[
        &["list"],
        &["list", "--data", "elsewhere"],
        &["list", "--url", "http://127.0.0.1:1"],
        &["list", "--url", "127.0.0.1:1"],
        &["list", "--url", "https://127.0.0.1:1"],
        &["next", "hello"],
    ]);
    insta::assert_snapshot!(format!("{text}\n{nowhere}"));
}

/// A killed daemon leaves its address file. Commands report the daemon as unreachable and do not read job files.
#[test]
fn stale_address() {
    let sandbox = Sandbox::up("stale", &[("hello", "program: ['true']\n")]);
    let living = url(&sandbox);
    sandbox.end(Signal::KILL);
    assert_eq!(url(&sandbox), living, "a killed daemon does not remove the file");
    let dead = sandbox.transcript(&[&["list"], &["run", "hello"], &["watch"], &["logs", "-f", "hello"]]);
    sandbox.put("home/address", "{\"url\": 7}");
    let strange = sandbox.shown(&["list"]);
    sandbox.start();
    sandbox.done(&["list"]);
    sandbox.end(Signal::TERM);
    assert!(!sandbox.path("home/address").exists(), "a stopped daemon removes the file");
    let ended = sandbox.shown(&["list"]);
    insta::assert_snapshot!(format!("{dead}\n{strange}\n{ended}"));
}

/// Starts a server that sends the same response to every request, and returns its URL.
pub(crate) fn always(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn not_ready() {
    let sandbox = Sandbox::empty("not-ready");
    let body = r#"{"title":"unavailable","status":503,"code":"unavailable","detail":"the daemon is starting","hint":"try again in a moment"}"#;
    let length = body.len();
    let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nConnection: close";
    let starting = always(format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").leak());
    let other = always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let text = [starting, other].map(|url| {
        let variables = [("CRONHOLD_URL", url.as_str()), ("CRONHOLD_TOKEN", "mine")];
        [["list"].as_slice(), &["run", "hello"], &["next", "hello"]]
            .map(|args| with(&sandbox, &variables, args))
            .join("\n")
    });
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn tokens() {
    let sandbox = Sandbox::up("tokens", &[("hello", "program: ['true']\n")]);
    let url = url(&sandbox);
    let token = fs::read_to_string(sandbox.path("home/token")).expect("there").trim().to_owned();
    let (at, none) = (("CRONHOLD_URL", url.as_str()), ("CRONHOLD_DATA", "none"));
    let mut texts = vec![
        with(&sandbox, &[at, none, ("CRONHOLD_TOKEN", &token)], &["list"]),
        with(&sandbox, &[at, none], &["list"]),
        with(&sandbox, &[at, none, ("CRONHOLD_TOKEN", "wrong")], &["list"]),
        with(&sandbox, &[none, ("CRONHOLD_TOKEN", &token)], &["list", "--url", &url]),
    ];
    // The socket in the directory needs no token.
    fs::remove_file(sandbox.path("home/token")).expect("removed");
    texts.push(sandbox.shown(&["list"]));
    insta::assert_snapshot!(texts.join("\n"));
}
