//! Events that all nodes receive.

use cronhold_core::State;
use cronhold_core::command::Command;
use cronhold_core::job::OverlapPolicy;
use cronhold_core::record::{Actor, JobSource};
use cronhold_core::{Job, NodeId};
use cronhold_schedule::Span;
use cronhold_store::SharedEvent;
use serde_json::{Value, json};

use super::cluster::{SharedTestStore, TestNode, in_executor, job_id};
use super::{DAILY, HOURLY, shell};

fn definition(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Two nodes with followers.
async fn two_followers(shared: &SharedTestStore) -> [TestNode; 2] {
    let nodes = [TestNode::start(1, shared).await, TestNode::start(2, shared).await];
    for node in &nodes {
        node.follow().await;
    }
    nodes
}

#[test]
fn event_takes_effect_once_on_two_nodes() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let [one, _two] = two_followers(&shared).await;
        one.put("a", Job { overlap: OverlapPolicy::Allow, ..shell("true") }, JobSource::Api).await;
        shared.send("trigger", &json!("a"));
        one.until(async || !shared.runs().await.is_empty()).await;
        shared.send("pause", &json!("a"));
        one.until(async || shared.is_paused("a").await).await;
        shared.send("resume", &json!("a"));
        one.until(async || !shared.is_paused("a").await).await;
        // By now both nodes have handled the first event.
        assert_eq!(shared.runs().await.len(), 1, "{:?}", one.reports());
        assert!(shared.runs().await.iter().all(|run| run.state != State::Skipped));

        shared.send("pause", &json!("all"));
        one.until(async || shared.is_all_paused().await).await;
        one.ask(Command::Pause { job: Some(job_id("a")), why: String::new(), until: None }).await;
        shared.send("resume", &json!("all"));
        one.until(async || !shared.is_all_paused().await && !shared.is_paused("a").await).await;
        shared.send("drain_nodes", &json!(["node 2", "a host of others"]));
        one.until(async || is_draining(&one, 2).await).await;
        assert!(!is_draining(&one, 1).await);
    });
}

/// An event counts as a request by name, like one of an operator.
#[test]
fn trigger_event_starts_a_run_of_a_paused_job() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        node.put("a", shell("true"), JobSource::Api).await;
        node.ask(Command::Pause { job: Some(job_id("a")), why: String::new(), until: None }).await;
        shared.send("trigger", &json!("a"));
        node.until(async || !shared.runs().await.is_empty()).await;
        let run = shared.runs().await.remove(0);
        assert_eq!((run.state, run.creator()), (State::Starting, Some(&Actor::ForeignEvent)));
    });
}

async fn is_draining(node: &TestNode, number: u128) -> bool {
    let nodes = cronhold_store::all_nodes(&*node.store).await.expect("the store works");
    nodes.iter().any(|node| node.id == NodeId::from_bits(number) && node.draining)
}

#[test]
fn events_add_and_remove_jobs() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let [one, _two] = two_followers(&shared).await;
        shared.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        one.until(async || shared.job("a").await.is_some()).await;
        one.until(async || shared.read("a") == Some(definition(DAILY))).await;

        // A job that an event removes stays removed while its definition stays, until a reload.
        shared.send("remove", &json!("a"));
        one.until(async || shared.job("a").await.is_none()).await;
        shared.write("b", Some(DAILY));
        one.requests.check_soon();
        one.until(async || shared.job("b").await.is_some()).await;
        assert_eq!((shared.job("a").await, shared.read("a")), (None, Some(definition(DAILY))));
        shared.send("reload", &json!({}));
        one.until(async || shared.job("a").await.is_some()).await;

        // A definition that cannot express the whole job cannot restore it.
        one.put("rich", Job { timeout: Some(Span::from_secs(60)), ..shell("true") }, JobSource::Api).await;
        one.until(async || shared.read("rich").is_some()).await;
        shared.send("remove", &json!("rich"));
        one.until(async || shared.job("rich").await.is_none() && shared.read("rich").is_none()).await;

        shared.write("wrong", Some("{}"));
        shared.send("validate", &json!(["wrong"]));
        one.until(async || shared.read("wrong").is_some_and(|form| !form["job_state"].is_null())).await;
    });
}

