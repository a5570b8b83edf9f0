//! `cronhold bench`: measures this machine and a store. The binary implements it, because only the binary knows engine
//! and stores.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use crate::render::{self, OutputFormat, TerminalWriter};
use crate::{BenchReport, CliError, ExitStatus};

/// Measure what this machine and its store are good for
#[derive(Debug, Args)]
#[command(after_help = "\
The command runs a node for a moment, with no-op jobs and with a program that does nothing. It
measures the disk or the connection to the store, timers, bare programs, claims, runs and start
lateness, and says in words what the result means. docs/benchmarks.md describes each figure.

It works in a new directory `cronhold-bench-…` in the data directory, because the disk of that
directory counts, or in the nearest existing directory above it. On Redis it uses a namespace of its
own, or the namespace of the URL if that is empty; on ZooKeeper a root of its own, or the root of
the URL if that does not exist. It removes both at the end, also after Ctrl-C.
It loads the machine and the server, so do not run it on a busy production system.

Examples:
  cronhold bench
  cronhold bench --data /var/lib/cronhold
  cronhold bench --store redis://127.0.0.1 -o json

Put a URL with a password into CRONHOLD_STORE: other users of the machine can read the command line.")]
pub struct BenchArgs {
    /// Data directory whose disk is measured [default: $CRONHOLD_DATA, $XDG_DATA_HOME/cronhold, or
    /// ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// URL of the store to measure, such as redis://127.0.0.1; its records are not touched [default: $CRONHOLD_STORE, or
    /// sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Measure even if the store is configured to evict data
    #[arg(long)]
    pub accept_loss: bool,
    /// Approximate duration of the whole command, from 5 to 600; short measurements are less precise
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(5..=600))]
    pub seconds: u32,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OutputFormat,
}

impl BenchArgs {
    /// Prints the result in the selected format.
    pub fn show(&self, report: &BenchReport, colours: bool, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let mut shown = TerminalWriter::new(out, colours);
        match self.output.encoding() {
            Some(encoding) => encoding.write(&report.rows(), &mut shown)?,
            None => render::bench::report(report, colours, &mut shown)?,
        }
        shown.finish()?;
        Ok(ExitStatus::Done)
    }
}
