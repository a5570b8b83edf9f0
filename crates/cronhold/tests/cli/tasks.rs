//! `task`, `channel`, `queues` and `workers`. No worker runs: the test registers classes, and the commands do what
//! workers would do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_api::ClassesBody;
use cronhold_api::client::{CallerOptions, DaemonAddress, DaemonClient};
use cronhold_core::task::JsonText;
use serde_json::{Value, json};

use super::sandbox::{RunningCommand, Sandbox};

/// Classes by name, with their configuration.
const CLASSES: [(&str, &str); 2] = [
    ("Sum", r#"{"inports": {"in": {}, "ready": {}}, "outports": {"sum": {}}}"#),
    ("Any", r#"{"inports": {"*": {"default": 12}}, "outports": {"*": {}}}"#),
];

/// A daemon whose queue `core` has these classes.
fn with_classes(name: &str, classes: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::up(name, &[]);
    register(&sandbox, classes);
    sandbox
}

/// Registers classes as a worker does that only uses HTTP. They replace those that the same worker registered before.
fn register(sandbox: &Sandbox, classes: &[(&str, &str)]) {
    let address = std::fs::read(sandbox.path("home/address")).expect("a file");
    let address: Value = serde_json::from_slice(&address).expect("JSON");
    let address = DaemonAddress::parse(address["url"].as_str().expect("a URL")).expect("an address");
    let caller = CallerOptions { address, local: Some(sandbox.path("home")), token: None, user: None };
    let text = |text: &str| JsonText::parse(text).expect("JSON");
    let classes: BTreeMap<String, JsonText> =
        classes.iter().map(|(name, config)| ((*name).to_owned(), text(config))).collect();
    let client = DaemonClient::new(caller).expect("a client");
    client.register_classes("core", &ClassesBody { classes, worker: Some("test".to_owned()) }).expect("registered");
}

#[test]
fn tasks_are_created_and_shown() {
    let sandbox = with_classes("tasks", &CLASSES);
    insta::assert_snapshot!(sandbox.transcript(&[
        &["queues"],
        &["workers"],
        &["task", "list"],
        &["task", "queue", "core", "Any", "--alias", "above"],
        &[
            "task",
            "queue",
            "core",
            "Sum",
            "1",
            "\"two\"",
            "--in",
            "in=5",
            "--in",
            "in=-1",
            "--in",
            "ready=true",
            "--parent",
            "above",
            "--name",
            "total",
            "--at",
            "2099-01-01",
            "--inport",
            "factor",
            "--key",
            "november"
        ],
        &["task", "queue", "core", "Sum", "--key", "november", "-o", "json"],
        &["task", "list"],
        &["task", "list", "--status", "failed"],
        &["task", "list", "-n", "1"],
        &["task", "show", "2"],
        &["task", "tree", "above"],
        &["task", "queue", "core", "Summ"],
        &["task", "queue", "core", "Sum", "two"],
        &["task", "queue", "core", "Sum", "--in", "5"],
        &["task", "queue", "core", "Sum", "--in", "other=5"],
        &["task", "queue", "core", "Sum", "--alias", "above"],
        &["task", "queue", "core", "Sum", "--parent", "above"],
        &["task", "list", "--status", "done"],
        &["task", "show", "nobody"],
        &["task", "show", "12abc"],
        &["workers", "--stop", "web-1"],
    ]));
    let task = sandbox.json(&["task", "show", "2"]);
    let parts = ["id", "queue", "class", "status", "parent", "children", "inports", "outports", "state"];
    assert_eq!(
        Value::Array(parts.iter().map(|part| task[part].clone()).collect()),
        json!([2, "core", "Sum", "queued", 1, {},
            {"in": {"size": 2}, "ready": {"size": 1}, "factor": {"size": 0}}, {"sum": {"size": 0}}, {}])
    );
    assert_eq!(sandbox.json(&["task", "show", "above"])["children"], json!({"total": 2}));
    assert_eq!(sandbox.json(&["task", "list", "--queue", "core"])[1]["name"], "total");
    assert_eq!(sandbox.json(&["task", "tree", "1"])["tasks"][1]["depth"], 1);
    assert_eq!(sandbox.json(&["queues"])[0]["classes"]["Any"]["inports"]["*"]["default"], 12);
    assert_eq!(sandbox.json(&["workers"])[0]["id"], "test");
}

#[test]
fn ports_are_written_and_read() {
    let sandbox = with_classes("task-ports", &CLASSES);
    sandbox.done(&["task", "queue", "core", "Any"]);
    sandbox.done(&["task", "queue", "core", "Sum"]);
    insta::assert_snapshot!(sandbox.transcript(&[
        &["task", "write", "1", "new", "18446744073709551617", "{\"b\": 1, \"a\": []}", "\"a\\u0007b\"", "-5"],
        &["task", "read", "1", "new", "--peek"],
        &["task", "read", "1", "new", "--peek", "--all"],
        &["task", "read", "1", "new"],
        &["task", "read", "1", "new", "-o", "json"],
        &["task", "read", "1", "new", "--all"],
        &["task", "read", "1", "new", "--all"],
        &["task", "read", "1", "new"],
        &["task", "port", "1", "new", "--no-default", "--channel", "/shop/orders", "--channel", "/shop"],
        &["task", "port", "1", "new", "-o", "json"],
        &["task", "read", "1", "new"],
        &["task", "read", "1", "new", "--peek"],
        &["task", "write", "1", "result", "1", "2", "--out", "--key", "once"],
        &["task", "write", "1", "result", "1", "2", "--out", "--key", "once"],
        &["task", "connect", "1:out:result", "2:in:in", "2:in:ready"],
        &["task", "read", "2", "in", "--all", "--peek"],
        &["task", "connect", "1:result", "2:in:in"],
        &["task", "write", "2", "nothing", "1"],
        &["task", "write", "2", "in", "hello"],
        &["task", "write", "2", "in"],
        &["task", "state", "2"],
        &["task", "state", "2", "limit=5", "names=[\"a\"]"],
        &["task", "state", "2", "--unset", "limit", "-o", "json"],
        &["task", "state", "2", "limit"],
    ]));
}

#[test]
fn tasks_are_run_related_and_ended() {
    let sandbox = with_classes("task-ends", &CLASSES);
    for _ in 0..3 {
        sandbox.done(&["task", "queue", "core", "Sum"]);
    }
    insta::assert_snapshot!(sandbox.transcript(&[
        &["task", "alias", "1", "first", "root"],
        &["task", "alias", "first", "--remove", "root"],
        &["task", "alias", "2", "first"],
        &["task", "adopt", "first", "2", "left"],
        &["task", "adopt", "2", "3", "below"],
        &["task", "adopt", "3", "1", "cycle"],
        &["task", "tree", "1"],
        &["task", "disown", "1", "left"],
        &["task", "disown", "1", "left"],
        &["task", "run", "1"],
        &["task", "run", "1", "--at", "2099-01-01"],
        &["task", "terminate", "1"],
        &["task", "run", "1"],
        &["task", "run", "1", "--force"],
        &["task", "delete", "2"],
    ]));
    // Without their class, tasks end at once, because no worker could make their last step.
    register(&sandbox, &CLASSES[1..]);
    insta::assert_snapshot!(
        "tasks_without_class_end",
        sandbox.transcript(&[
            &["task", "run", "1"],
            &["task", "terminate", "2", "--recursive"],
            &["task", "tree", "2"],
            &["task", "delete", "2"],
            &["task", "delete", "1", "-o", "json"],
            &["task", "list"],
        ])
    );
}

#[test]
fn messages_are_published_and_shown() {
    let sandbox = with_classes("channels", &CLASSES);
    assert_eq!(
        sandbox.shown(&["channel", "list"]),
        "$ cronhold channel list\nno in port listens to a channel\nexit 0\n"
    );
    sandbox.done(&["task", "queue", "core", "Any"]);
    sandbox.done(&["task", "port", "1", "orders", "--channel", "/shop/orders", "--channel", "plain/name"]);
    let mut tail = RunningCommand::start(sandbox.command(&["channel", "tail", "/shop", "plain", "-o", "json"]));
    let mut table = RunningCommand::start(sandbox.command(&["channel", "tail", "/shop"]));
    // A listener hears what is published after it has begun, so the test publishes until it hears something.
    let began = AtomicBool::new(false);
    let mut publish = sandbox.command(&["channel", "publish", "/shop/begin", "0"]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !began.load(Ordering::Acquire) {
                assert!(publish.output().expect("the binary starts").status.success());
            }
        });
        let first = (tail.line(), table.line());
        began.store(true, Ordering::Release);
        assert_eq!(first, ("{\"channel\":\"/shop\",\"message\":0}\n".to_owned(), "/shop 0\n".to_owned()));
    });
    for (channel, message) in [("/shop/orders", "{\"id\": 7}"), ("plain/name", "\"a\""), ("/shop/returns", "[1]")] {
        sandbox.done(&["channel", "publish", channel, message]);
    }
    let next = |command: &mut RunningCommand, begin: &str| loop {
        let line = command.line();
        if line != begin {
            return line;
        }
    };
    assert_eq!(
        next(&mut tail, "{\"channel\":\"/shop\",\"message\":0}\n"),
        "{\"channel\":\"/shop\",\"message\":{\"id\":7}}\n"
    );
    assert_eq!(tail.line(), "{\"channel\":\"plain\",\"message\":\"a\"}\n");
    assert_eq!(tail.line(), "{\"channel\":\"/shop\",\"message\":[1]}\n");
    assert_eq!(next(&mut table, "/shop 0\n"), "/shop {\"id\":7}\n");
    assert_eq!(table.line(), "/shop [1]\n");
    insta::assert_snapshot!(sandbox.transcript(&[
        &["channel", "list"],
        &["channel", "publish", "/shop/orders", "seven"],
        &["channel", "publish", "/other", "[7]", "-o", "json"],
        &["channel", "publish", "", "7"],
        &["channel", "tail"],
        &["task", "read", "1", "orders", "-o", "json"],
        &["task", "read", "1", "orders"],
    ]));
}

#[test]
fn help_of_task_verbs() {
    let sandbox = Sandbox::empty("task-help");
    insta::assert_snapshot!(sandbox.transcript(&[
        &["task", "--help"],
        &["task", "queue", "--help"],
        &["task", "read", "--help"],
        &["channel", "--help"],
        &["workers", "--help"],
    ]));
}
