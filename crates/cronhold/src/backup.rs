//! `cronhold store backup`: copies a store, also while a daemon uses it.

use std::io::Write;

use cronhold_cli::{BackupArgs, CliError, ExitStatus};

use crate::progress_line::ProgressLine;
use crate::state_dir::{EnvPaths, StateDir};

/// Cells of the progress bar.
const BAR: u64 = 40;

/// Copies a store. Shows a progress bar if `err` is a terminal.
pub fn backup(
    backup: &BackupArgs,
    places: &EnvPaths,
    is_terminal: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<ExitStatus, CliError> {
    // `--data` overrides `CRONHOLD_STORE`.
    let named = if backup.data.is_none() { places.named_store(backup.store.as_deref())? } else { None };
    let url = match named {
        Some(url) => url,
        None => StateDir::choose(backup.data.as_deref(), places)?.store_url(),
    };
    let mut line = ProgressLine::new(err, is_terminal, BAR);
    let copied = cronhold_wiring::backup(&url, &backup.file, &mut |done, all| line.show(done, all, ""));
    line.clear();
    copied.map_err(|error| CliError::Refused { message: error.to_string(), hint: None })?;
    writeln!(out, "{url} is copied to {}", backup.file.display())?;
    Ok(ExitStatus::Done)
}
