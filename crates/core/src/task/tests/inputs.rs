//! What `for_inputs` reads from several ports.

use std::collections::VecDeque;

use crate::task::JsonText;
use crate::task::for_inputs::{InputRound, InputState, next_round};

/// The ports with their items and, after `=`, their default; then the rounds, with what ends them. Calls are separated
/// by `;`, and a later call may bring further items.
const TABLE: &[(&str, &str)] = &[
    ("", "end"),
    ("1 2 | 3 4", "(1,3) (2,4) end"),
    ("1 2 | 3", "(1,3) suspend"),
    ("1 | ", "suspend"),
    (" | ", "end"),
    ("1 2 | =7", "(1,7) (2,7) end"),
    (" | =7", "end"),
    ("[2,3] | 1 =null", "([2,3],1) end"),
    ("1 =null | [2,3] 3", "(1,[2,3]) (null,3) end"),
    ("=1 | =2", "defaults(1,2)"),
    ("=1 | =2 ; | ", "defaults(1,2) ; end"),
    ("=1 | =2 ; =3 | ; | ", "defaults(1,2) ; defaults(3,2) ; end"),
    ("5 =1 | =2", "(5,2) defaults(1,2)"),
    ("=null | =false", "defaults(null,false)"),
    ("=1", "defaults(1)"),
    ("=1 ; =1.0 ; = 1", "defaults(1) ; defaults(1.0) ; defaults(1)"),
    ("1 2", "(1) (2) end"),
];

#[derive(Default)]
struct Port {
    items: VecDeque<JsonText>,
    default: Option<JsonText>,
}

/// Adds the items of one call to the ports.
fn add(ports: &mut Vec<Port>, call: &str) {
    let parts: Vec<&str> = call.split('|').map(str::trim).collect();
    if ports.is_empty() && call.trim() != "" {
        ports.extend(parts.iter().map(|_| Port::default()));
    }
    for (port, part) in ports.iter_mut().zip(parts) {
        let (items, default) = part.split_once('=').map_or((part, None), |(items, default)| (items, Some(default)));
        port.items.extend(items.split_whitespace().map(|item| JsonText::parse(item).expect(item)));
        if let Some(default) = default {
            port.default = Some(JsonText::parse(default).expect(default));
        }
    }
}

/// Makes rounds until the call ends.
fn rounds(ports: &mut [Port], last: &mut Option<JsonText>) -> String {
    let mut told = Vec::new();
    loop {
        let states: Vec<InputState> = ports
            .iter()
            .map(|port| InputState { has_item: !port.items.is_empty(), default: port.default.clone() })
            .collect();
        match next_round(&states, last.as_ref()) {
            InputRound::Read => {
                let read = |port: &mut Port| port.items.pop_front().or_else(|| port.default.clone()).expect("a value");
                let values: Vec<String> = ports.iter_mut().map(|port| read(port).to_string()).collect();
                told.push(format!("({})", values.join(",")));
            }
            InputRound::Defaults(defaults) => {
                let text = defaults.as_str().trim_start_matches('[').trim_end_matches(']').to_owned();
                *last = Some(defaults);
                told.push(format!("defaults({text})"));
                return told.join(" ");
            }
            InputRound::Suspend => told.push("suspend".to_owned()),
            InputRound::End => told.push("end".to_owned()),
        }
        if told.last().is_some_and(|end| end == "suspend" || end == "end") {
            return told.join(" ");
        }
    }
}

#[test]
fn rounds_read_one_value_of_each_port() {
    for (calls, expected) in TABLE {
        let (mut ports, mut last) = (Vec::new(), None);
        let mut told = Vec::new();
        for call in calls.split(';') {
            add(&mut ports, call);
            told.push(rounds(&mut ports, &mut last));
        }
        assert_eq!(told.join(" ; "), *expected, "{calls}");
    }
}

#[test]
fn defaults_are_compared_by_their_value() {
    let ports = [InputState { has_item: false, default: Some(JsonText::parse(r#"{"a":1,"b":2}"#).expect("JSON")) }];
    let last = JsonText::parse(r#"[{"b":2,"a":1}]"#).expect("JSON");
    assert_eq!(next_round(&ports, Some(&last)), InputRound::End);
}
