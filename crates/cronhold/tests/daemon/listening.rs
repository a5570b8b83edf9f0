//! The address that the daemon listens on, the files by which commands find it, and the link that it logs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use super::daemon::{Daemon, Place, transcript};
use super::http::{Api, request};
use super::log_lines::find_event;

#[test]
fn address_file_and_link_are_written() {
    let place = Place::new("listens");
    let mut daemon = place.up();
    let link = daemon.wait_for("page_link")["link"].as_str().expect("a link").to_owned();
    for file in ["home/token", "home/address"] {
        let mode = fs::metadata(place.path(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let ready = Api::of(&place).get("/ready");
    assert!(ready.contains("\"ready\":true"), "{ready}");
    let (address, path) = link.trim_start_matches("http://").split_once('/').expect("a path");
    let (head, _) = request(address, "", "GET", &format!("/{path}"), "");
    assert!(head.starts_with("HTTP/1.1 303") && head.contains("cronhold_session="), "{head}");
    assert_eq!(daemon.stop().0.code(), Some(0));
    assert!(!place.path("home/address").exists(), "the address file is removed");

    // Only the first start logs a link, unless `--link` is given.
    let mut daemon = place.up();
    let (_, log) = {
        daemon.wait_until_logged("ready", &[]);
        daemon.stop()
    };
    assert!(!log.contains("/enter?once="), "{log}");
    let mut daemon = Daemon::start(&mut place.command(&["--link"]));
    daemon.wait_for("page_link");
    daemon.kill();
}

#[test]
fn address_in_use_or_invalid_is_refused() {
    let place = Place::new("taken");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let mut shown = transcript(place.bare_command(&["--listen", &address]).arg("--quiet")).replace(&address, "ADDRESS");
    for listen in ["0.0.0.0:0", "nowhere"] {
        shown += &transcript(&mut place.bare_command(&["--listen", listen]));
    }
    insta::assert_snapshot!(shown);
    assert_eq!(place.keeper(), None, "nothing was started");
}

#[test]
fn no_listen_opens_no_port() {
    let place = Place::new("deaf");
    let mut daemon = Daemon::start(&mut place.bare_command(&["--no-listen"]));
    daemon.wait_for("ready");
    let (_, log) = daemon.stop();
    assert!(!log.lines().any(|line| find_event(line, "listening", &[]).is_some()), "{log}");
    assert!(!place.path("home/token").exists() && !place.path("home/address").exists());
}
