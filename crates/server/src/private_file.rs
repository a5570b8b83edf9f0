//! Files that only the daemon's user can read, written atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Only the daemon's user can read and write them.
pub(crate) const MODE: u32 = 0o600;

/// Writes a file, or replaces an existing one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    // An earlier process with the same id may have left a draft with another mode.
    let _ = fs::remove_file(&draft);
    let written = put(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn put(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}
