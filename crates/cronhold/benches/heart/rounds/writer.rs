//! The program of the rounds: this benchmark itself, called with another first word. What it writes, when, and how it
//! ends follow from a seed, so that whoever judges a run knows every byte of it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::chance::Chance;

/// The first word of its command line.
pub(crate) const VERB: &str = "write-lines";
/// It writes so many lines, at least and at most.
const LINES: (u64, u64) = (5, 30);
/// It rests so long before each of them, at most.
const REST_MILLIS: u64 = 100;
/// And so long after the first, at least and at most, so that all of them run at once for some time.
const PAUSE_MILLIS: (u64, u64) = (1_500, 3_000);
/// One in so many writes long lines, so that its output comes to the store in several parts.
const LONG_ONE_IN: u64 = 20;
const LONG: usize = 8 * 1024;
const SHORT: usize = 24;
/// One in so many ends well.
const WELL_ONE_IN: u64 = 2;

/// What one program does.
pub(super) struct Script {
    /// Pauses in milliseconds, and the lines that come after them.
    lines: Vec<(u64, String)>,
    pub(super) code: u8,
}

impl Script {
    /// The script of the program with a number in a round.
    pub(super) fn new(seed: u64, number: usize) -> Self {
        let mut chance = Chance::new(seed ^ (number as u64 + 1).rotate_left(40));
        let filling = "x".repeat(if chance.one_in(LONG_ONE_IN) { LONG } else { SHORT });
        let count = LINES.0 + chance.below(LINES.1 - LINES.0 + 1);
        let lines = (0..count).map(|line| (chance.below(REST_MILLIS + 1), format!("{number} {line} {filling}\n")));
        let mut lines: Vec<(u64, String)> = lines.collect();
        lines[1].0 = PAUSE_MILLIS.0 + chance.below(PAUSE_MILLIS.1 - PAUSE_MILLIS.0);
        let code = if chance.one_in(WELL_ONE_IN) { 0 } else { chance.below(256) };
        Self { lines, code: u8::try_from(code).expect("below 256") }
    }

    /// All that it writes.
    pub(super) fn output(&self) -> String {
        self.lines.iter().map(|(_, line)| line.as_str()).collect()
    }
}

/// Does what the script of a seed and a number says, after a line in a file that tells that it was started.
pub(crate) fn write(words: &[String]) -> ExitCode {
    let [seed, number, starts, run] = words else { return ExitCode::FAILURE };
    let (Ok(seed), Ok(number)) = (seed.parse(), number.parse()) else { return ExitCode::FAILURE };
    if note_start(Path::new(starts), run).is_err() {
        return ExitCode::FAILURE;
    }
    let script = Script::new(seed, number);
    let (_nobody, never) = channel::<()>();
    for (at, (rest, line)) in script.lines.iter().enumerate() {
        let _ = never.recv_timeout(Duration::from_millis(*rest));
        // Both streams go to one place, in the order in which they are written.
        let written = match at % 2 {
            0 => io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()),
            _ => io::stderr().write_all(line.as_bytes()),
        };
        if written.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::from(script.code)
}

/// One write is one line, however many programs write into the file.
fn note_start(starts: &Path, run: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(starts)?.write_all(format!("{run}\n").as_bytes())
}
