//! Jobs in Cronken's form, and events.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_store::conformance::block_on;
use cronhold_store::{
    DefinitionRules, DefinitionStatus, DefinitionUpdate, SharedDefinition, SharedEvent, SharedStore, Store,
};
use cronhold_store_redis::testing::until;
use serde_json::json;

use crate::fixture::{Fixture, NS, open};

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
    let fixture = Fixture::new();
    let shared = shared(&*fixture.store);
    let forms = |names: Option<&[String]>| block_on(shared.forms(names)).expect("forms are read");
    let settled = |forms: &[DefinitionUpdate]| block_on(shared.settle(forms)).expect("forms are settled");
    assert_eq!(forms(None), []);
    fixture.at("HSET", "jobs", &["b", "{\"b\":1}", "a größe", "not even JSON"]);
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
    assert_eq!(fixture.at("HGETALL", "jobs", &[]), json!({ "a größe": "not even JSON", "b": "{\"b\":1}", "c": "+-" }));
    let standing = || forms(None).into_iter().map(|form| (form.name, form.standing)).collect::<Vec<_>>();
    let named = |name: &str, standing| (name.to_owned(), standing);
    let new = named("a größe", DefinitionStatus::New);
    let [ours, theirs] = [DefinitionRules::Ours, DefinitionRules::Theirs].map(DefinitionStatus::Settled);
    assert_eq!(standing(), [new.clone(), named("b", ours), named("c", theirs)]);

    // Another client changes one and removes another.
    fixture.at("HSET", "jobs", &["b", "{\"b\":2}"]);
    fixture.at("HDEL", "jobs", &["c"]);
    assert_eq!(standing(), [new.clone(), named("b", DefinitionStatus::Changed), named("c", DefinitionStatus::Changed)]);
    assert_eq!(forms(Some(&["c".to_owned()])), [form("c", None, DefinitionStatus::Changed)]);
    assert_eq!(settled(&[settle("b", Some("{\"b\":2}"), None), settle("c", None, None)]), [true, true]);
    assert_eq!(standing(), [new], "nothing is known of them any more");
    assert_eq!(fixture.at("HKEYS", "jobs", &[]), json!(["a größe"]));
}

#[test]
fn many_definitions_are_settled_in_parts() {
    let fixture = Fixture::new();
    let shared = shared(&*fixture.store);
    let all: Vec<DefinitionUpdate> =
        (0..2_300).map(|number| settle(&format!("job{number:05}"), None, Some("{}"))).collect();
    assert_eq!(block_on(shared.settle(&all)), Ok(vec![true; 2_300]));
    let forms = block_on(shared.forms(None)).expect("forms are read");
    assert!(forms.iter().map(|form| &form.name).eq(all.iter().map(|form| &form.name)), "all of them, in order");
    assert!(forms.iter().all(|form| form.standing.is_settled()));
}

#[test]
fn events_arrive_in_order() {
    let fixture = Fixture::new();
    let other = open(&fixture.server, "");
    let channel = format!("{NS}:__events__");
    let (sender, receiver) = std::sync::mpsc::channel();
    let store = fixture.store.clone();
    let listener = std::thread::spawn(move || {
        loop {
            for event in block_on(shared(&*store).events()) {
                if event.text == "end" {
                    return;
                }
                sender.send(event.text).expect("the receiver waits");
            }
        }
    });
    until("it listens", || {
        fixture.command(&["PUBLISH", &channel, "first"]).as_i64().filter(|subscribers| *subscribers > 0)
    });
    for number in 0..100 {
        fixture.command(&["PUBLISH", &channel, &format!("{{\"n\":{number}}}")]);
    }
    assert_eq!(block_on(shared(&*other).send("from us")), Ok(()));
    assert_eq!(block_on(shared(&*fixture.store).send("from ourselves")), Ok(()));
    let expected = std::iter::once("first".to_owned()).chain((0..100).map(|number| format!("{{\"n\":{number}}}")));
    let expected: Vec<String> = expected.chain(["from us".to_owned(), "from ourselves".to_owned()]).collect();
    let received: Vec<String> = (0..expected.len()).map(|_| receiver.recv().expect("an event")).collect();
    assert_eq!(received, expected);
    fixture.command(&["PUBLISH", &channel, "end"]);
    listener.join().expect("the listener ends");
}

/// Equal events are told apart, and two processes agree on which is which.
#[test]
fn processes_agree_on_the_places_of_events() {
    let fixture = Fixture::new();
    let channel = format!("{NS}:__events__");
    let listeners = [Arc::clone(&fixture.store), open(&fixture.server, "")].map(|store| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            while all.last().is_none_or(|event: &SharedEvent| event.text != "end") {
                all.extend(block_on(shared(&*store).events()));
            }
            all
        })
    });
    let count = || fixture.command(&["PUBSUB", "NUMSUB", &channel])[1].as_i64().filter(|subscribers| *subscribers == 2);
    until("both listen", count);
    let marks = format!("{NS}:cronhold:mark_counter");
    until("both have published a mark", || {
        fixture.command(&["GET", &marks]).as_str()?.parse::<u64>().ok().filter(|n| *n >= 2)
    });
    for _ in 0..300 {
        fixture.command(&["PUBLISH", &channel, "again"]);
    }
    fixture.command(&["PUBLISH", &channel, "end"]);
    let [one, two] = listeners.map(|listener| listener.join().expect("the listener ends"));
    assert_eq!((one.len(), &one), (301, &two));
    let places: BTreeSet<_> =
        one[..300].iter().map(|event| event.place.as_ref().map(|at| (&at.mark, at.index))).collect();
    assert_eq!(places.len(), 300);
    assert!(!places.contains(&None));
}

#[test]
fn event_subscription_reconnects() {
    let fixture = Fixture::new();
    let store = fixture.store.clone();
    let channel = format!("{NS}:__events__");
    let is_received = move || block_on(shared(&*store).events()).iter().any(|event| event.text == "again");
    let listener = std::thread::spawn(move || while !is_received() {});
    let has_subscriber =
        || fixture.command(&["PUBLISH", &channel, "hello"]).as_i64().filter(|subscribers| *subscribers > 0);
    until("it listens", has_subscriber);
    fixture.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    until("it listens again", has_subscriber);
    until("it has received the event", || {
        fixture.command(&["PUBLISH", &channel, "again"]);
        listener.is_finished().then_some(())
    });
    listener.join().expect("the listener ends");
}

/// Definitions that are read next must be read by the rules that apply then.
#[test]
fn reading_definitions_reveals_peers() {
    let fixture = Fixture::new();
    let shared = shared(&*fixture.store);
    fixture.at("HSET", "jobs", &["a", "{}"]);
    block_on(open(&fixture.server, "peers=cronken").enroll()).expect("it enrolls");
    assert!(!shared.has_foreign_nodes(), "no request was sent");
    block_on(shared.forms(None)).expect("forms are read");
    assert!(shared.has_foreign_nodes());
    // A store that was rolled back may have lost it. Heartbeats detect that.
    fixture.at("HDEL", "cronhold:meta", &["peers"]);
    block_on(shared.forms(None)).expect("forms are read");
    assert!(shared.has_foreign_nodes());
}

#[test]
fn enrolled_writer_knows_peers() {
    for (params, expected) in [("", false), ("output=list", false), ("peers=cronken", true)] {
        let fixture = Fixture::with(params);
        assert_eq!(shared(&*fixture.store).has_foreign_nodes(), expected, "{params}");
    }
}