#[test]
fn definition_written_after_a_removal_creates_its_job_at_the_next_reload() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        for (name, is_reconciled) in [("a", true), ("b", false)] {
            shared.write(name, Some(DAILY));
            node.requests.check_soon();
            node.until(async || shared.job(name).await.is_some()).await;
            shared.send("remove", &json!(name));
            node.until(async || shared.job(name).await.is_none()).await;
            // The first definition is removed and written again, the second one only changed.
            if is_reconciled {
                shared.write(name, None);
                reconcile_all(&shared, &node, "c").await;
            }
            shared.write(name, Some(HOURLY));
            if is_reconciled {
                reconcile_all(&shared, &node, "d").await;
                assert_eq!((shared.job(name).await, shared.read(name)), (None, Some(definition(HOURLY))));
            }
            shared.send("reload", &json!({}));
            node.until(async || shared.job(name).await.is_some()).await;
            assert_eq!(shared.read(name), Some(definition(HOURLY)));
            reconcile_all(&shared, &node, &format!("e/{name}")).await;
            assert!(shared.job(name).await.is_some(), "it stays");
        }
    });
}

/// Reconciles all jobs, and waits until the job of a new definition exists.
async fn reconcile_all(shared: &SharedTestStore, node: &TestNode, new: &str) {
    shared.write(new, Some(DAILY));
    node.requests.check_soon();
    node.until(async || shared.job(new).await.is_some()).await;
}

#[test]
fn add_of_an_existing_job_is_ignored() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        shared.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        shared.send("add", &json!({"job_name": "a", "job_def": definition(HOURLY)}));
        node.until(async || !node.ignored_events().is_empty()).await;
        assert_eq!(shared.read("a"), Some(definition(DAILY)));
    });
}

#[test]
fn invalid_events_are_ignored() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        for text in ["", "no JSON", "[1]", r#"{"action": "explode", "args": 1}"#, r#"{"action": "pause", "args": "x"}"#]
        {
            shared.send_text(text);
        }
        shared.send("kill_run", &json!("9b58757d1ecfe63e9b58757d1ecfe63e"));
        shared.send("add", &json!({"job_name": "a", "job_def": {}}));
        shared.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        node.until(async || shared.job("a").await.is_some()).await;
        node.until(async || node.ignored_events().len() == 7).await;
    });
}

/// Cronken's nodes read definitions only when an event requests it. They have received the events of other programs.
#[test]
fn cronken_nodes_are_notified_of_changes_made_here() {
    in_executor(async || {
        let shared = SharedTestStore::new(true);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        node.put("a", shell("true"), JobSource::Api).await;
        node.until(async || !shared.sent().is_empty()).await;
        node.ask(Command::Pause { job: Some(job_id("a")), why: String::new(), until: None }).await;
        node.until(async || shared.sent().len() == 2).await;
        shared.send("resume", &json!("a"));
        let is_told = |form: Value| form["job_state"]["paused"] == json!(false);
        node.until(async || shared.read("a").is_some_and(is_told)).await;
        node.ask(Command::Pause { job: None, why: String::new(), until: None }).await;
        node.until(async || shared.sent().len() == 4).await;
        let sent: Vec<Value> = shared.sent().iter().map(|text| definition(text)).collect();
        let actions: Vec<(&str, &Value)> =
            sent.iter().map(|event| (event["action"].as_str().expect("a text"), &event["args"])).collect();
        assert_eq!(
            actions,
            [("reload", &json!({})), ("pause", &json!("a")), ("resume", &json!("a")), ("pause", &json!("all")),]
        );
        assert!(!shared.is_paused("a").await, "the node ignores its own events");
    });
}

/// The caller of the API chooses the operator's name, so the name must not decide whether Cronken's nodes are notified.
#[test]
fn cronken_nodes_are_notified_of_changes_by_an_operator_named_event() {
    in_executor(async || {
        let shared = SharedTestStore::new(true);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        node.put("a", shell("true"), JobSource::Api).await;
        node.until(async || shared.sent().len() == 1).await;
        let mut expected = 1;
        for name in ["event", "shared jobs", "foreign event", "foreign definition"] {
            for command in [
                Command::Pause { job: Some(job_id("a")), why: String::new(), until: None },
                Command::Resume { job: Some(job_id("a")) },
            ] {
                node.ask_as(Actor::Operator(name.to_owned()), command).await;
                expected += 1;
                node.until(async || shared.sent().len() == expected).await;
            }
        }
    });
}

/// Cronken has no pause of everything. When it ends, its nodes have to read all definitions, which say what stays paused.
#[test]
fn cronken_nodes_reload_when_everything_resumes() {
    in_executor(async || {
        let shared = SharedTestStore::new(true);
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        node.put("a", shell("true"), JobSource::Api).await;
        node.put("b", shell("true"), JobSource::Api).await;
        node.ask(Command::Pause { job: Some(job_id("a")), why: String::new(), until: None }).await;
        node.ask(Command::Pause { job: None, why: String::new(), until: None }).await;
        let shows = |job: &str| shared.read(job).is_some_and(|form| form["job_state"]["paused"] == json!(true));
        node.until(async || shows("a") && shows("b")).await;
        assert!(!shared.is_paused("b").await, "the job itself is not paused");
        let before = shared.sent().len();
        node.ask(Command::Resume { job: None }).await;
        let sent = || shared.sent()[before..].iter().map(|text| definition(text)).collect::<Vec<Value>>();
        let is_reloaded = || sent().iter().any(|event| event["action"] == "reload");
        node.until(async || shows("a") && !shows("b") && is_reloaded()).await;
        assert!(shared.is_paused("a").await && !shared.is_paused("b").await);
        assert!(sent().iter().all(|event| event["action"] != "resume"), "{:?}", sent());
    });
}

