//! Maps errors of the client library to faults: whether the request took effect, whether a retry helps, and what an
//! operator can do.

use cronhold_store::Fault;
use zookeeper_client::Error;

const NOT_AUTHORIZED: &str = "ZooKeeper rejects the user or the password, or the ACL of a znode denies access; check the \
                              credentials in the URL, where a character such as `@` is written as %40";

const NO_QUORUM: &str = "the server has no connection to a majority of the ensemble";

/// The session cannot be opened.
pub(crate) fn of_connect(servers: &str, error: &Error) -> Fault {
    match error {
        Error::NoHosts | Error::Timeout | Error::ConnectionLoss | Error::SessionExpired => {
            unreachable(servers, "no server accepts a session")
        }
        Error::AuthFailed | Error::NoAuth => Fault::Permanent(format!("{servers}: {NOT_AUTHORIZED}")),
        Error::BadArguments(_) => Fault::Permanent(format!("{servers}: {error}")),
        other => unreachable(servers, &other.to_string()),
    }
}

/// A request that only reads: without a reply it had no effect.
pub(crate) fn of_read(servers: &str, error: &Error) -> Fault {
    match of_write(servers, error) {
        Fault::OutcomeUnknown(why) => Fault::Unavailable(why),
        other => other,
    }
}

/// A request that changes something. Errors that the server did not send leave the outcome unknown.
pub(crate) fn of_write(servers: &str, error: &Error) -> Fault {
    match error {
        Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => unauthorized(servers),
        Error::NotReadOnly => unreachable(servers, NO_QUORUM),
        Error::Throttled => unreachable(servers, "the server throttles requests because it is overloaded"),
        Error::QuotaExceeded => {
            Fault::ReadOnly(format!("{servers}: the quota of the root znode is used up; raise it with `setquota`"))
        }
        Error::NoNode => Fault::Permanent(format!(
            "{servers}: a znode of the store does not exist any more; it was deleted, or the ensemble was restored"
        )),
        Error::Unimplemented => Fault::Permanent(format!("{servers}: {TOO_OLD}")),
        Error::MarshallingError | Error::BadArguments(_) => Fault::Permanent(format!("{servers}: {error}")),
        other => unconfirmed(servers, &other.to_string()),
    }
}

/// Said of servers without reads of several znodes and watches on trees.
pub(crate) const TOO_OLD: &str = "this ZooKeeper is older than 3.6, which is the oldest version that Cronhold supports";

/// The server rejects the credentials. An operator can correct that while this process waits.
pub(crate) fn unauthorized(servers: &str) -> Fault {
    Fault::Permanent(format!("{servers}: {NOT_AUTHORIZED}"))
}

/// Nothing was sent.
pub(crate) fn unreachable(servers: &str, why: &str) -> Fault {
    Fault::Unavailable(format!("{servers}: {why}"))
}

/// The request was sent, and no reply arrived.
pub(crate) fn unconfirmed(servers: &str, why: &str) -> Fault {
    Fault::OutcomeUnknown(format!("{servers}: {why}"))
}

/// The server replied with something else than was requested.
pub(crate) fn unexpected(servers: &str, what: &str) -> Fault {
    Fault::Permanent(format!("{servers}: unexpected reply from ZooKeeper: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_replies_leave_only_writes_unknown() {
        for error in [Error::ConnectionLoss, Error::SessionExpired, Error::ClientClosed, Error::Timeout] {
            assert!(matches!(of_write("h:1", &error), Fault::OutcomeUnknown(_)), "{error:?}");
            assert!(matches!(of_read("h:1", &error), Fault::Unavailable(_)), "{error:?}");
        }
    }

    #[test]
    fn refusals_map_to_fault_kinds() {
        for (error, kind) in [
            (Error::NoAuth, "Permanent"),
            (Error::NotReadOnly, "Unavailable"),
            (Error::Throttled, "Unavailable"),
            (Error::QuotaExceeded, "ReadOnly"),
            (Error::Unimplemented, "Permanent"),
        ] {
            let fault = of_write("h:1", &error);
            assert!(format!("{fault:?}").starts_with(kind) && fault.to_string().contains("h:1"), "{fault:?}");
        }
    }
}
