//! JSON values, items and log entries.

use cronhold_schedule::Instant;

use crate::task::log::{PortLog, deleted_message, error_entry, message_entry, object_entry, status_message, timestamp};
use crate::task::{JsonObject, JsonText, PortAddress, PortDirection, PortItem, PortName, TaskId, TaskStatus};

fn json(text: &str) -> JsonText {
    JsonText::parse(text).expect(text)
}

fn object(text: &str) -> JsonObject {
    JsonObject::parse(text).expect(text)
}

#[test]
fn values_stay_as_they_were_written() {
    for (text, stored) in [
        ("12", "12"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1.50", "1.50"),
        (" [ ] ", "[]"),
        ("{\n  \"b\": 1,\t\"a\": [ 1, 2 ]\r\n}", r#"{"b":1,"a":[1,2]}"#),
        (r#""a \" b""#, r#""a \" b""#),
        (r#"{"a \\": " x "}"#, r#"{"a \\":" x "}"#),
        ("null", "null"),
    ] {
        assert_eq!(json(text).as_str(), stored, "{text}");
        assert_eq!(serde_json::to_string(&json(text)).ok().as_deref(), Some(stored), "{text}");
        assert_eq!(serde_json::from_str::<JsonText>(text).ok(), Some(json(text)), "{text}");
    }
    for text in ["", "{", "1 2", "'a'", "nul", "1e999", &"[".repeat(1_000)] {
        assert!(JsonText::parse(text).is_err(), "{text}");
    }
}

#[test]
fn values_are_compared_by_meaning() {
    for (left, right, is_same) in [
        ("1", "1", true),
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true),
        (r#""\u0061""#, r#""a""#, true),
        ("1", "2", false),
        ("[]", "{}", false),
        ("null", "false", false),
    ] {
        assert_eq!(json(left).is_same_value(&json(right)), is_same, "{left} {right}");
    }
    assert_eq!(json("[1,2]").to::<Vec<u8>>(), Ok(vec![1, 2]));
    json("[1,2]").to::<String>().expect_err("not a text");
    assert_eq!(JsonText::of(&[1, 2]), Ok(json("[1,2]")));
}

#[test]
fn items_have_data_context_and_options() {
    for (item, stored) in [
        (PortItem::new(json("5")), r#"{"data":5}"#),
        (PortItem::new(json("5")).with_context(object(r#"{"job":1}"#)), r#"{"data":5,"context":{"job":1}}"#),
        (PortItem::new(json("5")).with_context(JsonObject::new()), r#"{"data":5,"context":{}}"#),
        (
            PortItem::new(json("null")).with_options(object(r#"{"log":true,"notify":false}"#)),
            r#"{"data":null,"options":{"log":true,"notify":false}}"#,
        ),
        (PortItem::new(json("[]")).with_options(JsonObject::new()), r#"{"data":[],"options":{}}"#),
    ] {
        assert_eq!(item.to_json(), stored);
        assert_eq!(PortItem::parse(stored), Ok(item));
    }
    assert_eq!(PortItem::parse(r#"{ "data" : [ 1 ], "other": 2, "context": null }"#), Ok(PortItem::new(json("[1]"))));
    for text in ["5", r#"{"context":{}}"#, r#"{"data":1,"context":[]}"#] {
        PortItem::parse(text).expect_err(text);
    }
}

#[test]
fn writers_can_exclude_items_from_the_log() {
    for (stored, is_logged) in [
        (r#"{"data":5}"#, true),
        (r#"{"data":5,"options":{}}"#, true),
        (r#"{"data":5,"options":{"log":true}}"#, true),
        (r#"{"data":5,"options":{"log":false}}"#, false),
        (r#"{"data":5,"options":{"disable_log":true}}"#, false),
    ] {
        assert_eq!(PortItem::parse(stored).map(|item| item.is_logged()), Ok(is_logged), "{stored}");
    }
}

fn port(task: u64, direction: PortDirection, name: &str) -> PortAddress {
    let port = PortName::parse(name).expect("a name");
    PortAddress { task: TaskId::new(task).expect("an id"), direction, port }
}

fn noon() -> Instant {
    Instant::parse("2026-11-17T12:00:00.5Z").expect("a time")
}

#[test]
fn port_log_has_one_element_for_each_port() {
    let mut log = PortLog::default();
    assert_eq!(log.to_entry(&JsonObject::new(), noon()), None, "nothing was read or written");
    log.add_write(&port(1, PortDirection::Out, "out"), json("7"));
    log.add_read(&port(1, PortDirection::In, "b"), json("1"));
    log.add_read(&port(1, PortDirection::In, "a"), json("2"));
    log.add_read(&port(1, PortDirection::In, "b"), json("3"));
    let silent = PortItem::new(json("9")).with_options(object(r#"{"log":false}"#));
    log.add_read_items(&port(1, PortDirection::In, "b"), &[silent, PortItem::new(json("4"))]);
    let entry = log.to_entry(&object(r#"{"job":1}"#), noon()).expect("there is an entry");
    assert_eq!(
        entry.as_str(),
        concat!(
            r#"{"job":1,"timestamp":"2026-11-17T12:00:00.500000000Z","#,
            r#""read":[{"job":1,"data":[1,3,4],"inport":"b"},{"job":1,"data":[2],"inport":"a"}],"#,
            r#""write":[{"job":1,"data":[7],"outport":"out"}]}"#
        )
    );
}

#[test]
fn port_log_is_bounded() {
    let at = port(1, PortDirection::In, "a");
    let length = |log: &PortLog| log.to_entry(&JsonObject::new(), noon()).map_or(0, |entry| entry.as_str().len());
    let mut many = PortLog::default();
    (0..20_000).for_each(|_| many.add_read(&at, json("1")));
    let digits = many.to_entry(&JsonObject::new(), noon()).expect("an entry").as_str().matches("1,").count();
    assert!((9_999..10_010).contains(&digits), "{digits}");
    let mut large = PortLog::default();
    let items = vec![PortItem::new(JsonText::of_text(&"x".repeat(100_000))); 20];
    large.add_written_items(&at, &items);
    assert!((500_000..525_000).contains(&length(&large)), "{}", length(&large));
    let mut silent = PortLog::default();
    silent.add_written_items(&at, &[PortItem::new(json("1")).with_options(object(r#"{"log":false}"#))]);
    assert!(silent.is_empty());
}

#[test]
fn log_entries_have_the_context_first() {
    let context = object(r#"{"channel":"/a","job":1}"#);
    let time = r#""timestamp":"2026-11-17T12:00:00.500000000Z""#;
    let before = r#"{"channel":"/a","job":1,"#;
    assert_eq!(
        error_entry(&context, noon(), "no \"x\"", None).as_str(),
        format!(r#"{before}{time},"error":"no \"x\""}}"#)
    );
    assert_eq!(
        error_entry(&JsonObject::new(), noon(), "x", Some("a\nb")).as_str(),
        format!(r#"{{{time},"error":"x","backtrace":"a\nb"}}"#)
    );
    assert_eq!(message_entry(&context, noon(), "done").as_str(), format!(r#"{before}{time},"message":"done"}}"#));
    assert_eq!(
        object_entry(&context, noon(), &object(r#"{"job":2,"foo":[1]}"#)).as_str(),
        format!(r#"{{"channel":"/a",{time},"foo":[1],"job":2}}"#)
    );
    assert_eq!(object_entry(&JsonObject::new(), noon(), &JsonObject::new()).as_str(), format!("{{{time}}}"));
}

#[test]
fn times_and_messages_have_sidejobs_form() {
    for (at, text) in [
        ("2026-11-17T05:39:54Z", "2026-11-17T05:39:54.000000000Z"),
        ("2026-11-17T05:39:54.674779Z", "2026-11-17T05:39:54.674779000Z"),
    ] {
        assert_eq!(timestamp(Instant::parse(at).expect("a time")), text);
    }
    assert_eq!(status_message(TaskStatus::Queued).as_str(), r#"{"status":"queued"}"#);
    assert_eq!(deleted_message().as_str(), r#"{"deleted":true}"#);
}
