//! castle-cron's contract, znode by znode, from its document alone: a plain client creates, changes and deletes jobs by
//! hand, watches `/nextjob` and `/servers`, and takes `/joblock`, while real nodes and commands use the same ZooKeeper.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kazoo_client::KazooClient;
use crate::processes::eventually;
use crate::sandbox::{Sandbox, SandboxServer};

/// What the document and Go show for no time.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The fields of the Job struct, in the order of the document.
const FIELDS: [&str; 6] = ["Name", "Cmd", "Args", "HasError", "NextRuntime", "Schedule"];

/// A sandbox and a client of its server.
fn sandbox(name: &str) -> (Sandbox, KazooClient) {
    let sandbox = Sandbox::new(name);
    let client = KazooClient::start(sandbox.server.port());
    (sandbox, client)
}

/// The names of all jobs that Cronhold has, and whether each is paused.
fn jobs(sandbox: &Sandbox) -> Vec<(String, bool)> {
    let listed = sandbox.json(&["list"]);
    let jobs = listed.as_array().expect("jobs").iter();
    jobs.map(|job| (job["id"].as_str().expect("an id").to_owned(), job["paused"] == true)).collect()
}

fn is_paused(sandbox: &Sandbox, name: &str) -> bool {
    jobs(sandbox).contains(&(name.to_owned(), true))
}

/// Waits until `/nextjob` is the same as the job's own znode, and its next time begins like this.
#[track_caller]
fn wait_for_copy(client: &mut KazooClient, job: &str, time: &str) {
    eventually(&format!("/nextjob is a copy of {job}"), || {
        let next = client.data("nextjob");
        next.is_some()
            && next == client.data(&format!("jobs/{job}"))
            && client.job("nextjob")["NextRuntime"].as_str().is_some_and(|at| at.starts_with(time))
    });
}

#[track_caller]
fn wait_for_no_next_job(client: &mut KazooClient) {
    eventually("/nextjob is empty", || client.data("nextjob").as_deref() == Some(""));
}

