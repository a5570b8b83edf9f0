//! Znodes that were damaged, deleted or added by other programs: they affect only what needs them.

use std::sync::Arc;

use cronhold_core::args::Args;
use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    Actor, JobState, LockName, NodeRecord, Record, RecordKey, RecordKind, RecordVersion, ScheduleId, SkipSpan,
    Transition,
};
use cronhold_core::run::Reason;
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Query, Store, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_zookeeper::testing::{ZnodeEditor, ZooKeeperServer};
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

/// A store on a server of its own, with a writer, and an editor of its znodes.
struct EditedStore {
    store: ZooKeeperStore,
    editor: ZnodeEditor,
    writer: u32,
    units: u64,
    _server: ZooKeeperServer,
}

impl EditedStore {
    fn start() -> Self {
        let server = ZooKeeperServer::start();
        let url = ZooKeeperUrl::parse(&server.url("/edited"), None).expect("a URL");
        let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
        let store = ZooKeeperStore::open(&url, options).expect("a thread");
        let writer = block_on(store.enroll()).expect("the server replies").0;
        Self { store, editor: ZnodeEditor::connect(&url), writer, units: 0, _server: server }
    }

    /// A unit that changes records, and compares what it changes.
    fn unit(&mut self, changes: Vec<(RecordChange, Option<RecordVersion>)>) -> Unit {
        self.units += 1;
        let version = RecordVersion::new(self.writer, self.units);
        let compare = changes.iter().map(|(change, before)| (change.key(), *before)).collect();
        let changes = changes.into_iter().map(|(change, _)| change).collect();
        Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
    }

    fn creation(&mut self, job: &str) -> Unit {
        self.unit(vec![(RecordChange::Put(state(job)), None)])
    }

    fn taking(&mut self, lock: &LockName, holder: RunId) -> Unit {
        let take = vec![LockTake { lock: lock.clone(), holder, ttl: Some(Span::from_secs(60)) }];
        Unit { take, ..self.unit(Vec::new()) }
    }

    fn commit(&self, units: Vec<Unit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        block_on(self.store.commit(units))
    }

    fn states(&self) -> Vec<RecordKey> {
        let page = block_on(self.store.page(&Query::JobStates { after: None }, 1_000)).expect("the server replies");
        page.records.iter().map(|stored| stored.record.key()).collect()
    }
}

