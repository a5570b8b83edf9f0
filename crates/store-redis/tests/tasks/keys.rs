//! The keys of tasks as SideJob's document has them, read by a plain client.

use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    Channel, ChildName, JsonObject, JsonText, PortAddress, PortDirection, PortItem, PortName, PortTarget, StateField,
    StepEnding, TaskAct, TaskAlias, TaskId, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{TaskStore, WindowLimits};
use cronhold_store_redis::testing::RedisServer;

use crate::fixture::{ClockedStore, PROCESS, new_task, step_id};

const PIPE: &str = r#"{"inports":{"in":{"default":[],"channels":["/a/b"]}},"outports":{"out":{},"*":{}},"icon":"x"}"#;

fn id(number: u64) -> TaskId {
    TaskId::new(number).expect("an id")
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).expect(text)
}

fn target(task: u64, direction: PortDirection, port: &str) -> PortTarget {
    PortTarget::new(id(task), direction, PortName::parse(port).expect(port))
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

/// A task with everything that can be stored.
fn create_rich_task(store: &ClockedStore) {
    let mut new = new_task("Pipe");
    new.args = Some(json(r#"[1,{"b":[],"a":9007199254740993}]"#));
    new.created_by = "someone".to_owned();
    assert_eq!(store.create(new), id(1));
    let mut child = new_task("Pipe");
    child.parent = Some((TaskTarget::Id(id(1)), ChildName::parse("a b").expect("a name")));
    child.inports = parse_ports(r#"{"in":{}}"#).expect("ports");
    child.at = Some(Instant::from_secs(1_800_000_100));
    assert_eq!(store.create(child), id(2));
    let item = PortItem::new(json(r#"{"z":1,"a":[]}"#))
        .with_context(JsonObject::new().with("job", json("7")))
        .with_options(JsonObject::new().with("log", json("false")));
    let write = TaskAct::Write {
        port: target(1, PortDirection::In, "in"),
        items: vec![item, PortItem::new(json("2"))],
        as_default: false,
        notify: false,
    };
    let field = |name: &str| StateField::parse(name).expect(name);
    store.commit(vec![
        write,
        TaskAct::SetState {
            task: TaskTarget::Id(id(1)),
            fields: vec![(field("n"), json("null")), (field("m"), json("[]"))],
        },
        TaskAct::AddAlias { task: TaskTarget::Id(id(1)), alias: TaskAlias::parse("import").expect("an alias") },
    ]);
}

#[test]
fn tasks_have_the_keys_of_sidejob() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let cli = |args: &str| server.cli(&args.split(' ').collect::<Vec<_>>());
    assert_eq!(cli("HGETALL workers:testq"), format!("Pipe\n{PIPE}"));
    create_rich_task(&store);
    assert_eq!((sorted(&cli("SMEMBERS jobs")), cli("GET jobs:last_id")), (vec!["1", "2"], "2".to_owned()));
    assert_eq!(cli("HGETALL jobs:aliases"), "import\n1");
    let args = r#"[1,{"b":[],"a":9007199254740993}]"#;
    assert_eq!(cli("GET job:1:worker"), format!(r#"{{"queue":"testq","class":"Pipe","args":{args}}}"#));
    assert_eq!(cli("GET job:2:worker"), r#"{"queue":"testq","class":"Pipe","args":null}"#);
    assert_eq!((cli("GET job:1:status"), cli("GET job:2:status")), ("queued".to_owned(), "queued".to_owned()));
    assert_eq!(cli("GET job:1:created_at"), "2027-01-15T08:00:00.250000000Z");
    assert_eq!((cli("GET job:1:created_by"), cli("EXISTS job:2:created_by")), ("someone".to_owned(), "1".to_owned()));
    assert_eq!((cli("EXISTS job:1:ran_at"), cli("SMEMBERS job:1:aliases")), ("0".to_owned(), "import".to_owned()));
    assert_eq!((cli("GET job:2:parent"), cli("HGETALL job:1:children")), ("1".to_owned(), "a b\n2".to_owned()));
    assert_eq!((cli("HGET job:1:state n"), cli("HGET job:1:state m")), ("null".to_owned(), "[]".to_owned()));
    assert_eq!(
        (cli("SMEMBERS job:1:inports"), sorted(&cli("SMEMBERS job:1:outports"))),
        ("in".to_owned(), vec!["*", "out"])
    );
    assert_eq!(cli("HGETALL job:1:inports:default"), "in\n{\"data\":[]}");
    assert_eq!(cli("HGETALL job:1:inports:channels"), "in\n[\"/a/b\"]");
    let items = "{\"data\":{\"z\":1,\"a\":[]},\"context\":{\"job\":7},\"options\":{\"log\":false}}\n{\"data\":2}";
    assert_eq!(cli("LRANGE job:1:in:in 0 -1"), items);
    assert_eq!(cli("SMEMBERS channel:/a/b"), "1");
    let entry = format!(
        r#"{{"retry":false,"queue":"testq","jid":1,"class":"Pipe","args":{args},"created_at":1800000000.25,"enqueued_at":1800000000.25}}"#
    );
    assert_eq!((cli("SMEMBERS queues"), cli("LRANGE queue:testq 0 -1")), ("testq".to_owned(), entry));
    let scheduled = r#"{"retry":false,"queue":"testq","jid":2,"class":"Pipe","args":[],"created_at":1800000000.25}"#;
    assert_eq!(cli("ZRANGE schedule 0 -1 WITHSCORES"), format!("{scheduled}\n1800000100"));
}

#[test]
fn running_task_has_the_keys_of_sidejob() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let cli = |args: &str| server.cli(&args.split(' ').collect::<Vec<_>>());
    create_rich_task(&store);
    store.pass(Span::from_secs(1));
    let leased = store.lease(&["Pipe"], &[1, 2]);
    assert_eq!(leased.len(), 1);
    assert_eq!((cli("GET job:1:status"), cli("LLEN queue:testq")), ("running".to_owned(), "0".to_owned()));
    assert_eq!(cli("GET job:1:ran_at"), "2027-01-15T08:00:01.250000000Z");
    assert_eq!(cli("GET job:1:lock"), step_id(1).to_string());
    let ttl = |key: &str| cli(&format!("TTL {key}")).parse::<i64>().expect("a number");
    assert!((1..=60).contains(&ttl("job:1:lock")) && (1..=60).contains(&ttl("job:1:rate:30000000")));
    assert_eq!(cli("GET job:1:rate:30000000"), "1");
    let unit = TaskUnit::step(
        id(1),
        step_id(1),
        StepEnding::Suspended,
        vec![TaskAct::Take {
            port: target(1, PortDirection::In, "in"),
            position: leased[0].window.inports[0].position,
            count: 2,
        }],
    );
    assert!(block_on(store.store.commit(vec![unit]))[0].is_ok());
    assert_eq!((cli("GET job:1:status"), cli("EXISTS job:1:lock")), ("suspended".to_owned(), "0".to_owned()));
    assert_eq!((cli("EXISTS job:1:in:in"), cli("GET stat:processed")), ("0".to_owned(), "1".to_owned()));
    assert_eq!((cli("GET stat:processed:2027-01-15"), cli("EXISTS stat:failed")), ("1".to_owned(), "0".to_owned()));
    let end = |task: u64| TaskAct::Terminate { task: TaskTarget::Id(id(task)), recursive: true };
    store.commit(vec![end(1)]);
    for leased in store.lease(&["Pipe"], &[3, 4]) {
        let unit = TaskUnit::step(leased.window.task.id, leased.step, StepEnding::ShutDown(None), Vec::new());
        assert!(block_on(store.store.commit(vec![unit]))[0].is_ok());
    }
    store.commit(vec![TaskAct::Delete { task: TaskTarget::Id(id(1)) }]);
    let left = cli("KEYS job:*");
    assert!(left.lines().all(|key| key.contains(":rate:")), "{left}");
    assert_eq!(
        (cli("EXISTS jobs"), cli("EXISTS jobs:aliases"), cli("ZCARD schedule")),
        ("0".into(), "0".into(), "0".into())
    );
    assert_eq!((cli("KEYS cronhold:task:*"), cli("KEYS cronhold:ports:*")), (String::new(), String::new()));
}

#[test]
fn process_has_the_keys_of_sidekiq() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let cli = |args: &[&str]| server.cli(args);
    assert_eq!(cli(&["SMEMBERS", "processes"]), PROCESS);
    let info = r#"{"hostname":"vm","started_at":1800000000.25,"pid":77,"tag":"cronhold","concurrency":2,"queues":["testq"],"labels":[],"identity":"vm:77:abcdef"}"#;
    assert_eq!(cli(&["HGET", PROCESS, "info"]), info);
    assert_eq!(cli(&["HMGET", PROCESS, "busy", "beat", "quiet"]), "0\n1800000000.25\nfalse");
    let ttl: i64 = cli(&["TTL", PROCESS]).parse().expect("a number");
    assert!((1..=60).contains(&ttl));
    block_on(store.store.deregister(&cronhold_store::tasks::ProcessId::new(PROCESS))).expect("it can stop");
    assert_eq!((cli(&["EXISTS", "processes"]), cli(&["EXISTS", PROCESS])), ("0".to_owned(), "0".to_owned()));
}

/// All keys have the prefix, so that several applications can share a server.
#[test]
fn prefix_is_before_every_key() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "tasks=shop");
    store.register(&[("Pipe", PIPE)]);
    create_rich_task(&store);
    store.lease(&["Pipe"], &[1]);
    let keys = server.cli(&["KEYS", "*"]);
    assert!(!keys.is_empty() && keys.lines().all(|key| key.starts_with("shop:")), "{keys}");
}

/// What Ruby writes is taken as it is: tasks, entries, items and statuses.
#[test]
fn writes_of_other_clients_are_read() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let cli = |args: &[&str]| server.cli(args);
    cli(&["SET", "jobs:last_id", "5"]);
    cli(&["SADD", "jobs", "5"]);
    cli(&[
        "MSET",
        "job:5:worker",
        r#"{"queue":"testq","class":"Pipe","args":[3]}"#,
        "job:5:status",
        "queued",
        "job:5:created_at",
        "2026-11-17T05:39:54.674779480Z",
        "job:5:created_by",
        "",
    ]);
    cli(&["SADD", "job:5:inports", "in"]);
    cli(&["RPUSH", "job:5:in:in", r#"{"data":1}"#, r#"{"data":2}"#]);
    cli(&[
        "LPUSH",
        "queue:testq",
        r#"{"retry":false,"queue":"testq","jid":5,"class":"Pipe","args":[3],"created_at":1794893994.6794279,"enqueued_at":1794893994.6794744}"#,
    ]);
    cli(&["LPUSH", "queue:testq", r#"{"queue":"testq","jid":99,"class":"Pipe","args":[]}"#]);
    let leased = store.lease(&["Pipe"], &[1, 2]);
    assert_eq!(leased.iter().map(|step| step.window.task.id).collect::<Vec<_>>(), [id(5)]);
    assert_eq!(
        (leased[0].window.inports[0].size, cli(&["LLEN", "queue:testq"]).as_str()),
        (2, "0"),
        "stale entries are dropped"
    );
    cli(&["RPUSH", "job:5:in:in", r#"{"data":3}"#]);
    let port = target(5, PortDirection::In, "in");
    let take = TaskAct::Take { port, position: leased[0].window.inports[0].position, count: 2 };
    let unit = TaskUnit::step(id(5), step_id(1), StepEnding::Completed, vec![take]);
    assert!(block_on(store.store.commit(vec![unit]))[0].is_ok());
    assert_eq!(cli(&["LRANGE", "job:5:in:in", "0", "-1"]), r#"{"data":3}"#);
    assert_eq!(store.create(new_task("Pipe")), id(6), "ids count on");
}

/// A lock of another client delays a step by a second, and stays.
#[test]
fn locks_of_other_clients_are_respected() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let task = store.create(new_task("Pipe"));
    server.cli(&["SET", "job:1:lock", "someone"]);
    assert_eq!(store.lease(&["Pipe"], &[1]), []);
    let record =
        block_on(store.store.window(task, &WindowLimits::STEP)).expect("it can be read").expect("it exists").task;
    assert_eq!((record.status, record.run_at), (TaskStatus::Queued, Some(Instant::from_micros(1_800_000_001_250_000))));
    assert_eq!(
        (server.cli(&["GET", "job:1:lock"]).as_str(), server.cli(&["ZCARD", "schedule"]).as_str()),
        ("someone", "1")
    );
    server.cli(&["DEL", "job:1:lock"]);
    store.pass(Span::from_secs(1));
    assert_eq!(store.lease(&["Pipe"], &[2]).len(), 1);
}

/// A task that is gone leaves a channel with the next message.
#[test]
fn channels_lose_stale_members() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    store.create(new_task("Pipe"));
    server.cli(&["SADD", "channel:/a/b", "77"]);
    let message = TaskAct::Publish { channel: Channel::parse("/a/b/c").expect("a channel"), message: json("1") };
    store.commit(vec![message]);
    assert_eq!(server.cli(&["SMEMBERS", "channel:/a/b"]), "1");
    let port = PortAddress { task: id(1), direction: PortDirection::In, port: PortName::parse("in").expect("a name") };
    let items =
        block_on(store.store.items(&port, 0, &WindowLimits::ITEMS)).expect("it can be read").expect("it exists");
    assert_eq!(items.items.len(), 1);
}

/// Somebody clears the queue, as Sidekiq's web page does. The task gets a place there again.
#[test]
fn entries_that_others_remove_come_back() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    let task = store.create(new_task("Pipe"));
    server.cli(&["DEL", "queue:testq"]);
    assert_eq!(store.lease(&["Pipe"], &[1]), []);
    store.pass(Span::from_secs(10));
    let run = || TaskAct::Run { task: TaskTarget::Id(task), forced: false, at: None };
    store.commit(vec![run()]);
    assert_eq!(server.cli(&["LLEN", "queue:testq"]), "1", "a request for a step pushes another entry");
    server.cli(&["DEL", "queue:testq"]);
    store.pass(Span::from_secs(40));
    store.beat();
    assert_eq!(store.lease(&["Pipe"], &[2]).len(), 1, "a heartbeat finds it");
}

/// A Ruby worker has died while it performed a task.
#[test]
fn task_that_another_worker_has_left_is_queued() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    store.create(new_task("Pipe"));
    server.cli(&["DEL", "queue:testq"]);
    server.cli(&["MSET", "job:1:status", "running", "job:1:ran_at", "2027-01-15T08:00:00.000000000Z"]);
    store.beat();
    assert_eq!(server.cli(&["GET", "job:1:status"]), "running", "it may still live");
    store.pass(Span::from_secs(60));
    store.beat();
    assert_eq!(store.lease(&["Pipe"], &[1]).len(), 1);
}

/// Keys that others have damaged or removed do not stop the tasks that are well, and are not looked at for ever.
#[test]
fn damaged_tasks_do_not_stop_others() {
    let server = RedisServer::start();
    let store = ClockedStore::open(&server, "");
    store.register(&[("Pipe", PIPE)]);
    for _ in 0..4 {
        store.create(new_task("Pipe"));
    }
    assert_eq!(store.lease(&["Pipe"], &[1, 2]).len(), 2);
    server.cli(&["SET", "job:1:status", "asleep"]);
    server.cli(&["DEL", "job:2:worker", "job:2:status"]);
    server.cli(&["SET", "job:3:worker", "nonsense"]);
    store.pass(Span::from_secs(60));
    let leased = store.lease(&["Pipe"], &[3, 4]);
    assert_eq!(leased.iter().map(|step| step.window.task.id).collect::<Vec<_>>(), [id(4)]);
    assert_eq!(server.cli(&["ZRANGE", "cronhold:steps", "0", "-1"]), "4");
}
