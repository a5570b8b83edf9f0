//! Triggers of a real daemon: their file, and that none is lost or consumed twice while the daemon is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use cronhold_core::record::Run;
use serde_json::{Value, json};

use super::daemon::{Sandbox, transcript};
use super::http::Api;
use super::processes::eventually;

/// How often the daemon is killed, after how many triggers each time, and how many are sent at once.
const ROUNDS: usize = 6;
const TRIGGERS_A_ROUND: usize = 40;
const SENDERS: usize = 4;

/// Ids by whether the daemon has acknowledged them.
type SentTriggers = Arc<Mutex<BTreeMap<String, bool>>>;

/// Sends triggers until the daemon does not reply. Those that were not acknowledged are sent again before new ones, and
/// some that were are sent again, too.
fn send_until_killed(api: &Api, sent: &SentTriggers, count: &AtomicUsize, sender: usize, round: usize) {
    let mine = |id: &str| id.starts_with(&format!("s{sender}/"));
    let known: Vec<String> = sent
        .lock()
        .expect("no panic")
        .iter()
        .filter(|(id, is_known)| mine(id) && !**is_known)
        .map(|(id, _)| id.clone())
        .collect();
    let again = sent.lock().expect("no panic").keys().find(|id| mine(id)).cloned();
    let new = (0..).map(|number| format!("s{sender}/{round}/{number}"));
    for id in known.into_iter().chain(again).chain(new) {
        sent.lock().expect("no panic").entry(id.clone()).or_insert(false);
        // A killed daemon closes the connection, or refuses it.
        let Some(head) = api.try_post("/api/v1/jobs/build/triggers", &json!({"id": id}).to_string()) else { return };
        if head.starts_with("HTTP/1.1 20") {
            // A trigger that is sent again does not count twice.
            let was_known = sent.lock().expect("no panic").insert(id, true);
            count.fetch_add(usize::from(was_known != Some(true)), Ordering::Relaxed);
        }
    }
}

fn consumers<'a>(runs: impl IntoIterator<Item = &'a Run>) -> BTreeMap<String, Vec<u64>> {
    let mut consumers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for run in runs.into_iter().filter(|run| run.retry_of.is_none() && run.rerun_of.is_none()) {
        for trigger in run.triggers.iter() {
            consumers.entry(trigger.id.to_string()).or_default().push(run.number.0);
        }
    }
    consumers
}

