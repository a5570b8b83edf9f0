//! The program of the rounds: this benchmark itself, with another first argument. Its output, its timing and its exit
//! code follow from a seed, so that the checks know every byte.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::chance::Chance;

/// The first argument of its command line.
pub(crate) const VERB: &str = "write-lines";
/// The least and the largest number of lines.
const LINES: (u64, u64) = (5, 30);
/// The longest pause before a line.
const REST_MILLIS: u64 = 100;
/// The shortest and the longest pause after the first line. It makes all programs run at once for some time.
const PAUSE_MILLIS: (u64, u64) = (1_500, 3_000);
/// One in this many programs writes long lines, so that its output is stored in several chunks.
const LONG_ONE_IN: u64 = 20;
const LONG: usize = 8 * 1024;
const SHORT: usize = 24;
/// One in this many programs exits with 0.
const WELL_ONE_IN: u64 = 2;

/// The behaviour of one program.
pub(super) struct Script {
    /// Pauses in milliseconds, each with the line that follows it.
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

    /// The whole output of the program.
    pub(super) fn output(&self) -> String {
        self.lines.iter().map(|(_, line)| line.as_str()).collect()
    }
}

/// Records the start in a file, and then performs the script of a seed and a number.
pub(crate) fn write(arguments: &[String]) -> ExitCode {
    let [seed, number, starts, run] = arguments else { return ExitCode::FAILURE };
    let (Ok(seed), Ok(number)) = (seed.parse(), number.parse()) else { return ExitCode::FAILURE };
    if note_start(Path::new(starts), run).is_err() {
        return ExitCode::FAILURE;
    }
    let script = Script::new(seed, number);
    let (_sender, receiver) = channel::<()>();
    for (at, (rest, line)) in script.lines.iter().enumerate() {
        let _ = receiver.recv_timeout(Duration::from_millis(*rest));
        // Both streams share one output file, which keeps the order of the writes.
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

/// Appends one line with a single write, because many programs write to the file at once.
fn note_start(starts: &Path, run: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(starts)?.write_all(format!("{run}\n").as_bytes())
}
