//! The socket in the data directory. The command line uses it instead of the token: only the daemon's user and root can
//! reach it, and no other program can take its place when the daemon has died.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use cronhold_api::SOCKET;

/// Only the daemon's user can connect, and root.
const MODE: u32 = 0o600;

/// The bound socket. Dropping this removes its file.
#[derive(Debug)]
pub struct LocalListener {
    pub(crate) socket: UnixListener,
    /// The user that the data directory belongs to.
    owner: u32,
    path: PathBuf,
    /// The file of the socket; another daemon may have replaced it with its own.
    inode: u64,
}

impl LocalListener {
    /// Binds the socket. The caller must be the only daemon that uses the directory, because this removes the socket
    /// that a killed daemon left behind.
    pub fn bind(data: &Path) -> io::Result<Self> {
        let path = data.join(SOCKET);
        // The path of a socket is limited to about a hundred bytes, so it is reached by the directory's descriptor.
        let dir = File::open(data)?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixListener::bind(&short)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(MODE))?;
        socket.set_nonblocking(true)?;
        let inode = fs::symlink_metadata(&path)?.ino();
        Ok(Self { socket, owner: dir.metadata()?.uid(), path, inode })
    }

    /// Whether processes of a user may control the daemon.
    pub(crate) fn accepts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.owner
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ServerScratchDir;

    #[test]
    fn socket_replaces_one_that_was_left_and_is_removed() {
        let scratch = ServerScratchDir::new("socket");
        let long = scratch.path().join("x".repeat(120));
        fs::create_dir(&long).expect("created");
        let path = long.join(SOCKET);
        fs::write(&path, "left behind").expect("written");
        let first = LocalListener::bind(&long).expect("bound");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, MODE);
        assert!(first.accepts(0) && first.accepts(fs::metadata(&long).expect("there").uid()));
        assert!(!first.accepts(12_345));
        let second = LocalListener::bind(&long).expect("bound");
        drop(first);
        assert!(path.exists(), "the socket of another daemon stays");
        drop(second);
        assert!(!path.exists());
    }
}
