//! The address that the daemon listens on, the files by which commands find it, and the link that it logs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use super::daemon::{Daemon, Sandbox, transcript};
use super::http::Api;
use super::log_lines::find_event;
use super::processes::eventually;

#[test]
fn address_file_and_link_are_written() {
    let sandbox = Sandbox::new("listens");
    let mut daemon = sandbox.up();
    daemon.wait_for("page_link");
    for file in ["home/token", "home/address", "home/socket"] {
        let mode = fs::metadata(sandbox.path(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let ready = Api::of(&sandbox).get("/ready");
    assert!(ready.contains("\"ready\":true"), "{ready}");
    let (ended, log) = daemon.stop();
    assert_eq!(ended.code(), Some(0));
    assert!(!log.contains("/enter#"), "a log may be read by others: {log}");
    for file in ["home/address", "home/socket"] {
        assert!(!sandbox.path(file).exists(), "{file} is removed");
    }

    // With `--link`, a link is printed to standard output and not to the log.
    let out = sandbox.path("out");
    let mut command = sandbox.command(&["--link"]);
    command.stdout(fs::File::create(&out).expect("a file"));
    let mut daemon = Daemon::start(&mut command);
    daemon.wait_until_logged("ready", &[]);
    let printed = || fs::read_to_string(&out).expect("there");
    eventually("the link is printed", || printed().contains("/enter#"));
    let (_, log) = daemon.stop();
    assert!(!log.contains("/enter#"), "{log}");
}

/// The address file of a killed daemon stays. Whoever listens there then must not learn the token.
#[test]
fn commands_send_nothing_to_the_port_of_a_killed_daemon() {
    let sandbox = Sandbox::new("squatter");
    let daemon = sandbox.up();
    let listed = transcript(&mut sandbox.verb(&["list"]));
    assert!(listed.ends_with("exit 0\n"), "{listed}");
    daemon.kill();
    let address = fs::read_to_string(sandbox.path("home/address")).expect("it is left");
    let address: serde_json::Value = serde_json::from_str(&address).expect("JSON");
    let url = address["url"].as_str().expect("a URL").to_owned();
    let squatter = TcpListener::bind(url.trim_start_matches("http://")).expect("the port is free");
    squatter.set_nonblocking(true).expect("a socket");
    for options in [&["list"][..], &["list", "--url", &url], &["token", "link"]] {
        let shown = transcript(&mut sandbox.verb(options));
        assert!(shown.ends_with("exit 3\n") && shown.contains("is no longer running"), "{options:?}: {shown}");
    }
    assert!(squatter.accept().is_err(), "no command connects");
}

#[test]
fn address_in_use_or_invalid_is_refused() {
    let sandbox = Sandbox::new("taken");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let mut shown =
        transcript(sandbox.bare_command(&["--listen", &address]).arg("--quiet")).replace(&address, "ADDRESS");
    for listen in ["0.0.0.0:0", "nowhere"] {
        shown += &transcript(&mut sandbox.bare_command(&["--listen", listen]));
    }
    insta::assert_snapshot!(shown);
    assert_eq!(sandbox.keeper(), None, "nothing was started");
}

#[test]
fn no_listen_opens_no_port() {
    let sandbox = Sandbox::new("deaf");
    let mut daemon = Daemon::start(&mut sandbox.bare_command(&["--no-listen"]));
    daemon.wait_for("ready");
    let (_, log) = daemon.stop();
    assert!(!log.lines().any(|line| find_event(line, "listening", &[]).is_some()), "{log}");
    assert!(!sandbox.path("home/token").exists() && !sandbox.path("home/address").exists());
}
