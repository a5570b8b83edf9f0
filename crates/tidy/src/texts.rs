//! What may stand in no text of the project: places on somebody's machine, package registries of
//! somebody's network, and notes to come back later.

use crate::rust::has_word;
use crate::{Finding, RustFile, TextFile};

const PATH_RULE: &str = "machine paths";
const REGISTRY_RULE: &str = "registries";
const LATER_RULE: &str = "later";

/// Where people's own files are.
const MACHINE_PATHS: &[&str] = &["/work/", "/root/", "/home/", "/Users/", "/tmp/"];

/// How a lock file or a setting points at packages.
const REGISTRY_MARKS: &[&str] = &["registry+http", "sparse+http", "replace-with", "\"resolved\": \""];

/// The public sources that a lock file may name.
const PUBLIC_REGISTRIES: &[&str] =
    &["registry+https://github.com/rust-lang/crates.io-index", "\"resolved\": \"https://registry.npmjs.org/"];

/// Words that put something off.
const LATER_WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

/// This file holds all of these words itself.
const OWN_PATH: &str = "crates/tidy/src/texts.rs";

/// Machine paths and registries in any text file.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path == OWN_PATH {
        return findings;
    }
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = MACHINE_PATHS.iter().find(|path| has_path(line, path)) {
            let message =
                format!("`{path}` is a place on one machine; use a path such as /var/backups or a relative one");
            findings.push(Finding::at(&file.path, index + 1, PATH_RULE, message));
        }
        let is_public = PUBLIC_REGISTRIES.iter().any(|registry| line.contains(registry));
        if let Some(mark) = REGISTRY_MARKS.iter().find(|mark| line.contains(**mark)).filter(|_| !is_public) {
            let message = format!("`{mark}` points at another registry than the public one; take it out");
            findings.push(Finding::at(&file.path, index + 1, REGISTRY_RULE, message));
        }
    }
    findings
}

/// Notes to come back later, in the comments of a Rust file.
pub fn check_comments(file: &RustFile) -> Vec<Finding> {
    later(&file.path, file.comments.iter().map(String::as_str))
}

/// Notes to come back later, anywhere in another text.
pub fn check_later(file: &TextFile) -> Vec<Finding> {
    later(&file.path, file.text.lines())
}

fn later<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in lines.enumerate() {
        if let Some(word) = LATER_WORDS.iter().find(|word| has_word(line, word)) {
            let message = format!("`{word}`: do it now, or write down in CHANGELOG.md or the docs what is missing");
            findings.push(Finding::at(path, index + 1, LATER_RULE, message));
        }
    }
    findings
}

/// Whether a path begins like this in the line; `a/work/b` does not.
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
            ("cd /work/main", 1),
            ("`/home/ada/jobs`", 1),
            ("cp a /tmp/b", 1),
            ("see docs/work/a.md", 0),
            ("https://example.com/home/x", 0),
            ("/var/backups", 0),
            ("source = \"registry+https://github.com/rust-lang/crates.io-index\"", 0),
            ("source = \"registry+https://mirror.example/index\"", 1),
            ("replace-with = \"mirror\"", 1),
            ("  \"resolved\": \"https://registry.npmjs.org/a/-/a-1.tgz\"", 0),
            ("  \"resolved\": \"https://npm.example/a-1.tgz\"", 1),
        ] {
            assert_eq!(check(&file("a.md", text)).len(), expected, "{text}");
        }
    }

    #[test]
    fn finds_what_is_put_off() {
        assert_eq!(check_later(&file("a.md", "a\nTODO: b\n"))[0].line, 2);
        assert_eq!(check_later(&file("a.md", "MASTODON and TODOS\n")), []);
        let rust = RustFile::new(&file("crates/x/src/a.rs", "let a = \"TODO\";\n// FIXME later\n"));
        assert_eq!(check_comments(&rust)[0].line, 2);
        assert_eq!(check_comments(&rust).len(), 1);
    }
}
