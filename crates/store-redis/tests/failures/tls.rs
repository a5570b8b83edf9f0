//! A TLS connection to a server that requires a user.

use cronhold_core::record::RecordKey;
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store};
use cronhold_store_redis::testing::{RedisServer, ServerOptions};

use crate::store_client::{StoreClient, counter, job_id, open};

#[test]
fn user_logs_in_over_tls() {
    let users = vec!["user worker on >secret ~{cronken}:* &{cronken}:* +@all -@dangerous +info".to_owned()];
    let server = RedisServer::start_with(ServerOptions { tls: true, users, ..Default::default() });
    let ca = server.ca().expect("it has a certificate");
    let at = format!("localhost:{}", server.port());
    let mut client = StoreClient::new(&format!("rediss://worker:secret@{at}?ca={}", ca.display()));
    client.put(counter("a", 1)).unwrap();
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)));
    let description = client.health().description;
    assert!(description.contains("worker:***@") && !description.contains("secret"), "{description}");

    let store = open(&format!("rediss://worker:secret@{at}"), None, false);
    let fault = block_on(store.enroll()).unwrap_err();
    assert!(
        matches!(&fault, Fault::Unavailable(why) if why.contains("certificate")),
        "the authority is not trusted: {fault}"
    );
}
