//! The connection manager against real servers: what it returns when they are unreachable, silent, restarted or
//! replaced, and that it reconnects.

use std::sync::LazyLock;

use cronhold_store::Fault;
use redis::{Cmd, Value};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use super::{ChannelEvent, RedisConnections, Script};
use crate::testing::{ClusterSet, RedisServer, SentinelSet, ServerOptions, until};
use crate::url::RedisUrl;

static ECHO: LazyLock<Script> = LazyLock::new(|| Script::new(&["local answer = ARGV[1]", "return {answer, #KEYS}"]));

/// Number of script calls in one batch.
const CALLS: usize = 20;

struct ConnectionsFixture {
    runtime: Runtime,
    connections: RedisConnections,
}

impl ConnectionsFixture {
    fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a thread can be started");
        let connections = RedisConnections::new(&RedisUrl::parse(url).expect("a URL"), runtime.handle().clone());
        Self { runtime, connections }
    }

    fn send(&self, words: &[&str]) -> Result<Value, Fault> {
        self.runtime.block_on(self.connections.request_one(command(words)))
    }

    /// Retries a command until it gets a reply. All faults meanwhile must be transient.
    fn send_until_answered(&self, words: &[&str]) -> Value {
        until("an answer", || match self.send(words) {
            Ok(answer) => Some(answer),
            Err(fault) => {
                assert!(fault.is_transient(), "{fault}");
                None
            }
        })
    }

    fn next_event(&self, events: &mut Receiver<ChannelEvent>) -> ChannelEvent {
        self.runtime.block_on(events.recv()).expect("the subscription does not end")
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command
}

fn bytes(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

#[test]
fn failed_command_does_not_fail_the_pipeline() {
    let server = RedisServer::start();
    let fixture = ConnectionsFixture::new(&server.url());
    let commands = vec![command(&["SET", "a", "1"]), command(&["LPUSH", "a", "x"]), command(&["GET", "a"])];
    let answers = fixture.runtime.block_on(fixture.connections.request(commands)).unwrap();
    assert_eq!(answers[0], Value::Okay);
    assert!(matches!(&answers[1], Value::ServerError(error) if error.code() == "WRONGTYPE"), "{answers:?}");
    assert_eq!(answers[2], bytes("1"));
    assert!(matches!(fixture.send(&["LPUSH", "a", "x"]), Err(Fault::Permanent(why)) if why.contains("WRONGTYPE")));
}

#[test]
fn flushed_scripts_are_loaded_again_and_calls_keep_their_order() {
    let server = RedisServer::start();
    let fixture = ConnectionsFixture::new(&server.url());
    let calls: Vec<_> = (0..CALLS).map(|number| vec![number.to_string().into_bytes()]).collect();
    for _ in 0..2 {
        let called = fixture.runtime.block_on(fixture.connections.call_script_batch(
            &ECHO,
            &["k".to_owned()],
            calls.clone(),
            vec![command(&["ECHO", "behind"])],
        ));
        let expected: Vec<_> =
            (0..CALLS).map(|number| Ok(Value::Array(vec![bytes(&number.to_string()), Value::Int(1)]))).collect();
        assert_eq!(called.replies, expected);
        assert_eq!(called.trailing, vec![bytes("behind")]);
        server.cli(&["SCRIPT", "FLUSH"]);
    }
}

#[test]
fn unreachable_server_is_reported_and_reconnected() {
    let mut server = RedisServer::start();
    let fixture = ConnectionsFixture::new(&server.url());
    server.kill();
    let fault = fixture.send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains(&server.port().to_string())), "{fault}");
    assert!(fixture.connections.failure().is_some());
    server.restart();
    fixture.send_until_answered(&["PING"]);
    assert_eq!(fixture.connections.failure(), None);
    server.restart();
    fixture.send_until_answered(&["PING"]);
}

#[test]
fn silent_server_leaves_the_outcome_unknown_and_is_reconnected() {
    let server = RedisServer::start();
    let fixture = ConnectionsFixture::new(&server.url_with("timeout=200ms"));
    fixture.send(&["SET", "a", "1"]).unwrap();
    server.freeze();
    let fault = fixture.send(&["SET", "a", "2"]).unwrap_err();
    assert!(matches!(fault, Fault::OutcomeUnknown(_)), "it was sent: {fault}");
    let fault = fixture.send(&["SET", "a", "3"]).unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "the server is unreachable: {fault}");
    assert!(!fault.to_string().contains("TLS"), "plain lines have worked: {fault}");
    let newcomer = ConnectionsFixture::new(&server.url_with("timeout=200ms"));
    until("a hint", || {
        let fault = newcomer.send(&["PING"]).unwrap_err();
        fault.to_string().contains("if the server uses TLS on this port, write rediss://").then_some(())
    });
    server.thaw();
    fixture.send_until_answered(&["SET", "a", "4"]);
    assert_eq!(fixture.send(&["GET", "a"]), Ok(bytes("4")));
}

