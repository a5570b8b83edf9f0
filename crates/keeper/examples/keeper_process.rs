//! A keeper as a process of its own, for tests: `keeper_process keeper DIR IDLE_MS JOURNAL_MAX`, its
//! second stage, or its collector of outputs.

use std::process::ExitCode;
use std::time::Duration;

use cronhold_keeper::{Options, collect_outputs, launch_stage, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["keeper-launch"] => launch_stage(),
        ["keeper-outputs"] => collect_outputs(),
        ["keeper", data, idle, journal_max] => {
            let mut options = Options::new((*data).into(), "test");
            options.idle = Duration::from_millis(idle.parse().expect("milliseconds"));
            options.journal_max = journal_max.parse().expect("bytes");
            match run(options) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        _ => ExitCode::from(2),
    }
}
