//! The files of the workspace. The walk skips what `.gitignore` names. It does not need git, so that it also works on
//! an unpacked archive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A text file.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Path relative to the workspace root, separated by `/`.
    pub path: String,
    pub text: String,
}

/// All text files of the workspace.
#[derive(Debug)]
pub struct SourceTree {
    /// The workspace root.
    pub root: PathBuf,
    /// Sorted by path.
    pub files: Vec<TextFile>,
}

/// Folders that are skipped even if `.gitignore` does not name them.
const NEVER_SOURCE: &[&str] = &[".git", "node_modules"];

/// Maximum depth of folders, which stops a loop of links.
const DEPTH_MAX: usize = 16;

/// Larger files are data and are skipped.
const TEXT_BYTES_MAX: u64 = 4 << 20;

impl SourceTree {
    /// Reads the workspace that contains this crate.
    pub fn read() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let ignored = ignored_folders(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
        let mut files = Vec::new();
        collect(&root, "", &ignored, 0, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root, files })
    }

    /// Files whose path ends with `suffix`.
    pub fn ending(&self, suffix: &str) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(move |file| file.path.ends_with(suffix))
    }
}

/// The folders that a `.gitignore` names, as paths or plain names.
fn ignored_folders(gitignore: &str) -> Vec<String> {
    gitignore.lines().filter_map(|line| line.trim().strip_suffix('/')).map(str::to_owned).collect()
}

fn is_ignored(path: &str, ignored: &[String]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    NEVER_SOURCE.contains(&name)
        || ignored.iter().any(|folder| match folder.contains('/') {
            true => folder.trim_start_matches('/') == path,
            false => folder == name,
        })
}

fn collect(folder: &Path, below: &str, ignored: &[String], depth: usize, files: &mut Vec<TextFile>) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_ignored(&path, ignored) {
            collect(&entry.path(), &path, ignored, depth + 1, files)?;
        } else if kind.is_file() && entry.metadata()?.len() <= TEXT_BYTES_MAX {
            // Skips files that are not UTF-8, and files that vanish while the walk runs.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                files.push(TextFile { path, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_ignored_folders() {
        let ignored = ignored_folders("target/\n*.snap.new\nfuzz/corpus/\n");
        for (path, expected) in [
            ("target", true),
            ("fuzz/target", true),
            ("fuzz/corpus", true),
            ("crates/x/corpus", false),
            (".git", true),
            (".ci", false),
        ] {
            assert_eq!(is_ignored(path, &ignored), expected, "{path}");
        }
    }

    #[test]
    fn finds_its_own_source() {
        let tree = SourceTree::read().expect("the workspace can be read");
        assert!(tree.ending("crates/tidy/src/tree.rs").next().is_some());
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
