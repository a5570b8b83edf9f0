//! What the conformance suite does not cover: batches, flushed scripts, namespaces, data of earlier versions, and keys of
//! the wrong type.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{JobState, LockName, Record, RecordKey, RecordVersion, Run, RunOwner};
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Obligation, Query, Store, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

/// Many more units than one script call takes.
const MANY: u64 = 1_500;

#[test]
fn many_units_commit_in_order_also_after_a_script_flush() {
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    let mut unit = 0;
    let mut version = None;
    for round in 0..3 {
        // All units but the first depend on the one before them.
        let units: Vec<Unit> = (0..MANY)
            .map(|number| {
                unit += 1;
                let put = put("one", round * MANY + number, RecordVersion::new(writer, unit), version);
                version = Some(put.version);
                put
            })
            .collect();
        let mut commit = store.commit(units);
        let mut early = Poll::Pending;
        if round == 1 {
            // The commit is in flight, and some or all of its calls may have a reply.
            early = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            server.cli(&["SCRIPT", "FLUSH"]);
        }
        let results = match early {
            Poll::Ready(results) => results,
            Poll::Pending => block_on(commit),
        };
        let failed = results.iter().position(Result::is_err);
        assert_eq!((results.len() as u64, failed), (MANY, None), "{:?}", failed.map(|place| &results[place]));
    }
    let found = block_on(store.load(&[RecordKey::JobState(job("one"))])).expect("it can be read");
    let Some(Record::JobState(state)) = found[0].as_ref().map(|stored| &stored.record) else { panic!("{found:?}") };
    assert_eq!(state.next_number, 3 * MANY - 1);
}

#[test]
fn script_flush_between_calls_is_recovered() {
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    for number in 1..=20 {
        server.cli(&["SCRIPT", "FLUSH"]);
        let name = format!("job {number}");
        let results = block_on(store.commit(vec![put(&name, number, RecordVersion::new(writer, number), None)]));
        assert_eq!(results, [Ok(UnitReceipt::default())]);
        server.cli(&["SCRIPT", "FLUSH"]);
        assert!(block_on(store.load(&[RecordKey::JobState(job(&name))])).expect("it can be read")[0].is_some());
    }
}

