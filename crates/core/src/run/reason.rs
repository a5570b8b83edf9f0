//! Why a run ended in its state. The set is closed, so that code that counts, filters or explains runs does not parse
//! free text. Users see the text of a reason, and stores keep it.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use super::State;
use crate::signal::Signal;

/// Why a run ended in its state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Another run of the job was active.
    Overlap,
    /// The queue of the job was full.
    QueueFull,
    /// A newer run replaced it.
    Replaced,
    /// The job, or all jobs, were paused.
    Paused,
    /// No node was running when it was due, and the catch-up policy did not select it.
    Missed,
    /// It was claimed before the clock was set back, and its run is no longer kept.
    ClaimedBefore,
    /// Its day is not in the calendar.
    Calendar,
    /// Another run with the same args was waiting or active.
    Duplicate,
    /// Another run held the lock.
    Lock,
    /// No node had the labels, or all were draining or full.
    NoEligibleNode,
    /// A foreign system that shares the store ran it.
    RanElsewhere {
        /// The system's name, one word.
        system: String,
        /// The host that ran it.
        host: String,
    },
    /// The job was removed.
    JobRemoved,
    /// Its schedule was removed or disabled.
    ScheduleRemoved,
    /// An operator decided it. The text is the operator's reason; may be empty.
    ByOperator(String),
    /// The program ended with this exit code.
    ExitCode(i32),
    /// The program was ended by a signal that Cronhold did not send.
    Signal(Signal),
    /// The server responded with this HTTP status code.
    Status(u16),
    /// The server's response was not the expected one, although its status was.
    UnexpectedResponse(String),
    /// The server could not be reached, or did not respond completely in time.
    NoResponse(String),
    /// The message that the program, or the service it called, reported.
    Said(String),
    /// It was stopped.
    Stopped,
    /// It was killed.
    Killed,
    /// It exceeded its timeout.
    Timeout,
    /// A plug-in reported an error, or broke its protocol.
    Plugin(String),
    /// A condition did not hold in time, or could not be checked.
    Condition(String),
    /// Its args or templates could not be bound.
    Unbound(String),
    /// The program could not be started.
    NotLaunched(String),
    /// Its node was lost while it was starting, so it is unknown whether the program ran.
    StartUnknown,
    /// Its node was lost.
    NodeLost,
    /// The keeper that owned its program was lost.
    KeeperLost,
    /// Its lock could not be renewed.
    LockLost,
}

/// Reasons whose text is fixed.
const FIXED: [(&str, Reason); 19] = [
    ("overlap", Reason::Overlap),
    ("queue full", Reason::QueueFull),
    ("replaced", Reason::Replaced),
    ("paused", Reason::Paused),
    ("missed", Reason::Missed),
    ("claimed before the clock was set back", Reason::ClaimedBefore),
    ("calendar", Reason::Calendar),
    ("duplicate", Reason::Duplicate),
    ("lock", Reason::Lock),
    ("no eligible node", Reason::NoEligibleNode),
    ("job removed", Reason::JobRemoved),
    ("schedule removed", Reason::ScheduleRemoved),
    ("stopped", Reason::Stopped),
    ("killed", Reason::Killed),
    ("timeout", Reason::Timeout),
    ("start unknown", Reason::StartUnknown),
    ("node lost", Reason::NodeLost),
    ("keeper lost", Reason::KeeperLost),
    ("lock lost", Reason::LockLost),
];

impl Reason {
    /// Whether a run can end in this state for this reason. A mark by an operator fits every state; a run that was
    /// stopped may still report success.
    pub fn fits(&self, state: State) -> bool {
        match self {
            Self::ByOperator(_) => state.is_finished(),
            Self::Overlap
            | Self::QueueFull
            | Self::Paused
            | Self::Missed
            | Self::ClaimedBefore
            | Self::Calendar
            | Self::Duplicate
            | Self::Lock
            | Self::NoEligibleNode
            | Self::RanElsewhere { .. }
            | Self::JobRemoved
            | Self::ScheduleRemoved => state == State::Skipped,
            Self::Replaced => matches!(state, State::Skipped | State::Success | State::Failure),
            Self::Stopped | Self::Killed | Self::Timeout | Self::LockLost => {
                matches!(state, State::Success | State::Failure)
            }
            Self::ExitCode(_) | Self::Status(_) | Self::Said(_) => matches!(state, State::Success | State::Failure),
            Self::Signal(_) | Self::UnexpectedResponse(_) => state == State::Failure,
            Self::Condition(_) => matches!(state, State::Error | State::Skipped),
            Self::Unbound(_)
            | Self::NotLaunched(_)
            | Self::NoResponse(_)
            | Self::Plugin(_)
            | Self::StartUnknown
            | Self::NodeLost
            | Self::KeeperLost => state == State::Error,
        }
    }

    /// Whether an occurrence that was skipped for this reason was missed: nothing in the job and no person wanted that.
    pub const fn is_missed(&self) -> bool {
        matches!(self, Self::Missed | Self::NoEligibleNode | Self::QueueFull)
    }

