//! Prints the reference of the command line as Markdown, made from the same definitions as `--help`.

use std::io::{self, Write};

use cronhold_cli::Cli;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(cronhold_cli::reference(&mut Cli::definition()).as_bytes())
}
