//! Servers that are full, unsuitable, or refuse a user.

use cronhold_core::NodeId;
use cronhold_core::record::{NodeRecord, RecordKey};
use cronhold_schedule::Instant;
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store};
use cronhold_store_redis::testing::{RedisServer, ServerOptions, until};

use crate::store_client::{StoreClient, counter, job_id, open};

#[test]
fn full_server_rejects_writes_and_loses_none() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let fault = client.fault();
    assert!(matches!(&fault, Fault::ReadOnly(why) if why.contains("memory")), "{fault}");
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)), "it can be read all the same");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    client.put(counter("a", 2)).unwrap();
}

#[test]
fn server_with_too_few_replicas_rejects_writes() {
    let settings = vec![("min-replicas-to-write", "0".to_owned())];
    let server = RedisServer::start_with(ServerOptions { settings, ..Default::default() });
    let mut client = StoreClient::new(&server.url());
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let fault = client.fault();
    assert!(matches!(&fault, Fault::ReadOnly(why) if why.contains("replicas")), "{fault}");
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    client.put(counter("a", 1)).unwrap();
}

#[test]
fn evicting_server_is_refused_unless_accepted() {
    let maxmemory = Some((100 << 20, "allkeys-lru"));
    let server = RedisServer::start_with(ServerOptions { maxmemory, ..Default::default() });
    let fault = block_on(open(&server.url(), None, false).enroll()).unwrap_err();
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains("--accept-loss")), "{fault}");
    assert_eq!(server.cli(&["DBSIZE"]), "0", "nothing is written to a server that is refused");
    let store = open(&server.url(), None, true);
    block_on(store.enroll()).unwrap();
    let warnings = block_on(store.health()).warnings.join("\n");
    assert!(warnings.contains("allkeys-lru") && warnings.contains("has no persistence"), "{warnings}");
}

#[test]
fn wrong_password_or_permission_at_start_is_permanent() {
    let users = vec![
        "user worker on >secret ~* &* +@all".to_owned(),
        "user reader on >secret ~* &* +@all -@scripting -@write".to_owned(),
    ];
    let server = RedisServer::start_with(ServerOptions { users, ..Default::default() });
    let at = format!("127.0.0.1:{}", server.port());
    for (url, says) in [
        (format!("redis://worker:wrong@{at}"), "check both in the URL"),
        (format!("redis://nobody:secret@{at}"), "check both in the URL"),
        (format!("redis://reader:secret@{at}"), "check its ACL rules"),
        (format!("redis://worker:secret@{at}/99"), "check the number"),
    ] {
        let fault = block_on(open(&url, None, false).enroll()).unwrap_err();
        assert!(matches!(&fault, Fault::Permanent(why) if why.contains(says)), "{url}: {fault}");
    }
}

#[test]
fn revoked_password_or_permission_is_a_transient_fault() {
    let users = vec!["user worker on >secret ~* &* +@all".to_owned()];
    let server = RedisServer::start_with(ServerOptions { users, ..Default::default() });
    let mut client = StoreClient::new(&format!("redis://worker:secret@127.0.0.1:{}", server.port()));
    client.put(counter("a", 1)).unwrap();
    for (taken, given, says) in [
        (&["resetpass", ">other"][..], &["resetpass", ">secret"][..], "password"),
        (&["-@scripting"], &["+@scripting"], "ACL"),
        (&["resetkeys", "~other:*"], &["~*"], "key"),
    ] {
        server.cli(&[&["ACL", "SETUSER", "worker"], taken].concat());
        server.cli(&["CLIENT", "KILL", "USER", "worker"]);
        until("it is refused for that reason", || {
            let fault = client.fault();
            assert!(fault.is_transient(), "{fault}");
            fault.to_string().contains(says).then_some(())
        });
        let node = NodeRecord::new(NodeId::from_bits(5), "lyra", 1, Instant::EPOCH);
        let fault = block_on(client.store.beat(&node, &[])).unwrap_err();
        assert!(fault.is_transient(), "{fault}");
        assert!(client.health().trouble.is_some_and(|trouble| trouble.contains(says)), "{:?}", client.health());
        server.cli(&[&["ACL", "SETUSER", "worker"], given].concat());
        client.put_in_time(&counter("a", 2));
        assert_eq!(client.health().trouble, None);
    }
}

#[test]
fn server_with_hidden_settings_is_used_with_a_warning() {
    let users = vec!["user worker on >secret ~* &* +@all -config".to_owned()];
    let server = RedisServer::start_with(ServerOptions { aof: true, users, ..Default::default() });
    let client = StoreClient::new(&format!("redis://worker:secret@127.0.0.1:{}", server.port()));
    let warnings = client.health().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("CONFIG GET"), "{warnings:?}");
}
