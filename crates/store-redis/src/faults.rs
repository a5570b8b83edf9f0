//! What Redis' errors mean for whoever asked: whether anything happened, whether trying again helps, and what a person
//! can do about it.

use cronhold_store::Fault;
use redis::ServerError;

/// What our scripts say before they name a key that they cannot use.
const BROKEN: &str = "CRONHOLD-BROKEN ";

/// What a server says behind it.
const PLACE: &str = " script: ";

/// What is said of a server that does not let us in.
pub(crate) const PASSWORD: &str = "Redis does not accept the user or the password; look at both in the URL, where a sign \
                                   such as `@` is written as %40";

/// What is said of a user that may not do what is needed.
pub(crate) const RIGHTS: &str = "the user may not do this; see its ACL rules";

/// What servers say of a user whose rights end inside a script.
const INSIDE_SCRIPT: &str = "The user executing the script can't";

/// What is said of a Cluster whose slots are being moved.
const MOVING: &str = "the Cluster is changing";
/// What servers say of a script that wants a key which is on its way to another server, or is there already.
const ELSEWHERE: &str = "access a non local key";

/// What the error that a server answered with means.
pub(crate) fn answered(server: &str, error: &ServerError) -> Fault {
    let text = text(error);
    if text.contains(ELSEWHERE) {
        return Fault::Away(format!("{server}: {MOVING} ({text})"));
    }
    if let Some((_, words)) = text.split_once(BROKEN) {
        let words = words.split(PLACE).next().unwrap_or(words);
        return Fault::Broken(format!("{server}: {words}"));
    }
    let told = |what: &str| format!("{server}: {what} ({text})");
    match code(error) {
        "OOM" => Fault::ReadOnly(told("Redis has no memory left; raise maxmemory or make room")),
        "READONLY" => Fault::ReadOnly(told("this server is a replica; name its master, or use redis+sentinel://")),
        "MISCONF" => Fault::ReadOnly(told("Redis cannot write to its disk; make room there")),
        "NOREPLICAS" => Fault::ReadOnly(told("Redis waits for replicas; see min-replicas-to-write")),
        "LOADING" => Fault::Away(told("Redis is still reading its data")),
        "MASTERDOWN" => Fault::Away(told("this server is a replica that has lost its master")),
        "CLUSTERDOWN" | "TRYAGAIN" => Fault::Away(told(MOVING)),
        "MOVED" | "ASK" => Fault::Away(told("the keys have moved to another server of the Cluster")),
        "BUSY" => Fault::Away(told("Redis is busy with a script")),
        "NOAUTH" | "WRONGPASS" => Fault::Broken(told(PASSWORD)),
        "NOPERM" => Fault::Broken(told(RIGHTS)),
        "WRONGTYPE" => Fault::Broken(told("a key holds something else than it should")),
        "CROSSSLOT" => Fault::Broken(told("the namespace's keys are not in one slot")),
        _ => Fault::Broken(told("Redis refuses")),
    }
}

/// Nothing was sent: the server could not be reached.
pub(crate) fn unreached(server: &str, why: &str) -> Fault {
    Fault::Away(format!("{server}: {why}"))
}

/// Something was sent, and no answer came.
pub(crate) fn unanswered(server: &str, why: &str) -> Fault {
    Fault::Unknown(format!("{server}: {why}"))
}

/// A fault of something that changes nothing: without an answer, nothing has happened.
pub(crate) fn as_unsent(fault: Fault) -> Fault {
    match fault {
        Fault::Unknown(why) => Fault::Away(why),
        other => other,
    }
}

/// Whether an answer says that whoever asks may not.
pub(crate) fn is_about_rights(error: &ServerError) -> bool {
    matches!(code(error), "NOAUTH" | "WRONGPASS" | "NOPERM")
        || error.details().is_some_and(|details| details.contains(INSIDE_SCRIPT))
}

/// A fault of a server that has worked before: what has become wrong with it can be put right without us.
pub(crate) fn as_passing(fault: Fault) -> Fault {
    match fault {
        Fault::Broken(why) => Fault::Away(why),
        other => other,
    }
}

/// Whether an answer says that this server is not, or not any more, the one to ask.
pub(crate) fn is_wrong_server(error: &ServerError) -> bool {
    matches!(code(error), "READONLY" | "MOVED" | "ASK" | "MASTERDOWN" | "NOAUTH")
}

/// Whether a script is unknown to the server.
pub(crate) fn is_unknown_script(error: &ServerError) -> bool {
    code(error) == "NOSCRIPT"
}

/// An error as the server wrote it.
pub(crate) fn text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// The word that says which error it is. Older servers put that of a command inside a script behind a minus.
fn code(error: &ServerError) -> &str {
    const INSIDE: [&str; 6] = ["OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", "WRONGTYPE"];
    let inside = error.details().unwrap_or_default();
    match error.code() {
        "ERR" => INSIDE.into_iter().find(|word| has_error(inside, word)).unwrap_or("ERR"),
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
    fn each_error_has_its_fault() {
        for (text, kind) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", "ReadOnly"),
            ("READONLY You can't write against a read only replica.", "ReadOnly"),
            ("MISCONF Errors writing to the AOF file: No space left on device", "ReadOnly"),
            ("NOREPLICAS Not enough good replicas to write.", "ReadOnly"),
            ("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed", "ReadOnly"),
            ("LOADING Redis is loading the dataset in memory", "Away"),
            ("MASTERDOWN Link with MASTER is down", "Away"),
            ("CLUSTERDOWN Hash slot not served", "Away"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "Away"),
            ("MOVED 3999 127.0.0.1:6381", "Away"),
            ("ERR Script attempted to access a non local key in a cluster node script: f_1", "Away"),
            ("ERR CRONHOLD-BROKEN the key k cannot be used: ERR Script attempted to access a non local key", "Away"),
            ("BUSY Redis is busy running a script.", "Away"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "Broken"),
            ("NOAUTH Authentication required.", "Broken"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "Broken"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "Broken"),
            ("ERR user_script:1: Script attempted to access nonexistent global variable", "Broken"),
        ] {
            let fault = answered("h:1", &error(text));
            assert!(format!("{fault:?}").starts_with(kind), "{text}: {fault:?}");
            let said = fault.to_string();
            assert!(
                said.contains("h:1") && said.contains(text),
                "the fault shows where and the server's words: {said}"
            );
        }
    }

    #[test]
    fn what_our_scripts_say_is_all_that_is_said() {
        let said = "ERR CRONHOLD-BROKEN the key a:due cannot be used: it is a list and not a zset script: 1f, on @x:9.";
        let expected = "h:1: the key a:due cannot be used: it is a list and not a zset";
        assert_eq!(answered("h:1", &error(said)), Fault::Broken(expected.to_owned()));
    }

    #[test]
    fn what_is_about_rights_is_known() {
        for (text, is_so) in [
            ("NOAUTH Authentication required.", true),
            ("NOPERM this user has no permissions to run the 'evalsha' command", true),
            ("ERR The user executing the script can't run this command or subcommand script: 1f", true),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", false),
        ] {
            assert_eq!(is_about_rights(&error(text)), is_so, "{text}");
        }
        assert!(as_passing(Fault::Broken("it may not".to_owned())).is_passing());
    }

    #[test]
    fn a_server_that_is_not_the_one_to_ask_is_left() {
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
