//! Channels: messages reach ports and listeners, up the hierarchy.

use cronhold_core::task::{JsonObject, JsonText, PortDirection, StepEnding, TaskAct, TaskStatus, TaskTarget, TaskUnit};

use cronhold_schedule::Span;

use super::super::block_on;
use super::TaskSubject;
use super::fixture::{TaskFixture, channel, id, port, publish, values, with_inports, write};

pub fn message_reaches_ports_on_its_channel_and_above(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let near = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/namespace/mychannel"]}}"#));
    let above = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/namespace"]}}"#));
    let other = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/namespace/my"]}}"#));
    while let Some(leased) = fixture.lease() {
        fixture.finish(&leased, StepEnding::Suspended);
    }
    fixture.act(publish("/namespace/mychannel", r#"{"a":1}"#));
    let context = JsonObject::parse(r#"{"channel":"/namespace/mychannel"}"#).expect("an object");
    for task in [near, above] {
        let items = fixture.port(task, "in:in").expect("it exists").items;
        assert_eq!(values(&items), r#"{"a":1}"#, "once");
        assert_eq!(items[0].context.as_ref(), Some(&context), "the context names the channel of the message");
        assert_eq!(fixture.status(task), TaskStatus::Queued);
    }
    assert_eq!((fixture.values(other, "in:in").as_str(), fixture.status(other)), ("", TaskStatus::Suspended));
}

/// A port that listens to two levels gets a message of the lower one twice.
pub fn port_on_two_levels_gets_a_message_twice(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task =
        fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/a","/a/b"]},"all":{"channels":["/a/b"]}}"#));
    fixture.act(publish("/a/b", "1"));
    assert_eq!((fixture.values(task, "in:in").as_str(), fixture.values(task, "in:all").as_str()), ("1 1", "1"));
    fixture.act(publish("/a", "2"));
    assert_eq!((fixture.values(task, "in:in").as_str(), fixture.values(task, "in:all").as_str()), ("1 1 2", "1"));
}

pub fn port_leaves_channels(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/a","/b"]}}"#));
    let set = |channels: &[&str]| TaskAct::SetChannels {
        port: port(task, "in:in"),
        channels: channels.iter().map(|text| channel(text)).collect(),
    };
    fixture.act(set(&["/b", "/c"]));
    for name in ["/a", "/b", "/c"] {
        fixture.act(publish(name, &format!("\"{name}\"")));
    }
    assert_eq!(fixture.values(task, "in:in"), r#""/b" "/c""#);
    fixture.act(set(&[]));
    fixture.act(publish("/b", "1"));
    assert_eq!(fixture.values(task, "in:in"), r#""/b" "/c""#);
    let channels = block_on(fixture.store.channels(None, 9)).expect("channels can be read");
    assert_eq!(channels, []);
}

pub fn out_port_publishes_what_is_written(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let from = fixture.create("Pipe");
    let to = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/x"]},"y":{"channels":["/y"]}}"#));
    let channels = vec![channel("/x/1"), channel("/y")];
    fixture.act(TaskAct::SetChannels { port: port(from, "out:out"), channels });
    fixture.act(write(from, "out:out", &["1", "2"]));
    assert_eq!((fixture.values(to, "in:in").as_str(), fixture.values(to, "in:y").as_str()), ("1 2", "1 2"));
    assert_eq!(fixture.values(from, "out:out"), "1 2", "the items stay in the out port too");
    let default = vec![super::fixture::item("3")];
    fixture.act(TaskAct::Write { port: port(from, "out:out"), items: default, as_default: true, notify: true });
    assert_eq!(fixture.values(to, "in:y"), "1 2 3", "a written default is published");
}

/// What a step writes names its task.
pub fn messages_of_a_step_name_its_task(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let to = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/x"]}}"#));
    fixture.perform(to, StepEnding::Suspended);
    let from = fixture.create("Pipe");
    let leased = fixture.lease_of(from);
    fixture.end(&leased, StepEnding::Completed, vec![publish("/x", "1")]).expect("it holds its task");
    let items = fixture.port(to, "in:in").expect("it exists").items;
    let context = JsonObject::parse(r#"{"channel":"/x","job":2}"#).expect("an object");
    assert_eq!(items[0].context.as_ref(), Some(&context));
}

pub fn listener_receives_messages_of_its_channels_and_below(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let mut listener = fixture.listen(&["/a", "/b/c"]);
    for (name, message) in [("/a/x", "1"), ("/a", "[2]"), ("/b", "3"), ("/b/c", "4"), ("/c", "5")] {
        fixture.act(publish(name, message));
    }
    assert_eq!(fixture.heard(&mut *listener, "/a"), ["/a 1", "/a [2]", "/b/c 4"]);
    drop(listener);
    fixture.act(publish("/a", "6"));
    let mut listener = fixture.listen(&["/a"]);
    assert_eq!(fixture.heard(&mut *listener, "/a"), [""; 0], "a listener receives what comes after it");
}

/// A refused unit publishes nothing.
pub fn refused_unit_publishes_nothing(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let mut listener = fixture.listen(&["/"]);
    let task = fixture.create("Pipe");
    fixture.heard(&mut *listener, "/z");
    let acts = vec![publish("/a", "1"), write(task, "in:in", &["1"]), write(task, "in:unknown", &["1"])];
    fixture.commit(acts).expect_err("a port is unknown");
    assert_eq!(fixture.heard(&mut *listener, "/z"), [""; 0]);
    assert_eq!(fixture.values(task, "in:in"), "");
}

/// A port that listens to the log gets entries, and these cause no further ones.
pub fn log_entries_cause_no_log_entries(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let ports = r#"{"log":{"channels":["/sidejob/log"]},"all":{"channels":["/"]}}"#;
    let task = fixture.create_task(with_inports("Pass", ports));
    fixture.act(TaskAct::SetPorts {
        task: TaskTarget::Id(task),
        direction: PortDirection::In,
        ports: cronhold_core::task::port::parse_ports(ports).expect("ports"),
    });
    let before = fixture.port(task, "in:all").map(|port| port.size);
    fixture.act(publish("/sidejob/log", r#"{"message":"x"}"#));
    assert_eq!(fixture.values(task, "in:log"), r#"{"message":"x"}"#);
    assert_eq!(fixture.port(task, "in:all").map(|port| port.size), before.map(|size| size + 1));
    fixture.act(publish("/b", "1"));
    let items = fixture.port(task, "in:log").expect("it exists").items;
    assert_eq!(items.len(), 2, "the delivery of a message is logged");
    let entry = items[1].data.as_str();
    let expected = format!(r#""read":[],"write":[{{"job":{task},"data":[1],"inport":"all"}}]}}"#);
    assert!(entry.starts_with(r#"{"channel":"/b","timestamp":"#) && entry.ends_with(&expected), "{entry}");
    assert!(!items[1].is_logged(), "reading it is not logged");
}

/// What a request reads and writes is one entry; what a connection moves is an entry of its own.
pub fn requests_are_logged(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let mut listener = fixture.listen(&["/sidejob/log"]);
    let silent = super::fixture::item("9").with_options(JsonObject::parse(r#"{"log":false}"#).expect("an object"));
    let silent = TaskAct::Write { port: port(task, "in:in"), items: vec![silent], as_default: false, notify: true };
    fixture.act(silent);
    fixture.commit(vec![write(task, "in:in", &["1", "2"]), write(task, "out:out", &["3"])]).expect("both ports exist");
    let pop = TaskAct::Pop { port: port(task, "in:in"), count: 2, or_default: true };
    fixture.act(pop.clone());
    fixture
        .act(TaskAct::Connect { from: port(task, "in:in"), to: vec![port(task, "in:other"), port(task, "out:out")] });
    fixture.act(pop);
    let heard = fixture.heard(&mut *listener, "/sidejob/log");
    let entries: Vec<&str> =
        heard.iter().filter_map(|entry| entry.split_once(r#"000Z",""#).map(|(_, rest)| rest)).collect();
    let one =
        |direction: &str, name: &str, data: &str| format!(r#"{{"job":1,"data":[{data}],"{direction}":"{name}"}}"#);
    let (input, other, out) =
        (|data| one("inport", "in", data), one("inport", "other", "2"), |data| one("outport", "out", data));
    assert_eq!(
        entries,
        [
            format!(r#"read":[],"write":[{},{}]}}"#, input("1,2"), out("3")),
            format!(r#"read":[{}],"write":[]}}"#, input("1")),
            format!(r#"read":[{}],"write":[{other},{}]}}"#, input("2"), out("2")),
        ],
        "an item that is not to be logged is in no entry, neither is a read that returns nothing"
    );
}

/// A task that listens to status changes is woken by its own, which comes to an end.
pub fn status_listener_does_not_loop_within_a_unit(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/sidejob/job"]}}"#));
    let read = |from: usize| {
        let items = fixture.port(task, "in:in").expect("it exists").items;
        values(&items[from..])
    };
    assert_eq!(read(0), r#"{"status":"queued"}"#);
    let leased = fixture.lease_of(task);
    assert_eq!(read(1), r#"{"status":"running"} {"status":"queued"}"#);
    fixture.finish(&leased, StepEnding::Completed);
    assert_eq!(fixture.status(task), TaskStatus::Queued, "it has something to read");
}

pub fn message_reaches_many_subscribers(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let create = TaskAct::Create(with_inports("Pass", r#"{"in":{"channels":["/wide"]}}"#));
    fixture.commit(vec![create; 10_000]).expect("tasks can be created");
    fixture.commit_unit(TaskUnit::request(vec![publish("/wide/x", "1"), publish("/wide", "2")])).expect("published");
    for number in [1, 999, 10_000] {
        assert_eq!(fixture.values(id(number), "in:in"), "1 2");
    }
    let channels = block_on(fixture.store.channels(None, 9)).expect("channels can be read");
    let channels: Vec<(&str, u64)> = channels.iter().map(|found| (found.channel.as_str(), found.subscribers)).collect();
    assert_eq!(channels, [("/wide", 10_000)]);
}

/// Tasks that listen to the statuses of all tasks wake each other, which does not stop leases.
pub fn many_listeners_to_statuses_refuse_no_lease(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    fixture.commit(vec![TaskAct::Create(with_inports("Pass", r#"{"in":{}}"#)); 320]).expect("tasks can be created");
    fixture.finish_all(&fixture.lease_many(320), &StepEnding::Completed);
    let leased = fixture.create("Pass");
    let listen = |number| TaskAct::SetChannels { port: port(id(number), "in:in"), channels: vec![channel("/")] };
    fixture.commit((1..=320).map(listen).collect()).expect("ports can listen");
    let mut log = fixture.listen(&["/sidejob/log"]);
    let step = fixture.lease_of(leased);
    let heard = fixture.heard(&mut *log, "/sidejob/log");
    assert!(heard.iter().any(|entry| entry.contains("messages about deliveries were left out")), "{heard:?}");
    for number in [1, 320] {
        assert!(fixture.values(id(number), "in:in").starts_with(r#"{"status":"running"}"#));
        assert_eq!(fixture.status(id(number)), TaskStatus::Queued, "it is woken");
    }
    fixture.finish(&step, StepEnding::Completed);
}

/// Channels can be read back. Those of an in port receive, those of an out port do not, and replacing the ports of a task
/// replaces their channels.
pub fn channels_of_ports_are_replaced(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Open", r#"{"in":{"channels":["/a","/b","/a"]}}"#));
    let set_ports = |direction, ports: &str| TaskAct::SetPorts {
        task: TaskTarget::Id(task),
        direction,
        ports: cronhold_core::task::port::parse_ports(ports).expect(ports),
    };
    let channels = |name: &str| {
        let channels = fixture.port(task, name).map(|port| port.channels).unwrap_or_default();
        channels.iter().map(|channel| channel.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(channels("in:in"), "/a /b", "each once");
    fixture.act(set_ports(PortDirection::Out, r#"{"out":{"channels":["/c"]}}"#));
    assert_eq!(channels("out:out"), "/c");
    let subscribers = || {
        let found = block_on(fixture.store.channels(None, 9)).expect("channels can be read");
        found.iter().map(|found| format!("{}={}", found.channel, found.subscribers)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(subscribers(), "/a=1 /b=1", "an out port receives nothing");
    fixture.act(publish("/a", "1"));
    fixture.act(set_ports(PortDirection::In, r#"{"in":{"channels":["/b"]},"other":{"channels":["/b"]}}"#));
    assert_eq!((channels("in:in").as_str(), subscribers().as_str()), ("/b", "/b=2"));
    fixture.act(publish("/a", "2"));
    fixture.act(publish("/b", "3"));
    assert_eq!((fixture.values(task, "in:in").as_str(), fixture.values(task, "in:other").as_str()), ("1 3", "3"));
    fixture.act(set_ports(PortDirection::In, r#"{"in":{}}"#));
    assert_eq!((channels("in:in").as_str(), subscribers().as_str()), ("", ""));
    assert_eq!(fixture.values(task, "in:in"), "1 3", "its items stay");
}

/// The context of a request is in its messages and in its entry of the log.
pub fn context_of_a_request_is_in_messages_and_log(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pipe", r#"{"hear":{"channels":["/a"]}}"#));
    let mut log = fixture.listen(&["/sidejob/log"]);
    let context = JsonObject::parse(r#"{"user":"ann","channel":"none"}"#).expect("an object");
    let acts = vec![write(task, "in:in", &["1"]), publish("/a/b", "2")];
    fixture.commit_unit(TaskUnit { context, ..TaskUnit::request(acts) }).expect("both are possible");
    let items = fixture.port(task, "in:hear").expect("it exists").items;
    let heard_in = items[0].context.as_ref().map(JsonObject::to_json);
    let expected = r#"{"channel":"/a/b","user":"ann"}"#;
    assert_eq!(heard_in.as_ref().map(JsonText::as_str), Some(expected), "the channel is that of the message");
    let heard = fixture.heard(&mut *log, "/sidejob/log");
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard.iter().all(|entry| entry.contains(r#""user":"ann""#)), "{heard:?}");
    fixture.act(write(task, "in:in", &["3"]));
    let heard = fixture.heard(&mut *log, "/sidejob/log");
    assert!(heard.len() == 1 && heard[0].starts_with(r#"/sidejob/log {"timestamp":"#), "no context: {heard:?}");
}

/// A subscriber whose class is not registered any more is terminated; the others get the message.
pub fn subscriber_without_a_class_stops_no_message(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let ports = r#"{"in":{"channels":["/a"]}}"#;
    fixture.register("host:2", &[("Gone", "{}")]);
    let (before, gone, after) = (
        fixture.create_task(with_inports("Pass", ports)),
        fixture.create_task(with_inports("Gone", ports)),
        fixture.create_task(with_inports("Pass", ports)),
    );
    fixture.deregister("host:2");
    subject.pass(Span::from_secs(24 * 3_600));
    fixture.register("host:1", &[("Pass", "{}")]);
    fixture.act(publish("/a", "1"));
    for task in [before, gone, after] {
        assert_eq!(fixture.values(task, "in:in"), "1");
    }
    assert_eq!((fixture.status(before), fixture.status(after)), (TaskStatus::Queued, TaskStatus::Queued));
    assert_eq!(fixture.status(gone), TaskStatus::Terminated);
}