fn job(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

fn key(name: &str) -> RecordKey {
    RecordKey::JobState(job(name))
}

fn state(name: &str) -> Record {
    Record::JobState(Arc::new(JobState::new(job(name))))
}

fn span(id: RunId) -> Record {
    let log = vec![Transition::entered(id.time(), State::Skipped, Actor::Schedule)];
    Record::SkipSpan(Arc::new(SkipSpan {
        id,
        number: RunNumber(2),
        job: job("a"),
        uid: JobUid::from_bits(7),
        args: Args::new(),
        schedule: ScheduleId::parse("s").expect("an id"),
        range: CountedRange { from: id.time(), to: id.time().plus(Span::from_secs(1)), count: 1 },
        reason: Reason::Missed,
        actions: 0,
        log,
    }))
}

fn lock(name: &str) -> LockName {
    LockName::parse(name).expect("a name")
}

fn run(number: i64) -> RunId {
    RunId::from_key(Instant::from_secs(1_800_000_000 + number), "r")
}

#[test]
fn unreadable_lock_affects_only_those_who_need_it() {
    let mut edited = EditedStore::start();
    let (damaged, held) = (lock("damaged"), lock("held"));
    let takes = vec![edited.taking(&damaged, run(1)), edited.taking(&held, run(2))];
    assert!(edited.commit(takes).iter().all(Result::is_ok));
    edited.editor.write("cronhold/locks/damaged", b"garbage");
    let units = vec![edited.creation("a"), edited.taking(&damaged, run(1)), edited.creation("b")];
    let results = edited.commit(units);
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(matches!(&results[1], Err(UnitRefusal::Fault(Fault::Unreadable(_)))), "{results:?}");
    let before = edited.editor.read("cronhold/locks/held");
    let node = NodeRecord::new(NodeId::from_bits(7), "n", 1, Instant::from_secs(1_800_000_000));
    let locks = [(damaged.clone(), run(1)), (held.clone(), run(2))];
    assert_eq!(block_on(edited.store.beat(&node, &locks)), Ok(vec![locks[0].clone()]));
    assert_eq!(edited.editor.read("cronhold/locks/held"), before);
    let walk = block_on(edited.store.walk(RecordKind::Lock, None, 10)).expect("the server replies");
    let names: Vec<RecordKey> = walk.records.iter().map(|stored| stored.record.key()).collect();
    assert_eq!(names, [RecordKey::Lock(held)]);
    let unreadable: Vec<Option<RecordKey>> = walk.unreadable.iter().map(|record| record.key.clone()).collect();
    assert_eq!(unreadable, [Some(RecordKey::Lock(damaged))]);
}

#[test]
fn unit_that_can_never_be_written_is_refused_alone() {
    let mut edited = EditedStore::start();
    let span = span(run(3));
    let creation = edited.unit(vec![(RecordChange::Put(span.clone()), None)]);
    let version = creation.version;
    assert!(edited.commit(vec![creation])[0].is_ok());
    let id = run(3).to_string();
    let bucket = id.chars().last().expect("it has digits");
    let path = format!("cronhold/records/spans/{bucket}/{id}/note");
    edited.editor.write(&path, b"mine");
    let deletion = (RecordChange::Delete(span.key()), Some(version));
    for count in [1, 100] {
        let name = |number: usize| format!("{count} {number}");
        let mut units: Vec<Unit> = (0..count).map(|number| edited.creation(&name(number))).collect();
        units.push(edited.unit(vec![deletion.clone()]));
        units.push(edited.creation(&name(count)));
        let mut results = edited.commit(units);
        let refused = results.remove(count);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let is_named = |why: &String| why.contains(&id);
        assert!(matches!(&refused, Err(UnitRefusal::Fault(Fault::Permanent(why))) if is_named(why)), "{refused:?}");
    }
    edited.editor.delete(&path);
    let unit = edited.unit(vec![deletion]);
    assert!(edited.commit(vec![unit])[0].is_ok());
}

#[test]
fn deleted_folder_is_created_again() {
    let mut edited = EditedStore::start();
    assert_eq!(edited.states(), []);
    edited.editor.delete("cronhold/records/states");
    let units = vec![edited.creation("a"), edited.creation("b")];
    assert!(edited.commit(units).iter().all(Result::is_ok));
    assert_eq!(edited.states(), [key("a"), key("b")]);
    edited.editor.delete("cronhold/chains");
    edited.editor.delete("cronhold/locks");
    let mut units: Vec<Unit> = (0..100).map(|number| edited.creation(&number.to_string())).collect();
    units.push(edited.taking(&lock("l"), run(1)));
    assert!(edited.commit(units).iter().all(Result::is_ok));
    edited.editor.delete("cronhold/outputs");
    assert_eq!(block_on(edited.store.append(run(1), 0, b"12345")), Ok(5));
}

#[test]
fn unreadable_output_counts_as_empty() {
    let edited = EditedStore::start();
    for number in [1, 2] {
        assert_eq!(block_on(edited.store.append(run(number), 0, b"12345")), Ok(5));
    }
    edited.editor.write(&format!("cronhold/outputs/{}", run(1)), b"garbage");
    let sizes = block_on(edited.store.output_sizes(&[run(1), run(2)])).expect("the server replies");
    assert_eq!((sizes.total, sizes.of_runs), (5, vec![0, 5]));
}

#[test]
fn other_spelling_of_a_name_does_not_hide_the_record() {
    let mut edited = EditedStore::start();
    let unit = edited.creation("a/child");
    assert!(edited.commit(vec![unit])[0].is_ok());
    assert_eq!(edited.states(), [key("a/child")]);
    for alias in ["%61%2Fchild", "a%2fchild"] {
        edited.editor.write(&format!("cronhold/records/states/{alias}"), b"garbage");
        assert_eq!(edited.states(), [key("a/child")], "{alias}");
        edited.editor.delete(&format!("cronhold/records/states/{alias}"));
        assert_eq!(edited.states(), [key("a/child")], "{alias}");
    }
}
