//! Signals of Linux by name and number, so that `stop.signal` is checked when a job is read and not when a run has to
//! be stopped.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
/// A signal of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

/// Names in the order of their numbers; `SIGHUP` is 1.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The largest number, that of the last real-time signal.
const NUMBER_MAX: u8 = 64;

impl Signal {
    /// SIGTERM, which requests a program to end.
    pub const TERM: Self = Self(15);
    /// SIGKILL, which a program cannot ignore.
    pub const KILL: Self = Self(9);

    /// The signal with a number; `None` if Linux has no such signal.
    pub fn from_number(number: i32) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=NUMBER_MAX).contains(number)).map(Self)
    }

    /// The number of the signal.
    pub const fn number(self) -> i32 {
        self.0 as i32
    }

    /// Parses a name, with or without `SIG` and in any case, or a number.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let word = text.trim();
        let upper = word.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Some(index) = NAMES.iter().position(|name| name[3..] == *bare) {
            return Ok(Self(u8::try_from(index + 1).unwrap_or(NUMBER_MAX)));
        }
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(signal) = word.parse().ok().filter(|_| digits).and_then(Self::from_number) {
            return Ok(signal);
        }
        let error = TextError::new(0..text.len(), format!("`{}` is not a signal", shortened(text)));
        Err(match did_you_mean(bare, NAMES.iter().map(|name| &name[3..])) {
            Some(meant) if !digits => error.hint(format!("did you mean `SIG{meant}`?")),
            _ => error.hint("write a name such as `SIGTERM` or `SIGINT`"),
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(usize::from(self.0) - 1) {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

cronhold_schedule::stored_as_text!(Signal);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_parse() {
        for (text, number, name) in [
            ("SIGTERM", 15, "SIGTERM"),
            ("int", 2, "SIGINT"),
            (" SigKill ", 9, "SIGKILL"),
            ("10", 10, "SIGUSR1"),
            ("SYS", 31, "SIGSYS"),
            ("34", 34, "34"),
        ] {
            let signal = Signal::parse(text).expect(text);
            assert_eq!((signal.number(), signal.to_string().as_str()), (number, name));
            assert_eq!(Signal::parse(name), Ok(signal));
        }
        assert_eq!((Signal::TERM.to_string(), Signal::KILL.to_string()), ("SIGTERM".into(), "SIGKILL".into()));
        for (text, hint) in [
            ("SIGTREM", "did you mean `SIGTERM`?"),
            ("0", "write a name"),
            ("65", "write a name"),
            ("", "write a name"),
            ("SIG", "write a name"),
            ("-9", "write a name"),
        ] {
            let error = Signal::parse(text).expect_err(text);
            assert!(error.to_string().contains(hint), "{text}: {error}");
        }
    }
}
