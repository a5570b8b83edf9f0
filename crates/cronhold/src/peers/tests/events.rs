//! Events that all nodes hear.

use cronhold_core::State;
use cronhold_core::command::Command;
use cronhold_core::job::Overlap;
use cronhold_core::record::{Actor, Source};
use cronhold_core::{Job, NodeId};
use cronhold_engine::Clock;
use cronhold_schedule::Span;
use serde_json::{Value, json};

use super::super::control::{Control, Heard};
use super::place::{Member, Place, in_executor, job_id};
use super::{DAILY, HOURLY, shell};

fn definition(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Two nodes that follow.
async fn company(place: &Place) -> [Member; 2] {
    let nodes = [Member::start(1, place).await, Member::start(2, place).await];
    for node in &nodes {
        node.follow().await;
    }
    nodes
}

#[test]
fn each_takes_effect_once() {
    in_executor(async || {
        let place = Place::new(false);
        let [one, _two] = company(&place).await;
        one.put("a", Job { overlap: Overlap::Allow, ..shell("true") }, Source::Api).await;
        place.send("trigger", &json!("a"));
        one.until(async || !place.runs().await.is_empty()).await;
        place.send("pause", &json!("a"));
        one.until(async || place.is_paused("a").await).await;
        place.send("resume", &json!("a"));
        one.until(async || !place.is_paused("a").await).await;
        // By now both have acted on what came before.
        assert_eq!(place.runs().await.len(), 1, "{}", one.said());
        assert!(place.runs().await.iter().all(|run| run.state != State::Skipped));

        place.send("pause", &json!("all"));
        one.until(async || place.is_all_paused().await).await;
        one.ask(Command::Pause { job: Some(job_id("a")), why: String::new() }).await;
        place.send("resume", &json!("all"));
        one.until(async || !place.is_all_paused().await && !place.is_paused("a").await).await;
        place.send("drain_nodes", &json!(["node 2", "a host of others"]));
        one.until(async || is_draining(&one, 2).await).await;
        assert!(!is_draining(&one, 1).await);
    });
}

async fn is_draining(node: &Member, number: u128) -> bool {
    let nodes = cronhold_store::all_nodes(&*node.store).await.expect("the store works");
    nodes.iter().any(|node| node.id == NodeId::from_bits(number) && node.draining)
}

#[test]
fn jobs_come_and_go() {
    in_executor(async || {
        let place = Place::new(false);
        let [one, _two] = company(&place).await;
        place.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        one.until(async || place.job("a").await.is_some()).await;
        one.until(async || place.read("a") == Some(definition(DAILY))).await;

        // What is removed by an event stays removed, with its definition there, until everything is read again.
        place.send("remove", &json!("a"));
        one.until(async || place.job("a").await.is_none()).await;
        place.write("b", Some(DAILY));
        one.bell.want_all_soon();
        one.until(async || place.job("b").await.is_some()).await;
        assert_eq!((place.job("a").await, place.read("a")), (None, Some(definition(DAILY))));
        place.send("reload", &json!({}));
        one.until(async || place.job("a").await.is_some()).await;

        // A definition that says less than the job cannot bring it back.
        one.put("rich", Job { timeout: Some(Span::from_secs(60)), ..shell("true") }, Source::Api).await;
        one.until(async || place.read("rich").is_some()).await;
        place.send("remove", &json!("rich"));
        one.until(async || place.job("rich").await.is_none() && place.read("rich").is_none()).await;

        place.write("wrong", Some("{}"));
        place.send("validate", &json!(["wrong"]));
        one.until(async || place.read("wrong").is_some_and(|form| !form["job_state"].is_null())).await;
    });
}

/// Whoever changes the definition of a job that was removed wants it back with the next reload, and not before.
#[test]
fn a_definition_that_was_written_after_a_removal_returns_with_one_reload() {
    in_executor(async || {
        let place = Place::new(false);
        let node = Member::start(1, &place).await;
        node.follow().await;
        for (name, is_looked_at) in [("a", true), ("b", false)] {
            place.write(name, Some(DAILY));
            node.bell.want_all_soon();
            node.until(async || place.job(name).await.is_some()).await;
            place.send("remove", &json!(name));
            node.until(async || place.job(name).await.is_none()).await;
            // One is removed, forgotten and written anew, the other one changed.
            if is_looked_at {
                place.write(name, None);
                look_at_all(&place, &node, "c").await;
            }
            place.write(name, Some(HOURLY));
            if is_looked_at {
                look_at_all(&place, &node, "d").await;
                assert_eq!((place.job(name).await, place.read(name)), (None, Some(definition(HOURLY))));
            }
            place.send("reload", &json!({}));
            node.until(async || place.job(name).await.is_some()).await;
            assert_eq!(place.read(name), Some(definition(HOURLY)));
            look_at_all(&place, &node, &format!("e/{name}")).await;
            assert!(place.job(name).await.is_some(), "it stays");
        }
    });
}

/// Has all definitions looked at, and waits for that: a new one is a job then.
async fn look_at_all(place: &Place, node: &Member, new: &str) {
    place.write(new, Some(DAILY));
    node.bell.want_all_soon();
    node.until(async || place.job(new).await.is_some()).await;
}

/// One node alone: of two that hear of an addition and a removal, one may be done with the second before the other is with
/// the first.
#[test]
fn a_job_that_is_there_is_not_added_again() {
    in_executor(async || {
        let place = Place::new(false);
        let node = Member::start(1, &place).await;
        node.follow().await;
        place.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        place.send("add", &json!({"job_name": "a", "job_def": definition(HOURLY)}));
        node.until(async || node.said().contains("ignored: ")).await;
        assert_eq!(place.read("a"), Some(definition(DAILY)));
    });
}

#[test]
fn what_makes_no_sense_is_ignored() {
    in_executor(async || {
        let place = Place::new(false);
        let node = Member::start(1, &place).await;
        node.follow().await;
        for text in ["", "no JSON", "[1]", r#"{"action": "explode", "args": 1}"#, r#"{"action": "pause", "args": "x"}"#]
        {
            place.send_text(text);
        }
        place.send("kill_run", &json!("9b58757d1ecfe63e9b58757d1ecfe63e"));
        place.send("add", &json!({"job_name": "a", "job_def": {}}));
        place.send("add", &json!({"job_name": "a", "job_def": definition(DAILY)}));
        node.until(async || place.job("a").await.is_some()).await;
        node.until(async || node.said().contains(r#""a"#) && node.said().matches("ignored: ").count() == 7).await;
        assert!(node.said().contains("there is no job `x`"), "{}", node.said());
    });
}

/// What this node has changed is written and told to nodes of another kind, which do not look by themselves. What an event
/// asked for they have heard themselves.
#[test]
fn others_are_told() {
    in_executor(async || {
        let place = Place::new(true);
        let node = Member::start(1, &place).await;
        node.follow().await;
        node.put("a", shell("true"), Source::Api).await;
        node.until(async || !place.sent().is_empty()).await;
        node.ask(Command::Pause { job: Some(job_id("a")), why: String::new() }).await;
        node.until(async || place.sent().len() == 2).await;
        place.send("resume", &json!("a"));
        let is_told = |form: Value| form["job_state"]["paused"] == json!(false);
        node.until(async || place.read("a").is_some_and(is_told)).await;
        node.ask(Command::Pause { job: None, why: String::new() }).await;
        node.until(async || place.sent().len() == 4).await;
        let sent: Vec<Value> = place.sent().iter().map(|text| definition(text)).collect();
        let actions: Vec<(&str, &Value)> =
            sent.iter().map(|event| (event["action"].as_str().expect("a text"), &event["args"])).collect();
        assert_eq!(
            actions,
            [("reload", &json!({})), ("pause", &json!("a")), ("resume", &json!("a")), ("pause", &json!("all")),]
        );
        assert!(!place.is_paused("a").await, "nobody obeys themselves");
    });
}

/// Whoever sends a request chooses its operator's name. Only the kind of the actor says that foreign nodes know already.
#[test]
fn change_by_operator_named_like_an_event_is_sent_to_foreign_nodes() {
    in_executor(async || {
        let place = Place::new(true);
        let node = Member::start(1, &place).await;
        node.follow().await;
        node.put("a", shell("true"), Source::Api).await;
        node.until(async || place.sent().len() == 1).await;
        let mut expected = 1;
        for name in ["event", "shared jobs", "foreign event", "foreign definition"] {
            for command in [
                Command::Pause { job: Some(job_id("a")), why: String::new() },
                Command::Resume { job: Some(job_id("a")) },
            ] {
                node.ask_as(Actor::Operator(name.to_owned()), command).await;
                expected += 1;
                node.until(async || place.sent().len() == expected).await;
            }
        }
    });
}

/// Nodes of another kind know no pause of everything: when it ends they read all definitions again, which say what stays
/// paused.
#[test]
fn others_read_again_when_everything_goes_on() {
    in_executor(async || {
        let place = Place::new(true);
        let node = Member::start(1, &place).await;
        node.follow().await;
        node.put("a", shell("true"), Source::Api).await;
        node.put("b", shell("true"), Source::Api).await;
        node.ask(Command::Pause { job: Some(job_id("a")), why: String::new() }).await;
        node.ask(Command::Pause { job: None, why: String::new() }).await;
        let shows = |job: &str| place.read(job).is_some_and(|form| form["job_state"]["paused"] == json!(true));
        node.until(async || shows("a") && shows("b")).await;
        assert!(!place.is_paused("b").await, "it is not paused by itself");
        let before = place.sent().len();
        node.ask(Command::Resume { job: None }).await;
        let sent = || place.sent()[before..].iter().map(|text| definition(text)).collect::<Vec<Value>>();
        let reads_again = || sent().iter().any(|event| event["action"] == "reload");
        node.until(async || shows("a") && !shows("b") && reads_again()).await;
        assert!(place.is_paused("a").await && !place.is_paused("b").await);
        assert!(sent().iter().all(|event| event["action"] != "resume"), "{:?}", sent());
    });
}

/// A node that was stopped hears late what others have acted on; alone it is the only one who can.
#[test]
fn late_events_are_left_to_others() {
    in_executor(async || {
        let place = Place::new(false);
        let [one, two] = [Member::start(1, &place).await, Member::start(2, &place).await];
        one.put("a", shell("true"), Source::Api).await;
        let control = Control {
            store: std::sync::Arc::clone(&one.store),
            node: one.handle.clone(),
            this: one.this(),
            zones: std::sync::Arc::new(cronhold_schedule::Zones::bundled()),
            bell: std::sync::Arc::clone(&one.bell),
            log: one.log.clone(),
        };
        let late = |text: Value| Heard { text: text.to_string(), since: one.clock.uptime().minus(Span::from_secs(1)) };
        control.act(&late(json!({"action": "pause", "args": "a"})), &one.clock).await;
        assert!(!place.is_paused("a").await);
        two.vanish();
        let gone = async || {
            let nodes = cronhold_store::all_nodes(&*one.store).await.expect("the store works");
            let now = one.store.time().await.expect("the store works");
            nodes.iter().all(|node| node.id == one.this() || node.gone < now)
        };
        one.until(gone).await;
        control.act(&late(json!({"action": "pause", "args": "a"})), &one.clock).await;
        assert!(place.is_paused("a").await, "{}", one.said());
    });
}
