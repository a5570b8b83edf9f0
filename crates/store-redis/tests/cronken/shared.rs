//! Jobs in Cronken's form, and events.

use cronhold_store::conformance::block_on;
use cronhold_store::{DefinitionRules, DefinitionStatus, DefinitionUpdate, SharedDefinition, SharedStore, Store};
use cronhold_store_redis::testing::until;
use serde_json::json;

use crate::place::{NS, Place, open};

fn shared(store: &impl Store) -> &dyn SharedStore {
    store.shared().expect("Redis is shared")
}

fn form(name: &str, text: Option<&str>, standing: DefinitionStatus) -> SharedDefinition {
    SharedDefinition { name: name.to_owned(), text: text.map(str::to_owned), standing }
}

fn settle(name: &str, found: Option<&str>, text: Option<&str>) -> DefinitionUpdate {
    let [found, text] = [found, text].map(|text| text.map(str::to_owned));
    DefinitionUpdate { name: name.to_owned(), found, text, reading: DefinitionRules::Ours }
}

#[test]
fn definitions_are_settled_only_if_unchanged() {
    let place = Place::new();
    let shared = shared(&*place.store);
    let forms = |names: Option<&[String]>| block_on(shared.forms(names)).expect("forms are read");
    let settled = |forms: &[DefinitionUpdate]| block_on(shared.settle(forms)).expect("forms are settled");
    assert_eq!(forms(None), []);
    place.at("HSET", "jobs", &["b", "{\"b\":1}", "a größe", "not even JSON"]);
    let new = [
        form("a größe", Some("not even JSON"), DefinitionStatus::New),
        form("b", Some("{\"b\":1}"), DefinitionStatus::New),
    ];
    assert_eq!(forms(None), new);
    assert_eq!(
        forms(Some(&["b".to_owned(), "none".to_owned()])),
        [new[1].clone(), form("none", None, DefinitionStatus::New)]
    );

    let results = settled(&[
        settle("b", Some("{\"b\":1}"), Some("{\"b\":1}")),
        settle("a größe", Some("something else"), Some("lost")),
        settle("a größe", None, Some("lost")),
        settle("c", Some("not there"), None),
        DefinitionUpdate { reading: DefinitionRules::Theirs, ..settle("c", None, Some("+-")) },
    ]);
    assert_eq!(results, [true, false, false, false, true]);
    assert_eq!(place.at("HGETALL", "jobs", &[]), json!({ "a größe": "not even JSON", "b": "{\"b\":1}", "c": "+-" }));
    let standing = || forms(None).into_iter().map(|form| (form.name, form.standing)).collect::<Vec<_>>();
    let named = |name: &str, standing| (name.to_owned(), standing);
    let new = named("a größe", DefinitionStatus::New);
    let [ours, theirs] = [DefinitionRules::Ours, DefinitionRules::Theirs].map(DefinitionStatus::Settled);
    assert_eq!(standing(), [new.clone(), named("b", ours), named("c", theirs)]);

    // Another client changes one and removes another.
    place.at("HSET", "jobs", &["b", "{\"b\":2}"]);
    place.at("HDEL", "jobs", &["c"]);
    assert_eq!(standing(), [new.clone(), named("b", DefinitionStatus::Changed), named("c", DefinitionStatus::Changed)]);
    assert_eq!(forms(Some(&["c".to_owned()])), [form("c", None, DefinitionStatus::Changed)]);
    assert_eq!(settled(&[settle("b", Some("{\"b\":2}"), None), settle("c", None, None)]), [true, true]);
    assert_eq!(standing(), [new], "nothing is known of them any more");
    assert_eq!(place.at("HKEYS", "jobs", &[]), json!(["a größe"]));
}

#[test]
fn many_definitions_are_settled_in_parts() {
    let place = Place::new();
    let shared = shared(&*place.store);
    let all: Vec<DefinitionUpdate> =
        (0..2_300).map(|number| settle(&format!("job{number:05}"), None, Some("{}"))).collect();
    assert_eq!(block_on(shared.settle(&all)), Ok(vec![true; 2_300]));
    let forms = block_on(shared.forms(None)).expect("forms are read");
    assert!(forms.iter().map(|form| &form.name).eq(all.iter().map(|form| &form.name)), "all of them, in order");
    assert!(forms.iter().all(|form| form.standing.is_settled()));
}

#[test]
fn events_arrive_in_order() {
    let place = Place::new();
    let other = open(&place.server, "");
    let channel = format!("{NS}:__events__");
    let (sender, receiver) = std::sync::mpsc::channel();
    let store = place.store.clone();
    let listener = std::thread::spawn(move || {
        loop {
            for event in block_on(shared(&*store).events()) {
                if event == "end" {
                    return;
                }
                sender.send(event).expect("the receiver waits");
            }
        }
    });
    until("it listens", || place.ask(&["PUBLISH", &channel, "first"]).as_i64().filter(|subscribers| *subscribers > 0));
    for number in 0..100 {
        place.ask(&["PUBLISH", &channel, &format!("{{\"n\":{number}}}")]);
    }
    assert_eq!(block_on(shared(&*other).send("from us")), Ok(()));
    assert_eq!(block_on(shared(&*place.store).send("from ourselves")), Ok(()));
    let expected = std::iter::once("first".to_owned()).chain((0..100).map(|number| format!("{{\"n\":{number}}}")));
    let expected: Vec<String> = expected.chain(["from us".to_owned(), "from ourselves".to_owned()]).collect();
    let received: Vec<String> = (0..expected.len()).map(|_| receiver.recv().expect("an event")).collect();
    assert_eq!(received, expected);
    place.ask(&["PUBLISH", &channel, "end"]);
    listener.join().expect("the listener ends");
}

#[test]
fn event_subscription_reconnects() {
    let place = Place::new();
    let store = place.store.clone();
    let channel = format!("{NS}:__events__");
    let listener =
        std::thread::spawn(move || while !block_on(shared(&*store).events()).contains(&"again".to_owned()) {});
    let has_subscriber = || place.ask(&["PUBLISH", &channel, "hello"]).as_i64().filter(|subscribers| *subscribers > 0);
    until("it listens", has_subscriber);
    place.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    until("it listens again", has_subscriber);
    until("it has received the event", || {
        place.ask(&["PUBLISH", &channel, "again"]);
        listener.is_finished().then_some(())
    });
    listener.join().expect("the listener ends");
}

/// Definitions that are read next must be read by the rules that apply then.
#[test]
fn reading_definitions_reveals_peers() {
    let place = Place::new();
    let shared = shared(&*place.store);
    place.at("HSET", "jobs", &["a", "{}"]);
    block_on(open(&place.server, "peers=cronken").enroll()).expect("it enrolls");
    assert!(!shared.has_foreign_nodes(), "no request was sent");
    block_on(shared.forms(None)).expect("forms are read");
    assert!(shared.has_foreign_nodes());
    // A store that was rolled back may have lost it. Heartbeats detect that.
    place.at("HDEL", "cronhold:meta", &["peers"]);
    block_on(shared.forms(None)).expect("forms are read");
    assert!(shared.has_foreign_nodes());
}

#[test]
fn enrolled_writer_knows_peers() {
    for (params, expected) in [("", false), ("output=list", false), ("peers=cronken", true)] {
        let place = Place::with(params);
        assert_eq!(shared(&*place.store).has_foreign_nodes(), expected, "{params}");
    }
}
