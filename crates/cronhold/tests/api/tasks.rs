//! Tasks, channels, queues and workers over the API. No worker runs: the test registers classes, and does what workers
//! would do.

use serde_json::{Value, json};

use super::sandbox::{Daemon, Sandbox};
use super::wire::{Reply, Wire};

/// Classes of the queue `core`.
const CLASSES: &str = r#"{"classes": {
    "Sum": {"inports": {"in": {}, "ready": {}}, "outports": {"sum": {}}},
    "Any": {"inports": {"*": {"default": 12}}, "outports": {"*": {}}}}}"#;

/// A daemon with registered classes.
pub(crate) fn with_classes(name: &str) -> (Sandbox, Daemon) {
    let sandbox = Sandbox::new(name);
    let daemon = sandbox.up();
    let reply = daemon.send("POST /api/v1/queues/core/classes", CLASSES);
    assert_eq!(reply.status, 200, "{}", reply.text());
    (sandbox, daemon)
}

/// Creates a task, and returns its id.
#[track_caller]
fn create(daemon: &Daemon, body: &Value) -> u64 {
    let reply = daemon.send("POST /api/v1/tasks", &body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()["id"].as_u64().expect("an id")
}

/// Sends a request that must succeed.
#[track_caller]
fn done(daemon: &Daemon, line: &str, body: &str) -> Reply {
    let reply = daemon.send(line, body);
    assert!(matches!(reply.status, 200 | 204), "{line}: {}", reply.text());
    reply
}

/// Removes the class `Sum`, whose tasks end at the next request then, because no worker can ever make their steps.
fn forget_sum(daemon: &Daemon) {
    done(daemon, "POST /api/v1/queues/core/classes", r#"{"classes": {"Any": {}}}"#);
}

#[test]
fn task_is_created_as_requested_and_survives_a_restart() {
    let (sandbox, daemon) = with_classes("tasks-create");
    let parent = create(&daemon, &json!({"queue": "core", "class": "Any", "alias": "above"}));
    let body = json!({"queue": "core", "class": "Sum", "args": [1, "two"], "parent": "above", "name": "total",
        "at": "2099-01-01T00:00:00Z", "alias": "sum of/all", "by": "a test",
        "inports": {"factor": {"default": null}, "orders": {"channels": ["/shop/orders"]}},
        "outports": {"log": {}}, "in": {"in": [1, 2, [3]], "ready": [true]}});
    let id = create(&daemon, &body);
    assert_eq!((parent, id), (1, 2));

    let shown = |daemon: &Daemon| {
        let mut task = daemon.get("/api/v1/tasks/sum%20of%2Fall");
        assert!(task["created_at"].take().is_string(), "{task}");
        task
    };
    let expected = json!({"id": 2, "queue": "core", "class": "Sum", "status": "queued", "parent": 1, "name": "total",
        "created_at": null, "created_by": "a test", "ran_at": null, "run_at": "2099-01-01T00:00:00Z",
        "args": [1, "two"], "aliases": ["sum of/all"], "children": {}, "more_children": false,
        "inports": {"in": {"size": 3}, "ready": {"size": 1}, "factor": {"size": 0, "default": null},
            "orders": {"size": 0, "channels": ["/shop/orders"]}},
        "outports": {"log": {"size": 0}, "sum": {"size": 0}}, "creates_inports": false, "creates_outports": false,
        "state": {}});
    assert_eq!(shown(&daemon), expected);
    assert_eq!(daemon.get("/api/v1/tasks/1")["children"], json!({"total": 2}));
    let by = daemon.get("/api/v1/tasks/1")["created_by"].clone();
    assert_eq!(by, "operator api", "without a name, the caller has created it");

    daemon.kill();
    let daemon = sandbox.up();
    assert_eq!(shown(&daemon), expected, "after a restart");
    assert_eq!(create(&daemon, &json!({"queue": "core", "class": "Sum"})), 3, "classes stay registered");
}

#[test]
fn request_with_a_key_takes_effect_once() {
    let (_sandbox, daemon) = with_classes("tasks-keys");
    let send = |line: &str, key: &str, body: &str| {
        let reply =
            daemon.request(&format!("{line}\nIdempotency-Key: {key}\nContent-Type: application/json\n\n{body}"));
        (reply.status, reply)
    };
    let body = r#"{"queue": "core", "class": "Sum"}"#;
    let (status, first) = send("POST /api/v1/tasks", "november", body);
    assert_eq!((status, first.json()), (201, json!({"id": 1})));
    assert_eq!(first.header("location"), Some("/api/v1/tasks/1"));
    let (status, again) = send("POST /api/v1/tasks", "november", body);
    assert_eq!((status, again.json()), (200, json!({"id": 1})));
    assert_eq!(send("POST /api/v1/tasks", "december", body).1.json(), json!({"id": 2}));

    // The same key means another request for another port.
    for (port, size) in [("in", 1), ("in", 1), ("ready", 1)] {
        let (status, reply) = send(&format!("POST /api/v1/tasks/1/inports/{port}"), "november", r#"{"data": 1}"#);
        assert_eq!((status, &reply.json()["size"]), (200, &json!(size)), "{port}");
    }
    done(&daemon, "POST /api/v1/tasks/2/inports/in", r#"{"channels": ["/a"]}"#);
    for channel in ["a", "a", "a/b"] {
        assert_eq!(send(&format!("POST /api/v1/channels/{channel}"), "once", r#"{"message": 7}"#).0, 204);
    }
    assert_eq!(daemon.get("/api/v1/tasks/2")["inports"]["in"]["size"], 2, "one of /a, and one of /a/b");
}

#[test]
fn lists_are_filtered_and_paged() {
    let (_sandbox, daemon) = with_classes("tasks-lists");
    done(&daemon, "POST /api/v1/queues/other/classes", r#"{"classes": {"Sum": {}}}"#);
    let parent = create(&daemon, &json!({"queue": "other", "class": "Sum"}));
    for name in ["a", "b", "c"] {
        create(&daemon, &json!({"queue": "core", "class": "Sum", "parent": parent, "name": name}));
    }
    let ids = |query: &str| {
        let page = daemon.get(&format!("/api/v1/tasks{query}"));
        let ids: Vec<u64> =
            page["tasks"].as_array().expect("tasks").iter().filter_map(|task| task["id"].as_u64()).collect();
        (ids, page["next"].as_u64())
    };
    assert_eq!(ids(""), (vec![1, 2, 3, 4], None));
    assert_eq!(ids("?limit=3"), (vec![1, 2, 3], Some(3)));
    assert_eq!(ids("?limit=3&after=3"), (vec![4], None));
    assert_eq!(ids("?queue=core&limit=2"), (vec![2, 3], Some(3)));
    assert_eq!(ids("?status=queued&queue=other"), (vec![1], None));
    assert_eq!(ids("?status=failed"), (vec![], None));
    let page = daemon.get("/api/v1/tasks/1/children?limit=2");
    assert_eq!(page["next"], "b");
    assert_eq!(page["children"][0], json!({"name": "a", "id": 2, "queue": "core", "class": "Sum", "status": "queued"}));
    let page = daemon.get("/api/v1/tasks/1/children?after=b");
    assert_eq!((&page["children"][0]["id"], &page["next"]), (&json!(4), &Value::Null));
    for query in ["?status=done", "?after=0", "?limit=0", "?limit=1001", "?state=queued"] {
        daemon.request(&format!("GET /api/v1/tasks{query}")).assert_problem(400, "bad_request");
    }
}

#[test]
fn ports_keep_values_as_they_were_written() {
    let (_sandbox, daemon) = with_classes("tasks-ports");
    create(&daemon, &json!({"queue": "core", "class": "Any"}));
    let port = "/api/v1/tasks/1/inports/new_1";
    // Larger than any number that a double has, and keys that are not in order.
    let written = r#"{"list": [18446744073709551617, {"b":1,"a":[]}, null], "data": "first"}"#;
    assert_eq!(done(&daemon, &format!("POST {port}"), written).json(), json!({"size": 4, "default": 12}));
    let text = daemon.request(&format!("GET {port}")).text();
    let items = r#""items":[{"data":"first"},{"data":18446744073709551617},{"data":{"b":1,"a":[]}},{"data":null}]"#;
    assert!(text.contains(items), "{text}");

    let page = daemon.get(&format!("{port}?limit=3"));
    let from = page["next"].as_u64().expect("there is more");
    let rest = daemon.get(&format!("{port}?from={from}"));
    assert_eq!((&rest["items"], &rest["next"]), (&json!([{"data": null}]), &Value::Null));
    let rest = daemon.get(&format!("{port}?from={}&limit=1", from - 1));
    assert_eq!((&rest["items"][0]["data"]["b"], &rest["next"]), (&json!(1), &json!(from)));

    let read = |body: &str| done(&daemon, &format!("POST {port}/read"), body).text();
    assert_eq!(read("{}"), r#"{"items":[{"data":"first"}]}"#);
    assert_eq!(read(r#"{"count": 2}"#), r#"{"items":[{"data":18446744073709551617},{"data":{"b":1,"a":[]}}]}"#);
    assert_eq!(read(r#"{"count": 9}"#), r#"{"items":[{"data":null}]}"#);
    assert_eq!(read("{}"), r#"{"items":[{"data":12}]}"#, "the default");
    assert_eq!(read(r#"{"default": false}"#), r#"{"items":[]}"#);
    done(&daemon, &format!("POST {port}"), r#"{"default": null}"#);
    assert_eq!(read("{}"), r#"{"items":[{"data":null}]}"#, "null is a default too");
    done(&daemon, &format!("POST {port}"), r#"{"clear_default": true}"#);
    assert_eq!(read("{}"), r#"{"items":[]}"#);

    // Ports that remain keep their values, and others go with theirs.
    done(&daemon, &format!("POST {port}"), r#"{"data": 5}"#);
    let task = done(&daemon, "POST /api/v1/tasks/1/ports", r#"{"inports": {"new_1": {"default": 6}}}"#).json();
    assert_eq!(task["inports"], json!({"new_1": {"size": 1, "default": 6}}));
    let task = done(&daemon, "POST /api/v1/tasks/1/ports", r#"{"inports": {}}"#).json();
    assert_eq!(task["inports"], json!({}));

    create(&daemon, &json!({"queue": "core", "class": "Sum", "in": {"in": [1, 2]}}));
    let to = r#"{"direction": "in", "port": "in", "to": [
        {"task": 1, "direction": "out", "port": "a"}, {"task": "2", "direction": "in", "port": "ready"}]}"#;
    assert_eq!(done(&daemon, "POST /api/v1/tasks/2/connect", to).json(), json!({"moved": 2}));
    assert_eq!(daemon.get("/api/v1/tasks/1")["outports"], json!({"a": {"size": 2}}));
    assert_eq!(daemon.get("/api/v1/tasks/2")["inports"], json!({"in": {"size": 0}, "ready": {"size": 2}}));
}

#[test]
fn tree_is_changed_terminated_and_deleted() {
    let (_sandbox, daemon) = with_classes("tasks-tree");
    for _ in 0..4 {
        create(&daemon, &json!({"queue": "core", "class": "Sum"}));
    }
    for (parent, child, name) in [(1, 2, "left"), (1, 3, "right"), (3, 4, "below")] {
        let body = json!({"child": child, "name": name}).to_string();
        done(&daemon, &format!("POST /api/v1/tasks/{parent}/adopt"), &body);
    }
    let tree = |id: u64| {
        let tree = daemon.get(&format!("/api/v1/tasks/{id}/tree"));
        assert_eq!(tree["cut"], false);
        let line =
            |task: &Value| format!("{}{}", " ".repeat(task["depth"].as_u64().expect("a number") as usize), task["id"]);
        tree["tasks"].as_array().expect("tasks").iter().map(line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(tree(1), "1\n 2\n 3\n  4");
    daemon.send("POST /api/v1/tasks/4/adopt", r#"{"child": 1, "name": "x"}"#).assert_problem(409, "conflict");
    daemon.send("POST /api/v1/tasks/2/adopt", r#"{"child": 4, "name": "x"}"#).assert_problem(409, "conflict");
    daemon.send("POST /api/v1/tasks/1/disown", r#"{"name": "below"}"#).assert_problem(404, "not_found");
    done(&daemon, "POST /api/v1/tasks/1/disown", r#"{"name": "left"}"#);
    assert_eq!(tree(1), "1\n 3\n  4");

    let state = done(&daemon, "POST /api/v1/tasks/1/state", r#"{"set": {"a": 1, "b": [2]}}"#).json()["state"].clone();
    assert_eq!(state, json!({"a": 1, "b": [2]}));
    let state = done(&daemon, "POST /api/v1/tasks/1/state", r#"{"set": {"c": null}, "unset": ["a", "x"]}"#);
    assert_eq!(state.json()["state"], json!({"b": [2], "c": null}));
    done(&daemon, "POST /api/v1/tasks/1/aliases", r#"{"add": ["root", "top"]}"#);
    let task = done(&daemon, "POST /api/v1/tasks/root/aliases", r#"{"add": ["first"], "remove": ["root"]}"#).json();
    assert_eq!(task["aliases"], json!(["first", "top"]));
    daemon.send("POST /api/v1/tasks/2/aliases", r#"{"add": ["other", "top"]}"#).assert_problem(409, "conflict");
    assert_eq!(daemon.get("/api/v1/tasks/2")["aliases"], json!([]), "nothing of a refused request remains");

    let reply = daemon.request("DELETE /api/v1/tasks/1");
    reply.assert_problem(409, "conflict");
    assert!(reply.text().contains("task terminate 1 --recursive"), "{}", reply.text());
    let status = |id: u64| daemon.get(&format!("/api/v1/tasks/{id}"))["status"].clone();
    done(&daemon, "POST /api/v1/tasks/1/terminate", "");
    assert_eq!((status(1), status(4)), (json!("terminating"), json!("queued")));
    daemon.send("POST /api/v1/tasks/1/run", "").assert_problem(409, "conflict");
    assert_eq!(done(&daemon, "POST /api/v1/tasks/1/run", r#"{"force": true}"#).json()["status"], "queued");
    daemon.send("POST /api/v1/tasks/1/run", r#"{"parent": true}"#).assert_problem(409, "conflict");

    forget_sum(&daemon);
    let reply = daemon.send("POST /api/v1/tasks/2/run", "");
    reply.assert_problem(409, "conflict");
    assert!(reply.text().contains("cronhold workers"), "{}", reply.text());
    assert_eq!(status(2), "terminated");
    done(&daemon, "POST /api/v1/tasks/1/terminate", r#"{"recursive": true}"#);
    assert_eq!((status(1), status(4)), (json!("terminated"), json!("terminated")));
    assert_eq!(daemon.request("DELETE /api/v1/tasks/1").status, 204);
    for id in [1, 3, 4] {
        daemon.request(&format!("GET /api/v1/tasks/{id}")).assert_problem(404, "not_found");
    }
    daemon.request("GET /api/v1/tasks/top").assert_problem(404, "not_found");
    assert_eq!(status(2), "terminated");
}

/// Reads events of channels.
struct ChannelTail {
    wire: Wire,
    text: String,
}

impl ChannelTail {
    fn open(daemon: &Daemon, path: &str) -> Self {
        let mut wire = daemon.wire();
        wire.send(&daemon.http(&format!("GET {path}\nAuthorization: Bearer {}", daemon.token)));
        let head = wire.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let mut tail = Self { wire, text: String::new() };
        assert_eq!(tail.block(), ": listening");
        tail
    }

    fn block(&mut self) -> String {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return block;
            }
            let piece = self.wire.piece().expect("it has no end");
            self.text.push_str(std::str::from_utf8(&piece).expect("a text"));
        }
    }

    /// The data of the next message.
    fn message(&mut self) -> String {
        loop {
            if let Some(json) = self.block().strip_prefix("event: message\ndata: ") {
                return json.to_owned();
            }
        }
    }
}

#[test]
fn messages_reach_ports_and_listeners() {
    let (_sandbox, daemon) = with_classes("tasks-channels");
    create(
        &daemon,
        &json!({"queue": "core", "class": "Sum",
        "inports": {"orders": {"channels": ["/shop/orders"]}, "shop": {"channels": ["/shop", "plain/name"]}},
        "outports": {"sold": {"channels": ["/shop/sold"]}}}),
    );
    let channels = daemon.get("/api/v1/channels?limit=2");
    assert_eq!(
        channels["channels"],
        json!([{"channel": "/shop", "subscribers": 1}, {"channel": "/shop/orders", "subscribers": 1}])
    );
    assert_eq!(channels["next"], "/shop/orders");
    let channels = daemon.get("/api/v1/channels?after=%2Fshop%2Forders");
    assert_eq!(channels, json!({"channels": [{"channel": "plain/name", "subscribers": 1}], "next": null}));

    let mut tail = ChannelTail::open(&daemon, "/api/v1/channels/shop/orders?also=plain/name%0A%2Fshop%2Fsold");
    let mut root = ChannelTail::open(&daemon, "/api/v1/channels/");
    done(&daemon, "POST /api/v1/channels/shop%2Forders", r#"{"message": {"id": 18446744073709551617}}"#);
    done(&daemon, "POST /api/v1/channels/shop/returns", r#"{"message": null}"#);
    done(&daemon, "POST /api/v1/channels/plain/name?relative=true", r#"{"message": "b"}"#);
    done(&daemon, "POST /api/v1/tasks/1/outports/sold", r#"{"list": [1, 2]}"#);
    assert_eq!(tail.message(), r#"{"channel":"/shop/orders","message":{"id":18446744073709551617}}"#);
    assert_eq!(tail.message(), r#"{"channel":"plain/name","message":"b"}"#, "and not that of another channel");
    assert_eq!(tail.message(), r#"{"channel":"/shop/sold","message":1}"#);
    assert_eq!(tail.message(), r#"{"channel":"/shop/sold","message":2}"#);
    assert_eq!(root.message(), r#"{"channel":"/","message":{"id":18446744073709551617}}"#);
    // The root gets everything else too, such as the log.
    while root.message() != r#"{"channel":"/","message":null}"# {}

    let values = |port: &str| daemon.request(&format!("GET /api/v1/tasks/1/inports/{port}")).text();
    let context = r#""context":{"channel":"/shop/orders"}"#;
    assert!(
        values("orders").contains(&format!(r#"[{{"data":{{"id":18446744073709551617}},{context}}}]"#)),
        "{}",
        values("orders")
    );
    assert_eq!(daemon.get("/api/v1/tasks/1")["inports"]["shop"]["size"], 5, "all of them");
    daemon.send("POST /api/v1/channels/a", "{}").assert_problem(400, "bad_request");
    let long = "x".repeat(1_001);
    daemon.send(&format!("POST /api/v1/channels/{long}"), r#"{"message": 1}"#).assert_problem(400, "bad_request");
    daemon.request("GET /api/v1/channels/a?also=%0A").assert_problem(400, "bad_request");
}

#[test]
fn queues_list_classes_and_workers_receive_signals() {
    let (_sandbox, daemon) = with_classes("tasks-queues");
    create(&daemon, &json!({"queue": "core", "class": "Sum"}));
    let queues = daemon.get("/api/v1/queues");
    assert_eq!(
        (&queues[0]["queue"], &queues[0]["ready"], &queues[0]["workers"]),
        (&json!("core"), &json!(1), &json!(1))
    );
    assert_eq!(queues[0]["classes"]["Any"], json!({"inports": {"*": {"default": 12}}, "outports": {"*": {}}}));
    let body = r#"{"worker": "web-1", "classes": {"Map": {"icon": "m", "inports": {"in": {}}}}}"#;
    let queue = done(&daemon, "POST /api/v1/queues/core/classes", body).json();
    assert_eq!(queue["classes"].as_object().expect("classes").keys().collect::<Vec<_>>(), ["Any", "Map", "Sum"]);
    assert_eq!(queue["classes"]["Map"]["icon"], "m", "unknown fields are kept");

    assert_eq!(daemon.request("POST /api/v1/workers/web-1/quiet").status, 204);
    assert_eq!(daemon.request("POST /api/v1/workers/web-1/stop").status, 204);
    daemon.request("POST /api/v1/workers/web-2/stop").assert_problem(404, "not_found");
    let workers = daemon.get("/api/v1/workers");
    let worker =
        workers.as_array().expect("workers").iter().find(|worker| worker["id"] == "web-1").expect("it is alive");
    assert_eq!((&worker["signals"], &worker["classes"]), (&json!(["quiet", "stop"]), &json!(["Map"])));

    for body in [
        r#"{"classes": {"": {}}}"#,
        r#"{"classes": {"A": []}}"#,
        r#"{"classes": {"A": {"inports": {"a b": {}}}}}"#,
        r#"{"classes": {}, "worker": ""}"#,
    ] {
        daemon.send("POST /api/v1/queues/core/classes", body).assert_problem(422, "invalid");
    }
    assert_eq!(daemon.get("/api/v1/queues")[0]["classes"].as_object().expect("classes").len(), 3);
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() {
    let (_sandbox, daemon) = with_classes("tasks-refusals");
    create(&daemon, &json!({"queue": "core", "class": "Sum", "alias": "taken"}));
    let before = daemon.get("/api/v1/tasks/1");
    for (line, body, status, code) in [
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Summ"}"#, 409, "conflict"),
        ("POST /api/v1/tasks", r#"{"queue": "core"}"#, 400, "bad_request"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "colour": 1}"#, 400, "bad_request"),
        ("POST /api/v1/tasks", r#"{"queue": "", "class": "Sum"}"#, 422, "invalid"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "parent": 1}"#, 422, "invalid"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "name": "a"}"#, 422, "invalid"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "parent": 9, "name": "a"}"#, 404, "not_found"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "alias": "taken"}"#, 409, "conflict"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "alias": "1st"}"#, 422, "invalid"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "in": {"nothing": [1]}}"#, 404, "not_found"),
        ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum", "inports": {"a b": {}}}"#, 422, "invalid"),
        (
            "POST /api/v1/tasks",
            r#"{"queue": "core", "class": "Sum", "inports": {"a": {"chanels": []}}}"#,
            400,
            "bad_request",
        ),
        ("GET /api/v1/tasks/12abc", "", 400, "bad_request"),
        ("GET /api/v1/tasks/2", "", 404, "not_found"),
        ("GET /api/v1/tasks/nobody", "", 404, "not_found"),
        ("GET /api/v1/tasks/1/inports/nothing", "", 404, "not_found"),
        ("GET /api/v1/tasks/1/inports/a.b", "", 400, "bad_request"),
        ("POST /api/v1/tasks/1/inports/*", r#"{"data": 1}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/inports/in", "{}", 422, "invalid"),
        ("POST /api/v1/tasks/1/inports/in", r#"{"data": }"#, 400, "bad_request"),
        ("POST /api/v1/tasks/1/inports/in", r#"{"default": 1, "clear_default": true}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/inports/in", r#"{"data": 1, "channels": [""]}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/inports/in/read", r#"{"count": 0}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/connect", r#"{"direction": "up", "port": "in", "to": []}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/connect", r#"{"direction": "in", "port": "in", "to": []}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/state", r#"{"set": {"": 1}}"#, 422, "invalid"),
        ("POST /api/v1/tasks/1/aliases", r#"{"remove": ["other"]}"#, 404, "not_found"),
        ("PUT /api/v1/tasks/1", "{}", 405, "method_not_allowed"),
    ] {
        let reply = daemon.send(line, body);
        assert_eq!(reply.status, status, "{line} {body}: {}", reply.text());
        reply.assert_problem(status, code);
    }
    assert_eq!(daemon.get("/api/v1/tasks/1"), before);
    assert_eq!(daemon.get("/api/v1/tasks")["tasks"].as_array().expect("tasks").len(), 1);
    assert_eq!(create(&daemon, &json!({"queue": "core", "class": "Sum"})), 2, "refused requests use no ids");
    let reply = daemon.send("POST /api/v1/tasks", r#"{"queue": "core", "class": "Summ"}"#);
    assert!(reply.text().contains("`cronhold queues` lists the registered classes"), "{}", reply.text());
}
