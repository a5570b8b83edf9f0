//! Maps error replies of Redis to faults: whether the request took effect, whether a retry helps, and what an operator
//! can do.

use cronhold_store::Fault;
use redis::ServerError;

/// The error code with which our scripts report a key that they cannot use.
const SCRIPT_ERROR: &str = "CRONHOLD-BROKEN ";

/// What the server appends to the error of a script.
const SCRIPT_POSITION: &str = " script: ";

pub(crate) const WRONG_PASSWORD: &str = "Redis rejects the user or the password; check both in the URL, where a character \
                                         such as `@` is written as %40";

pub(crate) const NO_PERMISSION: &str = "the user lacks a permission; check its ACL rules";

pub(crate) const LOADING: &str = "Redis is still loading its data";

/// The server's text for a command inside a script that the user may not run.
const NOT_PERMITTED_IN_SCRIPT: &str = "The user executing the script can't";

const SLOT_MOVING: &str = "the Cluster is moving slots";
/// The server's text for a script that accesses a key in a slot that is being moved to another node.
const NON_LOCAL_KEY: &str = "access a non local key";

/// The fault for an error reply.
pub(crate) fn of_reply(server: &str, error: &ServerError) -> Fault {
    let text = text(error);
    if text.contains(NON_LOCAL_KEY) {
        return Fault::Unavailable(format!("{server}: {SLOT_MOVING} ({text})"));
    }
    if let Some((_, words)) = text.split_once(SCRIPT_ERROR) {
        let words = words.split(SCRIPT_POSITION).next().unwrap_or(words);
        return Fault::Permanent(format!("{server}: {words}"));
    }
    let message = |what: &str| format!("{server}: {what} ({text})");
    match code(error) {
        "OOM" => Fault::ReadOnly(message("Redis is out of memory; raise maxmemory or free memory")),
        "READONLY" => {
            Fault::ReadOnly(message("this server is a replica; use the address of its master, or redis+sentinel://"))
        }
        "MISCONF" => Fault::ReadOnly(message("Redis cannot write to its disk; free space there")),
        "NOREPLICAS" => Fault::ReadOnly(message("Redis has too few replicas; check min-replicas-to-write")),
        "LOADING" => Fault::Unavailable(message(LOADING)),
        "MASTERDOWN" => Fault::Unavailable(message("this server is a replica without a connection to its master")),
        "CLUSTERDOWN" | "TRYAGAIN" => Fault::Unavailable(message(SLOT_MOVING)),
        "MOVED" | "ASK" => Fault::Unavailable(message("the keys have moved to another node of the Cluster")),
        "BUSY" => Fault::Unavailable(message("Redis is running a long script")),
        "NOAUTH" | "WRONGPASS" => Fault::Permanent(message(WRONG_PASSWORD)),
        "NOPERM" => Fault::Permanent(message(NO_PERMISSION)),
        "WRONGTYPE" => Fault::Permanent(message("a key has the wrong type")),
        "CROSSSLOT" => Fault::Permanent(message("the keys of the namespace are not in one slot")),
        _ => Fault::Permanent(message("Redis rejects the command")),
    }
}

/// Whether the error means that the user may not log in or may not run this command.
pub(crate) fn is_about_permissions(error: &ServerError) -> bool {
    matches!(code(error), "NOAUTH" | "WRONGPASS" | "NOPERM")
        || error.details().is_some_and(|details| details.contains(NOT_PERMITTED_IN_SCRIPT))
}

/// Whether the error means that the request must go to another server.
pub(crate) fn is_wrong_server(error: &ServerError) -> bool {
    matches!(code(error), "READONLY" | "MOVED" | "ASK" | "MASTERDOWN" | "NOAUTH")
}

/// Whether the server does not have the script.
pub(crate) fn is_unknown_script(error: &ServerError) -> bool {
    code(error) == "NOSCRIPT"
}

/// The code and the details of an error, as the server sent them.
pub(crate) fn text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// The error code. Older servers report the code of a command inside a script in the details, after a minus.
fn code(error: &ServerError) -> &str {
    const SCRIPT_CODES: [&str; 6] = ["OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", "WRONGTYPE"];
    let details = error.details().unwrap_or_default();
    match error.code() {
        "ERR" => SCRIPT_CODES.into_iter().find(|word| has_error(details, word)).unwrap_or("ERR"),
        code => code,
    }
}

fn has_error(text: &str, word: &str) -> bool {
    text.contains(&format!("-{word} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> ServerError {
        let value = redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).expect("an error is a value");
        match value {
            redis::Value::ServerError(error) => error,
            other => panic!("not an error: {other:?}"),
        }
    }

    #[test]
    fn error_replies_map_to_fault_kinds() {
        for (text, kind) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", "ReadOnly"),
            ("READONLY You can't write against a read only replica.", "ReadOnly"),
            ("MISCONF Errors writing to the AOF file: No space left on device", "ReadOnly"),
            ("NOREPLICAS Not enough good replicas to write.", "ReadOnly"),
            ("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed", "ReadOnly"),
            ("LOADING Redis is loading the dataset in memory", "Unavailable"),
            ("MASTERDOWN Link with MASTER is down", "Unavailable"),
            ("CLUSTERDOWN Hash slot not served", "Unavailable"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "Unavailable"),
            ("MOVED 3999 127.0.0.1:6381", "Unavailable"),
            ("ERR Script attempted to access a non local key in a cluster node script: f_1", "Unavailable"),
            (
                "ERR CRONHOLD-BROKEN the key k cannot be used: ERR Script attempted to access a non local key",
                "Unavailable",
            ),
            ("BUSY Redis is busy running a script.", "Unavailable"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "Permanent"),
            ("NOAUTH Authentication required.", "Permanent"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "Permanent"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "Permanent"),
            ("ERR user_script:1: Script attempted to access nonexistent global variable", "Permanent"),
        ] {
            let fault = of_reply("h:1", &error(text));
            assert!(format!("{fault:?}").starts_with(kind), "{text}: {fault:?}");
            let shown = fault.to_string();
            assert!(
                shown.contains("h:1") && shown.contains(text),
                "the fault names the server and quotes its reply: {shown}"
            );
        }
    }

    #[test]
    fn error_of_our_script_is_shown_without_its_position() {
        let reply =
            "ERR CRONHOLD-BROKEN the key a:due cannot be used: it is a list and not a zset script: 1f, on @x:9.";
        let expected = "h:1: the key a:due cannot be used: it is a list and not a zset";
        assert_eq!(of_reply("h:1", &error(reply)), Fault::Permanent(expected.to_owned()));
    }

    #[test]
    fn permission_errors_are_recognized() {
        for (text, expected) in [
            ("NOAUTH Authentication required.", true),
            ("NOPERM this user has no permissions to run the 'evalsha' command", true),
            ("ERR The user executing the script can't run this command or subcommand script: 1f", true),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", false),
        ] {
            assert_eq!(is_about_permissions(&error(text)), expected, "{text}");
        }
    }

    #[test]
    fn replies_of_a_wrong_server_are_recognized() {
        for (text, is_wrong) in [
            ("READONLY You can't write against a read only replica.", true),
            ("MOVED 3999 127.0.0.1:6381", true),
            ("OOM command not allowed when used memory > 'maxmemory'.", false),
            ("LOADING Redis is loading the dataset in memory", false),
        ] {
            assert_eq!(is_wrong_server(&error(text)), is_wrong, "{text}");
        }
    }
}
