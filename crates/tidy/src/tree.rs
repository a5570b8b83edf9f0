//! The files of the workspace. The walk leaves out what `.gitignore` names, so that it needs no
//! git and also works on an unpacked archive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file with its text.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Path below the root, with `/` between its parts.
    pub path: String,
    /// What stands in it.
    pub text: String,
}

/// All text files of the workspace.
#[derive(Debug)]
pub struct SourceTree {
    /// The root of the workspace.
    pub root: PathBuf,
    /// In order of their paths.
    pub files: Vec<TextFile>,
}

/// Folders that belong to no source, whatever `.gitignore` says.
const NEVER_SOURCE: &[&str] = &[".git", "node_modules"];

/// No folder is deeper than this; a loop of links would be.
const DEPTH_MAX: usize = 16;

/// Larger files are data; no rule here is about them.
const TEXT_BYTES_MAX: u64 = 4 << 20;

impl SourceTree {
    /// Reads the workspace that this crate stands in.
    pub fn read() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let ignored = ignored_folders(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
        let mut files = Vec::new();
        collect(&root, "", &ignored, 0, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root, files })
    }

    /// Files whose name ends like this.
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
            // What is not UTF-8 is no text, and a file may vanish while others work: both are left out.
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
    fn leaves_out_what_is_ignored() {
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
    fn finds_itself() {
        let tree = SourceTree::read().expect("the workspace can be read");
        assert!(tree.ending("crates/tidy/src/tree.rs").next().is_some());
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
