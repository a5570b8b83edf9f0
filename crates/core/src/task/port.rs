//! Ports: their addresses, their options, and what replacing the ports of a task changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cronhold_schedule::TextError;
use serde::{Deserialize, Serialize};

use super::TaskId;
use super::channel::Channel;
use super::json::JsonText;
use super::limits::{PORT_CHANNELS_MAX, PORTS_MAX};
use super::name::PortName;

/// Whether a task reads from a port or writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortDirection {
    In,
    Out,
}

/// One port of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortAddress {
    pub task: TaskId,
    pub direction: PortDirection,
    pub port: PortName,
}

/// Options of a port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortOptions {
    /// What a read returns while the port is empty; `null` is a default too.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub default: Option<JsonText>,
    /// For an in port, the channels whose messages it receives; for an out port, the channels to which it publishes.
    pub channels: Vec<Channel>,
}

/// The ports of a task in one direction, with their options. `*` is the template of ports on demand.
pub type PortMap = BTreeMap<PortName, PortOptions>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct OptionsForm {
    #[serde(deserialize_with = "present")]
    default: Option<JsonText>,
    channels: Vec<Channel>,
}

/// A default that is `null` is a default.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

impl PortDirection {
    /// The part of a key or a path: `in` or `out`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }

    /// What a port of this direction is called: `inport` or `outport`.
    pub const fn port_word(self) -> &'static str {
        match self {
            Self::In => "inport",
            Self::Out => "outport",
        }
    }
}

impl fmt::Display for PortDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `job:12:in:orders`, as SideJob writes it.
impl fmt::Display for PortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job:{}:{}:{}", self.task, self.direction, self.port)
    }
}

/// Parses a JSON object of port names with options, such as `{"in":{"default":1,"channels":["/a"]},"*":{}}`.
pub fn parse_ports(text: &str) -> Result<PortMap, TextError> {
    let forms: BTreeMap<String, OptionsForm> = serde_json::from_str(text).map_err(|error| {
        TextError::new(0..text.len(), format!("ports are not an object of names with options: {error}"))
    })?;
    let ports = forms.into_iter().map(|(name, form)| {
        let channels = distinct(form.channels);
        Ok((PortName::parse(&name)?, PortOptions { default: form.default, channels }))
    });
    let ports: PortMap = ports.collect::<Result<_, TextError>>()?;
    check_ports(&ports)?;
    Ok(ports)
}

/// Checks the limits of ports.
pub fn check_ports(ports: &PortMap) -> Result<(), TextError> {
    if ports.len() > PORTS_MAX {
        let message = format!("a task can have at most {PORTS_MAX} ports in one direction, these are {}", ports.len());
        return Err(TextError::new(0..0, message));
    }
    match ports.iter().find(|(_, options)| options.channels.len() > PORT_CHANNELS_MAX) {
        Some((name, options)) => Err(TextError::new(
            0..0,
            format!("a port can have at most {PORT_CHANNELS_MAX} channels, `{name}` has {}", options.channels.len()),
        )),
        None => Ok(()),
    }
}

/// The channels without repetitions, in their order.
pub fn distinct(channels: Vec<Channel>) -> Vec<Channel> {
    let mut seen = BTreeSet::new();
    channels.into_iter().filter(|channel| seen.insert(channel.clone())).collect()
}

/// The ports of a class merged with those that are given for one task. The options of one port are replaced as a whole.
pub fn merged_ports(class: &PortMap, given: &PortMap) -> PortMap {
    let mut ports = class.clone();
    ports.extend(given.iter().map(|(name, options)| (name.clone(), options.clone())));
    ports
}

/// The options of a port that is used and may not exist yet: its own, or those of the template; `None` if the task has
/// neither, and for the template itself.
pub fn resolve_port<'a>(ports: &'a PortMap, name: &PortName) -> Option<&'a PortOptions> {
    match name.is_template() {
        true => None,
        false => ports.get(name).or_else(|| ports.get(&PortName::template())),
    }
}
