//! Names, ids and channels.

use cronhold_schedule::TextError;

use crate::task::limits::{CHANNEL_BYTES_MAX, NAME_BYTES_MAX};
use crate::task::{Channel, ClassName, PortName, QueueName, StepId, TaskAlias, TaskId, TaskKey};

#[track_caller]
fn check<T: std::fmt::Display>(parse: impl Fn(&str) -> Result<T, TextError>, valid: &[&str], invalid: &[(&str, &str)]) {
    for text in valid {
        assert_eq!(parse(text).map(|name| name.to_string()).as_deref(), Ok(*text));
    }
    for (text, message) in invalid {
        let error = parse(text).map(|name| name.to_string()).expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(error.at.end <= text.len(), "{text}: {error:?}");
    }
}

#[test]
fn port_names_have_letters_digits_and_underscores() {
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    check(
        PortName::parse,
        &["in", "IN", "port_1", "_", "9", "*"],
        &[
            ("", "cannot be empty"),
            ("PORT.1", "`.` cannot be in the name of a port"),
            ("a b", "` ` cannot"),
            ("grün", "`ü` cannot"),
            ("**", "`*` cannot"),
            ("in\n", "control characters"),
            (&long, "at most 200 bytes"),
        ],
    );
    assert!(PortName::parse("*").expect("the template").is_template());
    assert!(!PortName::parse("in").expect("a port").is_template());
    assert_ne!(PortName::parse("in"), PortName::parse("IN"));
}

#[test]
fn alias_begins_with_a_letter() {
    check(
        TaskAlias::parse,
        &["a", "shop/import", "ü1", "a b"],
        &[
            ("1234", "begins with a letter"),
            ("!", "begins with a letter"),
            ("", "cannot be empty"),
            ("1\na", "control characters"),
            ("a\n1", "control characters"),
        ],
    );
}

#[test]
fn task_id_is_a_whole_number() {
    check(
        TaskId::parse,
        &["1", "12", "9223372036854775807"],
        &[
            ("12abc", "`12abc` is not the id of a task"),
            ("0", "is not the id"),
            ("012", "is not the id"),
            ("-1", "is not the id"),
            ("", "is not the id"),
            ("9223372036854775808", "is not the id"),
            ("99999999999999999999999", "is not the id"),
        ],
    );
    assert_eq!(TaskKey::parse("12").map(|key| format!("{key:?}")).as_deref(), Ok("Id(TaskId(12))"));
    assert_eq!(TaskKey::parse("import").map(|key| format!("{key:?}")).as_deref(), Ok("Alias(import)"));
    TaskKey::parse("12abc").expect_err("neither an id nor an alias");
}

#[test]
fn step_ids_are_32_hexadecimal_digits() {
    let step = StepId::from_random([0xab; 16]);
    assert_eq!(step.to_string(), "ab".repeat(16));
    check(
        StepId::parse,
        &["00000000000000000000000000000001"],
        &[("1", "32 hexadecimal digits"), ("ABABABABABABABABABABABABABABABAB", "32 hexadecimal digits")],
    );
}

#[test]
fn queues_and_classes_can_be_any_text() {
    check(
        QueueName::parse,
        &["core", "my queue", "a:b/c"],
        &[("", "cannot be empty"), ("a\u{0}", "control characters")],
    );
    check(ClassName::parse, &["Cronhold::Trigger", "Sum"], &[("", "the name of a class cannot be empty")]);
}

/// A channel, and the channels that its messages reach.
const LEVELS: [(&str, &str); 12] = [
    ("/namespace/event", "/namespace/event /namespace /"),
    ("/a/b/c", "/a/b/c /a/b /a /"),
    ("/a", "/a /"),
    ("/", "/"),
    ("abc", "abc"),
    ("abc/def", "abc/def abc"),
    ("/a/b/", "/a/b/ /a /"),
    ("abc/", "abc/"),
    ("/a//b", "/a//b /a /"),
    ("//", "//"),
    ("//a", "//a /"),
    ("a/b/c", "a/b/c a/b a"),
];

#[test]
fn message_reaches_the_channels_above_its_own() {
    for (channel, levels) in LEVELS {
        let found = Channel::parse(channel).expect(channel).levels();
        let found: Vec<&str> = found.iter().map(Channel::as_str).collect();
        assert_eq!(found.join(" "), levels, "{channel}");
    }
    check(
        Channel::parse,
        &["/a", "a b", "*"],
        &[
            ("", "a channel cannot be empty"),
            ("/a\n", "control characters"),
            (&"x".repeat(CHANNEL_BYTES_MAX + 1), "at most 1000"),
        ],
    );
    let task = TaskId::new(12).expect("a number from 1");
    assert_eq!(Channel::of_task(task).to_string(), "/sidejob/job/12");
    assert_eq!(Channel::of_workers(&QueueName::parse("core").expect("a queue")).to_string(), "/sidejob/workers/core");
    assert_eq!(Channel::log().to_string(), "/sidejob/log");
}