/// A node whose process was stopped receives events that others have handled, and what was done since stays.
#[test]
fn event_received_late_is_not_carried_out_again() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let [one, two] = [TestNode::start(1, &shared).await, TestNode::start(2, &shared).await];
        one.put("a", Job { overlap: OverlapPolicy::Allow, ..shell("true") }, JobSource::Api).await;
        let (fast, slow) = (one.event_handler(), two.event_handler());
        let event = |action: &str, args: &Value| SharedTestStore::event_sent_before(Span::from_secs(5), action, args);
        let pause = event("pause", &json!("a"));
        // It has no effect when it is sent, and would have one later.
        let resume = event("resume", &json!("a"));
        let (trigger, remove) = (event("trigger", &json!("a")), event("remove", &json!("a")));
        for received in [&resume, &pause, &trigger] {
            fast.handle(received, &one.clock).await;
        }
        assert!(shared.is_paused("a").await);
        slow.handle(&resume, &two.clock).await;
        assert!(shared.is_paused("a").await, "{:?}", two.reports());
        one.ask(Command::Resume { job: Some(job_id("a")) }).await;
        for received in [&pause, &trigger] {
            slow.handle(received, &two.clock).await;
        }
        assert!(!shared.is_paused("a").await, "{:?}", two.reports());
        assert_eq!(shared.runs().await.len(), 1);
        fast.handle(&remove, &one.clock).await;
        one.put("a", shell("true"), JobSource::Api).await;
        slow.handle(&remove, &two.clock).await;
        assert!(shared.job("a").await.is_some(), "{:?}", two.reports());
    });
}

/// The lock of such an event may have expired, so nothing shows whether another node has handled it.
#[test]
fn event_sent_long_ago_is_ignored() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let one = TestNode::start(1, &shared).await;
        one.put("a", shell("true"), JobSource::Api).await;
        for (age, is_paused) in [(Span::from_secs(6 * 60), false), (Span::from_secs(4 * 60), true)] {
            let event = SharedTestStore::event_sent_before(age, "pause", &json!("a"));
            one.event_handler().handle(&event, &one.clock).await;
            assert_eq!(shared.is_paused("a").await, is_paused, "{age}: {:?}", one.reports());
        }
        assert_eq!(one.ignored_events().len(), 1);
    });
}

#[test]
fn equal_events_each_take_effect_once_on_three_nodes() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let nodes = [1, 2, 3].map(async |number| TestNode::start(number, &shared).await);
        let [one, two, three] = nodes;
        let nodes = [one.await, two.await, three.await];
        let [one, ..] = &nodes;
        one.put("a", Job { overlap: OverlapPolicy::Allow, ..shell("true") }, JobSource::Api).await;
        for node in &nodes {
            node.follow().await;
        }
        for _ in 0..80 {
            shared.send("trigger", &json!("a"));
        }
        shared.send("pause", &json!("a"));
        one.until(async || shared.is_paused("a").await).await;
        let outcomes = async || {
            let reports: usize = nodes.iter().map(|node| node.reports().len()).sum();
            reports >= 3 * 81
        };
        one.until(outcomes).await;
        assert_eq!(shared.runs().await.len(), 80);
    });
}

/// A node that has just subscribed cannot tell which event it is. Other nodes can; a single node has to handle it.
#[test]
fn unidentified_event_is_handled_only_by_a_single_node() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let [one, two] = [TestNode::start(1, &shared).await, TestNode::start(2, &shared).await];
        one.put("a", shell("true"), JobSource::Api).await;
        let handler = one.event_handler();
        let pause = SharedEvent { text: json!({"action": "pause", "args": "a"}).to_string(), place: None };
        handler.handle(&pause, &one.clock).await;
        assert!(!shared.is_paused("a").await);
        two.crash();
        let gone = async || {
            let nodes = cronhold_store::all_nodes(&*one.store).await.expect("the store works");
            let now = one.store.time().await.expect("the store works");
            nodes.iter().all(|node| node.id == one.node_id() || node.gone < now)
        };
        one.until(gone).await;
        handler.handle(&pause, &one.clock).await;
        assert!(shared.is_paused("a").await, "{:?}", one.reports());
    });
}