#[test]
fn every_trigger_is_in_one_run_although_the_daemon_is_killed() {
    let sandbox = Sandbox::new("triggers");
    let seen = sandbox.path("seen");
    fs::create_dir(&seen).expect("a directory");
    let copy = format!("cp \"$CRONHOLD_TRIGGERS_FILE\" {}/$CRONHOLD_RUN_ID", seen.display());
    sandbox.put_job("build", &format!("program: {copy}\nbatching: {{policy: greedy, most: 7}}\n"));
    let sent = SentTriggers::default();
    for round in 0..ROUNDS {
        let daemon = sandbox.up();
        eventually("the job is loaded", || {
            Api::of(&sandbox).exchange("GET", "/api/v1/jobs/build", "").0.contains("200")
        });
        let count = Arc::new(AtomicUsize::new(0));
        let senders = (0..SENDERS).map(|sender| {
            let (api, sent, count) = (Api::of(&sandbox), Arc::clone(&sent), Arc::clone(&count));
            thread::spawn(move || send_until_killed(&api, &sent, &count, sender, round))
        });
        let senders: Vec<_> = senders.collect();
        eventually("enough triggers were received", || count.load(Ordering::Relaxed) >= TRIGGERS_A_ROUND);
        daemon.kill();
        senders.into_iter().for_each(|sender| sender.join().expect("it does not panic"));
    }
    let daemon = sandbox.up();
    eventually("the job is loaded", || Api::of(&sandbox).exchange("GET", "/api/v1/jobs/build", "").0.contains("200"));
    let api = Api::of(&sandbox);
    let sent: BTreeMap<String, bool> = sent.lock().expect("no panic").clone();
    assert!(sent.values().filter(|is_known| **is_known).count() >= ROUNDS * TRIGGERS_A_ROUND);
    // What was not acknowledged may have been received.
    for id in sent.iter().filter(|(_, is_known)| !**is_known).map(|(id, _)| id) {
        api.post("/api/v1/jobs/build/triggers", &json!({"id": id}).to_string());
    }
    let triggers = || serde_json::from_str::<Value>(&api.get("/api/v1/jobs/build/triggers")).expect("JSON");
    let runs_over = || sandbox.stored().runs.iter().all(|run| run.state.is_finished());
    eventually("no trigger is pending", || triggers()["pending"].as_array().is_some_and(Vec::is_empty) && runs_over());
    let stored = sandbox.stored();
    let consumers = consumers(stored.runs.iter().map(|run| &**run));
    let wrong: Vec<_> = consumers.iter().filter(|(_, runs)| runs.len() != 1).collect();
    assert!(wrong.is_empty(), "each id is in one run: {wrong:?}");
    assert_eq!(consumers.keys().collect::<BTreeSet<_>>(), sent.keys().collect::<BTreeSet<_>>(), "none is lost");
    assert!(stored.runs.iter().any(|run| run.triggers.len() > 1), "some runs stand for several");
    let counts = triggers()["counts"].clone();
    assert_eq!((&counts["received"], &counts["consumed"]), (&json!(sent.len()), &json!(sent.len())));
    for run in &stored.runs {
        // The program of a run that was lost while it started may not have run.
        let Ok(text) = fs::read(seen.join(run.id.to_string())) else { continue };
        let read: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
        let read: Vec<&str> = read.iter().filter_map(|trigger| trigger["id"].as_str()).collect();
        assert_eq!(read, run.triggers.iter().map(|trigger| trigger.id.as_str()).collect::<Vec<_>>());
    }
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// What a user does by hand: trigger, look, remove.
#[test]
fn triggers_are_sent_shown_and_removed_by_the_command_line() {
    let sandbox = Sandbox::new("trigger-verbs");
    let gate = sandbox.path("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done; echo $CRONHOLD_TRIGGERS", gate.display());
    sandbox.put_job("build", &format!("program: {wait}\nparams: {{ref: {{default: main}}}}\nbatching: greedy\n"));
    sandbox.put_job("plain", "program: {noop: true}\n");
    let _daemon = sandbox.up();
    let run = |args: &[&str]| transcript(&mut sandbox.verb(args));
    assert!(run(&["trigger", "plain", "--id", "a"]).contains("plain#1 stands for the trigger `a`"));
    assert!(run(&["trigger", "plain", "--id", "a"]).contains("already received the trigger `a`, for plain#1"));
    assert!(run(&["trigger", "build", "--id", "t1"]).contains("build#1 stands for the trigger `t1`"));
    for id in ["t2", "t3", "t4"] {
        assert!(run(&["trigger", "build", "--id", id]).contains("is pending"));
    }
    let shown = run(&["triggers", "build"]);
    assert!(shown.contains("3 pending triggers of `build`") && shown.contains("ref=main"), "{shown}");
    assert!(run(&["triggers", "build", "--remove", "t3"]).contains("removed 1 pending trigger of `build`"));
    assert!(run(&["triggers", "build", "--remove", "t3"]).ends_with("exit 1\n"));
    fs::write(&gate, "").expect("a file");
    eventually("the others are in one run", || {
        let stored = sandbox.stored();
        let second = stored.runs.iter().find(|run| run.job.as_str() == "build" && run.number.0 == 2);
        second.is_some_and(|run| run.state.is_finished() && run.triggers.len() == 2)
    });
    assert!(run(&["logs", "build#2"]).contains('2'));
    assert!(run(&["triggers", "build", "--clear"]).contains("removed 0 pending triggers"));
    assert!(run(&["show", "build#2"]).contains("2 (t2, t4)"));
    let list: Value = serde_json::from_str(&Api::of(&sandbox).get("/api/v1/jobs/build/triggers")).expect("JSON");
    assert_eq!(list["counts"], json!({"received": 4, "consumed": 3, "expired": 0, "removed": 1}));
}
