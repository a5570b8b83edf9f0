//! One line of the journal: text that people can read, with a checksum at its end, so that a line that was written in
//! part is told from a whole one.

use std::fmt;

use crate::protocol::{End, Exit, RunKey};

/// The form of the journal that this version writes and reads.
const FORM: u32 = 1;
/// The last word of an end that the end of a lease brought about. A line without it is as old versions write it.
const BY_LEASE: &str = "lease";
/// The longest line: a word, a run, three numbers of at most 20 digits, another word, the checksum and what stands between.
pub(crate) const LINE_MAX: usize = 128;

/// What is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The first line: which start of the machine the processes belong to.
    Boot(String),
    /// A program is about to be started.
    Intent(RunKey),
    /// It was started as this process, which began at this tick.
    Spawned { run: RunKey, pid: i32, start: u64 },
    /// It was not started after all.
    Refused(RunKey),
    /// It has ended.
    Exit { run: RunKey, end: End },
    /// An earlier keeper was lost with it.
    Lost(RunKey),
    /// Nobody needs to remember it.
    Forgotten(RunKey),
}

impl Entry {
    /// Appends the line to what is to be written.
    pub(crate) fn append(&self, into: &mut Vec<u8>) {
        let text = self.to_string();
        into.extend_from_slice(text.as_bytes());
        into.extend_from_slice(format!(" {:08x}\n", checksum(text.as_bytes())).as_bytes());
    }

    /// Reads a line without its newline; none when it is not one that was written whole.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let (text, sum) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
        if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != checksum(text.as_bytes()) {
            return None;
        }
        let words: Vec<&str> = text.split(' ').collect();
        let run = RunKey::parse;
        Some(match words.as_slice() {
            ["boot", form, boot] => (form.parse() == Ok(FORM)).then(|| Self::Boot((*boot).to_owned()))?,
            ["intent", key] => Self::Intent(run(key)?),
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
                    "code" => Exit::Code(number),
                    "signal" => Exit::Signal(number),
                    _ => return None,
                };
                Self::Exit { run: run(key)?, end: End { exit, output: output.parse().ok()?, by_lease } }
            }
            ["lost", key] => Self::Lost(run(key)?),
            ["forgotten", key] => Self::Forgotten(run(key)?),
            _ => return None,
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot(boot) => write!(f, "boot {FORM} {boot}"),
            Self::Intent(run) => write!(f, "intent {run}"),
            Self::Spawned { run, pid, start } => write!(f, "spawned {run} {pid} {start}"),
            Self::Refused(run) => write!(f, "refused {run}"),
            Self::Exit { run, end: End { exit, output, by_lease } } => {
                let (how, number) = match exit {
                    Exit::Code(code) => ("code", code),
                    Exit::Signal(signal) => ("signal", signal),
                };
                write!(f, "exit {run} {how} {number} {output}")?;
                if *by_lease { write!(f, " {BY_LEASE}") } else { Ok(()) }
            }
            Self::Lost(run) => write!(f, "lost {run}"),
            Self::Forgotten(run) => write!(f, "forgotten {run}"),
        }
    }
}

/// CRC-32 as in Ethernet, bit by bit: lines are short, and a table would be more to read.
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

    fn entries() -> Vec<Entry> {
        let run = RunKey(u128::MAX);
        vec![
            Entry::Boot("4b7d0d6a-9c0b-4a7e-8f0e-2f8a3a0f2c11".to_owned()),
            Entry::Intent(run),
            Entry::Spawned { run, pid: i32::MAX, start: u64::MAX },
            Entry::Refused(run),
            Entry::Exit { run, end: End { exit: Exit::Code(i32::MIN), output: u64::MAX, by_lease: true } },
            Entry::Exit { run, end: End { exit: Exit::Signal(64), output: 0, by_lease: false } },
            Entry::Lost(run),
            Entry::Forgotten(run),
        ]
    }

    #[test]
    fn lines_come_back_and_are_short() {
        for entry in entries() {
            let mut line = Vec::new();
            entry.append(&mut line);
            assert!(line.len() <= LINE_MAX, "{entry}: {}", line.len());
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(Entry::parse(&line), Some(entry));
        }
    }

    #[test]
    fn a_line_with_any_byte_changed_or_cut_is_none() {
        for entry in entries() {
            let mut line = Vec::new();
            entry.append(&mut line);
            line.pop();
            for at in 0..line.len() {
                let mut changed = line.clone();
                changed[at] ^= 1;
                assert_eq!(Entry::parse(&changed), None, "{entry} at {at}");
                assert_eq!(Entry::parse(&line[..at]), None, "{entry} cut at {at}");
            }
        }
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }
}
