//! One line of the journal: readable text with a checksum at its end, by which a torn line is recognized.

use std::fmt;

use crate::protocol::{ProcessExit, ProgramEnd, RunKey};

/// The version of the journal format.
const FORMAT: u32 = 1;
/// The last word of an exit that was caused by the end of a lease.
const BY_LEASE: &str = "lease";
/// The longest line: a word, a run, three numbers of at most 20 digits, another word, the checksum and separators.
pub(crate) const LINE_MAX: usize = 128;

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalEntry {
    /// The first line: the boot id of the machine to which the processes belong.
    Boot(String),
    /// A program is about to be started, with this pipe for its output. Earlier versions had no pipe.
    Intent { run: RunKey, output: Option<u64> },
    /// The program was started as this process, which began at this clock tick.
    Spawned { run: RunKey, pid: i32, start: u64 },
    /// The program was not started.
    Refused(RunKey),
    /// The program has ended.
    Exit { run: RunKey, end: ProgramEnd },
    /// The program was lost with an earlier keeper.
    Lost(RunKey),
    /// The daemon has stored the result of the run.
    Forgotten(RunKey),
}

impl JournalEntry {
    /// Appends the line to a buffer.
    pub(crate) fn append(&self, into: &mut Vec<u8>) {
        let text = self.to_string();
        into.extend_from_slice(text.as_bytes());
        into.extend_from_slice(format!(" {:08x}\n", checksum(text.as_bytes())).as_bytes());
    }

    /// Reads a line without its newline. Returns `None` if it was not written completely.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let (text, sum) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
        if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != checksum(text.as_bytes()) {
            return None;
        }
        let words: Vec<&str> = text.split(' ').collect();
        let run = RunKey::parse;
        Some(match words.as_slice() {
            ["boot", form, boot] => (form.parse() == Ok(FORMAT)).then(|| Self::Boot((*boot).to_owned()))?,
            ["intent", key] => Self::Intent { run: run(key)?, output: None },
            ["intent", key, output] => Self::Intent { run: run(key)?, output: Some(output.parse().ok()?) },
            ["spawned", key, pid, start] => {
                Self::Spawned { run: run(key)?, pid: pid.parse().ok()?, start: start.parse().ok()? }
            }
            ["refused", key] => Self::Refused(run(key)?),
            ["exit", key, how, number, output, rest @ ..] => {
                let by_lease = match rest {
                    [] => false,
                    [BY_LEASE] => true,
                    _ => return None,
                };
                let number = number.parse().ok()?;
                let exit = match *how {
                    "code" => ProcessExit::Code(number),
                    "signal" => ProcessExit::Signal(number),
                    _ => return None,
                };
                Self::Exit { run: run(key)?, end: ProgramEnd { exit, output: output.parse().ok()?, by_lease } }
            }
            ["lost", key] => Self::Lost(run(key)?),
            ["forgotten", key] => Self::Forgotten(run(key)?),
            _ => return None,
        })
    }
}

impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(boot) => write!(f, "boot {FORMAT} {boot}"),
            Self::Intent { run, output: None } => write!(f, "intent {run}"),
            Self::Intent { run, output: Some(output) } => write!(f, "intent {run} {output}"),
            Self::Spawned { run, pid, start } => write!(f, "spawned {run} {pid} {start}"),
            Self::Refused(run) => write!(f, "refused {run}"),
            Self::Exit { run, end: ProgramEnd { exit, output, by_lease } } => {
                let (how, number) = match exit {
                    ProcessExit::Code(code) => ("code", code),
                    ProcessExit::Signal(signal) => ("signal", signal),
                };
                write!(f, "exit {run} {how} {number} {output}")?;
                if *by_lease { write!(f, " {BY_LEASE}") } else { Ok(()) }
            }
            Self::Lost(run) => write!(f, "lost {run}"),
            Self::Forgotten(run) => write!(f, "forgotten {run}"),
        }
    }
}

/// CRC-32 as in Ethernet, bit by bit: lines are short, and a table would be longer code.
fn checksum(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<JournalEntry> {
        let run = RunKey(u128::MAX);
        vec![
            JournalEntry::Boot("4b7d0d6a-9c0b-4a7e-8f0e-2f8a3a0f2c11".to_owned()),
            JournalEntry::Intent { run, output: None },
            JournalEntry::Intent { run, output: Some(u64::MAX) },
            JournalEntry::Spawned { run, pid: i32::MAX, start: u64::MAX },
            JournalEntry::Refused(run),
            JournalEntry::Exit {
                run,
                end: ProgramEnd { exit: ProcessExit::Code(i32::MIN), output: u64::MAX, by_lease: true },
            },
            JournalEntry::Exit { run, end: ProgramEnd { exit: ProcessExit::Signal(64), output: 0, by_lease: false } },
            JournalEntry::Lost(run),
            JournalEntry::Forgotten(run),
        ]
    }

    #[test]
    fn lines_round_trip_within_the_maximum_length() {
        for entry in entries() {
            let mut line = Vec::new();
            entry.append(&mut line);
            assert!(line.len() <= LINE_MAX, "{entry}: {}", line.len());
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(JournalEntry::parse(&line), Some(entry));
        }
    }

    #[test]
    fn changed_or_truncated_line_is_rejected() {
        for entry in entries() {
            let mut line = Vec::new();
            entry.append(&mut line);
            line.pop();
            for at in 0..line.len() {
                let mut changed = line.clone();
                changed[at] ^= 1;
                assert_eq!(JournalEntry::parse(&changed), None, "{entry} at {at}");
                assert_eq!(JournalEntry::parse(&line[..at]), None, "{entry} cut at {at}");
            }
        }
    }

    #[test]
    fn checksum_matches_the_reference_value() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }
}
