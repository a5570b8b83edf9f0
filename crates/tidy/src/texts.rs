//! Text that no file of the project may contain: paths on one machine, package registries of one network, and notes
//! that postpone work.

use crate::rust::has_word;
use crate::{Finding, RustFile, TextFile};

const PATH_RULE: &str = "machine paths";
const REGISTRY_RULE: &str = "registries";
const LATER_RULE: &str = "later";

/// Top-level folders that contain personal files.
const MACHINE_ROOTS: &[&str] = &["work", "root", "home", "Users", "tmp"];

/// Markers of a registry in a setting or a lock file. Cargo.lock is exempt, because it always contains one.
const REGISTRY_MARKS: &[&str] = &["registry+http", "sparse+http", "replace-with", "\"resolved\": \""];

/// Words that postpone work.
const LATER_WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

/// This file contains all of these words.
const OWN_PATH: &str = "crates/tidy/src/texts.rs";

/// Reports machine paths and registries in a text file.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path == OWN_PATH {
        return findings;
    }
    let paths: Vec<String> = MACHINE_ROOTS.iter().map(|root| format!("/{root}/")).collect();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = paths.iter().find(|path| has_path(line, path)) {
            let message =
                format!("`{path}` exists on one machine only; use a relative path or one such as /var/backups");
            findings.push(Finding::at(&file.path, index + 1, PATH_RULE, message));
        }
        let is_cargo_lock = file.path.ends_with("Cargo.lock");
        if let Some(mark) = REGISTRY_MARKS.iter().find(|mark| line.contains(**mark)).filter(|_| !is_cargo_lock) {
            let message = format!("`{mark}` names a registry; remove it, the tool's own configuration names one");
            findings.push(Finding::at(&file.path, index + 1, REGISTRY_RULE, message));
        }
    }
    findings
}

/// Reports postponed work in the comments of a Rust file.
pub fn check_comments(file: &RustFile) -> Vec<Finding> {
    later(&file.path, file.comments.iter().map(String::as_str))
}

/// Reports postponed work anywhere in a text file.
pub fn check_later(file: &TextFile) -> Vec<Finding> {
    later(&file.path, file.text.lines())
}

fn later<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in lines.enumerate() {
        if let Some(word) = LATER_WORDS.iter().find(|word| has_word(line, word)) {
            let message = format!("`{word}`: do it now, or document in CHANGELOG.md or the docs what is missing");
            findings.push(Finding::at(path, index + 1, LATER_RULE, message));
        }
    }
    findings
}

/// Whether the line contains this absolute path; `a/work/b` does not match `/work/`.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.*/}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn finds_machine_paths_and_registries() {
        for (text, expected) in [
            ("`/home/ada/jobs`", 1),
            ("cp a /home/ada/b", 1),
            ("see docs/home/a.md", 0),
            ("https://example.com/home/x", 0),
            ("/var/backups", 0),
            ("source = \"registry+https://mirror.example/index\"", 1),
            ("replace-with = \"mirror\"", 1),
            ("  \"resolved\": \"https://npm.example/a-1.tgz\"", 1),
        ] {
            assert_eq!(check(&file("a.md", text)).len(), expected, "{text}");
        }
    }

    #[test]
    fn finds_postponed_work() {
        assert_eq!(check_later(&file("a.md", "a\nTODO: b\n"))[0].line, 2);
        assert_eq!(check_later(&file("a.md", "MASTODON and TODOS\n")), []);
        let rust = RustFile::new(&file("crates/x/src/a.rs", "let a = \"TODO\";\n// FIXME later\n"));
        assert_eq!(check_comments(&rust)[0].line, 2);
        assert_eq!(check_comments(&rust).len(), 1);
    }
}
