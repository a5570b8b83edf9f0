//! Names that say nothing. A file or type called after what it does not know of itself becomes a
//! drawer for everything; the glossary has a noun for each concept.

use crate::{Finding, RustFile};

const RULE: &str = "nouns";

/// Parts of names that say nothing.
const EMPTY_WORDS: &[&str] =
    &["manager", "helper", "helpers", "util", "utils", "utility", "utilities", "common", "misc", "data", "info"];

/// What declares a name of ours.
const DECLARATIONS: &[&str] = &["struct", "enum", "trait", "type", "mod", "union"];

/// Files and types whose names say nothing.
pub fn check(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let file_words = file.path.trim_end_matches(".rs").split(['/', '_', '-']);
    // Folders of test inputs are called `data`, as cargo users expect; only Rust files are looked at here.
    for word in file_words.filter(|word| EMPTY_WORDS.contains(word)) {
        findings.push(Finding::whole(&file.path, RULE, format!("`{word}` in a path says nothing; {REMEDY}")));
    }
    for (index, line) in file.code.iter().enumerate() {
        let Some(name) = declared_name(line) else { continue };
        if let Some(word) = words(name).into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
            let message = format!("`{word}` in `{name}` says nothing; {REMEDY}");
            findings.push(Finding::at(&file.path, index + 1, RULE, message));
        }
    }
    findings
}

const REMEDY: &str = "name what it holds or does (docs/glossary.md)";

fn declared_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| DECLARATIONS.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    Some(&name[..end])
}

/// `RunStateTable` and `run_state_table` as lower-case words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    fn count(path: &str, text: &str) -> usize {
        check(&RustFile::new(&TextFile { path: path.to_owned(), text: text.to_owned() })).len()
    }

    #[test]
    fn finds_empty_names() {
        for (path, text, expected) in [
            ("crates/x/src/run.rs", "pub struct RunTable;", 0),
            ("crates/x/src/run.rs", "pub struct RunManager;", 1),
            ("crates/x/src/run.rs", "mod text_utils;", 1),
            ("crates/x/src/run.rs", "enum Commonality {}", 0),
            ("crates/x/src/run.rs", "// struct Helper", 0),
            ("crates/x/src/run_helpers.rs", "", 1),
            ("crates/x/tests/common/mod.rs", "", 1),
        ] {
            assert_eq!(count(path, text), expected, "{path}: {text}");
        }
    }
}
