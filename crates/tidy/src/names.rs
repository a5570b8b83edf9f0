//! Names of types and files. Search, go-to-symbol and stack traces find a type by its name only if the name exists
//! once, and the name helps only if it says what the type is.

use std::collections::BTreeMap;

use crate::{Finding, RustFile};

const RULE: &str = "names";

/// Parts of names that carry no meaning.
const EMPTY_WORDS: &[&str] =
    &["manager", "helper", "helpers", "util", "utils", "utility", "utilities", "common", "misc", "data", "info"];

/// Type names that are conventions and mean the same everywhere.
const CONVENTIONS: &[&str] = &["Error", "Options"];

/// Keywords that declare a name.
const DECLARATIONS: &[&str] = &["struct", "enum", "trait", "type", "mod", "union"];

/// Reports files and types whose names carry no meaning.
pub fn check(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let file_words = file.path.trim_end_matches(".rs").split(['/', '_', '-']);
    // Folders of test inputs are called `data`, as cargo users expect; only Rust files are checked here.
    for word in file_words.filter(|word| EMPTY_WORDS.contains(word)) {
        findings.push(Finding::whole(&file.path, RULE, format!("`{word}` in a path carries no meaning; {REMEDY}")));
    }
    for (index, line) in file.code.iter().enumerate() {
        let Some((_, name)) = declaration(line) else { continue };
        if let Some(word) = words(name).into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
            let message = format!("`{word}` in `{name}` carries no meaning; {REMEDY}");
            findings.push(Finding::at(&file.path, index + 1, RULE, message));
        }
    }
    findings
}

/// Reports types of the product that share their name with another type of the product, and types whose name is a bare
/// participle such as `Asked`. Tests, benchmarks and examples are not checked.
pub fn check_types(files: &[RustFile]) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<(&RustFile, usize)>> = BTreeMap::new();
    for file in files {
        for (number, line) in file.product_code() {
            match declaration(line) {
                Some(("mod", _)) | None => {}
                // A `type` that is not at the left margin belongs to a trait or its implementation.
                Some(("type", _)) if line.starts_with(' ') => {}
                Some((_, name)) => places.entry(name).or_default().push((file, number)),
            }
        }
    }
    let mut findings = Vec::new();
    for (name, places) in places.into_iter().filter(|(name, _)| !CONVENTIONS.contains(name)) {
        for (index, (file, number)) in places.iter().enumerate() {
            if is_bare_participle(name) {
                let message = format!("`{name}` does not say what it is; add the noun");
                findings.push(Finding::at(&file.path, *number, RULE, message));
            }
            if let Some((other, other_number)) = places.get(usize::from(index == 0)).filter(|_| places.len() > 1) {
                let message = format!("`{name}` is also declared in {}:{other_number}; rename one of them", other.path);
                findings.push(Finding::at(&file.path, *number, RULE, message));
            }
        }
    }
    findings
}

const REMEDY: &str = "name what it holds or does";

/// `Asked`, `Prepared`: one word that ends like a participle.
fn is_bare_participle(name: &str) -> bool {
    words(name).len() == 2 && name.ends_with("ed") && !name.ends_with("eed")
}

/// The keyword and the name of a declaration in a line of code.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let keyword = words.by_ref().find(|word| DECLARATIONS.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    (end > 0).then(|| (keyword, &name[..end]))
}

/// Splits `RunStateTable` or `run_state_table` into lower-case words. The first word is empty if the name starts with a
/// capital.
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

    fn file(path: &str, text: &str) -> RustFile {
        RustFile::new(&TextFile { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn finds_names_without_meaning() {
        for (path, text, expected) in [
            ("crates/x/src/run.rs", "pub struct RunTable;", 0),
            ("crates/x/src/run.rs", "pub struct RunManager;", 1),
            ("crates/x/src/run.rs", "mod text_utils;", 1),
            ("crates/x/src/run.rs", "enum Commonality {}", 0),
            ("crates/x/src/run.rs", "// struct Helper", 0),
            ("crates/x/src/run_helpers.rs", "", 1),
            ("crates/x/tests/common/mod.rs", "", 1),
        ] {
            assert_eq!(check(&file(path, text)).len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn finds_types_that_share_a_name() {
        let here = |text: &str| file("crates/x/src/run.rs", text);
        let there = |text: &str| file("crates/y/src/run.rs", text);
        for (first, second, expected) in [
            ("pub struct RunTable;", "struct JobTable;", 0),
            ("pub struct RunTable;", "enum RunTable {}", 2),
            ("pub struct Error;", "enum Error {}", 0),
            ("mod run_table {}", "mod run_table {}", 0),
            ("    type Item = u8;", "    type Item = u16;", 0),
            ("struct Reader;", "#[cfg(test)]\nmod tests {\n    struct Reader;\n}", 0),
        ] {
            assert_eq!(check_types(&[here(first), there(second)]).len(), expected, "{first} {second}");
        }
    }

    #[test]
    fn finds_bare_participles() {
        for (name, expected) in [("Asked", 1), ("AskedCommand", 0), ("Seed", 0), ("Bed", 1)] {
            assert_eq!(
                check_types(&[file("crates/x/src/run.rs", &format!("struct {name};"))]).len(),
                expected,
                "{name}"
            );
        }
    }
}