#[test]
fn jobs_created_changed_and_deleted_by_hand_take_effect() {
    let (sandbox, mut client) = sandbox("castle-jobs");
    let _node = sandbox.up("one", &[]);
    for znode in ["servers", "jobs", "nextjob", "joblock"] {
        assert!(client.children("").iter().any(|name| name == znode), "{znode}");
    }
    wait_for_no_next_job(&mut client);

    client.create_job("later", "0 0 3 1 1 * 2090", &["true"]);
    wait_for_copy(&mut client, "later", "2090-01-01T03:00:00");
    assert_eq!(jobs(&sandbox), [("later".to_owned(), false)]);

    // The plain client keeps the fields of the struct in their order, and what it adds stays.
    client.set_field("later", "Owner", &json!("ops"));
    sandbox.done(&["upd", "later", "--schedule", "0 4 1 1 * 2090"]);
    wait_for_copy(&mut client, "later", "2090-01-01T04:00:00");
    let text = client.data("jobs/later").expect("it exists");
    let places: Vec<Option<usize>> = FIELDS.iter().map(|key| text.find(&format!("\"{key}\":"))).collect();
    assert!(places.is_sorted() && places[0] == Some(1), "{text}");
    assert_eq!(client.job("jobs/later")["Owner"], "ops");

    // A job that is due each second runs, and is next from then on.
    client.call("watch_data", json!({"path": "/castle-cron/nextjob"}));
    let out = sandbox.path("out");
    let line = format!("echo tick >>{}", out.display());
    client.create_job("tick", "* * * * * * *", &["sh", "-c", &line]);
    let ticks = || fs::read_to_string(&out).unwrap_or_default().lines().count();
    eventually("it runs", || ticks() > 2);
    let seen = client.call("noted", json!({"path": "/castle-cron/nextjob"}));
    let seen: Vec<Value> = seen.as_array().expect("data").iter().filter_map(Value::as_str).map(parsed).collect();
    let times: Vec<&str> =
        seen.iter().filter(|job| job["Name"] == "tick").filter_map(|job| job["NextRuntime"].as_str()).collect();
    assert!(times.len() > 1 && times.iter().all(|time| *time != ZERO_TIME), "{seen:?}");

    // `HasError` stops the job, and the other one is next.
    client.set_field("tick", "HasError", &json!(true));
    wait_for_copy(&mut client, "later", "2090-01-01T04:00:00");
    assert!(is_paused(&sandbox, "tick"));
    eventually("its next time is gone", || client.job("jobs/tick")["NextRuntime"] == ZERO_TIME);

    // A schedule error sets it.
    client.set_field("later", "Schedule", &json!("61 * * * *"));
    eventually("the error is shown", || client.job("jobs/later")["HasError"] == true);
    assert_eq!(client.job("jobs/later")["Schedule"], "61 * * * *", "its writer has to see it");
    wait_for_no_next_job(&mut client);
    client.set_field("later", "Schedule", &json!("0 5 1 1 * 2090"));
    client.set_field("later", "HasError", &json!(false));
    wait_for_copy(&mut client, "later", "2090-01-01T05:00:00");

    client.call("delete", json!({"path": "/castle-cron/jobs/later"}));
    wait_for_no_next_job(&mut client);
    eventually("the job is removed", || !jobs(&sandbox).iter().any(|(name, _)| name == "later"));
    // A client that deletes `/nextjob` stops nothing.
    client.set_field("tick", "HasError", &json!(false));
    let before = ticks();
    client.call("delete", json!({"path": "/castle-cron/nextjob"}));
    eventually("it still runs", || ticks() > before + 2);
    eventually("/nextjob is there again", || client.next_job() == "tick");
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[test]
fn commands_without_a_daemon_keep_the_next_job_true() {
    let (sandbox, mut client) = sandbox("castle-commands");
    let add = |name: &str, year: &str| sandbox.done(&["add", name, &format!("0 0 1 1 * {year}"), "--", "true"]);
    add("a", "2090");
    wait_for_copy(&mut client, "a", "2090-01-01T00:00:00");
    add("b", "2080");
    assert_eq!(client.next_job(), "b", "an earlier job becomes the next one");
    add("c", "2095");
    assert_eq!(client.next_job(), "b");
    sandbox.done(&["upd", "b", "--schedule", "0 0 1 1 * 2097"]);
    assert_eq!(client.next_job(), "a", "the job that is really next, and not the one that was updated");
    sandbox.done(&["upd", "c", "--schedule", "0 0 1 1 * 2070"]);
    wait_for_copy(&mut client, "c", "2070-01-01T00:00:00");
    sandbox.done(&["pause", "c"]);
    assert_eq!((client.next_job().as_str(), &client.job("jobs/c")["HasError"]), ("a", &json!(true)));
    sandbox.done(&["resume", "c"]);
    assert_eq!((client.next_job().as_str(), &client.job("jobs/c")["HasError"]), ("c", &json!(false)));
    assert!(sandbox.done(&["list", "*c*"]).contains("2070") && !sandbox.done(&["list", "c*"]).contains("2090"));
    for (job, next) in [("c", "a"), ("a", "b"), ("b", "")] {
        sandbox.done(&["del", job]);
        assert_eq!(client.next_job(), next);
    }
    assert_eq!((client.data("nextjob").as_deref(), client.children("jobs").len()), (Some(""), 0));

    // A schedule that has ended has no next time, and never counts as the next one.
    add("ended", "2001");
    assert_eq!((&client.job("jobs/ended")["NextRuntime"], client.next_job().as_str()), (&json!(ZERO_TIME), ""));
    sandbox.done(&["add", "feeds/eu", "0 0 1 1 * 2090", "--", "true"]);
    assert_eq!(client.children("jobs"), ["ended", "feeds%2Feu"]);
    assert_eq!(client.next_job(), "feeds/eu");

    // A client that holds the lock delays only `/nextjob`.
    let name = client.call("go_name", json!({}));
    let held = client.call("queue", json!({"path": "/castle-cron/joblock", "name": name}));
    let held = held.as_str().expect("a name").to_owned();
    let mut add =
        sandbox.command(&["--store", &sandbox.server.store_url(), "add", "first", "0 0 1 1 * 2050", "--", "true"]);
    let mut add = add.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    eventually("the command waits for the lock", || client.children("joblock").len() == 2);
    let names = client.children("joblock");
    let waiting = names.iter().find(|name| **name != held).expect("two clients queue");
    assert!(has_go_form(waiting) && has_go_form(&held), "{names:?}");
    assert_eq!(client.next_job(), "feeds/eu");
    client.call("delete", json!({"path": format!("/castle-cron/joblock/{held}")}));
    assert!(add.wait().expect("it ends").success());
    assert_eq!((client.next_job().as_str(), client.children("joblock").len()), ("first", 0));
    client.call("acquire", json!({"path": "/castle-cron/joblock"}));
    client.call("release", json!({"path": "/castle-cron/joblock"}));
}

/// Whether a lock has a name of go-zookeeper: `_c_`, 32 hexadecimal digits, `-lock-` and ten digits.
fn has_go_form(name: &str) -> bool {
    let Some((token, number)) = name.strip_prefix("_c_").and_then(|rest| rest.split_once("-lock-")) else {
        return false;
    };
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    (token.len(), number.len()) == (32, 10)
        && token.bytes().all(is_hex)
        && number.bytes().all(|digit| digit.is_ascii_digit())
}

#[test]
fn servers_come_and_go() {
    let (sandbox, mut client) = sandbox("castle-servers");
    // The store creates the znodes when it is first used.
    sandbox.done(&["list"]);
    client.call("watch_children", json!({"path": "/castle-cron/servers"}));
    client.call("create", json!({"path": "/castle-cron/servers/plain", "data": "castle-cron", "ephemeral": true}));
    let (mut one, mut two) = (sandbox.up("one", &[]), sandbox.up("two", &[]));
    assert_eq!(client.children("servers"), ["one", "plain", "two"]);
    let znode = client.call("get", json!({"path": "/castle-cron/servers/one"}));
    assert!(znode["ephemeral"] == true && znode["data"].as_str().is_some_and(|data| data.starts_with("castle-cron")));
    one.wait_until_logged("servers_changed", &[("all", "one, plain, two")]);

    // A name that is in use is refused, unless the operator takes it over.
    let up =
        ["up", "--name", "plain", "--data", "plain", "--listen", "127.0.0.1:0", "--store", &sandbox.server.store_url()];
    let refused = sandbox.run_command(&up);
    assert!(refused.code == Some(1) && refused.err.contains("--force"), "{refused:?}");

    // A node that stops leaves at once; one that is killed continues under its name when it starts again.
    two.send(Signal::TERM);
    eventually("it has stopped", || two.ended() == Some(0));
    assert_eq!(client.children("servers"), ["one", "plain"]);
    one.wait_until_logged("servers_changed", &[("left", "two"), ("all", "one, plain")]);
    one.kill();
    one.start_again();
    eventually("it is ready again", || one.logged("ready").len() > 1);
    assert_eq!(client.children("servers"), ["one", "plain"]);
    client.call("delete", json!({"path": "/castle-cron/servers/one"}));
    eventually("it shows itself again", || client.children("servers") == ["one", "plain"]);

    // With a new session the node shows itself again.
    one.send(Signal::STOP);
    eventually("its session ends", || client.children("servers") == ["plain"]);
    one.send(Signal::CONT);
    eventually("it has a new one", || client.children("servers") == ["one", "plain"]);
    let lists = client.call("noted", json!({"path": "/castle-cron/servers"}));
    assert!(lists.as_array().is_some_and(|lists| lists.contains(&json!(["one", "plain", "two"]))), "{lists}");
}

/// Job structs in Go's gob, written by hand from its specification. They differ in the name and the schedule.
fn gob_of(name: &str, schedule: &str) -> String {
    let text = |text: &str| {
        let bytes: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{:02x}{bytes}", text.len())
    };
    let types = concat!(
        "57ff81030101034a6f6201ff820001060104",
        "4e616d65010c000103436d64010c0001044172677301ff84000108",
        "4861734572726f7201020001",
        "0b4e65787452756e74696d6501ff86000108",
        "5363686564756c65010c000000",
        "16ff83020101085b5d737472696e6701ff8400010c0000",
        "10ff850501010454696d6501ff86000000",
    );
    let time = "0f010000000ecfc308b000000000ffff";
    let value =
        format!("ff8201{}01{}0102{}{}02{time}01{}00", text(name), text("echo"), text("a"), text("b"), text(schedule));
    format!("{types}{:02x}{value}", value.len() / 2)
}

#[test]
fn jobs_of_a_real_castle_cron_are_imported() {
    let (sandbox, mut client) = sandbox("castle-import");
    let from = sandbox.server.url("/old");
    for (znode, data) in [
        ("backup", gob_of("backup", "0 3 * * *")),
        ("broken", gob_of("broken", "0 0 0 * * * 2030 9")),
        ("noise", "ff00".to_owned()),
    ] {
        client.call("create_bytes", json!({"path": format!("/old/jobs/{znode}"), "data": data}));
    }
    let import = |more: &[&str]| sandbox.at_store(&[&["import", "castle-cron", "--from", &from], more].concat());
    let dry = import(&["--dry-run", "-o", "json"]);
    assert_eq!(dry.code, Some(1), "two jobs cannot be imported: {dry:?}");
    assert_eq!(jobs(&sandbox), []);
    let done = import(&["--pause", "--prefix", "old/", "-o", "json"]);
    let rows = parsed(&done.out);
    let outcomes: Vec<(&str, &str)> = rows
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| Some((row["job"].as_str()?, row["outcome"].as_str()?)))
        .collect();
    let expected = [("old/backup", "imported"), ("old/broken", "not_imported"), ("old/noise", "not_imported")];
    assert_eq!(outcomes, expected, "{done:?}");
    assert_eq!(jobs(&sandbox), [("old/backup".to_owned(), true)]);
    let shown = sandbox.json(&["show", "old/backup"]);
    assert_eq!(shown["definition"]["program"], json!(["echo", "a", "b"]), "{shown:#}");
    let nowhere = sandbox.at_store(&["import", "castle-cron", "--from", &sandbox.server.url("/nowhere")]);
    assert!(nowhere.code == Some(3) && nowhere.err.contains("/nowhere/jobs"), "{nowhere:?}");
    assert_eq!(sandbox.at_store(&["import", "castle-cron", "--from", "redis://127.0.0.1"]).code, Some(2));
    assert_eq!(sandbox.at_store(&["import", "cronken", "--from", &from]).code, Some(2));
}
