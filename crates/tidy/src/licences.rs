//! Licences of all dependencies. The rule evaluates SPDX expressions, because `MIT AND X` requires both licences and
//! `MIT OR X` requires one.

use crate::{CargoMetadata, Finding};

const RULE: &str = "licences";

/// Licences that are compatible with distributing the binary under ours.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Maximum nesting of parentheses in an expression.
const DEPTH_MAX: usize = 8;

/// Reports packages whose licence is missing or not allowed.
pub fn check(metadata: &CargoMetadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.packages.values() {
        let problem = match &package.licence {
            None => Some("has no licence".to_owned()),
            Some(expression) if !is_allowed(expression) => Some(format!("is under `{expression}`")),
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let message =
                format!("{problem}; use another crate, or argue for the licence in crates/tidy/src/licences.rs");
            findings.push(Finding::whole(&format!("{} {}", package.name, package.version), RULE, message));
        }
    }
    findings
}

/// Whether allowed licences satisfy an SPDX expression. An expression that cannot be parsed is not allowed.
pub fn is_allowed(expression: &str) -> bool {
    // Old packages write `MIT/Apache-2.0` for a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, 0) == Some(true) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], depth: usize) -> Option<bool> {
    let mut met = all_of(rest, depth)?;
    while take(rest, "OR") {
        met |= all_of(rest, depth)?;
    }
    Some(met)
}

fn all_of(rest: &mut &[&str], depth: usize) -> Option<bool> {
    let mut met = one(rest, depth)?;
    while take(rest, "AND") {
        met &= one(rest, depth)?;
    }
    Some(met)
}

fn one(rest: &mut &[&str], depth: usize) -> Option<bool> {
    if depth > DEPTH_MAX {
        return None;
    }
    if take(rest, "(") {
        let met = any_of(rest, depth + 1)?;
        return take(rest, ")").then_some(met);
    }
    let (name, after) = rest.split_first()?;
    *rest = after;
    if !take(rest, "WITH") {
        return Some(ALLOWED.contains(name));
    }
    let (exception, after) = rest.split_first()?;
    *rest = after;
    Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CargoPackage;

    #[test]
    fn evaluates_expressions() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND LGPL-2.1", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("", false),
            ("(MIT", false),
            ("MIT Apache-2.0", false),
            ("((((((((((MIT))))))))))", false),
        ] {
            assert_eq!(is_allowed(expression), expected, "{expression}");
        }
    }

    #[test]
    fn finds_missing_licences() {
        let mut metadata = CargoMetadata::default();
        let package = CargoPackage { name: "a".to_owned(), version: "1.0.0".to_owned(), ..CargoPackage::default() };
        metadata.packages.insert("a".to_owned(), package);
        assert!(check(&metadata)[0].to_string().starts_with("a 1.0.0: has no licence"));
    }
}
