//! Faults by what is known about a request: whether it was sent, and whether it can have changed anything.

use std::fmt::Display;

use cronhold_store::Fault;

/// The server is unreachable, and nothing was sent.
pub fn unreachable(server: impl Display, why: &str) -> Fault {
    Fault::Unavailable(format!("{server}: {why}"))
}

/// The request was sent, and no reply arrived.
pub fn unconfirmed(server: impl Display, why: &str) -> Fault {
    Fault::OutcomeUnknown(format!("{server}: {why}"))
}

/// The fault of a request that changes nothing: without a reply it had no effect.
pub fn as_unsent(fault: Fault) -> Fault {
    match fault {
        Fault::OutcomeUnknown(why) => Fault::Unavailable(why),
        other => other,
    }
}

/// The fault of a server that has accepted our login before: an operator can correct it while this process waits.
pub fn as_transient(fault: Fault) -> Fault {
    match fault {
        Fault::Permanent(why) => Fault::Unavailable(why),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_change_only_what_is_known_better() {
        let why = || "why".to_owned();
        assert_eq!(unreachable("h:1", "why"), Fault::Unavailable("h:1: why".to_owned()));
        assert_eq!(as_unsent(unconfirmed("h:1", "why")), Fault::Unavailable("h:1: why".to_owned()));
        assert_eq!(as_unsent(Fault::Permanent(why())), Fault::Permanent(why()));
        assert_eq!(as_transient(Fault::Permanent(why())), Fault::Unavailable(why()));
        assert_eq!(as_transient(Fault::OutcomeUnknown(why())), Fault::OutcomeUnknown(why()));
    }
}
