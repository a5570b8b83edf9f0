//! Encrypted connections, credentials, an ensemble of three that loses members, and a server without the store's data.

use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobState, Record, RecordKey, RecordVersion};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Query, Store, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_remote::testing::until;
use cronhold_store_zookeeper::testing::{ZnodeEditor, ZooKeeperEnsemble, ZooKeeperServer};
use cronhold_store_zookeeper::{ZnodeTree, ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

/// Writes one record again and again, each time at the version that it wrote before.
struct CountingWriter {
    store: ZooKeeperStore,
    writer: u32,
    written: u64,
}

impl CountingWriter {
    fn open(url: &str) -> Self {
        let store = open(url, None);
        let writer = until("the writer enrolls", || block_on(store.enroll()).ok()).0;
        Self { store, writer, written: 0 }
    }

    /// Increments the record. A commit without a confirmed outcome is sent again, until one of its attempts is known to
    /// have taken effect.
    fn increment(&mut self) {
        let before = (self.written > 0).then(|| RecordVersion::new(self.writer, self.written));
        self.written += 1;
        let version = RecordVersion::new(self.writer, self.written);
        let record = Record::JobState(Arc::new(JobState { next_number: self.written, ..JobState::new(job()) }));
        let unit = Unit {
            version,
            compare: vec![(record.key(), before)],
            changes: vec![RecordChange::Put(record)],
            take: Vec::new(),
            free: Vec::new(),
        };
        until("the commit takes effect", || match block_on(self.store.commit(vec![unit.clone()])).remove(0) {
            Ok(UnitReceipt { .. }) => Some(()),
            Err(UnitRefusal::Fault(fault)) => {
                assert!(fault.is_transient(), "{fault}");
                None
            }
            // An attempt whose reply was lost has taken effect, or another process has written.
            Err(refusal) => {
                let found = block_on(self.store.load(&[key()])).ok()?.remove(0).expect("it was written");
                assert_eq!(found.version, version, "{refusal}");
                Some(())
            }
        });
    }
}

fn job() -> JobId {
    JobId::parse("a").expect("an id")
}

fn key() -> RecordKey {
    RecordKey::JobState(job())
}

fn open(url: &str, memory: Option<PathBuf>) -> ZooKeeperStore {
    let url = ZooKeeperUrl::parse(url, None).expect("a URL");
    ZooKeeperStore::open(&url, ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory }).expect("a thread")
}

fn number_in(store: &dyn Store) -> Option<u64> {
    let page = block_on(store.page(&Query::JobStates { after: None }, 2)).ok()?;
    match &page.records.first()?.record {
        Record::JobState(state) => Some(state.next_number),
        _ => None,
    }
}

#[test]
fn ensemble_loses_members_and_no_confirmed_commit() {
    let mut ensemble = ZooKeeperEnsemble::start();
    let url = format!("{}?timeout=3s", ensemble.url("/castle-cron"));
    let (mut writer, reader) = (CountingWriter::open(&url), open(&url, None));
    writer.increment();
    assert_eq!(number_in(&reader), Some(1));
    for _ in 0..2 {
        let leader = ensemble.kill_leader();
        (0..5).for_each(|_| writer.increment());
        ensemble.start_member(leader);
        let follower = ensemble.kill_follower();
        (0..5).for_each(|_| writer.increment());
        until("the mirror of another process follows", || {
            number_in(&reader).filter(|number| *number == writer.written)
        });
        ensemble.start_member(follower);
    }
    assert_eq!(writer.written, 21);
}

#[test]
fn connections_can_be_encrypted() {
    let server = ZooKeeperServer::start_encrypted();
    let mut writer = CountingWriter::open(&server.url("/castle-cron"));
    (0..3).for_each(|_| writer.increment());
    assert_eq!(number_in(&open(&server.url("/castle-cron"), None)), Some(3));
    let plain = open(&format!("zk://127.0.0.1:{}/castle-cron?timeout=1s", server.port()), None);
    assert!(matches!(block_on(plain.enroll()), Err(Fault::Unavailable(_))));
}

#[test]
fn only_the_user_of_the_url_can_access_its_znodes() {
    let server = ZooKeeperServer::start();
    let url = |user: &str| format!("zk://{user}127.0.0.1:{}/private", server.port());
    let mut writer = CountingWriter::open(&url("ada:secret@"));
    writer.increment();
    assert_eq!(number_in(&open(&url("ada:secret@"), None)), Some(1));
    for other in ["", "ada:wrong@", "bob:secret@"] {
        let store = open(&url(other), None);
        let fault = block_on(store.load(&[key()])).expect_err("another user");
        assert!(matches!(&fault, Fault::Permanent(why) if !why.contains("secret")), "{other}: {fault}");
    }
}

