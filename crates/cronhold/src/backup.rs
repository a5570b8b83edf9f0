//! `cronhold store backup`: copies a store, also while a daemon uses it.

use std::io::Write;

use cronhold_cli::{BackupArgs, CliError, ExitStatus};

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
    let mut shown = None;
    let mut progress = |done: u64, all: u64| {
        let cells = BAR * done / all.max(1);
        if is_terminal && shown.replace(cells) != Some(cells) {
            let _ = write!(err, "\r{}", bar(cells)).and_then(|()| err.flush());
        }
    };
    let copied = cronhold_wiring::backup(&url, &backup.file, &mut progress);
    if shown.is_some() {
        let _ = write!(err, "\r{:1$}\r", "", bar(BAR).len());
    }
    copied.map_err(|error| CliError::Refused { message: error.to_string(), hint: None })?;
    writeln!(out, "{url} is copied to {}", backup.file.display())?;
    Ok(ExitStatus::Done)
}

fn bar(cells: u64) -> String {
    let (full, empty) = (usize::try_from(cells).unwrap_or(0), usize::try_from(BAR - cells).unwrap_or(0));
    format!("[{}{}] {:3} %", "=".repeat(full), " ".repeat(empty), 100 * cells / BAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_shows_cells_and_percent() {
        assert_eq!(bar(0), format!("[{}]   0 %", " ".repeat(40)));
        assert_eq!(bar(20), format!("[{}{}]  50 %", "=".repeat(20), " ".repeat(20)));
        assert_eq!(bar(BAR), format!("[{}] 100 %", "=".repeat(40)));
    }
}
