//! The configuration that a worker registers for its class.

use cronhold_schedule::TextError;

use super::json::{JsonObject, JsonText};
use super::port::{PortMap, parse_ports};

/// A registered class. Fields that Cronhold does not know are kept for other readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// The whole configuration as it was registered.
    pub text: JsonText,
    pub inports: PortMap,
    pub outports: PortMap,
    /// Whether status changes are published on the channel of the task. True unless `status_publish` is false.
    pub publishes_status: bool,
}

impl ClassConfig {
    /// Parses a JSON object.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let object = JsonObject::parse(text)?;
        let ports = |field: &str| match object.get(field).filter(|ports| ports.as_str() != "null") {
            Some(ports) => parse_ports(ports.as_str())
                .map_err(|error| TextError { message: format!("{field}: {}", error.message), ..error }),
            None => Ok(PortMap::new()),
        };
        Ok(Self {
            text: JsonText::parse(text)?,
            inports: ports("inports")?,
            outports: ports("outports")?,
            publishes_status: object.get("status_publish").is_none_or(|value| value.as_str() != "false"),
        })
    }

    /// A class without ports.
    pub fn empty() -> Self {
        Self::parse("{}").expect("an empty object is a configuration")
    }
}