#[test]
fn users_of_the_servers_log_in_with_sasl() {
    let server = ZooKeeperServer::start_with_users(&[("ada", "secret"), ("bob", "hidden")]);
    let url = |user: &str, root: &str| format!("zk://{user}127.0.0.1:{}{root}?timeout=2s&auth=sasl", server.port());
    let mut writer = CountingWriter::open(&url("ada:secret@", "/of-ada"));
    (0..3).for_each(|_| writer.increment());
    assert_eq!(number_in(&open(&url("ada:secret@", "/of-ada"), None)), Some(3));
    CountingWriter::open(&url("bob:hidden@", "/of-bob")).increment();
    // Each znode belongs to the user who created it.
    let fault = block_on(open(&url("bob:hidden@", "/of-ada"), None).load(&[key()])).expect_err("another user");
    assert!(matches!(fault, Fault::Permanent(_)), "{fault}");
    for wrong in ["ada:wrong@", "eve:secret@"] {
        let fault = block_on(open(&url(wrong, "/of-ada"), None).load(&[key()])).expect_err("no such user");
        assert!(matches!(&fault, Fault::Permanent(why) if !why.contains("secret")), "{wrong}: {fault}");
    }
    let digest = url("ada:secret@", "/of-ada").replace("&auth=sasl", "");
    assert!(block_on(open(&digest, None).load(&[key()])).is_err(), "the server requires SASL");
}

#[test]
fn root_of_another_program_is_refused() {
    let server = ZooKeeperServer::start();
    let url = server.url("/castle-cron");
    let mut writer = CountingWriter::open(&url);
    writer.increment();
    ZnodeEditor::connect(&ZooKeeperUrl::parse(&url, None).expect("a URL")).write("cronhold/meta", b"something else");
    let fault = block_on(open(&url, None).load(&[key()])).expect_err("the format is unknown");
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains("/castle-cron/cronhold/meta")), "{fault}");
}

#[test]
fn position_on_disk_detects_a_restored_copy() {
    let mut server = ZooKeeperServer::start();
    let file = std::env::temp_dir().join(format!("cronhold-zookeeper-restored-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let url = server.url("/castle-cron");
    let store = open(&url, Some(file.clone()));
    block_on(store.time()).expect("the server replies");
    until("the position is on disk", || file.exists().then_some(()));
    drop(store);
    assert!(block_on(open(&url, Some(file.clone())).time()).is_ok(), "nothing was lost");
    server.restart_empty();
    block_on(open(&url, None).time()).expect("a process without a memory creates the store");
    let fault = block_on(open(&url, Some(file.clone())).time()).expect_err("the store is another one");
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains(&file.display().to_string())), "{fault}");
    std::fs::remove_file(&file).expect("it exists");
    assert!(block_on(open(&url, Some(file.clone())).time()).is_ok(), "an operator has decided to continue");
    let _ = std::fs::remove_file(&file);
}

#[test]
fn restored_ensemble_is_not_used_although_its_leader_is_new() {
    let mut ensemble = ZooKeeperEnsemble::start();
    let file = std::env::temp_dir().join(format!("cronhold-zookeeper-rollback-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let url = format!("{}?timeout=3s", ensemble.url("/castle-cron"));
    let mut writer = CountingWriter::open(&url);
    writer.increment();
    ensemble.back_up();
    writer.increment();
    // A process saves the position when it begins to use the store, and then once a second.
    for _ in 0..3 {
        let before = std::fs::read(&file).ok();
        let other = open(&url, Some(file.clone()));
        block_on(other.time()).expect("a majority replies");
        until("the position is on disk", || (std::fs::read(&file).ok() != before).then_some(()));
    }
    ensemble.restore();
    let is_rollback = |fault: Fault| match fault {
        Fault::Permanent(why) => Some(why.contains("rolled back")),
        _ => None,
    };
    let other = open(&url, Some(file.clone()));
    let found = until("the ensemble replies", || match block_on(other.time()) {
        Ok(time) => panic!("the restored ensemble is used at {time:?}"),
        Err(fault) => is_rollback(fault),
    });
    assert!(found, "another process has seen later changes");
    let _ = std::fs::remove_file(&file);
}

#[test]
fn store_that_was_created_anew_is_not_used_by_a_session_of_the_old_one() {
    let server = ZooKeeperServer::start();
    let url = ZooKeeperUrl::parse(&server.url("/castle-cron"), None).expect("a URL");
    let old = open(&server.url("/castle-cron"), None);
    block_on(old.time()).expect("the server replies");
    ZnodeTree::open(&url).expect("a thread").delete_all().expect("the server replies");
    block_on(open(&server.url("/castle-cron"), None).time()).expect("it creates the store");
    let fault = block_on(old.time()).expect_err("the store is another one");
    assert!(matches!(&fault, Fault::Permanent(why) if why.contains("rolled back")), "{fault}");
    assert_eq!(block_on(old.load(&[key()])), Err(fault), "only a person can decide to continue");
}

#[test]
fn process_that_was_running_does_not_use_a_restored_server() {
    let mut server = ZooKeeperServer::start();
    let url = format!("{}?timeout=2s", server.url("/castle-cron"));
    let mut writer = CountingWriter::open(&url);
    writer.increment();
    server.back_up();
    (0..3).for_each(|_| writer.increment());
    block_on(writer.store.time()).expect("the server replies");
    server.restore();
    server.restart();
    let why = until("the process notices it", || match block_on(writer.store.time()) {
        Ok(time) => panic!("the restored server is used at {time:?}"),
        Err(Fault::Permanent(why)) => Some(why),
        Err(_) => None,
    });
    assert!(why.contains("rolled back"), "{why}");
    assert!(matches!(block_on(writer.store.load(&[key()])), Err(Fault::Permanent(_))));
}