#[test]
fn namespaces_do_not_share_records() {
    let server = RedisServer::start();
    let names = ["", "namespace=plain", "namespace=%7Btag%7D:a%20b", "namespace=gr%C3%B6%C3%9Fe%25*%5B%5D%5C%22'"];
    let stores = names.map(|params| open(&server, params));
    for (number, store) in (1_u64..).zip(&stores) {
        let writer = block_on(store.enroll()).expect("a writer").0;
        let unit = put("a", number, RecordVersion::new(writer, number), None);
        assert_eq!(block_on(store.commit(vec![unit])), [Ok(UnitReceipt::default())]);
    }
    for (number, store) in (1_u64..).zip(&stores) {
        let page = block_on(store.page(&Query::JobStates { after: None }, 10)).expect("a page");
        let numbers: Vec<u64> = page
            .records
            .iter()
            .map(|stored| match &stored.record {
                Record::JobState(state) => state.next_number,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(numbers, [number]);
    }
    let keys = server.cli(&["KEYS", "*"]);
    for prefix in ["{cronken}:", "plain:", "{tag}:a b:", "größe%*[]\\\"':"] {
        assert!(keys.lines().any(|key| key == format!("{prefix}cronhold:meta")), "{prefix} is in {keys}");
    }
}

#[test]
fn key_of_wrong_type_is_named_and_nothing_is_written() {
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    let mut unit = 0;
    let mut attempt = || {
        unit += 1;
        let put = put("a", 1, RecordVersion::new(writer, unit), None);
        match block_on(store.commit(vec![put])).pop() {
            Some(Err(UnitRefusal::Fault(Fault::Permanent(message)))) => message,
            other => panic!("{other:?}"),
        }
    };
    for key in ["{cronken}:cronhold:job_states", "{cronken}:cronhold:index:job_states"] {
        server.cli(&["SET", key, "something else"]);
        let before = server.cli(&["HGET", "{cronken}:cronhold:meta", "seq"]);
        let message = attempt();
        assert!(message.contains(key), "{message}");
        assert_eq!(server.cli(&["HGET", "{cronken}:cronhold:meta", "seq"]), before);
        server.cli(&["DEL", key]);
    }
    server.cli(&["SET", "{cronken}:cronhold:jobs", "x"]);
    let loaded = block_on(store.load(&[RecordKey::Job(job("a"))]));
    assert!(matches!(&loaded, Err(Fault::Permanent(message)) if message.contains("cronhold:jobs")), "{loaded:?}");
    server.cli(&["SET", "{cronken}:cronhold:index:jobs", "x"]);
    let page = block_on(store.page(&Query::Jobs { after: None }, 3));
    assert!(matches!(&page, Err(Fault::Permanent(message)) if message.contains("index:jobs")), "{page:?}");
    server.cli(&["SET", "{cronken}:cronhold:due", "x"]);
    let due = block_on(store.due(None, Instant::EPOCH, 3));
    assert!(matches!(&due, Err(Fault::Permanent(message)) if message.contains("cronhold:due")), "{due:?}");
}

#[test]
fn unreadable_record_is_named_and_does_not_hide_others() {
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    let units = ["a", "b", "c"]
        .into_iter()
        .zip(1..)
        .map(|(name, number)| put(name, number, RecordVersion::new(writer, number), None));
    assert!(block_on(store.commit(units.collect())).iter().all(Result::is_ok));
    server.cli(&["HSET", "{cronken}:cronhold:job_states", "b", "nonsense"]);
    let page = block_on(store.page(&Query::JobStates { after: None }, 10)).expect("a page");
    assert_eq!((page.records.len(), page.unreadable.len()), (2, 1));
    assert!(page.unreadable[0].reason.contains("cronhold:job_states, field `b`"), "{:?}", page.unreadable);
    let loaded = block_on(store.load(&[RecordKey::JobState(job("b"))]));
    let Err(Fault::Unreadable(record)) = loaded else { panic!("{loaded:?}") };
    assert!(record.reason.contains("field `b`"), "{record}");
    // Its version is damaged too, and it can still be replaced, but not by a unit that expects another version.
    let expected = [Some(RecordVersion::new(writer, 2)), None, record.version];
    let units = expected.into_iter().zip(10..).map(|(expected, number)| {
        block_on(store.commit(vec![put("b", 7, RecordVersion::new(writer, number), expected)])).pop()
    });
    let results: Vec<bool> = units.map(|result| result.is_some_and(|result| result.is_ok())).collect();
    assert_eq!(results, [false, false, true]);
    let page = block_on(store.page(&Query::JobStates { after: None }, 10)).expect("a page");
    assert_eq!((page.records.len(), page.unreadable.len()), (3, 0));
}

/// Earlier versions wrote exact times into the index, and members for runs that a node owns.
#[test]
fn due_index_of_an_earlier_version_is_converted_when_it_is_read() {
    const DUE: &str = "{cronken}:cronhold:due";
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    let run = |number: i64, owner: Option<u128>, due: Option<i64>| {
        let id = RunId::from_key(Instant::from_secs(number), "a run");
        let run = Run::blank(id, RunNumber(1), job("a"), JobUid::from_bits(7), Instant::EPOCH);
        let owner = owner.map(|node| RunOwner { node: NodeId::from_bits(node), incarnation: 1 });
        Record::Run(Arc::new(Run { owner, due: due.map(Instant::from_secs), ..run }))
    };
    let records =
        [run(1, None, Some(1_000)), run(2, None, Some(2_000)), run(3, Some(7), Some(1_000)), run(4, None, None)];
    let unit = Unit {
        version: RecordVersion::new(writer, 1),
        compare: records.iter().map(|record| (record.key(), None)).collect(),
        changes: records.iter().cloned().map(RecordChange::Put).collect(),
        take: Vec::new(),
        free: Vec::new(),
    };
    assert!(block_on(store.commit(vec![unit])).iter().all(Result::is_ok));
    let members = || {
        let found = server.cli(&["ZRANGE", DUE, "0", "-1"]);
        found.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let current = members();
    assert_eq!(current.len(), 2, "neither a run of a node nor one without a due time: {current:?}");

    let exact = |number: usize, secs: i64| {
        let RecordKey::Run(id) = records[number].key() else { panic!("a run") };
        let micros = Instant::from_secs(secs).micros().cast_unsigned();
        format!("{:016x}6{id}", micros ^ 1 << 63)
    };
    // The second run has another time since, and an entry of each of its times.
    let earlier = [exact(0, 1_000), exact(1, 1_500), exact(1, 2_000), exact(2, 1_000), exact(3, 1_000)];
    server.cli(&["DEL", DUE]);
    for member in earlier.iter().map(String::as_str).chain(["no member of ours"]) {
        server.cli(&["ZADD", DUE, "0", member]);
    }
    let due = |until: i64| block_on(store.due(None, Instant::from_secs(until), 10)).expect("it can be read");
    let expected: Vec<Obligation> = [&records[0], &records[1]]
        .into_iter()
        .map(|record| Obligation { at: record.due().expect("it is due"), key: record.key() })
        .collect();
    assert_eq!(due(1_999), expected[..1]);
    assert_eq!(due(3_000), expected);
    assert_eq!(members(), [current, vec!["no member of ours".to_owned()]].concat());
    assert_eq!(due(3_000), expected);
}

#[test]
fn lock_of_another_program_counts_as_held() {
    let server = RedisServer::start();
    let store = open(&server, "");
    let writer = block_on(store.enroll()).expect("a writer").0;
    let (lock, run) = (LockName::parse("nightly").expect("a name"), RunId::from_key(Instant::EPOCH, "a run"));
    let mut unit = 0;
    let mut take = || {
        unit += 1;
        let take = vec![LockTake { lock: lock.clone(), holder: run, ttl: None }];
        let version = RecordVersion::new(writer, unit);
        let unit = Unit { version, compare: Vec::new(), changes: Vec::new(), take, free: Vec::new() };
        block_on(store.commit(vec![unit])).pop().expect("one answer")
    };
    assert!(take().is_ok());
    let digest = server.cli(&["EVAL", "return redis.sha1hex(ARGV[1])", "0", "nightly"]);
    let key = format!("{{cronken}}:locks:{}", digest.trim());
    assert_eq!(server.cli(&["EXISTS", &key]).trim(), "1");
    for token in ["3e1f6f0a-somebody else", "0123", ""] {
        server.cli(&["SET", &key, token]);
        let held = take();
        assert!(
            matches!(&held, Err(UnitRefusal::Held { lock: named, holder }) if *named == lock && *holder != run),
            "{held:?}"
        );
    }
    server.cli(&["DEL", &key]);
    server.cli(&["RPUSH", &key, "a list"]);
    assert!(matches!(take(), Err(UnitRefusal::Held { .. })), "a value of the wrong type counts as held");
    server.cli(&["DEL", &key]);
    assert!(take().is_ok());
}

fn open(server: &RedisServer, params: &str) -> RedisStore {
    let url = RedisUrl::parse(&server.url_with(params)).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    RedisStore::open(&url, options).expect("it can be opened")
}

fn job(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

/// A unit that writes one small record.
fn put(name: &str, number: u64, version: RecordVersion, expected: Option<RecordVersion>) -> Unit {
    let state = JobState { next_number: number, ..JobState::new(job(name)) };
    let compare = vec![(RecordKey::JobState(job(name)), expected)];
    let changes = vec![RecordChange::Put(Record::JobState(Arc::new(state)))];
    Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
}
