//! Why a connection could not be opened, with a hint that applies only to a server that has never replied.

use cronhold_store::Fault;

use crate::faults;

/// A failed attempt to open a connection. The message and the hint are kept apart, because the hint is wrong for a
/// server that this process has talked to before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    fault: Fault,
    hint: Option<&'static str>,
}

impl ConnectError {
    /// Adds what the user can do if the server has never replied.
    pub fn with_hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// The fault as callers see it. A server that has replied before is only unreachable, so its hint is dropped.
    pub fn into_fault(self, has_replied: bool) -> Fault {
        match (self.fault, self.hint) {
            (Fault::Unavailable(why), Some(hint)) if !has_replied => Fault::Unavailable(format!("{why}; {hint}")),
            (fault, _) => fault,
        }
    }
}

impl From<Fault> for ConnectError {
    /// Nothing was requested on the connection yet, so a missing reply leaves nothing open.
    fn from(fault: Fault) -> Self {
        Self { fault: faults::as_unsent(fault), hint: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_is_shown_only_for_a_server_that_never_replied() {
        let error = ConnectError::from(Fault::OutcomeUnknown("h:1: no reply".to_owned())).with_hint("use TLS");
        assert_eq!(error.clone().into_fault(false), Fault::Unavailable("h:1: no reply; use TLS".to_owned()));
        assert_eq!(error.into_fault(true), Fault::Unavailable("h:1: no reply".to_owned()));
        let error = ConnectError::from(Fault::Permanent("wrong password".to_owned())).with_hint("use TLS");
        assert_eq!(error.into_fault(false), Fault::Permanent("wrong password".to_owned()));
    }
}
