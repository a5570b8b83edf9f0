//! Finds the files of a directory that are read, their order and their names. Entries are sorted, so that the result does
//! not depend on the order of the file system.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::mistake::Mistake;

/// Name of the file with the defaults of all jobs, at the top of a directory.
pub(super) const DEFAULTS: &str = "defaults";

/// Deepest nesting of folders below the root.
const DEPTH_MAX: usize = 32;
/// Most entries of a directory. Symbolic links can make a small directory endless.
const ENTRIES_MAX: usize = 1_000_000;

/// The kind of a file, by its suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// What all jobs of the directory have in common.
    Defaults,
    Job,
    Dates,
    Ics,
}

/// The path of a file below its root, with `/`. Files are ordered by their name without suffix, and then by the whole
/// path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePath {
    path: Box<str>,
    /// Length of the path without suffix.
    stem: u32,
}

impl FilePath {
    fn new(folder: &str, stem: &str, file_name: &str) -> Self {
        let len = folder.len() + stem.len();
        Self { path: format!("{folder}{file_name}").into(), stem: len.try_into().expect("paths are shorter") }
    }

    /// The path without suffix.
    pub(super) fn name(&self) -> &str {
        &self.path[..self.stem as usize]
    }

    /// The path of the file below a root.
    pub(super) fn below(&self, root: &Path) -> PathBuf {
        root.join(&*self.path)
    }

    /// The name of the file that mistakes use.
    pub(super) fn shown(&self, root: &Path) -> String {
        self.below(root).to_string_lossy().into_owned()
    }
}

impl Ord for FilePath {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.name(), &self.path).cmp(&(other.name(), &other.path))
    }
}

impl PartialOrd for FilePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A file to read.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) kind: FileKind,
    pub(super) path: FilePath,
    /// Metadata that tells whether the file has changed.
    pub(super) stamp: FileStamp,
}

/// Metadata of a file. If it has changed, the content may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    /// Digest of device, inode, size and the times of the last changes. There can be very many files.
    digest: u64,
    /// When the file was changed last, in seconds.
    changed: i64,
}

impl FileStamp {
    pub(super) fn new(metadata: &Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        (metadata.dev(), metadata.ino(), metadata.size()).hash(&mut hasher);
        (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
        Self { digest: hasher.finish(), changed: metadata.ctime() }
    }

    /// Whether the file was changed after an instant. A further change within the resolution of the timestamp would not
    /// be visible.
    pub(super) fn is_after(&self, instant: Instant) -> bool {
        self.changed >= instant.secs()
    }
}

/// The result of a walk.
pub(super) struct WalkResult {
    /// All files in the order of their names.
    pub(super) found: Vec<FoundFile>,
    /// Mistakes about files and folders that could not be read.
    pub(super) mistakes: Vec<Mistake>,
    /// Folders and files that could not be read.
    pub(super) closed: Vec<PathBuf>,
    /// Folders whose changes matter: those that were read, the parent of the root, and the targets of links.
    pub(super) places: BTreeSet<PathBuf>,
    /// Whether the root is a directory.
    pub(super) has_root: bool,
}

/// A folder that is still to be read.
struct OpenFolder {
    path: PathBuf,
    /// Its path below the root with `/` after each part.
    name: String,
    /// The folder itself and its ancestors, with links resolved.
    way: Vec<PathBuf>,
}

/// Walks through a directory.
pub(super) fn walk(root: &Path) -> WalkResult {
    let mut walk = DirectoryWalk::default();
    walk.places.insert(parent(root));
    walk.link(root);
    match fs::metadata(root).and_then(|metadata| Ok((metadata, root.canonicalize()?))) {
        Ok((metadata, canonical)) if metadata.is_dir() => {
            walk.folders.push(OpenFolder { path: root.to_owned(), name: String::new(), way: vec![canonical] });
        }
        Ok(_) => walk.report(root, "it is not a directory", Some("use the directory that contains the job files")),
        Err(error) => walk.unreadable(root, &error),
    }
    while let Some(folder) = walk.folders.pop() {
        if walk.entries >= ENTRIES_MAX {
            let message = format!("there are more than {ENTRIES_MAX} entries below the directory");
            walk.report(root, &message, Some("check for symbolic links that form a loop"));
            break;
        }
        walk.folder(&folder);
    }
    walk.found.sort_by(|a, b| a.path.cmp(&b.path));
    let DirectoryWalk { found, mistakes, closed, places, .. } = walk;
    let has_root = places.contains(root);
    WalkResult { found, mistakes, closed, places, has_root }
}

/// The parent folder of a path.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) => PathBuf::from("."),
        None => path.to_owned(),
    }
}

#[derive(Default)]
struct DirectoryWalk {
    found: Vec<FoundFile>,
    folders: Vec<OpenFolder>,
    mistakes: Vec<Mistake>,
    closed: Vec<PathBuf>,
    places: BTreeSet<PathBuf>,
    entries: usize,
}

impl DirectoryWalk {
    fn folder(&mut self, folder: &OpenFolder) {
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

    fn entry(&mut self, folder: &OpenFolder, entry: &DirEntry) {
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
            (_, Some(((kind, stem), name))) => self.file(folder, path, (kind, stem, name), &metadata),
            (None, _) if metadata.is_dir() || is_ours(path) => {
                self.report(path, "its name is not UTF-8", Some("rename it"));
            }
            _ => {}
        }
    }

    fn file(
        &mut self,
        folder: &OpenFolder,
        path: &Path,
        (kind, stem, name): (FileKind, &str, &str),
        metadata: &Metadata,
    ) {
        if !metadata.is_file() {
            return self.report(path, "it is not a regular file", Some("move it out of the directory"));
        }
        let is_defaults = kind == FileKind::Job && folder.name.is_empty() && stem == DEFAULTS;
        let kind = if is_defaults { FileKind::Defaults } else { kind };
        let path = FilePath::new(&folder.name, stem, name);
        self.found.push(FoundFile { kind, path, stamp: FileStamp::new(metadata) });
    }

    /// The target of a link can be replaced in its own folder.
    fn link(&mut self, path: &Path) {
        if let Ok(to) = fs::read_link(path) {
            self.places.insert(parent(&parent(path).join(to)));
        }
    }

    fn inner(&mut self, folder: &OpenFolder, path: &Path, name: &str) {
        let canonical = match path.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) => return self.unreadable(path, &error),
        };
        if folder.way.contains(&canonical) {
            return self.report(path, "this link points to one of its parent folders", Some("remove it"));
        }
        if folder.way.len() > DEPTH_MAX {
            let message = format!("folders can be nested at most {DEPTH_MAX} deep");
            return self.report(path, &message, None);
        }
        let way = folder.way.iter().cloned().chain([canonical]).collect();
        self.folders.push(OpenFolder { path: path.to_owned(), name: format!("{}{name}/", folder.name), way });
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

/// Kind and name without suffix of a job file or calendar.
fn split(name: &str) -> Option<(FileKind, &str)> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let kind = match suffix.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => FileKind::Job,
        "cal" => FileKind::Dates,
        "ics" => FileKind::Ics,
        _ => return None,
    };
    Some((kind, stem))
}

/// Whether a file whose name is not UTF-8 would be a job file or calendar.
fn is_ours(path: &Path) -> bool {
    path.extension().and_then(|suffix| suffix.to_str()).is_some_and(|suffix| split(&format!("x.{suffix}")).is_some())
}
