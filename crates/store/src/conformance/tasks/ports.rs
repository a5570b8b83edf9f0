//! Ports: items, defaults, templates, and moving items between ports.

use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    ActOutcome, JsonObject, PortDirection, PortItem, StepEnding, TaskAct, TaskId, TaskRefusal, TaskStatus, TaskTarget,
};

use super::TaskSubject;
use super::fixture::{TaskFixture, address, child_of, item, json, port, values, with_inports, write};
use crate::tasks::WindowLimits;

use super::super::block_on;

fn set_ports(task: TaskId, direction: PortDirection, ports: &str) -> TaskAct {
    TaskAct::SetPorts { task: TaskTarget::Id(task), direction, ports: parse_ports(ports).expect(ports) }
}

fn set_default(task: TaskId, name: &str, default: Option<&str>) -> TaskAct {
    TaskAct::SetDefault { port: port(task, name), item: default.map(item) }
}

fn connect(from: TaskId, from_port: &str, to: &[(TaskId, &str)]) -> TaskAct {
    let to = to.iter().map(|(task, name)| port(*task, name)).collect();
    TaskAct::Connect { from: port(from, from_port), to }
}

pub fn items_are_read_in_their_order(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    assert_eq!(fixture.read(task, "in:in"), None);
    let written = ["true", "null", "123", "1.50", r#""text""#, r#"[1,"2",{}]"#, r#"{"b":1,"a":[]}"#];
    fixture.act(write(task, "in:in", &written[..3]));
    fixture.act(write(task, "in:in", &written[3..]));
    assert_eq!(fixture.port(task, "in:in").map(|port| port.size), Some(7));
    for value in written {
        assert_eq!(fixture.read(task, "in:in").as_deref(), Some(value));
    }
    assert_eq!((fixture.read(task, "in:in"), fixture.port(task, "in:in").map(|port| port.size)), (None, Some(0)));
}

pub fn several_items_are_read_at_once(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:other", &["1", "2", "3"]));
    for (count, expected) in [(2, "1 2"), (9, "3"), (9, "")] {
        let pop = TaskAct::Pop { port: port(task, "in:other"), count, or_default: false };
        match fixture.act(pop) {
            ActOutcome::Items(items) => assert_eq!(values(&items), expected),
            other => panic!("a read returns items, and not {other:?}"),
        }
    }
}

pub fn default_is_read_while_a_port_is_empty(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    assert_eq!(fixture.port(task, "in:in").map(|port| port.default.is_some()), Some(false));
    for default in ["true", "false", "null", "1", r#""x""#, "{}", "[]"] {
        fixture.act(set_default(task, "in:in", Some(default)));
        assert_eq!(fixture.port(task, "in:in").map(|port| port.size), Some(0), "a default is not an item");
        assert_eq!(fixture.read(task, "in:in").as_deref(), Some(default));
        assert_eq!(fixture.read(task, "in:in").as_deref(), Some(default), "again and again");
    }
    fixture.act(write(task, "in:in", &["7"]));
    assert_eq!(fixture.read(task, "in:in").as_deref(), Some("7"), "items come first");
    assert_eq!(fixture.read(task, "in:in").as_deref(), Some("[]"));
    fixture.act(set_default(task, "in:in", None));
    assert_eq!(fixture.read(task, "in:in"), None);
}

pub fn written_default_replaces_the_default(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Suspended);
    let items = vec![item("1"), item("2")];
    fixture.act(TaskAct::Write { port: port(task, "in:in"), items, as_default: true, notify: true });
    assert_eq!(fixture.port(task, "in:in").map(|port| port.size), Some(0));
    assert_eq!(fixture.read(task, "in:in").as_deref(), Some("2"));
    assert_eq!(fixture.status(task), TaskStatus::Queued, "a written default runs the task");
}

