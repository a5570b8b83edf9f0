//! The data directory of a daemon. It holds the node's identity, its token, and its store unless `--store` names
//! another one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cronhold_cli::CliError;
use cronhold_core::NodeId;
use cronhold_schedule::hash::fnv1a;
use cronhold_wiring::StoreUrl;

/// Mode of the directory: only for the user of the daemon.
const MODE: u32 = 0o700;
/// Permission of the group to change the directory.
const GROUP_WRITE: u32 = 0o020;
/// Permission of all users to change the directory.
const OTHERS_WRITE: u32 = 0o002;
/// Mode of files in the directory: only for the user of the daemon.
const FILE_MODE: u32 = 0o600;
/// The file that holds the node's identity.
const NODE_ID: &str = "node-id";
/// The file that a daemon locks while it uses the directory with a store elsewhere.
const OCCUPIED: &str = "daemon.lock";
/// Prefix of the files that hold the state of stores elsewhere.
const STORE_MEMORY: &str = "store";

/// The data directory of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

/// Directories and URLs that the environment names.
#[derive(Debug, Clone, Default)]
pub struct EnvPaths {
    /// Value of `CRONHOLD_DATA`.
    pub own: Option<PathBuf>,
    /// Value of `XDG_DATA_HOME`.
    pub xdg: Option<PathBuf>,
    /// Value of `HOME`.
    pub user: Option<PathBuf>,
    /// Value of `CRONHOLD_STORE`.
    pub store: Option<String>,
    /// Value of `ZOOKEEPER_SERVERS`.
    pub zookeeper_servers: Option<String>,
}

impl EnvPaths {
    /// The store of `--store`, else that of `CRONHOLD_STORE`; `None` if neither is given.
    pub fn named_store(&self, given: Option<&str>) -> Result<Option<StoreUrl>, CliError> {
        let (origin, text) = match (given, self.store.as_deref()) {
            (Some(given), _) => ("--store", given),
            (None, Some(named)) => ("CRONHOLD_STORE", named),
            (None, None) => return Ok(None),
        };
        let url = StoreUrl::parse_with(text, self.zookeeper_servers.as_deref());
        url.map(Some).map_err(|error| CliError::flag(origin, error))
    }
}

impl StateDir {
    /// The directory of `--data` or `CRONHOLD_DATA`, else the default one. Does not create it.
    pub fn choose(given: Option<&Path>, places: &EnvPaths) -> Result<Self, CliError> {
        if let Some(given) = given.or(places.own.as_deref()) {
            return Ok(Self(given.to_owned()));
        }
        // The XDG specification says to ignore relative paths.
        let absolute = |path: &Option<PathBuf>| path.clone().filter(|path| path.is_absolute());
        let usual = absolute(&places.xdg).or_else(|| Some(absolute(&places.user)?.join(".local/share")));
        usual.map(|usual| Self(usual.join("cronhold"))).ok_or_else(|| {
            let message = "cannot choose a data directory: neither XDG_DATA_HOME nor HOME is set";
            CliError::usage(message, "name a directory with --data")
        })
    }

