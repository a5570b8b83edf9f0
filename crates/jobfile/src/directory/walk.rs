//! Which files of a directory are read, in which order, and under which name. Deterministic: entries are sorted, and
//! what the order of the file system is does not show.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cronhold_schedule::Instant;

use crate::mistake::Mistake;

/// No folder lies deeper below the root.
const DEPTH_MAX: usize = 32;
/// After so many entries the directory is not one of jobs; symbolic links can make a small one endless.
const ENTRIES_MAX: usize = 1_000_000;

/// What a file is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Dates,
    Ics,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What mistakes call it.
    pub(super) file: String,
    /// Its path below the root with `/` and without suffix.
    pub(super) name: String,
    /// What the file system says of it.
    pub(super) stamp: Stamp,
}

/// What the file system says of a file: another stamp means that it may hold something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the file was changed after an instant. Its clock ticks slowly, so that one more change within a tick
    /// would not show in the stamp.
    pub(super) fn is_after(&self, instant: Instant) -> bool {
        self.changed.0 >= instant.secs()
    }
}

/// What there is below a root.
pub(super) struct Walked {
    /// All files in the order of their names.
    pub(super) found: Vec<Found>,
    /// What could not be looked at.
    pub(super) mistakes: Vec<Mistake>,
    /// Folders and files that could not be looked at: nothing is known of what is below them.
    pub(super) closed: Vec<PathBuf>,
    /// Folders in which something can happen that matters: those that were looked into, the one that the root lies in,
    /// and those that links lead into.
    pub(super) places: BTreeSet<PathBuf>,
    /// Whether there is a directory at all.
    pub(super) has_root: bool,
}

/// A folder to look into.
struct Folder {
    path: PathBuf,
    /// Its path below the root with `/` behind each part.
    name: String,
    /// Itself and the folders that lead to it, links resolved.
    way: Vec<PathBuf>,
}

/// Looks through a directory.
pub(super) fn walk(root: &Path) -> Walked {
    let mut walk = Walk::default();
    walk.places.insert(parent(root));
    walk.link(root);
    match fs::metadata(root).and_then(|metadata| Ok((metadata, root.canonicalize()?))) {
        Ok((metadata, canonical)) if metadata.is_dir() => {
            walk.folders.push(Folder { path: root.to_owned(), name: String::new(), way: vec![canonical] });
        }
        Ok(_) => walk.report(root, "it is not a directory", Some("give the directory that holds the job files")),
        Err(error) => walk.unreadable(root, &error),
    }
    while let Some(folder) = walk.folders.pop() {
        if walk.entries >= ENTRIES_MAX {
            let message = format!("there are more than {ENTRIES_MAX} entries below the directory");
            walk.report(root, &message, Some("look for symbolic links that lead into each other"));
            break;
        }
        walk.folder(&folder);
    }
    walk.found.sort_by(|a, b| (&a.name, &a.file).cmp(&(&b.name, &b.file)));
    let Walk { found, mistakes, closed, places, .. } = walk;
    let has_root = places.contains(root);
    Walked { found, mistakes, closed, places, has_root }
}

/// The folder that something lies in.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) => PathBuf::from("."),
        None => path.to_owned(),
    }
}

#[derive(Default)]
struct Walk {
    found: Vec<Found>,
    folders: Vec<Folder>,
    mistakes: Vec<Mistake>,
    closed: Vec<PathBuf>,
    places: BTreeSet<PathBuf>,
    entries: usize,
}

impl Walk {
    fn folder(&mut self, folder: &Folder) {
        let entries = match fs::read_dir(&folder.path) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(&folder.path, &error),
        };
        self.places.insert(folder.path.clone());
        for entry in entries {
            self.entries += 1;
            match entry {
                Ok(entry) => self.entry(folder, &entry),
                Err(error) => self.unreadable(&folder.path, &error),
            }
        }
    }

    fn entry(&mut self, folder: &Folder, entry: &DirEntry) {
        let path = &entry.path();
        let Some(os_name) = path.file_name() else { return };
        if os_name.as_encoded_bytes().starts_with(b".") {
            return;
        }
        let named = os_name.to_str().and_then(|name| Some((split(name)?, name)));
        // Links are followed: a mounted configuration often consists of links.
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            self.link(path);
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                let leads_nowhere = error.kind() == io::ErrorKind::NotFound;
                if named.is_some() || !leads_nowhere {
                    self.unreadable(path, &error);
                }
                return;
            }
        };
        match (os_name.to_str(), named) {
            (Some(name), _) if metadata.is_dir() => self.inner(folder, path, name),
            (_, Some(((kind, stem), _))) => self.file(folder, path, kind, stem, &metadata),
            (None, _) if metadata.is_dir() || is_ours(path) => {
                self.report(path, "its name is not UTF-8", Some("rename it"));
            }
            _ => {}
        }
    }

    fn file(&mut self, folder: &Folder, path: &Path, kind: Kind, stem: &str, metadata: &Metadata) {
        if !metadata.is_file() {
            return self.report(path, "it is not a regular file", Some("move it out of the directory"));
        }
        let name = format!("{}{stem}", folder.name);
        let stamp = Stamp::new(metadata);
        self.found.push(Found { kind, path: path.to_owned(), file: path.to_string_lossy().into_owned(), name, stamp });
    }

    /// What a link leads to can be replaced where it lies.
    fn link(&mut self, path: &Path) {
        if let Ok(to) = fs::read_link(path) {
            self.places.insert(parent(&parent(path).join(to)));
        }
    }

    fn inner(&mut self, folder: &Folder, path: &Path, name: &str) {
        let canonical = match path.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) => return self.unreadable(path, &error),
        };
        if folder.way.contains(&canonical) {
            return self.report(path, "this link leads back to a folder that it lies in", Some("remove it"));
        }
        if folder.way.len() > DEPTH_MAX {
            let message = format!("folders can lie at most {DEPTH_MAX} deep");
            return self.report(path, &message, None);
        }
        let way = folder.way.iter().cloned().chain([canonical]).collect();
        self.folders.push(Folder { path: path.to_owned(), name: format!("{}{name}/", folder.name), way });
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.closed.push(path.to_owned());
        self.report(path, &format!("it cannot be read: {error}"), None);
    }

    fn report(&mut self, path: &Path, message: &str, hint: Option<&str>) {
        let mistake = Mistake::new(path.to_string_lossy(), 0..0, message);
        self.mistakes.push(match hint {
            Some(hint) => mistake.hint(hint),
            None => mistake,
        });
    }
}

/// Kind and name without suffix of a file that is ours.
fn split(name: &str) -> Option<(Kind, &str)> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let kind = match suffix.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => Kind::Job,
        "cal" => Kind::Dates,
        "ics" => Kind::Ics,
        _ => return None,
    };
    Some((kind, stem))
}

/// Whether a file whose name is no text would be ours.
fn is_ours(path: &Path) -> bool {
    path.extension().and_then(|suffix| suffix.to_str()).is_some_and(|suffix| split(&format!("x.{suffix}")).is_some())
}
