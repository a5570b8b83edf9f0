//! Stores that cannot be used: the error message, the exit code, and that passwords are not shown.

use cronhold_store_redis::testing::{RedisServer, ServerOptions};

use crate::processes::eventually;
use crate::sandbox::Sandbox;

/// A port that no server uses.
const UNREACHABLE: &str = "redis://127.0.0.1:1?timeout=500ms";

#[test]
fn unreachable_store_exits_3() {
    let sandbox = Sandbox::new("away");
    for verb in [
        &["list"][..],
        &["add", "hello", "triggered", "true"],
        &["run", "hello"],
        &["next", "hello"],
        &["nodes"],
        &["watch"],
    ] {
        let result = sandbox
            .run_command(&[&["--store", UNREACHABLE], verb].concat())
            .exits(3)
            .prints("127.0.0.1:1")
            .prints("hint:");
        assert!(result.out.is_empty(), "{result:?}");
    }
    // A schedule that is not a job needs no store.
    sandbox.run_command(&["--store", UNREACHABLE, "next", "@daily", "-n", "1"]).exits(0);
}

#[test]
fn unresponsive_server_times_out() {
    let sandbox = Sandbox::new("silent");
    sandbox.server.freeze();
    let url = sandbox.server.url_with("timeout=500ms");
    sandbox.run_command(&["--store", &url, "list"]).exits(3).prints("hint:");
    sandbox.server.thaw();
    sandbox.done(&["list"]);
}

#[test]
fn wrong_password_is_refused_and_not_shown() {
    let options = ServerOptions { password: Some("opensesame"), ..ServerOptions::default() };
    let sandbox = Sandbox::with("password", options);
    sandbox.done(&["add", "hello", "triggered", "true"]);
    let port = sandbox.server.port();
    for (name, url) in
        [("wrong", format!("redis://:openbarley@127.0.0.1:{port}")), ("without", format!("redis://127.0.0.1:{port}"))]
    {
        sandbox.run_command(&["--store", &url, "list"]).exits(1).prints("password").prints("hint:").omits("openbarley");
        // Waiting does not help against a wrong password.
        let mut node = sandbox.start_at(&url, name, &[]);
        eventually("it ends", || node.ended().is_some());
        let (ended, log) = (node.ended(), node.log_text());
        assert_eq!(ended, Some(1), "{log}");
        assert!(log.contains("Redis rejects the user or the password") && log.contains("hint:"), "{log}");
        assert!(!log.contains("openbarley"), "{log}");
    }
    let node = sandbox.up("one", &[]);
    let (log, starting) = (node.log_text(), node.logged("starting"));
    assert!(starting[0]["store"].as_str().is_some_and(|url| url.starts_with("redis://:***@127.0.0.1")), "{log}");
    assert!(!log.contains("opensesame"), "{log}");
    node.stop();
}

#[test]
fn unusable_store_urls_are_refused() {
    let sandbox = Sandbox::new("wrong");
    let port = sandbox.server.port();
    let tls = RedisServer::start_with(ServerOptions { tls: true, ..ServerOptions::default() });
    let ca = tls.ca().expect("it has certificates");
    let encrypted = tls.url();
    for (url, code, expected) in [
        ("sqlite:a.db".to_owned(), 2, "only its daemon can use an SQLite store"),
        ("postgres://a".to_owned(), 2, "this build has no store of the kind `postgres`"),
        (format!("redis://127.0.0.1:{port}?namespcae=x"), 2, "did you mean"),
        (format!("redis://127.0.0.1:{port}/99"), 1, "DB index is out of range"),
        (format!("rediss://127.0.0.1:{port}?ca={}", ca.display()), 3, "write redis://"),
    ] {
        sandbox.run_command(&["--store", &url, "list"]).exits(code).prints(expected).prints("hint:");
    }
    sandbox.run_command(&["--store", &encrypted, "list"]).exits(0);
    sandbox
        .run_command(&["--store", &format!("redis://127.0.0.1:{}?timeout=1s", tls.port()), "list"])
        .exits(3)
        .prints("write rediss://")
        .prints("hint:");
    sandbox.at_store(&["reload"]).exits(1).prints("`cronhold reload` needs a daemon");
    sandbox.at_store(&["token", "show"]).exits(1).prints("`cronhold token` needs a daemon");
    sandbox.at_store(&["--url", "http://127.0.0.1:1", "list"]).exits(2).prints("--store cannot be used with --url");
    sandbox.run_command(&["store", "backup", "--store", &sandbox.server.url(), "copy.db"]).exits(1).prints("BGSAVE");
}

/// A daemon that is started before its store waits for it, and can be stopped while it waits.
#[test]
fn daemon_waits_for_its_store() {
    let mut sandbox = Sandbox::with("waiting", ServerOptions { aof: true, ..ServerOptions::default() });
    sandbox.done(&["add", "hello", "triggered", "true"]);
    sandbox.server.stop();
    let node = sandbox.start("one", &[]);
    node.wait_until_logged("store_unavailable", &[]);
    let other = sandbox.start("two", &[]);
    other.wait_until_logged("store_unavailable", &[]);
    other.stop();
    sandbox.server.restart();
    node.wait_until_ready();
    sandbox.at_store(&["run", "hello", "--wait"]).exits(0);
    node.stop();
}

/// A server that may evict keys is refused without `--accept-loss`.
#[test]
fn evicting_server_needs_accept_loss() {
    let options = ServerOptions { maxmemory: Some((64 << 20, "allkeys-lru")), ..ServerOptions::default() };
    let sandbox = Sandbox::with("evicts", options);
    let mut refused = sandbox.start("one", &[]);
    eventually("it ends", || refused.ended().is_some());
    assert!(refused.ended() == Some(1) && refused.log_text().contains("--accept-loss"), "{}", refused.log_text());
    let node = sandbox.up("two", &["--accept-loss"]);
    node.wait_until_message("store_warning", "allkeys-lru");
    // Commands do not check that.
    sandbox.done(&["add", "hello", "triggered", "true"]);
    node.stop();
}
