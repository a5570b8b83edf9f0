//! Stores that cannot be worked on: what is said, what a command exits with, and that no password is shown.

use cronhold_store_redis::testing::{RedisServer, ServerOptions};

use crate::processes::eventually;
use crate::site::Site;

/// Nobody knows this port, which is one that no server is given.
const NOBODY: &str = "redis://127.0.0.1:1?timeout=500ms";

#[test]
fn unreachable_store_exits_3() {
    let site = Site::new("away");
    for verb in [
        &["list"][..],
        &["add", "hello", "triggered", "true"],
        &["run", "hello"],
        &["next", "hello"],
        &["nodes"],
        &["watch"],
    ] {
        let told = site.give(&[&["--store", NOBODY], verb].concat()).exits(3).says("127.0.0.1:1").says("hint:");
        assert!(told.out.is_empty(), "{told:?}");
    }
    // What is no job needs no store.
    site.give(&["--store", NOBODY, "next", "@daily", "-n", "1"]).exits(0);
}

#[test]
fn unresponsive_server_times_out() {
    let site = Site::new("silent");
    site.server.freeze();
    let url = site.server.url_with("timeout=500ms");
    site.give(&["--store", &url, "list"]).exits(3).says("hint:");
    site.server.thaw();
    site.done(&["list"]);
}

#[test]
fn wrong_password_is_refused_and_not_shown() {
    let options = ServerOptions { password: Some("opensesame"), ..ServerOptions::default() };
    let site = Site::with("password", options);
    site.done(&["add", "hello", "triggered", "true"]);
    let port = site.server.port();
    for (name, url) in
        [("wrong", format!("redis://:openbarley@127.0.0.1:{port}")), ("without", format!("redis://127.0.0.1:{port}"))]
    {
        site.give(&["--store", &url, "list"]).exits(1).says("password").says("hint:").hides("openbarley");
        // Nobody finds a wrong password by waiting.
        let mut node = site.start_at(&url, name, &[]);
        eventually("it ends", || node.ended().is_some());
        let (ended, said) = (node.ended(), node.said());
        assert_eq!(ended, Some(1), "{said}");
        assert!(said.contains("Redis rejects the user or the password") && said.contains("hint:"), "{said}");
        assert!(!said.contains("openbarley"), "{said}");
    }
    let node = site.up("one", &[]);
    let (said, starting) = (node.said(), node.logged("starting"));
    assert!(starting[0]["store"].as_str().is_some_and(|url| url.starts_with("redis://:***@127.0.0.1")), "{said}");
    assert!(!said.contains("opensesame"), "{said}");
    node.stop();
}

#[test]
fn unusable_store_urls_are_refused() {
    let site = Site::new("wrong");
    let port = site.server.port();
    let tls = RedisServer::start_with(ServerOptions { tls: true, ..ServerOptions::default() });
    let ca = tls.ca().expect("it has certificates");
    let encrypted = tls.url();
    for (url, code, says) in [
        ("sqlite:a.db".to_owned(), 2, "only its daemon can use an SQLite store"),
        ("postgres://a".to_owned(), 2, "this build has no store of the kind `postgres`"),
        (format!("redis://127.0.0.1:{port}?namespcae=x"), 2, "did you mean"),
        (format!("redis://127.0.0.1:{port}/99"), 1, "DB index is out of range"),
        (format!("rediss://127.0.0.1:{port}?ca={}", ca.display()), 3, "write redis://"),
    ] {
        site.give(&["--store", &url, "list"]).exits(code).says(says).says("hint:");
    }
    site.give(&["--store", &encrypted, "list"]).exits(0);
    site.give(&["--store", &format!("redis://127.0.0.1:{}?timeout=1s", tls.port()), "list"])
        .exits(3)
        .says("write rediss://")
        .says("hint:");
    site.at_store(&["reload"]).exits(1).says("`cronhold reload` needs a daemon");
    site.at_store(&["token", "show"]).exits(1).says("`cronhold token` needs a daemon");
    site.at_store(&["--url", "http://127.0.0.1:1", "list"]).exits(2).says("--store cannot be used with --url");
    site.give(&["store", "backup", "--store", &site.server.url(), "copy.db"]).exits(1).says("BGSAVE");
}

/// A daemon that is started before its store waits for it, and can be stopped meanwhile.
#[test]
fn daemon_waits_for_its_store() {
    let mut site = Site::with("waiting", ServerOptions { aof: true, ..ServerOptions::default() });
    site.done(&["add", "hello", "triggered", "true"]);
    site.server.stop();
    let node = site.start("one", &[]);
    node.wait_until_logged("store_unavailable", &[]);
    let other = site.start("two", &[]);
    other.wait_until_logged("store_unavailable", &[]);
    other.stop();
    site.server.restart();
    node.wait_until_ready();
    site.at_store(&["run", "hello", "--wait"]).exits(0);
    node.stop();
}

/// A server that throws keys away is refused, unless that is wanted.
#[test]
fn evicting_server_needs_accept_loss() {
    let options = ServerOptions { maxmemory: Some((64 << 20, "allkeys-lru")), ..ServerOptions::default() };
    let site = Site::with("evicts", options);
    let mut refused = site.start("one", &[]);
    eventually("it ends", || refused.ended().is_some());
    assert!(refused.ended() == Some(1) && refused.said().contains("--accept-loss"), "{}", refused.said());
    let node = site.up("two", &["--accept-loss"]);
    node.wait_until_message("store_warning", "allkeys-lru");
    // Commands leave that to the nodes.
    site.done(&["add", "hello", "triggered", "true"]);
    node.stop();
}