/// Contexts and options are returned as they were written.
pub fn items_keep_context_and_options(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let object = |text: &str| JsonObject::parse(text).expect(text);
    let items = vec![
        PortItem::new(json("5")),
        PortItem::new(json("[]")).with_context(JsonObject::new()),
        PortItem::new(json("null")).with_context(object(r#"{"job":1}"#)).with_options(object(r#"{"log":false}"#)),
        PortItem::new(json("{}")).with_options(JsonObject::new()),
    ];
    let act = TaskAct::Write { port: port(task, "in:in"), items: items.clone(), as_default: false, notify: false };
    fixture.act(act);
    assert_eq!(fixture.port(task, "in:in").map(|port| port.items), Some(items.clone()));
    let act = TaskAct::SetDefault { port: port(task, "in:in"), item: Some(items[2].clone()) };
    fixture.act(act);
    assert_eq!(fixture.port(task, "in:in").and_then(|port| port.default), Some(items[2].clone()));
}

pub fn unknown_ports_are_refused(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (closed, open) = (fixture.create("Pipe"), fixture.create("Open"));
    for name in ["in:IN", "out:in", "in:unknown"] {
        let unknown = TaskRefusal::UnknownPort(address(closed, name));
        assert_eq!(fixture.refusal(write(closed, name, &["1"])), unknown);
        assert_eq!(fixture.refusal(set_default(closed, name, Some("1"))), unknown);
    }
    let template = fixture.refusal(write(open, "in:*", &["1"]));
    assert!(matches!(template, TaskRefusal::TemplatePort(_)), "{template}");
}

/// Ports on demand inherit the options of the template, channels included.
pub fn template_creates_ports_on_demand(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Open");
    assert_eq!(fixture.ports(task), " | ", "the template is not listed");
    assert!(fixture.window(task).has_inport_template && fixture.window(task).has_outport_template);
    assert_eq!(fixture.read(task, "in:any").as_deref(), Some("123"));
    assert_eq!(fixture.ports(task), "any | ");
    fixture.act(write(task, "out:some", &["1"]));
    assert_eq!(fixture.ports(task), "any | some");
    let some = fixture.port(task, "out:some").expect("it was created");
    assert_eq!((some.size, some.channels.len()), (1, 1));
    fixture.act(set_default(task, "in:any", Some("4")));
    assert_eq!(fixture.read(task, "in:another").as_deref(), Some("123"), "the template keeps its default");
}

pub fn replaced_ports_keep_their_items(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pass", r#"{"a":{"default":1},"b":{}}"#));
    for direction in [PortDirection::In, PortDirection::Out] {
        let name = |port: &str| format!("{direction}:{port}");
        fixture.act(set_ports(task, direction, r#"{"a":{"default":1},"b":{}}"#));
        fixture.act(write(task, &name("a"), &["7"]));
        fixture.act(write(task, &name("b"), &["8"]));
        fixture.act(set_ports(task, direction, r#"{"a":{"default":2},"c":{"channels":["/x"]}}"#));
        assert_eq!(fixture.read(task, &name("a")).as_deref(), Some("7"));
        assert_eq!(fixture.read(task, &name("a")).as_deref(), Some("2"), "then the new default");
        assert_eq!(fixture.port(task, &name("b")), None);
        let refusal = fixture.refusal(write(task, &name("b"), &["1"]));
        assert_eq!(refusal, TaskRefusal::UnknownPort(address(task, &name("b"))));
        fixture.act(set_ports(task, direction, r#"{"b":{}}"#));
        assert_eq!(fixture.values(task, &name("b")), "", "the items of a removed port are gone");
    }
    let pipe = fixture.create("Pipe");
    fixture.act(set_ports(pipe, PortDirection::In, "{}"));
    assert_eq!(fixture.ports(pipe), "in other | out", "the ports of the class are always there");
}

pub fn write_runs_the_task_that_reads(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create_in(TaskStatus::Completed);
    let child = fixture.create_task(child_of(parent, "a", "Pipe"));
    let sleep = || {
        while let Some(leased) = fixture.lease() {
            fixture.finish(&leased, StepEnding::Suspended);
        }
    };
    sleep();
    fixture.act(write(child, "in:in", &["1"]));
    assert_eq!((fixture.status(child), fixture.status(parent)), (TaskStatus::Queued, TaskStatus::Suspended));
    sleep();
    fixture.act(write(child, "out:out", &["1"]));
    assert_eq!((fixture.status(child), fixture.status(parent)), (TaskStatus::Suspended, TaskStatus::Queued));
    sleep();
    for name in ["in:in", "out:out"] {
        fixture.act(TaskAct::Write {
            port: port(child, name),
            items: vec![item("1")],
            as_default: false,
            notify: false,
        });
    }
    assert_eq!((fixture.status(child), fixture.status(parent)), (TaskStatus::Suspended, TaskStatus::Suspended));
    fixture.act(write(parent, "out:out", &["1"]));
    assert_eq!(fixture.status(parent), TaskStatus::Suspended, "it has no parent");
}

pub fn connected_ports_get_all_items(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (from, to, other) = (fixture.create("Pipe"), fixture.create("Pipe"), fixture.create("Pipe"));
    while let Some(leased) = fixture.lease() {
        fixture.finish(&leased, StepEnding::Suspended);
    }
    let nothing = fixture.act(connect(from, "out:out", &[(to, "in:in")]));
    assert_eq!((nothing, fixture.status(to)), (ActOutcome::Items(Vec::new()), TaskStatus::Suspended));
    fixture.act(write(to, "in:in", &["0"]));
    let context = JsonObject::parse(r#"{"job":9}"#).expect("an object");
    let items = vec![item("1"), item("2").with_context(context)];
    let act = TaskAct::Write { port: port(from, "out:out"), items: items.clone(), as_default: false, notify: false };
    fixture.act(act);
    let moved = fixture.act(connect(from, "out:out", &[(to, "in:in"), (other, "in:in")]));
    assert_eq!(moved, ActOutcome::Items(items.clone()));
    assert_eq!((fixture.values(from, "out:out").as_str(), fixture.values(to, "in:in").as_str()), ("", "0 1 2"));
    assert_eq!(fixture.port(other, "in:in").map(|port| port.items), Some(items), "items keep their context");
    assert_eq!(fixture.status(other), TaskStatus::Queued);
}

pub fn connected_ports_get_the_default(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (from, to) = (fixture.create("Pipe"), fixture.create("Pipe"));
    let sleep = || {
        while let Some(leased) = fixture.lease() {
            fixture.finish(&leased, StepEnding::Suspended);
        }
    };
    sleep();
    let connect = || fixture.act(connect(from, "in:in", &[(to, "in:other")]));
    connect();
    assert_eq!(fixture.read(to, "in:other").as_deref(), Some(r#""default""#), "the source has no default");
    fixture.act(set_default(from, "in:in", Some("5")));
    connect();
    assert_eq!(fixture.read(to, "in:other").as_deref(), Some("5"));
    assert_eq!(fixture.status(to), TaskStatus::Queued, "its default has changed");
    sleep();
    connect();
    assert_eq!(fixture.status(to), TaskStatus::Suspended, "nothing has changed");
}

pub fn connected_out_port_runs_the_parent_and_publishes(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let child = fixture.create_task(child_of(parent, "a", "Pipe"));
    let listening = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/sum"]}}"#));
    let channels = vec![super::fixture::channel("/sum")];
    fixture.act(TaskAct::SetChannels { port: port(child, "out:out"), channels: channels.clone() });
    fixture.act(TaskAct::SetChannels { port: port(child, "in:other"), channels });
    fixture.act(write(child, "in:in", &["1", "2"]));
    while let Some(leased) = fixture.lease() {
        fixture.finish(&leased, StepEnding::Suspended);
    }
    fixture.act(connect(child, "in:in", &[(child, "in:other")]));
    assert_eq!(fixture.values(listening, "in:in"), "", "in ports publish nothing");
    while let Some(leased) = fixture.lease() {
        fixture.finish(&leased, StepEnding::Suspended);
    }
    fixture.act(connect(child, "in:other", &[(child, "out:out")]));
    assert_eq!((fixture.status(parent), fixture.status(child)), (TaskStatus::Queued, TaskStatus::Queued));
    assert_eq!(fixture.values(listening, "in:in"), "1 2");
    assert_eq!(fixture.values(child, "in:other"), "1 2", "the in port hears the channel too");
}

/// A refused connection moves nothing.
pub fn refused_connection_moves_nothing(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (from, to) = (fixture.create("Pipe"), fixture.create("Pipe"));
    fixture.act(write(from, "in:in", &["1"]));
    fixture.refusal(connect(from, "in:in", &[(to, "in:in"), (to, "in:unknown")]));
    assert_eq!((fixture.values(from, "in:in").as_str(), fixture.values(to, "in:in").as_str()), ("1", ""));
}

pub fn windows_are_limited(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let many: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    fixture.act(write(task, "in:in", &many));
    let long = format!("\"{}\"", "x".repeat(40_000));
    fixture.act(write(task, "in:other", &[&long, &long, &long]));
    let window = |name: &str| fixture.port(task, name).expect("it exists");
    assert_eq!((window("in:in").size, window("in:in").items.len()), (200, 64), "a number of items");
    assert_eq!((window("in:other").size, window("in:other").items.len()), (3, 1), "bytes");
    let limits = WindowLimits { items: 100, bytes: 1 << 20, children: 0 };
    let first = window("in:in").position;
    let page = block_on(fixture.store.items(&address(task, "in:in"), first + 64, &limits));
    let page = page.expect("items can be read").expect("the port exists");
    assert_eq!((page.position, values(&page.items)), (first + 64, many[64..164].join(" ")));
    let tight = WindowLimits { items: 10, bytes: 1, children: 0 };
    let page = block_on(fixture.store.items(&address(task, "in:other"), 0, &tight)).expect("items can be read");
    assert_eq!(page.map(|page| page.items.len()), Some(1), "the first item is always there");
    assert_eq!(block_on(fixture.store.items(&address(task, "in:none"), 0, &limits)), Ok(None));
}

/// A request takes a bounded part of a port, which can be repeated, and moves a bounded amount.
pub fn reads_and_connections_are_limited(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (task, other) = (fixture.create("Pipe"), fixture.create("Pipe"));
    let item = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    for _ in 0..3 {
        fixture.act(write(task, "out:out", &[item.as_str(); 6]));
    }
    let connect = TaskAct::Connect { from: port(task, "out:out"), to: vec![port(other, "in:in")] };
    assert!(matches!(fixture.refusal(connect.clone()), TaskRefusal::TooLarge { .. }));
    let taken = |outcome| match outcome {
        ActOutcome::Items(items) => items.len(),
        other => panic!("items are returned, and not {other:?}"),
    };
    let pop = TaskAct::Pop { port: port(task, "out:out"), count: u64::MAX, or_default: false };
    assert_eq!((taken(fixture.act(pop.clone())), taken(fixture.act(connect))), (17, 1));
    assert_eq!(taken(fixture.act(pop)), 0);
}

/// Items that are moved to an out port wake the parent of its task, and not the task.
pub fn connection_to_an_out_port_wakes_the_parent_only(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create_in(TaskStatus::Suspended);
    let child = fixture.create_task(child_of(parent, "a", "Pipe"));
    fixture.act(write(child, "in:in", &["1", "2"]));
    while let Some(leased) = fixture.lease() {
        fixture.finish(&leased, StepEnding::Suspended);
    }
    fixture.act(connect(child, "in:in", &[(child, "out:out")]));
    assert_eq!((fixture.status(parent), fixture.status(child)), (TaskStatus::Queued, TaskStatus::Suspended));
    assert_eq!((fixture.values(child, "in:in").as_str(), fixture.values(child, "out:out").as_str()), ("", "1 2"));
    fixture.act(connect(child, "out:out", &[(child, "out:out")]));
    assert_eq!(fixture.values(child, "out:out"), "1 2", "a port that is connected to itself keeps its items");
}

/// A default of the source replaces that of each target.
pub fn connection_copies_the_default_to_all_targets(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (from, to, other) = (fixture.create("Pipe"), fixture.create("Pipe"), fixture.create("Pipe"));
    fixture.act(set_default(from, "in:in", Some("null")));
    let moved = fixture.act(connect(from, "in:in", &[(to, "in:in"), (other, "in:other")]));
    assert_eq!(moved, ActOutcome::Items(Vec::new()));
    for (task, name) in [(from, "in:in"), (to, "in:in"), (other, "in:other")] {
        assert_eq!(fixture.read(task, name).as_deref(), Some("null"));
    }
}