    /// Creates the directory, unless it exists. Refuses one that another user can change: that user could replace the
    /// token, the store and the keeper's socket, and so act as the user of the daemon.
    pub fn create(&self) -> Result<(), CliError> {
        let cannot = |error: io::Error| {
            let message = format!("cannot create the directory {}: {error}", self.0.display());
            CliError::refused(message, "name a writable directory with --data")
        };
        DirBuilder::new().recursive(true).mode(MODE).create(&self.0).map_err(cannot)?;
        let found = fs::metadata(&self.0).map_err(cannot)?;
        let (ours, shown) = (rustix::process::geteuid().as_raw(), self.0.display());
        if found.uid() != ours {
            let message = format!("the directory {shown} belongs to another user (uid {})", found.uid());
            let hint = format!("run the daemon as that user, or `chown -R {ours} {shown}`, or name another directory");
            return Err(CliError::refused(message, hint));
        }
        // The group of a user is often private. That of root is not.
        let writers = if ours == 0 { GROUP_WRITE | OTHERS_WRITE } else { OTHERS_WRITE };
        if found.mode() & writers != 0 {
            let message = format!("other users can write to the directory {shown}");
            return Err(CliError::refused(message, format!("run `chmod go-w {shown}`")));
        }
        Ok(())
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The default store, an SQLite database in the directory.
    pub fn store_url(&self) -> StoreUrl {
        StoreUrl::Sqlite(self.0.join("cronhold.db"))
    }

    /// The file with what was learned from job files. It can be removed at any time.
    pub fn job_file_cache(&self) -> PathBuf {
        self.0.join("job-files-cache")
    }

    /// The file in which a node keeps its state of a store elsewhere. Each store has its own file: with the state of
    /// another store, the node would conclude that the store has lost its data.
    pub fn store_state_file(&self, url: &StoreUrl) -> PathBuf {
        self.0.join(format!("{STORE_MEMORY}-{:016x}", fnv1a(url.to_string().as_bytes())))
    }

    /// Locks the directory against other daemons until the returned file is closed. Needed for a store elsewhere; a
    /// store in the directory has its own lock.
    pub fn lock(&self) -> Result<File, CliError> {
        let path = self.0.join(OCCUPIED);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(&path);
        let refused = |error: &dyn std::fmt::Display| {
            let message = format!("cannot use the directory {}: {error}", self.0.display());
            CliError::refused(message, "give each daemon a directory of its own with --data")
        };
        let file = file.map_err(|error| refused(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(refused(&"another daemon is using it")),
            Err(TryLockError::Error(error)) => Err(refused(&error)),
        }
    }

    /// The identity of the node. The first call creates it and stores it in the directory.
    pub fn node_id(&self, new: impl FnOnce() -> NodeId) -> Result<NodeId, CliError> {
        let path = self.0.join(NODE_ID);
        self.load_or_create(&path, new)
            .map_err(|error| {
                let message = format!("cannot store the identity of this node in {}: {error}", path.display());
                CliError::refused(message, "name a writable directory with --data")
            })?
            .map_err(|error| {
                let hint = "restore the file, or remove it to make this a new node; \
                        a new node does not continue runs of the old one";
                CliError::refused(format!("{}: {}", path.display(), error.message), hint)
            })
    }

    fn load_or_create(
        &self,
        path: &Path,
        new: impl FnOnce() -> NodeId,
    ) -> io::Result<Result<NodeId, cronhold_schedule::TextError>> {
        match fs::read_to_string(path) {
            Ok(text) => return Ok(NodeId::parse(text.trim())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // The id is written to a temporary file, which is then linked. So the file is never incomplete, and if two
        // daemons start at once, both read the id that was linked first.
        let draft = self.0.join(format!("{NODE_ID}.{}", std::process::id()));
        let made = self.write(&draft, new()).and_then(|()| match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        });
        let _ = fs::remove_file(&draft);
        made?;
        File::open(&self.0)?.sync_all()?;
        Ok(NodeId::parse(fs::read_to_string(path)?.trim()))
    }

    fn write(&self, draft: &Path, id: NodeId) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(draft)?;
        writeln!(file, "{id}")?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn data_directory_is_chosen_from_option_then_environment() {
        let path = |text: &str| Some(PathBuf::from(text)).filter(|_| !text.is_empty());
        for (given, own, xdg, user, expected) in [
            ("here", "own", "/xdg", "/usr/ada", "here"),
            ("", "own", "/xdg", "/usr/ada", "own"),
            ("", "", "/xdg", "/usr/ada", "/xdg/cronhold"),
            ("", "", "xdg", "/usr/ada", "/usr/ada/.local/share/cronhold"),
            ("", "", "", "/usr/ada", "/usr/ada/.local/share/cronhold"),
            ("", "", "", "ada", "nowhere"),
            ("", "", "", "", "nowhere"),
        ] {
            let places = EnvPaths { own: path(own), xdg: path(xdg), user: path(user), ..EnvPaths::default() };
            let chosen = StateDir::choose(path(given).as_deref(), &places);
            let shown = chosen.map_or_else(|_| "nowhere".to_owned(), |home| home.path().display().to_string());
            assert_eq!(shown, expected, "{given:?} {own:?} {xdg:?} {user:?}");
        }
    }

    #[test]
    fn store_is_chosen_from_option_then_environment() {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (given, named, expected) in [
            ("", "", "none"),
            ("sqlite:a.db", "", "sqlite:a.db"),
            ("sqlite:a.db", "sqlite:b.db", "sqlite:a.db"),
            ("", "sqlite:b.db", "sqlite:b.db"),
            ("b.db", "", "--store: `b.db` does not say which kind of store it is"),
            ("", "b.db", "CRONHOLD_STORE: `b.db` does not say which kind of store it is"),
        ] {
            let places = EnvPaths { store: text(named), ..EnvPaths::default() };
            let shown = match places.named_store(text(given).as_deref()) {
                Ok(url) => url.map_or_else(|| "none".to_owned(), |url| url.to_string()),
                Err(CliError::Usage { message, .. }) => message,
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(shown, expected, "{given:?} {named:?}");
        }
    }

    #[test]
    fn each_store_has_its_own_state_file() {
        let home = StateDir(PathBuf::from("dir"));
        let memory = |url| home.store_state_file(&StoreUrl::parse(url).expect("a URL"));
        assert_eq!(memory("sqlite:a"), Path::new("dir/store-da45e1ee02dc2e04"));
        assert_ne!(memory("sqlite:a"), memory("sqlite:b"));
    }

    fn scratch(name: &str) -> StateDir {
        let path = std::env::temp_dir().join(format!("cronhold-home-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        StateDir(path)
    }

    #[test]
    fn directory_that_others_can_change_is_refused() {
        let home = scratch("others");
        home.create().expect("a directory");
        let is_root = rustix::process::geteuid().is_root();
        for (mode, is_refused) in [(0o755, false), (0o770, is_root), (0o777, true), (0o1777, true), (0o700, false)] {
            fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).expect("ours");
            assert_eq!(home.create().is_err(), is_refused, "{mode:o}");
        }
        // Only root can give a directory away.
        if is_root {
            std::os::unix::fs::chown(home.path(), Some(12_345), None).expect("root");
            let Err(CliError::Refused { message, .. }) = home.create() else { panic!("it is refused") };
            assert!(message.contains("belongs to another user (uid 12345)"), "{message}");
        }
        let _ = fs::remove_dir_all(home.path());
    }

    #[test]
    fn identity_is_created_once_and_kept() {
        let home = scratch("identity");
        home.create().expect("a directory");
        home.create().expect("it may be there");
        let mode = fs::metadata(home.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        let first = home.node_id(|| NodeId::from_bits(7)).expect("new");
        assert_eq!(first, NodeId::from_bits(7));
        assert_eq!(home.node_id(|| NodeId::from_bits(8)).expect("kept"), first);
        let files: Vec<_> =
            fs::read_dir(home.path()).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(files, [NODE_ID], "the temporary file is removed");

        fs::write(home.path().join(NODE_ID), "nobody\n").expect("written");
        let Err(CliError::Refused { message, hint }) = home.node_id(|| NodeId::from_bits(9)) else { panic!("taken") };
        assert!(message.contains("node-id: `nobody` is not a node's id"), "{message}");
        assert!(hint.is_some_and(|hint| hint.contains("remove it")));
        let _ = fs::remove_dir_all(home.path());
    }
}
