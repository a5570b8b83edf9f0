//! The address file, by which the command line finds the daemon. It exists while the daemon listens; a killed daemon
//! leaves it behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cronhold_api::DaemonLocation;

use crate::private_file;

/// The address file. Dropping this removes the file.
#[derive(Debug)]
pub struct AddressFile {
    path: PathBuf,
    text: Vec<u8>,
}

impl AddressFile {
    /// Writes the file into a data directory.
    pub fn write(folder: &Path, address: &DaemonLocation) -> io::Result<Self> {
        let mut text = serde_json::to_vec(address)?;
        text.push(b'\n');
        let path = folder.join(DaemonLocation::FILE);
        private_file::write(&path, &text)?;
        Ok(Self { path, text })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another daemon may have replaced the file with its own.
        if fs::read(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use cronhold_schedule::Instant;

    use super::*;
    use crate::testing::ServerScratchDir;

    fn address(pid: u32) -> DaemonLocation {
        DaemonLocation { url: "http://127.0.0.1:2766".to_owned(), pid, since: Instant::from_secs(1_800_000_000) }
    }

    #[test]
    fn address_file_is_removed_on_drop() {
        let scratch = ServerScratchDir::new("address");
        let file = AddressFile::write(scratch.path(), &address(7)).expect("written");
        let path = scratch.path().join(DaemonLocation::FILE);
        let read: DaemonLocation = serde_json::from_slice(&fs::read(&path).expect("there")).expect("readable");
        assert_eq!(read, address(7));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, private_file::MODE);
        assert_eq!(fs::read_dir(scratch.path()).expect("there").count(), 1, "no temporary file is left");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn address_file_of_another_daemon_is_kept() {
        let scratch = ServerScratchDir::new("address-of-another");
        let first = AddressFile::write(scratch.path(), &address(7)).expect("written");
        let second = AddressFile::write(scratch.path(), &address(8)).expect("replaced");
        drop(first);
        assert!(scratch.path().join(DaemonLocation::FILE).exists());
        drop(second);
        assert!(!scratch.path().join(DaemonLocation::FILE).exists());
    }
}
