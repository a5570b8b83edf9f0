//! The keeper's directory: `keeper` in the data directory, with its lock, its socket and its outputs. Everything in it
//! is reached through the open directory, because the keeper changes its working directory to start programs.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::KeeperError;
use crate::journal::{self, JournalContents};
use crate::outputs::{self, OutputFiles};

/// The keeper's directory in the data directory.
const FOLDER: &str = "keeper";
const LOCK: &str = "lock";
const SOCKET: &str = "socket";
/// Permissions of the directories: the owner of the data directory, and its group for reading.
const FOLDER_MODE: u32 = 0o750;
/// Permissions of the socket. The user of each connection is checked as well.
const SOCKET_MODE: u32 = 0o660;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 16;
/// Standard input, output and error are 0 to 2.
const STANDARD_STREAMS_LAST: i32 = 2;
/// A journal is never longer.
const JOURNAL_READ_MAX: u64 = 1024 * 1024 * 1024;

/// The open directory. The lock lasts as long as this value.
#[derive(Debug)]
pub(crate) struct Home {
    folder: OwnedFd,
    _lock: OwnedFd,
    /// The owner of the data directory and its group.
    owner: (u32, u32),
}

impl Home {
    /// Opens the directory and takes its lock.
    pub(crate) fn open(data: &Path) -> Result<Self, KeeperError> {
        let path = data.join(FOLDER);
        let metadata = fs::metadata(data).map_err(KeeperError::io(&format!("open {}", data.display())))?;
        let owner = (metadata.uid(), metadata.gid());
        create_folder(&path).map_err(KeeperError::io(&format!("create {}", path.display())))?;
        create_folder(&path.join(outputs::FOLDER)).map_err(KeeperError::io("create the output directory"))?;
        // The lock is the first file that is opened and stays open: `spawn` relies on the numbers of files.
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(path.join(LOCK), flags, Mode::from_raw_mode(0o600))
            .map_err(KeeperError::io("open the lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => KeeperError::Held(data.to_owned()),
            other => KeeperError::Io { what: "lock the data directory".to_owned(), source: other.into() },
        })?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let folder =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(KeeperError::io("open the keeper's directory"))?;
        let home = Self { folder, _lock: lock, owner };
        home.give_to_owner(".")
            .and_then(|()| home.give_to_owner(outputs::FOLDER))
            .map_err(KeeperError::io("change the owner of the keeper's directory"))?;
        Ok(home)
    }

    /// Another descriptor of the directory.
    pub(crate) fn folder(&self) -> io::Result<OwnedFd> {
        self.folder.try_clone()
    }

    /// The outputs of programs.
    pub(crate) fn outputs(&self) -> Result<OutputFiles, KeeperError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let folder = rustix::fs::openat(&self.folder, outputs::FOLDER, flags, Mode::empty())
            .map_err(KeeperError::io("open the output directory"))?;
        Ok(OutputFiles::new(folder, self.has_other_owner().then_some(self.owner)))
    }

    /// What an earlier keeper left in its journal.
    pub(crate) fn read_journal(&self) -> Result<JournalContents, KeeperError> {
        use std::io::Read;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match rustix::fs::openat(&self.folder, journal::NAME, flags, Mode::empty()) {
            Ok(file) => fs::File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(JournalContents::default()),
            Err(error) => return Err(KeeperError::io("open the journal")(error)),
        };
        let mut bytes = Vec::new();
        file.take(JOURNAL_READ_MAX).read_to_end(&mut bytes).map_err(KeeperError::io("read the journal"))?;
        Ok(journal::read(&bytes))
    }

    /// The socket for daemons. Its path is always short, because the keeper binds it from inside the directory.
    pub(crate) fn listen(&self) -> Result<OwnedFd, KeeperError> {
        self.bind().map_err(KeeperError::io("listen for daemons"))
    }

    fn bind(&self) -> io::Result<OwnedFd> {
        self.remove_socket();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::process::fchdir(&self.folder)?;
        let bound = rustix::net::bind(&socket, &SocketAddrUnix::new(SOCKET)?);
        rustix::process::chdir("/")?;
        bound?;
        rustix::fs::chmodat(&self.folder, SOCKET, Mode::from_raw_mode(SOCKET_MODE), AtFlags::empty())?;
        self.give_to_owner(SOCKET)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// Removes the socket, so that daemons see at once that there is no keeper.
    pub(crate) fn remove_socket(&self) {
        let _ = rustix::fs::unlinkat(&self.folder, SOCKET, AtFlags::empty());
    }

    /// Whether a user may control the keeper.
    pub(crate) fn may_connect(&self, uid: u32) -> bool {
        uid == 0 || uid == self.owner.0 || uid == rustix::process::geteuid().as_raw()
    }

    /// Whether the keeper is root and the data directory belongs to another user.
    fn has_other_owner(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        own == 0 && self.owner.0 != own
    }

    fn give_to_owner(&self, name: &str) -> io::Result<()> {
        if !self.has_other_owner() {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(self.owner.0), Gid::from_raw(self.owner.1));
        Ok(rustix::fs::chownat(&self.folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Lets this process open as many files as the system allows: each running program has a pipe. Returns the limit from
/// before, which programs get.
pub(crate) fn raise_file_limit() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // With the usual limit, some programs fewer can run at the same time.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    before
}

/// Closes files that the keeper inherited, because programs would inherit them too.
pub(crate) fn close_inherited() -> io::Result<()> {
    let names: Vec<_> = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > STANDARD_STREAMS_LAST) {
        // The directory that was just read is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The id of the current boot of the machine.
pub(crate) fn boot_id() -> Result<String, KeeperError> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(KeeperError::io("read the boot id"))?;
    Ok(text.trim().to_owned())
}

fn create_folder(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
