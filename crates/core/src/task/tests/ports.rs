//! Ports: options, templates, and the configuration of classes.

use crate::task::port::{merged_ports, parse_ports, resolve_port};
use crate::task::{Channel, ClassConfig, PortAddress, PortDirection, PortMap, PortName, TaskId};

/// Ports as text, such as `a=1@/x,/y b *`.
fn told(ports: &PortMap) -> String {
    let port = |(name, options): (&PortName, &crate::task::PortOptions)| {
        let default = options.default.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        let channels: Vec<&str> = options.channels.iter().map(Channel::as_str).collect();
        let at = if channels.is_empty() { String::new() } else { format!("@{}", channels.join(",")) };
        format!("{name}{default}{at}")
    };
    ports.iter().map(port).collect::<Vec<_>>().join(" ")
}

#[test]
fn port_options_are_read_from_json() {
    for (json, expected) in [
        ("{}", ""),
        (r#"{"in":{}}"#, "in"),
        (r#"{"in":{"default":null},"B":{"default":false}}"#, "B=false in=null"),
        (r#"{"in":{"default":[1,2],"channels":["/a","/b","/a"]},"*":{"default":123}}"#, "*=123 in=[1,2]@/a,/b"),
        (r#"{"in":{"type":"text"}}"#, "in"),
    ] {
        assert_eq!(parse_ports(json).map(|ports| told(&ports)).as_deref(), Ok(expected), "{json}");
    }
    for (json, message) in [
        (r#"{"PORT.1":{}}"#, "`.` cannot be in the name of a port"),
        (r#"{"":{}}"#, "cannot be empty"),
        (r#"{"in":null}"#, "not an object of names with options"),
        (r#"["in"]"#, "not an object of names with options"),
        (r#"{"in":{"channels":[""]}}"#, "a channel cannot be empty"),
    ] {
        let error = parse_ports(json).expect_err(json).to_string();
        assert!(error.contains(message), "{json}: {error}");
    }
    let many: Vec<String> = (0..65).map(|number| format!("\"/c{number}\"")).collect();
    let error =
        parse_ports(&format!(r#"{{"in":{{"channels":[{}]}}}}"#, many.join(","))).expect_err("too many channels");
    assert!(error.to_string().contains("at most 64 channels"), "{error}");
    let many: Vec<String> = (0..1_001).map(|number| format!("\"p{number}\":{{}}")).collect();
    let error = parse_ports(&format!("{{{}}}", many.join(","))).expect_err("too many ports");
    assert!(error.to_string().contains("at most 1000 ports"), "{error}");
}

#[test]
fn given_ports_replace_options_of_the_class_as_a_whole() {
    for (class, given, merged) in [
        (r#"{"a":{"default":1}}"#, "{}", "a=1"),
        (r#"{"a":{"default":1}}"#, r#"{"b":{}}"#, "a=1 b"),
        (r#"{"a":{"default":1}}"#, r#"{"a":{"default":2}}"#, "a=2"),
        (r#"{"a":{"default":1}}"#, r#"{"a":{"channels":["/x"]}}"#, "a@/x"),
    ] {
        let (class, given) = (parse_ports(class).expect("ports"), parse_ports(given).expect("ports"));
        let before = given.clone();
        assert_eq!(told(&merged_ports(&class, &given)), merged);
        assert_eq!(given, before);
    }
}

#[test]
fn template_gives_its_options_to_unknown_ports() {
    let ports = parse_ports(r#"{"a":{},"*":{"default":123,"channels":["/x"]}}"#).expect("ports");
    let options = |name: &str| {
        resolve_port(&ports, &PortName::parse(name).expect(name))
            .map(|found| (found.default.as_ref().map(ToString::to_string), found.channels.len()))
    };
    assert_eq!(options("a"), Some((None, 0)));
    assert_eq!(options("b"), Some((Some("123".to_owned()), 1)), "channels of the template are inherited too");
    assert_eq!(options("*"), None, "the template is not a port");
    let closed = parse_ports(r#"{"a":{}}"#).expect("ports");
    assert_eq!(resolve_port(&closed, &PortName::parse("b").expect("a name")), None);
}

#[test]
fn addresses_have_sidejobs_text_form() {
    let port = PortName::parse("port1").expect("a name");
    let address = PortAddress { task: TaskId::new(7).expect("an id"), direction: PortDirection::In, port };
    assert_eq!(address.to_string(), "job:7:in:port1");
    let other = PortAddress { direction: PortDirection::Out, ..address.clone() };
    assert_eq!(other.to_string(), "job:7:out:port1");
    assert_ne!(address, other);
}

#[test]
fn class_configuration_keeps_unknown_fields() {
    let text = r#"{"description":"adds","inports":{"in":{"default":0}},"outports":{"sum":{}},"icon":"plus"}"#;
    let config = ClassConfig::parse(text).expect("a configuration");
    assert_eq!(config.text.as_str(), text);
    assert_eq!((told(&config.inports).as_str(), told(&config.outports).as_str()), ("in=0", "sum"));
    assert!(config.publishes_status);
    assert!(!ClassConfig::parse(r#"{"status_publish":false}"#).expect("a configuration").publishes_status);
    assert_eq!(ClassConfig::parse(r#"{"inports":null}"#).map(|config| config.inports.len()), Ok(0));
    let error = ClassConfig::parse(r#"{"outports":{"a b":{}}}"#).expect_err("a wrong name").to_string();
    assert!(error.contains("outports: ` ` cannot be"), "{error}");
    ClassConfig::parse("[]").expect_err("not an object");
}