#[test]
fn subscription_delivers_messages_and_reports_gaps() {
    let server = RedisServer::start();
    let fixture = ConnectionsFixture::new(&server.url());
    let mut events = fixture.connections.subscribe(vec!["one".to_owned(), "two".to_owned()]);
    for round in 0..3 {
        assert_eq!(fixture.next_event(&mut events), ChannelEvent::Gap);
        let payload = format!("message {round}");
        for channel in ["two", "one"] {
            fixture.send(&["PUBLISH", channel, &payload]).unwrap();
            let message = ChannelEvent::Message { channel: channel.to_owned(), payload: payload.clone().into_bytes() };
            assert_eq!(fixture.next_event(&mut events), message);
        }
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
}

#[test]
fn wrong_credentials_and_databases_are_permanent_faults() {
    let users = vec!["user worker on >se:cret ~* &* +@all".to_owned()];
    let server = RedisServer::start_with(ServerOptions { password: Some("other"), users, ..Default::default() });
    let at = format!("127.0.0.1:{}", server.port());
    let fixture = ConnectionsFixture::new(&format!("redis://worker:se%3Acret@{at}/5"));
    fixture.send(&["SET", "a", "1"]).unwrap();
    assert_eq!(server.cli(&["-n", "5", "GET", "a"]), "1");
    ConnectionsFixture::new(&server.url()).send(&["PING"]).unwrap();
    for url in [format!("redis://worker:wrong@{at}"), format!("redis://:wrong@{at}"), format!("redis://{at}")] {
        let fault = ConnectionsFixture::new(&url).send(&["PING"]).unwrap_err();
        let message = fault.to_string();
        assert!(message.contains("rejects the user or the password") && !message.contains("wrong"), "{url}: {message}");
        assert!(!fault.is_transient(), "a wrong password is permanent: {url}: {message}");
    }
    let fault = ConnectionsFixture::new(&format!("redis://:other@{at}/99")).send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains("DB") && why.contains("number")), "{fault}");
}

#[test]
fn tls_connections_verify_the_configured_authority() {
    let server = RedisServer::start_with(ServerOptions { tls: true, ..Default::default() });
    let fixture = ConnectionsFixture::new(&server.url());
    fixture.send(&["SET", "a", "1"]).unwrap();
    let mut events = fixture.connections.subscribe(vec!["one".to_owned()]);
    assert_eq!(fixture.next_event(&mut events), ChannelEvent::Gap);
    let at = format!("127.0.0.1:{}", server.port());
    let fault = ConnectionsFixture::new(&format!("redis://{at}?timeout=300ms")).send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("write rediss://")), "{fault}");
    let fault = ConnectionsFixture::new(&format!("rediss://{at}?ca=/nowhere.pem")).send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains("/nowhere.pem")), "{fault}");
    let plain = RedisServer::start();
    let url = format!("rediss://127.0.0.1:{}?ca={}", plain.port(), server.ca().unwrap().display());
    let fault = ConnectionsFixture::new(&format!("{url}&timeout=300ms")).send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("write redis://")), "{fault}");
}

#[test]
fn connection_follows_the_master_of_the_sentinels() {
    let mut set = SentinelSet::start();
    let fixture = ConnectionsFixture::new(&set.url_with("timeout=500ms"));
    fixture.send_until_answered(&["SET", "a", "1"]);
    let before = set.master();
    set.servers[before].kill();
    let after = set.wait_for_other_than(before);
    fixture.send_until_answered(&["SET", "a", "2"]);
    assert_eq!(set.servers[after].cli(&["GET", "a"]), "2");
    let fault = ConnectionsFixture::new(&set.url_with("").replace("mymaster", "other")).send(&["PING"]).unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("`other`")), "{fault}");
}

#[test]
fn connection_follows_the_cluster_node_of_the_slot() {
    let mut set = ClusterSet::start(true);
    let fixture = ConnectionsFixture::new(&set.url_with("timeout=500ms"));
    fixture.send_until_answered(&["SET", "{cronken}:a", "1"]);
    let before = set.master_of("{cronken}");
    assert_eq!(set.servers[before].cli(&["GET", "{cronken}:a"]), "1");
    set.servers[before].kill();
    fixture.send_until_answered(&["SET", "{cronken}:a", "2"]);
    assert_eq!(set.servers[set.master_of("{cronken}")].cli(&["GET", "{cronken}:a"]), "2");
}