    /// Parses the text that `Display` writes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if let Some((_, reason)) = FIXED.iter().find(|(fixed, _)| *fixed == text) {
            return Ok(reason.clone());
        }
        let after = |prefix: &str| text.strip_prefix(prefix);
        let known = if text == "by operator" {
            Some(Self::ByOperator(String::new()))
        } else if let Some(why) = after("by operator: ") {
            Some(Self::ByOperator(why.to_owned()))
        } else if let Some(code) = after("exit code ") {
            code.parse().ok().map(Self::ExitCode)
        } else if let Some(name) = after("signal ") {
            Signal::parse(name).ok().map(Self::Signal)
        } else if let Some(code) = after("status ") {
            code.parse().ok().map(Self::Status)
        } else if let Some((system, host)) = after("ran on ").and_then(|ran| ran.split_once(' ')) {
            Some(Self::RanElsewhere { system: system.to_owned(), host: host.to_owned() })
        } else if let Some(what) = after("unexpected response: ") {
            Some(Self::UnexpectedResponse(what.to_owned()))
        } else if let Some(what) = after("no response: ") {
            Some(Self::NoResponse(what.to_owned()))
        } else if let Some(what) = after("said: ") {
            Some(Self::Said(what.to_owned()))
        } else if let Some(what) = after("plug-in: ") {
            Some(Self::Plugin(what.to_owned()))
        } else if let Some(what) = after("condition: ") {
            Some(Self::Condition(what.to_owned()))
        } else if let Some(what) = after("not bound: ") {
            Some(Self::Unbound(what.to_owned()))
        } else {
            after("not launched: ").map(|what| Self::NotLaunched(what.to_owned()))
        };
        known.ok_or_else(|| {
            TextError::new(0..text.len(), format!("`{}` is not a reason of a run", shortened(text)))
                .hint("such as `overlap`, `paused`, `exit code 3` or `by operator: …`")
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RanElsewhere { system, host } => write!(f, "ran on {system} {host}"),
            Self::ByOperator(why) if why.is_empty() => f.write_str("by operator"),
            Self::ByOperator(why) => write!(f, "by operator: {why}"),
            Self::ExitCode(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Status(code) => write!(f, "status {code}"),
            Self::UnexpectedResponse(what) => write!(f, "unexpected response: {what}"),
            Self::NoResponse(what) => write!(f, "no response: {what}"),
            Self::Said(what) => write!(f, "said: {what}"),
            Self::Plugin(what) => write!(f, "plug-in: {what}"),
            Self::Condition(what) => write!(f, "condition: {what}"),
            Self::Unbound(what) => write!(f, "not bound: {what}"),
            Self::NotLaunched(what) => write!(f, "not launched: {what}"),
            fixed => {
                let text = FIXED.iter().find(|(_, reason)| reason == fixed).map_or("", |(text, _)| text);
                f.write_str(text)
            }
        }
    }
}

cronhold_schedule::stored_as_text!(Reason);

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of each reason and the states that it fits: `+` success, `-` failure, `!` error, `/` skipped.
    const REASONS: [(&str, &str); 32] = [
        ("overlap", "/"),
        ("queue full", "/"),
        ("replaced", "+-/"),
        ("paused", "/"),
        ("missed", "/"),
        ("claimed before the clock was set back", "/"),
        ("calendar", "/"),
        ("duplicate", "/"),
        ("lock", "/"),
        ("no eligible node", "/"),
        ("ran on Elsewhere web-1", "/"),
        ("job removed", "/"),
        ("schedule removed", "/"),
        ("by operator", "+-!/"),
        ("by operator: wrong day", "+-!/"),
        ("exit code 3", "+-"),
        ("exit code -1", "+-"),
        ("signal SIGSEGV", "-"),
        ("status 503", "+-"),
        ("unexpected response: the body does not match `ok`", "-"),
        ("no response: connection refused", "!"),
        ("said: no rows", "+-"),
        ("plug-in: no network", "!"),
        ("stopped", "+-"),
        ("killed", "+-"),
        ("timeout", "+-"),
        ("condition: no answer in 5m", "!/"),
        ("not bound: `x` is not defined", "!"),
        ("not launched: no such file", "!"),
        ("start unknown", "!"),
        ("node lost", "!"),
        ("keeper lost", "!"),
    ];

    #[test]
    fn text_of_every_reason_parses_back() {
        for (text, states) in REASONS {
            let reason = Reason::parse(text).expect(text);
            assert_eq!(reason.to_string(), text);
            let letter = |state| match state {
                State::Success => "+",
                State::Failure => "-",
                State::Error => "!",
                State::Skipped => "/",
                _ => "?",
            };
            let fitting: String = State::ALL.into_iter().filter(|state| reason.fits(*state)).map(letter).collect();
            assert_eq!(fitting, states, "{text}");
        }
        for (text, reason) in FIXED {
            assert_eq!((reason.to_string().as_str(), Reason::parse(text)), (text, Ok(reason)));
        }
        for bad in ["", "tired", "exit code x", "signal SIGNOPE", "status 99999", "Overlap"] {
            assert!(Reason::parse(bad).is_err(), "{bad}");
        }
    }
}
