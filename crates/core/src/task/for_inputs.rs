//! What a worker reads together from several in ports: one value of each, again and again.

use super::json::JsonText;

/// One in port as the next round sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputState {
    /// Whether it has an item.
    pub has_item: bool,
    /// Its default.
    pub default: Option<JsonText>,
}

/// What the next round does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputRound {
    /// Read one value of each port, the default of those that are empty.
    Read,
    /// Perform once for these defaults, writing defaults, and remember them in the field [`DEFAULTS_FIELD`]. No further
    /// round follows.
    Defaults(JsonText),
    /// Wait until the ports that have neither an item nor a default get one.
    Suspend,
    /// Nothing is left to read.
    End,
}

/// The field of the state that holds the last list of defaults. All calls of one worker share it.
pub const DEFAULTS_FIELD: &str = "for_inputs";

/// Decides the next round. `last` is the stored list of defaults.
pub fn next_round(ports: &[InputState], last: Option<&JsonText>) -> InputRound {
    let has_any_item = ports.iter().any(|port| port.has_item);
    let defaults: Option<Vec<&JsonText>> = ports.iter().map(|port| port.default.as_ref()).collect();
    let is_complete = ports.iter().all(|port| port.has_item || port.default.is_some());
    match (has_any_item, defaults) {
        _ if ports.is_empty() => InputRound::End,
        (true, _) if is_complete => InputRound::Read,
        (true, _) => InputRound::Suspend,
        (false, None) => InputRound::End,
        (false, Some(defaults)) => {
            let defaults = JsonText::list(defaults);
            match last.is_some_and(|last| last.is_same_value(&defaults)) {
                true => InputRound::End,
                false => InputRound::Defaults(defaults),
            }
        }
    }
}
