//! Prints the JSON Schema or the Markdown reference of job files, for the committed copies in docs/reference.

use std::process::ExitCode;

use cronhold_jobfile::reference;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("schema") => println!("{:#}", reference::schema()),
        Some("markdown") => print!("{}", reference::markdown()),
        _ => {
            eprintln!("say `schema` or `markdown`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
